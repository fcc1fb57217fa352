"""What starting costs: ``python -m benchmarks.startup`` times the import, and counts what a second start compiles."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.peers_env import ROOT

IMPORT_LIMIT_SECONDS = 1.0

IMPORT_PROBE = """
import time
start = time.perf_counter()
import torch
middle = time.perf_counter()
import variegate
variegate.Augmenter, variegate.load_policy  # what is loaded only when it is asked for counts as well
print(middle - start, time.perf_counter() - middle)
"""

# Numba runs compiler passes over exactly the functions that it could not take from its cache, whatever decorator
# they have; passes nest, so time counts from the outermost.
COMPILE_PROBE = """
import json, sys, time
import numba
from numba.core import event

class Counter(event.Listener):
    def __init__(self):
        self.names, self.seconds, self.depth = set(), 0.0, 0
    def on_start(self, event):
        self.names.add(f"{event.data['module']}.{event.data['qualname']}")
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1
    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began

counter = Counter()
began = time.perf_counter()
with event.install_listener("numba:run_pass", counter):
    exec(sys.argv[1])
whole = time.perf_counter() - began
print(json.dumps({"compiled": sorted(counter.names), "seconds": counter.seconds, "whole": whole}))
"""

# The demo's main job: photos to augmented images with RandAugment, by the same executor.
WORKLOAD = """
import numpy as np
import variegate as vg
from variegate import transforms as T
t = T.Compose([T.RandomResizedCrop(96), T.RandomHorizontalFlip(), T.RandAugment(num_ops=2, magnitude=9)])
images = [np.random.default_rng(i).integers(0, 256, (120 + i, 160, 3), dtype=np.uint8) for i in range(64)]
for transform in (t, T.Compose([t, T.Normalize(mean=vg.IMAGENET_MEAN, std=vg.IMAGENET_STD)])):
    vg.Augmenter(transform, device="cpu", seed=0)(images)
"""


def import_seconds(repeats: int) -> dict[str, Any]:
    """Seconds of ``import torch`` and of ``import variegate`` after it, medians over fresh processes."""
    _python(IMPORT_PROBE)  # the first reads files from the disk and writes byte code
    runs = [[float(word) for word in _python(IMPORT_PROBE).split()] for _ in range(repeats)]
    beyond = [run[1] for run in runs]
    return {
        "torch_seconds": statistics.median(run[0] for run in runs),
        "variegate_beyond_torch_seconds": statistics.median(beyond),
        "lowest": min(beyond),
        "highest": max(beyond),
        "limit_seconds": IMPORT_LIMIT_SECONDS,
    }


def compilations() -> dict[str, Any]:
    """Functions compiled by the first start with an empty cache, and by the second."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {"NUMBA_CACHE_DIR": cache}
        first, second = (json.loads(_python(COMPILE_PROBE, WORKLOAD, environment=environment)) for _ in range(2))
    return {
        "first_start_compiled": len(first["compiled"]),
        "first_start_compile_seconds": first["seconds"],
        "second_start_compiled": second["compiled"],
        "second_start_seconds": second["whole"],
    }


def _python(*arguments: str, environment: dict[str, str] | None = None) -> str:
    run = subprocess.run(
        [sys.executable, "-c", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | (environment or {}),
        check=False,
    )
    if run.returncode:
        raise RuntimeError(f"the probe failed: {run.stderr.strip().splitlines()[-1] if run.stderr.strip() else ''}")
    return run.stdout.strip().splitlines()[-1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, help="fresh processes for the import (7)")
    parser.add_argument("--out", type=Path, default=None, help="a folder for startup.json")
    options = parser.parse_args()
    record = {"machine": machine.describe(), "import": import_seconds(options.repeats), "compile": compilations()}
    took, found = record["import"], record["compile"]
    print(
        f"import variegate: {took['variegate_beyond_torch_seconds']:.2f} s beyond import torch "
        f"({took['lowest']:.2f} - {took['highest']:.2f}; limit {IMPORT_LIMIT_SECONDS:g} s)"
    )
    seconds = found["first_start_compile_seconds"]
    print(f"first start compiled {found['first_start_compiled']} functions in {seconds:.1f} s")
    print(f"second start compiled {len(found['second_start_compiled'])}: {found['second_start_compiled']}")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "startup.json").write_text(json.dumps(record, indent=1) + "\n")
    right = took["variegate_beyond_torch_seconds"] <= IMPORT_LIMIT_SECONDS and not found["second_start_compiled"]
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
