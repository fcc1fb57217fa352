"""What comes before the end of the first step, beyond the imports: of ``train``, or of a bare loop."""

from __future__ import annotations

import tempfile
from pathlib import Path
from threading import Event
from typing import Any

import torch
import torch._dynamo  # the first optimiser imports it, in a bare loop too

from benchmarks.training.bare import BareLoop, random_batch
from benchmarks.training.watching import CLASSES, Moment, at_each_step, serve, small_images
from variegate.apps.train import TrainOptions, train
from variegate.apps.train.learner import Learner
from variegate.apps.train.models import build_model

IMAGES = 2048


def answer(config: dict[str, Any]) -> dict[str, Any]:
    """Seconds to the end of the first step: of the wall clock, and of the processor."""
    if config["is_bare"]:
        return _bare(config)
    images, labels = small_images(IMAGES)
    seen: list[Moment] = []
    stop = Event()

    def look(learner: Learner, steps: int) -> None:
        seen.append(Moment.now())
        if steps == 1:
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
        begun = Moment.now()
        train((images, labels), options, stop=stop)
    took = seen[1] - begun
    return {"seconds": took.wall, "processor": took.processor}


def _bare(config: dict[str, Any]) -> dict[str, Any]:
    begun = Moment.now()
    batch = random_batch(config["batch"], 32, CLASSES)
    loop = BareLoop(build_model(config["model"], CLASSES).to(memory_format=torch.channels_last))  # type: ignore[call-overload]
    loop.step(*batch)
    took = Moment.now() - begun
    return {"seconds": took.wall, "processor": took.processor}


if __name__ == "__main__":
    serve(answer)
