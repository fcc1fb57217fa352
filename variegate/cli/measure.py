"""``variegate bench SRC``, ``variegate doctor SRC`` and ``variegate simulate``: where the time goes."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from variegate.cli import console
from variegate.cli.options import CommandOptions, PolicyOptions, SourceOptions
from variegate.options import option, part_of, same_option
from variegate.options.measurement import SCENARIO_OF_FEED, FeedScenario, MeasurementOptions, Scenario

if TYPE_CHECKING:
    from variegate.apps.diagnose import Measurements
    from variegate.apps.simulate import Outcome


@dataclass(frozen=True, kw_only=True)
class MeasuringOptions(MeasurementOptions, SourceOptions, PolicyOptions):
    size: str = same_option(PolicyOptions, "size", default="224")


@dataclass(frozen=True, kw_only=True)
class BenchOptions(MeasuringOptions):
    out: Path = option(Path("bench.png"), "File for the plot, a PNG.", "Output", metavar="FILE")


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(MeasuringOptions):
    consume: float | None = option(None, "Images per second that your model takes.", "Model", metavar="RATE")
    model_ms: float | None = option(
        None, "Milliseconds that your model takes per batch, instead of --consume.", "Model", metavar="MS"
    )
    wire: float | None = option(
        None, "Gigabits per second that this machine receives from workers on others.", "Model", metavar="GBIT"
    )
    seconds: float = same_option(MeasuringOptions, "seconds", default=1.0)


def bench(options: BenchOptions) -> None:
    """Measure the throughput of a loader and of each of its stages.

    Your own images are read, decoded, augmented and transferred to the device. Stages are measured separately, in
    pairs and end to end. A rate is the median of five spans after a warm-up; MB/s count the data that enters the
    stage. Unreadable images are skipped and counted. The plot requires matplotlib (pip install 'variegate[plot]').
    """
    from variegate.apps.diagnose import advise, draw_plot
    from variegate.apps.plotting import check_path

    check_path(options.out)
    measured = run_measurements(options)
    diagnosis = advise(measured)
    plot = console.plot_or_note(lambda: draw_plot(measured, diagnosis.bottleneck, options.out), options.out)
    if options.as_json:
        console.emit_json("done", bottleneck=diagnosis.bottleneck, plot=plot, measurements=measured.to_dict())
        return
    print_rates(measured, diagnosis.bottleneck)
    console.say(diagnosis.summary)
    if plot is not None:
        console.say(f"plot: {plot}")


def doctor(options: DoctorOptions) -> None:
    """Find the bottleneck of a loader, and suggest changes.

    The expected gain of each change is computed from rates measured on your data. With --consume or --model-ms, the
    report says whether the loader keeps up with your model, and whether workers on other machines would pay.
    """
    from variegate.apps.diagnose import advise
    from variegate.apps.diagnose.advise import consumed
    from variegate.apps.diagnose.report import finding_lines

    wanted = consumed(options.consume, options.model_ms, options.batch_size)
    if options.wire is not None and not 0 < options.wire < math.inf:
        raise ValueError(f"wire: got {options.wire:g}; accepted: a positive number")
    measured = run_measurements(options, alternatives=True)
    diagnosis = advise(measured, wanted, options.wire)
    if options.as_json:
        console.emit_json("done", **diagnosis.to_dict(), measurements=measured.to_dict())
        return
    print_rates(measured, diagnosis.bottleneck)
    for line in finding_lines(diagnosis):
        console.say(line)


def run_measurements(options: MeasuringOptions, alternatives: bool = False) -> Measurements:
    """Measure with progress; notes go to standard error."""
    from variegate.apps.diagnose import measure, training_transform

    transform = training_transform(options.policy, options.size)
    chosen = {one.name: getattr(options, one.name) for one in fields(MeasurementOptions)}
    with console.StageProgress(options.as_json) as progress, console.warnings_as_notes(console.stderr()):
        measured = measure(options.place, transform, alternatives=alternatives, on_progress=progress, **chosen)
    if not options.as_json:
        console.note(*measured.notes, *(f"skipped {name}" for name in measured.bad))
    return measured


def print_rates(measured: Measurements, bottleneck: str) -> None:
    """Print two lines about the data, then a table of rates with the bottleneck marked."""
    from variegate.apps.diagnose.report import data_lines, rate_rows

    for line in data_lines(measured):
        console.say(line)
    table = console.table_of(("", "images/s", "MB/s", "threads", "spread"))
    for stage, cells in rate_rows(measured):
        table.add_row(*cells, style="bold" if stage == bottleneck else None)
    console.stdout().print(table)


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(Scenario, FeedScenario, CommandOptions):
    strategies: str = option(
        "all",
        "Strategies to compare, separated by commas: least_loaded, round_robin or random, each also with +steal.",
        "Dispatcher",
        metavar="all|NAMES",
    )
    out: Path = option(Path("simulate.png"), "File for the plot, a PNG.", "Output", metavar="FILE")

    def __post_init__(self) -> None:
        super().__post_init__()
        of_feed = {one.name for one in fields(FeedScenario)}
        unused = {one.name for one in fields(self)} - of_feed - SCENARIO_OF_FEED if self.workers else of_feed
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in unused - {"as_json"} and value != one.default:
                got = f"{one.name}: got {str(value)!r}"
                raise ValueError(
                    f"{got} with --workers; accepted: without" if self.workers else f"{got}; accepted: with --workers"
                )


def simulate(options: SimulateOptions) -> None:
    """Simulate how devices share their work, with and without stealing.

    Runs the dispatcher of the engine under a virtual clock. Nothing is measured on this machine: the same options give
    the same results everywhere. The plot requires matplotlib (pip install 'variegate[plot]'). With --workers, it
    simulates trainers that remote workers feed instead, and draws no plot.
    """
    if options.workers:
        return _simulate_feed(options)
    from variegate.apps.plotting import check_path
    from variegate.apps.scenario import RandomInputs, describe, ideal_seconds, parse_strategies
    from variegate.apps.simulate import draw_plot
    from variegate.apps.simulate import simulate as play
    from variegate.jobs.jobs import EngineError

    as_json = options.as_json
    check_path(options.out)
    chosen = parse_strategies(options.strategies)
    scenario = part_of(Scenario, options)
    chance = RandomInputs(scenario)
    ideal = ideal_seconds(scenario, chance)
    outcomes = []
    with console.StageProgress(as_json, "simulating") as progress:
        for strategy in chosen:
            try:
                outcomes.append(play(scenario, strategy, chance, partial(progress, strategy.name)))
            except EngineError as error:
                raise console.CommandError(f"{strategy.name}: {error}") from error
            if as_json:
                console.emit_json("strategy", **outcomes[-1].to_dict(), ratio=outcomes[-1].makespan / ideal)
    lines = describe(scenario, chance.speeds, ideal)
    if not as_json:
        for line in lines:
            console.say(line)
        _print_table(ideal, outcomes)
    plot = console.plot_or_note(lambda: draw_plot(outcomes, ideal, lines, options.out), options.out)
    if as_json:
        console.emit_json("done", ideal=ideal, plot=plot, scenario=asdict(scenario))
    elif plot is not None:
        console.say(f"plot: {plot}")


def _simulate_feed(options: SimulateOptions) -> None:
    from variegate.apps.feed import describe_feed, simulate_feed
    from variegate.jobs.jobs import EngineError

    feed, scenario, outcomes = part_of(FeedScenario, options), part_of(Scenario, options), []
    with console.StageProgress(options.as_json, "simulating") as progress:
        for number in feed.workers:
            try:
                told = partial(progress, f"{number} workers")
                outcomes.append(simulate_feed(feed, scenario, number, on_progress=told))
            except EngineError as error:
                raise console.CommandError(f"{number} workers: {error}") from error
            if options.as_json:
                console.emit_json("workers", **asdict(outcomes[-1]))
    if options.as_json:
        return console.emit_json("done", feed=asdict(feed), scenario=asdict(scenario))
    for line in describe_feed(feed, scenario):
        console.say(line)
    headings = ("workers", "images/s", "ceiling", "limit", "waits", "at work", "wire", "dispatcher", "losses")
    table = console.table_of(headings, collapse_padding=True)
    for one in outcomes:
        shares = (f"{share:.1%}" for share in (one.waits, one.at_work, one.wire, one.dispatcher))
        rates = f"{one.images_per_second:,.0f}", f"{one.ceiling:,.0f}"
        table.add_row(f"{one.workers:,}", *rates, one.limit, *shares, f"{one.losses:,}")
    console.stdout().print(table)


def _print_table(ideal: float, outcomes: list[Outcome]) -> None:
    from variegate.apps.scenario import seconds

    headings = ("", "makespan", "to ideal", "at work", "least", "steals", "losses", "in vain")
    table = console.table_of(headings, collapse_padding=True)
    for outcome in outcomes:
        table.add_row(
            outcome.strategy.name,
            seconds(outcome.makespan),
            f"{outcome.makespan / ideal:.3f}x",
            f"{outcome.utilisation.mean():.1%}",
            f"{outcome.utilisation.min():.1%}",
            f"{outcome.steals:,}",
            f"{outcome.losses:,}",
            seconds(outcome.lost) if outcome.lost else "none",
        )
    console.stdout().print(table)
