"""``variegate search SRC``."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.status import Status

from variegate.cli import console
from variegate.cli.console import INTERRUPTED, CommandError, CountingBar, cell, emit_json, note, say, stderr
from variegate.cli.options import ImportOptions, SourceOptions
from variegate.data.kinds import LABELLED_IMAGES_HELP
from variegate.io.addresses import shown_host
from variegate.options import same_option
from variegate.options.search import DEFAULT_METHOD, RaceOptions, SearchOptions, TrainingOptions, seconds_in

if TYPE_CHECKING:
    from variegate.learn.driver import PopulationSearch
    from variegate.learn.driver import Progress as SearchProgress
    from variegate.learn.evaluate import Evaluation
    from variegate.learn.history import History
    from variegate.learn.image_race import ImageRace
    from variegate.learn.images import LabelledImages
    from variegate.learn.prepare import Sizes
    from variegate.learn.rounds import Round
    from variegate.learn.run import SearchRun
    from variegate.learn.standings import RaceResult
    from variegate.learn.trainings import Training, TrainingJournal
    from variegate.policies.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class ClassesOptions(SourceOptions, ImportOptions):
    src: str = same_option(SourceOptions, "src", help=LABELLED_IMAGES_HELP)


@dataclass(frozen=True, kw_only=True)
class SearchCommandOptions(SearchOptions, ClassesOptions):
    pass


def search(options: SearchCommandOptions) -> None:
    """Compare augmentation policies on your images, and choose one.

    A race trains whole candidates on common splits of the images, and drops those that are shown to be worse. It then
    tries variations of the winner, and writes OUT/policy.json. A race without a verdict exits 1. --method pba evolves a
    schedule by Population Based Augmentation, and writes OUT/schedule.json. --policy of other commands and
    vg.load_policy accept both. To resume an interrupted search, or to add --rounds to a race, run the same command
    again.
    """
    if _method(options) == "race":
        _search_by_race(options)
    else:
        _search_by_population(options)


def _method(options: SearchCommandOptions) -> str:
    """The method of a folder, else as asked. Raises SourceError for another one, ValueError for options of another."""
    from variegate.data.base import SourceError
    from variegate.learn.rounds import LOG_NAME
    from variegate.learn.run import SETTINGS_NAME

    found = [name for name, file in (("pba", SETTINGS_NAME), ("race", LOG_NAME)) if (options.out / file).exists()]
    asked = DEFAULT_METHOD if options.method == "auto" else options.method
    if found and options.method not in ("auto", found[0]):
        raise SourceError(
            f"{options.out}: holds a search with --method {found[0]}, this one has {asked}; choose another folder"
        )
    method = found[0] if found else asked
    own = {one.name for one in fields(RaceOptions)}, {one.name for one in fields(SearchOptions)} - {"method", "out"}
    others = own[1] - own[0] if method == "race" else own[0] - {one.name for one in fields(TrainingOptions)} - {"train"}
    for one in fields(SearchOptions):
        if one.name in others and (value := getattr(options, one.name)) != one.default:
            got = shown_host(value) if isinstance(value, str) else value
            other = "pba" if method == "race" else "race"
            flag = one.name.replace("_", "-")
            raise ValueError(f"--{flag}: got {got!r}, with --method {method}; accepted: with --method {other}")
    return method


def _search_by_race(options: SearchCommandOptions) -> None:
    from variegate.data.storage import WriteError
    from variegate.learn.driver import search_devices
    from variegate.learn.image_race import POLICY_NAME
    from variegate.learn.prepare import open_race, policy_names
    from variegate.learn.rounds import LOG_NAME, MARGIN, RaceRules
    from variegate.learn.trainings import check_folder

    check_folder(options.out, LOG_NAME)
    names = None if options.policies is None else policy_names(options.policies)
    devices = search_devices(options.devices, 64)
    rules = RaceRules(options.rounds, seconds_in("budget", options.budget), margin=MARGIN)
    with decoding():
        race, sizes = open_race(options.place, names, options, rules, devices, note, options.out)
    announce(
        sizes,
        race.plan.subsets.images,
        options.as_json,
        policies=list(race.rows),
        devices=devices,
        budget=options.budget,
    )
    stop = threading.Event()
    with RaceView(race, options.as_json) as view, console.interrupt_sets(stop):
        try:
            result = race.run(options.out, view.on_training, view.on_round, stop)
        except WriteError as error:
            raise CommandError(f"{error}; to resume, run the same command again") from error
    if result.ending == "interrupted":
        raise CommandError(
            "interrupted: completed training runs are saved; to resume, run the same command again", INTERRUPTED
        )
    spent = race.cost(result)
    written = str(options.out / POLICY_NAME) if result.is_decided else None
    if options.as_json:
        facts = {"winner": result.winner, "ending": result.ending, "verdict": result.verdict, "cost": spent}
        emit_json("done", policy=written, **facts, standings=[one._asdict() for one in result.standings])
    if written is None:
        raise CommandError(f"{result.verdict} {_resume_hint(result)}")
    if options.as_json:
        return
    _print_standings(result)
    say(result.verdict)
    say(f"cost: {spent}")
    adapt = " --adapt entropy" if race.rows[result.winner].is_adaptive else ""
    say(f"use it: variegate train SRC --policy {written}{adapt}")


def _resume_hint(result: RaceResult) -> str:
    """Advice for a race without a verdict."""
    if result.ending == "budget":
        return "To resume, run the same command with a higher --budget."
    return "Choose a lower --lr, and another --out."


def _print_standings(result: RaceResult) -> None:
    from variegate.learn.standings import stage_name

    table = console.table_of(("policy", "stage", "rounds", "accuracy", "behind its leader", "left"))
    for one in result.standings:
        bounds = "" if math.isnan(one.low) else f" ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
        behind = "" if one.behind == one.low == one.high else f"{100 * one.behind:+.1f}{bounds}"
        left = "yes" if one.dropped is None else "no"
        accuracy = "diverged" if math.isnan(one.mean) else f"{one.mean:.2%}"
        table.add_row(cell(one.candidate), stage_name(one.stage), str(one.rounds), accuracy, behind, left)
    console.stdout().print(table)


class RaceView(CountingBar):
    """Progress of a race; use as a context."""

    def __init__(self, race: ImageRace, as_json: bool) -> None:
        self._as_json = as_json
        self._started = time.perf_counter()
        self._done = 0
        self._left = len(race.rows)
        super().__init__(as_json, "racing", "{task.fields[best]}", total=len(race.rows), best="")

    def on_training(self, one: Training) -> None:
        if self._as_json:
            emit_json("training", **one._asdict())
        self._done += 1
        self.show(self._done, self._left)

    def on_round(self, one: Round) -> None:
        self._done = 0
        self._left = len(one.left)
        self.show(0, self._left, description=f"round {one.number + 1}", best=f"{one.leader} {one.mean:.2%}")
        if self._as_json:
            emit_json("round", **one._asdict())
        elif not self.console.is_terminal:
            dropped = f", dropped {', '.join(one.dropped)}" if one.dropped else ""
            stage = f"variations {one.stage}, " if one.stage else ""
            seconds = time.perf_counter() - self._started
            leader = f"{one.leader} leads with {one.mean:.2%}"
            say(f"{stage}round {one.number}: {leader}, {len(one.left)} left{dropped}, {seconds:,.0f} s", self.console)


def _search_by_population(options: SearchCommandOptions) -> None:
    from variegate.learn.driver import search_devices
    from variegate.learn.prepare import open_search
    from variegate.learn.run import SETTINGS_NAME
    from variegate.learn.searching import check_backend, population_search
    from variegate.learn.trainings import check_folder

    check_backend(options)
    is_local = options.backend == "local"
    devices = search_devices(options.devices, options.population) if is_local else ["cpu"]
    check_folder(options.out, SETTINGS_NAME)
    with decoding():
        run, sizes = open_search(options.place, options, devices[0], note)
    searching = population_search(run, options, devices)
    announce(sizes, run.train, options.as_json, members=options.population, devices=devices if is_local else ["ray"])
    if options.repeats and run.test is None:
        note("too few images to hold some out and compare the result; --test SRC2 gives others")
    _run_search(searching, run, options, devices if is_local else search_devices())


def announce(sizes: Sizes, images: LabelledImages, as_json: bool, **more: Any) -> None:
    height, width = images.pixels.shape[1:3]
    if as_json:
        emit_json("start", **asdict(sizes), size=[int(height), int(width)], **more)
    else:
        members = f", {more['members']} members" if "members" in more else ""
        candidates = f", {len(more['policies'])} candidates within {more['budget']}" if "budget" in more else ""
        say(f"sizes: {sizes}{members}{candidates}, {height}x{width}", stderr())


def decoding() -> Status:
    """A spinner on a terminal, for the minutes that it may take."""
    return stderr().status("decoding images")


def _run_search(search: PopulationSearch, run: SearchRun, options: SearchCommandOptions, devices: list[str]) -> None:
    from variegate.data.storage import WriteError
    from variegate.learn.history import read_log
    from variegate.learn.population import LostPopulationError
    from variegate.learn.run import LOG_NAME
    from variegate.learn.searching import compare_result, schedule_row

    started = time.perf_counter()
    stop = threading.Event()
    as_json = options.as_json
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
    train = partial(run_trainings, as_json=as_json)
    told = compare_result(run, search.folder, options.repeats, devices, train)
    if told is None:
        raise CommandError(
            "interrupted: the search is complete; to finish its comparison, run the same command again", INTERRUPTED
        )
    pictures = _draw(search.folder, schedule, history)
    written = str(search.folder / "schedule.json")
    seconds = round(time.perf_counter() - started, 1)
    if as_json:
        facts = {"schedule": written, "accuracy": round(best.score, 4), "member": best.member, "seconds": seconds}
        emit_json("done", **facts, verdicts=told, pictures=pictures)
        return
    say(f"{written}: {schedule.epochs} epochs, of member {best.member}, accuracy {best.score:.2%}")
    for line in (*pictures, *told):
        say(line)
    if not told:
        row = schedule_row(run, search.folder)
        say(f"try it: variegate evaluate SRC --test UNSEEN --policies none,crop,flip+crop,{row}")


def _draw(folder: Path, schedule: Schedule, history: History) -> list[str]:
    """Draw the pictures of a search -> their files; none without matplotlib, or where there is no room for them."""
    from variegate.apps.plotting import PlotError
    from variegate.data.storage import WriteError
    from variegate.learn.plots import plot_population, plot_schedule

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
        self._as_json = as_json
        self._started = time.perf_counter()
        settings = search.run_settings.settings
        self._size = settings.size
        super().__init__(as_json, "searching", "{task.fields[best]}", total=settings.steps * settings.size, best="")

    def __call__(self, progress: SearchProgress) -> None:
        best = "" if math.isnan(progress.best) else f"best {progress.best:.2%}"
        done = progress.step * self._size + (0 if progress.rows else progress.members_done)
        self.show(done, description=f"step {min(progress.step + 1, progress.steps)}/{progress.steps}", best=best)
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


def run_trainings(evaluation: Evaluation, journal: TrainingJournal, as_json: bool) -> list[Training]:
    """Train what the log does not have, with progress."""
    stop = threading.Event()
    done = len(journal.done)
    total = len(evaluation.policies) * evaluation.repeats
    bar = CountingBar(as_json, "training", total=total)
    if done and not as_json:
        note(f"resuming after {done} of {total} training runs")

    def report(one: Training) -> None:
        nonlocal done
        done += 1
        bar.show(done)
        if as_json:
            emit_json("trial", policy=one.candidate, repeat=one.round, accuracy=one.score, seconds=one.seconds)
        elif not bar.console.is_terminal:
            accuracy = "diverged" if math.isnan(one.score) else f"{one.score:.2%}"
            line = f"{done}/{total}: {one.candidate}, repeat {one.round + 1}: {accuracy}, {one.seconds:,.1f} s"
            say(line, bar.console)

    with bar, console.interrupt_sets(stop):
        bar.show(done)
        return evaluation.run(report, stop, journal)
