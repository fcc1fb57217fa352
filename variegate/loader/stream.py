"""A stream of samples, one after another: through a shuffle buffer, shared out to the ranks, and read."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from typing import Any, TypeVar

import numpy as np

from variegate.checks import integer, refused
from variegate.errors import DecodeError
from variegate.formats.base import Item, SampleName, SourceError, StreamItem, StreamSource
from variegate.loader.options import LoaderOptions
from variegate.loader.order import EpochOrder, Position
from variegate.loader.ranks import Share
from variegate.loader.reading import Reader, Rows, StepPlan, Steps
from variegate.loader.shuffle import OrderPurpose, Permutation, random_words
from variegate.loader.stats import StageTimes
from variegate.threads import Threads

T = TypeVar("T")

# How many samples are tried in the place of one that cannot be read: so few that they may wait in memory.
_SUBSTITUTES = 16
# Random numbers drawn at a time.
_BLOCK = 1024
# Steps, beyond those asked for, that may be read ahead.
_PLACES = 64

# A sample of a stream, and some that came before it, which may stand in for it.
_Passing = tuple[StreamItem, tuple[StreamItem, ...]]


@dataclass
class _Place:
    """Shards of an epoch that were read, samples that were of the next one, and its ``own`` state there, if any."""

    shards: int = 0
    samples: int = 0
    own: Any = None
    reading: Any = None

    def as_state(self) -> list[Any]:
        state = getattr(self.reading, "state", None)
        return [self.shards, self.samples, None if state is None else state()]


class StreamOrder(EpochOrder):
    """Shards in a keyed permutation, their samples through a shuffle buffer, whose limits decide about it as well."""

    def __init__(self, source: StreamSource, reader: Reader, options: LoaderOptions, shuffle: bool) -> None:
        self._limits = {"max_items": options.shuffle_buffer, "max_bytes": options.shuffle_bytes}
        buffer = list(self._limits.values()) if shuffle else None
        # Remote, or as good as: it is read by one thread, which must never have to wait for the others.
        super().__init__(source, True, options, shuffle, samples=None, buffer=buffer)
        self._reader = reader
        self._world_size = options.world_size
        # Of the latest steps. None where a buffer holds samples of many places, or those before a place may be needed.
        is_plain = (not shuffle or options.shuffle_buffer == 1) and options.on_error == "raise"
        self._most_places = options.prefetch + _PLACES if is_plain else 0
        self._places: dict[Position, list[Any]] = {}

    def state(self, position: Position) -> dict[str, Any]:
        place = self._places.get(position)
        return super().state(position) | ({} if place is None else {"stream": place})

    def position(self, state: Mapping[str, Any]) -> Position:
        position = super().position(state)
        place = state.get("stream")
        if place is not None and self._most_places:
            if not isinstance(place, (list, tuple)) or len(place) != 3:
                raise refused("state_dict: stream", place, "what Loader.state_dict gave")
            shards = integer("state_dict: stream[0]", place[0], 0, self._source.num_shards)
            self._places[position] = [shards, integer("state_dict: stream[1]", place[1], 0), place[2]]
        return position

    def _samples(self, epoch: int, place: _Place) -> Iterator[StreamItem]:
        """The samples of an epoch from ``place`` on, which is kept up."""
        shards = np.arange(self._source.num_shards, dtype=np.int64)
        if self._shuffle:
            shards = Permutation(len(shards), self._seed, epoch, OrderPurpose.SHARDS)(shards)
        every = (item for shard in shards[place.shards :].tolist() for item in self._whole(shard, place))
        if not self._shuffle:
            return every
        return shuffled(every, _size_of, seed=self._seed, epoch=epoch, **self._limits)

    def plans(self, share: Share, epoch: int, times: StageTimes) -> Iterator[StepPlan]:
        """Each ``next`` takes as many samples from the stream as all ranks together."""
        known = self._places.get((epoch, share.start))
        place = _Place(*known or ())
        samples = _with_those_before(self._samples(epoch, place))
        steps = share.steps_of(islice(samples, 0 if known else share.start, None))
        while True:
            begin = time.perf_counter()
            step = next(steps, None)
            times.stage_done("read", time.perf_counter() - begin, 0, 0)  # samples are counted as they are opened
            if step is None:
                return
            passing, padding, done = step
            if self._most_places:
                self._places[epoch, done] = place.as_state()
                for old in list(self._places)[: -self._most_places]:
                    self._places.pop(old, None)
            items, before = map(list, zip(*passing, strict=True))
            ids = np.array([item.id for item in items], np.uint64)
            name_of = partial(_name_of, items)
            yield StepPlan(ids=ids, padding=padding, done=done, name_of=name_of, samples=items, before=before)

    def steps(self, share: Share, epoch: int, pool: Executor, times: StageTimes) -> Steps:
        """Taken from the stream by one thread more, since samples come one by one; opened by those of ``pool``."""
        stream_pool = Threads(1, "variegate-stream")
        plans = self.plans(share, epoch, times)

        def waiting(plan: Future[StepPlan | None]) -> Rows | None:
            found = plan.result()
            return None if found is None else self._reader.begin(found, pool, times)()

        begun = (partial(waiting, stream_pool.submit(next, plans, None)) for _ in count())
        return begun, partial(stream_pool.shutdown, wait=False, cancel_futures=True)

    def _whole(self, shard: int, place: _Place) -> Iterator[StreamItem]:
        """A shard's samples from ``place`` on. Raises SourceError where some could not be read that another rank may
        have."""
        if place.own is None:
            place.reading = self._source.read_shard(shard)
            items = islice(place.reading, place.samples, None)
        else:
            items = place.reading = self._source.read_shard(shard, place.samples, place.own)
            place.own = None
        for item in items:
            place.samples += 1
            if item.is_end and self._world_size > 1 and isinstance(item.item, DecodeError):
                raise SourceError(
                    f"{item.item}. Every rank counts the samples of a stream as it reads them, so that one that misses "
                    "some would fall out of step: mend the shard or leave it out, or read shards by their index "
                    "(open_source(..., stream=False))"
                )
            yield item
        place.shards += 1
        place.samples = 0

    def candidates(self, plan: StepPlan, row: int, epoch: int) -> Iterator[tuple[int, StreamItem]]:
        """(id, item) of samples that came before it, as a stream cannot be asked for any other; at its very beginning
        those after it in the batch."""
        assert plan.before is not None
        return ((item.id, item) for item in (*reversed(plan.before[row]), *plan.samples[row + 1 :]))


def _name_of(items: Sequence[StreamItem], row: int) -> SampleName:
    return items[row].name


def _with_those_before(stream: Iterable[StreamItem]) -> Iterator[_Passing]:
    """The nearest comes last."""
    before: deque[StreamItem] = deque(maxlen=_SUBSTITUTES)
    for item in stream:
        yield item, tuple(before)
        before.append(item)


def _size_of(item: StreamItem) -> int:
    """Bytes of the image, and of the arrays that belong to it, of which masks may be larger than their images."""
    if not isinstance(item.item, Item):
        return 0
    targets = (item.item.targets or {}).values()
    arrays = [value for value in (item.item.data, *targets) if isinstance(value, np.ndarray)]
    return sum(array.nbytes for array in arrays) + (len(item.item.data) if isinstance(item.item.data, bytes) else 0)


def shuffled(
    stream: Iterable[T], size_of: Callable[[T], int], *, seed: int, epoch: int, max_items: int, max_bytes: int
) -> Iterator[T]:
    """The stream in another order, a function of (seed, epoch), the limits and the sizes.

    The buffer fills up to ``max_items``, or until ``size_of`` its items passes ``max_bytes``; from there on one drawn
    from it goes out before the next comes in. An item comes at most ``max_items - 1`` places earlier than it stands in
    the stream.
    """
    held: list[T] = []
    held_bytes = 0
    blocks = (random_words(first, _BLOCK, seed, epoch, OrderPurpose.BUFFER) for first in count(0, _BLOCK))
    draws = (word for block in blocks for word in block[:, 0].tolist())

    def take() -> T:
        nonlocal held_bytes
        place = next(draws) * len(held) >> 32
        held[place], held[-1] = held[-1], held[place]
        taken = held.pop()
        held_bytes -= size_of(taken)
        return taken

    for item in stream:
        held.append(item)
        held_bytes += size_of(item)
        while len(held) >= max_items or held_bytes > max_bytes:
            yield take()
    while held:
        yield take()
