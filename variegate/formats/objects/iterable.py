"""Data sets that are iterated over (torch's ``IterableDataset``, Hugging Face's) as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy, deepcopy
from typing import Any

from variegate.errors import DecodeError
from variegate.formats.base import Item, SampleName, SourceError, StreamItem, describe, digest_of
from variegate.formats.objects.dataset import class_names, item_of
from variegate.formats.objects.samples import label_beside
from variegate.threads import computed_once


class IterableSource:
    """Samples of any object with ``__iter__``, of the kinds that ``DatasetSource`` accepts. It must give the same ones
    each time, and on every rank. A sample's id is its place in its shard.

    Shards are Hugging Face's (``num_shards``, ``shard``), whose images are left as files for the threads that decode;
    other data sets are one shard. If these have ``state_dict`` and ``load_state_dict``, a stream goes on by them.

    ``has_targets``, ``written``: as for ``DatasetSource``. Raises SourceError for one rank's part of a data set.
    """

    has_targets = False
    written: tuple[Any, ...] | None = None

    def __init__(self, dataset: Any) -> None:
        self._kind = type(dataset).__name__
        if getattr(dataset, "_distributed", None) is not None:
            raise SourceError(
                f"{self._kind}: split by node, so that it has one rank's share; the Loader takes that itself (rank, "
                "world_size). Accepted: the whole data set, the same on every rank"
            )
        self.classes, self.num_shards, facts = class_names(dataset), 1, [self._kind]
        self._is_sharded = hasattr(dataset, "shard") and hasattr(dataset, "num_shards")
        if self._is_sharded:
            self.num_shards = int(dataset.num_shards)
            facts += [str(getattr(dataset, name, "")) for name in ("builder_name", "config_name", "split")]
            if isinstance(dataset.features, Mapping) and hasattr(dataset, "decode"):
                dataset = dataset.decode(False)
        self._dataset = dataset
        self.fingerprint = digest_of("\0".join([*facts, str(self.num_shards), *self.classes]))

    def __repr__(self) -> str:
        return describe(self, self._kind, f"a stream of {self.num_shards:,} shard{'s' * (self.num_shards > 1)}")

    def with_targets(self, *written: Any) -> IterableSource:
        made = copy(self)
        made.has_targets = True
        made.written = written
        return made

    @computed_once
    def has_image_labels(self) -> bool:
        """With targets, the first sample tells."""
        return not self.has_targets or label_beside(next(iter(self._part(0)), None)) is not None

    def read_shard(self, shard: int, begin: int = 0, state: Any = None) -> Reading:
        """From sample ``begin`` on, if ``state`` is what a reading gave there."""
        if not 0 <= shard < self.num_shards:
            raise IndexError(f"shard {shard}: accepted: 0 to {self.num_shards - 1}")
        return Reading(self, self._part(shard), shard, begin, state)

    def notes(self) -> list[str]:
        return []

    def name(self, shard: int, position: int) -> SampleName:
        return SampleName(self._kind, f"shard {shard}, item {position}" if self._is_sharded else f"item {position}")

    def _part(self, shard: int) -> Any:
        # A copy, as two readings of an epoch's end and the next one's beginning must not share a position.
        whole = self._dataset
        return whole.shard(num_shards=self.num_shards, index=shard) if self._is_sharded else copy(whole)


class Reading(Iterator[StreamItem]):
    """A shard's samples."""

    def __init__(self, source: IterableSource, part: Any, shard: int, begin: int, state: Any) -> None:
        self._source, self._part, self._shard, self._position = source, part, shard, begin
        if state is not None:
            part.load_state_dict(state)
        self._samples: Iterator[Any] | None = None

    def __next__(self) -> StreamItem:
        name = self._source.name(self._shard, self._position)
        number = self._shard << 32 | self._position
        self._position += 1
        item: Item | DecodeError
        try:
            self._samples = iter(self._part) if self._samples is None else self._samples
            sample = next(self._samples)
        except (StopIteration, MemoryError):
            raise
        except Exception as error:  # whatever it raises; there is nothing after it
            self._samples = iter(())
            reason = error.reason if isinstance(error, DecodeError) else f"{type(error).__name__}: {error}"
            return StreamItem(number, name, DecodeError(str(name), reason), is_end=True)
        try:
            item = item_of(sample, str(name), self._source.classes, self._source.written)
        except (TypeError, ValueError) as error:
            item = DecodeError(str(name), str(error).removeprefix(f"{name}: "))
        return StreamItem(number, name, item)

    def state(self) -> Any:
        """The data set's own, after the latest sample; None where it has none, or one that forgets samples: Hugging
        Face's has lost those in the buffer of its ``shuffle``."""
        has_own = hasattr(self._part, "state_dict") and hasattr(self._part, "load_state_dict")
        return deepcopy(self._part.state_dict()) if has_own and not self._source._is_sharded else None
