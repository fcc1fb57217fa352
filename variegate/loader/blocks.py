"""The order of an epoch of shards that are opened as it goes: blocks of a few shards, each shuffled in itself."""

from __future__ import annotations

from concurrent.futures import Executor
from threading import Lock

import numpy as np

from variegate.arrays import Int64Array, UInt32Array
from variegate.data.base import SourceError
from variegate.data.samples import POSITION_BITS
from variegate.data.sharded import ShardedSource
from variegate.loader.options import LoaderOptions
from variegate.loader.shuffle import Order, OrderPurpose, Permutation, permute_within

# Of an epoch's first block, which training waits for. Each further one is twice as large, up to the limit.
_FIRST_BLOCK = 2
_MOST_DOUBLINGS = 8


class BlockOrder(Order):
    """The order of an epoch, known up to the last requested sample. Shards are in a keyed permutation.

    While the samples of a block are used, the threads of ``pool`` fetch the shards of the next one. Any thread may call
    any method.
    """

    def __init__(
        self, source: ShardedSource, options: LoaderOptions, shuffle: bool, pool: Executor, epoch: int
    ) -> None:
        self._source = source
        self._key = options.seed, epoch
        self._shuffle = shuffle
        self._must_be_root = options.world_size == 1
        self._pool = pool
        shards = np.arange(source.num_shards, dtype=np.int64)
        self._shards = Permutation(len(shards), *self._key, OrderPurpose.SHARDS)(shards) if shuffle else shards
        sizes = np.minimum(_FIRST_BLOCK << np.minimum(shards, _MOST_DOUBLINGS), options.block_shards)
        self._blocks = [block for block in np.split(self._shards, sizes.cumsum()) if len(block)]
        # Of the shards and blocks that are known: where each shard begins in the unshuffled order, and where each block
        # does; the last of ``_starts`` is the end of the last block.
        self._begins = np.zeros(0, np.int64)
        self._starts = np.zeros(1, np.int64)
        self._lock = Lock()

    @property
    def _num_known(self) -> int:
        return len(self._starts) - 1

    @property
    def length(self) -> int | None:  # type: ignore[override]
        """None until all blocks are known."""
        return int(self._starts[-1]) if self._num_known == len(self._blocks) else None

    def known(self, end: int) -> int:
        """Index shards as far as needed. Raises SourceError for a shard that cannot be read."""
        with self._lock:
            before = self._num_known
            while self._starts[-1] < end and self._num_known < len(self._blocks):
                self._add_block(self._blocks[self._num_known])
            if self._num_known > before:
                for block in self._blocks[self._num_known - 1 : self._num_known + 1]:
                    for shard in block.tolist():
                        self._pool.submit(self._source.shard, shard)
        if self.length == 0:
            raise SourceError(f"{self._source!r}: not one sample in any shard")
        return int(self._starts[-1])

    def _add_block(self, shards: Int64Array) -> None:
        lengths = np.array([*self._pool.map(self._source.length, shards.tolist())], np.int64)
        unreadable = [] if self._must_be_root else self._source.unreadable(shards.tolist())
        if unreadable:
            raise SourceError(
                f"{unreadable[0]}. Ranks share out the samples of each shard, and another rank may have read this one; "
                "accepted: shards that every rank can read"
            )
        ends = self._starts[-1] + lengths.cumsum()
        self._begins = np.append(self._begins, ends - lengths)
        self._starts = np.append(self._starts, ends[-1])

    def at(self, positions: Int64Array) -> tuple[Int64Array, UInt32Array]:
        blocks = self._blocks_of(positions)
        starts, lengths = self.groups_of(positions)
        places = positions - starts
        if self._shuffle:
            places = permute_within(places, lengths, blocks, *self._key, OrderPurpose.IN_BLOCK)
        places = places + starts
        shards = np.searchsorted(self._begins, places, "right") - 1
        indices = (self._shards[shards] << POSITION_BITS) + places - self._begins[shards]
        return indices, np.zeros(len(positions), np.uint32)

    def _blocks_of(self, positions: Int64Array) -> Int64Array:
        blocks: Int64Array = np.searchsorted(self._starts, positions, "right") - 1
        return blocks

    def groups_of(self, positions: Int64Array) -> tuple[Int64Array, Int64Array]:
        blocks = self._blocks_of(positions)
        return self._starts[blocks], self._starts[blocks + 1] - self._starts[blocks]

    def replacements(self, indices: Int64Array) -> tuple[Order, Int64Array, Int64Array]:
        """Candidates from its block and the block before, because a block may be a single unreadable shard."""
        places = np.argsort(self._shards)[indices >> POSITION_BITS]
        blocks = self._blocks_of(self._begins[places])
        starts = self._starts[np.maximum(blocks - 1, 0)]
        return self, starts, self._starts[blocks + 1] - starts
