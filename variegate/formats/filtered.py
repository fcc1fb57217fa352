"""Sources of which some samples are left out, by their names.

What is left has the ids, labels and classes that it had, so that its random numbers are those that it would have beside
the others. A sample's name in tables, findings and lists is a line of text, the same wherever the data stands: of a
folder's images the path below the folder; of others the name of the file that holds them, without its folder, and the
name within it: ``train-000.tar: 0017.jpg``, ``train.parquet: row 12``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from variegate.formats.base import (
    Item,
    PixelSource,
    SampleName,
    Source,
    StoredFile,
    StreamItem,
    StreamSource,
    check_index,
    digest_of,
)
from variegate.formats.stamps import printable
from variegate.io.location import Location
from variegate.threads import computed_once


def sample_key(source: Any, index: int) -> str:
    """Of a Source's sample. A tar may hold a member twice, and shards of one name may lie in different folders."""
    path = getattr(source, "relative_path", None)  # a FileSource's
    return stream_key(source.name(index)) if path is None else as_line(path(index))


def sample_keys(source: Any) -> list[str]:
    """``sample_key`` of all."""
    path, name = getattr(source, "relative_path", None), source.name
    return [stream_key(name(index)) if path is None else as_line(path(index)) for index in range(len(source))]


def stream_key(name: SampleName) -> str:
    """Of a sample whose name is known: a StreamItem's, or a Source's that is no FileSource."""
    if name.member is None:
        return as_line(name.file)
    return as_line(f"{_last_part(name.file)}: {name.member}")


def as_line(name: str) -> str:
    """A name as UTF-8 on one line: bytes that are not UTF-8 as ``\\udcff``, ends of lines as ``\\n`` and ``\\r``."""
    if "\n" in name or "\r" in name:
        name = name.replace("\n", "\\n").replace("\r", "\\r")
    return printable(name)


@lru_cache(256)
def _last_part(file: str) -> str:
    return Location.of(file).name or file


def _of_whole(name: str, *default: bool) -> Any:
    return property(lambda self: getattr(self.whole, name, *default))


class _WithTargetsOfWhole:
    """Has targets, edges in them, and labels of images, where its ``whole`` has them; and its classes."""

    whole: Any
    classes = _of_whole("classes")
    has_targets = _of_whole("has_targets", False)
    has_edges = _of_whole("has_edges", False)
    has_image_labels = _of_whole("has_image_labels", True)


class KeptSource(_WithTargetsOfWhole):
    """Samples of a source by ascending indices ``kept``; ``exclude``: the place of the others' list, or ""."""

    is_remote = _of_whole("is_remote")

    def __init__(self, whole: Any, kept: npt.NDArray[np.int64], notes: list[str], exclude: str = "") -> None:
        self.whole, self.kept, self.exclude = whole, kept, exclude
        self._notes = notes

    def __repr__(self) -> str:
        inside = repr(self.whole).removeprefix(f"{type(self.whole).__name__}(")
        count, kept = f"{len(self.whole):,} sample", f"{len(self):,} sample"
        plural = "" if len(self) == 1 else "s"
        return f"{type(self).__name__}({inside.replace(f'{count}s', f'{kept}{plural}', 1)}"

    def __len__(self) -> int:
        return len(self.kept)

    @computed_once
    def fingerprint(self) -> str:
        """Of the whole and of which samples are kept; not of names that were no sample's."""
        return digest_of(f"{self.whole.fingerprint}\0", self.kept.tobytes())

    def _at(self, index: int) -> int:
        check_index(index, len(self.kept))
        return int(self.kept[index])

    def read(self, index: int) -> Item:
        return cast(Item, self.whole.read(self._at(index)))

    def name(self, index: int) -> SampleName:
        return cast(SampleName, self.whole.name(self._at(index)))

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return cast("npt.NDArray[np.uint64]", self.whole.ids(self.kept[indices]))

    def labels(self, indices: npt.NDArray[np.int64]) -> Any:
        ask = getattr(self.whole, "labels", None)
        return None if ask is None else ask(self.kept[indices])

    def notes(self) -> list[str]:
        return [*self.whole.notes(), *self._notes]

    @property
    def stored_files(self) -> Callable[[], list[StoredFile]]:
        """As the whole has it, with the numbers of samples that are kept. Raises AttributeError where it has none."""
        ask = self.whole.stored_files

        def stored_files() -> list[StoredFile]:
            files = ask()
            ends = np.cumsum([0, *(file.samples for file in files)])
            counts = np.diff(np.searchsorted(self.kept, ends)).tolist()
            return [file._replace(samples=count) for file, count in zip(files, counts, strict=True)]

        return stored_files


class KeptFiles(KeptSource):
    """Of a FileSource."""

    folder = _of_whole("folder")

    def relative_path(self, index: int) -> str:
        return cast(str, self.whole.relative_path(self._at(index)))

    @property
    def path_beside(self) -> Callable[[int], str]:
        """As the whole has it. Raises AttributeError where it has none."""
        ask: Callable[[int], str] = getattr(self.whole, "path_beside")  # noqa: B009
        return lambda index: ask(int(self.kept[index]))


class KeptPixels(KeptSource):
    """Of a PixelSource."""

    is_stacked = _of_whole("is_stacked")

    def pixels(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        for index in (indices.min(), indices.max()) if len(indices) else ():
            check_index(int(index), len(self.kept))
        return cast(PixelSource, self.whole).pixels(self.kept[indices])


class KeptStream(_WithTargetsOfWhole):
    """A stream without the samples of some names. How many these are shows as it is read."""

    num_shards = _of_whole("num_shards")

    def __init__(self, whole: StreamSource, names: frozenset[str], exclude: str = "") -> None:
        self.whole, self.exclude = whole, exclude
        self._names = names
        self._left_out: dict[int, frozenset[str]] = {}  # by shard that was read to its end

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.whole!r} without {len(self._names):,} names)"

    @computed_once
    def fingerprint(self) -> str:
        return digest_of("\0".join([self.whole.fingerprint, *sorted(self._names)]))

    @property
    def locations(self) -> list[Location]:
        """Of the shards; none where the stream does not say."""
        return list(getattr(self.whole, "locations", ()))

    def read_shard(self, shard: int) -> Iterator[StreamItem]:
        return self._read(shard, self.whole.read_shard(shard))

    def _read(self, shard: int, items: Iterator[StreamItem]) -> Iterator[StreamItem]:
        left_out: set[str] = set()
        for item in items:
            if not item.is_end and (key := stream_key(item.name)) in self._names:
                left_out.add(key)
            else:
                yield item
        self._left_out[shard] = frozenset(left_out)

    def notes(self) -> list[str]:
        """About the shards that have been read to their ends so far."""
        lines = self.whole.notes()
        if self._left_out:
            found = frozenset().union(*self._left_out.values())
            lines.append(f"left out: {len(found):,} images, by their names")
            unknown = self._names - found
            if len(self._left_out) == self.num_shards and unknown:
                some = min(unknown)
                lines.append(f"of no image: {len(unknown):,} of the names to leave out, such as {some!r}")
        return lines


def whole_of(source: Source | StreamSource) -> Source | StreamSource:
    """The source that some samples of are kept; itself, where all are."""
    while isinstance(source, (KeptSource, KeptStream)):
        source = source.whole
    return source


def excluded_from(source: Source | StreamSource) -> dict[str, Any]:
    """Entries to open a source again: ``exclude``, the place of its list, and ``left_out``, the number of samples."""
    if not isinstance(source, KeptSource):
        return {}
    return {"exclude": source.exclude, "left_out": len(source.whole) - len(source)}
