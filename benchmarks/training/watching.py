"""Looking at a training from within, at the beginning of each of its steps; and the images that it is given."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.loader.photos import lay_down
from benchmarks.process import Process
from variegate.apps.train.learner import Learner

CLASSES = 10


@dataclass(frozen=True)
class Moment:
    """Of both clocks: seconds that passed, and seconds of the processor that all threads of this process took."""

    wall: float
    processor: float

    @staticmethod
    def now() -> Moment:
        return Moment(time.perf_counter(), time.process_time())

    def __sub__(self, other: Moment) -> Moment:
        return Moment(self.wall - other.wall, self.processor - other.processor)

    def per(self, steps: int) -> tuple[float, float]:
        return self.wall / steps, self.processor / steps


def at_each_step(look: Callable[[Learner, int], None]) -> None:
    """Have ``look(learner, steps)`` called before every step of every training. ``steps``: done before it."""
    begin_step = Learner.begin_step

    def watched(learner: Learner, steps: int) -> None:
        look(learner, steps)
        begin_step(learner, steps)

    Learner.begin_step = watched  # type: ignore[assignment,method-assign]


def small_images(number: int, side: int = 32) -> tuple[Any, Any]:
    """uint8 [N, side, side, 3] and labels, both of chance."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (number, side, side, 3), dtype=np.uint8)
    return pixels, np.arange(number) % CLASSES


def photos(jpegs: list[bytes], folder: Path, number: int) -> Path:
    """In class folders; each so often that they are ``number`` or more."""
    lay_down(jpegs, folder, -(-number // len(jpegs)))
    return folder


def in_a_process(part: str, config: dict[str, Any], environment: dict[str, str], timeout: float) -> dict[str, Any]:
    """What ``answer(config)`` of ``benchmarks.training.PART`` gives. Raises RuntimeError with what went wrong."""
    worker = Process(sys.executable, config, f"benchmarks.training.{part}", environment)
    try:
        return worker.ask({"command": part}, timeout)
    finally:
        worker.close()


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """The other side of it. What libraries print goes to standard error."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdin.readline()
    try:
        found = answer(json.loads(sys.argv[1]))
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(found), file=channel, flush=True)
