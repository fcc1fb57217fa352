"""The table of targets: what a whole sample costs beside the peer, and what of it masks and boxes are."""

from __future__ import annotations

from typing import Any

from benchmarks.levels import is_ours
from benchmarks.rows.columns import short
from benchmarks.targets.harness import PEER

# What a mask may cost, of its image.
SHARE = 1 / 3


def text(record: dict[str, Any]) -> str:
    """The record for a terminal. No speed is shown where a check failed."""
    head = ("row", "px", "batch", "boxes", "masks", "AlbX", "ours", "ratio", "asked", "image", "boxes +", "mask +")
    table: list[tuple[str, ...]] = [(*head, "a mask / image")]
    notes = list(record["left_out"])
    ours = [module for module in record["libraries"] if is_ours(module)]
    for row in record["rows"]:
        for module in ours:
            table.append(_line(row, module, len(ours) > 1))
        notes += [
            f"FAILED {row['row']}: {check['name']}: {check['found']}"
            for checks in row["checks"].values()
            for check in checks
            if not check["passed"]
        ]
        notes += [f"{row['row']}, {short(module)}: {error}" for module, error in row["errors"].items()]
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    lines = [f"{record['title']}: microseconds of processor time an image, medians", f"  {record['inputs']}"]
    where = record["machine"]
    lines.append(f"  {where['cpu']}, level {where['level']}, load {where['load_average_at_start']}")
    for line in table:
        lines.append("  " + "  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths))))  # noqa: B905
    return "\n".join([*lines, *(f"  {note}" for note in notes)])


def _line(row: dict[str, Any], module: str, has_levels: bool) -> tuple[str, ...]:
    name = f"{row['row']}, {short(module).removeprefix('ours, ')}" if has_levels else row["row"]
    size = str(row["side"]) if row["side"] == row["out"] else f"{row['side']} to {row['out']}"
    masks = row["masks"] + (row["boxes"] if row["has_instances"] else 0)
    first = (name, size, str(row["batch"]), str(row["boxes"]), str(masks))
    if row.get("failed") or module not in row["libraries"]:
        return (*first, *("-" for _ in range(7)), "check FAILED")
    found = {call: cell["microseconds"] for call, cell in row["libraries"][module].items()}
    peer = row["libraries"].get(PEER, {}).get("whole", {}).get("microseconds")
    image, whole = found["images"], found["whole"]
    ratio = "" if peer is None else f"{peer / whole:.1f}" + ("" if peer / whole >= row["target"] else " (missed)")
    of_masks = (found["masks"] if "masks" in found else whole - found["boxes"] + image) - image
    share = of_masks / masks / image if masks else None
    words = "" if share is None else f"{share:.2f}" + ("" if share < SHARE else " (missed)")
    costs = (f"{image:,.0f}", f"{found['boxes'] - image:,.0f}", f"{of_masks:,.0f}", words)
    return (*first, "" if peer is None else f"{peer:,.0f}", f"{whole:,.0f}", ratio, f"{row['target']:g}x", *costs)
