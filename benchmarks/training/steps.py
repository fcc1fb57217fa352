"""``train``'s steps against those of a bare loop over random tensors, in turn, in one process.

Before every span of ``train`` as many steps of the bare loop are taken, on a model of its own. A span of ``train`` is
all of it, from one step to the next: the loader's threads, the copy, the log. What the loader has made ahead meanwhile
is used up before a span begins.
"""

from __future__ import annotations

import copy
import statistics
import tempfile
from pathlib import Path
from threading import Event
from typing import Any

import torch

from benchmarks.inputs import DEFAULT_TAR, read_jpegs
from benchmarks.training.bare import BareLoop, random_batch
from benchmarks.training.watching import CLASSES, Moment, at_each_step, photos, serve, small_images
from variegate.apps.train import TrainOptions, train
from variegate.apps.train.learner import Learner
from variegate.apps.train.step import TrainingStep

CHECKED = 3  # steps that are compared with the bare loop's
AHEAD = 4  # of the loader, and one more


class Alternating:
    """Both loops, in turn. It looks at a training before each of its steps."""

    def __init__(self, config: dict[str, Any], classes: int) -> None:
        self._steps, self._repeats = config["steps"], config["repeats"]
        self._random = random_batch(config["batch"], config["side"], classes)
        self.bare: list[tuple[float, float]] = []
        self.trained: list[tuple[float, float]] = []
        self.stop = Event()
        self._first: torch.nn.Module | None = None
        self._batches: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._loop: BareLoop | None = None
        self._begun = Moment.now()
        self._lr = config["lr"]
        self._record()

    def _record(self) -> None:
        """The batches of the first steps."""
        add_gradients = TrainingStep.add_gradients

        def recorded(step: TrainingStep, batch: Any, labels: Any, images: int, weights: Any = None) -> torch.Tensor:
            if len(self._batches) < CHECKED:
                self._batches.append((batch.clone(), labels.clone()))
            return add_gradients(step, batch, labels, images, weights)

        TrainingStep.add_gradients = recorded  # type: ignore[assignment,method-assign]

    def look(self, learner: Learner, steps: int) -> None:
        if self._first is None:
            self._first = copy.deepcopy(learner.module)
            self._loop = BareLoop(copy.deepcopy(learner.module))
        place = (steps - CHECKED) % (AHEAD + self._steps)
        if steps < CHECKED or self.stop.is_set():
            return
        if place == AHEAD:
            self._begun = Moment.now()
        if place == 0:
            if steps > CHECKED:
                self.trained.append((Moment.now() - self._begun).per(self._steps))
            if len(self.trained) == self._repeats:
                self.stop.set()
            else:
                self._take_bare()

    def _take_bare(self) -> None:
        assert self._loop is not None
        for _ in range(AHEAD):  # until the loader has made all that it makes ahead
            self._loop.step(*self._random)
        begun = Moment.now()
        for _ in range(self._steps):
            self._loop.step(*self._random)
        self.bare.append((Moment.now() - begun).per(self._steps))

    def worst_difference(self, losses: list[float]) -> float:
        """Between the losses of the training and those of the bare loop on the same batches, from the same weights."""
        assert self._first is not None
        loop = BareLoop(self._first, self._lr)
        found = [float(loop.step(*one)) for one in self._batches]
        return max(abs(one - other) for one, other in zip(found, losses, strict=True))


def answer(config: dict[str, Any]) -> dict[str, Any]:
    """Seconds of a step, of the wall clock and of the processor, for each span of both."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = (config["steps"] + AHEAD) * (config["repeats"] + 1) * config["batch"]
        if config["side"] <= 32:
            source: Any = small_images(min(wanted, 50_000), config["side"])
            classes = CLASSES
        else:
            tar = Path(config["images"] or DEFAULT_TAR)
            source, classes = str(photos(read_jpegs(tar)[0], Path(folder, "photos"), wanted)), 100
        options = TrainOptions(
            model=config["model"],
            policy=config["policy"],
            size=str(config["side"]),
            batch_size=config["batch"],
            lr=config["lr"],
            device="cpu",
            out=Path(folder, "out"),
        )
        both = Alternating(config, classes)
        at_each_step(both.look)
        losses: list[float] = []
        train(source, options, stop=both.stop, tell=lambda line: losses.append(line["loss"]))
        found = both.worst_difference(losses[:CHECKED])
    return {"bare": both.bare, "trained": both.trained, "difference": found, "threads": torch.get_num_threads()}


def shares(found: dict[str, Any], clock: int) -> list[float]:
    """What the bare loop takes of the time of each span beside it. ``clock``: 0 of the wall, 1 of the processor."""
    pairs = zip(found["bare"], found["trained"], strict=True)
    return [bare[clock] / trained[clock] for bare, trained in pairs]


def median(values: list[float]) -> str:
    return f"{statistics.median(values):.1%} ({min(values):.1%} - {max(values):.1%})"


if __name__ == "__main__":
    serve(answer)
