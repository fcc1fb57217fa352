"""Data sets of shards that are opened when an epoch needs them, so that training starts before all are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from variegate.arrays import Int64Array, UInt64Array
from variegate.data.base import (
    Item,
    SampleRef,
    SourceError,
    StoredFile,
    describe,
    digest_of,
    summarize_names,
)
from variegate.data.samples import POSITION_BITS, Samples, Store
from variegate.io.amounts import pluralize
from variegate.io.location import Location, relative_names
from variegate.threads import computed_once

_POSITIONS = (1 << POSITION_BITS) - 1
# Opened shards to remember: two blocks of the largest size.
MOST_BLOCK_SHARDS = 32
_MOST_OPENED = 2 * MOST_BLOCK_SHARDS
_THREADS = 16

# A function that removes samples of some names.
LeaveOut: TypeAlias = Callable[[Samples, frozenset[str]], Samples]


class ShardedSource(ABC):
    """A data set of shards; each shard is a source with its own range of ids. The number of samples is unknown before
    all shards are opened.

    The index of a sample is ``shard << 32 | position``. Any thread may call any method; a copy made by pickling reads
    the same. With ``on_error="skip"`` an unreadable shard counts as one unreadable sample.
    """

    # Blocks of an epoch are local when their samples are read.
    is_remote = False
    has_targets = False
    has_edges = False
    has_image_labels = True

    def __init__(self, shards: Sequence[Location], classes: Sequence[str], on_error: str) -> None:
        self.locations = list(shards)
        self.classes = tuple(classes)
        self.on_error = on_error
        self._whole: ShardedSource | None = None
        self._excluded: frozenset[str] = frozenset()
        self._leave_out: LeaveOut | None = None
        self._opened: dict[int, Samples] = {}

    def __repr__(self) -> str:
        number = pluralize(self.num_shards, "shard")
        return describe(self, summarize_names([str(shard) for shard in self.locations], 1), number)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": {}}

    @abstractmethod
    def _open(self, number: int, fetch: bool) -> Samples | None:
        """Index a shard; None if that requires reading the full shard and ``fetch`` is False. Raises SourceError."""

    @abstractmethod
    def _open_all(self) -> Samples:
        """Index all shards. Raises SourceError."""

    @computed_once
    def fingerprint(self) -> str:
        """Short hex: a hash of the names of the shards below their common folder, the classes, and the excluded
        names."""
        excluded = ["\0", *sorted(self._excluded)] if self._excluded else []
        return digest_of("\0".join([*relative_names(self.locations), "", *self.classes, *excluded]))

    @property
    def whole(self) -> ShardedSource:
        """The source without exclusions."""
        return self._whole or self

    @property
    def num_shards(self) -> int:
        return len(self.locations)

    def shard(self, number: int) -> Samples:
        """The samples of a shard, whose data are local afterwards. Raises IndexError, SourceError."""
        opened = self._known(number, fetch=True)
        assert opened is not None
        return opened

    def _known(self, number: int, fetch: bool) -> Samples | None:
        if not 0 <= number < self.num_shards:
            raise IndexError(f"shard: got {number}; accepted: 0 to {self.num_shards - 1}")
        if (opened := self._opened.get(number)) is not None:
            return opened
        try:
            opened = self._open(number, fetch)
        except SourceError as error:
            if self.on_error == "raise":
                raise
            opened = _unreadable(self.locations[number], number, error)
        if opened is not None and self._leave_out is not None:
            opened = self._leave_out(opened, self._excluded)
        if opened is not None and (fetch or _is_unreadable(opened)):
            self._opened[number] = opened
            for old in list(self._opened)[:-_MOST_OPENED]:
                self._opened.pop(old, None)
        return opened

    def length(self, number: int) -> int:
        """Samples of a shard, which is read only if it has no index yet. One that could not be read is tried again.
        Raises as ``shard``."""
        if self.unreadable([number]):
            self._opened.pop(number, None)
        return len(self._known(number, fetch=False) or self.shard(number))

    def unreadable(self, numbers: Sequence[int]) -> list[str]:
        """Reasons why opened shards cannot be read."""
        opened = [shard for number in numbers if (shard := self._opened.get(number)) is not None]
        return [f"{one.place}: {one.whole.broken[0]}" for one in opened if _is_unreadable(one)]

    def count(self) -> int | None:
        """The number of samples; None if a shard has no index yet, neither in the cache folder nor next to it."""

        def length_of(number: int) -> int | None:
            shard = self._known(number, fetch=False)
            return None if shard is None else len(shard)

        with ThreadPoolExecutor(_THREADS, "variegate-index") as pool:
            lengths = [*pool.map(length_of, range(self.num_shards))]
        return None if None in lengths else sum(cast("list[int]", lengths))

    def by_index(self) -> Samples:
        """The same samples by index, with the same ids, in the order of the shards. Reads each shard that has no index
        yet. Raises SourceError."""
        source = self._open_all()
        return source if self._leave_out is None else self._leave_out(source, self._excluded)

    def excluding(self, names: frozenset[str], exclude_samples: LeaveOut) -> ShardedSource:
        """Without the samples of these names, of each shard by ``exclude_samples``."""
        other = copy(self)
        other.__dict__.pop("fingerprint", None)
        other._whole = self.whole
        other._excluded = self._excluded | names
        other._leave_out = exclude_samples
        other._opened = {}
        return other

    def read(self, index: int) -> Item:
        """Raises DecodeError with the sample's name where it cannot be read."""
        return self.shard(index >> POSITION_BITS).read(index & _POSITIONS)

    def name(self, index: int) -> SampleRef:
        return self.shard(index >> POSITION_BITS).name(index & _POSITIONS)

    def ids(self, indices: Int64Array) -> UInt64Array:
        """The ids in the shards, as in ``by_index``."""
        if not self._excluded:
            return indices.astype(np.uint64)
        ids = np.empty(len(indices), np.uint64)
        shards = indices >> POSITION_BITS
        for number in np.unique(shards).tolist():
            rows = shards == number
            ids[rows] = self.shard(number).ids(indices[rows] & _POSITIONS)
        return ids

    def notes(self) -> list[str]:
        """About the shards that were opened last."""
        opened = list(self._opened.values())
        return list(dict.fromkeys(note for shard in opened for note in shard.notes()))


AnySource: TypeAlias = Samples | ShardedSource


def _unreadable(shard: Location, number: int, error: SourceError) -> Samples:
    """A shard that cannot be read, as one bad sample."""
    return Samples(
        place=str(shard),
        size=1,
        store=Store(),
        path=pa.array([None], pa.large_binary()),
        files=[StoredFile(shard, 1, 0, "")],
        first_shard=number,
        broken={0: error.reason(str(shard))},
    )


def _is_unreadable(shard: Samples) -> bool:
    return type(shard.store) is Store
