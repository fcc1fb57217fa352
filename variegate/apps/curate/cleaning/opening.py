"""The source that is to be cleaned and the table of its check, which have to be of the same images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from variegate.apps.curate.cleaning.choosing import LeftOut
from variegate.apps.curate.cleaning.found import Found, read_found
from variegate.formats.base import FileSource, Source, SourceError
from variegate.formats.filtered import sample_key, sample_keys
from variegate.formats.opening import open_source
from variegate.formats.stamps import UNKNOWN, stamps_of
from variegate.io.location import Location
from variegate.jobs.arguments import open_by_index


def open_checked(source: Any, findings: str | PathLike[str], split: str) -> tuple[Found, Source]:
    """The table, and the source that it is of. Raises SourceError where it is of another, or of what it was."""
    found = read_found(findings, split)
    opened = open_by_index(source, "skip")
    place = shown_source(source)
    if opened.fingerprint != found.fingerprint and (placed := _of_stream(source, opened, found)) is not None:
        found = placed
    elif opened.fingerprint != found.fingerprint:
        raise SourceError(f"{place}: holds other images than those that {found.place} is of; run variegate check again")
    if len(found) and not 0 <= found.index.min() <= found.index.max() < len(opened):
        raise SourceError(f"{found.place}: names images that {place} does not have; run variegate check again")
    _check_unchanged(opened, found)
    return found, opened


def _of_stream(source: Any, opened: Source, found: Found) -> Found | None:
    """The table of a check that read the same shards as a stream, with the indices that their images have; None where
    it is of anything else."""
    if not isinstance(source, (str, PathLike)):
        return None
    try:
        stream = open_source(source, stream=True)
    except SourceError:  # of a kind that is no stream
        return None
    if stream.fingerprint != found.fingerprint:
        return None
    places = {key: index for index, key in enumerate(sample_keys(opened))}
    unknown = next((file for file in found.files if file not in places), None)
    if unknown is not None or len(places) < len(opened):
        why = f"names {unknown!r}, which is not there" if unknown is not None else "has names that are several images'"
        raise SourceError(
            f"{found.place}: is of a stream of {shown_source(source)}, and {why}; accepted: a check of it by index"
        )
    return replace(found, index=np.array([places[file] for file in found.files], np.int64))


def _check_unchanged(opened: Source, found: Found) -> None:
    """Of files, sizes tell; of shards, the fingerprint has told."""
    if not isinstance(opened, FileSource) or (stamps := stamps_of(opened)) is None:
        return
    now = stamps.sizes[found.index]
    changed = np.flatnonzero((found.sizes >= 0) & (now != found.sizes))
    # Unreadable files may have had no size to note.
    changed = changed[(now[changed] != UNKNOWN) | (found.sizes[changed] > 0)]
    if len(changed):
        first = int(changed[0])
        now_is = "is not there" if now[first] == UNKNOWN else f"is {int(now[first]):,} bytes"
        more = f" (and {len(changed) - 1:,} more)" if len(changed) > 1 else ""
        raise SourceError(
            f"{opened.name(int(found.index[first]))}: has changed since it was checked: was "
            f"{int(found.sizes[first]):,} bytes, {now_is}{more}; run variegate check again"
        )


def check_names(opened: Source, found: Found, left_out: Sequence[LeftOut]) -> None:
    """Raises SourceError where the table has other names for the images than the source."""
    for one in left_out:
        if (key := sample_key(opened, one.index)) != one.file:
            raise SourceError(f"{found.place}: calls image {one.index:,} {one.file!r}, and it is {key!r}; check again")


def shown_source(source: Any) -> str:
    if isinstance(source, (str, PathLike)):
        return str(Location.parse(source))
    return f"a {type(source).__name__}"
