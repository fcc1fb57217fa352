"""Records as Markdown tables (``python -m benchmarks.report FILE.json``)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.levels import is_ours, level_of

SHORT = {
    "torchvision_pil": "tv PIL",
    "torchvision_tensor": "tv tensor",
    "albumentationsx": "AlbX",
    "dali": "DALI",
}
Table = tuple[list[str], list[list[str]]]
# More columns of a table of libraries: the key in the record, the head, the text. Shown if any library has it.
COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("on_core", "on core", lambda share: f"{share:.0%}"),
    ("of_ceiling", "of ceiling", lambda share: f"{share:.0%}"),
    ("cpu_ms_per_image", "CPU per image", lambda ms: f"{ms:.2f} ms"),
    ("of_copy_speed", "of copy speed", lambda share: f"{share:.2%}"),
    ("device_images_per_second", "device alone", lambda speed: f"{speed:,.0f}"),
    ("peak_memory_bytes", "peak memory", lambda size: f"{size / 1e6:,.0f} MB"),
)


def short(key: str) -> str:
    """A library as the head of a column."""
    level = level_of(key)
    if is_ours(key):
        return f"ours, {level}" if level else "ours"
    return SHORT.get(key, key)


def best_peer(libraries: dict[str, Any]) -> tuple[str, float] | None:
    """The fastest peer and its images per second."""
    speeds = {
        key: cell["images_per_second"]
        for key, cell in libraries.items()
        if not is_ours(key) and "images_per_second" in cell
    }
    return max(speeds.items(), key=lambda item: item[1]) if speeds else None


def ratios(libraries: dict[str, Any]) -> dict[str, float]:
    """How many times the best peer's speed each of our processes reached."""
    best = best_peer(libraries)
    if best is None:
        return {}
    ours = {key: cell for key, cell in libraries.items() if is_ours(key) and "images_per_second" in cell}
    return {key: cell["images_per_second"] / best[1] for key, cell in ours.items()}


# -- a work of one case: a row per library -----------------------------------------------------------------------------


def library_table(record: dict[str, Any]) -> Table:
    libraries = record["libraries"]
    columns = [column for column in COLUMNS if any(cell.get(column[0]) is not None for cell in libraries.values())]
    header = [
        "library",
        "images/s",
        "lowest - highest",
        "Variegate is",
        *(head for _, head, _ in columns),
        "how",
    ]
    reached = ratios(libraries)
    ours = libraries.get("ours", {}).get("images_per_second")
    rows = []
    for key, cell in sorted(libraries.items(), key=lambda item: -item[1].get("images_per_second", 0.0)):
        if "images_per_second" not in cell:
            reason = cell.get("error") or cell.get("absent", "not measured")
            rows.append([cell["library"], *("-" for _ in header[2:]), reason])
            continue
        speed = cell["images_per_second"]
        compared = f"{ours / speed:.2f}x" if ours and not is_ours(key) else ""
        if level_of(key) and key in reached:
            compared = f"{reached[key]:.2f}x the best peer"
        more = [text(cell[name]) if cell.get(name) is not None else "-" for name, _, text in columns]
        spread = f"{cell['lowest']:,.0f} - {cell['highest']:,.0f}"
        rows.append(
            [
                cell["library"],
                f"{speed:,.0f}",
                spread,
                compared,
                *more,
                cell.get("variant", ""),
            ]
        )
    return header, rows


def library_verdict(record: dict[str, Any]) -> str:
    """The ratio to the best peer, with what is asked of it, for each level."""
    asked = record.get("asked") or record.get("level_targets", {})
    words = []
    for key, ratio in ratios(record["libraries"]).items():
        level = level_of(key) or ""
        wanted = asked.get(level.rpartition(", ")[2], asked.get("", record.get("target")))
        judged = f"; target {wanted:g}x: {'met' if ratio >= wanted else 'missed'}" if wanted else ""
        words.append(f"{level + ': ' if level else ''}{ratio:.2f}x the best peer{judged}")
    return "; ".join(words) or "no ratio: Variegate or every peer is missing from this run"


# -- a work of many cases: a row per case ------------------------------------------------------------------------------


def case_table(record: dict[str, Any]) -> Table:
    """Microseconds per image of each library, and how many times as fast as the best peer ours is."""
    keys = [key for key, library in record["libraries"].items() if "error" not in library]
    ours = [key for key in keys if is_ours(key)]
    parts = parts_of(record, ours)
    header = ["row"]
    header += [short(key) for key in keys]
    header.append("best peer")
    header += [f"ratio{short(key).removeprefix('ours')}" for key in ours]
    header.append("target")
    header += [f"{part}{short(key).removeprefix('ours')}" for key in ours for part in parts]
    table = []
    for row in record["rows"].values():
        if row.get("failed"):
            table.append([row["title"], *("-" for _ in header[2:]), "check FAILED"])
        else:
            table.append(case_cells(row, keys, ours, parts))
    return header, table


def parts_of(record: dict[str, Any], ours: list[str]) -> list[str]:
    """What is measured beside the cases, in the order in which it first appears."""
    found: dict[str, None] = {}
    for row in record["rows"].values():
        for key in ours:
            cell = row.get("libraries", {}).get(key, {})
            found |= dict.fromkeys(cell.get("parts", {}))
    return list(found)


def case_cells(row: dict[str, Any], keys: list[str], ours: list[str], parts: list[str]) -> list[str]:
    libraries = row["libraries"]
    target = row["target"]
    best = best_peer(libraries)
    reached = ratios(libraries)
    cells = [row["title"]]
    cells += [_microseconds(libraries.get(key, {})) for key in keys]
    cells.append(short(best[0]) if best else "none")
    for key in ours:
        ratio = reached.get(key)
        if ratio is None:
            cells.append("")
        else:
            cells.append(f"{ratio:.1f}" if ratio >= target else f"{ratio:.1f} (missed)")
    cells.append(f"{target:g}x" if target else "")
    for key in ours:
        found = libraries.get(key, {}).get("parts", {})
        cells += [f"{found[part]:,.0f}" if part in found else "" for part in parts]
    return cells


def _microseconds(cell: dict[str, Any]) -> str:
    if "microseconds" in cell:
        return f"{cell['microseconds']:,.0f}"
    return "error" if "error" in cell else ""


def case_verdict(record: dict[str, Any]) -> str:
    """How many rows of each kind reach what is asked, for each of our processes."""
    lines = []
    for key, library in record["libraries"].items():
        known = [(ratios(row.get("libraries", {})).get(key), row) for row in record["rows"].values()]
        compared = [(ratio, row) for ratio, row in known if is_ours(key) and ratio is not None]
        if not compared:
            continue
        words = []
        for kind in dict.fromkeys(row["kind"] for _, row in compared):
            of_kind = [(ratio, row["target"]) for ratio, row in compared if row["kind"] == kind]
            met = sum(ratio >= target for ratio, target in of_kind)
            words.append(f"{met} of {len(of_kind)} {kind.removesuffix('s')}s reach {of_kind[0][1]:g}x")
        slower = sum(ratio < 1 for ratio, _ in compared)
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
    """The checks of a work of one case; of many cases those that failed, and how many passed."""
    if "rows" not in record:
        return list(record.get("checks", []))
    rows = record["rows"].values()
    every = [(row, check) for row in rows for checks in row["checks"].values() for check in checks]
    failed = [check | {"name": f"{row['title']}: {check['name']}"} for row, check in every if not check["passed"]]
    found = f"{len(every) - len(failed)} of {len(every)} passed"
    return [*failed, {"name": "checks of rows", "passed": not failed, "found": found}]


def table_of(record: dict[str, Any]) -> tuple[Table, str]:
    """The table of a record, and its verdict."""
    if "rows" in record:
        return case_table(record), case_verdict(record)
    return library_table(record), library_verdict(record)


def markdown(record: dict[str, Any]) -> str:
    """The record for a terminal and for docs. A case has no speed if its check failed."""
    lines = [f"### {record['work'].upper()}, batch {record['batch']}", ""]
    lines += [f"{record['title']}.", ""]
    if record.get("failed") and "rows" not in record:
        lines += ["FAILED: the pixels are not right, so no speed is reported.", ""]
    else:
        (header, rows), verdict = table_of(record)
        lines.append(f"| {' | '.join(header)} |")
        lines.append(f"|---|{'--:|' * (len(header) - 2)}---|")
        for row in rows:
            lines.append(f"| {' | '.join(cell or '–' for cell in row)} |")
        spent = f"Median of {record['repeats']} runs of {record['seconds']:g} s each, interleaved."
        lines += ["", f"{verdict}. {spent}", ""]
    for check in checks_of(record):
        lines.append(f"- {'' if check['passed'] else 'FAILED: '}{check['name']}: {check['found']}")
    lines += [f"- {note}" for note in notes(record)]
    machine = record.get("machine") or record.get("gpu", {})
    where = f"{machine.get('cpu') or machine.get('gpu')}; Python {machine.get('python')}; {machine.get('date')}"
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
