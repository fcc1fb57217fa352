"""One library in one process with the GPU: takes commands as JSON lines on stdin, answers on stdout."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu import device as _device
from benchmarks.gpu import device_only, pictures
from benchmarks.gpu.peers.base import Given, load_peer
from benchmarks.inputs import SIZE
from benchmarks.worker import Worker, serve

MEMORY_BATCHES = 8
OUTPUT_BYTES = 3 * SIZE * SIZE * 2


def check_batch(batch: Any, expected: int, device: str, dtypes: tuple[torch.dtype, ...]) -> None:
    """Raise unless ``batch`` is what every library must deliver: contiguous, finite, normalised 16-bit NCHW there."""
    if not isinstance(batch, torch.Tensor):
        raise ValueError(f"batch is a {type(batch).__name__}; a torch tensor is asked for")
    found = f"{batch.dtype}{tuple(batch.shape)} on {batch.device}, contiguous={batch.is_contiguous()}"
    right_place = batch.device.type == torch.device(device).type
    if batch.shape != (expected, 3, SIZE, SIZE) or batch.dtype not in dtypes or not batch.is_contiguous():
        raise ValueError(f"batch is {found}; {dtypes[0]} NCHW is asked for")
    if not right_place:
        raise ValueError(f"batch is {found}; it is asked for on {device}")
    values = batch.float()
    low, high, deviation = float(values.min()), float(values.max()), float(values.std())
    # Wider than for one draw per sample: one draw for the whole batch may be a dark one.
    if not bool(values.isfinite().all()) or low < -2.2 or high > 2.7 or deviation < 0.2:
        raise ValueError(f"batch is not normalized: values {low:.3f}..{high:.3f}, deviation {deviation:.3f}")


class GpuWorker(Worker):
    clock = "wall"
    hopeless = 0.5

    def __init__(self, config: dict[str, Any]) -> None:
        self.device = str(config["device"])
        self.batch = int(config["batch"])
        if self.device.startswith("cuda"):
            torch.cuda.set_device(self.device)
            _device.synchronize(self.device)  # the context is made now, so that no later figure holds it
        self.library = self.peer = load_peer(config["peer"])
        l2 = _device.l2_bytes(self.device)
        # Outputs are kept until together they are too large for the L2, as a consumer that reads them later would.
        self.kept = 1 + pictures.L2_TIMES * l2 // (OUTPUT_BYTES * self.batch) if self.peer.keeps_outputs else 1
        batches = pictures.load(Path(config["inputs"])).batches(self.batch, l2)
        compile_seconds = float(config["compile_seconds"])
        self.given = Given(config["work"], self.device, self.batch, tuple(batches), compile_seconds)

    def variants(self) -> dict[str, Callable[[], Any]]:
        made = self.peer.variants(self.given)
        _device.release(self.device)
        self.inputs_alone = self.peer.memory_now(self.device) if self.device.startswith("cuda") else 0
        return made

    def warm_up(self, name: str, next_batch: Callable[[], Any]) -> None:
        check_batch(next_batch(), self.batch, self.device, self.peer.dtypes)
        began = time.perf_counter()
        while time.perf_counter() - began < self.peer.warm_up_seconds(name, self.given):
            next_batch()
            _device.synchronize(self.device)

    def timed(self, next_batch: Callable[[], Any], seconds: float) -> dict[str, float]:
        """Batches one after another as fast as a user's loop asks for them; the clock stops when the last is done."""
        kept: deque[Any] = deque(maxlen=self.kept)
        kept.append(next_batch())
        _device.synchronize(self.device)
        count = 0
        cpu, wall = time.process_time(), time.perf_counter()
        while time.perf_counter() - wall < seconds:
            kept.append(next_batch())
            count += self.batch
        _device.synchronize(self.device)
        return {"images": count, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}

    def prepare(self) -> dict[str, Any]:
        answer = super().prepare()
        gc.collect()  # the variants that were not chosen, and what they hold
        self.peer.release(self.device)
        return answer | {"extra": self.extra()}

    def extra(self) -> dict[str, Any]:
        """Memory beyond the inputs and, where it is asked for, the time on the device alone."""
        if not self.device.startswith("cuda"):
            return {"peak_memory_bytes": None, "memory_by": "not measured"}
        torch.cuda.reset_peak_memory_stats(self.device)
        for _ in range(MEMORY_BATCHES):
            self.next_batch()
        _device.synchronize(self.device)
        peak = max(0, self.peer.memory_peak(self.device) - self.inputs_alone)
        found: dict[str, Any] = {"peak_memory_bytes": peak, "memory_by": self.peer.memory}
        if self.peer.device_only:
            found["device_seconds_per_batch"] = device_only.seconds_per_batch(self.next_batch)
            _device.release(self.device)
        return found


def main() -> None:
    config = json.loads(sys.argv[1])
    serve(lambda: GpuWorker(config))


if __name__ == "__main__":
    main()
