"""Stamps, which detect changed files of a source: a size and a time, or an ETag, per file.

One stat a file, and nothing is read. Names are relative to the files' common folder, so that a data set that was moved,
or copied with its times, compares equal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

import numpy as np

from variegate.arrays import BoolArray, Int64Array
from variegate.data.base import StoredFile
from variegate.data.reading import filesystem, find_below
from variegate.data.samples import Samples
from variegate.io.location import Location, relative_names

UNKNOWN = -1
_SECOND = 1_000_000_000
# Precisions of times in copies: archives keep whole seconds, file systems finer units.
_UNITS = (100, 1_000, 1_000_000, _SECOND)
_STATS_AT_ONCE = 16
_STATS_A_TASK = 1024
# fsspec's file systems: fields that a copy preserves, or else fields that change with the file.
_MARKS = ("ETag", "etag", "md5Hash", "content_md5", "checksum", "sha256")
_TIMES = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "modified", "created", "generation")


class Stamp(NamedTuple):
    """``size`` in bytes, -1 where the file could not be asked. ``time``: ns since 1970 of its last change, -1 if
    unknown; ``mark``: an ETag or similar, "" if unknown."""

    size: int
    time: int = UNKNOWN
    mark: str = ""

    def __str__(self) -> str:
        """``12,345 bytes of 2026-01-02 03:04:05.123456789``, in this machine's time."""
        if self.size == UNKNOWN:
            return "not there"
        date = "" if self.time == UNKNOWN else f" of {_date(self.time)}.{self.time % _SECOND:09}"
        return f"{self.size:,} bytes{date}" + (f" ({self.mark})" if self.mark else "")


@dataclass(frozen=True, eq=False)
class Stamps:
    """Stamps of all files of a source, in its order. ``starts``: the first sample in each file. ``places``: where they
    are now, for messages; None where that is not known. ``names`` that are not UTF-8 have their bytes as
    ``\\udcff``."""

    names: Sequence[str]
    sizes: Int64Array
    times: Int64Array
    marks: Sequence[str]  # empty: none has one
    starts: Int64Array
    places: Callable[[int], str] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def at(self, file: int) -> Stamp:
        return Stamp(int(self.sizes[file]), int(self.times[file]), self.marks[file] if self.marks else "")

    def place(self, file: int) -> str:
        return self.names[file] if self.places is None else self.places(file)

    def file_of(self, sample: int) -> int:
        return int(np.searchsorted(self.starts, sample, "right")) - 1

    def for_workers(self) -> Stamps:
        """A copy with sizes and times alone."""
        return replace(self, names=(), marks=(), places=None)


def stamps_of(source: Samples) -> Stamps | None:
    """Asks every file of a source; None for sources that are no files. Raises SourceError."""
    if source.folder is not None:
        return _of_folder(source, source.folder)
    stored = source.stored_files()
    return _of_files(stored) if stored else None


def differences(was: Stamps, now: Stamps) -> Int64Array:
    """Files of ``now`` that differ from the files of the same names in ``was``. Times are compared at the precision
    that a copy may keep: whole seconds, or the file system's precision."""
    is_other = was.sizes != now.sizes
    is_other |= ~_same_times(was.times, now.times)
    if was.marks and now.marks:
        is_other |= np.array([a != b and bool(a and b) for a, b in zip(was.marks, now.marks, strict=True)], bool)
    return np.flatnonzero(is_other)


def describe_change(was: Stamp, now: Stamp) -> str:
    """``was 12,345 bytes of ..., is ...``."""
    return f"was {was}, is {now}"


def stamp_now(path: str) -> Stamp:
    """The stamp of a file of this machine."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return Stamp(UNKNOWN)
    return Stamp(found.st_size, found.st_mtime_ns)


def is_same(was: Stamp, now: Stamp) -> bool:
    if was == now:
        return True
    if was.size != now.size or (was.mark and now.mark and was.mark != now.mark):
        return False
    return bool(_same_times(np.array([was.time], np.int64), np.array([now.time], np.int64))[0])


def escape_undecodable(name: str) -> str:
    """Escape bytes that are not UTF-8 as ``\\udcff``, as the run's files store names."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode()


def _same_times(was: Int64Array, now: Int64Array) -> BoolArray:
    is_equal = (was == now) | (was == UNKNOWN) | (now == UNKNOWN)
    for unit in _UNITS:
        is_equal |= (was - was % unit == now) | (now - now % unit == was)
    return is_equal


def _date(time: int) -> str:
    try:
        return datetime.fromtimestamp(time // _SECOND).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):  # before the year 1, after 9999
        return f"{time // _SECOND} s after 1970"


def _of_folder(source: Samples, folder: Location) -> Stamps:
    paths = source.paths()
    marks: Sequence[str] = ()
    found: dict[str, Stamp] = {}
    if folder.is_url:
        filesystem(folder)[0].invalidate_cache()
        # A listing, not a request for each.
        for path, info in find_below(folder).items():
            size = info.get("size")
            mark = next((f"{key} {info[key]}" for key in (*_MARKS, *_TIMES) if info.get(key)), "")
            found[path] = Stamp(UNKNOWN if size is None else int(size), UNKNOWN, mark)
        stamps = [found.get(path, Stamp(UNKNOWN)) for path in paths]
        sizes = np.array([stamp.size for stamp in stamps], np.int64)
        marks = [stamp.mark for stamp in stamps]
        times = np.full(len(paths), UNKNOWN)
    else:
        sizes, times = _stat_all([os.path.join(folder.address(), path) for path in paths])
    if masks := source.mask_paths():  # outputs are made of these files as well
        marks = _with_beside(marks, folder, masks, found)
    names = [escape_undecodable(path) for path in paths]
    return Stamps(names, sizes, times, marks, np.arange(len(names)), lambda file: source.name(file).file)


def _with_beside(marks: Sequence[str], folder: Location, paths: list[str], found: dict[str, Stamp]) -> Sequence[str]:
    """Extend marks by the files next to a file: by their size and whole seconds, which copies keep, or by their own
    marks."""
    if folder.is_url:
        stamps = [found.get(path, Stamp(UNKNOWN)) for path in paths]
        return [f"{mark}, beside it {stamp}" for mark, stamp in zip(marks, stamps, strict=True)]
    sizes, times = _stat_all([os.path.join(folder.address(), path) for path in paths])
    both = zip(paths, sizes.tolist(), times.tolist(), strict=True)
    return [f"{escape_undecodable(path)} of {size:,} bytes, changed at {time // _SECOND}" for path, size, time in both]


def _of_files(files: list[StoredFile]) -> Stamps:
    locations = [Location.parse(file.location, chain=True) for file in files]
    names = [escape_undecodable(name) for name in relative_names(locations)]
    has_time = [not place.is_url and file.version.isdigit() for place, file in zip(locations, files, strict=True)]
    times = [int(file.version) if timed else UNKNOWN for file, timed in zip(files, has_time, strict=True)]
    marks = ["" if timed else file.version for file, timed in zip(files, has_time, strict=True)]
    starts = np.cumsum([0, *(file.samples for file in files[:-1])])
    return Stamps(
        names,
        np.array([file.size for file in files], np.int64),
        np.array(times, np.int64),
        marks if any(marks) else (),
        starts.astype(np.int64),
        lambda file: str(locations[file]),
    )


def _stat_all(paths: Sequence[str]) -> tuple[Int64Array, Int64Array]:
    """Sizes and times. Threads, since a network disk takes its time for each; on a local one they cost nothing."""

    def stat_some(some: Sequence[str]) -> Int64Array:
        return np.array([stamp_now(path)[:2] for path in some], np.int64).reshape(-1, 2)

    with ThreadPoolExecutor(_STATS_AT_ONCE, "variegate-stat") as pool:
        chunks = [paths[first : first + _STATS_A_TASK] for first in range(0, len(paths), _STATS_A_TASK)]
        both = np.concatenate([np.zeros((0, 2), np.int64), *pool.map(stat_some, chunks)])
    return both[:, 0].copy(), both[:, 1].copy()
