"""``variegate simulate``."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from variegate.cli.augment import JSON_HELP
from variegate.cli.console import FAILED, drawn, emit_json, fail, one_line_errors, say, stderr, stdout
from variegate.cli.progress import StageProgress

if TYPE_CHECKING:
    from variegate.engine.simulation import Outcome, Scenario


def simulate(
    devices: Annotated[int, typer.Option(help="How many devices there are, up to 1,024.")] = 8,
    tasks: Annotated[
        int, typer.Option(help="How many tasks there are. All of them are known from the start.")
    ] = 10_000,
    task_items: Annotated[int, typer.Option(help="How many items are in a task.")] = 16,
    task_seconds: Annotated[
        float, typer.Option(help="How long a task takes on a device of speed 1, on average.")
    ] = 1.0,
    variation: Annotated[
        float, typer.Option(help="How much that varies: the standard deviation of its logarithm.")
    ] = 0.2,
    speeds: Annotated[
        str, typer.Option(metavar="1,1,0.5", help="The speeds of the devices, which take them in turn.")
    ] = "1",
    spread: Annotated[
        float, typer.Option(help="How much speeds vary besides: the standard deviation of their logarithm.")
    ] = 0.0,
    failure_rate: Annotated[float, typer.Option(help="How often a worker is lost, per hour that it is up.")] = 0.0,
    restart: Annotated[
        float, typer.Option(help="How many seconds pass from a loss until the next worker is ready.")
    ] = 10.0,
    queue: Annotated[
        str,
        typer.Option(
            metavar="N|none", help="How many tasks wait for each device. With none, all are given out at once."
        ),
    ] = "8",
    in_flight: Annotated[int, typer.Option(help="How many tasks are at a worker at a time.")] = 2,
    strategies: Annotated[
        str,
        typer.Option(
            metavar="all|NAMES",
            help="What to compare: least_loaded, round_robin, random, each also with +steal, with commas between them.",
        ),
    ] = "all",
    seed: Annotated[
        int, typer.Option(help="Another seed gives other speeds, tasks and failures.", rich_help_panel="Work")
    ] = 0,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the plot, a PNG.")] = Path("simulate.png"),
    as_json: Annotated[bool, typer.Option("--json", help=JSON_HELP)] = False,
) -> None:
    """Simulate how many devices share out their work, and when work stealing matters.

    The engine's own dispatcher runs under a virtual clock; nothing of this machine is measured, and the same options
    give the same numbers everywhere. The plot needs matplotlib (pip install 'variegate[plot]').
    """
    with one_line_errors(as_json):
        from variegate.engine.jobs import EngineError
        from variegate.engine.simulation import RandomInputs, ideal_seconds, parse_strategies
        from variegate.engine.simulation import simulate as play
        from variegate.plotting import check_path

        check_path(out)
        chosen = parse_strategies(strategies)
        scenario = _scenario(
            devices=devices,
            tasks=tasks,
            task_items=task_items,
            task_seconds=task_seconds,
            variation=variation,
            speeds=_numbers(speeds),
            spread=spread,
            failure_rate=failure_rate,
            restart=restart,
            queue=_queue(queue),
            in_flight=in_flight,
            seed=seed,
        )
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
        _report(scenario, chance.speeds, ideal, outcomes, out, as_json)


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
    plot = drawn(lambda: draw_plot(outcomes, ideal, lines, out), out)
    if as_json:
        emit_json("done", ideal=ideal, plot=plot, scenario=asdict(scenario))
    elif plot is not None:
        say(f"plot: {plot}")


def _print_table(ideal: float, outcomes: list[Outcome]) -> None:
    from variegate.engine.simulation.scenario import seconds

    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for heading in ("", "makespan", "to ideal", "at work", "least", "steals", "losses", "in vain"):
        table.add_column(heading, justify="right" if heading else "left", header_style="dim", no_wrap=True)
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


def _scenario(**settings: Any) -> Scenario:
    from variegate.engine.simulation import Scenario

    try:
        return Scenario(**settings)
    except ValueError as error:
        name, colon, rest = str(error).partition(":")
        raise ValueError(name.replace("_", "-") + colon + rest) from None  # as it was typed: --task-seconds


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"speeds: got {text!r}; accepted: numbers with commas between them") from None


def _queue(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"queue: got {text!r}; accepted: a number, or none") from None
