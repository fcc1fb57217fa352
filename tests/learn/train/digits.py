"""scikit-learn's digits as a source, small models for them, and trainings that several processes run."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed
from PIL import Image

from tests.children import start_python
from variegate.learn.events import Logged
from variegate.learn.fit import Fit
from variegate.learn.progress import StepLines
from variegate.learn.trainer import train
from variegate.options.training import TrainOptions


def digits(number: int = 512) -> tuple[Any, Any]:
    """-> (uint8 [N, 8, 8, 1], labels) to train on, and the next half as many to score."""
    pixels, labels = _digits()
    end = number + number // 2
    return (pixels[:number], labels[:number]), (pixels[number:end], labels[number:end])


def digit_files(folder: Path) -> Path:
    """``folder``, with 64 digits as RGB pictures in class folders."""
    (pixels, labels), _ = digits(64)
    for number, (one, label) in enumerate(zip(pixels, labels, strict=True)):
        path = folder / str(label) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(one.repeat(3, 2)).save(path)
    return folder


@cache
def _digits() -> tuple[Any, Any]:
    """A process with a test's ranks reads them from a file: to import scikit-learn takes it some 2 s."""
    if (kept := os.environ.get(KEPT)) is not None:
        with np.load(kept) as file:
            return file["pixels"], file["labels"]
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    found = load_digits()
    return (found.images * 15.9).astype(np.uint8)[..., None], found.target.astype(np.int64)


def without_statistics(num_classes: int) -> torch.nn.Module:
    """A model of which a batch is the sum of its parts."""
    convolutions = (torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3, padding=1))
    layers = (*convolutions, torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten())
    return torch.nn.Sequential(*layers, torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Linear(64, num_classes))


class Centring(torch.nn.Module):
    """Begins by taking off the mean of the images that it is initialised with."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.offset = torch.nn.Parameter(torch.zeros(1))
        layers = (torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU())
        self.features, self.head = torch.nn.Sequential(*layers), torch.nn.Linear(16, num_classes)

    @torch.no_grad()
    def initialize(self, images: torch.Tensor) -> None:
        self.offset.copy_(images.mean())

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.features(images - self.offset).mean((2, 3)))
        return scores


KEPT = "VARIEGATE_TEST_DIGITS"
# Of commands that train on ``digit_files``.
SMALL = ("--model", "wrn-10-1", "--batch-size", 16, "--devices", "cpu", "--threads", 1, "--policy", "crop")
PLAIN = "tests.learn.train.digits:without_statistics"
OPTIONS = TrainOptions(model=PLAIN, policy="crop", epochs=3, batch_size=32, lr=0.05, devices="cpu", threads=1)


def options(out: Path, **changes: Any) -> TrainOptions:
    return replace(OPTIONS, out=out, **changes)


def lines(out: Path) -> list[dict[str, Any]]:
    """Of the log, without what the clock says."""
    read = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [{name: one for name, one in line.items() if name not in ("images_per_second", "waiting")} for line in read]


def logged(event: Any) -> Mapping[str, Any]:
    """The line of the log that an event is about; empty for other events."""
    return event.line if isinstance(event, Logged) else {}


def stopped_after(step: int) -> dict[str, Any]:
    """Arguments of ``train`` by which it is interrupted there."""
    stop = Event()
    return {"stop": stop, "on_event": lambda event: stop.set() if logged(event).get("step") == step else None}


def losses(out: Path) -> list[float]:
    return [line["loss"] for line in lines(out) if "loss" in line]


def top1(out: Path) -> float:
    return [line["top1"] for line in lines(out) if "top1" in line][-1]


class Seen(list[int]):
    """The samples that a process trains on, in their order: ids, of which padding is none."""

    def watch(self, monkeypatch: Any) -> Seen:
        add_gradients = Fit._add_gradients

        def watched(fit: Fit, batch: Any, *more: Any) -> Any:
            self.extend(batch.ids[~batch.padding].tolist())
            return add_gradients(fit, batch, *more)

        monkeypatch.setattr(Fit, "_add_gradients", watched)
        return self


def stopping_at(step: int) -> Any:
    def should_flush(lines: StepLines, stop: Event) -> bool:
        if lines._pending.lines[-1]["step"] == step:
            stop.set()
        return stop.is_set()

    return should_flush


def run_rank(folder: Path, rank: int, ranks: int) -> None:
    """One of several processes: a training for each of the runs in ``folder``, one after another.

    ``stop_after``: so many steps, as if it were interrupted there. ``kept_as``: what it left is copied to there.
    """
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=ranks)
    for number, changes in enumerate(json.loads((folder / "runs.json").read_text())):
        source, validation = digits(changes.pop("images", 512))
        with pytest.MonkeyPatch.context() as monkeypatch:
            seen, stop = Seen().watch(monkeypatch), Event()
            if "stop_after" in changes:
                monkeypatch.setattr(StepLines, "should_flush", stopping_at(changes.pop("stop_after")))
            out, kept_as = folder / changes.pop("out"), changes.pop("kept_as", None)
            train(source, options(out, **changes), validation=validation, stop=stop)
        (folder / f"seen-{number}-{rank}.json").write_text(json.dumps(seen))
        if kept_as is not None and rank == 0:  # whom the others wait for when the next begins
            shutil.copytree(out, folder / kept_as)
    torch.distributed.destroy_process_group()


def on_ranks(folder: Path, runs: list[dict[str, Any]], ranks: int = 2) -> None:
    """Have so many processes run these."""
    (folder / "runs.json").write_text(json.dumps(runs))
    (folder / "meet").unlink(missing_ok=True)
    pixels, labels = _digits()
    np.savez(folder / "digits.npz", pixels=pixels, labels=labels)
    begin = "import sys; from tests.learn.train.digits import fork; sys.exit(fork(sys.argv[1], int(sys.argv[2])))"
    environment = {**os.environ, KEPT: str(folder / "digits.npz")}
    with start_python(begin, folder, ranks, env=environment, start_new_session=True) as made:
        try:
            assert made.wait(timeout=240) == 0
        finally:
            if made.returncode is None:
                os.killpg(made.pid, signal.SIGKILL)


def fork(folder: str, ranks: int) -> int:
    """What takes longest is imported once, before there are ranks, and threads."""
    importlib.import_module("torch._dynamo")  # DistributedDataParallel does
    context = multiprocessing.get_context("fork")
    made = [context.Process(target=run_rank, args=(Path(folder), rank, ranks), daemon=True) for rank in range(ranks)]
    for one in made:
        one.start()
    # Where one fails, the others would wait for it.
    while any(one.is_alive() for one in made) and not any(one.exitcode for one in made):
        time.sleep(0.01)
    return max(abs(one.exitcode or 0) for one in made)
