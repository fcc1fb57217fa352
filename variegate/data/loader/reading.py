"""From the place of samples to what a batch is made of: read ahead, by threads of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.data.decode import is_jpeg
from variegate.data.loader.cache import PixelCache
from variegate.data.loader.cache.pictures import decode_picture
from variegate.data.sources.arrays import ArraySource
from variegate.data.sources.base import Item, SampleName, Source, StreamItem
from variegate.errors import DecodeError

# Samples that a thread reads at a time from a local disk.
_CHUNK = 8


@dataclass
class Rows:
    """The samples of one batch.

    ``data``: for each row the bytes of a JPEG, pixels, or the error that came instead; or all as one array
    [N, H, W, C]. ``labels``: one for each, or an array of them. ``name_of``: what a row is called. ``before``: (data,
    label) of the rows of the step before, where a source has no other way to them.
    """

    ids: npt.NDArray[np.uint64]
    padding: npt.NDArray[np.bool_]
    done: int  # samples of the epoch that are done after this batch
    name_of: Callable[[int], SampleName]
    data: Any
    labels: Any
    before: Callable[[], list[tuple[Any, Any]]] = list


# Waits until the rows of a step are read; None where there are no more.
Waiting = Callable[[], Rows | None]


class Reader:
    """Reads samples, and decodes those that must be decoded whole.

    ``side``: pictures in a cache are reduced to it. With a cache every picture is decoded whole, held or not: pixels
    must not depend on what there was room for.
    """

    def __init__(self, cache: PixelCache | None, side: int | None, max_pixels: int | None) -> None:
        self._cache, self._side, self._max_pixels = cache, side, max_pixels

    def read(self, sample_id: int, name_of: Callable[[], SampleName], fetch: Callable[[], Item]) -> tuple[Any, Any]:
        """(data, label) of a sample; data is a DecodeError, and label None, where it could not be read."""
        held = None if self._cache is None else self._cache.get(sample_id)
        if held is not None:
            return held
        try:
            item = fetch()
            return self._open(sample_id, name_of, item), item.label
        except DecodeError as error:
            return error, None

    def _open(self, sample_id: int, name_of: Callable[[], SampleName], item: Item) -> Any:
        data = item.data
        if isinstance(data, np.ndarray):
            # In memory already; only another memory would be a gain.
            is_gain = self._cache is not None and self._cache.holds_device_memory
            return self._cache.put(sample_id, data, item.label) if is_gain and self._cache else data
        if self._cache is not None:
            picture = decode_picture(data, str(name_of()), self._side, self._max_pixels)
            return self._cache.put(sample_id, picture, item.label)
        # A JPEG's size is in its header, and the crop decides how much of it is decoded.
        return data if is_jpeg(data) else decode_picture(data, str(name_of()), None, self._max_pixels)

    def read_indices(self, source: Source, indices: Sequence[int], ids: Sequence[int]) -> list[tuple[Any, Any]]:
        """(data, label) of each."""
        return [
            self.read(sample_id, partial(source.name, index), partial(source.read, index))
            for index, sample_id in zip(indices, ids, strict=True)
        ]

    @property
    def may_gather(self) -> bool:
        """Pixels in memory may be taken all at once: no cache wants them one by one."""
        return self._cache is None or not self._cache.holds_device_memory

    def read_stream_item(self, given: StreamItem) -> tuple[Any, Any]:
        """As ``read_indices``, for what a stream has read already."""

        def fetch() -> Item:
            if isinstance(given.item, DecodeError):
                raise given.item
            return given.item

        return self.read(given.id, lambda: given.name, fetch)


def start_reading(
    reader: Reader,
    source: Source,
    pool: ThreadPoolExecutor,
    indices: npt.NDArray[np.int64],
    padding: npt.NDArray[np.bool_],
    done: int,
) -> Waiting:
    """Begin to read the samples ``indices``, by all threads of the pool."""
    ids, numbers = source.ids(indices), indices.tolist()
    rows = partial(Rows, ids, padding, done, lambda row: source.name(numbers[row]))
    if isinstance(source, ArraySource) and source.is_stacked and reader.may_gather:
        return lambda: rows(source.pixels(indices), source.labels(indices))
    chunk = 1 if source.is_remote else _CHUNK
    keys = ids.tolist()
    parts = [
        pool.submit(reader.read_indices, source, numbers[i : i + chunk], keys[i : i + chunk])
        for i in range(0, len(numbers), chunk)
    ]

    def wait() -> Rows:
        read = [pair for part in parts for pair in part.result()]
        return rows([data for data, _ in read], [label for _, label in read])

    return wait


def start_stream(
    reader: Reader,
    steps: Iterable[tuple[list[StreamItem], npt.NDArray[np.bool_], int]],
    stream_pool: ThreadPoolExecutor,
    pool: ThreadPoolExecutor,
) -> Iterator[Waiting]:
    """Steps of a stream, read by the one thread of ``stream_pool``, opened by those of ``pool``."""
    left = iter(steps)
    before: list[StreamItem] = []

    def advance() -> tuple[list[StreamItem], npt.NDArray[np.bool_], int, list[StreamItem]] | None:
        nonlocal before
        step = next(left, None)
        if step is None:
            return None
        last, before = before, step[0]
        return *step, last

    while True:
        step = stream_pool.submit(advance)

        def wait(step: Any = step) -> Rows | None:
            found = step.result()
            if found is None:
                return None
            items, padding, done, last = found
            read = list(pool.map(reader.read_stream_item, items))
            ids = np.array([item.id for item in items], np.uint64)
            data, labels = [data for data, _ in read], [label for _, label in read]
            spare = partial(_read_all, reader, last)
            return Rows(ids, padding, done, lambda row: items[row].name, data, labels, spare)

        yield wait


def _read_all(reader: Reader, items: list[StreamItem]) -> list[tuple[Any, Any]]:
    return [reader.read_stream_item(item) for item in items]
