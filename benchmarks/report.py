"""Records as Markdown tables (``python -m benchmarks.report FILE.json``)."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.levels import is_ours, level_of

SHORT = {
    "torchvision_pil": "tv PIL",
    "torchvision_tensor": "tv tensor",
    "albumentationsx": "AlbX",
    "dali": "DALI",
}
# A row of a table: cells by the heads of their columns. A column is shown if any row has it.
Row = dict[str, str]
# Figures of a library that not every work has: the key in the record, the head, the text.
FIGURES: tuple[tuple[str, str, str], ...] = (
    ("on_core", "on core", "{:.0%}"),
    ("of_ceiling", "of ceiling", "{:.0%}"),
    ("cpu_ms_per_image", "CPU per image", "{:.2f} ms"),
    ("of_copy_speed", "of copy speed", "{:.2%}"),
    ("peak_memory_bytes", "peak memory in bytes", "{:,.0f}"),
)


def short(key: str) -> str:
    """A library as the head of a column."""
    level = level_of(key)
    if is_ours(key):
        return f"ours, {level}" if level else "ours"
    return SHORT.get(key, key)


def _at_level(key: str) -> str:
    return short(key).removeprefix("ours")


def best_peer(libraries: dict[str, Any]) -> tuple[str, float] | None:
    """The fastest peer and its images per second."""
    speeds = {
        key: cell["images_per_second"]
        for key, cell in libraries.items()
        if not is_ours(key) and "images_per_second" in cell
    }
    return max(speeds.items(), key=lambda item: item[1]) if speeds else None


def ratios(libraries: dict[str, Any]) -> dict[str, float]:
    """Ratio of each of our processes to the best peer."""
    best = best_peer(libraries)
    if best is None:
        return {}
    ours = {key: cell for key, cell in libraries.items() if is_ours(key) and "images_per_second" in cell}
    return {key: cell["images_per_second"] / best[1] for key, cell in ours.items()}


# -- a work of one case: a row per library -----------------------------------------------------------------------------


def library_rows(libraries: dict[str, Any]) -> list[Row]:
    """The fastest library first."""
    ours = libraries.get("ours", {}).get("images_per_second")
    reached = ratios(libraries)
    rows = []
    for key, cell in sorted(libraries.items(), key=lambda item: -item[1].get("images_per_second", 0.0)):
        row = {"library": cell["library"]}
        if "images_per_second" in cell:
            speed = cell["images_per_second"]
            row["images/s"] = f"{speed:,.0f}"
            row["lowest - highest"] = f"{cell['lowest']:,.0f} - {cell['highest']:,.0f}"
            if ours and not is_ours(key):
                row["Variegate is"] = f"{ours / speed:.2f}x"
            elif level_of(key) and key in reached:
                row["Variegate is"] = f"{reached[key]:.2f}x the best peer"
            for name, head, text in FIGURES:
                if cell.get(name) is not None:
                    row[head] = text.format(cell[name])
        row["how"] = cell.get("error") or cell.get("absent") or cell.get("variant", "")
        rows.append(row)
    return rows


def library_verdict(record: dict[str, Any]) -> str:
    """The ratio to the best peer, with the required ratio, for each level."""
    asked = record.get("asked") or record.get("level_targets", {})
    words = []
    for key, ratio in ratios(record["libraries"]).items():
        level = level_of(key) or ""
        wanted = asked.get(level.rpartition(", ")[2], asked.get("", record.get("target")))
        judged = f"; target {wanted:g}x: {'met' if ratio >= wanted else 'missed'}" if wanted else ""
        words.append(f"{level + ': ' if level else ''}{ratio:.2f}x the best peer{judged}")
    return "; ".join(words) or "no ratio: Variegate or every peer is missing from this run"


# -- a work of many cases: a row per case ------------------------------------------------------------------------------


def case_row(case: dict[str, Any]) -> Row:
    """Microseconds per image of each library, and our ratio to the best peer."""
    row = {"row": case["title"]}
    if case.get("failed"):
        return row | {"target": "check FAILED"}
    libraries = case["libraries"]
    target = case["target"]
    for key, cell in libraries.items():
        if "microseconds" in cell:
            row[short(key)] = f"{cell['microseconds']:,.0f}"
        else:
            row[short(key)] = "error" if "error" in cell else ""
    best = best_peer(libraries)
    row["best peer"] = short(best[0]) if best else "none"
    for key, ratio in ratios(libraries).items():
        row[f"ratio{_at_level(key)}"] = f"{ratio:.1f}" if ratio >= target else f"{ratio:.1f} (missed)"
    row["target"] = f"{target:g}x" if target else ""
    for key, cell in libraries.items():
        row |= {f"{part}{_at_level(key)}": f"{us:,.0f}" for part, us in cell.get("parts", {}).items()}
    return row


def case_verdict(record: dict[str, Any]) -> str:
    """Number of rows that reach the required ratio, for each of our processes."""
    lines = []
    for key, library in record["libraries"].items():
        rows = [row for row in record["rows"].values() if key in ratios(row.get("libraries", {}))]
        reached = [(ratios(row["libraries"])[key], row) for row in rows]
        if reached:
            met = Counter(row["kind"] for ratio, row in reached if ratio >= row["target"])
            kinds = Counter(row["kind"] for row in rows)
            words = [
                f"{met[kind]} of {count} {kind.removesuffix('s')}s reach what is asked" for kind, count in kinds.items()
            ]
            slower = sum(ratio < 1 for ratio, _ in reached)
            lines.append(f"{library['library']}: {', '.join(words)}; {slower} slower than the best peer")
    return ". ".join(lines)


# -- both --------------------------------------------------------------------------------------------------------------


def notes(record: dict[str, Any]) -> list[str]:
    """Levels that this processor lacks, misses, errors, and what differs in meaning."""
    lines = [*record.get("left_out", []), *record.get("notes", [])]
    for row in record.get("rows", {}).values():
        for key, cell in row.get("libraries", {}).items():
            if "error" in cell:
                lines.append(f"{row['title']}, {short(key)}: {cell['error']}")
            if cell.get("differs"):
                lines.append(f"{row['title']}: {short(key)}: {cell['differs']}")
    return lines


def checks_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The checks of a work with one case; for many cases the failed checks, and the number passed."""
    if "rows" not in record:
        return list(record.get("checks", []))
    rows = record["rows"].values()
    every = [(row, check) for row in rows for checks in row["checks"].values() for check in checks]
    failed = [check | {"name": f"{row['title']}: {check['name']}"} for row, check in every if not check["passed"]]
    found = f"{len(every) - len(failed)} of {len(every)} passed"
    return [*failed, {"name": "checks of rows", "passed": not failed, "found": found}]


def table(rows: Sequence[Row]) -> list[str]:
    """Format as Markdown. The columns are in the order of the row that has the most."""
    heads = list(dict.fromkeys(head for row in sorted(rows, key=len, reverse=True) for head in row))
    lines = [f"| {' | '.join(heads)} |", f"|---|{'--:|' * (len(heads) - 2)}---|"]
    for row in rows:
        lines.append(f"| {' | '.join(row.get(head) or '–' for head in heads)} |")
    return lines


def markdown(record: dict[str, Any]) -> str:
    """The record for a terminal and for docs. A case has no speed if its check failed."""
    lines = [f"### {record['work'].upper()}, batch {record['batch']}", ""]
    lines += [f"{record['title']}.", ""]
    if record.get("failed") and "rows" not in record:
        lines += ["FAILED: the pixels are not right, so no speed is reported.", ""]
    else:
        if "rows" in record:
            rows = [case_row(row) for row in record["rows"].values()]
            verdict = case_verdict(record)
        else:
            rows = library_rows(record["libraries"])
            verdict = library_verdict(record)
        spent = f"Median of {record['repeats']} runs of {record['seconds']:g} s each, interleaved."
        lines += [*table(rows), "", f"{verdict}. {spent}", ""]
    for check in checks_of(record):
        lines.append(f"- {'' if check['passed'] else 'FAILED: '}{check['name']}: {check['found']}")
    lines += [f"- {note}" for note in notes(record)]
    machine = record.get("machine", {}) | record.get("gpu", {})
    where = f"{machine.get('gpu') or machine.get('cpu')}; Python {machine.get('python')}; {machine.get('date')}"
    return "\n".join(
        [
            *lines,
            "",
            f"{where}; inputs: {record['inputs']}. Command: `{record.get('command')}`.",
        ]
    )


def write(record: dict[str, Any], folder: Path, name: str = "") -> None:
    """The record as a file of ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    name = name or f"{record['work']}-batch{record['batch']}"
    path = folder / f"{name}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(f"  written: {path}", file=sys.stderr)


def print_markdown(paths: Sequence[str]) -> None:
    for path in paths:
        print(markdown(json.loads(Path(path).read_text())), end="\n\n")


if __name__ == "__main__":
    print_markdown(sys.argv[1:])
