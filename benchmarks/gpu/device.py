"""What the harness and its workers ask of the device: its name, its clock, its memory and the speed of a plain copy."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import statistics
import subprocess
import time
from typing import Any

import torch

COPY_BYTES, COPY_ROUNDS = 2 << 30, 30
PLUMBING_COPY_BYTES = 16 << 20


def why_not(device: str) -> str | None:
    """Why nothing can be measured on ``device``, or None where it can."""
    if not device.startswith("cuda"):
        return f"{device} is no GPU"
    if not torch.cuda.is_available():
        return "no CUDA device is visible to PyTorch"
    number = torch.device(device).index or 0
    if number >= torch.cuda.device_count():
        return f"{device}: there are {torch.cuda.device_count()} CUDA devices"
    return None


def synchronize(device: str) -> None:
    """Wait for everything on the device, whichever stream it is on; nothing to wait for on a CPU."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def describe(device: str) -> dict[str, Any]:
    """GPU, driver, CUDA, torch and Triton versions, and the date; no names of hosts or paths."""
    described: dict[str, Any] = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": _version("triton"),
        "cuda": torch.version.cuda,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }
    if not device.startswith("cuda"):
        return described | {"gpu": f"none ({device})", "driver": "none", "l2_bytes": 0}
    properties = torch.cuda.get_device_properties(device)
    return described | {
        "gpu": properties.name,
        "driver": _driver(),
        "memory_bytes": properties.total_memory,
        "multiprocessors": properties.multi_processor_count,
        "l2_bytes": l2_bytes(device),
    }


def l2_bytes(device: str) -> int:
    """Bytes of the cache that inputs and outputs must not stay in."""
    return int(torch.cuda.get_device_properties(device).L2_cache_size) if device.startswith("cuda") else 0


def copy_speed(device: str) -> float:
    """Bytes read and written per second by a plain copy within the device, between buffers far larger than its L2."""
    on_gpu = device.startswith("cuda")
    size = COPY_BYTES if on_gpu else PLUMBING_COPY_BYTES
    # Not zeros: memory may compress them.
    source = torch.randint(0, 256, (size,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    seconds = []
    for _ in range(COPY_ROUNDS):
        synchronize(device)
        if on_gpu:
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            target.copy_(source)
            end.record()
            end.synchronize()
            seconds.append(start.elapsed_time(end) / 1e3)
        else:
            began = time.perf_counter()
            target.copy_(source)
            seconds.append(time.perf_counter() - began)
    del source, target
    release(device)
    return 2 * size / statistics.median(seconds)


def release(device: str) -> None:
    """Give PyTorch's unused blocks back to the device, so that they are not counted as somebody's."""
    if device.startswith("cuda"):
        synchronize(device)
        torch.cuda.empty_cache()


def used_bytes(device: str) -> int:
    """Memory in use on the whole device, by whatever library and process."""
    free, total = torch.cuda.mem_get_info(device)
    return int(total - free)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _driver() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return answer[0] if answer else "unknown"
