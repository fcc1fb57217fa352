"""``variegate search SRC`` and ``variegate evaluate SRC``."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variegate.cli import console
from variegate.cli.console import INTERRUPTED, CommandError, CountingBar, cell, emit_json, note, say, stderr
from variegate.cli.options import CommandOptions, ImportOptions, SourceOptions, device_list
from variegate.formats.kinds import LABELLED_IMAGES_HELP
from variegate.io.addresses import shown_host
from variegate.options import same_option
from variegate.options.search import EvaluationOptions, SearchOptions

if TYPE_CHECKING:
    from variegate.apps.search.compare import Comparison, Trial
    from variegate.apps.search.driver import PopulationSearch
    from variegate.apps.search.driver import Progress as SearchProgress
    from variegate.apps.search.evaluate import Evaluation
    from variegate.apps.search.history import History
    from variegate.apps.search.prepare import Sizes
    from variegate.apps.search.verdict import ResultComparison
    from variegate.apps.train.images import LabelledImages
    from variegate.policies.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class ClassesOptions(SourceOptions, CommandOptions):
    src: str = same_option(SourceOptions, "src", help=LABELLED_IMAGES_HELP)


@dataclass(frozen=True, kw_only=True)
class SearchCommandOptions(SearchOptions, ClassesOptions):
    pass


def search(options: SearchCommandOptions) -> None:
    """Search a schedule of augmentation policies for your images.

    The method is Population Based Augmentation. Writes OUT/schedule.json, which --policy of other commands and
    vg.load_policy accept. By default, the split, batch size, epochs and model are chosen to fit the data. To resume an
    interrupted search, run the same command again.
    """
    from variegate.apps.search.driver import search_devices
    from variegate.apps.search.prepare import prepare_search
    from variegate.apps.search.run import check_folder

    _check_backend(options)
    is_local = options.backend == "local"
    devices = search_devices(device_list(options.devices), options.population) if is_local else ["cpu"]
    check_folder(options.out)
    images, place, fingerprint = _load(options.place, options.size, devices[0])
    test = None if options.test is None else _load_test(options.test, options, images, devices[0])
    run, sizes = prepare_search(images, options, place, fingerprint, test)
    searching: PopulationSearch
    if is_local:
        from variegate.apps.search.driver import LocalSearch

        searching = LocalSearch(run, options.out, devices, capture=options.capture)
    else:
        from variegate.apps.search.tune import TuneSearch

        searching = TuneSearch(run, options.out, options.address, options.gpus_per_member, capture=options.capture)
    _announce(sizes, images, options.as_json, members=options.population, devices=devices if is_local else ["ray"])
    if options.repeats and run.test is None:
        note("too few images to hold some out and compare the result; --test SRC2 gives others")
    _run_search(searching, options, devices if is_local else search_devices())


def _announce(sizes: Sizes, images: LabelledImages, as_json: bool, **more: Any) -> None:
    height, width = images.pixels.shape[1:3]
    if as_json:
        emit_json("start", **asdict(sizes), size=[int(height), int(width)], **more)
    else:
        members = f", {more['members']} members" if "members" in more else ""
        say(f"sizes: {sizes}{members}, {height}x{width}", stderr())


def _load(src: Any, size: str | tuple[int, int], device: str) -> tuple[LabelledImages, str, str]:
    """Images, their place and their fingerprint; notes about what is left out. ``size``: as typed, or sides. Raises
    SourceError."""
    from variegate.apps.train.images import fitting_size, load_images
    from variegate.formats.base import SourceError
    from variegate.io.addresses import shown
    from variegate.jobs.arguments import absolute_place, open_by_index, parse_size

    sides = None if size == "auto" else parse_size(size) if isinstance(size, str) else size
    source = open_by_index(src)
    note(*source.notes())
    # On a terminal; it may take minutes.
    with stderr().status(f"decoding {len(source):,} images"):
        images = load_images(source, fitting_size(source) if size == "auto" else sides, device)
    if len(images) < len(source):
        note(f"{len(source) - len(images):,} of {len(source):,} images cannot be read and are skipped")
    if images.num_classes < 2:
        raise SourceError(
            f"{shown(str(src))}: has one class ({images.classes[0]}); accepted: two or more, in folders of their own"
        )
    return images, absolute_place(src), source.fingerprint


def _check_backend(options: SearchOptions) -> None:
    """Raises ValueError for options of the other back end."""
    if options.backend == "ray":
        if options.devices != "auto":
            raise ValueError(
                f"--devices: got {options.devices!r}, with --backend ray; accepted: --gpus-per-member, as the cluster "
                "decides which devices members are on"
            )
        return
    for name, value in (("--address", options.address), ("--gpus-per-member", options.gpus_per_member)):
        if value is not None:
            got = shown_host(value) if isinstance(value, str) else value
            raise ValueError(f"{name}: got {got!r}, with --backend local; accepted: with --backend ray")


def _run_search(search: PopulationSearch, options: SearchCommandOptions, devices: list[str]) -> None:
    from variegate.apps.search import LostPopulationError, read_log
    from variegate.apps.search.run import LOG_NAME
    from variegate.formats.storage import WriteError

    started, stop, as_json = time.perf_counter(), threading.Event(), options.as_json
    with SearchView(search, as_json) as view, console.interrupt_sets(stop):
        try:
            schedule = search.run(view, stop)
        except LostPopulationError as error:
            raise CommandError(f"{error}; a lower --lr may help, with another folder as --out") from error
        except WriteError as error:
            raise CommandError(f"{error}; to resume from the last step, run the same command again") from error
    if schedule is None:
        raise CommandError("interrupted: completed steps are saved; to resume, run the same command again", INTERRUPTED)
    history = read_log(search.folder / LOG_NAME)
    best = history.steps[-1][history.best]
    told = _compare_result(search, options, devices) if search.run_settings.test is not None else []
    pictures = _draw(search.folder, schedule, history)
    written, seconds = str(search.folder / "schedule.json"), round(time.perf_counter() - started, 1)
    if as_json:
        facts = {"schedule": written, "accuracy": round(best.score, 4), "member": best.member, "seconds": seconds}
        emit_json("done", **facts, verdicts=told, pictures=pictures)
        return
    say(f"{written}: {schedule.epochs} epochs, of member {best.member}, accuracy {best.score:.2%}")
    for line in (*pictures, *told):
        say(line)
    if not told:
        say(f"try it: variegate evaluate SRC --test UNSEEN --policies none,flip-crop,randaugment,{written}")


def _compare_result(search: PopulationSearch, options: SearchCommandOptions, devices: list[str]) -> list[str]:
    """Train with the schedule, none and flip-crop -> the outcome in sentences."""
    from variegate.apps.search.verdict import ResultComparison, outcome

    if not options.repeats:
        return []
    comparing = ResultComparison(search.run_settings, search.folder, options.repeats, devices, capture=options.capture)
    trials = _run_trainings(comparing, options.as_json)
    if len(trials) < len(comparing.policies) * options.repeats:
        raise CommandError(
            "interrupted: the search is complete; to finish its comparison, run the same command again", INTERRUPTED
        )
    return outcome(comparing.compare(trials), comparing.evaluation.subsets.scored)


def _draw(folder: Path, schedule: Schedule, history: History) -> list[str]:
    """Draw the pictures of a search -> their files; none without matplotlib, or where there is no room for them."""
    from variegate.apps.plotting import PlotError
    from variegate.apps.search.plots import plot_population, plot_schedule
    from variegate.formats.storage import WriteError

    paths = [folder / "schedule.png", folder / "population.png"]
    try:
        plot_schedule(schedule, paths[0])
        plot_population(history, paths[1])
    except (PlotError, WriteError) as error:
        note(str(error))
        return []
    return [str(path) for path in paths]


class SearchView(CountingBar):
    """Progress of a search; use as a context."""

    def __init__(self, search: PopulationSearch, as_json: bool) -> None:
        self._as_json, self._started = as_json, time.perf_counter()
        settings = search.run_settings.settings
        self._size = settings.size
        super().__init__(as_json, "searching", "{task.fields[best]}", total=settings.steps * settings.size, best="")

    def __call__(self, progress: SearchProgress) -> None:
        best = "" if math.isnan(progress.best) else f"best {progress.best:.2%}"
        done = progress.step * self._size + (0 if progress.rows else progress.members_done)
        self.show(done, description=f"step {progress.step + 1}/{progress.steps}", best=best)
        if not progress.rows:
            return
        epoch = progress.rows[0].epoch
        lost = [row.member for row in progress.rows if math.isnan(row.score)]
        copies = [(row.member, row.copied_from) for row in progress.rows if row.copied_from is not None]
        if self._as_json:
            counts = {"step": progress.step, "steps": progress.steps, "epoch": epoch, "best": round(progress.best, 4)}
            emit_json("step", **counts, copies=copies, lost=lost, is_flat=progress.is_flat)
            return
        if not self.console.is_terminal:
            seconds = time.perf_counter() - self._started
            line = f"step {progress.step}/{progress.steps}: {best}, {len(copies)} copied"
            say(f"{line}, {seconds:,.0f} s", self.console)
        for member, donor in copies:
            if member in lost:
                note(f"member {member} diverged (loss is not finite); it continues as member {donor}", to=self.console)
        if progress.is_flat:
            note(f"after epoch {epoch} all members score the same; nobody was ranked", to=self.console)


@dataclass(frozen=True, kw_only=True)
class EvaluateCommandOptions(EvaluationOptions, ClassesOptions, ImportOptions):
    pass


def evaluate(options: EvaluateCommandOptions) -> None:
    """Compare policies by training the same model with each of them.

    Within a repeat, all policies train on the same images, from the same weights, in the same order. Repeats differ in
    all three. Policies are compared by their differences within repeats, with 95% intervals and a verdict.
    """
    from variegate.apps.plotting import check_path
    from variegate.apps.search.compare import compare
    from variegate.apps.search.driver import search_devices
    from variegate.apps.search.prepare import policy_names, prepare_evaluation

    as_json = options.as_json
    check_path(options.out)
    trainings = len(policy_names(options.policies)) * options.repeats
    devices = search_devices(device_list(options.devices), max(1, trainings))
    images, _, _ = _load(options.place, options.size, devices[0])
    test = None if options.test is None else _load_test(options.test, options, images, devices[0])
    evaluation, sizes = prepare_evaluation(images, test, options, devices)
    _announce(sizes, images, as_json, repeats=evaluation.repeats, policies=list(evaluation.policies))
    _note_bias(evaluation)
    trials = _run_trainings(evaluation, as_json)
    if not trials:
        raise CommandError("interrupted before the first training run was complete", INTERRUPTED)
    for name in evaluation.policies:
        lost = [trial for trial in trials if trial.policy == name and math.isnan(trial.accuracy)]
        if lost:
            said = f"{name}: {len(lost)} of its training runs diverged (the loss is not finite) and count as 0"
            note(f"{said}; a lower --lr may help")
    _show(compare(trials, evaluation.policies, evaluation.subsets.scored), evaluation, options.out, as_json)
    if len(trials) < trainings:
        done = f"{len(trials)} of {trainings} training runs"
        raise CommandError(f"interrupted after {done}; the table covers the complete repeats", INTERRUPTED)


def _load_test(
    src: str, options: SearchCommandOptions | EvaluateCommandOptions, images: LabelledImages, device: str
) -> LabelledImages:
    """Raises SourceError for other classes than ``images`` have, or another size."""
    from variegate.formats.base import SourceError
    from variegate.io.addresses import shown

    height, width = images.pixels.shape[1:3]
    test, _, _ = _load(src, "none" if options.size == "none" else (height, width), device)
    classes = images.classes[: test.num_classes]  # the last may have no image there
    if test.classes != classes or test.pixels.shape[1:] != images.pixels.shape[1:]:
        raise SourceError(f"{shown(src)}: other classes, or images of another size, than {shown(options.src)}")
    return test


def _run_trainings(evaluation: Evaluation | ResultComparison, as_json: bool) -> list[Trial]:
    stop, done = threading.Event(), 0
    bar = CountingBar(as_json, "training", total=len(evaluation.policies) * evaluation.repeats)

    def report(trial: Trial) -> None:
        nonlocal done
        done += 1
        bar.show(done)
        if as_json:
            emit_json("trial", **trial._asdict())

    with bar, console.interrupt_sets(stop):
        return evaluation.run(report, stop)


def _note_bias(evaluation: Evaluation) -> None:
    """Note what a policy has over others: a schedule that has seen images, fewer images to train."""
    from variegate.apps.search.compare import is_own
    from variegate.apps.search.evaluate import GAP

    if evaluation.subsets.test is None and any(is_own(name) for name in evaluation.policies):
        seen = "a schedule learned on SRC has seen the images that are scored here"
        note(f"{seen}, which favors it; pass other images as --test")
    if GAP in evaluation.policies:
        note(f"{GAP} trains on 9/10 of its images and measures the gap on the rest")


def _show(comparison: Comparison, evaluation: Evaluation, out: Path, as_json: bool) -> None:
    """Print the table and the verdicts, and draw the plot; raises CommandError at the end if it cannot be written."""
    from variegate.apps.search.compare import cells, plot_evaluation, verdicts
    from variegate.formats.storage import WriteError

    plot, unwritten, subsets, sentences = None, None, evaluation.subsets, verdicts(comparison)
    counts = f"{subsets.train:,} images train, {subsets.scored:,} score"
    remark = f"{evaluation.model}, {counts}, {evaluation.recipe.epochs} epochs"
    try:
        plot = console.plot_or_note(lambda: plot_evaluation(comparison, out, remark), out)
    except WriteError as error:  # reported after the table, which took the time
        unwritten = error
    reference, differences = comparison.reference, comparison.differences
    if as_json:
        policies = [
            {
                **one._asdict(),
                "needs_search": one.policy in comparison.own,
                "difference": None if found is None else {**found._asdict(), "shown": found.shown},
            }
            for one in comparison.summaries
            for found in (differences.get(one.policy),)
        ]
        facts = {"reference": reference, "repeats": comparison.repeats, "verdicts": sentences, "scope": subsets.scope}
        emit_json("done", policies=policies, **facts, plot=plot)
    else:
        # The accuracy of each training is in the plot and in --json: a line has 80 characters.
        to = [] if reference is None else [f"to {reference}" + (" (95 %)" if comparison.repeats > 1 else "")]
        table = console.table_of(("policy", "accuracy", "spread", *to, "s per run"))
        for one in comparison.summaries:
            mean, spread, difference = cells(one, comparison)
            middle = [] if reference is None else [difference]
            table.add_row(cell(one.policy), mean, spread, *middle, f"{one.seconds:.1f}")
        console.stdout().print(table)
        scope = [subsets.scope] if comparison.repeats > 1 and differences else []
        for sentence in (*sentences, *scope, *([] if plot is None else [f"plot: {plot}"])):
            say(sentence)
    if unwritten is not None:
        raise CommandError(unwritten)
