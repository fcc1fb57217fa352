"""``search``: a schedule of policies for images, or for training that users supply, and its comparison with others."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from variegate.checks import refused
from variegate.io.addresses import shown_host
from variegate.learn.compare import Comparison, compare, verdicts
from variegate.learn.driver import PopulationSearch, Tell, search_devices
from variegate.learn.evaluate import Evaluation, EvaluationFiles, Subsets
from variegate.learn.history import History, Settings, read_log
from variegate.learn.images import BaselineAugmentation, LabelledImages
from variegate.learn.members import ObjectiveMember, PopulationMember
from variegate.learn.objective import STEP, check_sent, is_training, name_of, step_of
from variegate.learn.policy import SearchSpace
from variegate.learn.prepare import known_operations, open_search
from variegate.learn.run import LOG_NAME, SCHEDULE_NAME, SETTINGS_NAME, PopulationRun, SearchRun
from variegate.learn.trainings import Training, TrainingJournal, check_folder
from variegate.options import check_options
from variegate.options.rows import NO_AUGMENTATION, Row, row_name
from variegate.options.search import ObjectiveOptions, SearchOptions
from variegate.options.training import DEFAULT_POLICY
from variegate.policies import PBA, Schedule


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.

    ``schedule``: the policies that the best member trained with, and ``score``: its last. ``history``: of all members.
    ``folder``: has the schedule and the log. ``verdict``: the comparison with none, crop and flip+crop+cutout on images
    that were held out, in words; empty for training of your own.
    """

    schedule: Schedule
    score: float
    history: History
    folder: Path
    verdict: str = ""

    @property
    def policy(self) -> PBA:
        """The schedule as a transform, which follows the epoch."""
        return PBA(self.schedule)


def search(
    objective: Any,
    operations: str | Sequence[Any] | None = None,
    *,
    on_progress: Tell | None = None,
    **options: Any,
) -> SearchResult:
    """Search a schedule of augmentation policies by Population Based Augmentation, for images or for your own training.

    The same call resumes from ``out``, after a kill too.

    Args:
        objective: labeled images, as ``vg.open_source`` accepts them: image classifiers train on them, and their
            accuracy is the score. Or your training: a function ``step(policy, epochs, checkpoint)``, or a class or an
            object with such a method, that trains ``epochs`` more epochs from ``checkpoint`` (None: from the
            beginning) with ``policy``, a transform, and returns ``(score, checkpoint)``. Higher scores are better, and
            NaN means that training diverged. Checkpoints consist of tensors, arrays, numbers, text, bytes, None, and
            lists, tuples and dicts of these; tensors come back on the CPU. If it has a parameter ``seed``, it gets the
            member's. A class is instantiated without arguments, once in each process that trains.
        operations: a list of operations to search: names such as "Rotate" and "Rotate:0..45:signed", custom ones as
            "module:Class", as classes and as instances. None: those of the space, for "pba" the 15 of the paper.
        on_progress: called with a ``Progress`` after each member's turn and each step.
        options: for images, fields of ``SearchOptions``, as the options of ``variegate search``. For your training,
            ``epochs``, and ``population``, ``interval``, ``space``, ``seed``, ``workers`` (members that train at a
            time, in threads), ``backend``, ``address``, ``gpus_per_member`` and ``out``.

    Raises:
        ValueError, SourceError: for an argument, named, or a folder that holds something else.
        RuntimeError: naming the member and the step, from an error in your training.
        LostPopulationError: if every member diverged.
        CheckpointError, LogError: for damaged files.
        WriteError: if a result cannot be written.
        ImportError: for ``backend="ray"`` without Ray.
    """
    is_own = is_training(objective)
    kind, other = (ObjectiveOptions, SearchOptions) if is_own else (SearchOptions, ObjectiveOptions)
    known = {one.name for one in fields(kind)}
    if options.get("method", "pba") not in ("auto", "pba"):
        raise refused("method", options["method"], "'pba'; vg.race has the other")
    for name in ("policies", "rounds", "budget"):
        if name in options:
            raise refused(name, options[name], "by vg.race")
    for one in fields(other):
        if one.name in options and one.name not in known:
            raise refused(one.name, options[one.name], f"for {'images' if is_own else 'training of your own'} only")
    if is_own and "epochs" not in options:
        raise ValueError("epochs: got nothing; accepted: the epochs that each member trains")
    given = kind(**options)
    check_options(given)
    check_backend(given)
    is_local = given.backend == "local"
    folder = Path(given.out)
    check_folder(folder, SETTINGS_NAME)
    searched = known_operations(operations)
    run: PopulationRun
    if isinstance(given, SearchOptions):
        devices = search_devices(given.devices, given.population) if is_local else ["cpu"]
        SearchSpace(searched)  # refuses operations before images are read
        run, _ = open_search(objective, given, devices[0], lambda text: warnings.warn(text, stacklevel=6), searched)
    else:
        devices = ["cpu"] * min(given.workers, given.population)
        space = SearchSpace(searched, space=given.space or "pba-relative")
        settings = Settings(given.population, space, given.seed, given.interval, given.epochs)
        run = ObjectiveRun(settings, objective)
    schedule = population_search(run, given, devices).run(on_progress)
    assert schedule is not None  # nothing stops it
    history = read_log(folder / LOG_NAME)
    told: list[str] | None = None
    if isinstance(given, SearchOptions) and isinstance(run, SearchRun):
        compared_on = devices if is_local else search_devices()
        told = compare_result(
            run, folder, given.repeats, compared_on, lambda plan, journal: plan.run(None, None, journal)
        )
    return SearchResult(schedule, history.steps[-1][history.best].score, history, folder, " ".join(told or ()))


def check_backend(options: SearchOptions | ObjectiveOptions) -> None:
    """Raises ValueError for options of the other back end."""
    is_local = options.backend == "local"
    misplaced = ("address", "gpus_per_member") if is_local else ("devices", "workers")
    for one in fields(options):
        value = getattr(options, one.name)
        if one.name in misplaced and value != one.default:
            got = shown_host(value) if one.name == "address" else value
            raise refused(one.name, got, f"with backend={'ray' if is_local else 'local'!r}")


def population_search(
    run: PopulationRun, options: SearchOptions | ObjectiveOptions, devices: Sequence[str]
) -> PopulationSearch:
    """The search of a run by the back end of its options; ``devices``: of the local one."""
    if options.backend == "local":
        from variegate.learn.driver import LocalSearch

        return LocalSearch(run, Path(options.out), devices)
    from variegate.learn.tune import TuneSearch

    return TuneSearch(run, Path(options.out), options.address, options.gpus_per_member)


@dataclass(frozen=True)
class ObjectiveRun(PopulationRun):
    """A population of trainings that ``objective`` runs; see ``step_of``."""

    settings: Settings
    objective: Any
    one_thread = False

    def __post_init__(self) -> None:
        if step_of(self.objective) is None:
            raise refused("objective", self.objective, STEP)

    @property
    def name(self) -> str:
        return name_of(self.objective)

    def describe(self) -> dict[str, Any]:
        described = {"objective": self.name, "population": self.settings.to_dict()}
        return dict(json.loads(json.dumps(described)))  # to which tuples are lists

    def source(self, score: float) -> str:
        return f"vg.search, {self.name}: {self.settings.size} members, score {score:.4g}"

    def on(self, device: str, **options: Any) -> Callable[[int], PopulationMember]:
        step = step_of(self.objective)
        assert step is not None
        return partial(ObjectiveMember, self.settings, step)

    def check_sent(self) -> None:
        check_sent(self.objective, self.name)

    def option(self, path: str) -> str:
        return "population" if path == "population.size" else path.rpartition(".")[2]


def compare_result(
    run: SearchRun,
    folder: Path,
    repeats: int,
    devices: Sequence[str],
    train: Callable[[Evaluation, TrainingJournal], list[Training]],
) -> list[str] | None:
    """Train with the schedule in ``folder`` and with ``free_rows`` -> the outcome in sentences, also written.

    They train on parts of the images that the search used, as large as its own, and ``run.test`` scores them.
    ``train`` is given what the log does not have yet. Nothing without repeats or such images, None if it was
    interrupted. Raises SourceError for a damaged log, WriteError, and what training raises.
    """
    if not repeats or run.test is None:
        return []
    around = {name: getattr(run.baseline, name) for name in ("padding", "flip", "cutout")}
    evaluation = Evaluation(
        Subsets(_joined(run.train, run.validation), len(run.train), run.test, run.settings.seed),
        run.model,
        run.recipe,
        partial(BaselineAugmentation.of, **around),
        [*free_rows(run.baseline), schedule_row(run, folder)],
        repeats,
        run.settings.seed,
        devices,
    )
    files = EvaluationFiles(folder / "comparison.png")
    with files.open(evaluation) as log:
        done = train(evaluation, log)
    if len(done) < len(evaluation.policies) * repeats:
        return None
    comparison = compare(done, evaluation.policies, evaluation.subsets.scored)
    files.write(comparison, evaluation, done)
    return outcome(comparison, evaluation.subsets.scored)


def free_rows(baseline: BaselineAugmentation) -> list[str]:
    """Rows that need no search: nothing, the default of ``train``, and all parts that the options have."""
    everything = row_name(_parts_of(baseline), None)
    default = [DEFAULT_POLICY] if baseline.padding else []
    return list(dict.fromkeys([NO_AUGMENTATION, *default, everything]))


def schedule_row(run: SearchRun, folder: Path) -> str:
    """The row of the schedule in ``folder``, with the parts that it was trained with and does not have itself."""
    path = str(folder / SCHEDULE_NAME)
    space = run.settings.space
    is_whole = space.crop > 0 or space.flip or space.cutout > 0
    return path if is_whole else row_name(_parts_of(run.baseline), path)


def _parts_of(baseline: BaselineAugmentation) -> Row:
    crop = None if baseline.padding else 0
    cutout = None if baseline.cutout else 0
    return Row("", flip=baseline.flip, crop=crop, cutout=cutout)


def outcome(comparison: Comparison, scored: int) -> list[str]:
    """Sentences: the accuracies, the verdict, and what follows from it."""
    rows = ", ".join(f"{one.policy} {one.mean:.2%}" for one in comparison.summaries)
    told = [f"On {scored:,} images that the search has not seen: {rows}.", *verdicts(comparison)]
    found = next((one for name, one in comparison.differences.items() if name.startswith(SCHEDULE_NAME)), None)
    if found is not None and comparison.repeats > 1 and found.shown != "better":
        lost = "The search lost" if found.shown == "worse" else "The search is not shown to have gained anything"
        told.append(f"{lost}: {found.to} needs no search.")
    return told


def _joined(first: LabelledImages, second: LabelledImages) -> LabelledImages:
    pixels = torch.cat([first.pixels, second.pixels])
    labels = torch.cat([first.labels, second.labels])
    return LabelledImages(
        pixels, labels, np.concatenate([first.ids, second.ids]), first.classes, (*first.names, *second.names)
    )
