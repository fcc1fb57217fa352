"""One pass over a source, in its order: threads read, decode and measure, each some samples at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from variegate.apps.curate.scan.row import Row, row_of
from variegate.errors import DecodeError
from variegate.formats.base import Item, Source, StreamItem, StreamSource
from variegate.formats.filtered import sample_key, stream_key

# So few that threads end together, and so many that handing them over costs nothing.
_SAMPLES, _BYTES = 16, 8 << 20
_AHEAD = 4  # for each thread
# Reading an address is waiting.
_REMOTE_THREADS = 16


@dataclass(frozen=True)
class Position:
    """How far a pass has come: ``samples`` are done; of a stream, the next is the one at ``place`` of ``shard``."""

    samples: int = 0
    shard: int = 0
    place: int = 0


class Measured(NamedTuple):
    """Rows in the source's order, and how far the pass has come with them."""

    rows: list[Row]
    position: Position


# Gives rows, and the position behind them.
Work = tuple[Callable[[], list[Row]], Position]


def pass_over(source: Source | StreamSource, threads: int, begin: Position) -> Generator[Measured, None, None]:
    """Rows of all samples from ``begin`` on. Closing the iterator ends the pass with what its threads have begun."""
    number = threads
    work: Iterator[Work]
    if isinstance(source, Source):
        number = max(threads, _REMOTE_THREADS) if source.is_remote else threads
        work = _samples(source, begin)
    else:
        work = _stream(source, begin)
    pool = ThreadPoolExecutor(number, "variegate-check")
    begun: deque[tuple[Future[list[Row]], Position]] = deque()
    try:
        for task, position in work:
            begun.append((pool.submit(task), position))
            if len(begun) > number * _AHEAD:
                yield _taken(begun)
        while begun:
            yield _taken(begun)
    finally:
        pool.shutdown(cancel_futures=True)


def _taken(begun: deque[tuple[Future[list[Row]], Position]]) -> Measured:
    future, position = begun.popleft()
    return Measured(future.result(), position)


def _by_index(source: Source, start: int, stop: int) -> list[Row]:
    """Of samples that are read by the thread that measures them."""
    return [
        row_of(
            index, sample_key(source, index), partial(_name, source, index), partial(source.read, index), source.classes
        )
        for index in range(start, stop)
    ]


def _name(source: Source, index: int) -> str:
    return str(source.name(index))


def _samples(source: Source, begin: Position) -> Iterator[Work]:
    for start in range(begin.samples, len(source), _SAMPLES):
        stop = min(start + _SAMPLES, len(source))
        yield partial(_by_index, source, start, stop), Position(stop)


def _of_read(classes: Sequence[str], first: int, samples: list[StreamItem]) -> list[Row]:
    """Of samples that were read already."""
    return [
        row_of(index, stream_key(sample.name), partial(str, sample.name), partial(_item_of, sample), classes)
        for index, sample in enumerate(samples, first)
    ]


def _stream(source: StreamSource, begin: Position) -> Iterator[Work]:
    at = begin
    some: list[StreamItem] = []
    size = 0
    for shard in range(begin.shard, source.num_shards):
        skipped = begin.place if shard == begin.shard else 0
        at = replace(at, shard=shard, place=skipped)
        for place, sample in enumerate(source.read_shard(shard)):
            if place < skipped:
                continue
            some.append(sample)
            size += len(sample.item.data) if isinstance(sample.item, Item) else 0
            if len(some) == _SAMPLES or size >= _BYTES:
                first, at = at.samples, Position(at.samples + len(some), shard, place + 1)
                yield partial(_of_read, source.classes, first, some), at
                some, size = [], 0
        if some:
            first, at = at.samples, Position(at.samples + len(some), shard + 1, 0)
            yield partial(_of_read, source.classes, first, some), at
            some, size = [], 0


def _item_of(sample: StreamItem) -> Item:
    if isinstance(sample.item, DecodeError):
        raise sample.item
    return sample.item
