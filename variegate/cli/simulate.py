"""``variegate simulate``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from variegate.cli.console import (
    FAILED,
    emit_json,
    fail,
    plot_or_note,
    say,
    stderr,
    stdout,
    table_of,
)
from variegate.cli.options import CommandOptions
from variegate.cli.progress import StageProgress
from variegate.options import option, part_of
from variegate.options.simulation import Scenario

if TYPE_CHECKING:
    from variegate.engine.simulation.run import Outcome


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(Scenario, CommandOptions):
    strategies: str = option(
        "all",
        "What to compare: least_loaded, round_robin, random, each also with +steal, with commas between them.",
        "Dispatcher",
        metavar="all|NAMES",
    )
    out: Path = option(Path("simulate.png"), "Where to write the plot, a PNG.", "Output", metavar="FILE")


def simulate(options: SimulateOptions) -> None:
    """Simulate how many devices share out their work, and when work stealing matters.

    The engine's own dispatcher runs under a virtual clock; nothing of this machine is measured, and the same options
    give the same numbers everywhere. The plot needs matplotlib (pip install 'variegate[plot]').
    """
    from variegate.engine.jobs import EngineError
    from variegate.engine.simulation.run import simulate as play
    from variegate.engine.simulation.scenario import RandomInputs, ideal_seconds, parse_strategies
    from variegate.plotting import check_path

    as_json = options.as_json
    check_path(options.out)
    chosen = parse_strategies(options.strategies)
    scenario = part_of(Scenario, options)
    chance = RandomInputs(scenario)
    ideal = ideal_seconds(scenario, chance)
    outcomes = []
    with StageProgress(as_json, stderr(), event="simulating") as progress:
        for strategy in chosen:
            try:
                outcomes.append(play(scenario, strategy, chance, partial(progress, strategy.name)))
            except EngineError as error:
                raise fail(f"{strategy.name}: {error}", FAILED, as_json) from error
            if as_json:
                emit_json("strategy", **outcomes[-1].to_dict(), ratio=outcomes[-1].makespan / ideal)
    _report(scenario, chance.speeds, ideal, outcomes, options.out, as_json)


def _report(
    scenario: Scenario, speeds: list[float], ideal: float, outcomes: list[Outcome], out: Path, as_json: bool
) -> None:
    from variegate.engine.simulation.plot import draw_plot
    from variegate.engine.simulation.scenario import describe

    lines = describe(scenario, speeds, ideal)
    if not as_json:
        for line in lines:
            say(line)
        _print_table(ideal, outcomes)
    plot = plot_or_note(lambda: draw_plot(outcomes, ideal, lines, out), out)
    if as_json:
        emit_json("done", ideal=ideal, plot=plot, scenario=asdict(scenario))
    elif plot is not None:
        say(f"plot: {plot}")


def _print_table(ideal: float, outcomes: list[Outcome]) -> None:
    from variegate.engine.simulation.scenario import seconds

    headings = ("", "makespan", "to ideal", "at work", "least", "steals", "losses", "in vain")
    table = table_of(headings, collapse_padding=True)
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
    stdout().print(table)
