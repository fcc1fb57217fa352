"""``python -m benchmarks.run_gpu w3 w3r [--batch 64 256 1024] [--out docs/results]``: on one GPU, beside the peers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.gpu import device as _device
from benchmarks.gpu import harness
from benchmarks.gpu.works import WORKS
from benchmarks.inputs import DEFAULT_TAR

MEASURED = {"batch": [64, 256, 1024], "seconds": 2.0, "repeats": 5, "compile_seconds": 40.0}
PLUMBING = {"batch": [4], "seconds": 0.05, "repeats": 1, "compile_seconds": 1.0}
NOT_WRITTEN = "plumbing only, no result is written: these figures say nothing about a GPU"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_gpu", description=__doc__)
    parser.add_argument("works", nargs="+", choices=sorted(WORKS))
    parser.add_argument("--batch", type=int, nargs="+", help="one table for each (64 256 1024)")
    parser.add_argument("--seconds", type=float, help="length of a timed run (2)")
    parser.add_argument("--repeats", type=int, help="timed runs of each library (5)")
    parser.add_argument(
        "--compile-seconds",
        type=float,
        help="how long Kornia may warm up under torch.compile (40); 0 leaves that variant out",
    )
    parser.add_argument("--only", default="", help="modules of benchmarks/gpu/peers, with commas; `ours` is Variegate")
    parser.add_argument(
        "--images", type=Path, default=DEFAULT_TAR, help=f"a tar of JPEG files ({DEFAULT_TAR}, else made from photos)"
    )
    parser.add_argument("--out", type=Path, default=None, help="a folder for one JSON file per table")
    parser.add_argument(
        "--device",
        default="cuda:0",
        help="cuda:0; cpu runs everything at tiny sizes to try the benchmark's own code, and writes no result",
    )
    options = parser.parse_args(arguments)
    for name, value in (MEASURED if options.device.startswith("cuda") else PLUMBING).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 when a check failed, 2 when there is no GPU; speed itself never fails a run."""
    given = sys.argv[1:] if arguments is None else arguments
    options = parse(given)
    plumbing = options.device == "cpu"
    reason = None if plumbing else _device.why_not(options.device)
    if reason is not None:
        names = " and ".join(name.upper() for name in options.works)
        print(f"no GPU to measure {names} on: {reason}; --device cpu tries the benchmark's own code", file=sys.stderr)
        return 2
    if plumbing:
        print(NOT_WRITTEN)
    failed = False
    for name in options.works:
        work = WORKS[name]
        source = harness.read(work, options.images, on_gpu=not plumbing)
        for batch in options.batch:
            print(f"{name}, batch {batch}", file=sys.stderr)
            chosen = harness.Options(
                batch=batch,
                seconds=options.seconds,
                repeats=options.repeats,
                device=options.device,
                compile_seconds=options.compile_seconds,
                only=tuple(filter(None, options.only.split(","))),
            )
            record = harness.run_work(work, source, chosen)
            record |= {"command": " ".join(["python -m benchmarks.run_gpu", *given])}
            print(report.text(record), flush=True)
            failed |= bool(record.get("failed"))
            if options.out is not None and not plumbing and not record.get("failed"):
                report.write(record, options.out)
    if plumbing:
        print(NOT_WRITTEN)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
