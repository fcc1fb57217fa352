"""Devices with their loads and speeds, tasks that wait for them (``Queues``), and the order of results (``Merge``)."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random

import numpy as np

from variegate.jobs.jobs import Forget, Instruction, Quarantine, Release, Send, Task
from variegate.jobs.options import Allocation, Rules

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
        self.live.remove(device)
        self.queued[device] = self.items[device] = 0
        self.is_ready[device] = self.is_known[device] = False
        self.pace[device] = _NEVER

    def seconds(self, device: int, more: int) -> float:
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
        """The device with waiting tasks that is done last, and its seconds (inf: no worker is ready), or (-1, 0)."""
        seconds = self.items * self.pace
        seconds[~self.is_ready] = np.inf
        seconds[self.queued == 0] = 0
        if passed_over:
            seconds[passed_over] = 0
        device = int(seconds.argmax())
        return (device, float(seconds[device])) if seconds[device] > 0 else (-1, 0.0)

    def allocator(self, name: Allocation, seed: int) -> Callable[[int, frozenset[int]], int]:
        """(items, devices to try last) -> device. ``least_loaded``: where it is done first; ``random``: by ``seed``."""
        random, turn = Random(seed), 0

        def candidates(avoid: frozenset[int]) -> list[int]:
            """Live devices, ascending: those not to be avoided, or if there are no others, all."""
            return [device for device in self.live if device not in avoid] or self.live if avoid else self.live

        def round_robin(size: int, avoid: frozenset[int]) -> int:
            nonlocal turn
            devices = candidates(avoid)
            device = devices[bisect_left(devices, turn) % len(devices)]
            turn = device + 1
            return device

        def by_chance(size: int, avoid: frozenset[int]) -> int:
            devices = candidates(avoid)
            return devices[int(random.random() * len(devices))]

        return {"least_loaded": self.least, "round_robin": round_robin, "random": by_chance}[name]


class Queues:
    """All tasks, waiting or in flight, but those given up: a queue per device, stealing, suspects that run alone."""

    def __init__(self, names: Sequence[str], rules: Rules) -> None:
        self.devices = [Device(name) for name in names]
        self.loads = Loads(len(names))
        self.is_draining = False
        self.waiting = 0  # tasks, suspects among them
        self._num_suspects = 0
        self._rules = rules
        self._allocate = self.loads.allocator(rules.allocation, rules.seed)
        self._next_task = 0
        self._hungry: dict[int, None] = {}  # ready devices with room in flight for which nothing waits
        self._awake: list[int] = []  # of those, the ones for which something waits now

    def new_task(
        self, start: int, stop: int, failures: int = 0, is_suspect: bool = False, avoid: frozenset[int] = frozenset()
    ) -> Task:
        self._next_task += 1
        return Task(self._next_task - 1, start, stop, failures, is_suspect, avoid)

    def add(self, task: Task, number: int | None = None, is_first: bool = False) -> None:
        """Let a task wait, for this device or the one that allocation chooses."""
        if number is None:
            number = self._allocate(task.size, task.avoid)
        device = self.devices[number]
        self.loads.items[number] += task.size
        if task.is_suspect:
            device.suspects.appendleft(task)
            self._num_suspects += 1
        else:
            (device.queue.appendleft if is_first else device.queue.append)(task)
            self.loads.queued[number] += 1
        self.waiting += 1
        if number in self._hungry:
            self._awake.append(number)

    def add_again(self, task: Task, is_suspect: bool) -> None:
        """Put tasks that were in flight back, before all others."""
        self.add(self.new_task(task.start, task.stop, task.failures, is_suspect, task.avoid), is_first=True)

    def add_halves(self, task: Task, is_suspect: bool, avoid: frozenset[int], number: int | None = None) -> None:
        middle = (task.start + task.stop) // 2
        for start, stop in ((middle, task.stop), (task.start, middle)):
            self.add(self.new_task(start, stop, 0, is_suspect, avoid), number, is_first=True)

    def take_back(self, number: int, task_number: int) -> tuple[Task, float]:
        """A task that is not in flight any more, with the time when it was sent. KeyError if it was not in flight."""
        device = self.devices[number]
        task, sent = device.in_flight.pop(task_number)
        self.loads.items[number] -= task.size
        device.is_isolated = False
        return task, sent

    def take_all_back(self, number: int) -> list[Task]:
        """A device has no worker any more -> what was in flight."""
        device = self.devices[number]
        tasks = [self.take_back(number, task)[0] for task in list(device.in_flight)]
        self.loads.is_ready[number] = device.is_isolated = False
        self._hungry.pop(number, None)
        return tasks

    def retire(self, number: int) -> list[Task]:
        """A device is given up -> what it had, in the order in which it would have been done."""
        device = self.devices[number]
        orphans = [*self.take_all_back(number), *device.suspects, *device.queue]
        self._num_suspects -= len(device.suspects)
        self.waiting -= len(device.suspects) + len(device.queue)
        device.suspects.clear()
        device.queue.clear()
        device.state, device.worker = State.RETIRED, -1
        self.loads.retire(number)
        return orphans

    def drain(self) -> None:
        """Send nothing any more."""
        self.is_draining = True
        self._hungry.clear()

    def feed(self, now: float, out: list[Instruction]) -> None:
        """Send to the devices that have room for more, as long as there is anything that they may take."""
        for number in self._awake:
            self.fill(number, now, out)
        if self._rules.steal and self._hungry and self.waiting:
            if self._num_suspects:
                self._steal_suspects(now, out)
            self._steal(now, out)
        self._awake.clear()

    def fill(self, number: int, now: float, out: list[Instruction]) -> None:
        """Send to a device what waits for it and fits; it is hungry if there is room left."""
        device = self.devices[number]
        self._hungry.pop(number, None)
        if device.state is not State.READY or self.is_draining:
            return
        while len(device.in_flight) < self._rules.in_flight and not device.is_isolated:
            if device.suspects:
                if device.in_flight:
                    return  # Nothing more until these have come in and the suspects have had their turns, alone.
                task = device.suspects.popleft()
                self._num_suspects -= 1
            elif device.queue:
                task = device.queue.popleft()
                self.loads.queued[number] -= 1
                if device.largest is not None and task.size > device.largest:
                    # As much as the device has room for; what is left waits for the same device.
                    middle = task.start + device.largest
                    self.loads.items[number] -= task.stop - middle
                    self.add(self.new_task(middle, task.stop, avoid=task.avoid), number, is_first=True)
                    task = self.new_task(task.start, middle, avoid=task.avoid)
            else:
                self._hungry[number] = None
                return
            self.waiting -= 1
            if not device.in_flight:
                device.last_seen = now  # silence counts from here
            device.is_isolated = task.is_suspect
            device.in_flight[task.number] = task, now
            out.append(Send(number, device.worker, task))

    def _steal(self, now: float, out: list[Instruction]) -> None:
        """From the end of the longest queue, by the hungry device that has it done first, if sooner than there."""
        passed_over: list[int] = []
        while self._hungry:
            victim, seconds = self.loads.longest_queue(passed_over)
            if victim < 0:
                return
            task = self.devices[victim].queue[-1]
            thief = self.loads.least(task.size, task.avoid, self._hungry)
            if thief in task.avoid:
                passed_over.append(victim)
            elif self.loads.seconds(thief, task.size) > seconds:
                return
            else:
                self.devices[victim].queue.pop()
                self.loads.queued[victim] -= 1
                self._hand_over(task, victim, thief, now, out)

    def _steal_suspects(self, now: float, out: list[Instruction]) -> None:
        """By devices with nothing in flight, where they can be alone at once. They hold up the order of the results."""
        idle = [number for number in self._hungry if not self.devices[number].in_flight]
        for victim, device in enumerate(self.devices):
            for task in [*device.suspects]:
                thief = next((number for number in idle if number not in task.avoid), None)
                if thief is not None:
                    idle.remove(thief)
                    device.suspects.remove(task)
                    self._num_suspects -= 1
                    self._hand_over(task, victim, thief, now, out)

    def _hand_over(self, task: Task, victim: int, thief: int, now: float, out: list[Instruction]) -> None:
        self.loads.items[victim] -= task.size
        self.waiting -= 1
        self.devices[thief].steals += 1
        self.add(task, thief)
        self.fill(thief, now, out)


class Merge:
    """Hands out pieces of results, each item once: as they come, or in the order of their submission."""

    def __init__(self, is_ordered: bool) -> None:
        self.outstanding = 0  # items that were submitted and are not out
        self._is_ordered = is_ordered
        self._submitted: deque[tuple[int, int]] = deque()  # ranges that are not out yet; the first one in part
        self._waiting: dict[int, tuple[int, int] | str] = {}  # by first item: (stop, task), or why there is none
        self._pieces: dict[int, int] = {}  # by task: how many pieces of its result are not out

    def submit(self, start: int, stop: int) -> None:
        self.outstanding += stop - start
        if self._is_ordered:
            self._submitted.append((start, stop))

    def add(self, task: int, pieces: list[tuple[int, int]]) -> list[Instruction]:
        """The result of a task is here, and good for these ranges of items."""
        if not self._is_ordered or not pieces:
            self.outstanding -= sum(stop - start for start, stop in pieces)
            return [*(Release(task, start, stop) for start, stop in pieces), Forget(task)]
        self._pieces[task] = len(pieces)
        for start, stop in pieces:
            self._waiting[start] = stop, task
        return self._advance()

    def give_up(self, item: int, reason: str) -> list[Instruction]:
        """There will be no result for this item."""
        if not self._is_ordered:
            self.outstanding -= 1
            return [Quarantine(item, reason)]
        self._waiting[item] = reason
        return self._advance()

    def _advance(self) -> list[Instruction]:
        out: list[Instruction] = []
        submitted, pieces = self._submitted, self._pieces
        while submitted:
            start, last = submitted[0]
            found = self._waiting.pop(start, None)
            if found is None:
                break
            if isinstance(found, str):
                stop = start + 1
                out.append(Quarantine(start, found))
            else:
                stop, task = found
                out.append(Release(task, start, stop))
                pieces[task] -= 1
                if pieces[task] == 0:
                    del pieces[task]
                    out.append(Forget(task))
            self.outstanding -= stop - start
            if stop == last:
                submitted.popleft()
            else:
                submitted[0] = stop, last
        return out
