"""``variegate search SRC``."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from variegate.cli import console
from variegate.cli.console import INTERRUPTED, CommandError, emit_json, print_line
from variegate.cli.options import ImportOptions, SourceOptions
from variegate.cli.render import COMMON_LOOKS, Bar, Look, Looks, rendering
from variegate.data.kinds import LABELLED_IMAGES_HELP
from variegate.io.amounts import pluralize
from variegate.options import Opt
from variegate.options.search import SearchOptions

if TYPE_CHECKING:
    from variegate.learn.search import SearchResult
    from variegate.learn.standings import RaceResult


@dataclass(frozen=True, kw_only=True)
class ClassesOptions(SourceOptions, ImportOptions):
    src: Annotated[str, Opt(LABELLED_IMAGES_HELP, "Arguments", metavar="SRC")]


@dataclass(frozen=True, kw_only=True)
class SearchCommandOptions(SearchOptions, ClassesOptions):
    pass


def search(options: SearchCommandOptions) -> None:
    """Compare augmentation policies on your images, and choose one.

    A race trains full candidates on common splits of the images, and drops candidates that are shown to be worse. It
    then tries variations of the winner, and writes OUT/policy.json. A race without a verdict exits 1. --method pba
    evolves a schedule by Population Based Augmentation, and writes OUT/schedule.json. Both draw OUT/search.png.
    --policy of other commands and vg.load_policy accept both. To resume an interrupted search, or to add --rounds to a
    race, run the same command again.

    Examples:
        variegate search photos --budget 30m
        variegate search photos --method pba --epochs 40 --devices cuda:0,cuda:1
    """
    from variegate.learn.search import run_search
    from variegate.learn.standings import RaceResult

    started = time.perf_counter()
    with training_errors_as_exit_codes(), rendering(options.as_json, looks()) as render:
        result = run_search(options.place, options, render, render.stop)
    if isinstance(result, RaceResult):
        _show_race(result, options)
    else:
        _show_schedule(result, options, round(time.perf_counter() - started, 1))


@contextmanager
def training_errors_as_exit_codes() -> Iterator[None]:
    """Map errors of training to exit codes, with advice."""
    from variegate.data.storage import WriteError
    from variegate.learn.events import InterruptedTrainingError
    from variegate.learn.population import LostPopulationError

    again = "; to resume, run the same command again"
    try:
        yield
    except InterruptedTrainingError as error:
        raise CommandError(f"interrupted: {error}{again}", INTERRUPTED) from error
    except LostPopulationError as error:
        raise CommandError(f"{error}; a lower --lr may help, with another folder as --out") from error
    except WriteError as error:
        raise CommandError(f"{error}{again}") from error


def _show_race(result: RaceResult, options: SearchCommandOptions) -> None:
    from variegate.learn.image_race import POLICY_NAME
    from variegate.learn.standings import stage_name

    policy = str(options.out / POLICY_NAME) if result.is_decided else None
    if options.as_json:
        emit_json("done", policy=policy, **result.to_dict())
    if policy is None:
        hints = {"budget": "To resume, run the same command with a higher --budget."}
        raise CommandError(f"{result.verdict} {hints.get(result.ending, 'Choose a lower --lr, and another --out.')}")
    if options.as_json:
        return
    rows = []
    for one in result.standings:
        bounds = "" if math.isnan(one.low) else f" ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
        behind = "" if one.behind == one.low == one.high else f"{100 * one.behind:+.1f}{bounds}"
        accuracy = "diverged" if math.isnan(one.mean) else f"{one.mean:.2%}"
        left = "yes" if one.dropped is None else "no"
        rows.append((one.candidate, stage_name(one.stage), str(one.rounds), accuracy, behind, left))
    headings = ("policy", "stage", "rounds", "accuracy", "behind its leader", "left")
    console.stdout().print(console.ConsoleTable(headings, rows, wide_only=("stage", "rounds", "left")))
    print_line(result.verdict, is_prose=True)
    print_line(f"cost: {result.cost}")
    adapt = " --adapt entropy" if result.winner.startswith("adaptive:") else ""
    print_line(f"use it: variegate train SRC --policy {policy}{adapt}")


def _show_schedule(result: SearchResult, options: SearchCommandOptions, seconds: float) -> None:
    path = str(result.folder / "schedule.json")
    best = result.history.best
    compared = result.comparison
    cost = None if compared is None else compared.cost
    if options.as_json:
        facts = {"schedule": path, "accuracy": round(result.score, 4), "member": best, "seconds": seconds}
        emit_json("done", **facts, verdict=result.verdict, cost=cost)
        return
    epochs = pluralize(result.schedule.epochs, "epoch")
    print_line(f"{path}: {epochs}, of member {best}, accuracy {result.score:.2%}, {seconds:,.1f} s")
    if compared is None:
        print_line(f"try it: variegate evaluate SRC --test UNSEEN --policies none,crop,flip+crop,{path}")
    else:
        print_line(result.verdict, is_prose=True)
        print_line(f"cost of the comparison: {cost}")


def looks() -> Looks:
    """Looks of the events of searches and evaluations."""
    from variegate.learn.events import Resumed, Round, SearchProgress, Started, Training

    return {
        **COMMON_LOOKS,
        Started: Look(bar=lambda event: Bar("training", 0), line=lambda event: f"sizes: {event}", json="start"),
        Resumed: Look(line=lambda event: f"note: {event}", json="resumed"),
        Training: Look(log=str, json="training"),
        Round: Look(bar=_bar_of_round, log=str, json="round"),
        SearchProgress: Look(_bar_of_search, _line_of_search, _notes_of_search, _fields_of_search),
    }


def _bar_of_round(event: Any) -> Bar:
    return Bar(f"round {event.number + 1}", 0, len(event.left), f"{event.leader} {event.mean:.2%}")


def _bar_of_search(event: Any) -> Bar:
    best = "" if math.isnan(event.best) else f"best {event.best:.2%}"
    step = min(event.step + 1, event.steps)
    return Bar(f"step {step}/{event.steps}", event.members_done, event.members, best)


def _line_of_search(event: Any) -> str:
    return f"{event}" if event.rows else ""


def _notes_of_search(event: Any) -> str:
    notes = [
        f"note: member {member} diverged (loss is not finite); it continues as member {donor}"
        for member, donor in event.copies
        if member in event.diverged
    ]
    if event.is_flat:
        notes.append(f"note: after epoch {event.epoch} all members score the same; nobody was ranked")
    return "\n".join(notes)


def _fields_of_search(event: Any) -> dict[str, Any]:
    if not event.rows:
        return {}
    counts = {"step": event.step, "steps": event.steps, "epoch": event.epoch, "best": round(event.best, 4)}
    return {"event": "step", **counts, "copies": event.copies, "lost": event.diverged, "is_flat": event.is_flat}
