"""The order of an epoch for each kind of source, and where a substitute for a bad sample comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from itertools import islice
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.data.loader.observer import Observer
from variegate.data.loader.options import LoaderOptions
from variegate.data.loader.picks import EpochOrder, ListedOrder, Picks
from variegate.data.loader.reading import (
    Reader,
    Rows,
    StepToRead,
    Waiting,
    samples_of,
    start_reading,
    start_stream,
    with_those_before,
)
from variegate.data.loader.share import Share
from variegate.data.shuffle import OrderPurpose, Permutation
from variegate.data.shuffle_buffer import shuffled
from variegate.data.sources.base import Source, SourceError, StreamItem, StreamSource
from variegate.errors import DecodeError
from variegate.program import rng
from variegate.threads import Threads

# How many other samples are tried in the place of one that cannot be read: so many that a run ends for want of a good
# one only where there is hardly any; of a stream, so few that they may wait in memory.
_SUBSTITUTES, _SUBSTITUTES_OF_STREAM = 64, 16
_KEPT = 4

# Reading of one step after another, each begun by a ``next``, and what ends it.
Steps = tuple[Iterator[Waiting], Callable[[], None]]


class IndexedOrder:
    """Samples by index, as they are picked."""

    def __init__(self, source: Source, reader: Reader, picks: Picks, seed: int, shuffle: bool) -> None:
        self._source, self._reader, self._picks = source, reader, picks
        self._seed, self._shuffle = seed, shuffle
        self.is_remote = source.is_remote
        self.is_known = picks.is_known
        # Of the latest epochs: those in hand and in the making, and iterations that were left and may go on.
        self._orders: dict[int, EpochOrder] = {}

    def facts(self) -> dict[str, Any]:
        """What the order depends on, fit for JSON."""
        known = {"source": self._source.fingerprint, "samples": len(self._source), "buffer": None}
        return {"seed": self._seed, "shuffle": self._shuffle, **known, **self._picks.facts()}

    def length(self, epoch: int) -> int:
        """Samples of an epoch."""
        expected = None if epoch in self._orders else self._picks.expected_length()
        return self._order(epoch).length if expected is None else expected

    def begin(self, epoch: int, is_resumed: bool) -> None:
        """An epoch begins, or goes on. An order that is not known beforehand is asked for when its epoch begins."""
        if not self.is_known and not is_resumed:
            self._keep(epoch, self._picks.epoch(epoch))

    def digest(self, epoch: int) -> str | None:
        """Of an order that was asked for; None where it follows from the facts."""
        order = self._orders.get(epoch)
        return None if self.is_known or not isinstance(order, ListedOrder) else order.digest()

    def check(self, epoch: int, digest: str | None) -> None:
        """Raises ValueError where the order of an epoch is not the one that a state tells of."""
        if self.is_known:
            return
        self.begin(epoch, is_resumed=False)
        if (found := self.digest(epoch)) != digest:
            raise ValueError(
                f"state_dict: order is {digest!r}, the sampler's for epoch {epoch} is now {found!r}; the rest of the "
                "epoch would be another one. A sampler that draws from torch's global generator (a RandomSampler, say) "
                "does not repeat itself: use one whose set_epoch seeds it, or Loader(weights=...) or a list of "
                "indices, which are ordered by the Loader's seed"
            )

    def steps(self, share: Share, epoch: int, pool: Executor, observer: Observer) -> Steps:
        stopped, order = Event(), self._order(epoch)
        start = partial(self._start, order, share, pool, observer, stopped.is_set)
        return map(start, range(len(share))), stopped.set

    def start(self, share: Share, epoch: int, pool: Executor, observer: Observer, step: int) -> Waiting:
        """Begin to read one step."""
        return self._start(self._order(epoch), share, pool, observer, None, step)

    def _start(
        self,
        order: EpochOrder,
        share: Share,
        pool: Executor,
        observer: Observer,
        is_stopped: Callable[[], bool] | None,
        step: int,
    ) -> Waiting:
        positions, padding = share.positions(step)
        indices, copies = order.at(positions)
        to_read = StepToRead(indices, padding, copies, share.done_after(step))
        return start_reading(self._reader, self._source, pool, to_read, observer, is_stopped)

    def substitutes(self, rows: Rows, row: int, epoch: int) -> Iterator[tuple[Any, Any]]:
        """Samples drawn for the bad one's id, of those that the epoch is made of: the same whatever the batch is."""
        order = self._order(epoch)
        words = _words_for(rows.ids[row], self._seed, epoch)
        for high, low in words[:, :2].tolist():
            position = ((high << 32) | low) % order.length
            index = position if order.is_every else int(order.at(np.array([position]))[0][0])
            ids = self._source.ids(np.array([index])).tolist()
            yield from self._reader.read(samples_of(self._source, [index], ids))

    def _order(self, epoch: int) -> EpochOrder:
        return self._orders.get(epoch) or self._keep(epoch, self._picks.epoch(epoch))

    def _keep(self, epoch: int, order: EpochOrder) -> EpochOrder:
        self._orders.pop(epoch, None)
        self._orders[epoch] = order
        for old in list(self._orders)[:-_KEPT]:
            self._orders.pop(old, None)
        return order


class StreamOrder:
    """Shards in a keyed permutation, their samples through a shuffle buffer."""

    def __init__(self, source: StreamSource, reader: Reader, options: LoaderOptions, shuffle: bool) -> None:
        self._source, self._reader = source, reader
        self._seed, self._shuffle = options.seed, shuffle
        self._limits = {"max_items": options.shuffle_buffer, "max_bytes": options.shuffle_bytes}
        self._world_size = options.world_size
        self.is_known = True
        self.is_remote = True  # or as good as: it is read by one thread, which must never have to wait for the others

    def facts(self) -> dict[str, Any]:
        """As for random access; and the limits of the buffer, which decide about the order as well."""
        buffer = list(self._limits.values()) if self._shuffle else None
        known = {"source": self._source.fingerprint, "samples": None, "buffer": buffer}
        return {"seed": self._seed, "shuffle": self._shuffle, **known}

    def samples(self, epoch: int) -> Iterator[StreamItem]:
        """All samples of an epoch."""
        shards = np.arange(self._source.num_shards, dtype=np.int64)
        if self._shuffle:
            shards = Permutation(len(shards), self._seed, epoch, OrderPurpose.SHARDS)(shards)
        every = (item for shard in shards.tolist() for item in self._whole(shard))
        if not self._shuffle:
            return every
        return shuffled(every, _size_of, seed=self._seed, epoch=epoch, **self._limits)

    def steps(self, share: Share, epoch: int, pool: Executor, observer: Observer) -> Steps:
        """As for random access; one thread more reads, since the samples come one by one."""
        stream_pool = Threads(1, "variegate-stream")
        passing = with_those_before(self.samples(epoch), _SUBSTITUTES_OF_STREAM)
        rest = share.steps_of(islice(passing, share.start, None))
        stop = partial(stream_pool.shutdown, wait=False, cancel_futures=True)
        return start_stream(self._reader, rest, stream_pool, pool, observer), stop

    def _whole(self, shard: int) -> Iterator[StreamItem]:
        """A shard's samples. Raises SourceError where some could not be read that another rank may have."""
        for item in self._source.read_shard(shard):
            if item.is_end and self._world_size > 1 and isinstance(item.item, DecodeError):
                raise SourceError(
                    f"{item.item}. Every rank counts the samples of a stream as it reads them, so that one that misses "
                    "some would fall out of step: mend the shard or leave it out, or read shards by their index "
                    "(open_source(..., stream=False))"
                )
            yield item

    def substitutes(self, rows: Rows, row: int, epoch: int) -> Iterator[tuple[Any, Any]]:
        """Samples that came before it: a stream cannot be asked for any other."""
        assert rows.others is not None
        return rows.others(row)


def _words_for(sample_id: np.uint64, seed: int, epoch: int) -> npt.NDArray[np.uint32]:
    key = rng.stream_key(seed, epoch, int(OrderPurpose.SUBSTITUTES), rng.SHUFFLE_DOMAIN)
    return rng.sample_words(np.array([sample_id], np.uint64), key, _SUBSTITUTES)[0]


def _size_of(item: StreamItem) -> int:
    data = getattr(item.item, "data", b"")
    return data.nbytes if isinstance(data, np.ndarray) else len(data)
