"""What the tables of W1 and W2 show; ``benchmarks/gpu/columns.py`` has those of W3."""

from __future__ import annotations

from typing import Any

from benchmarks.levels import is_ours, level_of

HEADER = ("library", "images/s", "lowest - highest", "on core", "Variegate is", "how")
LEFT = (0, 5)


def best_peer(record: dict[str, Any]) -> float | None:
    """Images per second of the fastest library that is not ours."""
    speeds = [
        row["images_per_second"]
        for module, row in record["libraries"].items()
        if not is_ours(module) and "images_per_second" in row
    ]
    return max(speeds, default=None)


def by_speed(record: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Module and row of every library, the fastest first, those that did not run last."""
    return sorted(record["libraries"].items(), key=lambda item: -item[1].get("images_per_second", 0.0))


def speed_cells(record: dict[str, Any], module: str, row: dict[str, Any]) -> tuple[str, str, str]:
    """Images per second, their spread, and how many times that is ours; at several levels, beside each of them how many
    times the best peer's it is."""
    ours = record["libraries"].get("ours", {}).get("images_per_second")
    speed = row["images_per_second"]
    ratio = f"{ours / speed:.2f}x" if ours and not is_ours(module) else ""
    best = best_peer(record)
    if level_of(module) and best:
        ratio = f"{speed / best:.2f}x the best peer"
    return f"{speed:,.0f}", f"{row['lowest']:,.0f} - {row['highest']:,.0f}", ratio


def rows(record: dict[str, Any]) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = []
    for module, row in by_speed(record):
        if "error" in row:
            table.append((row["library"], "-", "-", "-", "-", row["error"]))
            continue
        speed, spread, ratio = speed_cells(record, module, row)
        table.append((row["library"], speed, spread, f"{row['on_core']:.0%}", ratio, row["variant"]))
    return table


def verdict(record: dict[str, Any]) -> str:
    """One line: the ratio to the best peer and its target, where there is one; at several levels, one for each."""
    best = best_peer(record)
    ours = {module: row for module, row in record["libraries"].items() if is_ours(module)}
    speeds = {module: row["images_per_second"] for module, row in ours.items() if "images_per_second" in row}
    if not speeds or best is None:
        return "no ratio: Variegate or every peer is missing from this run"
    words = []
    for module, speed in speeds.items():
        level = level_of(module)
        asked = record.get("level_targets", {}).get((level or "").rpartition(", ")[2], record["target"])
        words.append(f"{level}: {_verdict(speed / best, asked)}" if level else _verdict(speed / best, asked))
    return "; ".join(words)


def _verdict(ratio: float, asked: float | None) -> str:
    if asked is None:
        return f"{ratio:.2f}x the best peer; no target"
    return f"{ratio:.2f}x the best peer; target {asked:g}x: {'met' if ratio >= asked else 'missed'}"


def tried(record: dict[str, Any]) -> list[str]:
    """Images per second of each variant when the fastest was chosen, and why others did not run."""
    lines = []
    for _, row in by_speed(record):
        if "error" in row:
            continue
        speeds = [f"{name} {speed:,.0f}" for name, speed in row["variants_images_per_wall_second"].items()]
        failed = [f"{name} failed ({reason})" for name, reason in row["variants_failed"].items()]
        lines.append(f"{row['library']} tried: " + "; ".join([*speeds, *failed]))
    return lines


def notes(record: dict[str, Any]) -> list[str]:
    """What else there is to say, a line each: the levels that this processor lacks."""
    return list(record.get("left_out", []))


def footer(record: dict[str, Any]) -> list[str]:
    machine = record["machine"]
    level = f", level {machine['level']}" if "level" in machine else ""  # records from before have none
    return [
        f"{machine['cpu']}{level}, one of {machine['cores']} cores; Python {machine['python']}; {machine['date']};",
        f"inputs: {record['inputs']}. Command: `{record['command']}`.",
    ]
