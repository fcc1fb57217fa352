"""From the place of samples to what a batch is made of: read ahead, by threads of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.backends.inputs import check_image
from variegate.data.decode import is_jpeg
from variegate.data.loader.cache import PixelCache
from variegate.data.loader.cache.pictures import decode_picture, decode_unless_large
from variegate.data.sources.base import Item, PixelSource, SampleName, Source, StreamItem
from variegate.errors import DecodeError

# Samples that a thread reads at a time from a local disk.
_CHUNK = 8
# Threads that wait for a network at the same time.
_REMOTE_READERS = 32


def reader_threads(is_remote: bool, num_threads: int) -> int:
    """How many threads read for ``num_threads`` that decode and augment."""
    return max(_REMOTE_READERS, num_threads) if is_remote else num_threads


@dataclass
class Rows:
    """The samples of one batch.

    ``data``: for each row the bytes of a JPEG, pixels, or the error that came instead; or all as one array
    [N, H, W, C]. ``labels``: one for each, or an array of them. ``name_of``: what a row is called. ``others``: where a
    source cannot be asked for them, (data, label) of samples that may stand in for a row.
    """

    ids: npt.NDArray[np.uint64]
    padding: npt.NDArray[np.bool_]
    done: int  # samples of the epoch that are done after this batch
    name_of: Callable[[int], SampleName]
    data: Any
    labels: Any
    others: Callable[[int], Iterator[tuple[Any, Any]]] | None = None
    copies: npt.NDArray[np.uint32] | None = None  # which copy of its sample a row is; None for the first


# Waits until the rows of a step are read; None where there are no more.
Waiting = Callable[[], Rows | None]


class Reader:
    """Reads samples, and decodes those that must be decoded whole.

    ``side``: pictures in a cache are reduced to it. With a cache every picture is decoded whole, held or not: pixels
    must not depend on what there was room for.
    """

    def __init__(
        self,
        cache: PixelCache | None,
        side: int | None,
        max_pixels: int | None,
        in_memory: bool,
        max_decode_bytes: int | None = None,
    ) -> None:
        self._cache, self._side, self._limits = cache, side, (max_pixels, max_decode_bytes)
        # Pixels that lie in memory already gain only by another memory.
        self.may_gather = in_memory and (cache is None or not cache.holds_device_memory)

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
        except Exception as error:  # whatever a data set or a storage raises for this sample; the next may be good
            wrapped = DecodeError(str(name_of()), f"cannot be read ({type(error).__name__}: {error})")
            wrapped.__cause__ = error
            return wrapped, None

    def _open(self, sample_id: int, name_of: Callable[[], SampleName], item: Item) -> Any:
        data = item.data
        if self.may_gather:
            return data
        if isinstance(data, np.ndarray):
            data = check_image(data, "its pixels")
        if self._cache is None:
            # A JPEG's size is in its header, and the crop decides how much of it is decoded.
            if isinstance(data, np.ndarray) or is_jpeg(data):
                return data
            return decode_unless_large(data, str(name_of()), *self._limits)
        picture = decode_picture(data, str(name_of()), self._side, *self._limits)
        return self._cache.put(sample_id, picture, item.label)

    def read_indices(
        self,
        source: Source,
        indices: Sequence[int],
        ids: Sequence[int],
        is_stopped: Callable[[], bool] | None = None,
    ) -> list[tuple[Any, Any]]:
        """(data, label) of each; fewer where nobody wants them any more."""
        read = []
        for index, sample_id in zip(indices, ids, strict=True):
            if is_stopped is not None and is_stopped():
                break
            read.append(self.read(sample_id, partial(source.name, index), partial(source.read, index)))
        return read

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
    pool: Executor,
    indices: npt.NDArray[np.int64],
    padding: npt.NDArray[np.bool_],
    done: int,
    is_stopped: Callable[[], bool] | None = None,
    copies: npt.NDArray[np.uint32] | None = None,
) -> Waiting:
    """Begin to read the samples ``indices``, by all threads of the pool, until ``is_stopped``."""
    ids, numbers = source.ids(indices), indices.tolist()
    rows = partial(Rows, ids, padding, done, lambda row: source.name(numbers[row]), copies=copies)
    if reader.may_gather and isinstance(source, PixelSource) and source.is_stacked:
        return lambda: rows(source.pixels(indices), source.labels(indices))
    chunk = 1 if source.is_remote else _CHUNK
    keys = ids.tolist()
    parts = [
        pool.submit(reader.read_indices, source, numbers[i : i + chunk], keys[i : i + chunk], is_stopped)
        for i in range(0, len(numbers), chunk)
    ]

    def wait() -> Rows:
        read = [pair for part in parts for pair in part.result()]
        return rows([data for data, _ in read], [label for _, label in read])

    return wait


def start_stream(
    reader: Reader,
    steps: Iterable[tuple[list[Passing], npt.NDArray[np.bool_], int]],
    stream_pool: Executor,
    pool: Executor,
) -> Iterator[Waiting]:
    """Steps of a stream, read by the one thread of ``stream_pool``, opened by those of ``pool``."""
    left = iter(steps)
    while True:
        step = stream_pool.submit(next, left, None)

        def wait(step: Any = step) -> Rows | None:
            found = step.result()
            if found is None:
                return None
            passing, padding, done = found
            items = [item for item, _ in passing]
            read = list(pool.map(reader.read_stream_item, items))

            def others(row: int) -> Iterator[tuple[Any, Any]]:
                """What came before it in the stream; at its very beginning the rows after it."""
                yield from (reader.read_stream_item(item) for item in reversed(passing[row][1]))
                yield from read[row + 1 :]

            ids = np.array([item.id for item in items], np.uint64)
            data, labels = [data for data, _ in read], [label for _, label in read]
            return Rows(ids, padding, done, lambda row: items[row].name, data, labels, others)

        yield wait


# A sample of a stream, and some that came before it, which may stand in for it.
Passing = tuple[StreamItem, tuple[StreamItem, ...]]


def with_those_before(stream: Iterable[StreamItem], number: int) -> Iterator[Passing]:
    """Each sample with up to ``number`` before it, the nearest last."""
    before: deque[StreamItem] = deque(maxlen=number)
    for item in stream:
        yield item, tuple(before)
        before.append(item)
