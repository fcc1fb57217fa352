"""What comes before the end of the first step, beyond the imports: of ``train``, or of a bare loop."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from threading import Event
from typing import Any

import torch
import torch._dynamo  # the first optimiser imports it, in a bare loop too

from benchmarks.training.bare import BareLoop, random_batch
from benchmarks.training.watching import CLASSES, at_each_step, serve, small_images
from variegate.training import TrainOptions, train
from variegate.training.learner import Learner
from variegate.training.models import build_model

IMAGES = 2048


def answer(config: dict[str, Any]) -> dict[str, Any]:
    """Seconds to the end of the first step, and of the second step."""
    if config["is_bare"]:
        return _bare(config)
    images, labels = small_images(IMAGES)
    seen: list[float] = []
    stop = Event()

    def look(learner: Learner, steps: int) -> None:
        seen.append(time.perf_counter())
        if steps == 2:
            stop.set()

    at_each_step(look)
    with tempfile.TemporaryDirectory() as folder:
        options = TrainOptions(
            model=config["model"],
            policy=config["policy"],
            batch_size=config["batch"],
            lr=0.01,
            device="cpu",
            out=Path(folder, "out"),
        )
        begun = time.perf_counter()
        train((images, labels), options, stop=stop)
    return {"seconds": seen[1] - begun, "step": seen[2] - seen[1], "before_steps": seen[0] - begun}


def _bare(config: dict[str, Any]) -> dict[str, Any]:
    begun = time.perf_counter()
    batch = random_batch(config["batch"], 32, CLASSES)
    loop = BareLoop(build_model(config["model"], CLASSES).to(memory_format=torch.channels_last))  # type: ignore[call-overload]
    seen = []
    for _ in range(2):
        loop.step(*batch)
        seen.append(time.perf_counter())
    return {"seconds": seen[0] - begun, "step": seen[1] - seen[0], "before_steps": 0.0}


if __name__ == "__main__":
    serve(answer)
