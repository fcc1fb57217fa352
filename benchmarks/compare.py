"""Compare the speed of two checkouts, row by row: ``python -m benchmarks.compare OTHER_CHECKOUT --rows w2 hue``.

Each checkout has a process for each level, with its own ``benchmarks``, ``variegate`` and ``.venv``. All are pinned to
one core and measured in turn, after a check of their pixels.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import levels, machine
from benchmarks.cases import WORKS, Case
from benchmarks.harness import Cell, check, measure, prepare
from benchmarks.inputs import read_jpegs, save
from benchmarks.peers_env import ROOT
from benchmarks.process import ONE_THREAD, Process
from benchmarks.report import Row, table
from benchmarks.run import add_images, last_core

COMPARED = ("w2", "w2o", "w8")


def start(checkout: Path, level: str, config: dict[str, Any]) -> Process:
    """A process of a checkout, limited to a level."""
    python = checkout / ".venv" / "bin" / "python"
    environment = {"PYTHONPATH": str(checkout)} | levels.environment_of(level)
    return Process(
        python if python.exists() else sys.executable,
        config | {"level": level},
        environment=ONE_THREAD | environment,
        folder=checkout,
    )


def prepared(case: Case, process: Process) -> Cell:
    """Check the case's pixels and prepare it. Raises RuntimeError if either fails."""
    for one in check(case, process):
        if not one["passed"]:
            raise RuntimeError(f"{one['name']}: {one['found']}")
    cell = prepare(case, process, "cpu")
    if cell.error:
        raise RuntimeError(cell.error)
    return cell


def compare(case: Case, level: str, sides: Sequence[Process], options: argparse.Namespace) -> list[Row]:
    """A row for the case, and a row for each measured part. ``sides``: this checkout, and the other."""
    try:
        cells = [prepared(case, process) for process in sides]
    except RuntimeError as error:
        return [{"row": case.name, "level": level, "FAILED": str(error)}]
    for _ in range(options.repeats):
        for cell, process in zip(cells, sides, strict=True):
            measure(cell, process, options.seconds)
    rows = []
    for part in cells[0].runs:
        this, other = (cell.speeds(part) for cell in cells)
        ratios = [ours / theirs for ours, theirs in zip(this, other, strict=True)]
        row = {"row": f"{case.name}, {part}" if part else case.name, "level": level}
        row["this, us"] = f"{1e6 / statistics.median(this):,.1f}"
        row["other, us"] = f"{1e6 / statistics.median(other):,.1f}"
        row["lowest - highest"] = f"{min(ratios):.2f} - {max(ratios):.2f}"
        row["this is faster by"] = f"{statistics.median(ratios):.2f}"
        rows.append(row)
    return rows


def compare_work(work: str, cases: Sequence[Case], options: argparse.Namespace) -> list[Row]:
    jpegs, _ = read_jpegs(options.images)
    with tempfile.TemporaryDirectory() as folder:
        save(jpegs, cases, Path(folder))
        config = {"work": work, "inputs": folder, "batch": 64, "core": options.core, "device": "cpu"}
        config |= {"is_on_one_core": True, "library": levels.OURS, "is_indexed": False, "kind": ""}
        checkouts = (ROOT, options.other.resolve())
        processes = {level: [start(one, level, config) for one in checkouts] for level in options.level}
        rows = []
        for case in cases:
            for level, sides in processes.items():
                rows += compare(case, level, sides, options)
                print(rows[-1], file=sys.stderr)
        for process in itertools.chain(*processes.values()):
            process.close()
    return rows


def main() -> int:
    """Exit code 1 if a check failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("other", type=Path, help="the root of the other checkout")
    parser.add_argument("--rows", nargs="+", default=[], help="names of cases in benchmarks/cases.py (all)")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a measured run (0.3)")
    parser.add_argument("--repeats", type=int, default=7, help="pairs of measured runs (7)")
    parser.add_argument("--core", type=int, default=last_core(), help="the core to pin to (the last one)")
    add_images(parser)
    levels.add_argument(parser)
    options = parser.parse_args()
    limited, left_out = levels.chosen(options.level or [levels.HOST])
    options.level = [str(one.level) for one in limited]
    works = {}
    for work in COMPARED:
        works[work] = [case for case in WORKS[work].cases if not options.rows or case.name in options.rows]
    if unknown := set(options.rows).difference(case.name for cases in works.values() for case in cases):
        parser.error(f"--rows: no such rows: {sorted(unknown)}")
    print(machine.cpu_model(), *left_out, sep="\n")
    has_failed = False
    for work, cases in works.items():
        rows = compare_work(work, cases, options) if cases else []
        has_failed |= any("FAILED" in row for row in rows)
        print("\n".join([f"\n### {work.upper()}\n", *table(rows)]))
        for level in options.level:
            ratios = [float(row["this is faster by"]) for row in rows if row["level"] == level and "FAILED" not in row]
            if ratios:
                print(f"\n{level}: {statistics.median(ratios):.2f} at the median, {min(ratios):.2f} at the least")
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
