"""Samples of WebDataset shards (tar archives) by index, each read by one request for its bytes."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from variegate.data.sources.base import IndexedSource, Item, SampleName, StoredFile, check_index, describe, first_names
from variegate.data.sources.reading import read_range
from variegate.data.sources.tar.class_names import class_names_beside
from variegate.data.sources.tar.index import name_at
from variegate.data.sources.tar.listing import ListedShard, list_shards
from variegate.data.sources.tar.samples import too_large
from variegate.data.sources.tar.stream import TarStream
from variegate.errors import DecodeError
from variegate.outside.location import Location, LocationLike, relative_names
from variegate.threads import computed_once


class WebDatasetSource(IndexedSource):
    """The samples of shards, in the shards' order and that within each. A sample's id is made of both numbers."""

    def __init__(self, shards: list[ListedShard], classes: tuple[str, ...], notes: list[str]) -> None:
        self.classes = classes
        self._shards, self._notes = shards, notes
        self._starts = [0, *accumulate(len(shard.labels) for shard in shards)]
        self.is_remote = any(shard.location.is_url for shard in shards)

    def __repr__(self) -> str:
        return describe(self, first_names([str(shard.location) for shard in self._shards], 1))

    def __len__(self) -> int:
        return self._starts[-1]

    @computed_once
    def fingerprint(self) -> str:
        digest = hashlib.sha256("\0".join(self.classes).encode("utf-8", "surrogateescape"))
        for name, shard in zip(relative_names([shard.location for shard in self._shards]), self._shards, strict=True):
            digest.update(f"\0{name}\0{len(shard.labels)}\0".encode("utf-8", "surrogateescape"))
            for part in (shard.index.names, shard.index.sizes.tobytes(), shard.labels.tobytes()):
                digest.update(part)
        return digest.hexdigest()[:16]

    def read(self, index: int) -> Item:
        """The bytes of the image file and its label. Raises DecodeError naming shard and member."""
        shard, position = self._find(index)
        if position in shard.broken:
            raise DecodeError(str(self.name(index)), shard.broken[position])
        offset, size = int(shard.index.offsets[position]), int(shard.index.sizes[position])
        if problem := too_large(size):
            raise DecodeError(str(self.name(index)), problem)
        data = read_range(shard.location, offset, size, shard.index.version.size, str(self.name(index)))
        return Item(data, int(shard.labels[position]))

    def name(self, index: int) -> SampleName:
        shard, position = self._find(index)
        if position < len(shard.index):
            return SampleName(str(shard.location), name_at(shard.index.names, shard.name_ends, position))
        return SampleName(str(shard.location), shard.index.failure.member if shard.index.failure else None)

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """``(shard << 32) | position in the shard``, as a TarStream of the same shards has them."""
        indices = np.asarray(indices, np.int64)
        starts = np.array(self._starts, np.int64)
        shards = np.searchsorted(starts, indices, "right") - 1
        return (shards << 32 | indices - starts[shards]).astype(np.uint64)

    def stored_files(self) -> list[StoredFile]:
        """The shards, as they were when they were listed."""
        return [StoredFile(shard.location, len(shard.labels), *shard.index.version) for shard in self._shards]

    def labels(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        every = [shard.labels for shard in self._shards]
        return np.concatenate(every)[indices] if every else np.zeros(0, np.int64)

    def notes(self) -> list[str]:
        return list(self._notes)

    def _find(self, index: int) -> tuple[ListedShard, int]:
        check_index(index, len(self))
        shard = bisect_right(self._starts, index) - 1
        return self._shards[shard], int(index) - self._starts[shard]


def open_tar(
    files: Sequence[Location],
    *,
    stream: bool | None = None,
    on_error: str = "raise",
    classes: Sequence[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> WebDatasetSource | TarStream:
    """Shards by index, or as a stream (None: where they are remote), with the names of classes that lie beside them."""
    is_remote = any(file.is_url for file in files)
    names = class_names_beside(files) if classes is None else classes
    if is_remote if stream is None else stream:
        return TarStream(files, names)
    return open_webdataset(files, classes=names, on_error=on_error, cache_dir=cache_dir)


def open_webdataset(
    shards: Sequence[LocationLike],
    *,
    classes: Sequence[str] | None = None,
    on_error: str = "raise",
    cache_dir: str | os.PathLike[str] | None = None,
) -> WebDatasetSource:
    """List the samples of uncompressed tar archives, local ones or addresses that fsspec reads.

    Each shard is walked over once and its index kept: beside it (``train-00.tar.vgindex``), or in ``cache_dir``. A
    sample is a key (the name up to the first dot of the base name) with an image member; its label is the number, or
    the name of one of ``classes``, in its ``.cls`` member or under "label", "cls" or "class" in its ``.json`` member.

    ``on_error="skip"`` accepts shards that are cut off or cannot be read: the whole samples are listed, and one entry
    more, whose ``read`` raises the DecodeError. Raises SourceError for them otherwise, and where nothing is listed.
    """
    shards_listed, notes = list_shards(shards, tuple(classes or ()), on_error=on_error, cache_dir=cache_dir)
    return WebDatasetSource(shards_listed, tuple(classes or ()), notes)
