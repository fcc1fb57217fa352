"""From the place of samples to what a batch is made of: read ahead, by threads of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.data.decode import is_jpeg
from variegate.data.loader.cache import PixelCache
from variegate.data.loader.cache.pictures import decode_picture
from variegate.data.sources.base import Item, SampleName, Source, StreamItem
from variegate.errors import DecodeError

# Samples that a thread reads at a time from a local disk.
_CHUNK = 8


@dataclass
class Rows:
    """The samples of one batch. ``data``: bytes of a JPEG, pixels, or the error that came instead."""

    ids: npt.NDArray[np.uint64]
    padding: npt.NDArray[np.bool_]
    done: int  # samples of the epoch that are done after this batch
    names: list[SampleName] = field(default_factory=list)
    data: list[Any] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)


# Waits until the rows of a step are read; None where there are no more.
Waiting = Callable[[], Rows | None]


class Reader:
    """Reads samples, and decodes those that must be decoded whole.

    ``side``: pictures in a cache are reduced to it. With a cache every picture is decoded whole, held or not: pixels
    must not depend on what there was room for.
    """

    def __init__(self, cache: PixelCache | None, side: int | None, max_pixels: int | None) -> None:
        self._cache, self._side, self._max_pixels = cache, side, max_pixels

    def read(self, sample_id: int, name: SampleName, fetch: Callable[[], Item]) -> tuple[Any, Any]:
        """(data, label) of a sample; data is a DecodeError, and label None, where it could not be read."""
        held = None if self._cache is None else self._cache.get(sample_id)
        if held is not None:
            return held
        try:
            item = fetch()
            return self._open(sample_id, str(name), item), item.label
        except DecodeError as error:
            return error, None

    def _open(self, sample_id: int, name: str, item: Item) -> Any:
        data = item.data
        if self._cache is None:
            return data if isinstance(data, np.ndarray) or is_jpeg(data) else self._decode(data, name, None)
        if isinstance(data, np.ndarray):
            # In memory already; only another memory would be a gain.
            return self._cache.put(sample_id, data, item.label) if self._cache.holds_device_memory else data
        return self._cache.put(sample_id, self._decode(data, name, self._side), item.label)

    def _decode(self, data: bytes, name: str, side: int | None) -> npt.NDArray[np.uint8]:
        return decode_picture(data, name, side, self._max_pixels)

    def read_indices(
        self, source: Source, indices: Sequence[int], ids: Sequence[int]
    ) -> list[tuple[SampleName, Any, Any]]:
        """(name, data, label) of each."""
        names = [source.name(index) for index in indices]
        return [
            (name, *self.read(sample_id, name, partial(source.read, index)))
            for index, sample_id, name in zip(indices, ids, names, strict=True)
        ]

    def read_stream_item(self, given: StreamItem) -> tuple[SampleName, Any, Any]:
        """As ``read_indices``, for what a stream has read already."""

        def fetch() -> Item:
            if isinstance(given.item, DecodeError):
                raise given.item
            return given.item

        return (given.name, *self.read(given.id, given.name, fetch))


def start_reading(
    reader: Reader, source: Source, pool: ThreadPoolExecutor, indices: npt.NDArray[np.int64], rows: Rows
) -> Waiting:
    """Begin to read the samples ``indices``, by all threads of the pool."""
    chunk = 1 if source.is_remote else _CHUNK
    numbers, ids = indices.tolist(), rows.ids.tolist()
    parts = [
        pool.submit(reader.read_indices, source, numbers[i : i + chunk], ids[i : i + chunk])
        for i in range(0, len(numbers), chunk)
    ]

    def wait() -> Rows:
        for part in parts:
            for name, data, label in part.result():
                rows.names.append(name)
                rows.data.append(data)
                rows.labels.append(label)
        return rows

    return wait


def start_stream(
    reader: Reader,
    steps: Iterable[tuple[list[StreamItem], npt.NDArray[np.bool_], int]],
    stream_pool: ThreadPoolExecutor,
    pool: ThreadPoolExecutor,
) -> Iterator[Waiting]:
    """Steps of a stream, read by the one thread of ``stream_pool``, opened by those of ``pool``."""
    left = iter(steps)
    while True:
        step = stream_pool.submit(next, left, None)

        def wait(step: Any = step) -> Rows | None:
            found = step.result()
            if found is None:
                return None
            items, padding, done = found
            rows = Rows(np.array([item.id for item in items], np.uint64), padding, done)
            for name, data, label in pool.map(reader.read_stream_item, items):
                rows.names.append(name)
                rows.data.append(data)
                rows.labels.append(label)
            return rows

        yield wait
