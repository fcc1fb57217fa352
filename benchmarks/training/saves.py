"""What checkpoints hold a training up: the call itself, and the steps that go on beside the writing."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from threading import Event
from typing import Any

from benchmarks.training.watching import at_each_step, serve, small_images
from variegate.apps.train import Trainer, TrainOptions, train
from variegate.apps.train.learner import Learner


class Saving:
    """Spans of steps with a checkpoint at the end of the first step, and spans without, in turn."""

    def __init__(self, every: int, repeats: int) -> None:
        self._every, self._repeats = every, repeats
        self.held: list[float] = []
        self.spans: dict[bool, list[float]] = {True: [], False: []}
        self.stop = Event()
        self._is_on, self._begun = False, 0.0
        save = Trainer._save

        def timed(trainer: Trainer) -> None:
            begun = time.perf_counter()
            if self._is_on:
                save(trainer)
                self.held.append(time.perf_counter() - begun)

        Trainer._save = timed  # type: ignore[assignment,method-assign]

    def look(self, learner: Learner, steps: int) -> None:
        # Checkpoints are due after every ``every`` steps: a span begins one step before.
        if (steps + 1) % self._every or self.stop.is_set():
            return
        now = time.perf_counter()
        if self._begun:
            self.spans[self._is_on].append((now - self._begun) / self._every)
        self._begun, self._is_on = now, not self._is_on
        if min(map(len, self.spans.values())) >= self._repeats:
            self._is_on = False
            self.stop.set()


def answer(config: dict[str, Any]) -> dict[str, Any]:
    """Seconds that each save held the loop up, and those of a step in spans with a save, and without; megabytes."""
    saving = Saving(config["every"], config["repeats"])
    at_each_step(saving.look)
    with tempfile.TemporaryDirectory() as folder:
        options = TrainOptions(
            model=config["model"],
            policy="flip+crop",
            batch_size=config["batch"],
            lr=0.01,
            checkpoint_every=config["every"],
            device="cpu",
            out=Path(folder, "out"),
        )
        train(small_images(config["batch"] * 64), options, stop=saving.stop)
        latest = max(Path(folder, "out", "checkpoints").glob("step-*"))
        size = sum(one.stat().st_size for one in latest.iterdir())
    return {"held": saving.held, "with": saving.spans[True], "without": saving.spans[False], "bytes": size}


if __name__ == "__main__":
    serve(answer)
