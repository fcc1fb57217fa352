"""Compare the speed of two checkouts, row by row: ``python -m benchmarks.compare OTHER_CHECKOUT --rows w2 hue``.

Each checkout has a process for each level, with its own ``benchmarks``, ``variegate`` and ``.venv``. All are pinned to
one core and measured in turn, after a check of their pixels.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import levels
from benchmarks.cases import WORKS, Case
from benchmarks.harness import check, prepare
from benchmarks.inputs import read_jpegs, save
from benchmarks.peers_env import ROOT
from benchmarks.process import ONE_THREAD, RUN_TIMEOUT, Process
from benchmarks.run import add_images, last_core

COMPARED = ("w2", "w2o", "w8")
HEAD = "| row | level | this, us | other, us | other / this | lowest - highest |\n|---|---|--:|--:|--:|---|"


def start(checkout: Path, level: str, config: dict[str, Any]) -> Process:
    """A process of a checkout, limited to a level."""
    python = checkout / ".venv" / "bin" / "python"
    environment = {"PYTHONPATH": str(checkout)} | levels.environment_of(level, checkout)
    return Process(
        python if python.exists() else sys.executable,
        config | {"level": level},
        environment=ONE_THREAD | environment,
        folder=checkout,
    )


def parts_of(case: Case, process: Process) -> list[str]:
    """Check and prepare a case -> what is measured: the case itself (""), and parts of it."""
    for one in check(case, process):
        if not one["passed"]:
            raise RuntimeError(f"{one['name']}: {one['found']}")
    cell = prepare(case, process, "cpu")
    if cell.absent or cell.error:
        raise RuntimeError(cell.absent or cell.error)
    return list(cell.runs)


def microseconds(process: Process, part: str, seconds: float) -> float:
    """Processor time of an image."""
    run: dict[str, float] = process.ask({"command": "run", "part": part, "seconds": seconds}, RUN_TIMEOUT)
    return 1e6 * run["cpu"] / run["images"]


def compare(case: Case, level: str, sides: Sequence[Process], options: argparse.Namespace) -> float | None:
    """Print a line for each part of the case -> the median ratio of the case; None if a check failed."""
    try:
        parts, _ = (parts_of(case, process) for process in sides)
    except RuntimeError as error:
        print(f"| {case.name} | {level} | FAILED: {error} | | | |", flush=True)
        return None
    medians = {}
    for part in parts:
        pairs = [[microseconds(side, part, options.seconds) for side in sides] for _ in range(options.repeats)]
        ratios = [other / this for this, other in pairs]
        medians[part] = statistics.median(ratios)
        this, other = (statistics.median(times) for times in zip(*pairs, strict=True))
        name = f"{case.name}, {part}" if part else case.name
        figures = f"{this:,.1f} | {other:,.1f} | {medians[part]:.2f}x | {min(ratios):.2f} - {max(ratios):.2f}"
        print(f"| {name} | {level} | {figures} |", flush=True)
    return medians[""]


def compare_work(work: str, cases: Sequence[Case], checkouts: Sequence[Path], options: argparse.Namespace) -> bool:
    """Print a table, and the median of its ratios at each level -> whether every check passed."""
    jpegs, _ = read_jpegs(options.images)
    ratios: dict[str, list[float | None]] = {level: [] for level in options.level}
    with tempfile.TemporaryDirectory() as folder:
        save(jpegs, cases, Path(folder))
        config = {"work": work, "inputs": folder, "batch": options.batch, "core": options.core, "device": "cpu"}
        config |= {"is_on_one_core": True, "library": levels.OURS, "is_indexed": False, "kind": ""}
        processes = {level: [start(one, level, config) for one in checkouts] for level in options.level}
        print(f"### {work.upper()}, batch {options.batch}\n\n{HEAD}", flush=True)
        for case in cases:
            for level, sides in processes.items():
                ratios[level].append(compare(case, level, sides, options))
        for sides in processes.values():
            for process in sides:
                process.close()
    print()
    for level, found in ratios.items():
        known = [ratio for ratio in found if ratio is not None]
        if known:
            print(
                f"{level}: {statistics.median(known):.2f}x at the median of {len(known)} rows, least {min(known):.2f}x"
            )
    print()
    return all(ratio is not None for found in ratios.values() for ratio in found)


def main() -> int:
    """Exit code 1 if a check failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("other", type=Path, help="the root of the other checkout")
    parser.add_argument("--works", nargs="+", choices=COMPARED, default=COMPARED)
    parser.add_argument("--rows", nargs="+", default=[], help="names of cases in benchmarks/cases.py (all)")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a measured run (0.3)")
    parser.add_argument("--repeats", type=int, default=7, help="pairs of measured runs (7)")
    parser.add_argument("--core", type=int, default=last_core(), help="the core to pin to (the last one)")
    add_images(parser)
    levels.add_argument(parser)
    options = parser.parse_args()
    limited, left_out = levels.chosen(options.level or [levels.HOST])
    options.level = [one.level for one in limited]
    for line in left_out:
        print(line)
    works = {}
    for work in options.works:
        works[work] = [case for case in WORKS[work].cases if not options.rows or case.name in options.rows]
    unknown = set(options.rows) - {case.name for cases in works.values() for case in cases}
    if unknown or not (options.other / "benchmarks").is_dir():
        parser.error(f"no such rows: {sorted(unknown)}" if unknown else f"{options.other}: no checkout")
    checkouts = (ROOT, options.other.resolve())
    passed = [compare_work(work, cases, checkouts, options) for work, cases in works.items() if cases]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
