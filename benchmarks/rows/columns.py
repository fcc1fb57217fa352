"""The table of W2o: a row per operation and pipeline, then what misses, then what there is to say of the peers."""

from __future__ import annotations

from typing import Any

from benchmarks.columns import footer as _footer
from benchmarks.levels import is_ours, level_of
from benchmarks.rows.harness import APART

SHORT = {"torchvision_pil": "tv PIL", "torchvision_tensor": "tv tensor", "albumentationsx": "AlbX", "dali": "DALI"}


def short(module: str) -> str:
    """A library as the head of a column."""
    if is_ours(module):
        return f"ours, {level_of(module)}" if level_of(module) else "ours"
    return SHORT.get(module, module)


def best_peer(row: dict[str, Any]) -> tuple[str, float] | None:
    """The fastest peer of a row and its images per second."""
    speeds = {
        module: cell["images_per_second"]
        for module, cell in row.get("libraries", {}).items()
        if not is_ours(module) and "images_per_second" in cell
    }
    return max(speeds.items(), key=lambda item: item[1]) if speeds else None


def ratios(row: dict[str, Any]) -> dict[str, float]:
    """Of each of our processes to the best peer."""
    best = best_peer(row)
    if best is None:
        return {}
    ours = {module: cell for module, cell in row["libraries"].items() if is_ours(module)}
    return {m: cell["images_per_second"] / best[1] for m, cell in ours.items() if "images_per_second" in cell}


def header(record: dict[str, Any]) -> tuple[str, ...]:
    modules = list(record["libraries"])
    ours = [module for module in modules if is_ours(module)]
    heads = [short(module) for module in modules]
    compared = [f"ratio{short(module).removeprefix('ours')}" for module in ours]
    return ("row", *heads, "best peer", *compared, "target")


def left(record: dict[str, Any]) -> tuple[int, ...]:
    """Columns of words."""
    return 0, 1 + len(record["libraries"])


def rows(record: dict[str, Any]) -> list[tuple[str, ...]]:
    modules = list(record["libraries"])
    table = []
    for row in record["rows"].values():
        if row.get("failed"):
            table.append((row["title"], *("-" for _ in header(record)[2:]), "check FAILED"))
            continue
        found, best = ratios(row), best_peer(row)
        cells = [_microseconds(row["libraries"].get(module, {})) for module in modules]
        compared = [_ratio(found.get(module), row, record["floor"]) for module in modules if is_ours(module)]
        table.append((row["title"], *cells, short(best[0]) if best else "none", *compared, f"{row['target']:g}x"))
    return table


def _microseconds(cell: dict[str, Any]) -> str:
    return f"{cell['microseconds']:,.0f}" if "microseconds" in cell else "error" if "error" in cell else ""


def _ratio(ratio: float | None, row: dict[str, Any], floor: float) -> str:
    if ratio is None:
        return ""
    word = f"{ratio:.1f}" if ratio >= floor else f"{ratio:.2f}"
    return word if ratio >= row["target"] else f"{word} (missed)"


def verdict(record: dict[str, Any]) -> str:
    """What each of our processes reached, a line's worth for each."""
    lines = []
    for module in record["libraries"]:
        found = [(ratios(row).get(module), row) for row in record["rows"].values()] if is_ours(module) else []
        known = [(ratio, row) for ratio, row in found if ratio is not None]
        if not known:
            continue
        words = []
        for kind in dict.fromkeys(row["kind"] for _, row in known):
            of_kind = [(ratio, row) for ratio, row in known if row["kind"] == kind]
            met = sum(ratio >= row["target"] for ratio, row in of_kind)
            words.append(f"{met} of {len(of_kind)} {kind}s reach {of_kind[0][1]['target']:g}x")
        slower = sum(ratio < record["floor"] for ratio, _ in known)
        lines.append(
            f"{record['libraries'][module]['library']}: {', '.join(words)}; {slower} slower than the best peer"
        )
    return ". ".join(lines) or "no ratio: Variegate or every peer is missing from this run"


def notes(record: dict[str, Any]) -> list[str]:
    """Misses, one by one; where a peer means something else, lacks a row, or failed; spreads are in the JSON file."""
    lines = [f"{record['left_out'][i]}" for i in range(len(record["left_out"]))]
    lines.append(
        "median microseconds of CPU time per image; a peer 1.5 times slower than the best is run twice, others every "
        "time; each peer in its fastest variant"
    )
    for module in record["libraries"]:
        missed = [
            f"{name} {ratios(row)[module]:.2f}"
            for name, row in record["rows"].items()
            if ratios(row).get(module, row["target"]) < row["target"]
        ]
        if missed:
            lines.append(f"{short(module)} misses: {', '.join(missed)}")
    without = [name for name, row in record["rows"].items() if not row.get("failed") and best_peer(row) is None]
    if without:
        lines.append(f"no peer has: {', '.join(without)}")
    for module, library in record["libraries"].items():
        lines += _of_library(record, module, library)
    return lines


def _of_library(record: dict[str, Any], module: str, library: dict[str, Any]) -> list[str]:
    """What differs, is absent or failed, each reason once with its rows."""
    if "error" in library:
        return [f"{library['library']} did not run: {library['error']}"]
    said: dict[str, list[str]] = {}
    for name, row in record["rows"].items():
        cell = row.get("libraries", {}).get(module, {})
        apart = row.get("levels_apart", {}).get(module, 0.0)
        reasons = [cell.get("differs", ""), _prefixed("not run: ", cell), _prefixed("failed, ", cell, "error")]
        reasons.append(f"{apart:.1f} levels from ours on average" if apart > APART else "")
        for reason in filter(None, reasons):
            said.setdefault(reason, []).append(name)
    words = [f"{reason} (`{', '.join(names)}`)" for reason, names in said.items()]
    return [f"{library['library']}: {'; '.join(words)}"] if words else []


def _prefixed(prefix: str, cell: dict[str, Any], key: str = "absent") -> str:
    return prefix + cell[key] if key in cell else ""


def checked(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows' checks as few lines: all that failed, and how many passed."""
    every = [
        (name, module, check)
        for name, row in record["rows"].items()
        for module, checks in row["checks"].items()
        for check in checks
    ]
    failed = [
        {"name": f"{name}, {short(module)}: {check['name']}", "passed": False, "found": check["found"]}
        for name, module, check in every
        if not check["passed"]
    ]
    exact = sum("equals" in check["name"] for _, _, check in every)
    found = f"{len(every) - len(failed)} of {len(every)} passed, {exact} of them bit-identical"
    return [*failed, {"name": "checks of rows", "passed": not failed, "found": found}]


def footer(record: dict[str, Any]) -> list[str]:
    return _footer(record)
