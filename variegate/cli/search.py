"""``variegate search SRC``."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from variegate.cli import console
from variegate.cli.console import INTERRUPTED, CommandError, CountingBar, cell, emit_json, note, say
from variegate.cli.options import ImportOptions, SourceOptions
from variegate.data.kinds import LABELLED_IMAGES_HELP
from variegate.options import same_option
from variegate.options.search import SearchOptions

if TYPE_CHECKING:
    from variegate.learn.search import SearchResult
    from variegate.learn.standings import RaceResult


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
    schedule by Population Based Augmentation, and writes OUT/schedule.json. Both draw OUT/search.png. --policy of other
    commands and vg.load_policy accept both. To resume an interrupted search, or to add --rounds to a race, run the same
    command again.
    """
    from variegate.learn.search import run_search
    from variegate.learn.standings import RaceResult

    started = time.perf_counter()
    stop = threading.Event()
    with LearningView(options.as_json, stop) as view, errors_of_training():
        result = run_search(options.place, options, view, stop)
    if isinstance(result, RaceResult):
        _show_race(result, options)
    else:
        _show_schedule(result, options, round(time.perf_counter() - started, 1))


@contextmanager
def errors_of_training() -> Iterator[None]:
    """Exit codes of what training raises, and what to do about it."""
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
    table = console.table_of(("policy", "stage", "rounds", "accuracy", "behind its leader", "left"))
    for one in result.standings:
        bounds = "" if math.isnan(one.low) else f" ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
        behind = "" if one.behind == one.low == one.high else f"{100 * one.behind:+.1f}{bounds}"
        accuracy = "diverged" if math.isnan(one.mean) else f"{one.mean:.2%}"
        left = "yes" if one.dropped is None else "no"
        table.add_row(cell(one.candidate), stage_name(one.stage), str(one.rounds), accuracy, behind, left)
    console.stdout().print(table)
    say(result.verdict)
    say(f"cost: {result.cost}")
    adapt = " --adapt entropy" if result.winner.startswith("adaptive:") else ""
    say(f"use it: variegate train SRC --policy {policy}{adapt}")


def _show_schedule(result: SearchResult, options: SearchCommandOptions, seconds: float) -> None:
    path = str(result.folder / "schedule.json")
    best = result.history.best
    compared = result.comparison
    cost = None if compared is None else compared.cost
    if options.as_json:
        facts = {"schedule": path, "accuracy": round(result.score, 4), "member": best, "seconds": seconds}
        emit_json("done", **facts, verdict=result.verdict, cost=cost)
        return
    say(f"{path}: {result.schedule.epochs} epochs, of member {best}, accuracy {result.score:.2%}, {seconds:,.1f} s")
    if compared is None:
        say(f"try it: variegate evaluate SRC --test UNSEEN --policies none,crop,flip+crop,{path}")
    else:
        say(result.verdict)
        say(f"cost of the comparison: {cost}")


class LearningView(CountingBar):
    """Events of a search or an evaluation: a bar on a terminal, lines elsewhere, or JSON; use as a context.

    Ctrl-C interrupts at once while images are decoded, and sets ``stop`` once training has begun.
    """

    def __init__(self, as_json: bool, stop: threading.Event) -> None:
        self._as_json = as_json
        self._stop = stop
        self._started = time.perf_counter()
        self._signals = ExitStack()
        self._members = 0
        self._total = 0
        self._done = 0
        super().__init__(as_json, "decoding images", "{task.fields[best]}", best="")

    def __exit__(self, *error: Any) -> None:
        self._signals.close()
        super().__exit__(*error)

    def __call__(self, event: Any) -> None:
        handle = getattr(self, f"_on_{type(event).__name__.lower()}")
        handle(event)

    def _on_note(self, event: Any) -> None:
        note(event.text, to=self.console)

    def _on_started(self, event: Any) -> None:
        self._signals.enter_context(console.interrupt_sets(self._stop))
        self._members = event.members
        self._total = len(event.policies) * (1 if event.budget else event.repeats)
        self._emit("start", **asdict(event))
        if not self._as_json:
            say(f"sizes: {event}", self.console)
        self.show(0, self._total, description="training")

    def _on_resumed(self, event: Any) -> None:
        self._done = event.done
        self._total = event.total
        self._emit("resumed", **asdict(event))
        if not self._as_json:
            note(f"resuming after {event.done} of {event.total} training runs", to=self.console)

    def _on_training(self, event: Any) -> None:
        self._done += 1
        self.show(self._done, self._total, description="training")
        self._emit("training", **asdict(event))
        self._say(f"{event}")

    def _on_round(self, event: Any) -> None:
        self._done = 0
        self._total = len(event.left)
        self.show(0, self._total, description=f"round {event.number + 1}", best=f"{event.leader} {event.mean:.2%}")
        self._emit("round", **asdict(event))
        self._say(f"{event}, {time.perf_counter() - self._started:,.0f} s")

    def _on_progress(self, event: Any) -> None:
        done = event.step * self._members + (0 if event.rows else event.members_done)
        best = "" if math.isnan(event.best) else f"best {event.best:.2%}"
        step = f"step {min(event.step + 1, event.steps)}/{event.steps}"
        self.show(done, event.steps * self._members, description=step, best=best)
        if not event.rows:
            return
        epoch = event.rows[0].epoch
        counts = {"step": event.step, "steps": event.steps, "epoch": epoch, "best": round(event.best, 4)}
        self._emit("step", **counts, copies=event.copies, lost=event.diverged, is_flat=event.is_flat)
        self._say(f"{event}, {time.perf_counter() - self._started:,.0f} s")
        if self._as_json:
            return
        for member, donor in event.copies:
            if member in event.diverged:
                note(f"member {member} diverged (loss is not finite); it continues as member {donor}", to=self.console)
        if event.is_flat:
            note(f"after epoch {epoch} all members score the same; nobody was ranked", to=self.console)

    def _emit(self, name: str, **fields: Any) -> None:
        if self._as_json:
            emit_json(name, **fields)

    def _say(self, line: str) -> None:
        """Print a line of a log, where no bar is shown."""
        if not self._as_json and not self.console.is_terminal:
            say(line, self.console)
