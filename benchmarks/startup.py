"""What starting costs (W7): ``python -m benchmarks.startup [--wheels dist] [--out docs/results]``.

The import beyond torch; the first RandAugment batch where nothing is compiled yet; what a second start compiles; and
with ``--wheels``, the first batch of an environment that has the compiled kernels installed and nothing to write to.
"""

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

from benchmarks import machine, startup_batch
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
        first, second = (
            json.loads(_python(startup_batch.COMPILE_PROBE, WORKLOAD, environment=environment)) for _ in range(2)
        )
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
    parser.add_argument("--cold", type=int, default=3, help="starts with nothing compiled (3); 0: none")
    parser.add_argument("--wheels", type=Path, default=None, help="a folder of wheels, such as `make wheel` fills")
    parser.add_argument("--out", type=Path, default=None, help="a folder for startup.json")
    options = parser.parse_args()
    record: dict[str, Any] = {"machine": machine.describe(), "import": import_seconds(options.repeats)}
    took = record["import"]
    print(f"{record['machine']['cpu']}, level {record['machine']['level']}")
    print(
        f"import variegate: {took['variegate_beyond_torch_seconds']:.2f} s beyond import torch "
        f"({took['lowest']:.2f} - {took['highest']:.2f}; limit {IMPORT_LIMIT_SECONDS:g} s)"
    )
    if options.cold:
        cold = record["cold"] = startup_batch.from_nothing(options.cold)
        print(
            f"from nothing to the first batch: {cold['seconds']:.1f} s on {cold['cores']} cores "
            f"({cold['lowest']:.1f} - {cold['highest']:.1f}), {cold['after_torch_seconds']:.1f} s of it after torch; "
            f"limit {cold['limit_seconds']:g} s"
        )
    found = record["compile"] = compilations()
    seconds = found["first_start_compile_seconds"]
    print(f"first start compiled {found['first_start_compiled']} functions in {seconds:.1f} s")
    print(f"second start compiled {len(found['second_start_compiled'])}: {found['second_start_compiled']}")
    right = took["variegate_beyond_torch_seconds"] <= IMPORT_LIMIT_SECONDS and not found["second_start_compiled"]
    if options.cold:
        right = right and cold["seconds"] <= cold["limit_seconds"]
    if options.wheels is not None:
        shipped = record["wheels"] = startup_batch.with_wheels(options.wheels, options.repeats)
        print(
            f"with {', '.join(shipped['wheels'])}: first batch {shipped['seconds']:.2f} s after import torch "
            f"({shipped['lowest']:.2f} - {shipped['highest']:.2f}; limit {shipped['limit_seconds']:g} s), "
            f"{len(shipped['compiled'])} functions compiled, {len(shipped['written'])} files written"
        )
        right = right and not shipped["compiled"] and not shipped["written"]
        right = right and shipped["seconds"] <= shipped["limit_seconds"]
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "startup.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
