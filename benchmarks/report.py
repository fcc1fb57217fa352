"""Records as tables: text for the terminal, Markdown for docs (``python -m benchmarks.report FILE.json``)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HEADER = ("library", "images/s", "lowest - highest", "on core", "Variegate is", "how")


def best_peer(record: dict[str, Any]) -> float | None:
    """Images per second of the fastest library that is not ours."""
    speeds = [
        row["images_per_second"]
        for module, row in record["libraries"].items()
        if module != "ours" and "images_per_second" in row
    ]
    return max(speeds, default=None)


def rows(record: dict[str, Any]) -> list[tuple[str, ...]]:
    libraries = record["libraries"]
    ours = libraries.get("ours", {}).get("images_per_second")
    table: list[tuple[str, ...]] = []
    for module, row in sorted(libraries.items(), key=lambda item: -item[1].get("images_per_second", 0.0)):
        if "error" in row:
            table.append((row["library"], "-", "-", "-", "-", row["error"]))
            continue
        speed = row["images_per_second"]
        ratio = f"{ours / speed:.2f}x" if ours and module != "ours" else ""
        spread = f"{row['lowest']:,.0f} - {row['highest']:,.0f}"
        table.append((row["library"], f"{speed:,.0f}", spread, f"{row['on_core']:.0%}", ratio, row["variant"]))
    return table


def verdict(record: dict[str, Any]) -> str:
    """One line: the ratio to the best peer beside the one asked for."""
    best = best_peer(record)
    ours = record["libraries"].get("ours", {}).get("images_per_second")
    if ours is None or best is None:
        return "no ratio: Variegate or every peer is missing from this run"
    ratio = ours / best
    word = "met" if ratio >= record["target"] else "missed"
    return f"{ratio:.2f}x the best peer; asked for {record['target']:g}x: {word}"


def text(record: dict[str, Any]) -> str:
    """The record for a terminal. No speed is shown where a check failed."""
    lines = [f"{record['work'].upper()}: {record['title']}, batch {record['batch']}", f"  {record['inputs']}"]
    for check in record.get("checks", []):
        lines.append(f"  {'ok    ' if check['passed'] else 'FAILED'} {check['name']}: {check['found']}")
    if record.get("failed"):
        return "\n".join([*lines, "  FAILED: the pixels are not right, so no speed is reported"])
    table = [HEADER, *rows(record)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADER))]
    for line in table:
        cells = [cell.ljust(w) if i in (0, 5) else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))]  # noqa: B905
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join([*lines, f"  {verdict(record)}"])


def markdown(record: dict[str, Any]) -> str:
    machine = record["machine"]
    lines = [f"### {record['work'].upper()}, batch {record['batch']}", "", f"{record['title']}.", ""]
    lines += ["| " + " | ".join(HEADER) + " |", "|---|--:|--:|--:|--:|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows(record)]
    lines += [
        "",
        f"{verdict(record)}. Median of {record['repeats']} runs of {record['seconds']:g} s each, taken in turn.",
    ]
    lines += ["", *(f"- {check['name']}: {check['found']}" for check in record.get("checks", []))]
    lines += ["", f"{machine['cpu']}, one of {machine['cores']} cores; Python {machine['python']}; {machine['date']};"]
    lines += [f"inputs: {record['inputs']}. Command: `{record['command']}`."]
    return "\n".join(lines)


def main() -> None:
    for path in sys.argv[1:]:
        print(markdown(json.loads(Path(path).read_text())), end="\n\n")


if __name__ == "__main__":
    main()
