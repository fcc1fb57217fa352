"""Samples of WebDataset shards (tar archives): by index, each by one request for its bytes, or one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from variegate.errors import DecodeError
from variegate.formats.base import (
    Item,
    SampleName,
    SourceError,
    StoredFile,
    StreamItem,
    describe,
    digest_of,
    first_names,
)
from variegate.formats.labels import class_names_beside
from variegate.formats.reading import open_stream, read_range
from variegate.formats.samples import Samples, Store
from variegate.formats.tar.index import PLACES, ListedShard, list_shards, sorted_shards
from variegate.formats.tar.members import unpacked_reader
from variegate.formats.tar.samples import (
    NO_LABEL,
    ShardCounts,
    ShardFailure,
    TarSample,
    TarSamples,
    notes_of_walks,
    resolve_label,
    split_name,
    too_large,
)
from variegate.io.files import StrPath
from variegate.io.location import Location, LocationLike, relative_names


class TarStream:
    """Tar archives, plain or gzip'ed, not opened before they are read. Samples, labels and ids are those of
    ``open_webdataset``; what cannot be read ends its shard with a StreamItem that holds the DecodeError."""

    # Extensions of members that are read beside the images.
    _wanted: frozenset[str] = frozenset()

    def __init__(self, shards: Sequence[LocationLike], classes: Sequence[str] | None = None) -> None:
        self.classes = tuple(classes or ())
        self._numbers = {name: number for number, name in enumerate(self.classes)}
        self._shards = sorted_shards(shards)
        self._is_labelled: bool | None = None
        self._walks: dict[int, tuple[str, ShardCounts, ShardFailure | None]] = {}

    def __repr__(self) -> str:
        shards = "1 shard" if self.num_shards == 1 else f"{self.num_shards:,} shards"
        return describe(self, first_names(list(map(str, self._shards)), 1), f"a stream of {shards}")

    @property
    def fingerprint(self) -> str:
        """Of the names of the shards below the folder that they share, and of the classes."""
        return digest_of("\0".join([*relative_names(self._shards), "", *self.classes]))

    @property
    def num_shards(self) -> int:
        return len(self._shards)

    @property
    def locations(self) -> list[Location]:
        """Of the shards."""
        return list(self._shards)

    def read_shard(self, shard: int) -> Iterator[StreamItem]:
        if not 0 <= shard < len(self._shards):
            raise IndexError(f"shard {shard}: accepted: 0 to {len(self._shards) - 1}")
        return self._read(shard)

    def notes(self) -> list[str]:
        """About the shards that have been read to their ends so far."""
        return notes_of_walks(self._walks[shard] for shard in sorted(self._walks))

    def _read(self, shard: int) -> Iterator[StreamItem]:
        file = str(self._shards[shard])
        position = 0
        counts = ShardCounts()
        try:
            with open_stream(self._shards[shard]) as stream:
                walk = TarSamples(unpacked_reader(stream), with_data=True, wanted=self._wanted)
                for sample in walk:
                    name = SampleName(file, sample.image.name)
                    number = shard << 32 | position
                    yield StreamItem(number, name, self._item(sample, name, shard, number))
                    position += 1
                counts = walk.counts
                failure = walk.failure
        except SourceError as error:
            failure = ShardFailure(None, error.reason(file))
        except DecodeError as error:  # the first bytes could not be read
            failure = ShardFailure(None, error.reason)
        self._walks[shard] = file, counts, failure
        if failure:
            name = SampleName(file, failure.member)
            yield StreamItem(shard << 32 | position, name, DecodeError(str(name), failure.sentence), is_end=True)

    def _item(self, sample: TarSample, name: SampleName, shard: int, number: int) -> Item | DecodeError:
        """``number``: the sample's id."""
        if self._is_labelled is None and (shard == 0 or self._first_is_labelled() is None):
            self._is_labelled = sample.label != NO_LABEL
        key, _ = split_name(sample.image.name) or ("", "")
        label, problem = resolve_label(sample.label, key, self._numbers, bool(self._is_labelled))
        problem = problem or too_large(sample.image.size)
        return DecodeError(str(name), problem) if problem else Item(sample.data or b"", label)

    def _first_is_labelled(self) -> bool | None:
        """True if the data set's first sample has a label, so that others need one; None without a sample."""
        if self._is_labelled is None:
            for location in self._shards:
                try:
                    with open_stream(location) as stream:
                        first = next(iter(TarSamples(unpacked_reader(stream), with_data=False)), None)
                except (SourceError, DecodeError):
                    continue
                if first is not None:
                    self._is_labelled = first.label != NO_LABEL
                    break
        return self._is_labelled


class TarStore(Store):
    """Images in shards. A row that a shard broke off in has no image."""

    def __init__(self, shards: Sequence[ListedShard]) -> None:
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
        return read_range(file.location, offset, size, file.size, name)


def open_tar(
    files: Sequence[Location],
    *,
    stream: bool | None = None,
    on_error: str = "raise",
    classes: Sequence[str] | None = None,
    cache_dir: StrPath | None = None,
) -> Samples | TarStream:
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
    cache_dir: StrPath | None = None,
) -> Samples:
    """List the samples of uncompressed tar archives. Each shard is walked over once and its index kept: beside it
    (``train-00.tar.index``), or in ``cache_dir``. A sample is a key (the name up to the first dot of the base name)
    with an image member; its label is in its ``.cls`` member, or under "label", "cls" or "class" in its ``.json``
    member.

    ``on_error="skip"``: of shards that are cut off or cannot be read the whole samples are listed, and one entry more,
    whose ``read`` raises the DecodeError. Raises SourceError for them otherwise, and where nothing is listed.
    """
    listed, notes = list_shards(shards, tuple(classes or ()), on_error=on_error, cache_dir=cache_dir)
    rows = [len(shard.labels) for shard in listed]
    return Samples(
        place=first_names([str(shard.location) for shard in listed], 1),
        size=sum(rows),
        store=TarStore(listed),
        classes=tuple(classes or ()),
        path=pa.concat_arrays([shard.names() for shard in listed]),
        files=[StoredFile(shard.location, len(shard.labels), *shard.index.version) for shard in listed],
        label=np.concatenate([shard.labels for shard in listed]),
        # As a TarStream of the same shards has them.
        id=np.concatenate([number << 32 | np.arange(count) for number, count in enumerate(rows)]).astype(np.uint64),
        remarks=notes,
        is_remote=any(shard.location.is_url for shard in listed),
    )
