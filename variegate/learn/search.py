"""Searches and evaluations, as functions and commands run them: ``vg.search``, and its comparison with others."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import torch

from variegate.apps.plotting import PlotError, check_path
from variegate.checks import refused
from variegate.data.base import SourceError
from variegate.events import Note, OnEvent
from variegate.io.durable import WriteError
from variegate.learn.candidates import candidates_of
from variegate.learn.driver import PopulationSearch, search_devices
from variegate.learn.events import InterruptedTrainingError, notes_as_warnings
from variegate.learn.history import History, Settings, read_log
from variegate.learn.image_race import Evaluated, ImageRace, Subsets, TrainingPlan
from variegate.learn.images import BaselineAugmentation, LabelledImages
from variegate.learn.members import ObjectiveMember, PopulationMember
from variegate.learn.objective import STEP, check_sent, is_training, name_of, step_of
from variegate.learn.plots import plot_race, plot_search
from variegate.learn.policy import SearchSpace
from variegate.learn.prepare import known_operations, open_evaluation, open_race, open_search, policy_names
from variegate.learn.rounds import LOG_NAME as RACE_NAME
from variegate.learn.rounds import MARGIN, RaceFiles, RaceRules
from variegate.learn.run import LOG_NAME, SCHEDULE_NAME, SETTINGS_NAME, PopulationRun, SearchRun
from variegate.learn.standings import RaceResult
from variegate.learn.trainings import check_folder
from variegate.learn.verdict import Comparison, verdicts
from variegate.options.rows import NO_AUGMENTATION, Row, row_name
from variegate.options.search import (
    DEFAULT_METHOD,
    EvaluationOptions,
    Method,
    ObjectiveOptions,
    SearchOptions,
    seconds_in,
)
from variegate.options.training import DEFAULT_POLICY
from variegate.policies import PBA, Schedule

PICTURE_NAME = "search.png"


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.

    ``schedule``: the policies that the best member trained with, and ``score``: its last. ``history``: of all members.
    ``folder``: has the schedule and the log. ``comparison``: of the schedule with none, crop and flip+crop+cutout on
    images that were held out; None for training of your own, and without such images.
    """

    schedule: Schedule
    score: float
    history: History
    folder: Path
    comparison: Evaluated | None = None

    @property
    def policy(self) -> PBA:
        """The schedule as a transform, which follows the epoch."""
        return PBA(self.schedule)

    @property
    def verdict(self) -> str:
        """The comparison in words."""
        if self.comparison is None:
            return ""
        return " ".join(outcome(self.comparison.comparison, self.comparison.race.plan.subsets.scored))


def search(
    objective: Any,
    operations: str | Sequence[Any] | None = None,
    *,
    on_event: OnEvent | None = None,
    stop: Event | None = None,
    **options: Any,
) -> SearchResult:
    """Search a schedule of augmentation policies by Population Based Augmentation, for images or for your own training.

    The same call resumes from ``out``, after a kill too.

    Args:
        objective: labeled images, as ``vg.open_source`` accepts them: image classifiers train on them, and their
            accuracy is the score. Or your training: a function ``step(policy, epochs, checkpoint)``, or a class or an
            object with such a method, that trains ``epochs`` more epochs from ``checkpoint`` (None: from the beginning)
            with ``policy``, a transform, and returns ``(score, checkpoint)``. Higher scores are better, and NaN means
            that training diverged. Checkpoints may contain tensors, arrays, numbers, text, bytes, None, and lists,
            tuples and dicts of these; tensors are loaded to the CPU. If it has a parameter ``seed``, it gets the
            member's. A class is instantiated without arguments, once in each process that trains.
        operations: a list of operations to search: names such as "Rotate" and "Rotate:0..45:signed", custom ones as
            "module:Class", as classes and as instances. None: the space's operations, for "pba" the paper's 15.
        on_event: called with events, one at a time: a ``Progress`` after each member's turn and each step.
            None: notes are warnings.
        stop: once set, no epoch begins.
        options: for images, fields of ``SearchOptions``, as the options of ``variegate search``. For your training,
            ``epochs``, and ``population``, ``interval``, ``space``, ``seed``, ``workers`` (members that train at a
            time, in threads), ``backend``, ``address``, ``gpus_per_member`` and ``out``.

    Raises:
        ValueError, SourceError: for an argument, named, or a folder that holds something else.
        RuntimeError: naming the member and the step, from an error in your training.
        LostPopulationError: if every member diverged.
        CheckpointError, LogError: for damaged files.
        WriteError: if a result cannot be written.
        InterruptedTrainingError: if ``stop`` was set before the end.
        ImportError: for ``backend="ray"`` without Ray.
    """
    on_event = on_event or notes_as_warnings
    is_custom = is_training(objective)
    kind, other = (ObjectiveOptions, SearchOptions) if is_custom else (SearchOptions, ObjectiveOptions)
    known = {one.name for one in fields(kind)}
    if options.get("method", "pba") not in ("auto", "pba"):
        raise refused("method", options["method"], "'pba'; vg.race has the other")
    for name in ("policies", "rounds", "budget"):
        if name in options:
            raise refused(name, options[name], "by vg.race")
    for one in fields(other):
        if one.name in options and one.name not in known:
            raise refused(one.name, options[one.name], f"for {'images' if is_custom else 'training of your own'} only")
    if is_custom and "epochs" not in options:
        raise ValueError("epochs: got nothing; accepted: the epochs that each member trains")
    given = kind(**options)
    searched = known_operations(operations)
    SearchSpace(searched)  # refuses operations before images are read
    if isinstance(given, SearchOptions):
        return _search_images(objective, given, searched, on_event, stop)
    folder = Path(given.out)
    check_folder(folder, SETTINGS_NAME)
    devices = ["cpu"] * min(given.workers, given.population)
    space = SearchSpace(searched, space=given.space or "pba-relative")
    settings = Settings(given.population, space, given.seed, given.interval, given.epochs)
    return _run_population(population_search(ObjectiveRun(settings, objective), given, devices), on_event, stop)


def run_search(
    source: Any, options: SearchOptions, on_event: OnEvent, stop: Event | None = None
) -> RaceResult | SearchResult:
    """Search on images by the method of ``options.out``, else of ``options``, and draw the picture of the result.

    Raises as ``search`` and ``race``; ValueError also for options of the other method.
    """
    options = with_method(options)
    if options.method == "pba":
        return _search_images(source, options, (), on_event, stop)
    check_folder(options.out, RACE_NAME)
    rules = RaceRules(options.rounds, seconds_in("budget", options.budget), margin=MARGIN)
    names = None if options.policies is None else policy_names(options.policies)
    devices = search_devices(options.devices, 64)
    race = open_race(source, names, options, rules, devices, on_event, options.out, stop)
    result = race.run(options.out, on_event, stop)
    if result.ending == "interrupted":
        raise InterruptedTrainingError("completed training runs are saved")
    if result.is_decided:
        draw_or_note(partial(plot_race, result, options.out / PICTURE_NAME), on_event)
    return result


def with_method(options: SearchOptions) -> SearchOptions:
    """The options with the method of the folder, else of the options. Raises SourceError for a folder with another
    method, ValueError for options of another."""
    files: dict[Method, str] = {"pba": SETTINGS_NAME, "race": RACE_NAME}
    found = [name for name, file in files.items() if (options.out / file).exists()]
    requested = DEFAULT_METHOD if options.method == "auto" else options.method
    if found and options.method not in ("auto", found[0]):
        raise SourceError(
            f"{options.out}: holds a search with --method {found[0]}, this one has {requested}; choose another folder"
        )
    return replace(options, method=found[0] if found else requested)


def draw_or_note(draw: Callable[[], object], on_event: OnEvent) -> bool:
    """Draw a picture; without matplotlib, or room for it, send a note."""
    try:
        draw()
    except (PlotError, WriteError) as error:
        on_event(Note(str(error)))
        return False
    return True


def run_evaluation(source: Any, options: EvaluationOptions, on_event: OnEvent, stop: Event | None = None) -> Evaluated:
    """Train with each policy, as often as ``options`` say; once ``stop`` is set, the result has the complete repeats.

    Raises SourceError for unsuitable images and for the journal of another evaluation, ValueError for options,
    WriteError, and errors of training.
    """
    check_path(options.out)
    trainings = len(policy_names(options.policies)) * options.repeats
    devices = search_devices(options.devices, max(1, trainings))
    race = open_evaluation(source, options, devices, on_event, stop)
    return race.evaluate(RaceFiles.beside(options.out), on_event, stop)


def _search_images(
    source: Any, options: SearchOptions, operations: tuple[Any, ...], on_event: OnEvent, stop: Event | None
) -> SearchResult:
    is_local = options.backend == "local"
    devices = search_devices(options.devices, options.population) if is_local else ["cpu"]
    check_folder(options.out, SETTINGS_NAME)
    run = open_search(source, options, devices[0], on_event, stop, operations)
    population = population_search(run, options, devices)  # refuses models before sizes are reported
    on_event(run.started(devices if is_local else ["ray"]))
    if options.repeats and run.test is None:
        on_event(Note("too few images to hold some out and compare the result; --test SRC2 gives others"))
    found = _run_population(population, on_event, stop)
    compared_on = devices if is_local else search_devices()
    comparison = compare_result(run, found.folder, options.repeats, compared_on, on_event, stop)
    result = replace(found, comparison=comparison)
    cost = () if comparison is None else (f"cost of the comparison: {comparison.cost}",)
    compared = None if comparison is None else comparison.comparison
    picture = partial(plot_search, result.schedule, compared, found.folder / PICTURE_NAME, result.verdict, *cost)
    draw_or_note(picture, on_event)
    return result


def _run_population(population: PopulationSearch, on_event: OnEvent, stop: Event | None) -> SearchResult:
    schedule = population.run(on_event, stop)
    if schedule is None:
        raise InterruptedTrainingError("completed steps are saved")
    history = read_log(population.folder / LOG_NAME)
    return SearchResult(schedule, history.steps[-1][history.best].score, history, population.folder)


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
    """A population of training runs that ``objective`` executes; see ``step_of``."""

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

    def on(self, device: str, num_threads: int | None = None) -> Callable[[int], PopulationMember]:
        step = step_of(self.objective)
        assert step is not None
        return partial(ObjectiveMember, self.settings, step)

    def check_sent(self) -> None:
        check_sent(self.objective, self.name)

    def option(self, path: str) -> str:
        return "population" if path == "population.size" else path.rpartition(".")[2]


def compare_result(
    run: SearchRun, folder: Path, repeats: int, devices: Sequence[str], on_event: OnEvent, stop: Event | None = None
) -> Evaluated | None:
    """Train with the schedule in ``folder`` and with ``free_rows``, and write the comparison.

    They train on parts of the images that the search used, as large as its own, and ``run.test`` scores them. None
    without repeats or such images. Raises InterruptedTrainingError, SourceError for a damaged log, WriteError, and
    errors of training.
    """
    if not repeats or run.test is None:
        return None
    around = {name: getattr(run.baseline, name) for name in ("padding", "flip", "cutout")}
    images = _joined(run.train, run.validation)
    subsets = Subsets(images, len(run.train), run.test, run.settings.seed)
    baseline = partial(BaselineAugmentation.of, **around)
    plan = TrainingPlan(subsets, run.model, run.recipe, baseline, run.settings.seed, devices, run.reading)
    rows = candidates_of([*free_rows(run.baseline), schedule_row(run, folder)])
    files = RaceFiles.beside(folder / "comparison.png")
    found = ImageRace(plan, rows, RaceRules(repeats, drops=False)).evaluate(files, on_event, stop)
    if not found.is_complete:
        raise InterruptedTrainingError("the search is complete, and its comparison is not")
    found.write(files)
    return found


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
    """Sentences on the accuracies, the verdict, and its consequence."""
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
