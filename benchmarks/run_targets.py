"""``python -m benchmarks.run_targets [--rows detection,mosaic] [--level v3 host]``: masks and boxes, on one core."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import levels, machine
from benchmarks.harness import Options
from benchmarks.inputs import DEFAULT_TAR
from benchmarks.run import last_core
from benchmarks.targets import harness
from benchmarks.targets.catalogue import select
from benchmarks.targets.columns import text


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_targets", description=__doc__)
    parser.add_argument("--rows", default="", help="names of rows, with commas (all)")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a timed run (0.3)")
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of each library (5)")
    parser.add_argument("--core", type=int, default=None, help="the core to pin to (the last one)")
    parser.add_argument(
        "--images", type=Path, default=DEFAULT_TAR, help=f"a tar of JPEG files ({DEFAULT_TAR}, else made from photos)"
    )
    levels.add_argument(parser)
    parser.add_argument("--out", type=Path, default=None, help="a file for the record as JSON")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 when a check failed, 2 for rows that are none; speed itself never fails a run."""
    given = sys.argv[1:] if arguments is None else arguments
    options = parse(given)
    try:
        rows = select(options.rows)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    chosen = Options(
        seconds=options.seconds,
        repeats=options.repeats,
        core=options.core if options.core is not None else last_core(),
        images=options.images,
        levels=tuple(options.level),
    )
    where = machine.describe()
    record = harness.run(rows, chosen)
    record |= {"machine": where, "command": " ".join(["python -m benchmarks.run_targets", *given])}
    print(text(record), flush=True)
    if options.out is not None and not record["failed"]:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if record["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
