"""The table of W8: a row per function or pipeline and kind of sizes."""

from __future__ import annotations

from typing import Any

from benchmarks.columns import footer
from benchmarks.levels import is_ours
from benchmarks.rows.columns import short
from benchmarks.single.base import TARGETS, WAYS

__all__ = ["checked", "footer", "header", "left", "notes", "rows", "verdict"]

WORDS = {"function": "F.{}", "as_transform": "as_transform, {}", "call": "t(image), {}"}
PEER_WORDS = {"function": "Pillow", "as_transform": "torchvision on PIL", "call": "nobody"}


def header(record: dict[str, Any]) -> tuple[str, ...]:
    ours = [short(module).removeprefix("ours") for module in record["libraries"] if is_ours(module)]
    per_level = [head + level for level in ours for head in ("ours", "in a batch", "beyond, ms", "ratio")]
    return ("row", "sizes", "peer", *per_level)


def left(record: dict[str, Any]) -> tuple[int, ...]:
    return (0, 1)


def peer_of(row: dict[str, Any]) -> float | None:
    """Microseconds of the row's one peer."""
    times = [cell["microseconds"] for module, cell in row["libraries"].items() if not is_ours(module)]
    return times[0] if times else None


def rows(record: dict[str, Any]) -> list[tuple[str, ...]]:
    table = []
    for row in record["rows"]:
        title = (WORDS[row["way"]].format(row["row"]), row["sizes"])
        if row.get("failed"):
            table.append((*title, *("-" for _ in header(record)[3:]), "check FAILED"))
            continue
        peer = peer_of(row)
        cells: list[str] = [f"{peer:,.0f}" if peer else ""]
        for module in record["libraries"]:
            if is_ours(module):
                cells += _cells(row["libraries"][module], peer, row["target"], record["beyond_limit"])
        table.append((*title, *cells))
    return table


def _cells(cell: dict[str, Any], peer: float | None, target: float | None, limit: float) -> list[str]:
    beyond = cell.get("beyond_milliseconds")
    ratio = peer / cell["microseconds"] if peer else None
    words = [f"{cell['microseconds']:,.0f}"]
    words.append(f"{cell['batch_microseconds']:,.0f}" if beyond is not None else "")
    words.append("" if beyond is None else f"{beyond:.2f}" + (" (missed)" if beyond > limit else ""))
    words.append("" if ratio is None else f"{ratio:.1f}" + (" (missed)" if target and ratio < target else ""))
    return words


def verdict(record: dict[str, Any]) -> str:
    """A sentence for each level: how many rows reach what is asked for."""
    known = [row for row in record["rows"] if not row.get("failed")]
    sentences = []
    for module, library in record["libraries"].items():
        if not is_ours(module):
            continue
        times = [row["libraries"][module]["beyond_milliseconds"] for row in known if _has_batch(row, module)]
        within = sum(one <= record["beyond_limit"] for one in times)
        words = [f"{within} of {len(times)} rows take at most {record['beyond_limit']:g} ms longer than in a batch"]
        for way in WAYS[:2]:
            compared = [row for row in known if row["way"] == way and peer_of(row)]
            target = TARGETS[way] or 0.0
            met = sum((peer_of(row) or 0.0) / row["libraries"][module]["microseconds"] >= target for row in compared)
            words.append(f"{met} of {len(compared)} rows of {way} reach {target:g}x {PEER_WORDS[way]}")
        sentences.append(f"{library['library']}: {'; '.join(words)}")
    return ". ".join(sentences)


def _has_batch(row: dict[str, Any], module: str) -> bool:
    return "beyond_milliseconds" in row["libraries"][module]


def notes(record: dict[str, Any]) -> list[str]:
    from benchmarks.single.pillow import OTHERWISE

    differing = ", ".join(f"{name} ({reason})" for name, reason in OTHERWISE.items())
    return [
        *record["left_out"],
        "median microseconds of CPU time per image; in a batch: all images in one call, per image; beyond: the "
        "difference",
        "functions take arrays, Pillow its own images; as_transform and torchvision turn Pillow images into normalized "
        "float32 tensors; t(image) takes arrays",
        f"Pillow computes something else: {differing}",
    ]


def checked(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows' checks as few lines: all that failed, and how many passed."""
    every = [(row, check) for row in record["rows"] for checks in row["checks"].values() for check in checks]
    failed = [
        {"name": f"{row['row']}, {row['way']}: {check['name']}", "passed": False, "found": check["found"]}
        for row, check in every
        if not check["passed"]
    ]
    found = f"{len(every) - len(failed)} of {len(every)} passed"
    return [*failed, {"name": "checks of rows", "passed": not failed, "found": found}]
