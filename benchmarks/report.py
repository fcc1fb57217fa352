"""Records as tables: text for the terminal, Markdown for docs (``python -m benchmarks.report FILE.json``)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import columns as core_columns
from benchmarks.gpu import columns as gpu_columns
from benchmarks.loader import columns as loader_columns
from benchmarks.rows import columns as row_columns
from benchmarks.single import columns as single_columns

LOADERS = ("loader", "workers", "workers_raw")
# Works of many rows, each with checks of its own.
ROWS = {"w2o": row_columns, "w8": single_columns}


def columns_of(record: dict[str, Any]) -> ModuleType:
    """The module that knows the columns of a record's kind."""
    if record["work"] in LOADERS:
        return loader_columns
    if record["work"] in ROWS:
        return ROWS[record["work"]]
    return gpu_columns if "gpu" in record else core_columns


def heads(record: dict[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The heads of the columns, and which of them hold words; some depend on the libraries of the run."""
    columns = columns_of(record)
    if record["work"] in ROWS:
        return columns.header(record), columns.left(record)
    return columns.HEADER, columns.LEFT


def checks_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    if record["work"] in ROWS:
        return list(columns_of(record).checked(record))
    checks: list[dict[str, Any]] = record.get("checks", [])
    return checks


def text(record: dict[str, Any]) -> str:
    """The record for a terminal. No speed is shown where a check failed."""
    columns, (header, left) = columns_of(record), heads(record)
    lines = [f"{record['work'].upper()}: {record['title']}, batch {record['batch']}", f"  {record['inputs']}"]
    for check in checks_of(record):
        lines.append(f"  {'ok    ' if check['passed'] else 'FAILED'} {check['name']}: {check['found']}")
    if record.get("failed") and record["work"] not in ROWS:
        return "\n".join([*lines, "  FAILED: the pixels are not right, so no speed is reported"])
    table = [header, *columns.rows(record)]
    widths = [max(len(line[i]) for line in table) for i in range(len(header))]
    for line in table:
        cells = [cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))]  # noqa: B905
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join([*lines, f"  {columns.verdict(record)}", *(f"  {note}" for note in columns.notes(record))])


def markdown(record: dict[str, Any]) -> str:
    columns, (header, left) = columns_of(record), heads(record)
    lines = [f"### {record['work'].upper()}, batch {record['batch']}", "", f"{record['title']}.", ""]
    sides = ["---" if i in left else "--:" for i in range(len(header))]
    lines += ["| " + " | ".join(header) + " |", "|" + "|".join(sides) + "|"]
    lines += ["| " + " | ".join(cell or "–" for cell in row) + " |" for row in columns.rows(record)]
    spent = f"Median of {record['repeats']} runs of {record['seconds']:g} s each, interleaved."
    lines += ["", f"{columns.verdict(record)}. {spent}"]
    lines += ["", *(f"- {check['name']}: {check['found']}" for check in checks_of(record))]
    lines += [f"- {note}" for note in columns.notes(record)]
    return "\n".join([*lines, "", *columns.footer(record)])


def write(record: dict[str, Any], folder: Path) -> None:
    """The record as a file of ``folder``, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['work']}-batch{record['batch']}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(f"  written: {path}", file=sys.stderr)


def main() -> None:
    for path in sys.argv[1:]:
        print(markdown(json.loads(Path(path).read_text())), end="\n\n")


if __name__ == "__main__":
    main()
