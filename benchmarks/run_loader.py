"""``python -m benchmarks.run_loader [WORK] [--batch 64] [--out docs/results]``: loaders side by side, on all cores.

``loader``: of several libraries. ``workers``: Variegate's by kind of workers, beside loaders over processes, with what
they send and what the simulation predicts. ``workers_raw``: raw shards, and more augmentation.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks import machine, report
from benchmarks.inputs import DEFAULT_TAR
from benchmarks.loader import harness, process_tree


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_loader", description=__doc__)
    parser.add_argument("work", nargs="?", default="loader", choices=harness.WORKS)
    parser.add_argument("--batch", type=int, nargs="+", default=[64], help="one table for each (64)")
    parser.add_argument("--seconds", type=float, default=10.0, help="least length of a run of whole epochs (10)")
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of each library (5)")
    parser.add_argument("--first-batches", type=int, default=3, help="runs of each library alone, at least 1 (3)")
    parser.add_argument("--cores", type=int, default=None, help="how many cores every library may use (all)")
    parser.add_argument("--copies", type=int, default=1, help="times that each photo is in an epoch (1)")
    parser.add_argument(
        "--only", default="", help="modules of benchmarks/loader/peers, with commas; `ours` is Variegate"
    )
    parser.add_argument(
        "--images", type=Path, default=DEFAULT_TAR, help=f"a tar of JPEG files ({DEFAULT_TAR}, else made from photos)"
    )
    parser.add_argument("--out", type=Path, default=None, help="a folder for one JSON file per table")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 when a check failed, 2 where it cannot be run; speed itself never fails a run."""
    given = sys.argv[1:] if arguments is None else arguments
    options = parse(given)
    if not process_tree.available() or not hasattr(os, "sched_getaffinity"):
        print("processor time and memory of whole process trees are measured by Linux's /proc alone", file=sys.stderr)
        return 2
    allowed = sorted(os.sched_getaffinity(0))
    cores = len(allowed) if options.cores is None else options.cores
    if not 1 <= cores <= len(allowed):
        print(f"--cores {cores}: accepted: 1 to {len(allowed)}, which this process may use", file=sys.stderr)
        return 2
    where = machine.describe()
    failed = False
    for batch in options.batch:
        print(f"{options.work}, batch {batch}", file=sys.stderr)
        chosen = harness.Options(
            work=options.work,
            first_batches=options.first_batches,
            batch=batch,
            seconds=options.seconds,
            repeats=options.repeats,
            on_cores=tuple(allowed[-cores:]),
            copies=options.copies,
            only=tuple(filter(None, options.only.split(","))),
            images=options.images,
        )
        record = harness.run_work(chosen)
        record |= {"machine": where, "command": " ".join(["python -m benchmarks.run_loader", *given])}
        print(report.text(record), flush=True)
        failed |= bool(record.get("failed"))
        if options.out is not None and not record.get("failed"):
            report.write(record, options.out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
