"""Read the table of a check, and select the images to exclude: all with a finding of a kind, except one image of each
group of duplicates."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from variegate.apps.check.findings import FINDING_KINDS, METADATA_KEY, READ, SCHEMA
from variegate.arrays import Int64Array
from variegate.checks import did_you_mean, refused
from variegate.data.base import SourceError
from variegate.data.filtered import HEADER
from variegate.errors import one_line
from variegate.io.files import StrPath, open_regular

# The first line of a list of ``clean``, before the source.
LIST_PREFIX = f"{HEADER}left out of "
ACCEPTED = "the findings.parquet that variegate check wrote"
_COLUMNS = ("split", "index", "file", "bytes", "height", "width", "findings")
# Of a group of these one image stays: the one with the most pixels, of equals the one with the most bytes, then the
# first. Exact duplicates come first, so that a group of near ones holds one of each.
KEPT_ONE_OF = ("duplicates", "near_duplicates")
ALL = "all"


class ImageFinding(NamedTuple):
    """A finding in an image. ``row``: the image's, in ``Found``."""

    row: int
    finding: str
    group: int | None
    why: str


@dataclass(frozen=True, eq=False)
class Found:
    """Findings of a split. Arrays and ``files`` have an entry for each image: its index in the source, its name, its
    size in bytes (-1: not known), its pixels (0: not known). ``entries``: the findings, in the order of the images.
    ``fingerprint``: of the source."""

    place: str
    fingerprint: str
    index: Int64Array
    files: list[str]
    sizes: Int64Array
    pixels: Int64Array
    entries: list[ImageFinding]

    def __len__(self) -> int:
        return len(self.files)

    def counts(self) -> dict[str, int]:
        """Number of images with each kind of finding, in the order of ``FINDING_KINDS``, without empty kinds."""
        found = Counter(kind for _, kind in {(entry.row, entry.finding) for entry in self.entries})
        return {name: found[name] for name in FINDING_KINDS if name in found}


@dataclass
class Excluded:
    """An excluded image. ``index``: in the source. ``findings``: the reasons by kind, as the check words them.
    ``kept``: the image that stays of its group of duplicates; None for others."""

    index: int
    file: str
    findings: dict[str, str] = field(default_factory=dict)
    kept: str | None = None

    def reason(self) -> str:
        """All findings on one line."""
        reasons = [f"{kind}: {why}" if why else kind for kind, why in self.findings.items()]
        if self.kept is not None:
            reasons.append(f"{self.kept} is kept")
        return " ".join("; ".join(reasons).split())


def read_found(path: StrPath, split: str) -> Found:
    """Raises SourceError unless it is the table of a check with images of that split."""
    place = os.fspath(path)
    table = _read(place)
    try:
        about = json.loads((table.schema.metadata or {})[METADATA_KEY])
        fingerprints = {str(name): str(one) for name, one in about["fingerprints"].items()}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        raise SourceError(f"{place}: does not say of which images it is; accepted: {ACCEPTED}") from None
    if split not in fingerprints:
        known = " or ".join(one for one in READ if one in fingerprints)
        raise SourceError(f"{place}: has no {split} images; accepted: --split {known}")
    here = table.filter(pc.equal(table["split"], split)).sort_by("index").combine_chunks()
    height, width = (np.asarray(here[name].fill_null(0)).astype(np.int64) for name in ("height", "width"))
    flat = pc.list_flatten(here["findings"])
    columns = [pc.struct_field(flat, name).to_pylist() for name in ("finding", "group", "why")]
    rows = pc.list_parent_indices(here["findings"]).to_pylist()
    return Found(
        place,
        fingerprints[split],
        np.asarray(here["index"]).astype(np.int64),
        here["file"].to_pylist(),
        np.asarray(here["bytes"].fill_null(-1)).astype(np.int64),
        height * width,
        [ImageFinding(*one) for one in zip(rows, *columns, strict=True)],
    )


def _read(place: str) -> pa.Table:
    try:
        with open_regular(place) as file:
            parquet = pq.ParquetFile(file)
            schema = parquet.schema_arrow
            wanted = [(name, SCHEMA.field(name).type) for name in _COLUMNS]
            if missing := [
                name for name, kind in wanted if name not in schema.names or schema.field(name).type != kind
            ]:
                raise SourceError(f"{place}: has no column {missing[0]!r} of a check; accepted: {ACCEPTED}")
            # In this thread: threads of read_table may still run when a refused command ends.
            return parquet.read(list(_COLUMNS), use_threads=False).replace_schema_metadata(schema.metadata)
    except SourceError:
        raise
    except FileNotFoundError:
        raise SourceError(f"{place}: no such file; accepted: {ACCEPTED}") from None
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = one_line(error).rstrip(".")
        raise SourceError(f"{place}: cannot be read ({reason}); accepted: {ACCEPTED}") from None


def parse_drop(text: str | Sequence[str]) -> tuple[str, ...]:
    """Parse names of findings -> canonical names, in their order; ``duplicate`` and ``near-duplicate`` are accepted.

    Raises ValueError for other names, naming the existing ones.
    """
    wanted = [one.strip() for one in text.split(",")] if isinstance(text, str) else text
    names = {alias: {name} for name in FINDING_KINDS for alias in (name, name.removesuffix("s"))}
    names[ALL] = set(FINDING_KINDS)
    found: set[str] = set()
    for one in wanted:
        word = one.lower().replace("-", "_").replace(" ", "_")
        if word not in names:
            accepted = f"{', '.join(FINDING_KINDS)}, or {ALL}{did_you_mean(word, (*FINDING_KINDS, ALL))}"
            raise refused("drop", one, accepted)
        found |= names[word]
    return tuple(name for name in FINDING_KINDS if name in found)


def choose(found: Found, drop: Sequence[str]) -> list[Excluded]:
    """The images that go, in the order of the source. Of a group of duplicates that holds images that go for another
    reason, one of the others stays."""
    gone: dict[int, Excluded] = {}
    by_kind: dict[str, list[ImageFinding]] = defaultdict(list)
    for entry in found.entries:
        by_kind[entry.finding].append(entry)

    def leave_out(entry: ImageFinding, kept: str | None = None) -> None:
        one = gone.setdefault(entry.row, Excluded(int(found.index[entry.row]), found.files[entry.row]))
        one.findings.setdefault(entry.finding, entry.why or "")
        one.kept = one.kept or kept

    def rank(entry: ImageFinding) -> tuple[int, int, int]:
        return -int(found.pixels[entry.row]), -int(found.sizes[entry.row]), int(found.index[entry.row])

    for kind in (name for name in drop if name not in KEPT_ONE_OF):
        for entry in by_kind[kind]:
            leave_out(entry)
    for kind in (name for name in KEPT_ONE_OF if name in drop):
        groups: dict[int, list[ImageFinding]] = defaultdict(list)
        for entry in by_kind[kind]:
            if entry.group is not None and entry.row not in gone:
                groups[entry.group].append(entry)
        for group in groups.values():
            # An image may be in several groups, and already excluded with an earlier one.
            left = [entry for entry in group if entry.row not in gone]
            if len(left) < 2:
                continue
            best = min(left, key=rank)
            for entry in left:
                if entry.row != best.row:
                    leave_out(entry, found.files[best.row])
    return sorted(gone.values(), key=lambda one: one.index)


def count_by_kind(left_out: Sequence[Excluded]) -> dict[str, int]:
    """Number of images by kind of finding; an image may have several."""
    counted = Counter(kind for one in left_out for kind in one.findings)
    return {name: counted[name] for name in FINDING_KINDS if name in counted}
