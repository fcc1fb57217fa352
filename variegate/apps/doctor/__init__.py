"""``doctor``: the rate of a loader on your own data, its bottleneck, and the expected gain of each change."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import torch

import variegate
from variegate.apps.doctor import advise as rates
from variegate.apps.doctor.advise import Advice, Diagnosis, Measurements, advise
from variegate.apps.doctor.probes import Probe, Rate, run_probes, wait_for
from variegate.apps.doctor.samples import HeldSample, HeldSamples, hold_samples, samples_in_memory, smaller_files
from variegate.apps.doctor.training import TrainingRates, endless, for_model, measure_training, model_step
from variegate.data.base import Item, SourceError
from variegate.data.opening import open_source
from variegate.data.samples import Samples
from variegate.decode.gpu import is_installed
from variegate.events import OnEvent, Progress, ignore_event
from variegate.executors.runners.devices import resolve
from variegate.io.addresses import redact_url
from variegate.io.amounts import pluralize
from variegate.jobs.arguments import build_transform, parse_size
from variegate.loader import Loader
from variegate.loader.cache import available_memory
from variegate.loader.reading import reader_threads
from variegate.loader.shuffle import Permutation
from variegate.ops.compose import Compose
from variegate.ops.output import Normalize
from variegate.options.doctor import DoctorOptions
from variegate.threads import default_threads
from variegate.transforms import Transform

__all__ = ["Advice", "Diagnosis", "Measurements", "Rate", "TrainingRates", "advise", "doctor", "training_transform"]

# The shorter side of stored images over that of outputs: 256 for crops of 224, as is usual.
_STORED_OVER_OUTPUT = 8 / 7
# Smaller files pay only where images are this many times as large.
_MIN_SHRINKING = 1.25
_BAD_SHOWN = 5


def training_transform(policy: str, size: str) -> Transform:
    """Build ``RandomResizedCrop(size)`` ("none": whole images), the ``policy`` and ``Normalize``.

    Raises PolicyError or ValueError for an unknown policy or size.
    """
    normalize = Normalize(variegate.IMAGENET_MEAN, variegate.IMAGENET_STD)
    return Compose([build_transform(policy, parse_size(size)), normalize])


def doctor(
    source: Any,
    transform: Transform | None = None,
    *,
    step: Callable[[Any, Any], object] | None = None,
    on_event: OnEvent = ignore_event,
    **options: Any,
) -> Diagnosis:
    """Measure a loader on your own data, find its bottleneck, and say what changes would gain.

    Args:
        source: as for ``Loader``.
        transform: as for ``Loader``; None for ``RandomResizedCrop(224)``, RandAugment and ``Normalize``.
        step: your training step, called with the images and labels of a batch: it is timed on one repeated batch, the
            ceiling, and fed by the loader.
        on_event: called before each measurement with its ``Progress``.
        options: fields of ``DoctorOptions``: batch_size, devices, threads, fast_decode, index, prefetch, consume
            (images per second that your model takes), seconds (per rate), limit (samples held in memory); and train,
            model, precision, to time the step of a model by its name.

    Unreadable samples are skipped and counted.

    Raises:
        SourceError: if no sample can be read.
        ValueError: naming the argument.
    """
    chosen = DoctorOptions(**options)
    transform = training_transform("randaugment", "224") if transform is None else transform
    place = redact_url(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else type(source).__name__
    with ExitStack() as stack:
        opened = open_source(source, stream=False, on_error="skip")
        session = _Session(opened, transform, chosen, stack, on_event)
        if step is None and chosen.train:
            # A wrong model is refused before anything is measured.
            training_loader = session.make_loader(session.loader.source, layout="NHWC")
            named = model_step(chosen.model, training_loader, chosen.precision, place)
        try:
            measured = session.measure(place)
        except SourceError as error:
            raise SourceError(f"{place}: {error}") from None
    training = None
    if step is not None:
        training = measure_training(session.loader, step, tuple, chosen.seconds, on_event)
    elif chosen.train:
        prepare = partial(for_model, training_loader.device)
        training = measure_training(training_loader, named, prepare, chosen.seconds, on_event)
    notes = session.notes()
    if training is not None and training.note is not None:
        notes.append(training.note)
    return replace(advise(measured, chosen.consume), training=training, notes=tuple(notes))


class _Session:
    """The loader that is measured, and variants of it."""

    def __init__(
        self,
        source: Any,
        transform: Transform,
        chosen: DoctorOptions,
        stack: ExitStack,
        on_event: OnEvent,
    ) -> None:
        self._transform = transform
        self._chosen = chosen
        self._stack = stack
        self._on_event = on_event
        self._cores = default_threads()
        self._threads = chosen.threads or self._cores
        # Wrong arguments are refused before anything is read.
        self.loader = self.make_loader(source)
        self._probes: dict[str, Probe] = {}
        self._held = HeldSamples()

    def make_loader(self, source: Any, **changes: Any) -> Loader:
        """Return a loader of the options, with ``changes``."""
        chosen = self._chosen
        options: dict[str, Any] = {
            "batch_size": chosen.batch_size,
            "device": resolve(chosen.devices, "devices"),
            "fast_decode": chosen.fast_decode,
            "index": chosen.index,
            "prefetch": chosen.prefetch,
            "num_threads": self._threads,
            "on_error": "skip",
            "rank": 0,
            "world_size": 1,
            "targets": False,
        }
        return Loader(source, self._transform, **(options | changes))

    def measure(self, place: str) -> Measurements:
        """Measure all rates. Raises SourceError if no sample is readable."""
        source = self.loader.source
        self._on_event(Progress("first samples", 0))
        self._held = hold_samples(source, self._chosen.limit, 4 * self._chosen.seconds, self._threads)
        samples = self._held.good
        items = [sample.item for sample in samples]
        has_files = not isinstance(items[0].data, np.ndarray)
        decodes_on_gpu = self.loader.device.startswith("cuda") and is_installed()
        smaller_side = self._smaller_side(samples) if has_files else None

        self._add(rates.READ, self._read_step(source))
        decoding = self._add_in_memory(rates.DECODE_AUGMENT, items) if has_files else None
        self._add_in_memory(rates.AUGMENT, [sample.item._replace(data=sample.pixels) for sample in samples], index=None)
        self._add_loader(rates.WHOLE, self.loader)
        if self._threads < self._cores:
            self._add_loader(rates.ALL_CORES, self.make_loader(source, num_threads=self._cores))
        if smaller_side is not None:
            self._add_in_memory(rates.SMALLER, smaller_files(samples, smaller_side), index=None)
        if not self.loader.device.startswith("cuda") and torch.cuda.is_available():
            self._add_in_memory(rates.ON_GPU, items, device="cuda")

        for probe in self._probes.values():
            self._on_event(Progress("kernels, compiled at the first start only", 0))
            probe.step()
        before = decoding.stats().decode if decoding is not None else None
        run_probes(list(self._probes.values()), self._chosen.seconds, self._on_event)
        found = {name: probe.rate() for name, probe in self._probes.items()}
        if decoding is not None and before is not None and not decodes_on_gpu:
            after = decoding.stats().decode
            seconds = max(after.seconds - before.seconds, 1e-9) / self._threads
            found[rates.DECODE] = Rate((after.samples - before.samples) / seconds)
        shapes = np.array([sample.pixels.shape for sample in samples], np.float64)
        return Measurements(
            source=place,
            samples=len(source),
            held=len(samples),
            bad=len(self._held.bad),
            file_bytes=float(np.mean([sample.nbytes for sample in samples])),
            pixel_bytes=float(shapes.prod(axis=1).mean()),
            width=float(shapes[:, 1].mean()),
            height=float(shapes[:, 0].mean()),
            has_single_files=has_files and all(sample.name.member is None for sample in samples),
            is_remote=source.is_remote,
            device=self.loader.device,
            decodes_on_gpu=decodes_on_gpu,
            threads=self._threads,
            cores=self._cores,
            batch_size=self.loader.batch_size,
            free_memory=available_memory(),
            rates=found,
            smaller_side=smaller_side,
        )

    def notes(self) -> list[str]:
        """Return remarks on the data, the machine and the spread of the rates."""
        notes = list(self.loader.source.notes())
        bad = self._held.bad
        notes += [f"skipped {error}" for error in bad[:_BAD_SHOWN]]
        if bad:
            tried = len(bad) + len(self._held.good)
            notes.append(
                f'{len(bad):,} of {pluralize(tried, "sample")} could not be read; a Loader needs on_error="skip" or '
                '"replace"'
            )
        spreads = {probe.title: probe.rate().spread for probe in self._probes.values()}
        worst = max(spreads, key=spreads.__getitem__)
        if spreads[worst] > rates.WIDE_SPREAD:
            notes.append(
                f"rates vary by up to {spreads[worst]:.0%} ({worst}); close other programs, or measure longer with "
                "--seconds"
            )
        return notes

    def _smaller_side(self, samples: Sequence[HeldSample]) -> int | None:
        """Return the side that stored images could be reduced to; None if they are not much larger."""
        batch = next(iter(self.loader))
        is_tensor = isinstance(batch.images, torch.Tensor)
        if not is_tensor or any(sample.pixels.shape[2] not in (1, 3) for sample in samples):
            return None
        side = round(min(batch.images.shape[-2:]) * _STORED_OVER_OUTPUT)
        shorter = float(np.mean([min(sample.pixels.shape[:2]) for sample in samples]))
        return side if shorter > _MIN_SHRINKING * side else None

    def _add(self, name: str, step: Callable[[], int], ahead: int = 0, device: str = "cpu") -> None:
        self._probes[name] = Probe(rates.TITLES[name], step, ahead, wait_for(device))

    def _add_loader(self, name: str, loader: Loader) -> None:
        batches = endless(loader)
        self._stack.callback(batches.close)
        self._add(name, lambda: len(next(batches).ids), loader.prefetch + 1, loader.device)

    def _add_in_memory(self, name: str, items: Sequence[Item], **changes: Any) -> Loader:
        source = samples_in_memory(items, self.loader.source.classes)
        loader = self.make_loader(source, shuffle=False, **changes)
        self._add_loader(name, loader)
        return loader

    def _read_step(self, source: Samples) -> Callable[[], int]:
        """Return a function that reads a batch of samples, and nothing else."""
        batch_size = self._chosen.batch_size
        # Another order than the loader's, so that files are not always in memory already.
        order = Permutation(len(source), seed=1, epoch=0)
        positions = count()
        pool = ThreadPoolExecutor(reader_threads(source.is_remote, self._threads), thread_name_prefix="variegate-read")
        self._stack.callback(pool.shutdown)

        def read(index: int) -> None:
            try:
                source.read(index)
            except Exception:  # reported by the samples that are held
                return

        def step() -> int:
            places = [next(positions) % len(source) for _ in range(batch_size)]
            list(pool.map(read, order(np.array(places, np.int64)).tolist()))
            return batch_size

        return step
