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

from variegate.cli.console import (
    FAILED,
    INTERRUPTED,
    CountingBar,
    emit_json,
    fail,
    interrupt_sets,
    note,
    say,
    warnings_as_notes,
)
from variegate.cli.options import CommandOptions, ExcludeOptions
from variegate.formats.kinds import LABELLED_IMAGES_HELP
from variegate.io.openmp import wait_briefly
from variegate.options import option
from variegate.options.study import StudyOptions
from variegate.options.training import TrainOptions


@dataclass(frozen=True, kw_only=True)
class TrainCommandOptions(TrainOptions, StudyOptions, ExcludeOptions, CommandOptions):
    src: str = option(..., LABELLED_IMAGES_HELP, "Arguments", metavar="SRC")
    as_json: bool = option(
        False, "Print one object of JSON at the end: the last step, and the last scores.", "Output", flag="--json"
    )

    def __post_init__(self) -> None:
        TrainOptions.__post_init__(self)
        StudyOptions.__post_init__(self)


def train(options: TrainCommandOptions) -> None:
    """Train a classifier on your own images, alone or under torchrun, and go on wherever a run was stopped.

    Writes OUT/log.jsonl (a line for each step and each scoring), OUT/checkpoints and, at the end, OUT/model.pt.
    Whatever ends a run, the same command goes on from its last checkpoint, on as many processes as there are then.
    With --study nothing is trained: its step is timed, fed by Variegate and by other libraries.
    """
    wait_briefly()
    from variegate.apps.train.progress import DivergedError
    from variegate.apps.train.ranks import RanksError
    from variegate.apps.train.trainer import notes_on
    from variegate.apps.train.trainer import train as run
    from variegate.io.durable import WriteError
    from variegate.loader import TooManyErrors
    from variegate.options import part_of

    as_json, chosen = options.as_json, part_of(TrainOptions, options)
    if options.study:
        from variegate.cli.study import study_training

        return study_training(options.place, chosen, part_of(StudyOptions, options), as_json)
    is_first, is_alone = os.environ.get("RANK", "0") == "0", "RANK" not in os.environ
    note(*(notes_on(chosen) if is_first else []))
    stop, started = threading.Event(), time.perf_counter()
    try:
        view = TrainingView(chosen.epochs, as_json or not is_first)
        with view, interrupt_sets(stop, not is_alone), warnings_as_notes(view.console):
            last = run(options.place, chosen, tell=view, stop=stop)
    except (DivergedError, RanksError, TooManyErrors) as error:
        raise fail(error, FAILED, as_json) from error
    except WriteError as error:
        kept = "; the same command goes on from its last checkpoint" if (chosen.out / "train.json").exists() else ""
        raise fail(f"{error}{kept}", FAILED, as_json) from error
    is_done, unread = last.pop("is_done"), last.pop("unread")
    if unread:
        several = f"{len(unread):,} images could not be read and were left out, {unread[0]} among them"
        note(several if len(unread) > 1 else f"an image could not be read and was left out: {unread[0]}")
    if not is_done and is_first:
        raise fail("interrupted: the steps so far are kept; the same command goes on", INTERRUPTED, as_json)
    if not is_done:
        raise typer.Exit(INTERRUPTED)
    if not is_first:
        return
    seconds, out = round(time.perf_counter() - started, 1), str(options.out)
    if as_json:
        emit_json("done", **last, seconds=seconds, out=out)
        return
    # Without images that score the model, the last step's loss is what there is.
    told = ("top1", "top5") if "top1" in last else ("loss",)
    scores = _scores({name: last[name] for name in told if name in last})
    say(f"{out}: {last['epoch'] + 1} epochs, {last['step']:,} steps, {scores}{seconds:,.1f} s")


def _scores(line: dict[str, Any]) -> str:
    loss = f"loss {line['loss']:.4f}, " if "loss" in line else ""
    return loss + (f"top-1 {line['top1']:.2%}, top-5 {line['top5']:.2%}, " if "top1" in line else "")


class TrainingView(CountingBar):
    """Call it with the lines of the log; a bar of epochs and a line of facts on a terminal, else a line an epoch."""

    def __init__(self, epochs: int, is_silent: bool) -> None:
        self._is_silent = is_silent
        self._epoch: dict[str, Any] = {}
        self._losses: list[float] = []
        # The step at which the epoch began, and how many an epoch has; None until one was seen from end to end.
        self._first: int | None = None
        self._steps: int | None = None
        super().__init__(is_silent)
        self._task = self.add_task("training", total=epochs)

    def __call__(self, line: dict[str, Any]) -> None:
        if line["epoch"] != self._epoch.get("epoch", line["epoch"]):
            self._end_epoch(line)
        self._epoch |= line
        if "loss" in line:
            self._losses.append(line["loss"])
            if line["step"] == 1:
                self._first = 1
        self.update(self._task, completed=line["epoch"] + self._part(line))

    def _part(self, line: dict[str, Any]) -> float:
        """Of its epoch that is done: all where it is scored, none where nobody knows yet how many steps there are."""
        if "step" not in line:
            return 1.0
        if self._first is None or not self._steps:
            return 0.0
        return min(1.0, (line["step"] - self._first + 1) / self._steps)

    def _end_epoch(self, following: dict[str, Any]) -> None:
        begins = following.get("step")
        if begins is not None and self._first is not None:
            self._steps = begins - self._first
        self._first = begins
        self._say_epoch()

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        if "step" in self._epoch:
            rate = f"{self._epoch['images_per_second']:,.0f} images/s, {self._epoch['waiting']:.0%} waiting"
            yield Text(f"step {self._epoch['step']:,}: {_scores(self._epoch)}{rate}")

    def stop(self) -> None:
        super().stop()
        self._say_epoch()

    def _say_epoch(self) -> None:
        told, losses, self._losses = self._epoch, self._losses, []
        # What scored last stays in sight while the next epoch trains.
        self._epoch = {name: told[name] for name in ("top1", "top5") if name in told}
        if losses and not self._is_silent and not self.console.is_terminal:
            mean = {**told, "loss": sum(losses) / len(losses)}
            say(f"epoch {told['epoch'] + 1}: {_scores(mean)}{told['images_per_second']:,.0f} images/s", self.console)
