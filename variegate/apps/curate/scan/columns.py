"""Rows as columns of the table, and findings beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from variegate.apps.curate.finding import FINDING_KINDS, DataFinding
from variegate.apps.curate.scan.row import FIELDS, Row
from variegate.apps.curate.table import SCHEMA

# What a pass gives: all but the findings.
MEASURED = pa.schema([column for column in SCHEMA if column.name != "findings"])
_ORDER = {name: place for place, name in enumerate(FINDING_KINDS)}


def batch_of(split: str, rows: Sequence[Row]) -> pa.RecordBatch:
    """The columns ``MEASURED``."""
    values: dict[str, Sequence[Any]] = dict(zip(FIELDS, zip(*rows, strict=True), strict=True))
    values["split"] = [split] * len(rows)
    return pa.record_batch([pa.array(values[one.name], one.type) for one in MEASURED], schema=MEASURED)


def with_findings(table: pa.Table, findings: Iterable[DataFinding]) -> pa.Table:
    """``table`` has the columns ``MEASURED``, its splits one after the other, each in the order of its samples."""
    starts: dict[str, int] = {}
    for place, split in enumerate(table["split"].to_pylist()):
        starts.setdefault(split, place)
    found: list[list[dict[str, Any]]] = [[] for _ in range(len(table))]
    for one in findings:
        if one.index is not None:
            columns = {"finding": one.finding, "measure": one.measure, "group": one.group, "why": one.why}
            found[starts[one.split] + one.index].append(columns)
    for some in found:
        some.sort(key=lambda columns: _ORDER[columns["finding"]])
    return table.append_column(SCHEMA.field("findings"), pa.array(found, SCHEMA.field("findings").type)).cast(SCHEMA)
