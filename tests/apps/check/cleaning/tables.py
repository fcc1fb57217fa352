"""The table of a check, made by hand: what is found in which image is said, and not looked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from variegate.apps.check.findings import SCHEMA
from variegate.data.filtered import sample_keys
from variegate.data.opening import open_source

# By index: (finding, group).
Findings = dict[int, list[tuple[str, int | None]]]


def rows_of(
    source: Any, findings: Findings, split: str = "train", sizes: dict[int, tuple[int, int]] | None = None
) -> list[dict[str, Any]]:
    """``sizes``: height and width by index, 8 x 8 for others."""
    rows: list[dict[str, Any]] = []
    for index, key in enumerate(sample_keys(source)):
        height, width = (sizes or {}).get(index, (8, 8))
        data = source.read(index).data
        found = [
            {"finding": name, "measure": None, "group": group, "why": f"{name} of {key}"}
            for name, group in findings.get(index, [])
        ]
        about = {"split": split, "index": index, "file": key, "height": height, "width": width, "findings": found}
        rows.append(about | {"bytes": len(data) if isinstance(data, bytes) else data.nbytes})
    return rows


def write_table(path: Path, rows: list[dict[str, Any]], **sources: Any) -> Path:
    """``sources``: by split."""
    about = {"fingerprints": {name: one.fingerprint for name, one in sources.items()}}
    schema = SCHEMA.with_metadata({"variegate.check": json.dumps(about)})
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return path


def table_of(path: Path, place: Any, findings: Findings, **options: Any) -> Path:
    """Of one source."""
    source: Any = open_source(place)
    return write_table(path, rows_of(source, findings, **options), train=source)
