"""``python -m benchmarks.run w1 w2 w2o [--level v3 host] [--out docs/results]``: beside the peers, on one core."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks import levels, machine, report
from benchmarks.harness import Options, run_work
from benchmarks.inputs import DEFAULT_TAR
from benchmarks.rows import catalogue
from benchmarks.rows import harness as rows
from benchmarks.works.base import Work

MEASURED: dict[str, Any] = {"batch": [64, 256], "seconds": 2.0, "repeats": 7}
# Many rows, so short ones.
MEASURED_ROWS: dict[str, Any] = {"batch": [64], "seconds": 0.3, "repeats": 5}
WORKS = [*sorted(path.stem for path in Path(__file__).with_name("works").glob("w*.py")), rows.NAME]


def load_work(name: str) -> Work:
    work = importlib.import_module(f"benchmarks.works.{name}").WORK
    assert isinstance(work, Work)
    return work


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("works", nargs="+", choices=WORKS)
    parser.add_argument("--batch", type=int, nargs="+", help="one table for each (64 256; w2o: 64)")
    parser.add_argument("--seconds", type=float, help="length of a timed run (2; w2o: 0.3)")
    parser.add_argument("--repeats", type=int, help="timed runs of each library (7; w2o: 5)")
    parser.add_argument("--rows", default="", help="rows of w2o, with commas, of benchmarks/rows/catalogue.py (all)")
    parser.add_argument("--core", type=int, default=None, help="the core to pin to (the last one)")
    parser.add_argument("--only", default="", help="modules of benchmarks/peers, with commas; `ours` is Variegate")
    parser.add_argument(
        "--images", type=Path, default=DEFAULT_TAR, help=f"a tar of JPEG files ({DEFAULT_TAR}, else made from photos)"
    )
    levels.add_argument(parser)
    parser.add_argument("--out", type=Path, default=None, help="a folder for one JSON file per table")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 when a check failed; speed itself never fails a run."""
    given = sys.argv[1:] if arguments is None else arguments
    options = parse(given)
    where = machine.describe()
    print(f"{where['cpu']}; its best level: {where['level']}", file=sys.stderr)
    try:
        cases = catalogue.select(options.rows)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    failed = False
    for name in options.works:
        measured = MEASURED_ROWS if name == rows.NAME else MEASURED
        batches, seconds, repeats = (
            value if getattr(options, key) is None else getattr(options, key) for key, value in measured.items()
        )
        for batch in batches:
            print(f"{name}, batch {batch}", file=sys.stderr)
            chosen = Options(
                batch=batch,
                seconds=seconds,
                repeats=repeats,
                core=options.core if options.core is not None else last_core(),
                only=tuple(filter(None, options.only.split(","))),
                images=options.images,
                levels=tuple(options.level),
            )
            record = rows.run(cases, chosen) if name == rows.NAME else run_work(load_work(name), chosen)
            record |= {"machine": where, "command": " ".join(["python -m benchmarks.run", *given])}
            print(report.text(record), flush=True)
            failed |= bool(record.get("failed"))
            if options.out is not None and not record.get("failed"):
                report.write(record, options.out)
    return 1 if failed else 0


def last_core() -> int | None:
    """The last core this process may use; the first is where interrupts tend to land."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


if __name__ == "__main__":
    sys.exit(main())
