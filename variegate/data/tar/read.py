"""Samples of WebDataset shards (tar archives), by index: of all shards, or of each when an epoch comes to it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa

from variegate.data.base import SourceError, StoredFile, check_on_error, digest_of, first_names
from variegate.data.labels import class_names_beside
from variegate.data.reading import FileVersion, read_range
from variegate.data.samples import Samples, Store
from variegate.data.sharded import POSITION_BITS, ShardedSource
from variegate.data.tar.copies import DEFAULT_COPIES, ShardCopies
from variegate.data.tar.index import (
    PLACES,
    ListedShard,
    first_is_labelled,
    list_shard,
    list_shards,
    notes_of,
    sorted_shards,
)
from variegate.data.tar.samples import too_large
from variegate.errors import DecodeError
from variegate.io.files import StrPath
from variegate.io.location import Location, LocationLike, relative_names
from variegate.threads import computed_once


class TarShards(ShardedSource):
    """Tar archives, plain or gzip'ed. Samples, labels and ids are those of ``open_webdataset``. ``members``: of
    objects or masks beside the images (``annotated.members.Members``), if they are read."""

    def __init__(
        self,
        shards: Sequence[LocationLike],
        classes: Sequence[str] | None,
        on_error: str,
        copies: ShardCopies,
        members: Any = None,
    ) -> None:
        check_on_error(on_error)
        super().__init__(sorted_shards(shards), classes or (), on_error)
        self.has_targets = self.has_edges = members is not None
        self.has_image_labels = members is None
        self._copies = copies
        self._members = members

    @computed_once
    def fingerprint(self) -> str:
        of_shards = super().fingerprint
        return of_shards if self._members is None else cast(str, self._members.fingerprint(of_shards))

    def _open(self, number: int, fetch: bool) -> Samples | None:
        is_labelled = self._members is None and self._is_labelled
        shard = list_shard(self.locations[number], self.classes, is_labelled, self.on_error, self._copies, fetch)
        if shard is None:
            return None
        return self._with_members(_samples([shard], self.classes, notes_of([shard], []), self._copies, number))

    def _open_all(self) -> Samples:
        shards = open_webdataset(self.locations, classes=self.classes, on_error=self.on_error, copies=self._copies)
        return self._with_members(shards)

    def _with_members(self, shards: Samples) -> Samples:
        return shards if self._members is None else cast(Samples, self._members.over(shards))

    @computed_once
    def _is_labelled(self) -> bool:
        """True if the data set's first sample has a label, so that others need one."""
        for shard in self.locations:
            with suppress(SourceError, DecodeError):
                if (found := first_is_labelled(shard, self._copies)) is not None:
                    return found
        return False


class TarStore(Store):
    """Images in shards. A row that a shard broke off in has no image."""

    def __init__(self, shards: Sequence[ListedShard], copies: ShardCopies) -> None:
        self._copies = copies
        self._copy_sizes = {shard.location: shard.index.copy_size for shard in shards if shard.index.copy_size}
        self._columns = {name: np.concatenate([shard.column(name) for shard in shards]) for name in PLACES}
        starts = np.cumsum([0, *(len(shard.labels) for shard in shards)]).tolist()
        self._broken = {
            start + position: problem
            for start, shard in zip(starts, shards, strict=False)
            for position, problem in shard.broken.items()
        }

    def digest(self, samples: Samples) -> str:
        assert isinstance(samples.label, np.ndarray)
        parts: list[str | bytes] = ["\0".join(samples.classes)]
        start = 0
        for file, name in zip(samples.files, relative_names([file.location for file in samples.files]), strict=True):
            end = start + file.samples
            has_image = self._columns["offsets"][start:end] >= 0
            members = samples.path[start:end].filter(pa.array(has_image)).to_pylist()
            parts += [f"\0{name}\0{file.samples}\0", b"".join(member + b"\0" for member in members)]
            parts += [self._columns["sizes"][start:end][has_image].tobytes(), samples.label[start:end].tobytes()]
            start = end
        return digest_of(*parts)

    def read(self, samples: Samples, row: int) -> bytes:
        """The bytes of the image file. Raises DecodeError naming shard and member."""
        if row in self._broken:
            raise DecodeError(str(samples.row_name(row)), self._broken[row])
        offset = self._columns["offsets"].item(row)
        return self._read(samples, row, offset, self._columns["sizes"].item(row))

    def read_members(self, samples: Samples, row: int) -> bytes:
        """All members of a sample, with their headers. Raises DecodeError naming shard and member."""
        begin = self._columns["begins"].item(row)
        if begin < 0:
            raise DecodeError(str(samples.row_name(row)), self._broken[row])
        return self._read(samples, row, begin, self._columns["ends"].item(row) - begin, "its members are ")

    def _read(self, samples: Samples, row: int, offset: int, size: int, what: str = "") -> bytes:
        name = str(samples.row_name(row))
        if problem := too_large(size):
            raise DecodeError(name, f"{what}{problem}")
        file, _ = samples.file_of(row)
        copy_size = self._copy_sizes.get(file.location, 0)
        open_copy = None
        if file.location.is_url or copy_size:
            version = FileVersion(file.size, file.version)
            open_copy = partial(self._copies.open, file.location, version, fetch=copy_size > 0)
        return read_range(file.location, offset, size, copy_size or file.size, name, open_copy)


def open_tar(
    files: Sequence[Location],
    *,
    stream: bool | None = None,
    on_error: str = "raise",
    classes: Sequence[str] | None = None,
    cache_dir: StrPath | None = None,
    cache_limit: int | None = None,
) -> Samples | TarShards:
    """Shards by index, or opened in epochs (None: if they are remote), with names of classes from the file beside."""
    names = class_names_beside(files) if classes is None else classes
    copies = ShardCopies(cache_dir, cache_limit)
    if are_streamed(files, stream):
        return TarShards(files, names, on_error, copies)
    return open_webdataset(files, classes=names, on_error=on_error, copies=copies)


def are_streamed(files: Sequence[Location], stream: bool | None) -> bool:
    return any(file.is_url for file in files) if stream is None else stream


def open_webdataset(
    shards: Sequence[LocationLike],
    *,
    classes: Sequence[str] | None = None,
    on_error: str = "raise",
    copies: ShardCopies = DEFAULT_COPIES,
) -> Samples:
    """List the samples of tar archives. Each shard is walked over once and its index kept: beside it
    (``train-00.tar.index``), or in the folder of ``copies``, which holds copies of remote and gzip'ed shards. A sample
    is a key (the name up to the first dot of the base name) with an image member; its label is in its ``.cls`` member,
    or under "label", "cls" or "class" in its ``.json`` member.

    ``on_error="skip"``: of shards that are cut off or cannot be read the whole samples are listed, and one entry more,
    whose ``read`` raises the DecodeError. Raises SourceError for them otherwise, and where nothing is listed.
    """
    known = tuple(classes or ())
    listed, notes = list_shards(shards, known, on_error=on_error, copies=copies)
    return _samples(listed, known, notes, copies)


def _samples(
    listed: Sequence[ListedShard], classes: tuple[str, ...], notes: list[str], copies: ShardCopies, first: int = 0
) -> Samples:
    """``first``: number of the first shard, in ids."""
    rows = [len(shard.labels) for shard in listed]
    return Samples(
        place=first_names([str(shard.location) for shard in listed], 1),
        size=sum(rows),
        store=TarStore(listed, copies),
        classes=classes,
        path=pa.concat_arrays([shard.names() for shard in listed]),
        files=[StoredFile(shard.location, len(shard.labels), *shard.index.version) for shard in listed],
        label=np.concatenate([shard.labels for shard in listed]),
        id=np.concatenate(
            [number << POSITION_BITS | np.arange(count) for number, count in enumerate(rows, first)]
        ).astype(np.uint64),
        remarks=notes,
        is_remote=any(shard.location.is_url for shard in listed),
    )
