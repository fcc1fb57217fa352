"""``python -m benchmarks.run w1 w2 [--batch 64 256] [--out docs/results]``: works beside their peers, on one core."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from benchmarks import levels, machine, report
from benchmarks.harness import Options, run_work
from benchmarks.inputs import DEFAULT_TAR
from benchmarks.works.base import Work

WORKS = sorted(path.stem for path in Path(__file__).with_name("works").glob("w*.py"))


def load_work(name: str) -> Work:
    work = importlib.import_module(f"benchmarks.works.{name}").WORK
    assert isinstance(work, Work)
    return work


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("works", nargs="+", choices=WORKS)
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 256], help="one table for each (64 256)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a timed run (2)")
    parser.add_argument("--repeats", type=int, default=7, help="timed runs of each library (7)")
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
    failed = False
    for name in options.works:
        for batch in options.batch:
            print(f"{name}, batch {batch}", file=sys.stderr)
            chosen = Options(
                batch=batch,
                seconds=options.seconds,
                repeats=options.repeats,
                core=options.core if options.core is not None else _last_core(),
                only=tuple(filter(None, options.only.split(","))),
                images=options.images,
                levels=tuple(options.level),
            )
            record = run_work(load_work(name), chosen)
            record |= {"machine": where, "command": " ".join(["python -m benchmarks.run", *given])}
            print(report.text(record), flush=True)
            failed |= bool(record.get("failed"))
            if options.out is not None and not record.get("failed"):
                report.write(record, options.out)
    return 1 if failed else 0


def _last_core() -> int | None:
    """The last core this process may use; the first is where interrupts tend to land."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


if __name__ == "__main__":
    sys.exit(main())
