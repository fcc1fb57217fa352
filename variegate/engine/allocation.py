"""Which device a task waits for."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

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
        live = _candidates(self._loads, avoid)
        device = int(live[np.searchsorted(live, self._next) % len(live)])
        self._next = (device + 1) % len(self._loads.is_live)
        return device


class _Random:
    def __init__(self, loads: Loads, seed: int) -> None:
        self._loads, self._random = loads, Random(seed)

    def __call__(self, size: int, avoid: frozenset[int]) -> int:
        live = _candidates(self._loads, avoid)
        return int(live[self._random.randrange(len(live))])


def _candidates(loads: Loads, avoid: frozenset[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Live devices, ascending: those not to be avoided, or if there are no others, all."""
    live = np.flatnonzero(loads.is_live)
    if avoid:
        others = live[~np.isin(live, list(avoid))]
        live = others if len(others) else live
    return live
