"""Samples of WebDataset shards one after another: a shard is read once, from its beginning, with little memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from variegate.data.sources.base import Item, SampleName, SourceError, StreamItem, describe, first_names
from variegate.data.sources.reading import open_stream
from variegate.data.sources.tar.labels import NO_LABEL, LabelResolver
from variegate.data.sources.tar.listing import sorted_shards
from variegate.data.sources.tar.readers import StreamReader, gunzipped
from variegate.data.sources.tar.samples import ShardCounts, ShardFailure, ShardNotes, TarSamples, split_name, too_large
from variegate.errors import DecodeError
from variegate.outside.location import LocationLike, relative_names


class TarStream:
    """Tar archives, plain or gzip'ed, local ones or addresses that fsspec reads; nothing is opened before it is read.

    Samples, labels and ids are those of ``open_webdataset`` for the same shards. What cannot be read, be it a shard
    that is not there, ends that shard with a StreamItem that holds the DecodeError.
    """

    def __init__(self, shards: Sequence[LocationLike], classes: Sequence[str] | None = None) -> None:
        self.classes = tuple(classes or ())
        self._shards = sorted_shards(shards)
        self._is_labelled: bool | None = None
        self._notes = ShardNotes()

    def __repr__(self) -> str:
        shards = "1 shard" if self.num_shards == 1 else f"{self.num_shards:,} shards"
        return describe(self, first_names(list(map(str, self._shards)), 1), f"a stream of {shards}")

    @property
    def fingerprint(self) -> str:
        """Of the names of the shards below the folder that they share, and of the classes."""
        names = "\0".join([*relative_names(self._shards), "", *self.classes])
        return hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    @property
    def num_shards(self) -> int:
        return len(self._shards)

    def read_shard(self, shard: int) -> Iterator[StreamItem]:
        if not 0 <= shard < len(self._shards):
            raise IndexError(f"shard {shard}: accepted: 0 to {len(self._shards) - 1}")
        return self._read(shard)

    def notes(self) -> list[str]:
        """About the shards that have been read to their ends so far."""
        return self._notes.lines()

    def _read(self, shard: int) -> Iterator[StreamItem]:
        file = str(self._shards[shard])
        position, counts = 0, ShardCounts()
        try:
            with open_stream(self._shards[shard]) as stream:
                walk = TarSamples(StreamReader(gunzipped(stream)), with_data=True)
                for image, data, label in walk:
                    if self._is_labelled is None and (shard == 0 or self._first_is_labelled() is None):
                        self._is_labelled = label != NO_LABEL
                    resolver = LabelResolver(self.classes, bool(self._is_labelled))
                    parts = split_name(image.name)
                    number, problem = resolver.resolve(label, parts[0] if parts else "")
                    problem = problem or too_large(image.size)
                    name = SampleName(file, image.name)
                    item = DecodeError(str(name), problem) if problem else Item(data or b"", number)
                    yield StreamItem(shard << 32 | position, name, item)
                    position += 1
                counts, failure = walk.counts, walk.failure
        except SourceError as error:
            failure = ShardFailure(None, error.reason(file))
        except DecodeError as error:  # the first bytes could not be read
            failure = ShardFailure(None, error.reason)
        self._notes.add(shard, file, counts, failure.reason if failure else "")
        if failure:
            name = SampleName(file, failure.member)
            yield StreamItem(shard << 32 | position, name, DecodeError(str(name), failure.sentence), is_end=True)

    def _first_is_labelled(self) -> bool | None:
        """Whether the data set's first sample has a label, which decides if others need one; None without a sample."""
        if self._is_labelled is None:
            for location in self._shards:
                try:
                    with open_stream(location) as stream:
                        first = next(iter(TarSamples(StreamReader(gunzipped(stream)), with_data=False)), None)
                except (SourceError, DecodeError):
                    continue
                if first is not None:
                    self._is_labelled = first.label != NO_LABEL
                    break
        return self._is_labelled
