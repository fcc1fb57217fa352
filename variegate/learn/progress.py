"""Progress of a training: pending losses on the device, the log, and TensorBoard's events."""

from __future__ import annotations

import errno
import importlib
import itertools
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import torch

from variegate.data.base import SourceError
from variegate.events import OnEvent
from variegate.io.durable import AppendOnlyFile, write_error
from variegate.learn.adaptation import Adaptation
from variegate.learn.averaging import DistContext
from variegate.learn.events import EpochEnded, Logged

Line = dict[str, Any]

EVENTS_FOLDER = "tensorboard"
_FLUSH_SECONDS = 2


def check_events() -> None:
    """Raises ImportError if TensorBoard's events cannot be written."""
    try:
        importlib.import_module("tensorboardX")
    except ImportError as error:
        raise ImportError(
            f"--tensorboard needs tensorboardX ({error}): pip install 'variegate[tensorboard]'"
        ) from error


class TrainingEvents:
    """TensorBoard events of the lines of the log: train/NAME, validation/NAME.

    ``step``: of the checkpoint that the run resumes from. TensorBoard discards older events of later steps.
    """

    def __init__(self, folder: Path, step: int) -> None:
        from tensorboardX import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder), purge_step=step + 1, flush_secs=_FLUSH_SECONDS)
        self._step = step

    def __call__(self, line: Line) -> None:
        kind = "train" if "step" in line else "validation"
        self._step = line.get("step", self._step)
        for name, value in line.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if is_number and name not in ("epoch", "step") and math.isfinite(value):
                self._writer.add_scalar(f"{kind}/{name}", value, self._step)

    def close(self) -> None:
        self._writer.close()


# Losses are read this often, because reading them waits for the GPU.
_TELL_SECONDS = 1.0
_MOST_PENDING = 32


@dataclass
class PendingSteps:
    """Steps whose losses are still on the device: their lines, sums of losses, images of all ranks, magnitudes."""

    lines: list[Line] = field(default_factory=list)
    losses: list[torch.Tensor] = field(default_factory=list)
    images: list[int] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    since: float = field(default_factory=time.perf_counter)


class StepLines:
    """Lines of steps, logged when their losses are read. ``log``: of rank 0, set when open; ``views`` get each line."""

    log: TrainingLog | None = None

    def __init__(self, ranks: DistContext, adaptation: Adaptation, lr: float, epochs: int, on_event: OnEvent) -> None:
        self.views: list[Callable[[Line], object]] = [lambda line: on_event(Logged(line, epochs))]
        self._on_event = on_event
        self._losses: list[float] = []
        self._ranks = ranks
        self._adaptation = adaptation
        self._lr = lr
        self._every = 1
        self._pending = PendingSteps()

    def add(self, line: Line, loss: torch.Tensor, images: int) -> None:
        """Add a step without reading its loss: ``loss`` is this rank's sum, ``images`` counts all ranks."""
        self._pending.lines.append(line)
        self._pending.losses.append(loss)
        self._pending.images.append(images)
        self._pending.used += self._adaptation.end_step()

    def should_flush(self, stop: Event) -> bool:
        """The same on all ranks: alone, by the clock; else by a number of steps that all agreed on."""
        if self._ranks.ranks == 1:
            return stop.is_set() or time.perf_counter() - self._pending.since > _TELL_SECONDS
        return len(self._pending.lines) >= self._every

    def flush(self, stop: Event, is_saving: bool) -> tuple[bool, bool]:
        """Log the losses of all ranks so far -> whether any rank is to stop, and any is saving. Raises
        DivergedError."""
        pending = self._pending
        steps = len(self._pending.lines)
        local = torch.stack(pending.losses).double().cpu().tolist() if steps else []
        seconds = time.perf_counter() - pending.since
        flags = [seconds, float(stop.is_set()), float(is_saving)]
        sums, (slowest, is_stopped, is_busy) = self._ranks.sum_and_max(local + pending.used, flags)
        self._every = max(1, min(_MOST_PENDING, int(steps * _TELL_SECONDS / max(slowest, 1e-9))))
        told = zip(
            pending.lines, sums[:steps], pending.images, self._adaptation.log_fields(steps, sums[steps:]), strict=True
        )
        lines = [{**line, "loss": total / images, **more} for line, total, images, more in told]
        self._pending = PendingSteps()
        good = list(itertools.takewhile(lambda line: math.isfinite(line["loss"]), lines))
        self.write(good)
        if len(good) < len(lines):
            raise DivergedError(lines[len(good)], self._lr)
        return bool(is_stopped), bool(is_busy)

    def write(self, lines: list[Line]) -> None:
        if self.log is not None:
            self.log.append(lines)
            for line, view in itertools.product(lines, self.views):
                view(line)
            self._losses += [line["loss"] for line in lines if "loss" in line]

    def end_epoch(self, epoch: int, scores: dict[str, float]) -> None:
        """Log the scores of an epoch that is over, and report it."""
        if scores:
            self.write([{"epoch": epoch, **scores}])
        if self.log is not None and self._losses:
            mean = sum(self._losses) / len(self._losses)
            self._on_event(EpochEnded(epoch + 1, mean, self.log.last["images_per_second"], scores))
        self._losses = []


class DivergedError(RuntimeError):
    """The loss is no number any more. ``line``: the first log line that diverged; ``lr``: the original value."""

    def __init__(self, line: Line, lr: float) -> None:
        super().__init__(
            f"the loss is {line['loss']} in step {line['step']} (epoch {line['epoch']}): the training has diverged; a "
            f"lower --lr (it is {lr:g}), a longer --warmup or a smaller --clip may help, with another folder as --out"
        )


class TrainingLog:
    """The log on disk, cut off at ``end`` bytes. ``last``: the latest lines of a step and of an evaluation, as one.

    Raises WriteError, SourceError for a file that is damaged.
    """

    def __init__(self, path: Path, end: int) -> None:
        self.last: Line = {}
        self._path = path
        if end and path.exists():
            with open(path, "rb") as file:
                known = file.read()[:end]
            end = known.rfind(b"\n") + 1
            for number, line in enumerate(known[:end].splitlines(), 1):
                try:
                    self.last.update(json.loads(line))
                except (ValueError, TypeError, RecursionError) as error:
                    what = f"line {number} is damaged ({error})"
                    raise SourceError(f"{path}: {what}; restore it, or choose another folder") from error
        self._file = AppendOnlyFile(path, str(path), end)

    @property
    def end(self) -> int:
        return self._file.end

    def check(self) -> None:
        """Raises WriteError if the file was deleted, because an open file can still be written to."""
        if not self._path.exists():
            raise write_error(
                OSError(errno.ENOENT, "it was deleted, or moved, while the training ran"), str(self._path)
            )

    def append(self, lines: list[Line]) -> None:
        """Append durably."""
        self.check()
        for line in lines:
            self.last.update(line)
        if lines:
            self._file.append("".join(json.dumps(line) + "\n" for line in lines).encode())

    def close(self) -> None:
        self._file.close()
