"""Which devices an engine runs on: the names that users give, checked and written out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from variegate.executors.runners.devices import resolve
from variegate.threads import default_threads

ACCEPTED = "'auto', or a list of names such as ['cuda:0', 'cuda:1'] or ['cpu:0', 'cpu:1']"
# Cores of a device where nobody says how many: enough that a batch is shared, few enough that devices balance.
_CORES = 4


def choose_devices(devices: str | Sequence[str], ray: Any = None) -> tuple[str, ...]:
    """Full names, all of one kind: "cuda:0", "cpu:0", "reference:0", ...

    ``ray``: the module, where devices are those of the cluster that it is connected to. Raises ValueError naming what
    is wrong and what is accepted.
    """
    if isinstance(devices, str):
        if devices == "auto":
            return _all_here() if ray is None else _all_of_cluster(ray)
        devices = [devices]
    names = tuple(_full_name(name, is_here=ray is None) for name in devices)
    if not names:
        raise ValueError(f"devices: got none; accepted: {ACCEPTED}")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"devices: got {name!r} {times} times; accepted: every device once")
    kinds = sorted({kind_of(name) for name in names})
    if len(kinds) > 1:
        why = "the pixels of others may differ by a level, and which of them makes an image is not known before"
        raise ValueError(f"devices: got {' and '.join(kinds)} together; accepted: devices of one kind: {why}")
    return names


def kind_of(name: str) -> str:
    """ "cuda", "cpu" or "reference"."""
    return name.partition(":")[0]


def augmenter_name(name: str) -> str:
    """A device as an ``Augmenter`` takes it."""
    return "reference" if kind_of(name) == "reference" else name


def cores_each(number: int, ray: Any = None) -> int:
    """What each of so many devices gets of the cores, evenly shared out."""
    if ray is None:
        return max(1, default_threads() // number)
    nodes = [int(node["Resources"].get("CPU", 0)) for node in _nodes(ray)]
    # No more than the smallest machine has: an actor does not reach over two.
    return max(1, min(sum(nodes) // number, min((cores for cores in nodes if cores), default=1)))


def _full_name(device: object, is_here: bool) -> str:
    name = str(device)
    if re.fullmatch(r"(cpu|reference|cuda)(:\d+)?", name) is None:
        raise ValueError(f"devices: got {device!r}; accepted: {ACCEPTED}")
    if ":" not in name:
        name += ":0"
    if is_here and kind_of(name) == "cuda":
        return resolve(name)
    return f"{kind_of(name)}:{int(name.partition(':')[2])}"


def _all_here() -> tuple[str, ...]:
    import torch

    if torch.cuda.is_available():
        return tuple(resolve(f"cuda:{number}") for number in range(torch.cuda.device_count()))
    return tuple(f"cpu:{number}" for number in range(max(1, default_threads() // _CORES)))


def _all_of_cluster(ray: Any) -> tuple[str, ...]:
    nodes = [node["Resources"] for node in _nodes(ray)]
    gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    if gpus:
        return tuple(f"cuda:{number}" for number in range(gpus))
    # Machine by machine: an actor does not reach over two.
    parts = sum(max(1, int(node["CPU"]) // _CORES) for node in nodes if node.get("CPU", 0) >= 1)
    return tuple(f"cpu:{number}" for number in range(max(1, parts)))


def _nodes(ray: Any) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]
