"""Devices of workers by their names, and pools of workers on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import torch

from variegate.executors.runners.devices import resolve
from variegate.threads import default_threads
from variegate.workers.processes import ProcessPool
from variegate.workers.protocol import JobSpec, WorkerPool
from variegate.workers.ray_actors import RayPool
from variegate.workers.threads import ThreadPool

WorkerKind = Literal["process", "thread", "ray"]
WORKER_KINDS: tuple[WorkerKind, ...] = get_args(WorkerKind)
ACCEPTED = "'auto', or a list of names such as ['cuda:0', 'cuda:1'] or ['cpu:0', 'cpu:1']"
# Default cores of a device: enough to share a batch, few enough that devices balance.
_CORES = 4


def choose_devices(devices: str | Sequence[str], ray: Any = None) -> tuple[str, ...]:
    """Full names of one kind: "cuda:0", "cpu:0", ... ``ray``: the module, for its cluster. Raises ValueError."""
    if devices == "auto":
        return _all_devices(ray)
    names = []
    for device in [devices] if isinstance(devices, str) else devices:
        if (found := re.fullmatch(r"(cpu|cuda)(?::(\d+))?", str(device))) is None:
            raise ValueError(f"devices: got {device!r}; accepted: {ACCEPTED}")
        name = f"{found[1]}:{int(found[2] or 0)}"
        names.append(resolve(name) if ray is None and found[1] == "cuda" else name)
    if not names:
        raise ValueError(f"devices: got none; accepted: {ACCEPTED}")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"devices: got {name!r} {times} times; accepted: every device once")
    kinds = sorted(set(map(kind_of, names)))
    if len(kinds) > 1:
        why = "the pixels of others may differ by a level, and which of them makes an image is not known before"
        raise ValueError(f"devices: got {' and '.join(kinds)} together; accepted: devices of one kind: {why}")
    return tuple(names)


def kind_of(name: str) -> str:
    """ "cuda" or "cpu"."""
    return name.partition(":")[0]


def cores_each(number: int, ray: Any = None) -> int:
    """Cores of each device if ``count`` devices share this machine evenly."""
    if ray is None:
        return max(1, default_threads() // number)
    nodes = [int(node.get("CPU", 0)) for node in _nodes(ray)]
    # No more than the smallest machine has: an actor does not reach over two.
    return max(1, min(sum(nodes) // number, min((cores for cores in nodes if cores), default=1)))


def _all_devices(ray: Any) -> tuple[str, ...]:
    if ray is None:
        if torch.cuda.is_available():
            return tuple(resolve(f"cuda:{number}") for number in range(torch.cuda.device_count()))
        parts = default_threads() // _CORES
    else:
        nodes = _nodes(ray)
        if gpus := sum(int(node.get("GPU", 0)) for node in nodes):
            return tuple(f"cuda:{number}" for number in range(gpus))
        # Machine by machine: an actor does not reach over two.
        parts = sum(max(1, int(node["CPU"]) // _CORES) for node in nodes if node.get("CPU", 0) >= 1)
    return tuple(f"cpu:{number}" for number in range(max(1, parts)))


def _nodes(ray: Any) -> list[dict[str, Any]]:
    """The resources of the machines of a cluster."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def open_pool(
    kind: WorkerKind,
    spec: JobSpec,
    devices: Sequence[str],
    num_threads: int,
    address: str | None = None,
    needs: Mapping[str, float] | None = None,
) -> WorkerPool:
    """``address`` and ``needs``: as for ``RayPool``. No worker is started yet."""
    if kind == "ray":
        return RayPool(spec, devices, num_threads, address, needs)
    return (ThreadPool if kind == "thread" else ProcessPool)(spec, devices, num_threads)
