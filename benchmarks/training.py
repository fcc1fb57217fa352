"""``python -m benchmarks.run training``: what ``variegate train`` costs beside a bare loop.

``steps``: beside a bare loop over random tensors, alternating, after a check that both have the same losses. ``start``:
to the end of the first step, in fresh processes.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nnf

from benchmarks import machine
from benchmarks.peers_env import ROOT
from variegate.apps.train import TrainOptions, train
from variegate.apps.train.learner import Learner
from variegate.apps.train.models import build_model
from variegate.apps.train.step import TrainingStep

MODEL, SIDE, BATCH, CLASSES = "wrn-16-1", 32, 64, 10
POLICIES = ("none", "randaugment")
STARTS = ("wrn-16-1", "wrn-28-4")
STEP_TARGET, START_TARGET = 0.95, 2.0
# Steps whose losses are compared; steps before a span, which use up what the loader has made ahead.
CHECKED, AHEAD = 3, 4
# Between the losses of the trainer and the bare loop: sums in another order.
TOLERANCE = 1e-4
CLIP, TIMEOUT = 5.0, 1800.0


class BareLoop:
    """A loop as one would write it without Variegate: the same model, layout, optimizer and clipping."""

    def __init__(self, module: torch.nn.Module, lr: float = 0.0) -> None:
        self.module = module.train()
        more: dict[str, Any] = {"momentum": 0.9, "weight_decay": 5e-4, "nesterov": True, "fused": True}
        self.optimizer = torch.optim.SGD(module.parameters(), lr=torch.tensor(lr), **more)

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """-> the mean loss."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = nnf.cross_entropy(self.module(images), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.module.parameters(), CLIP)
        self.optimizer.step()
        return loss.detach()


def random_batch() -> tuple[torch.Tensor, torch.Tensor]:
    images = torch.randn(BATCH, SIDE, SIDE, 3).permute(0, 3, 1, 2)
    return images, torch.randint(CLASSES, (BATCH,))


def small_images(count: int) -> tuple[Any, Any]:
    pixels = np.random.default_rng(0).integers(0, 256, (count, SIDE, SIDE, 3), dtype=np.uint8)
    return pixels, np.arange(count) % CLASSES


def at_each_step(look: Callable[[Learner, int], None]) -> None:
    """Have ``look(learner, steps)`` called before every step of every training of this process."""
    begin_step = Learner.begin_step

    def watched(learner: Learner, steps: int) -> None:
        look(learner, steps)
        begin_step(learner, steps)

    Learner.begin_step = watched  # type: ignore[assignment,method-assign]


def options_of(folder: str, **more: Any) -> TrainOptions:
    given: dict[str, Any] = {
        "model": MODEL,
        "batch_size": BATCH,
        "lr": 0.01,
        "device": "cpu",
        "out": Path(folder, "out"),
    }
    return TrainOptions(**(given | more))


# -- steps -------------------------------------------------------------------------------------------------------------


class Alternating:
    """Spans of the bare loop between spans of a training, which it looks at before each of its steps."""

    def __init__(self, steps: int, repeats: int) -> None:
        self.steps, self.repeats, self.stop = steps, repeats, Event()
        self.bare: list[float] = []
        self.trained: list[float] = []
        self.batches: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.first: torch.nn.Module | None = None
        self.random, self.began = random_batch(), 0.0
        add_gradients = TrainingStep.add_gradients

        def recorded(step: TrainingStep, batch: Any, labels: Any, *more: Any, **named: Any) -> torch.Tensor:
            if len(self.batches) < CHECKED:
                self.batches.append((batch.clone(), labels.clone()))
            return add_gradients(step, batch, labels, *more, **named)

        TrainingStep.add_gradients = recorded  # type: ignore[assignment,method-assign]

    def look(self, learner: Learner, steps: int) -> None:
        if self.first is None:
            self.first = copy.deepcopy(learner.module)
            self.loop = BareLoop(copy.deepcopy(learner.module))
        if steps < CHECKED or self.stop.is_set():
            return
        place = (steps - CHECKED) % (AHEAD + self.steps)
        if place == AHEAD:
            self.began = time.process_time()
        if place == 0:
            if steps > CHECKED:
                self.trained.append((time.process_time() - self.began) / self.steps)
            if len(self.trained) == self.repeats:
                self.stop.set()
                return
            began = time.process_time()
            for _ in range(self.steps):
                self.loop.step(*self.random)
            self.bare.append((time.process_time() - began) / self.steps)

    def difference(self, losses: list[float], lr: float) -> float:
        """Between the losses of the training and of the bare loop on the same batches, from the same weights."""
        assert self.first is not None
        loop = BareLoop(self.first, lr)
        found = [float(loop.step(*batch)) for batch in self.batches]
        return max(abs(a - b) for a, b in zip(found, losses, strict=True))


def measure_steps(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Raises RuntimeError if the losses differ."""
    return [in_a_process("steps", {"policy": p, "steps": options.steps, "repeats": options.repeats}) for p in POLICIES]


def answer_steps(config: dict[str, Any]) -> dict[str, Any]:
    both = Alternating(config["steps"], config["repeats"])
    at_each_step(both.look)
    losses: list[float] = []
    images = small_images((config["steps"] + AHEAD) * (config["repeats"] + 1) * BATCH)
    with tempfile.TemporaryDirectory() as folder:
        options = options_of(folder, policy=config["policy"])
        train(images, options, stop=both.stop, tell=lambda line: losses.append(line["loss"]))
    difference = both.difference(losses[:CHECKED], options.lr)
    if not difference <= TOLERANCE:
        raise RuntimeError(f"the trainer's losses are {difference:g} from the bare loop's")
    shares = [bare / trained for bare, trained in zip(both.bare, both.trained, strict=True)]
    share = statistics.median(shares)
    spread = f"{min(shares):.0%} - {max(shares):.0%}"
    said = f"{MODEL}, {config['policy']}: the bare loop takes {share:.1%} ({spread}) of the processor time of a step"
    return {**config, "bare": both.bare, "trained": both.trained, "said": f"{said}; asked {STEP_TARGET:.0%}"}


# -- start -------------------------------------------------------------------------------------------------------------


def measure_start(options: argparse.Namespace) -> list[dict[str, Any]]:
    found = []
    for model in STARTS:
        runs: dict[str, list[float]] = {"train": [], "bare": []}
        for repeat in range(options.repeats + 1):
            for name, seconds in runs.items():
                one = in_a_process("start", {"model": model, "is_bare": name == "bare"})["seconds"]
                if repeat:  # the first reads files from the disk
                    seconds.append(one)
        ours, bare = (statistics.median(seconds) for seconds in runs.values())
        said = (
            f"{model}: {ours:.2f} s to the end of the first step, {bare:.2f} s of a bare loop; asked {START_TARGET:g} s"
        )
        found.append({"model": model, **runs, "said": said})
    return found


def answer_start(config: dict[str, Any]) -> dict[str, Any]:
    import torch._dynamo  # the first optimizer imports it, in a bare loop too

    ends: list[float] = []
    stop = Event()

    def look(learner: Learner, steps: int) -> None:
        ends.append(time.perf_counter())
        if steps == 1:
            stop.set()

    images, began = small_images(2048), time.perf_counter()
    if config["is_bare"]:
        model = build_model(config["model"], CLASSES)
        BareLoop(model.to(memory_format=torch.channels_last)).step(*random_batch())  # type: ignore[call-overload]
        return {"seconds": time.perf_counter() - began}
    at_each_step(look)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        train(images, options_of(folder, model=config["model"], policy="randaugment"), stop=stop)
    return {"seconds": ends[1] - began}


# -- processes ---------------------------------------------------------------------------------------------------------


def in_a_process(part: str, config: dict[str, Any]) -> dict[str, Any]:
    """The answer of a fresh process. Raises RuntimeError with its last words."""
    command = [sys.executable, "-m", "benchmarks.training", part, json.dumps(config)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=TIMEOUT, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


PARTS = {"steps": measure_steps, "start": measure_start}
ANSWERS = {"steps": answer_steps, "start": answer_start}


def main(name: str, arguments: Sequence[str], command: str) -> int:
    """Exit code 1 if a check failed; speed itself never fails a run."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.run {name}", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="all of them")
    parser.add_argument("--steps", type=int, default=20, help="of a span (20)")
    parser.add_argument("--repeats", type=int, default=5, help="spans, or starts, of each kind (5)")
    parser.add_argument("--out", type=Path, help="a JSON file for all figures")
    options = parser.parse_args(arguments)
    record: dict[str, Any] = {"machine": machine.describe() | {"torch": torch.__version__}, "command": command}
    print(", ".join(f"{key}: {value}" for key, value in record["machine"].items()))
    for part in options.parts:
        try:
            record[part] = PARTS[part](options)
        except RuntimeError as error:
            print(f"FAILED {part}: {error}; no speed is reported")
            return 1
        for row in record[part]:
            print(row["said"], flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    print(json.dumps(ANSWERS[sys.argv[1]](json.loads(sys.argv[2]))))
