"""The order of an epoch for each kind of source, and where a substitute for a bad sample comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.data.loader.reading import Reader, Rows, Waiting, start_reading, start_stream, with_those_before
from variegate.data.loader.share import Share
from variegate.data.shuffle import Permutation, Purpose
from variegate.data.shuffle_buffer import shuffled
from variegate.data.sources.base import Source, SourceError, StreamItem, StreamSource
from variegate.errors import DecodeError
from variegate.program import rng

# How many other samples are tried in the place of one that cannot be read: so many that a run ends for want of a good
# one only where there is hardly any; of a stream, so few that they may wait in memory.
_SUBSTITUTES, _SUBSTITUTES_OF_STREAM = 64, 16


def order_of(
    source: Source | StreamSource,
    reader: Reader,
    *,
    seed: int,
    shuffle: bool,
    shuffle_buffer: int,
    shuffle_bytes: int,
    world_size: int,
) -> IndexedOrder | StreamOrder:
    """Raises ValueError for a source without samples."""
    if isinstance(source, StreamSource):
        limits = {"max_items": shuffle_buffer, "max_bytes": shuffle_bytes}
        return StreamOrder(source, reader, seed, shuffle, world_size=world_size, **limits)
    if not len(source):
        raise ValueError("source: has no samples")
    return IndexedOrder(source, reader, seed, shuffle)


class IndexedOrder:
    """Samples by index, in a keyed permutation."""

    def __init__(self, source: Source, reader: Reader, seed: int, shuffle: bool) -> None:
        self.source, self._reader = source, reader
        self._seed, self._shuffle = seed, shuffle
        self.length = len(source)
        self.is_remote = source.is_remote

    def facts(self) -> dict[str, Any]:
        """What the order depends on, fit for JSON."""
        return _facts(self._seed, self._shuffle, self.source, self.length, None)

    def indices(self, positions: npt.NDArray[np.int64], epoch: int) -> npt.NDArray[np.int64]:
        return Permutation(self.length, self._seed, epoch)(positions) if self._shuffle else positions

    def steps(self, share: Share, epoch: int, pool: ThreadPoolExecutor) -> tuple[Iterator[Waiting], Callable[[], None]]:
        """(reading of one step after another, what ends it)."""
        stopped = Event()
        steps = (self.start(share, epoch, step, pool, stopped.is_set) for step in range(len(share)))
        return steps, stopped.set

    def start(
        self,
        share: Share,
        epoch: int,
        step: int,
        pool: ThreadPoolExecutor,
        is_stopped: Callable[[], bool] | None = None,
    ) -> Waiting:
        """Begin to read one step."""
        positions, padding = share.positions(step)
        indices = self.indices(positions, epoch)
        return start_reading(self._reader, self.source, pool, indices, padding, share.done_after(step), is_stopped)

    def substitutes(self, rows: Rows, row: int, epoch: int) -> Iterator[tuple[Any, Any]]:
        """Samples drawn for the bad one's id: the same whatever the batch is."""
        words = _words_for(rows.ids[row], self._seed, epoch)
        for high, low in words[:, :2].tolist():
            index = ((high << 32) | low) % self.length
            sample_id = int(self.source.ids(np.array([index]))[0])
            yield from self._reader.read_indices(self.source, [index], [sample_id])


class StreamOrder:
    """Shards in a keyed permutation, their samples through a shuffle buffer."""

    def __init__(
        self,
        source: StreamSource,
        reader: Reader,
        seed: int,
        shuffle: bool,
        *,
        max_items: int,
        max_bytes: int,
        world_size: int,
    ) -> None:
        self._source, self._reader = source, reader
        self._seed, self._shuffle = seed, shuffle
        self._max_items, self._max_bytes, self._world_size = max_items, max_bytes, world_size
        self.length: int | None = None
        self.is_remote = True  # or as good as: it is read by one thread, which must never have to wait for the others

    def facts(self) -> dict[str, Any]:
        """As for random access; and the limits of the buffer, which decide about the order as well."""
        buffer = [self._max_items, self._max_bytes] if self._shuffle else None
        return _facts(self._seed, self._shuffle, self._source, None, buffer)

    def samples(self, epoch: int) -> Iterator[StreamItem]:
        """All samples of an epoch."""
        shards = np.arange(self._source.num_shards, dtype=np.int64)
        if self._shuffle:
            shards = Permutation(len(shards), self._seed, epoch, Purpose.SHARDS)(shards)
        every = (item for shard in shards.tolist() for item in self._whole(shard))
        if not self._shuffle:
            return every
        limits = {"max_items": self._max_items, "max_bytes": self._max_bytes}
        return shuffled(every, _size_of, seed=self._seed, epoch=epoch, **limits)

    def steps(self, share: Share, epoch: int, pool: ThreadPoolExecutor) -> tuple[Iterator[Waiting], Callable[[], None]]:
        """As for random access; one thread more reads, since the samples come one by one."""
        stream_pool = ThreadPoolExecutor(1, thread_name_prefix="variegate-stream")
        passing = with_those_before(self.samples(epoch), _SUBSTITUTES_OF_STREAM)
        rest = share.steps_of(islice(passing, share.start, None))
        stop = partial(stream_pool.shutdown, wait=False, cancel_futures=True)
        return start_stream(self._reader, rest, stream_pool, pool), stop

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


def _facts(
    seed: int, shuffle: bool, source: Source | StreamSource, samples: int | None, buffer: list[int] | None
) -> dict[str, Any]:
    return {
        "seed": seed,
        "shuffle": shuffle,
        "source": source.fingerprint,
        "samples": samples,
        "buffer": buffer,
    }


def _words_for(sample_id: np.uint64, seed: int, epoch: int) -> npt.NDArray[np.uint32]:
    key = rng.stream_key(seed, epoch, int(Purpose.SUBSTITUTES), rng.SHUFFLE_DOMAIN)
    return rng.sample_words(np.array([sample_id], np.uint64), key, _SUBSTITUTES)[0]


def _size_of(item: StreamItem) -> int:
    data = getattr(item.item, "data", b"")
    return data.nbytes if isinstance(data, np.ndarray) else len(data)
