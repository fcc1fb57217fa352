"""The training step on one repeated batch, the ceiling, compared with the step fed by a loader."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

from variegate.apps.doctor.probes import Probe, Rate, number_text, rate_row, run_probes, wait_for
from variegate.apps.plotting import FAINT, GREEN, INK, drawn_figure, label_rows
from variegate.data.base import SourceError
from variegate.events import OnEvent, ignore_event
from variegate.io.amounts import pluralize
from variegate.learn.batches import classes_of, tensors_of
from variegate.learn.models import model_to_train
from variegate.learn.step import TrainingStep, make_optimizer
from variegate.loader import Batch, Loader
from variegate.options.fit import FitOptions, Precision

CEILING = "one repeated batch"
FED = "fed by the loader"
# NVML averages over a sixth of a second or more.
_SAMPLE_SECONDS = 0.05
_BINS = 10
_NO_NVML = "the utilization of the GPU is not known; it needs NVIDIA's NVML: pip install nvidia-ml-py"

# Arguments of a step.
StepArguments = tuple[Any, ...]


@dataclass(frozen=True)
class TrainingRates:
    """Rates of the training step.

    ``ceiling`` repeats one batch, so that no data is loaded; ``fed`` takes batches of the loader. ``utilization``: by
    name of the rate, samples of the GPU's utilization in percent; empty on a CPU and without NVML.
    """

    ceiling: Rate
    fed: Rate
    utilization: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    note: str | None = None

    @property
    def share(self) -> float:
        """Throughput fed by the loader as a share of the ceiling."""
        return self.fed.images_per_second / self.ceiling.images_per_second

    def histogram(self, name: str) -> list[float]:
        """Return the shares of the samples in ten bins, from 0 to 100 percent."""
        counts, _ = np.histogram(self.utilization[name], _BINS, (0, 100))
        return [count / counts.sum() for count in counts.tolist()]

    def lines(self) -> list[str]:
        """Return the report, line by line."""
        lines = []
        for name, rate in ((CEILING, self.ceiling), (FED, self.fed)):
            line = rate_row(f"training, {name}", rate)
            if name in self.utilization:
                line += f"   GPU busy {statistics.fmean(self.utilization[name]):.0f}%"
            lines.append(line)
        lines.append(f"Training reaches {self.share:.1%} of the ceiling, which needs no data.")
        return lines


def measure_training(
    loader: Loader,
    step: Callable[..., object],
    prepare: Callable[[Batch], StepArguments],
    seconds: float,
    on_event: OnEvent = ignore_event,
) -> TrainingRates:
    """Time ``step(*prepare(batch))`` with one batch again and again, and with the batches of ``loader``."""
    utilization = Utilization(loader.device)
    finish = wait_for(loader.device)
    with closing(endless(loader)) as batches:
        first = next(batches)
        repeated = prepare(first)

        def step_repeated() -> int:
            step(*repeated)
            return len(first.ids)

        def step_fed() -> int:
            batch = next(batches)
            step(*prepare(batch))
            return len(batch.ids)

        ceiling = Probe(f"training, {CEILING}", step_repeated, 0, finish, partial(utilization.watch, CEILING))
        fed = Probe(f"training, {FED}", step_fed, loader.prefetch + 1, finish, partial(utilization.watch, FED))
        run_probes([ceiling, fed], seconds, on_event)
    samples = {name: tuple(found) for name, found in utilization.samples.items() if found}
    return TrainingRates(ceiling.rate(), fed.rate(), samples, utilization.note)


def endless(loader: Loader) -> Generator[Any]:
    """Yield the loader's batches, epoch after epoch."""
    for _ in count():
        yield from loader


def model_step(name: str, loader: Loader, precision: Precision, place: str) -> Callable[..., object]:
    """Return a training step of a model, called with images [N, C, H, W] and labels, at a learning rate of 0.

    Raises ModelError, and SourceError if the classes are not known.
    """
    options = FitOptions(precision=precision)
    classes = len(classes_of(loader.source, place))
    first = next(iter(loader), None)
    if first is None:
        tried = pluralize(len(loader.errors), "sample")
        raise SourceError(f"{place}: none of {tried} could be read; {loader.errors[0]}")
    if not isinstance(first.images, torch.Tensor):
        raise SourceError(f"{place}: images have several sizes after the transform; accepted: one size (--size)")
    channels = first.images.shape[3]
    model = model_to_train(name, classes, channels, loader.device, 0)
    model.train()
    optimizer = make_optimizer(model, torch.tensor(0.0, device=loader.device), options)
    return TrainingStep(name, model, classes, optimizer, precision)


def for_model(device: str, batch: Batch) -> StepArguments:
    """Return images [N, C, H, W] and labels of a batch in layout NHWC, on the device."""
    images, labels, _ = tensors_of(batch, device)
    return images, labels


class Utilization:
    """Samples of a GPU's utilization in percent, by name. ``note``: reason for missing values."""

    def __init__(self, device: str) -> None:
        self.samples: dict[str, list[int]] = {}
        self.note: str | None = None
        self._device = device if device.startswith("cuda") else None
        if self._device is None:
            return
        try:
            torch.cuda.utilization(self._device)
        except Exception:  # without pynvml, or whatever NVML raises on this GPU
            self._device = None
            self.note = _NO_NVML

    @contextmanager
    def watch(self, name: str) -> Iterator[None]:
        """Sample the utilization in a thread while the context is open."""
        if self._device is None:
            yield
            return
        device = self._device
        found = self.samples.setdefault(name, [])
        is_over = threading.Event()

        def sample() -> None:
            while not is_over.wait(_SAMPLE_SECONDS):
                found.append(torch.cuda.utilization(device))

        thread = threading.Thread(target=sample, name="variegate-nvml", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def draw_training(found: TrainingRates, title: str, path: Path) -> None:
    """Write a PNG: both rates as bars and, if it was sampled, histograms of the GPU's utilization.

    Raises PlotError without matplotlib, OSError if the file cannot be written.
    """
    rates = {CEILING: found.ceiling, FED: found.fed}
    colors = {CEILING: FAINT, FED: GREEN}
    columns = 1 + len(found.utilization)
    with drawn_figure(path, 5.0 + 3.0 * len(found.utilization), 2.4, title) as figure:
        axes = figure.subplots(1, columns, squeeze=False)[0]
        for row, (name, rate) in enumerate(rates.items()):
            length = rate.images_per_second
            axes[0].barh(row, length, height=0.62, color=colors[name])
            axes[0].text(length, row, f" {number_text(length)}", va="center", color=INK)
        axes[0].set_xlim(0, 1.3 * max(rate.images_per_second for rate in rates.values()))
        axes[0].set_xlabel("images per second")
        label_rows(axes[0], list(rates))
        axes[0].set_title(f"{found.share:.1%} of the ceiling")
        for place, name in enumerate(found.utilization, start=1):
            edges = np.arange(_BINS) * 100 / _BINS
            axes[place].bar(edges, found.histogram(name), 100 / _BINS, align="edge", color=colors[name])
            axes[place].set_title(f"GPU, {name}")
            axes[place].set_xlabel("utilization, %; share of the samples")
