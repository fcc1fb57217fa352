"""Sources that hold still while they are measured: a part of another one, over and over, or samples in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.data.sources.base import Item, SampleName, Source, StreamItem, StreamSource

# Long enough that no measurement comes to the end of it, where a loader would begin anew.
_LONG = 1 << 31


@dataclass(frozen=True)
class MeasuredSample:
    """A sample that is known to be good. ``shape``: of the picture, decoded whole."""

    index: int  # in the source; -1 in a stream
    id: int
    name: SampleName
    item: Item
    shape: tuple[int, int, int]

    @property
    def nbytes(self) -> int:
        return size_of(self.item)


def size_of(item: Item) -> int:
    """Bytes of the file, or of the pixels where a source gives these."""
    return item.data.nbytes if isinstance(item.data, np.ndarray) else len(item.data)


class _CyclicView:
    """Samples in a cycle of whole batches, so that the n-th batch of every round holds the same ones."""

    classes: tuple[str, ...] = ()
    is_remote = False

    def __init__(self, samples: Sequence[MeasuredSample], batch_size: int) -> None:
        self.samples = samples
        self.batch_size = batch_size
        self.batches = -(-len(samples) // batch_size)
        self._ids = np.array([sample.id for sample in samples], np.uint64)

    def __len__(self) -> int:
        return _LONG // len(self.samples) * len(self.samples)

    def place(self, position: int) -> int:
        return position % (self.batches * self.batch_size) % len(self.samples)

    def name(self, index: int) -> SampleName:
        return self.samples[self.place(index)].name

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return self._ids[[self.place(index) for index in indices.tolist()]]

    def notes(self) -> list[str]:
        return []


class InMemoryView(_CyclicView):
    """Read from memory."""

    fingerprint = "in memory"

    def read(self, index: int) -> Item:
        return self.samples[self.place(index)].item


class SourceView(_CyclicView):
    """Read from where they lie. Its fingerprint is the whole's, so that what a cache on disk keeps is of use later."""

    def __init__(self, source: Source, samples: Sequence[MeasuredSample], batch_size: int) -> None:
        super().__init__(samples, batch_size)
        self._source = source
        self.is_remote = source.is_remote

    @property
    def fingerprint(self) -> str:
        return self._source.fingerprint

    def read(self, index: int) -> Item:
        return self._source.read(self.samples[self.place(index)].index)


def with_pictures(samples: Sequence[MeasuredSample], pictures: Sequence[npt.NDArray[np.uint8]]) -> list[MeasuredSample]:
    """The first samples, with pixels in the place of their files."""
    pairs = zip(samples, pictures, strict=False)
    return [replace(sample, item=sample.item._replace(data=picture)) for sample, picture in pairs]


def endless(source: StreamSource) -> Iterator[StreamItem]:
    """All samples of a stream, again and again."""
    shards: Iterator[Any] = chain.from_iterable(range(source.num_shards) for _ in count())
    return (item for shard in shards for item in source.read_shard(shard))
