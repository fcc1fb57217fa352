"""``python -m benchmarks.run_training [--parts steps start saving ranks] [--out FILE.json]``: what a training costs.

Steps beside those of a bare loop over random tensors; the start, beyond the imports; what a checkpoint holds up; and
what two processes send each other in a step, each way of keeping them together.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks import machine
from benchmarks.training import ranks
from benchmarks.training.steps import median, shares
from benchmarks.training.watching import in_a_process
from variegate.threads import wait_briefly

STEP_TARGET, START_TARGET, SAVE_TARGET = 0.95, 2.0, 0.05
STEPS = (("wrn-16-1", 32, 64), ("benchmarks.training.models:resnet18", 224, 16))
POLICIES = ("none", "randaugment")
STARTS = ("wrn-16-1", "wrn-28-4")
SAVES = (("wrn-16-1", 64), ("wrn-28-4", 32))
WAYS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sync", {}),
    ("sync", {"accumulate": 4}),
    ("periodic:8", {}),
    ("async", {}),
    ("sync", {"shard": True}),
)
PART_TIMEOUT = 1800.0
# Losses of the same steps, by the trainer and by the bare loop: sums in another order.
TOLERANCE = 1e-4


def verdict(is_met: bool) -> str:
    return "met" if is_met else "missed"


def steps(options: argparse.Namespace, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Raises RuntimeError where a check fails."""
    found = []
    for model, side, batch in STEPS:
        for policy in POLICIES:
            config: dict[str, Any] = {"model": model, "side": side, "batch": batch, "policy": policy, "lr": 0.01}
            config |= {"steps": options.steps, "repeats": options.repeats, "images": str(options.images or "")}
            row = config | in_a_process("steps", config, environment, PART_TIMEOUT)
            if not row["difference"] <= TOLERANCE:
                raise RuntimeError(f"{model}: the trainer's losses are {row['difference']:g} from the bare loop's")
            wall, processor = (shares(row, clock) for clock in (0, 1))
            took = statistics.median(one[0] for one in row["trained"]) * 1000
            print(
                f"{model.rpartition(':')[2]} {side}x{side}, batch {batch}, {policy}: {took:,.0f} ms a step; the bare "
                f"loop takes {median(wall)} of its time, {median(processor)} of its processor time; asked for "
                f"{STEP_TARGET:.0%}: {verdict(statistics.median(wall) >= STEP_TARGET)}",
                flush=True,
            )
            found.append(row)
    return found


def start(options: argparse.Namespace, environment: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for model in STARTS:
        config = {"model": model, "batch": 64, "policy": "randaugment"}
        runs: dict[str, list[dict[str, Any]]] = {"train": [], "bare": []}
        for _ in range(options.repeats + 1):  # the first reads files from the disk
            for name, told in runs.items():
                told.append(in_a_process("starts", {**config, "is_bare": name == "bare"}, environment, PART_TIMEOUT))
        ours, bare = ([one["seconds"] for one in told[1:]] for told in runs.values())
        took = statistics.median(ours)
        busy = [statistics.median(one["processor"] for one in told[1:]) for told in runs.values()]
        print(
            f"{model}: {took:.2f} s to the end of the first step ({min(ours):.2f} - {max(ours):.2f}), of a bare loop "
            f"{statistics.median(bare):.2f} s (of the processor {busy[0]:.2f} and {busy[1]:.2f} s); asked for "
            f"{START_TARGET:g} s: {verdict(took <= START_TARGET)}",
            flush=True,
        )
        found.append({**config, **runs})
    return found


def saving(options: argparse.Namespace, environment: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for model, batch in SAVES:
        config = {"model": model, "batch": batch, "every": options.steps, "repeats": options.repeats}
        row = config | in_a_process("saves", config, environment, PART_TIMEOUT)
        step, beside = statistics.median(row["without"]), statistics.median(row["with"])
        held = statistics.median(row["held"])
        print(
            f"{model}, a checkpoint of {row['bytes'] / 1e6:.1f} MB every {options.steps} steps: a save holds the loop "
            f"up for {held * 1000:.1f} ms of a step of {step * 1000:.0f} ms, {held / step:.1%} (up to "
            f"{max(row['held']) / step:.1%}); with the writing behind it, steps take {beside / step - 1:+.1%}; asked "
            f"for {SAVE_TARGET:.0%}: {verdict(held / step <= SAVE_TARGET)}",
            flush=True,
        )
        found.append(row)
    return found


def averaging(options: argparse.Namespace, environment: dict[str, str]) -> list[dict[str, Any]]:
    print("digits, wrn-16-1, two gloo processes, 64 images a step; sent: by TCP_INFO, of rank 0")
    print("averaging               steps/s   last loss  top-1   bytes sent a step   by formula")
    found = []
    for way, more in WAYS:
        config = {
            "model": "wrn-16-1",
            "epochs": options.epochs,
            "averaging": way,
            "accumulate": 1,
            "shard": False,
            **more,
        }
        row = config | ranks.on_two(config)
        name = " ".join([way, *(f"--{key}" if value is True else f"--{key} {value}" for key, value in more.items())])
        print(
            f"{name:22} {row['steps_per_second']:8.1f} {row['loss']:11.4f} {row['top1']:6.1%} {row['sent']:19,.0f} "
            f"{row['formula']:12,.0f}",
            flush=True,
        )
        found.append(row)
    return found


Part = Callable[[argparse.Namespace, dict[str, str]], list[dict[str, Any]]]
PARTS: dict[str, Part] = {"steps": steps, "start": start, "saving": saving, "ranks": averaging}


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 when a check failed; speed itself never fails a run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_training", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=list(PARTS), help="all of them")
    parser.add_argument("--steps", type=int, default=20, help="of a span, and between checkpoints (20)")
    parser.add_argument("--repeats", type=int, default=5, help="spans, or starts, of each kind (5)")
    parser.add_argument("--epochs", type=int, default=8, help="of two processes (8)")
    parser.add_argument("--threads", type=int, default=None, help="of torch (all cores)")
    parser.add_argument("--images", type=Path, default=None, help="a tar of JPEG files, else made from photos")
    parser.add_argument("--out", type=Path, default=None, help="a JSON file for all figures")
    options = parser.parse_args(arguments)
    wait_briefly()
    environment = {} if options.threads is None else {"OMP_NUM_THREADS": str(options.threads)}
    where = machine.describe() | {"torch": torch.__version__, "spins": os.environ.get("GOMP_SPINCOUNT")}
    print(", ".join(f"{name}: {value}" for name, value in where.items()))
    record: dict[str, Any] = {"machine": where}
    for part in options.parts:
        try:
            record[part] = PARTS[part](options, environment)
        except RuntimeError as error:
            print(f"FAILED {part}: {error}; no speed is reported")
            return 1
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
