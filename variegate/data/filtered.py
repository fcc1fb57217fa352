"""Sources without some of their samples, whose names are listed in a file or a sequence.

The remaining samples keep their ids, labels and classes, and therefore their random numbers. A sample's name in tables,
findings and lists is a line of text, the same wherever the data stands: of a folder's images the path below the folder;
of others the name of the file that holds them, without its folder, and the name within it: ``train-000.tar: 0017.jpg``,
``train.parquet: row 12``. A list is a text file in UTF-8 with a name per line, and perhaps a tab and a remark after the
name. Its first line may be a comment that begins with ``# ``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from variegate.arrays import BoolArray
from variegate.data.base import SampleRef, SourceError, summarize_names
from variegate.data.reading import parse_file, read_file
from variegate.data.samples import Samples
from variegate.data.sharded import AnySource, ShardedSource
from variegate.data.stamps import escape_undecodable
from variegate.errors import DecodeError
from variegate.io.amounts import pluralize
from variegate.io.files import StrPath
from variegate.io.location import Location


def sample_key(source: Samples, index: int) -> str:
    """The name of a sample in tables and lists. Names need not be unique: a tar may hold a member twice, and shards of
    one name may be in different folders."""
    path = source.relative_path(index)
    return name_key(source.name(index)) if path is None else as_line(path)


def sample_keys(source: Samples) -> list[str]:
    """``sample_key`` of all."""
    if source.folder is not None:
        return list(map(as_line, source.paths()))
    return [sample_key(source, index) for index in range(len(source))]


def name_key(name: SampleRef) -> str:
    """The key of a sample with a known name, for sources other than folders."""
    if name.member is None:
        return as_line(name.file)
    return as_line(f"{_last_part(name.file)}: {name.member}")


def as_line(name: str) -> str:
    """A name as UTF-8 on one line: bytes that are not UTF-8 as ``\\udcff``; ``\\n``, ``\\r`` and ``\\t``."""
    return escape_undecodable(name.translate(_ESCAPES))


@lru_cache(256)
def _last_part(file: str) -> str:
    return Location.of(file).name or file


def whole_of(source: Any) -> Any:
    """The source without exclusions; itself, if it has none."""
    return source.whole if isinstance(source, (Samples, ShardedSource)) else source


ACCEPTED = "a text file with a name per line, as variegate clean writes it, or a sequence of names"
HEADER = "# "
REASON_SEPARATOR = "\t"
_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", REASON_SEPARATOR: "\\t"})
_MOST_BYTES = 4 << 30


@dataclass(frozen=True, eq=False)
class SourceWithExclusions(os.PathLike[str]):
    """A source's address with the list of names to exclude, for functions that call ``open_source`` later."""

    place: str
    exclude: StrPath

    def __fspath__(self) -> str:
        return self.place

    def __str__(self) -> str:
        return self.place


def exclude_on_open(place: str, exclude: StrPath | None) -> Any:
    """Returns ``place`` itself if nothing is excluded."""
    return place if exclude is None else SourceWithExclusions(place, exclude)


def without(source: AnySource, exclude: Any) -> AnySource:
    """The source without the samples that ``exclude`` names; itself, where that names none at all. Raises SourceError
    for a list that cannot be read or names no sample of the source; TypeError if it is not a list."""
    names, place = read_names(exclude)
    if not names:
        return source
    if isinstance(source, ShardedSource):
        return source.excluding(frozenset(names), exclude_samples)
    return _without(source, frozenset(names), place)


def exclude_samples(source: Samples, names: frozenset[str]) -> Samples:
    """The source without samples of these names; names without a sample are accepted."""
    keys, is_kept = _keys_and_kept(source, names)
    if is_kept.all():
        return source
    note = f"excluded: {len(keys) - is_kept.sum():,} of {pluralize(len(keys), 'image')}, by their names"
    return source.take(np.flatnonzero(is_kept), [note])


def _keys_and_kept(source: Samples, names: frozenset[str]) -> tuple[list[str], BoolArray]:
    """The names of all samples, and a mask of the samples not in ``names``."""
    keys = sample_keys(source)
    return keys, np.fromiter((key not in names for key in keys), np.bool_, len(keys))


def read_names(exclude: Any) -> tuple[list[str], str]:
    """-> the names, in their order, and the list's absolute path or address; "" where it is a sequence."""
    if isinstance(exclude, (str, os.PathLike, Location)):
        location = parse_file("exclude", exclude)
        place = str(location) if location.is_url else os.path.abspath(location.address())
        return list(_lines(location)), place
    if isinstance(exclude, (bytes, bytearray)) or not isinstance(exclude, Iterable):
        raise TypeError(f"exclude: got {type(exclude).__name__}; accepted: {ACCEPTED}")
    names = list(exclude)
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise TypeError(f"exclude: got {odd!r} in the sequence; accepted: {ACCEPTED}")
    return names, ""


def _lines(location: Location) -> Iterator[str]:
    try:
        data = read_file(location, _MOST_BYTES)
    except DecodeError as error:
        raise SourceError(f"exclude: {location}: {error.reason}; accepted: {ACCEPTED}") from None
    if data.startswith(b"PAR1"):
        raise SourceError(f"exclude: {location}: a Parquet file; accepted: {ACCEPTED}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"exclude: {location}: not UTF-8 at byte {error.start:,}; accepted: {ACCEPTED}") from None
    # Not splitlines, to which a name may hold further ends of lines.
    for number, line in enumerate(text.split("\n")):
        name = line.removesuffix("\r").partition(REASON_SEPARATOR)[0]
        if name and not (number == 0 and name.startswith(HEADER)):
            yield name


def _without(source: Samples, names: frozenset[str], place: str) -> Samples:
    keys, is_kept = _keys_and_kept(source, names)
    left_out = np.flatnonzero(~is_kept)
    found = {keys[index] for index in left_out.tolist()}
    of_list = f" of {os.path.basename(place)}" if place else ""
    if not found:
        some = summarize_names(sorted(names)[:1])
        there = f"; its images have names such as {keys[0]!r}" if keys else ""
        raise SourceError(
            f"exclude: none of the {len(names):,} names{of_list}, such as {some!r}, is in {source!r}{there}"
        )
    notes = [f"excluded: {len(left_out):,} of {pluralize(len(keys), 'image')}, by the names{of_list}"]
    if unknown := sorted(names - found):
        notes.append(f"of no image: {len(unknown):,} of the names to exclude{of_list}, such as {unknown[0]!r}")
    if len(left_out) > len(found):
        counts = Counter(keys[index] for index in left_out.tolist())
        twice = next(key for key, count in counts.items() if count > 1)
        notes.append(f"an excluded name is that of several images, all of which are excluded: {twice!r}")
    if not is_kept.any():
        raise SourceError(
            f"exclude: all {len(keys):,} images of {source!r} are excluded{of_list and f' by the names{of_list}'}"
        )
    return source.take(np.flatnonzero(is_kept), notes, place)
