"""What the dispatcher knows of its devices (queues, loads, speeds), and which of them a task waits for."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from random import Random

import numpy as np

from variegate.jobs.messages import Task
from variegate.jobs.options import Allocation

# The share of older tasks in a device's measured speed, a task later.
_MEMORY = 0.8
# Seconds per item of a device that is gone. A number, since 0 times infinity is none.
_NEVER = 1e200
# A device that is to be avoided comes last of all, but still before those that are gone.
_AVOIDED = 1e6


class State(str, Enum):
    """Of a device."""

    STARTING = "starting"
    READY = "ready"
    LOST = "lost"  # and not started again, since nothing more will be sent
    RETIRED = "retired"


@dataclass(slots=True)
class Device:
    """One device. ``queue`` waits here; ``in_flight`` was sent, the oldest first."""

    name: str
    state: State = State.STARTING
    worker: int = -1
    queue: deque[Task] = field(default_factory=deque)
    suspects: deque[Task] = field(default_factory=deque)
    in_flight: dict[int, tuple[Task, float]] = field(default_factory=dict)  # with the time of sending
    is_isolated: bool = False  # what is in flight is a suspect
    last_seen: float = 0.0
    failed_starts: int = 0
    setbacks: int = 0  # tasks failed and workers lost since a task was last done
    losses: int = 0
    steals: int = 0
    done: int = 0  # items
    largest: int | None = None  # items of a task that the device has room for, once it ran out of memory
    free_since: float = 0.0  # when it had done the task before
    decayed_items: float = 0.0
    decayed_seconds: float = 0.0

    def measure(self, size: int, sent: float, now: float) -> float:
        """Note that so many items are done -> items per second; 0 as long as no time has passed."""
        self.decayed_items = _MEMORY * self.decayed_items + size
        self.decayed_seconds = _MEMORY * self.decayed_seconds + now - max(sent, self.free_since)
        self.free_since = now
        return self.decayed_items / self.decayed_seconds if self.decayed_seconds > 0 else 0.0


class Loads:
    """Numbers of all devices as arrays, so that the best of a thousand is found in microseconds."""

    def __init__(self, number: int) -> None:
        self.live = list(range(number))  # devices that are not retired
        self.queued = np.zeros(number, np.int64)  # tasks waiting, suspects not among them
        self.items = np.zeros(number)  # waiting and in flight
        self.is_ready = np.zeros(number, bool)  # has a worker
        self.pace = np.ones(number)  # seconds per item
        self.is_known = np.zeros(number, bool)  # the pace is no guess
        self._seconds = np.empty(number)  # written over by every look, which is faster than a new one

    def set_rate(self, device: int, rate: float) -> None:
        """Items per second, as measured; 0 says nothing."""
        if rate <= 0:
            return
        self.pace[device] = 1 / rate
        if not self.is_known[device]:
            self.is_known[device] = True
            # Devices that have not done anything yet are taken for as fast as the others.
            live = np.array(self.live)
            is_known = self.is_known[live]
            self.pace[live[~is_known]] = 1 / np.mean(1 / self.pace[live[is_known]])

    def rate(self, device: int) -> float:
        """Items per second; 0: not known yet."""
        return float(1 / self.pace[device]) if self.is_known[device] else 0.0

    def retire(self, device: int) -> None:
        """Nothing waits for it any more, and nothing will."""
        self.live.remove(device)
        self.queued[device] = self.items[device] = 0
        self.is_ready[device] = False
        self.pace[device], self.is_known[device] = _NEVER, False

    def seconds(self, device: int, more: int = 0) -> float:
        """Until the device has done all that it has, and ``more`` items."""
        return float((self.items[device] + more) * self.pace[device])

    def least(self, size: int, avoid: frozenset[int], among: Collection[int] | None = None) -> int:
        """The device, of these or of all that are live, that would be the first to have done ``size`` items more."""
        if among is None:
            seconds = np.add(self.items, size, self._seconds)
            seconds *= self.pace
            if avoid:
                seconds[list(avoid)] *= _AVOIDED
            return int(seconds.argmin())
        numbers = np.fromiter(among, np.intp, len(among))
        seconds = (self.items[numbers] + size) * self.pace[numbers]
        if avoid:
            seconds[np.isin(numbers, list(avoid))] *= _AVOIDED
        return int(numbers[seconds.argmin()])

    def longest_queue(self, passed_over: list[int]) -> tuple[int, float]:
        """The device with tasks waiting that will be the last to have done all, and in how many seconds.

        Forever, where no worker is ready. (-1, 0) if nothing waits anywhere else than at those passed over.
        """
        seconds = self.items * self.pace
        seconds[~self.is_ready] = np.inf
        seconds[self.queued == 0] = 0
        if passed_over:
            seconds[passed_over] = 0
        device = int(seconds.argmax())
        return (device, float(seconds[device])) if seconds[device] > 0 else (-1, 0.0)


# (items of the task, devices to try last) -> device. One device at least is live.
Allocate = Callable[[int, frozenset[int]], int]


def allocator(name: Allocation, loads: Loads, seed: int) -> Allocate:
    """``least_loaded``: where it would be done first, by the measured speeds; ``random``: by ``seed``."""
    random, turn = Random(seed), 0

    def candidates(avoid: frozenset[int]) -> list[int]:
        """Live devices, ascending: those not to be avoided, or if there are no others, all."""
        return [device for device in loads.live if device not in avoid] or loads.live if avoid else loads.live

    def round_robin(size: int, avoid: frozenset[int]) -> int:
        nonlocal turn
        devices = candidates(avoid)
        device = devices[bisect_left(devices, turn) % len(devices)]
        turn = device + 1
        return device

    def by_chance(size: int, avoid: frozenset[int]) -> int:
        devices = candidates(avoid)
        return devices[int(random.random() * len(devices))]

    return {"least_loaded": loads.least, "round_robin": round_robin, "random": by_chance}[name]
