"""``python -m benchmarks.run startup``: W7, the time of a start.

The import beyond torch, and the first RandAugment batch if nothing is compiled yet. A batch that is wrong has no time.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.peers_env import ROOT

IMPORT_LIMIT = 1.0
COLD_LIMIT = 25.0
TIMEOUT = 600.0
TITLES = {
    "import": "import variegate beyond import torch",
    "cold": "from nothing to the first batch",
}

IMPORT_PROBE = """
import time
import torch
imported = time.perf_counter()
import variegate
variegate.Augmenter, variegate.load_policy  # names that are loaded on demand count as well
print(time.perf_counter() - imported)
"""

# The first batch of W2's policy at W2's size; then whether it is right.
BATCH_PROBE = """
import numpy as np
import variegate as vg
from variegate import transforms as T
normalize = T.Normalize(mean=vg.IMAGENET_MEAN, std=vg.IMAGENET_STD)
t = T.Compose([T.RandomHorizontalFlip(), T.RandAugment(num_ops=2, magnitude=9), normalize])
images = np.random.default_rng(0).integers(0, 256, (64, 224, 224, 3), dtype=np.uint8)
batch = vg.Augmenter(t, seed=0)(images, ids=list(range(64)))
print("made", flush=True)
assert tuple(batch.shape) == (64, 3, 224, 224) and bool(batch.isfinite().all())
few = vg.Augmenter(t, seed=0, device="cpu")(images[:4], ids=list(range(4)))
assert bool((few == batch[:4]).all()), "the first batch is wrong"
print("right", flush=True)
"""


def spread(seconds: list[float], limit: float) -> dict[str, Any]:
    return {
        "seconds": statistics.median(seconds),
        "lowest": min(seconds),
        "highest": max(seconds),
        "limit_seconds": limit,
    }


def import_seconds(repeats: int) -> dict[str, Any]:
    """Seconds of ``import variegate`` after torch, in fresh processes."""
    command = [sys.executable, "-c", IMPORT_PROBE]
    runs = [
        float(subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, timeout=TIMEOUT, check=True).stdout)
        for _ in range(repeats + 1)
    ]
    return spread(runs[1:], IMPORT_LIMIT)  # the first reads files from the disk and writes byte code


def cold_seconds(repeats: int) -> dict[str, Any]:
    """Seconds from the start of Python to the first batch, with an empty cache and home."""
    seconds = [_cold_start() for _ in range(repeats)]
    return spread(seconds, COLD_LIMIT) | {"cores": os.cpu_count()}


def _cold_start() -> float:
    with tempfile.TemporaryDirectory() as folder:
        empty = {name: str(Path(folder, name)) for name in ("HOME", "XDG_CACHE_HOME")}
        for place in empty.values():
            Path(place).mkdir()
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", BATCH_PROBE],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=os.environ | empty,
            start_new_session=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        seconds = time.perf_counter() - began
        is_right = bool(process.stdout.readline())
        with suppress(ProcessLookupError):  # it, and processes that still compile for it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if not is_right:
        raise RuntimeError("the first start failed, or its batch is wrong")
    return seconds


def main(name: str, arguments: Sequence[str], command: str) -> int:
    """Exit code 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.run {name}", description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, help="fresh processes (7)")
    parser.add_argument("--cold", type=int, default=3, help="starts with nothing compiled (3); 0: none")
    parser.add_argument("--out", type=Path, help="a folder for startup.json")
    options = parser.parse_args(arguments)
    where = machine.describe()
    found = {"import": import_seconds(options.repeats)}
    if options.cold:
        found["cold"] = cold_seconds(options.cold)
    print(f"{where['cpu']}, level {where['level']}")
    for key, row in found.items():
        between = f"{row['lowest']:.2f} - {row['highest']:.2f}; limit {row['limit_seconds']:g} s"
        print(f"{TITLES[key]}: {row['seconds']:.2f} s ({between})")
    if options.out is not None:
        report.write({"machine": where, "command": command, **found}, options.out, "startup")
    return 0 if all(row["seconds"] <= row["limit_seconds"] for row in found.values()) else 1
