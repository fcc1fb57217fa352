"""``python -m benchmarks.run NAME [options]``: measure a work and its peers, after a check of the pixels.

On one core: w1, w1i and w1i_local (JPEG files), w2 (RandAugment in memory), w2o (every operation and pipeline) and w8
(one image at a time). Also targets (masks and boxes) and deep (uint16 and float32). On a GPU: w3, w3r. On all cores:
loader, and feeds (an optimizer step); ``--only ours,ours:process,ours:ray`` measures kinds of workers. expand (W5),
startup (W7), host (drawing and lowering), search, w6 (PBA) and duplicates have options of their own: see ``... run
expand --help``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks import harness, levels, machine, report
from benchmarks.cases import WORKS, select
from benchmarks.inputs import DEFAULT_TAR

# Works that are no table of cases, and their modules, whose ``main(name, arguments)`` returns an exit code.
MODULES = {
    "expand": "expand",
    "startup": "startup",
    "host": "host",
    "search": "search",
    "w6": "search",
    "duplicates": "duplicates",
}


def add_images(parser: argparse.ArgumentParser) -> None:
    help = f"a tar of JPEG files ({DEFAULT_TAR}, else made from photos)"
    parser.add_argument("--images", type=Path, default=DEFAULT_TAR, help=help)


def parser_of() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("works", nargs="+", choices=WORKS, metavar="NAME")
    parser.add_argument("--batch", type=int, nargs="+", help="one table for each")
    parser.add_argument("--seconds", type=float, help="length of a measured run")
    parser.add_argument("--repeats", type=int, help="measured runs of each library")
    parser.add_argument("--rows", nargs="+", default=[], help="names of cases in benchmarks/cases.py (all)")
    parser.add_argument("--core", type=int, default=last_core(), help="the core to pin to (the last one)")
    only = "keys of libraries, with commas; `ours` is Variegate"
    parser.add_argument("--only", type=lambda keys: keys.split(","), default=[], help=only)
    parser.add_argument(
        "--device",
        default="cuda:0",
        help="of w3 and w3r; cpu tries the code and writes no result",
    )
    add_images(parser)
    levels.add_argument(parser)
    parser.add_argument("--out", type=Path, help="a folder for one JSON file per table")
    return parser


def run_table(name: str, batch: int, options: argparse.Namespace) -> dict[str, Any]:
    work = WORKS[name]
    print(f"{name}, batch {batch}", file=sys.stderr)
    record = harness.run(name, select(work.cases, options.rows), batch, options)
    if work.is_on_gpu and options.device != "cpu" and not record["failed"]:
        from benchmarks.gpu import complete

        complete(record, options.device, work.cases[0].size)
    return record


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 if a check failed, 2 for bad input; speed itself never fails a run."""
    given = sys.argv[1:] if arguments is None else arguments
    command = " ".join(["python -m benchmarks.run", *given])
    if given and given[0] in MODULES:
        code: int = importlib.import_module(f"benchmarks.{MODULES[given[0]]}").main(given[0], given[1:], command)
        return code
    options = parser_of().parse_args(given)
    is_on_gpu = any(WORKS[name].is_on_gpu for name in options.works)
    is_trial = is_on_gpu and options.device == "cpu"
    try:
        for name in options.works:
            select(WORKS[name].cases, options.rows)
        if is_on_gpu and not is_trial and not torch.cuda.is_available():
            raise ValueError(f"--device {options.device}: PyTorch sees no GPU; accepted: a GPU, or cpu to try the code")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    where = machine.describe()
    has_failed = False
    for name in options.works:
        for batch in options.batch or WORKS[name].batches:
            record = run_table(name, batch, options) | {
                "machine": where,
                "command": command,
            }
            print(report.markdown(record), flush=True)
            has_failed |= bool(record["failed"])
            if options.out is not None and not record["failed"] and not is_trial:
                report.write(record, options.out)
    return 1 if has_failed else 0


def last_core() -> int | None:
    """The last core that this process may use; interrupts tend to land on the first."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


if __name__ == "__main__":
    sys.exit(main())
