"""Samples that are left out of a source, by their names, as ``filtered.py`` has them, in a file or a sequence.

A list is a text file in UTF-8 with a name a line. Its first line may say what it is, if it begins with ``# ``; empty
lines say nothing. ``variegate clean --exclude-list`` writes such a file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from variegate.errors import DecodeError
from variegate.formats.base import FileSource, PixelSource, Source, SourceError, StreamSource, first_names
from variegate.formats.filtered import KeptFiles, KeptPixels, KeptSource, KeptStream, sample_keys
from variegate.formats.reading import read_file
from variegate.io.location import Location

ACCEPTED = "a text file with a name a line, as variegate clean --exclude-list writes it, or a sequence of names"
HEADER = "# "
_MOST_BYTES = 4 << 30


@dataclass(frozen=True, eq=False)
class PlaceWithout(os.PathLike[str]):
    """A place of samples, and the list of those to leave out, for functions that hand on to ``open_source``."""

    place: str
    exclude: str | os.PathLike[str]

    def __fspath__(self) -> str:
        return self.place

    def __str__(self) -> str:
        return self.place


def place_without(place: str, exclude: str | os.PathLike[str] | None) -> Any:
    """The place itself where nothing is left out."""
    return place if exclude is None else PlaceWithout(place, exclude)


def without(source: Source | StreamSource, exclude: Any) -> Source | StreamSource:
    """The source without the samples that ``exclude`` names; itself, where that names none at all. Raises
    SourceError for a list that cannot be read, or names none of the source's; TypeError for what is no list."""
    names, place = read_names(exclude)
    if not names:
        return source
    # Asked of the class: isinstance() of the protocol would compute the fingerprint.
    if hasattr(type(source), "read_shard"):
        return KeptStream(cast(StreamSource, source), frozenset(names), place)
    return _without(cast(Source, source), frozenset(names), place)


def read_names(exclude: Any) -> tuple[list[str], str]:
    """-> the names, in their order, and the list's absolute path or address; "" where it is a sequence."""
    if isinstance(exclude, (str, os.PathLike, Location)):
        location = Location.parse(exclude)
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
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = "a Parquet file" if data.startswith(b"PAR1") else f"not UTF-8 at byte {error.start:,}"
        raise SourceError(f"exclude: {location}: {what}; accepted: {ACCEPTED}") from None
    if text.startswith("PAR1"):
        raise SourceError(f"exclude: {location}: a Parquet file; accepted: {ACCEPTED}")
    # Not splitlines, to which a name may hold further ends of lines.
    for number, line in enumerate(text.split("\n")):
        name = line.removesuffix("\r")
        if name and not (number == 0 and name.startswith(HEADER)):
            yield name


def _without(source: Source, names: frozenset[str], place: str) -> Source:
    keys = sample_keys(source)
    is_kept = np.fromiter((key not in names for key in keys), np.bool_, len(keys))
    left_out = np.flatnonzero(~is_kept)
    found = {keys[index] for index in left_out.tolist()}
    of_list = f" of {os.path.basename(place)}" if place else ""
    if not found:
        some = first_names(sorted(names)[:1])
        there = f"; its images have names such as {keys[0]!r}" if keys else ""
        raise SourceError(
            f"exclude: none of the {len(names):,} names{of_list}, such as {some!r}, is in {source!r}{there}"
        )
    notes = [f"left out: {len(left_out):,} of {len(keys):,} images, by the names{of_list}"]
    if unknown := sorted(names - found):
        notes.append(f"of no image: {len(unknown):,} of the names to leave out{of_list}, such as {unknown[0]!r}")
    if len(left_out) > len(found):
        counts = Counter(keys[index] for index in left_out.tolist())
        twice = next(key for key, count in counts.items() if count > 1)
        notes.append(f"a name to leave out is that of several images, all of which are left out: {twice!r}")
    if not is_kept.any():
        raise SourceError(
            f"exclude: all {len(keys):,} images of {source!r} are left out{of_list and f' by the names{of_list}'}"
        )
    kind: type[KeptSource] = KeptSource
    if isinstance(source, FileSource):
        kind = KeptFiles
    elif isinstance(source, PixelSource):
        kind = KeptPixels
    return kind(source, np.flatnonzero(is_kept), notes, place)
