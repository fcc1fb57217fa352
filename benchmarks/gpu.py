"""Device properties for W3 and W3r: its name, the speed of a copy, and memory."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import benchmark

COPY_BYTES = 2 << 30
COPY_ROUNDS = 30
# Size of a run's inputs as a multiple of the L2 cache, at least two batches.
L2_TIMES = 4
MEMORY_BATCHES = 8
WRITTEN_BYTES = 3 * 224 * 224 * 2


def describe(device: str) -> dict[str, Any]:
    """GPU, driver, CUDA and torch."""
    properties = torch.cuda.get_device_properties(device)
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False).stdout.split()
    return {
        "gpu": properties.name,
        "driver": driver[0] if driver else "unknown",
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "l2_bytes": properties.L2_cache_size,
    }


def take_batches(images: Any, batch: int, device: str) -> list[list[Any]]:
    """Batches to cycle through, enough that each has left the L2 cache before it is used again."""
    l2 = torch.cuda.get_device_properties(device).L2_cache_size if device.startswith("cuda") else 0
    batches: list[list[Any]] = []
    start = 0
    size = 0
    while len(batches) < 2 or size < L2_TIMES * l2:
        batches.append([images[i % len(images)] for i in range(start, start + batch)])
        size += sum(image.nbytes for image in batches[-1])
        start += batch
    return batches


def copy_speed(device: str) -> float:
    """Bytes per second, read and written, of a copy within the device."""
    source = torch.randint(0, 256, (COPY_BYTES,), dtype=torch.uint8, device=device)  # memory may compress zeros
    tensors = {"source": source, "target": torch.empty_like(source)}
    timer = benchmark.Timer("target.copy_(source)", globals=tensors)  # which waits for the device
    return 2 * COPY_BYTES / timer.timeit(COPY_ROUNDS).mean


def measure_memory(next_batch: Callable[[], Any], device: str) -> dict[str, int]:
    """The peak beyond the inputs, of libraries that use PyTorch's allocator."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    for _ in range(MEMORY_BATCHES):
        next_batch()
    torch.cuda.synchronize(device)
    return {"peak_memory_bytes": torch.cuda.max_memory_allocated(device) - before}


def complete(record: dict[str, Any], device: str, size: int) -> None:
    """Add the device, and each library's share of the copy speed if all inputs have one size."""
    record |= {"gpu": describe(device), "copy_bytes_per_second": copy_speed(device)}
    moved = 3 * size**2 + WRITTEN_BYTES
    for cell in record["libraries"].values():
        if size and "images_per_second" in cell:
            cell["of_copy_speed"] = cell["images_per_second"] * moved / record["copy_bytes_per_second"]
