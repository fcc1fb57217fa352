"""The rows of a packing's manifest, added up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from variegate.formats.packed import PixelSums
from variegate.jobs.output.lost_outputs import Row

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
