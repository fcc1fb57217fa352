"""What is in a shard and where, found by one walk over its headers; labels are read on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variegate.data.sources.reading import FileVersion, open_stream
from variegate.data.sources.remote import named_errors
from variegate.data.sources.tar.labels import NO_LABEL, Label, LabelKind
from variegate.data.sources.tar.readers import FileReader, StreamReader
from variegate.data.sources.tar.samples import ShardCounts, ShardFailure, TarSamples
from variegate.outside.files import open_regular
from variegate.outside.location import Location


@dataclass(frozen=True, eq=False)
class ShardIndex:
    """A shard's samples as arrays [samples], in order.

    ``names``: the members of the images, each ended by a NUL. ``values``: the label where its kind is NUMBER; where it
    is NAME or BAD, the place in ``texts``, which holds (text, extension of the label's member) once each.
    """

    version: FileVersion
    offsets: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint8]
    values: npt.NDArray[np.int64]
    texts: list[tuple[str, str]]
    names: bytes
    counts: ShardCounts
    failure: ShardFailure | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def label(self, position: int) -> Label:
        kind, value = LabelKind(self.kinds[position]), int(self.values[position])
        if kind == LabelKind.NONE:
            return NO_LABEL
        if kind == LabelKind.NUMBER:
            return Label(kind, value)
        text, extension = self.texts[value]
        return Label(kind, text=text, extension=extension)

    def name_ends(self) -> npt.NDArray[np.int64]:
        """Where in ``names`` the NUL of each stands."""
        return np.flatnonzero(np.frombuffer(self.names, np.uint8) == 0)


def name_at(names: bytes, ends: npt.NDArray[np.int64], position: int) -> str:
    begin = int(ends[position - 1]) + 1 if position else 0
    return names[begin : int(ends[position])].decode("utf-8", "surrogateescape")


def empty_index(version: FileVersion, failure: ShardFailure) -> ShardIndex:
    """Of a shard that cannot be read at all."""
    none = np.zeros(0, np.int64)
    return ShardIndex(version, none, none, none.astype(np.uint8), none, [], b"", ShardCounts(), failure)


def index_shard(shard: Location, version: FileVersion) -> ShardIndex:
    """Walk over a shard: locally its headers and labels are read, of a remote one everything, once, as a stream.

    Raises SourceError where nothing of it can be read.
    """
    if shard.is_url:
        with open_stream(shard) as stream:
            return _collect(TarSamples(StreamReader(stream), with_data=False), version)
    with named_errors(shard), open_regular(shard.address()) as file:
        return _collect(TarSamples(FileReader(file, version.size, str(shard)), with_data=False), version)


def _collect(walk: TarSamples, version: FileVersion) -> ShardIndex:
    places: list[tuple[int, int, int, int]] = []
    names: list[bytes] = []
    texts: dict[tuple[str, str], int] = {}
    for image, _, label in walk:
        value = label.number
        if label.kind in (LabelKind.NAME, LabelKind.BAD):
            value = texts.setdefault((label.text, label.extension), len(texts))
        places.append((image.offset, image.size, label.kind, value))
        names.append(image.name.encode("utf-8", "surrogateescape"))
    columns = np.array(places, np.int64).reshape(-1, 4).T
    return ShardIndex(
        version=version,
        offsets=columns[0].copy(),
        sizes=columns[1].copy(),
        kinds=columns[2].astype(np.uint8),
        values=columns[3].copy(),
        texts=list(texts),
        names=b"".join(name + b"\0" for name in names),
        counts=walk.counts,
        failure=walk.failure,
    )
