"""From the place of samples to what a batch is made of: read ahead, by threads of its own."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.backends.inputs import check_image
from variegate.data.decode import is_jpeg
from variegate.data.loader.cache import PixelCache
from variegate.data.loader.cache.pictures import decode_picture, decode_unless_large
from variegate.data.loader.observer import Observer, Stage
from variegate.data.loader.options import LoaderOptions
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

    def alone(self, row: int) -> Rows:
        """One of them, as a batch."""
        one, name = slice(row, row + 1), self.name_of(row)
        copies = None if self.copies is None else self.copies[one]
        data, labels = self.data[one], self.labels[one]
        return Rows(self.ids[one], self.padding[one], self.done, lambda _: name, data, labels, copies=copies)


# Waits until the rows of a step are read; None where there are no more.
Waiting = Callable[[], Rows | None]


class SampleToRead(NamedTuple):
    """A sample that is to be read; ``name`` and ``fetch`` are asked for by the thread that reads it."""

    id: int
    name: Callable[[], SampleName]
    fetch: Callable[[], Item]


class Reader:
    """Reads samples, and decodes those that must be decoded whole.

    With a cache every picture is decoded whole, whether the cache has room for it or not: pixels must not depend on
    that. ``in_memory``: the source's pixels lie in memory already, and gain only by another memory.
    """

    def __init__(self, options: LoaderOptions, cache: PixelCache | None, in_memory: bool) -> None:
        self._cache, self._side, self._limits = cache, options.cache_side, options.decode_limits
        self.may_gather = in_memory and (cache is None or not cache.holds_device_memory)

    def read(
        self,
        samples: Iterable[SampleToRead],
        observer: Observer | None = None,
        is_stopped: Callable[[], bool] | None = None,
    ) -> list[tuple[Any, Any]]:
        """(data, label) of each; fewer where nobody wants them any more.

        Data is a DecodeError, and label None, where a sample could not be read.
        """
        clock, results = _Clock(), []
        for sample in samples:
            if is_stopped is not None and is_stopped():
                break
            results.append(self._read(sample, clock))
        if observer is not None:
            clock.tell(observer)
        return results

    def _read(self, sample: SampleToRead, clock: _Clock) -> tuple[Any, Any]:
        cached = None if self._cache is None else self._cache.get(sample.id)
        if cached is not None:
            clock.stop("read", cached[0].nbytes)
            return cached
        try:
            item = sample.fetch()
            nbytes = item.data.nbytes if isinstance(item.data, np.ndarray) else len(item.data)
            clock.stop("read", nbytes)
            data = self._open(sample, item)
            if not isinstance(item.data, np.ndarray) and data is not item.data:
                clock.stop("decode", nbytes)
            return data, item.label
        except DecodeError as error:
            return error, None
        except Exception as error:  # whatever a data set or a storage raises for this sample; the next may be good
            wrapped = DecodeError(str(sample.name()), f"cannot be read ({type(error).__name__}: {error})")
            wrapped.__cause__ = error
            return wrapped, None

    def _open(self, sample: SampleToRead, item: Item) -> Any:
        data = item.data
        if self.may_gather:
            return data
        if isinstance(data, np.ndarray):
            data = check_image(data, "its pixels")
        if self._cache is None:
            # A JPEG's size is in its header, and the crop decides how much of it is decoded.
            if isinstance(data, np.ndarray) or is_jpeg(data):
                return data
            return decode_unless_large(data, str(sample.name()), *self._limits)
        picture = decode_picture(data, str(sample.name()), self._side, *self._limits)
        return self._cache.put(sample.id, picture, item.label)


class _Clock:
    """Where the time of some samples goes, told to an observer at once."""

    def __init__(self) -> None:
        self._at = time.perf_counter()
        self._stages: dict[Stage, list[Any]] = {}

    def stop(self, stage: Stage, nbytes: int) -> None:
        """All the time since the last stop went into one sample's stage."""
        now = time.perf_counter()
        total = self._stages.setdefault(stage, [0.0, 0, 0])
        total[0] += now - self._at
        total[1] += 1
        total[2] += nbytes
        self._at = now

    def tell(self, observer: Observer) -> None:
        for stage, total in self._stages.items():
            observer.stage_done(stage, *total)


@dataclass(frozen=True)
class StepToRead:
    """What a rank reads for one batch: ``indices``, of which ``padding`` repeat others; which ``copies`` of their
    samples they are; and how many samples of the epoch are ``done`` afterwards."""

    indices: npt.NDArray[np.int64]
    padding: npt.NDArray[np.bool_]
    copies: npt.NDArray[np.uint32]
    done: int


def start_reading(
    reader: Reader,
    source: Source,
    pool: Executor,
    step: StepToRead,
    observer: Observer,
    is_stopped: Callable[[], bool] | None = None,
) -> Waiting:
    """Begin to read a step, by all threads of the pool, until ``is_stopped``."""
    ids, numbers = source.ids(step.indices), step.indices.tolist()
    rows = partial(Rows, ids, step.padding, step.done, lambda row: source.name(numbers[row]), copies=step.copies)
    if reader.may_gather and isinstance(source, PixelSource) and source.is_stacked:

        def gather() -> Rows:
            begin = time.perf_counter()
            pixels, labels = source.pixels(step.indices), source.labels(step.indices)
            observer.stage_done("read", time.perf_counter() - begin, len(ids), pixels.nbytes)
            return rows(pixels, labels)

        return gather
    chunk = 1 if source.is_remote else _CHUNK
    samples = samples_of(source, numbers, ids.tolist())
    parts = [
        pool.submit(reader.read, samples[i : i + chunk], observer, is_stopped) for i in range(0, len(samples), chunk)
    ]

    def wait() -> Rows:
        read = [pair for part in parts for pair in part.result()]
        return rows([data for data, _ in read], [label for _, label in read])

    return wait


def samples_of(source: Source, indices: Sequence[int], ids: Sequence[int]) -> list[SampleToRead]:
    pairs = zip(ids, indices, strict=True)
    return [SampleToRead(id, partial(source.name, index), partial(source.read, index)) for id, index in pairs]


def start_stream(
    reader: Reader,
    steps: Iterable[tuple[list[Passing], npt.NDArray[np.bool_], int]],
    stream_pool: Executor,
    pool: Executor,
    observer: Observer,
) -> Iterator[Waiting]:
    """Steps of a stream, read by the one thread of ``stream_pool``, opened by those of ``pool``."""
    rest = iter(steps)

    def read_step() -> tuple[list[Passing], npt.NDArray[np.bool_], int] | None:
        begin = time.perf_counter()
        step = next(rest, None)
        observer.stage_done("read", time.perf_counter() - begin, 0, 0)  # samples are counted as they are opened
        return step

    while True:
        future = stream_pool.submit(read_step)

        def wait(future: Any = future) -> Rows | None:
            step = future.result()
            if step is None:
                return None
            passing, padding, done = step
            items = [item for item, _ in passing]
            parts = pool.map(lambda item: reader.read([_of_stream(item)], observer), items)
            read = [pair for part in parts for pair in part]

            def others(row: int) -> Iterator[tuple[Any, Any]]:
                """What came before it in the stream; at its very beginning the rows after it."""
                yield from (reader.read([_of_stream(item)])[0] for item in reversed(passing[row][1]))
                yield from read[row + 1 :]

            ids = np.array([item.id for item in items], np.uint64)
            data, labels = [data for data, _ in read], [label for _, label in read]
            return Rows(ids, padding, done, lambda row: items[row].name, data, labels, others)

        yield wait


def _of_stream(item: StreamItem) -> SampleToRead:
    def fetch() -> Item:
        if isinstance(item.item, DecodeError):
            raise item.item
        return item.item

    return SampleToRead(item.id, lambda: item.name, fetch)


# A sample of a stream, and some that came before it, which may stand in for it.
Passing = tuple[StreamItem, tuple[StreamItem, ...]]


def with_those_before(stream: Iterable[StreamItem], number: int) -> Iterator[Passing]:
    """Each sample with up to ``number`` before it, the nearest last."""
    before: deque[StreamItem] = deque(maxlen=number)
    for item in stream:
        yield item, tuple(before)
        before.append(item)
