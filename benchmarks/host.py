"""``python -m benchmarks.run host``: time of the host for a batch of 256 images before its pixels.

Drawing and lowering of W2, SimCLR's two views, AugMix and 3-Augment on one core, in microseconds. Programs with other
pixels than ``Augmenter.program`` are not timed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import variegate as vg
from benchmarks import machine, report
from benchmarks.cases import BY_NAME
from benchmarks.libraries import ours
from variegate import transforms as T
from variegate.augmenter.planner import Request
from variegate.program.program import Program

BATCH = 256
LIMIT = 80.0
_WARM_UP = 20


def transforms() -> dict[str, T.Transform]:
    works: dict[str, T.Transform] = {
        "w2": ours.transform(BY_NAME["randaugment"]),
        "simclr": vg.load_policy("simclr"),
        "augmix": ours.transform(BY_NAME["augmix"]),
        "three_augment": ours.transform(BY_NAME["three_augment"]),
    }
    return works


def planner(augmenter: vg.Augmenter, images: Any) -> Callable[[], Program]:
    """A function that draws and lowers one batch."""
    runner = augmenter._runner
    shapes, call = runner.take(images).shapes, Request(list(range(len(images))))

    def plan() -> Program:
        program = augmenter._planner.lowered(shapes, call, None, runner.rewriting)
        return program if program.stage == "fused" else runner.lower(program)

    return plan


def is_right(augmenter: vg.Augmenter, images: Any) -> bool:
    """True if a call makes the pixels of the public program."""
    ids = list(range(len(images)))
    made = augmenter(images, ids=ids)
    wanted = augmenter.run(augmenter.program(images, ids=ids), images)
    pairs: Any = zip(made, wanted, strict=True) if isinstance(made, tuple) else [(made, wanted)]
    return all(torch.equal(one, other) for one, other in pairs)


def microseconds(work: Callable[[], object], repeats: int) -> dict[str, float]:
    times = []
    for _ in range(_WARM_UP + repeats):
        begin = time.perf_counter_ns()
        work()
        times.append((time.perf_counter_ns() - begin) / 1e3)
    return {"lowest": min(times[_WARM_UP:]), "median": statistics.median(times[_WARM_UP:])}


def main(name: str, arguments: Sequence[str], command: str) -> int:
    """Exit code 1 if a check failed."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.run {name}", description=__doc__)
    parser.add_argument("--repeats", type=int, default=300, help="batches of each work (300)")
    parser.add_argument("--out", type=Path, help="a folder for host.json")
    options = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    where = machine.describe()
    print(f"{where['cpu']}, level {where['level']}; microseconds of {BATCH} images, at most {LIMIT:g} asked")
    images = np.random.default_rng(0).integers(0, 256, (BATCH, 224, 224, 3), np.uint8)
    found: dict[str, Any] = {}
    for key, transform in transforms().items():
        augmenter = vg.Augmenter(transform, num_threads=1)
        if not is_right(augmenter, images[:32]):
            print(f"{key}: the check failed")
            return 1
        plan = planner(augmenter, images)
        row = found[key] = {"rows": plan().num_rows, **microseconds(plan, options.repeats)}
        print(f"{key}: {row['lowest']:.0f} (median {row['median']:.0f}), {row['rows']} rows")
    if options.out is not None:
        report.write({"machine": where, "command": command, **found}, options.out, "host")
    return 0
