"""The measurements of one loader, in order: stages alone, stages together, what else might be, the whole."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.augmenter import Augmenter
from variegate.data.loader import Loader
from variegate.data.loader.making import conditions_by_labels
from variegate.data.loader.observer import Stage, StageTimes
from variegate.data.loader.reading import reader_threads
from variegate.data.sources.base import Source
from variegate.data.sources.objects.arrays import ArraySource
from variegate.diagnose import measurements as m
from variegate.diagnose.alternatives import reduce_samples, side_for, without_policy
from variegate.diagnose.recorder import Recorder, Step, TimedSpan, rate_of
from variegate.diagnose.stages import loader_step, read_step, stream_step, transfer_step
from variegate.diagnose.views import InMemoryView, MeasuredSample, SourceView, with_pictures
from variegate.diagnose.working_set import draw_working_set
from variegate.transforms import Transform

_LARGE = 4  # batches in one, to see what a batch costs besides its images
_SIDE_SHOWN_BY = 8  # samples whose outputs tell whether all have one size


class Session:
    """``options``: those that ``loader`` was made with."""

    def __init__(self, loader: Loader, transform: Transform, options: dict[str, Any], recorder: Recorder) -> None:
        self.loader, self.options, self.recorder = loader, options, recorder
        self.source, self.transform = loader.source, transform
        self.is_remote = not isinstance(self.source, Source) or self.source.is_remote
        self.reduced_side: int | None = None
        self._threads, self._batch_size, self._device = loader.num_threads, loader.batch_size, loader.device
        self._readers = reader_threads(self.is_remote, self._threads)

    def run(self, limit: int, alternatives: bool) -> None:
        """Fill ``recorder``. Raises SourceError where no sample is good."""
        recorder = self.recorder
        recorder.announce(m.TITLES[m.READ_FIRST])
        chosen = self.chosen = draw_working_set(
            self.source, limit, 2 * recorder.seconds, self._readers, self._threads, self.options["cache_side"]
        )
        recorder.rates.update(chosen.rates)
        self.has_files = not isinstance(chosen.samples[0].item.data, np.ndarray)
        self._view = (
            SourceView(self.source, chosen.samples, self._batch_size) if isinstance(self.source, Source) else None
        )
        recorder.announce("kernels, compiled at the first start only")
        self.out_side = self._prepare()
        self._measure_reading()
        self._measure_stages(self._threads)
        if self._threads > 1:
            self._measure_stages(1)
        if self._device.startswith("cuda"):
            recorder.plan(m.TRANSFER, transfer_step(chosen.pictures, self._device, self._batch_size), 1)
        if alternatives:
            self._measure_alternatives()
        self._measure_loader()
        recorder.run()

    def _prepare(self) -> int | None:
        """Compile what the transform needs -> the shorter side of its outputs, where they have one size."""
        pictures = self.chosen.pictures[:_SIDE_SHOWN_BY]
        conditions = conditions_by_labels([sample.item.label for sample in self.chosen.samples[: len(pictures)]])
        outputs = Augmenter(self.transform, self._device, num_threads=1)(pictures, conditions=conditions)
        sizes = {tuple(output.shape[-2:]) for output in outputs}
        return min(sizes.pop()) if len(sizes) == 1 else None

    def _measure_reading(self) -> None:
        if self._view is not None:
            self.recorder.plan(m.READ, read_step(self._view, self._readers), self._readers)
            if self.has_files:
                self._observe({m.READ_DECODE: ("read", "decode")}, self._view, self._threads)
        elif not isinstance(self.source, Source):
            self.recorder.plan(m.READ, stream_step(self.source, self._batch_size), 1)

    def _measure_stages(self, threads: int) -> None:
        """By loaders whose files, or pictures, lie in memory."""
        is_one = threads < self._threads
        if self.has_files:
            rates: dict[str, tuple[Stage, ...]] = {m.DECODE_ONE if is_one else m.DECODE: ("decode",)}
            if not is_one:
                rates[m.DECODE_AUGMENT] = ()
            self._observe(rates, self._in_memory(self.chosen.samples), threads)
        self._augment(m.AUGMENT_ONE if is_one else m.AUGMENT, self.transform, threads=threads)

    def _measure_alternatives(self) -> None:
        plain = without_policy(self.transform)
        if plain is not None:
            self._augment(m.AUGMENT_PLAIN, plain)
        self._augment(m.AUGMENT_LARGE, self.transform, batch_size=_LARGE * self._batch_size)
        side = side_for(self.out_side, self.chosen.samples)
        if side is None or not self.has_files:
            return
        self.reduced_side = side
        samples, pictures = reduce_samples(self.chosen, side, self.recorder.seconds)
        self._observe({m.DECODE_REDUCED: ("decode",)}, self._in_memory(samples), self._threads)
        self._augment(m.AUGMENT_REDUCED, self.transform, pictures)

    def _in_memory(self, samples: Sequence[MeasuredSample]) -> InMemoryView:
        return InMemoryView(samples, self._batch_size)

    def _observe(self, rates: Mapping[str, tuple[Stage, ...]], view: InMemoryView | SourceView, threads: int) -> None:
        """Of a loader that decodes everything every time; whole pictures, where the user's has a cache."""
        cache = {} if self.loader.cache is None else {"cache": "host", "cache_bytes": 1}
        loader = Loader(view, self.transform, **self.options | cache | {"num_threads": threads})
        times = StageTimes(is_exact=True)
        loader.observe(times)
        mean_bytes = sum(sample.nbytes for sample in view.samples) / len(view.samples)
        self._plan_loader(rates, loader, mean_bytes, times)

    def _augment(
        self,
        stage: str,
        transform: Transform,
        pictures: Sequence[npt.NDArray[np.uint8]] | None = None,
        *,
        threads: int | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Pictures to batches, by a loader; on a GPU, of pictures that are there already."""
        pictures, number = self.chosen.pictures if pictures is None else pictures, batch_size or self._batch_size
        view = InMemoryView(with_pictures(self.chosen.samples, pictures), number)
        changes = {
            "batch_size": number,
            "num_threads": threads or self._threads,
            "cache": "device" if self._device.startswith("cuda") else None,
            "cache_side": None,
        }
        mean_bytes = sum(picture.nbytes for picture in pictures) / len(pictures)
        step = self._plan_loader({stage: ()}, Loader(view, transform, **self.options | changes), mean_bytes)
        if self._device.startswith("cuda"):
            for _ in range(view.batches):  # which brings the pictures there
                step()

    def _measure_loader(self) -> None:
        loader, samples = self.loader, self.chosen.samples
        # Of arrays a loader takes whole batches at once, which a part of one would not let it.
        if isinstance(self.source, Source) and not isinstance(self.source, ArraySource):
            samples = samples[: self._cached_at_most()]
            loader = Loader(SourceView(self.source, samples, self._batch_size), self.transform, **self.options)
        mean_bytes = sum(sample.nbytes for sample in samples) / len(samples)
        step = self._plan_loader({m.LOADER: ()}, loader, mean_bytes)
        if loader.cache is not None:
            self._measure_first_epoch(step, len(samples))

    def _plan_loader(
        self,
        rates: Mapping[str, tuple[Stage, ...]],
        loader: Loader,
        mean_bytes: float,
        times: StageTimes | None = None,
    ) -> Step:
        # Batches that were made while others were measured do not count. Two are made at a time and come in pairs.
        ahead = loader.prefetch
        return self.recorder.plan(
            rates,
            loader_step(loader, mean_bytes),
            loader.num_threads,
            times=times,
            lead=ahead + 2 if ahead else 1,
            steps_at_least=4 if ahead else 1,
            works_ahead=ahead + 1 if ahead else 0,
        )

    def _measure_first_epoch(self, step: Step, number: int) -> None:
        """Until every sample was met once, and what the cache has room for is in it."""
        self.recorder.announce(m.TITLES[m.LOADER_FIRST])
        images, nbytes, begin = 0, 0, time.perf_counter()
        while images < number:
            more, size = step()
            images, nbytes = images + more, nbytes + size
        span = TimedSpan(images, nbytes, time.perf_counter() - begin)
        self.recorder.rates[m.LOADER_FIRST] = rate_of([span], self._threads)

    def _cached_at_most(self) -> int | None:
        """Samples that a cache takes in within about two measurements' time; None for all."""
        decode = self.recorder.rates.get(m.DECODE_WHOLE)
        if self.loader.cache is None or decode is None:
            return None
        return max(self._batch_size, round(2 * self.recorder.seconds * decode.images_per_second))
