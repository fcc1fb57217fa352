"""``python -m benchmarks.gpu.tune [--batch 64 256 1024] [SETTINGS ...]``: W3 on one GPU, by the settings of launches.

SETTINGS: ``32x32,4:96,8:128``, the height and width of a tile, then warps and registers a thread (0: no limit) of light
and of heavy launches; those that are used, if none are given. A JSON line for each and each batch size: what a batch
takes by the clock, the device alone, and the host alone, in us.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from typing import Any

import numpy as np
import torch

import variegate as vg
from benchmarks.gpu import device as _device
from benchmarks.gpu import device_only
from benchmarks.inputs import SIZE
from benchmarks.peers.ours import transform
from variegate.executors.cuda import launch
from variegate.executors.cuda.executor import CudaExecutor
from variegate.executors.runners.cuda import CudaRunner

WARM_UP, SECONDS = 50, 0.6
INPUT_BYTES = 512 << 20


def use(settings: str) -> CudaExecutor:
    """An executor of its own, and the options of all launches changed."""
    if not settings:
        return CudaExecutor(torch.device("cuda:0"))
    tile, light, heavy = settings.split(",")
    for options, wanted in ((launch._LIGHT, light), (launch._HEAVY, heavy)):
        warps, registers = map(int, wanted.split(":"))
        options.clear()
        options.update(launch._FUSION, num_warps=warps, **({"maxnreg": registers} if registers else {}))
    height, width = map(int, tile.split("x"))
    return CudaExecutor(torch.device("cuda:0"), (height, width))


def measure(executor: CudaExecutor, batch: int) -> dict[str, Any]:
    augmenter = vg.Augmenter(transform("w3"), device="cuda:0", dtype="bfloat16", layout="NCHW", seed=0)
    augmenter._runner = CudaRunner("cuda:0", None, "composed", executor=executor)
    # Smooth pictures, more of them than the L2 holds.
    coarse = torch.rand((batch, 3, 28, 28), device="cuda:0") * 255
    smooth = torch.nn.functional.interpolate(coarse, size=(SIZE, SIZE), mode="bilinear").to(torch.uint8)
    pictures = smooth.permute(0, 2, 3, 1).contiguous()
    copies = max(2, INPUT_BYTES // pictures.nbytes)
    inputs = itertools.cycle([pictures.roll(i, 0) for i in range(copies)])
    starts = itertools.count(0, batch)

    def next_batch() -> Any:
        start = next(starts)
        return augmenter(next(inputs), ids=np.arange(start, start + batch))

    for _ in range(WARM_UP):
        next_batch()
    torch.cuda.synchronize()
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        next_batch()
        count += 1
    torch.cuda.synchronize()
    wall = (time.perf_counter() - began) / count
    device = device_only.seconds_per_batch(next_batch)
    host = min(device_only._queueing_seconds(next_batch) for _ in range(5)) / device_only.BATCHES
    return {"wall_us": wall * 1e6, "device_us": device and device * 1e6, "host_us": host * 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.tune", description=__doc__)
    parser.add_argument("settings", nargs="*", default=[""])
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 256, 1024])
    options = parser.parse_args()
    print(json.dumps(_device.describe("cuda:0")))
    for settings in options.settings:
        executor = use(settings)
        for batch in options.batch:
            print(json.dumps({"settings": settings, "batch": batch, **measure(executor, batch)}), flush=True)


if __name__ == "__main__":
    main()
