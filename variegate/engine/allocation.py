"""Which device a task waits for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from random import Random

from variegate.engine.devices import Loads

ALLOCATIONS = ("least_loaded", "round_robin", "random")

# (items of the task, devices to try last) -> device. One device at least is live.
Allocate = Callable[[int, frozenset[int]], int]


def allocator(name: str, loads: Loads, seed: int) -> Allocate:
    """``least_loaded``: where it would be done first, by the measured speeds; ``round_robin``; ``random``: by ``seed``.

    Raises ValueError for another name.
    """
    if name == "least_loaded":
        return loads.least
    if name == "round_robin":
        return _RoundRobin(loads)
    if name == "random":
        return _Random(loads, seed)
    raise ValueError(f"allocation: got {name!r}; accepted: {', '.join(ALLOCATIONS)}")


class _RoundRobin:
    def __init__(self, loads: Loads) -> None:
        self._loads, self._next = loads, 0

    def __call__(self, size: int, avoid: frozenset[int]) -> int:
        devices = _candidates(self._loads, avoid)
        device = devices[bisect_left(devices, self._next) % len(devices)]
        self._next = device + 1
        return device


class _Random:
    def __init__(self, loads: Loads, seed: int) -> None:
        self._loads, self._random = loads, Random(seed)

    def __call__(self, size: int, avoid: frozenset[int]) -> int:
        devices = _candidates(self._loads, avoid)
        return devices[int(self._random.random() * len(devices))]


def _candidates(loads: Loads, avoid: frozenset[int]) -> list[int]:
    """Live devices, ascending: those not to be avoided, or if there are no others, all."""
    return [device for device in loads.live if device not in avoid] or loads.live if avoid else loads.live
