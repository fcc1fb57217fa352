"""Measurement of one loader on a user's own data, in order: stages alone, stages together, alternatives, the whole."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import variegate
from variegate.apps.diagnose import measurements as m
from variegate.apps.diagnose.measurements import Measurements
from variegate.apps.diagnose.recorder import (
    OnProgress,
    PlannedStep,
    Recorder,
    Step,
    loader_step,
    read_step,
    stream_step,
    transfer_step,
)
from variegate.apps.diagnose.samples import CyclicView, MeasuredSample, Pictures, draw_working_set, reduce_samples
from variegate.augmenter.augmenter import Augmenter
from variegate.checks import spelt
from variegate.compiling.stored import mismatch
from variegate.decode import is_jpeg
from variegate.decode.entropy.index import EntropyIndex
from variegate.decode.gpu import is_installed
from variegate.formats.base import Source, SourceError
from variegate.formats.objects.arrays import ArraySource
from variegate.io.addresses import shown
from variegate.jobs.arguments import build_transform, parse_size
from variegate.loader import Loader
from variegate.loader.batch import conditions_by_labels
from variegate.loader.cache import available_memory
from variegate.loader.reading import reader_threads
from variegate.loader.stats import Stage, StageTimes
from variegate.ops.compose import Compose
from variegate.ops.crop import CenterCrop, Pad, RandomCrop
from variegate.ops.output import Identity, Normalize, ToDtype
from variegate.ops.resize import RandomResizedCrop, Resize
from variegate.options.measurement import MeasurementOptions
from variegate.threads import default_threads
from variegate.transforms import Transform

_LARGE = 4  # batches in one, to see what a batch costs besides its images
_SIDE_SHOWN_BY = 8  # samples whose outputs tell whether all have one size
# What a batch cannot do without: its size and its format.
_FRAME = (CenterCrop, Normalize, Pad, RandomCrop, RandomResizedCrop, Resize, ToDtype)
# The side of a stored picture over the side of the output: 256 for crops of 224, as is usual.
_MARGIN = 8 / 7
# Below this, too little is saved to be worth a second copy of the data.
_WORTH = 1.25


class Session:
    """``options``: those that ``loader`` was made with."""

    def __init__(self, loader: Loader, transform: Transform, options: dict[str, Any], recorder: Recorder) -> None:
        self.loader, self.options, self.recorder = loader, options, recorder
        self.source, self.transform = loader.source, transform
        self.is_remote = not isinstance(self.source, Source) or self.source.is_remote
        self.out_side: int | None = None
        self.reduced_side: int | None = None
        self._threads, self._batch_size, self._device = loader.num_threads, loader.batch_size, loader.device
        self._on_gpu = loader.device.startswith("cuda")

    def run(self, limit: int, alternatives: bool) -> None:
        """Fill ``recorder``. Raises SourceError where no sample is good."""
        recorder, readers = self.recorder, reader_threads(self.is_remote, self._threads)
        recorder.announce(m.TITLES[m.READ_FIRST])
        self.chosen = chosen = draw_working_set(
            self.source, limit, 2 * recorder.seconds, readers, self._threads, self.options["cache_side"]
        )
        recorder.rates.update(chosen.rates)
        self.has_files = not isinstance(chosen.samples[0].item.data, np.ndarray)
        recorder.announce("kernels, compiled at the first start only")
        self._prepare()
        if isinstance(self.source, Source):
            view = CyclicView(chosen.samples, self._batch_size, self.source)
            recorder.planned.append(PlannedStep({m.READ: ()}, read_step(view, readers), readers))
            if self.has_files:
                self._observe({m.READ_DECODE: ("read", "decode")}, view)
        else:
            recorder.planned.append(PlannedStep({m.READ: ()}, stream_step(self.source, self._batch_size), 1))
        self._measure_stages(self._threads)
        if self._threads > 1:
            self._measure_stages(1)
        if self._on_gpu:
            step = transfer_step(chosen.pictures, self._device, self._batch_size)
            recorder.planned.append(PlannedStep({m.TRANSFER: ()}, step, 1))
        if alternatives:
            self._measure_alternatives()
        self._measure_loader()
        recorder.run()

    def _prepare(self) -> None:
        """Compile what the transform needs, and see the shorter side of its outputs, where they have one size."""
        pictures = self.chosen.pictures[:_SIDE_SHOWN_BY]
        conditions = conditions_by_labels([sample.item.label for sample in self.chosen.samples[: len(pictures)]])
        augmenter = Augmenter(self.transform, self._device, num_threads=1)
        outputs = augmenter(pictures, conditions=conditions, partners="batch")
        sizes = {tuple(output.shape[-2:]) for output in outputs}
        self.out_side = min(sizes.pop()) if len(sizes) == 1 else None

    def _measure_stages(self, threads: int) -> None:
        """By loaders whose files, or pictures, lie in memory."""
        is_one = threads < self._threads
        if self.has_files:
            rates: dict[str, tuple[Stage, ...]] = {m.DECODE_ONE if is_one else m.DECODE: ("decode",)}
            if not is_one:
                rates[m.DECODE_AUGMENT] = ()
            self._observe(rates, CyclicView(self.chosen.samples, self._batch_size), threads)
        self._augment(m.AUGMENT_ONE if is_one else m.AUGMENT, self.transform, num_threads=threads)

    def _measure_alternatives(self) -> None:
        plain = without_policy(self.transform)
        if plain is not None:
            self._augment(m.AUGMENT_PLAIN, plain)
        self._augment(m.AUGMENT_LARGE, self.transform, batch_size=_LARGE * self._batch_size)
        self._measure_index()
        if self.out_side is None or not self.has_files:
            return
        side = round(self.out_side * _MARGIN)
        if statistics.fmean(min(sample.shape[:2]) for sample in self.chosen.samples) > _WORTH * side:
            self.reduced_side = side
            samples, pictures = reduce_samples(self.chosen, side, self.recorder.seconds)
            self._observe({m.DECODE_REDUCED: ("decode",)}, CyclicView(samples, self._batch_size))
            self._augment(m.AUGMENT_REDUCED, self.transform, pictures)

    def _measure_index(self) -> None:
        """Measure decoding with an index, where the CPU decodes crops from files without one."""
        is_decoded_here = self.has_files and self.loader.cache is None and not self._on_gpu
        if not is_decoded_here or self.options["index"] is not None:
            return
        with tempfile.TemporaryDirectory() as folder:
            index = EntropyIndex(Path(folder) / "measured.vgjpeg")
            for sample in self.chosen.samples:
                data = bytes(sample.item.data)
                if is_jpeg(data):
                    index.add(data)
            if not index.summary()["indexed"]:
                return
            index.save()
            view = CyclicView(self.chosen.samples, self._batch_size)
            # It maps the file to memory, so the file is needed no longer.
            self._observe({m.DECODE_INDEXED: ("decode",)}, view, index=index.path)

    def _observe(
        self,
        rates: Mapping[str, tuple[Stage, ...]],
        view: CyclicView,
        threads: int | None = None,
        **changes: Any,
    ) -> None:
        """Of a loader that decodes everything every time; whole pictures, where the user's has a cache."""
        cache = {} if self.loader.cache is None else {"cache": "host", "cache_bytes": 1}
        threads = threads or self._threads
        loader = Loader(view, self.transform, **self.options | cache | {"num_threads": threads} | changes)
        times = StageTimes(is_exact=True)
        loader.observe(times)
        self._plan_loader(rates, loader, view.samples, times)

    def _augment(self, stage: str, transform: Transform, pictures: Pictures | None = None, **changes: int) -> None:
        """Pictures to batches, by a loader; on a GPU, of pictures that are there already."""
        options = self.options | {"cache": "device" if self._on_gpu else None, "cache_side": None} | changes
        pairs = zip(self.chosen.samples, self.chosen.pictures if pictures is None else pictures, strict=False)
        samples = [replace(sample, item=sample.item._replace(data=picture)) for sample, picture in pairs]
        view = CyclicView(samples, options["batch_size"])
        step = self._plan_loader({stage: ()}, Loader(view, transform, **options), samples)
        if self._on_gpu:
            for _ in range(view.batches):  # which brings the pictures there
                step()

    def _measure_loader(self) -> None:
        loader, samples = self.loader, self.chosen.samples
        # Of arrays a loader takes whole batches at once, which a part of one would not let it.
        if isinstance(self.source, Source) and not isinstance(self.source, ArraySource):
            decode = self.recorder.rates.get(m.DECODE_WHOLE)
            if loader.cache is not None and decode is not None:
                # As many as a cache takes in within about two measurements' time.
                most = round(2 * self.recorder.seconds * decode.images_per_second)
                samples = samples[: max(self._batch_size, most)]
            view = CyclicView(samples, self._batch_size, self.source)
            loader = Loader(view, self.transform, **self.options)
        step = self._plan_loader({m.LOADER: ()}, loader, samples)
        if loader.cache is not None:
            # Until every sample was met once, and what the cache has room for is in it.
            self.recorder.announce(m.TITLES[m.LOADER_FIRST])
            images, nbytes, begin = 0, 0, time.perf_counter()
            while images < len(samples):
                more, size = step()
                images, nbytes = images + more, nbytes + size
            span = m.TimedSpan(images, nbytes, time.perf_counter() - begin)
            self.recorder.rates[m.LOADER_FIRST] = m.rate_of([span], self._threads)

    def _plan_loader(
        self,
        rates: Mapping[str, tuple[Stage, ...]],
        loader: Loader,
        samples: Sequence[MeasuredSample],
        times: StageTimes | None = None,
    ) -> Step:
        mean_bytes = statistics.fmean(sample.nbytes for sample in samples)
        step = loader_step(loader, mean_bytes, self.recorder)
        planned = PlannedStep(rates, step, loader.num_threads, times or StageTimes(), loader.prefetch)
        self.recorder.planned.append(planned)
        return step


def without_policy(transform: Transform) -> Transform | None:
    """Crop, resize and normalise alone; None where the transform does nothing else."""
    steps = [step for step in _flat(transform) if not isinstance(step, Identity)]
    kept = [step for step in steps if isinstance(step, _FRAME)]
    if len(kept) == len(steps):
        return None
    return Compose(kept) if kept else Identity()


def _flat(transform: Transform) -> list[Transform]:
    if isinstance(transform, Compose):
        return [step for child in transform.transforms for step in _flat(child)]
    return [transform]


_BAD_SHOWN = 5


@spelt(MeasurementOptions)
def measure(
    source: Any,
    transform: Transform | None = None,
    *,
    alternatives: bool = False,
    on_progress: OnProgress | None = None,
    **chosen: Any,
) -> Measurements:
    """Measure a loader: reading, decoding, augmenting and sending, separately, in pairs and end to end.

    Args:
        source: as for ``Loader``.
        transform: as for ``Loader``; None for ``RandomResizedCrop(224)``, RandAugment and ``Normalize``.
        alternatives: also measure changes that ``advise`` can compare: no policy, larger batches, reduced images.
        on_progress: called before every measurement with (name, measurements done, total).
        chosen: fields of ``MeasurementOptions``: the loader's, and the duration and size of measurements.

    Unreadable samples are skipped and counted.

    Raises:
        SourceError: if no sample can be read.
        ValueError: naming the argument.
    """
    asked = MeasurementOptions(**chosen)
    transform = training_transform("randaugment", "224") if transform is None else transform
    names = ("batch_size", "device", "cache", "cache_side", "fast_decode", "index", "prefetch")
    options: dict[str, Any] = {name: getattr(asked, name) for name in names}
    options["num_threads"] = default_threads() if asked.threads is None else asked.threads
    # Samples are drawn as by a shuffled epoch, then taken in a cycle.
    options |= {"shuffle": False, "on_error": "skip", "rank": 0, "world_size": 1, "targets": False}
    # Made first: what is wrong with the arguments or the place is known before anything is read.
    loader = Loader(source, transform, **options)
    place = shown(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else type(source).__name__
    with Recorder(asked.seconds, on_progress) as recorder:
        session = Session(loader, transform, options, recorder)
        try:
            session.run(asked.limit, alternatives)
        except SourceError as error:
            raise SourceError(f"{place}: {error}") from None
        return _result(session, place)


def training_transform(policy: str, size: str) -> Transform:
    """Build ``RandomResizedCrop(size)`` (none: whole images), the ``policy`` and ``Normalize``.

    Raises PolicyError or ValueError for an unknown policy or size.
    """
    return Compose(
        [build_transform(policy, parse_size(size)), Normalize(variegate.IMAGENET_MEAN, variegate.IMAGENET_STD)]
    )


def _result(session: Session, place: str) -> Measurements:
    loader, chosen, source = session.loader, session.chosen, session.source
    samples = chosen.samples
    shapes = np.array([sample.shape for sample in samples], np.float64)
    cache = session.options["cache"]
    # As a loader's decode="auto" chooses.
    decodes_on_gpu = loader.cache is None and loader.device.startswith("cuda") and is_installed()
    return Measurements(
        source=place,
        samples=len(source) if isinstance(source, Source) else None,
        measured=len(samples),
        skipped=len(chosen.bad),
        bad=tuple(str(error) for error in chosen.bad[:_BAD_SHOWN]),
        mean_bytes=statistics.fmean(sample.nbytes for sample in samples),
        mean_height=float(shapes[:, 0].mean()),
        mean_width=float(shapes[:, 1].mean()),
        mean_pixel_bytes=float(shapes.prod(axis=1).mean()),
        is_remote=session.is_remote,
        has_a_file_each=session.has_files and all(sample.name.member is None for sample in samples),
        in_page_cache=chosen.in_page_cache,
        device=loader.device,
        gpus=torch.cuda.device_count() if torch.cuda.is_available() else 0,
        decoder="gpu" if decodes_on_gpu else "cpu",
        threads=loader.num_threads,
        cores=default_threads(),
        batch_size=loader.batch_size,
        prefetch=loader.prefetch,
        cache=None if cache is None else os.fspath(cache),
        available_memory=available_memory(),
        rates=session.recorder.rates,
        out_side=session.out_side,
        reduced_side=session.reduced_side,
        kernels=mismatch(),
        notes=(*source.notes(), *session.recorder.notes()),
    )
