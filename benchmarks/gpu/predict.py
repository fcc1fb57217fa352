"""``python -m benchmarks.gpu.predict [--batch 256] [--out docs/results]``: W3 on GPUs that are not here. A prediction.

W3's launches are compiled ahead for each device, disassembled, and every instruction counted as often as a sampled
batch runs it. What takes longest of issue slots, units, memory and launches is the bound; nothing here is measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.gpu.works import WRITTEN_BYTES
from benchmarks.inputs import SIZE
from benchmarks.peers_env import ROOT

WATCHED = 48
PIXELS = SIZE * SIZE
SOURCE_BYTES, CANVAS_BYTES = 3, 4
HEADER = ("GPU", "images/s", "at the bound", "of copy speed", "batch", "decided by", "fp64 share of the issue slots")


def watch(images: int) -> list[dict[str, Any]]:
    """How often lines run, by a process in which kernels are interpreted."""
    command = [sys.executable, "-m", "benchmarks.gpu.prediction.executions", str(images)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if run.returncode:
        raise RuntimeError(f"watching the kernels failed: {run.stderr.strip().splitlines()[-1]}")
    found: list[dict[str, Any]] = json.loads(run.stdout.splitlines()[-1])
    return found


def moved_bytes(rows: list[float], number: int) -> float:
    """Of launch ``number``: 0 measures sources; then the passes, whose rows that go on leave a canvas behind."""
    if number == 0:
        return rows[0] * PIXELS * SOURCE_BYTES
    read = rows[number] * PIXELS * (SOURCE_BYTES if number == 1 else CANVAS_BYTES)
    going_on = rows[number + 1] if number + 1 < len(rows) else 0.0
    return read + going_on * PIXELS * CANVAS_BYTES + (rows[number] - going_on) * WRITTEN_BYTES


def predict_all(batch: int) -> dict[str, Any]:
    from benchmarks.gpu.prediction.devices import COPY_SHARE, DEVICES, UPLOAD_BYTES_PER_SECOND, UPLOAD_SECONDS
    from benchmarks.gpu.prediction.launches import make
    from benchmarks.gpu.prediction.machine_code import compile_for
    from benchmarks.gpu.prediction.model import predict
    from benchmarks.gpu.prediction.weights import executed

    watched, made = watch(WATCHED), make(batch, SIZE, SIZE)
    if len(watched) != len(made.launches):
        raise RuntimeError(
            f"{len(watched)} launches were watched, {len(made.launches)} are predicted; watch more images"
        )
    rows = [launch.programs / made.tiles for launch in made.launches]
    upload = UPLOAD_SECONDS + made.uploaded / UPLOAD_BYTES_PER_SECOND
    record: dict[str, Any] = {"work": "w3-predicted", "batch": batch, "watched_images": WATCHED, "devices": []}
    for device in DEVICES:
        launches = []
        for number, (launch, lines) in enumerate(zip(made.launches, watched, strict=True)):
            code = compile_for(launch, device.capability)
            found = executed(code, lines, made.tiles)
            said = predict(code, found, launch.programs, moved_bytes(rows, number), device)
            launches.append(
                {
                    "kernel": lines["kernel"],
                    "rows": rows[number],
                    "registers": code.registers,
                    "shared_bytes": code.shared,
                    "spilled_bytes": code.local,
                    "static_instructions": len(code.instructions),
                    "occupancy": said.occupancy,
                    "warp_instructions": found.by_class,
                    "from_watched_lines": found.exact,
                    "by_function": found.by_function,
                    "bound_seconds": said.bounds,
                    "bound": said.bound,
                    "seconds": said.seconds,
                    # A pixel is what one lane works on; a warp has 32 of them.
                    "per_pixel": sum(found.by_class.values()) * code.warps * 32 * made.tiles / PIXELS,
                }
            )
        seconds = upload + sum(one["seconds"] for one in launches)
        at_bound = upload + sum(max(one["bound_seconds"].values()) for one in launches)
        copied = batch * (PIXELS * SOURCE_BYTES + WRITTEN_BYTES) / (COPY_SHARE * device.memory)
        record["devices"].append(
            {
                "name": device.name,
                "capability": device.capability,
                "images_per_second": batch / seconds,
                "at_the_bound": batch / at_bound,
                "of_copy_speed": copied / seconds,
                "seconds": seconds,
                "upload_seconds": upload,
                "launches": launches,
            }
        )
    return record


def markdown(record: dict[str, Any]) -> str:
    lines = ["| " + " | ".join(HEADER) + " |", "|---|--:|--:|--:|--:|---|--:|"]
    for device in record["devices"]:
        longest = max(device["launches"], key=lambda one: one["seconds"])
        share = sum(one["warp_instructions"].get("fp64", 0.0) * one["rows"] for one in device["launches"])
        share /= sum(sum(one["warp_instructions"].values()) * one["rows"] for one in device["launches"])
        cells = (
            f"{device['images_per_second']:,.0f}",
            f"{device['at_the_bound']:,.0f}",
            f"{device['of_copy_speed']:.0%}",
            f"{device['seconds'] * 1e6:,.0f} us",
            f"{longest['bound']} of {longest['kernel']}",
            f"{share:.1%}",
        )
        lines.append(f"| {device['name']} | " + " | ".join(cells) + " |")
    lines += ["", "| GPU | launch | rows | time | bound | instructions a pixel | registers | shared | occupancy |"]
    lines += ["|---|---|--:|--:|---|--:|--:|--:|--:|"]
    for device in record["devices"]:
        for number, one in enumerate(device["launches"]):
            counts = f"{one['per_pixel']:.0f} | {one['registers']} | {one['shared_bytes']} | {one['occupancy']:.0%}"
            took = f"{one['rows']:.0f} | {one['seconds'] * 1e6:.0f} us | {one['bound']}"
            lines.append(f"| {device['name']} | {number}: {one['kernel']} | {took} | {counts} |")
    lines += ["", *(f"- {line}" for line in hottest(record["devices"][-2]))]
    return "\n".join(lines)


def hottest(device: dict[str, Any], most: int = 8) -> list[str]:
    """Of each launch, the functions that take most of its instructions."""
    lines = []
    for number, one in enumerate(device["launches"]):
        whole = sum(one["by_function"].values())
        ordered = sorted(one["by_function"].items(), key=lambda item: -item[1])[:most]
        words = ", ".join(f"{name} {count / whole:.0%}" for name, count in ordered)
        lines.append(f"launch {number}, instructions by function on {device['name']}: {words}")
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.predict", description=__doc__)
    parser.add_argument("--batch", type=int, nargs="+", default=[256], help="one pair of tables for each (256)")
    parser.add_argument("--out", type=Path, default=None, help="a folder for w3-predicted-batch*.json")
    options = parser.parse_args(arguments)
    for batch in options.batch:
        record = predict_all(batch)
        print(f"W3, batch {batch}: a prediction, nothing is measured\n\n{markdown(record)}\n")
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            path = options.out / f"w3-predicted-batch{batch}.json"
            path.write_text(json.dumps(record, indent=1) + "\n")
            print(f"  written: {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
