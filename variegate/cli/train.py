"""``variegate train SRC``."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer
from rich.console import RenderableType
from rich.text import Text

from variegate.cli.console import INTERRUPTED, CommandError, CountingBar, emit_json, note, say, working
from variegate.cli.options import CommandOptions, ImportOptions, SourceOptions
from variegate.data.kinds import LABELLED_IMAGES_HELP
from variegate.options import option, part_of, same_option
from variegate.options.recipes import RECIPES, with_recipe
from variegate.options.training import TrainOptions
from variegate.threads import wait_briefly


@dataclass(frozen=True, kw_only=True)
class TrainCommandOptions(TrainOptions, SourceOptions, ImportOptions):
    src: str = same_option(SourceOptions, "src", help=LABELLED_IMAGES_HELP)
    recipe: str | None = option(
        None, f"Recipe that sets the defaults of other options: {', '.join(RECIPES)}.", "Training", metavar="NAME"
    )
    as_json: bool = same_option(
        CommandOptions, "as_json", help="Print one JSON object at the end: the last step and the last scores."
    )

    @classmethod
    def complete(cls, passed: dict[str, Any]) -> dict[str, Any]:
        return with_recipe(passed.get("recipe"), passed)


def train(options: TrainCommandOptions) -> None:
    """Train an image classifier, on one process or many (torchrun).

    Writes OUT/log.jsonl (one line per step and per scoring), OUT/checkpoints and, at the end, OUT/model.pt. To resume
    from the last checkpoint, run the same command again, on any number of processes.
    """
    wait_briefly()
    from variegate.io.durable import WriteError
    from variegate.learn.progress import DivergedError
    from variegate.learn.ranks import RanksError
    from variegate.learn.trainer import notes_on
    from variegate.learn.trainer import train as run
    from variegate.loader import TooManyErrors

    as_json = options.as_json
    chosen = part_of(TrainOptions, options)
    is_first = os.environ.get("RANK", "0") == "0"
    is_single = "RANK" not in os.environ
    notes = notes_on(chosen) if is_first else []
    stop = threading.Event()
    started = time.perf_counter()
    view = TrainingView(chosen.epochs, as_json or not is_first)

    def begin(line: str) -> None:
        # Called when nothing can be refused any more: an error is printed without notes.
        note(*notes, to=view.console)
        notes.clear()
        if not as_json:
            say(line, view.console)

    try:
        with working(view, stop, not is_single):
            last = run(options.place, chosen, tell=view, say=begin, stop=stop)
    except (DivergedError, RanksError, TooManyErrors) as error:
        raise CommandError(error) from error
    except WriteError as error:
        again = "; to resume from the last checkpoint, run the same command again"
        raise CommandError(f"{error}{again * (chosen.out / 'train.json').exists()}") from error
    is_done = last.pop("is_done")
    unread = last.pop("unread")
    if unread:
        several = f"{len(unread):,} images could not be read and were skipped, such as {unread[0]}"
        note(several if len(unread) > 1 else f"an image could not be read and was skipped: {unread[0]}")
    if not is_done and is_first:
        raise CommandError("interrupted: progress is saved; to resume, run the same command again", INTERRUPTED)
    if not is_done:
        raise typer.Exit(INTERRUPTED)
    if not is_first:
        return
    seconds = round(time.perf_counter() - started, 1)
    out = str(options.out)
    if as_json:
        emit_json("done", **last, seconds=seconds, out=out)
        return
    # Without validation images, the loss of the last step is shown.
    names = ("top1", "top5") if "top1" in last else ("loss",)
    scores = _scores({name: last[name] for name in names if name in last})
    say(f"{out}: {last['epoch'] + 1} epochs, {last['step']:,} steps, {scores}{seconds:,.1f} s")


def _scores(line: dict[str, Any]) -> str:
    loss = f"loss {line['loss']:.4f}, " if "loss" in line else ""
    return loss + (f"top-1 {line['top1']:.2%}, top-5 {line['top5']:.2%}, " if "top1" in line else "")


class TrainingView(CountingBar):
    """Progress by the log's lines: a bar of epochs and a line of facts on a terminal, else a line an epoch."""

    def __init__(self, epochs: int, is_silent: bool) -> None:
        self._is_silent = is_silent
        self._epoch: dict[str, Any] = {}
        self._losses: list[float] = []
        super().__init__(is_silent, "training", total=epochs)

    def __call__(self, line: dict[str, Any]) -> None:
        if line["epoch"] != self._epoch.get("epoch", line["epoch"]):
            self._say_epoch()
        self._epoch |= line
        if "loss" in line:
            self._losses.append(line["loss"])
        is_over = "step" not in line  # an epoch is scored when it is over
        self.show(line["epoch"] + is_over)

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        if "step" in self._epoch:
            rate = f"{self._epoch['images_per_second']:,.0f} images/s, {self._epoch['waiting']:.0%} waiting"
            yield Text(f"step {self._epoch['step']:,}: {_scores(self._epoch)}{rate}")

    def stop(self) -> None:
        super().stop()
        self._say_epoch()

    def _say_epoch(self) -> None:
        epoch = self._epoch
        losses = self._losses
        self._losses = []
        # The last scores stay in sight while the next epoch trains.
        self._epoch = {name: epoch[name] for name in ("top1", "top5") if name in epoch}
        if losses and not self._is_silent and not self.console.is_terminal:
            mean = {**epoch, "loss": sum(losses) / len(losses)}
            say(f"epoch {epoch['epoch'] + 1}: {_scores(mean)}{epoch['images_per_second']:,.0f} images/s", self.console)
