"""``clean``: choose which images a data set can do without, and write the list of them that ``exclude`` takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from variegate.apps.check.findings import FINDING_KINDS, check_replaces
from variegate.apps.check.selection import LIST_PREFIX, Excluded, Found, choose, count_by_kind, parse_drop, read_found
from variegate.checks import one_of
from variegate.data.base import SourceError
from variegate.data.filtered import REASON_SEPARATOR, read_names, sample_key, sample_keys
from variegate.data.samples import Samples
from variegate.data.stamps import UNKNOWN, stamps_of
from variegate.io.addresses import redact_url
from variegate.io.durable import write_atomically
from variegate.io.files import StrPath
from variegate.io.location import Location
from variegate.jobs.arguments import absolute_place, open_by_index

_SPLITS = ("train", "test")


@dataclass
class Cleaned:
    """Result of ``vg.clean``.

    ``images``: number of images of the source; ``left_out``: excluded images; ``counts``: their number by kind of
    finding (an image can have several); ``out``: path of the list. ``notes``: remarks, one line each.
    """

    images: int
    left_out: list[Excluded]
    counts: dict[str, int]
    out: Path
    notes: list[str] = field(default_factory=list)


def clean(
    source: Any,
    *,
    findings: StrPath,
    drop: str | Sequence[str],
    out: StrPath,
    split: str = "train",
) -> Cleaned:
    """Write a list of the images of a data set to exclude, with the reasons that a check found.

    ``vg.open_source(source, exclude=out)`` and the ``--exclude`` of every command read the list, and ``vg.pack`` of
    such a source makes a copy without these images. The source is not changed.

    Args:
        source: anything that ``vg.open_source`` accepts.
        findings: the table written by ``vg.check(out=...)``.
        drop: kinds of findings to drop: "corrupt,duplicates,leaks", a sequence of kinds, or "all". Of a group of
            duplicates, one image remains: the one with the most pixels, then the most bytes, then the first.
        out: the file to write: a line per image, with its name, a tab and the reasons. Only an earlier list is
            replaced.
        split: "train" or "test": the checked split that ``source`` holds.

    Raises:
        ValueError, SourceError: naming the argument.
        WriteError: if the list cannot be written.
    """
    split = one_of("split", split, _SPLITS)
    found, opened = open_checked(source, findings, split)
    return write_list(source, opened, found, parse_drop(drop), Path(out))


def write_list(source: Any, opened: Samples, found: Found, kinds: Sequence[str], out: Path) -> Cleaned:
    """The part of ``clean`` that follows ``open_checked``."""
    check_replaces(out, _is_list, "list of variegate clean")
    left_out = choose(found, kinds)
    if len(left_out) == len(opened):
        raise SourceError(f"{_describe(source)}: this excludes all of its images; drop fewer kinds")
    for image in left_out:
        if (key := sample_key(opened, image.index)) != image.file:
            raise SourceError(
                f"{found.place}: calls image {image.index:,} {image.file!r}, and it is {key!r}; check again"
            )
    _check_names(opened, left_out)

    notes = opened.notes()
    found_kinds = found.counts()
    absent = [kind for kind in kinds if kind not in found_kinds]
    # With "all", kinds without images are no surprise.
    if absent and len(kinds) < len(FINDING_KINDS):
        notes = [*notes, f"found in no image: {', '.join(absent)}"]

    counts = count_by_kind(left_out)
    place = absolute_place(os.fspath(source)) if isinstance(source, (str, PathLike)) else _describe(source)
    counted = ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "nothing"
    lines = [f"{LIST_PREFIX}{' '.join(redact_url(place).split())} by variegate clean: {counted}"]
    if exclude := opened.excluded.get("exclude"):
        lines += read_names(exclude)[0]
    lines += [f"{image.file}{REASON_SEPARATOR}{image.reason()}" for image in left_out]
    text = "".join(f"{line}\n" for line in lines)
    write_atomically(out, text.encode("utf-8", "backslashreplace"), durable=True)
    return Cleaned(len(opened), left_out, counts, out, notes)


def open_checked(source: Any, findings: StrPath, split: str) -> tuple[Found, Samples]:
    """The table, and the source that it is of. Raises SourceError if the table belongs to another data set, or the
    images changed since."""
    found = read_found(findings, split)
    opened = open_by_index(source, "skip")
    place = _describe(source)
    if opened.fingerprint != found.fingerprint:
        raise SourceError(f"{place}: holds other images than those that {found.place} is of; run variegate check again")
    if len(found) and not 0 <= found.index.min() <= found.index.max() < len(opened):
        raise SourceError(f"{found.place}: names images that {place} does not have; run variegate check again")
    _check_unchanged(opened, found)
    return found, opened


def _check_unchanged(opened: Samples, found: Found) -> None:
    """Compare files by their sizes; for shards, the fingerprint already did."""
    if opened.folder is None or (stamps := stamps_of(opened)) is None:
        return
    now = stamps.sizes[found.index]
    # Unreadable files may have had no size to note.
    changed = np.flatnonzero((found.sizes >= 0) & (now != found.sizes) & ((now != UNKNOWN) | (found.sizes > 0)))
    if len(changed):
        first = int(changed[0])
        now_is = "is not there" if now[first] == UNKNOWN else f"is {int(now[first]):,} bytes"
        more = f" (and {len(changed) - 1:,} more)" if len(changed) > 1 else ""
        raise SourceError(
            f"{opened.name(int(found.index[first]))}: has changed since it was checked: was "
            f"{int(found.sizes[first]):,} bytes, {now_is}{more}; run variegate check again"
        )


def _is_list(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(len(LIST_PREFIX)) in (b"", LIST_PREFIX.encode())


def _check_names(opened: Samples, left_out: Sequence[Excluded]) -> None:
    """Raise SourceError if a name in the list is also that of an image that stays."""
    indices = {image.index for image in left_out}
    names = {image.file for image in left_out}
    for index, key in enumerate(sample_keys(opened)):
        if key in names and index not in indices:
            raise SourceError(
                f"{key}: is the name of several images, some of which stay; accepted: images with names of their own"
            )


def _describe(source: Any) -> str:
    if isinstance(source, (str, PathLike)):
        return str(Location.parse(source, chain=True))
    return f"a {type(source).__name__}"
