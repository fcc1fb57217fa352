"""Samples held in memory, to measure a loader without its storage or without decoding."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np
from PIL import Image

from variegate.arrays import UInt8Array
from variegate.data.base import Item, SampleRef, SourceError
from variegate.data.samples import Samples, Store, no_labels
from variegate.errors import DecodeError
from variegate.io.amounts import pluralize
from variegate.loader.reading import decode_picture
from variegate.loader.shuffle import Permutation

_MAX_BYTES = 512 << 20  # of files and of pixels together
_CHUNK = 8  # samples per thread between looks at the clock
# Longer than any measurement, so that no epoch ends during one.
_LENGTH = 1 << 31
_MAX_SMALLER = 256
_QUALITY = 90

Fetch = Callable[[], Item]


@dataclass(frozen=True)
class HeldSample:
    """A readable sample, stored and decoded: ``pixels`` uint8 [H, W, C]."""

    name: SampleRef
    item: Item
    pixels: UInt8Array

    @property
    def nbytes(self) -> int:
        """Stored size in bytes."""
        data = self.item.data
        return data.nbytes if isinstance(data, np.ndarray) else len(data)


@dataclass
class HeldSamples:
    good: list[HeldSample] = field(default_factory=list)
    bad: list[DecodeError] = field(default_factory=list)


class _MemoryStore(Store):
    """Items in memory, repeated without end."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items

    def read(self, samples: Samples, row: int) -> Item:
        return self._items[row % len(self._items)]

    def name(self, row: int) -> SampleRef:
        return SampleRef("memory", str(row % len(self._items)))

    def digest(self, samples: Samples) -> str:
        return "in memory"


def samples_in_memory(items: Sequence[Item], classes: tuple[str, ...]) -> Samples:
    return Samples(place="memory", size=_LENGTH, store=_MemoryStore(items), classes=classes, label=no_labels)


def hold_samples(source: Samples, limit: int, seconds: float, threads: int) -> HeldSamples:
    """Read and decode up to ``limit`` random samples, for about ``seconds``.

    Raises SourceError if no sample is readable.
    """
    held = HeldSamples()
    candidates = _candidates(source, limit)
    nbytes = 0
    begin = time.perf_counter()
    with ThreadPoolExecutor(threads, thread_name_prefix="variegate-doctor") as pool:
        while chunk := list(islice(candidates, _CHUNK * threads)):
            for sample in pool.map(_load, chunk):
                if isinstance(sample, DecodeError):
                    held.bad.append(sample)
                else:
                    held.good.append(sample)
                    nbytes += sample.nbytes + sample.pixels.nbytes
            is_long = time.perf_counter() - begin >= seconds
            if held.good and (is_long or nbytes >= _MAX_BYTES):
                break
    if not held.good:
        reason = f"; {held.bad[0]}" if held.bad else ""
        raise SourceError(f"none of {pluralize(len(held.bad), 'sample')} could be read{reason}")
    return held


def _candidates(source: Samples, limit: int) -> Iterator[tuple[SampleRef, Fetch]]:
    number = min(limit, len(source))
    indices = Permutation(len(source), seed=0, epoch=0)(np.arange(number, dtype=np.int64))
    for index in indices.tolist():
        yield source.name(index), partial(source.read, index)


def _load(candidate: tuple[SampleRef, Fetch]) -> HeldSample | DecodeError:
    name, fetch = candidate
    try:
        item = fetch()
        return HeldSample(name, item, decode_picture(item.data, str(name), None))
    except DecodeError as error:
        return error


def smaller_files(samples: Sequence[HeldSample], side: int) -> list[Item]:
    """Return some samples as JPEGs whose shorter side is at most ``side``, as ``variegate pack --size`` writes them.

    Pixels must have 1 or 3 channels.
    """
    items = []
    for sample in samples[:_MAX_SMALLER]:
        height, width = sample.pixels.shape[:2]
        factor = min(1.0, side / min(height, width))
        size = max(1, round(width * factor)), max(1, round(height * factor))
        pixels = sample.pixels[:, :, 0] if sample.pixels.shape[2] == 1 else sample.pixels
        image = Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR)
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=_QUALITY)
        items.append(sample.item._replace(data=buffer.getvalue()))
    return items
