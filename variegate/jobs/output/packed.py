"""The rows of a packing's manifest, added up; and statistics and index compared with that by ``verify``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from variegate.formats.base import SourceError
from variegate.formats.packed import INDEX_NAME, STATISTICS_NAME, PixelSums, statistics_bytes
from variegate.formats.storage import Storage
from variegate.jobs.output.lost_outputs import Row
from variegate.jobs.output.manifest import Manifest
from variegate.jobs.output.verify_outputs import Problem

# What of a row is looked at.
COLUMNS = ("file", "status", "reason", "source", "index", "height", "width", "shard_bytes", "packed")


@dataclass
class Totals:
    """``shards``: bytes by name, in order; ``skipped``: samples that could not be made, and why; ``kept``: files that
    were copied as they were; ``bytes_before``: of all files (or pixels) that images were made of."""

    sums: PixelSums = field(default_factory=PixelSums)
    shards: dict[str, int] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    kept: int = 0
    bytes_before: int = 0


def totals_of(rows: Iterable[Row]) -> Totals:
    """Raises ValueError, KeyError or TypeError for rows of another kind of run."""
    found = Totals()
    for row in rows:
        if row["status"] != "written":
            found.skipped.append((row["source"], row["reason"]))
            continue
        about = json.loads(row["packed"])
        found.sums.add(row["height"] * row["width"], about["sums"], about["squares"])
        found.shards[row["file"]] = row["shard_bytes"]
        found.kept += about["kept"]
        found.bytes_before += about["bytes"]
    return found


def packed_beside(storage: Storage, manifest: Manifest, expected: set[str]) -> Iterator[Problem]:
    """The names are added to ``expected``. Raises SourceError for a manifest whose rows are not those of a packing."""
    try:
        found = totals_of(manifest.columns(*COLUMNS))
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"damaged: the sums in it cannot be read ({error})") from None
    if not found.shards:
        return
    has_index = manifest.settings.get("layout") != "raw"
    names = [STATISTICS_NAME, *([INDEX_NAME] if has_index else [])]
    expected.update(names)
    missing = [name for name in names if not storage.exists(name)]
    yield from (Problem(name, "missing", "missing") for name in missing)
    if STATISTICS_NAME in missing:
        return
    said = storage.read(STATISTICS_NAME)
    try:
        index = json.loads(said)["index"]
        is_right = said == statistics_bytes(found.sums, index) and (index is not None) == has_index
    except (ValueError, KeyError, TypeError):
        is_right = False
    if not is_right:
        yield Problem(STATISTICS_NAME, "not what the manifest's sums come to", "damaged")
    elif has_index and INDEX_NAME not in missing and storage.sha256(INDEX_NAME) != index["sha256"]:
        yield Problem(INDEX_NAME, f"its checksum is not that in {STATISTICS_NAME}", "damaged")
