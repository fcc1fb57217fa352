"""Devices with their speeds, tasks that wait for them (``Queues``), and the order of results (``Merge``)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random

from variegate.jobs.jobs import Forget, Instruction, Quarantine, Release, Send, Task
from variegate.jobs.options import Rules

# The share of older tasks in a device's measured speed, a task later.
_MEMORY = 0.8


class State(str, Enum):
    """Of a device."""

    STARTING = "starting"
    READY = "ready"
    LOST = "lost"  # without a worker; for good once nothing more will be sent
    RETIRED = "retired"


@dataclass(slots=True)
class Device:
    """One device. ``queue`` waits here; ``in_flight`` was sent, the oldest first."""

    number: int
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
    num_items: int = 0  # waiting and in flight
    rate: float = 0.0  # items per second as measured; 0: not known yet
    decayed_items: float = 0.0
    decayed_seconds: float = 0.0

    def measure(self, size: int, sent: float, now: float) -> None:
        """Note that so many items are done."""
        self.decayed_items = _MEMORY * self.decayed_items + size
        self.decayed_seconds = _MEMORY * self.decayed_seconds + now - max(sent, self.free_since)
        self.free_since = now
        if self.decayed_seconds > 0:
            self.rate = self.decayed_items / self.decayed_seconds


class Queues:
    """All tasks, waiting or in flight, except those given up: a queue per device, stealing, suspects that run alone."""

    def __init__(self, names: Sequence[str], rules: Rules) -> None:
        self.devices = [Device(number, name) for number, name in enumerate(names)]
        self.is_draining = False
        self._rules = rules
        self._random = Random(rules.seed)
        self._next_device = 0  # by round robin
        self._next_task = 0
        self._typical_rate = 1.0  # of devices that have not done anything yet

    @property
    def live(self) -> list[Device]:
        return [device for device in self.devices if device.state is not State.RETIRED]

    @property
    def waiting(self) -> int:
        """Tasks that no worker has."""
        return sum(len(device.queue) + len(device.suspects) for device in self.devices)

    def new_task(
        self, start: int, stop: int, failures: int = 0, is_suspect: bool = False, avoid: frozenset[int] = frozenset()
    ) -> Task:
        self._next_task += 1
        return Task(self._next_task - 1, start, stop, failures, is_suspect, avoid)

    def add(self, task: Task, device: Device | None = None, is_first: bool = False) -> None:
        """Let a task wait, for this device or the one that allocation chooses."""
        if device is None:
            device = self._allocate(task)
        device.num_items += task.size
        if task.is_suspect:
            device.suspects.appendleft(task)
        elif is_first:
            device.queue.appendleft(task)
        else:
            device.queue.append(task)

    def add_again(self, task: Task, is_suspect: bool) -> None:
        """Put tasks that were in flight back, before all others."""
        self.add(self.new_task(task.start, task.stop, task.failures, is_suspect, task.avoid), is_first=True)

    def add_halves(self, task: Task, is_suspect: bool, avoid: frozenset[int], device: Device | None = None) -> None:
        middle = (task.start + task.stop) // 2
        for start, stop in ((middle, task.stop), (task.start, middle)):
            self.add(self.new_task(start, stop, 0, is_suspect, avoid), device, is_first=True)

    def _allocate(self, task: Task) -> Device:
        """A device by the rule of allocation, if there is any among those that the task does not avoid."""
        live = self.live
        candidates = [device for device in live if device.number not in task.avoid] or live
        if self._rules.allocation == "random":
            return candidates[int(self._random.random() * len(candidates))]
        if self._rules.allocation == "round_robin":
            device = next((device for device in candidates if device.number >= self._next_device), candidates[0])
            self._next_device = device.number + 1
            return device
        return self._first_done(candidates, task)

    def _first_done(self, devices: Sequence[Device], task: Task) -> Device:
        """The device that would be the first to have done a task more."""
        return min(devices, key=lambda device: self._seconds(device, task.size))

    def _seconds(self, device: Device, more: int = 0) -> float:
        """Until the device has done all that it has, and ``more`` items."""
        return (device.num_items + more) / (device.rate or self._typical_rate)

    def take_done(self, device: Device, task_number: int, now: float) -> Task:
        """A task that was done, by which the device's speed is measured. KeyError if it was not in flight."""
        task, sent = device.in_flight[task_number]
        device.measure(task.size, sent, now)
        rates = [other.rate for other in self.live if other.rate]
        if rates:
            self._typical_rate = sum(rates) / len(rates)
        return self.take_back(device, task_number)

    def take_back(self, device: Device, task_number: int) -> Task:
        """A task that is not in flight any more. KeyError if it was not in flight."""
        task, _ = device.in_flight.pop(task_number)
        device.num_items -= task.size
        device.is_isolated = False
        return task

    def take_all_back(self, device: Device) -> list[Task]:
        """A device has no worker any more. Returns what was in flight."""
        device.state = State.LOST
        return [self.take_back(device, task) for task in list(device.in_flight)]

    def retire(self, device: Device) -> list[Task]:
        """A device is given up. Returns what it had, in the order in which it would have been done."""
        orphans = [*self.take_all_back(device), *device.suspects, *device.queue]
        device.suspects.clear()
        device.queue.clear()
        device.num_items = 0
        device.state = State.RETIRED
        device.worker = -1
        return orphans

    def feed(self, now: float, out: list[Instruction]) -> None:
        """Send to the devices that have room for more, as long as there is anything that they may take."""
        for device in self.devices:
            self._fill(device, now, out)
        if self._rules.steal:
            self._steal_suspects(now, out)
            self._steal(now, out)

    def _has_room(self, device: Device) -> bool:
        is_open = device.state is State.READY and not self.is_draining and not device.is_isolated
        return is_open and len(device.in_flight) < self._rules.in_flight

    def _is_idle(self, device: Device) -> bool:
        """It has room, and nothing waits for it."""
        return self._has_room(device) and not device.queue and not device.suspects

    def _fill(self, device: Device, now: float, out: list[Instruction]) -> None:
        """Send to a device what waits for it and fits."""
        while self._has_room(device):
            if device.suspects:
                if device.in_flight:
                    return  # Nothing more until these have come in and the suspects have had their turns, alone.
                task = device.suspects.popleft()
            elif device.queue:
                task = device.queue.popleft()
                if device.largest is not None and task.size > device.largest:
                    # As much as the device has room for; what is left waits for the same device.
                    middle = task.start + device.largest
                    device.num_items -= task.stop - middle
                    self.add(self.new_task(middle, task.stop, avoid=task.avoid), device, is_first=True)
                    task = self.new_task(task.start, middle, avoid=task.avoid)
            else:
                return
            if not device.in_flight:
                device.last_seen = now  # silence counts from here
            device.is_isolated = task.is_suspect
            device.in_flight[task.number] = task, now
            out.append(Send(device.number, device.worker, task))

    def _steal(self, now: float, out: list[Instruction]) -> None:
        """From the end of the longest queue, by the idle device that has it done first, if sooner than there."""
        victims = [device for device in self.devices if device.queue]
        idle = [device for device in self.devices if self._is_idle(device)] if victims else []
        while idle and victims:
            victim = max(victims, key=self._end)
            task = victim.queue[-1]
            allowed = [device for device in idle if device.number not in task.avoid]
            if not allowed:
                victims.remove(victim)
                continue
            thief = self._first_done(allowed, task)
            if self._seconds(thief, task.size) > self._end(victim):
                return
            victim.queue.pop()
            self._hand_over(task, victim, thief, now, out)
            idle = [device for device in idle if self._is_idle(device)]
            victims = [device for device in victims if device.queue]

    def _end(self, device: Device) -> float:
        """Seconds until the device has done what it has; never without a worker."""
        return self._seconds(device) if device.state is State.READY else math.inf

    def _steal_suspects(self, now: float, out: list[Instruction]) -> None:
        """By devices with nothing in flight, where they can be alone at once. They hold up the order of the results."""
        victims = [device for device in self.devices if device.suspects]
        if not victims:
            return
        idle = [device for device in self.devices if self._is_idle(device) and not device.in_flight]
        for victim in victims:
            for task in list(victim.suspects):
                thief = next((device for device in idle if device.number not in task.avoid), None)
                if thief is not None:
                    idle.remove(thief)
                    victim.suspects.remove(task)
                    self._hand_over(task, victim, thief, now, out)

    def _hand_over(self, task: Task, victim: Device, thief: Device, now: float, out: list[Instruction]) -> None:
        victim.num_items -= task.size
        thief.steals += 1
        self.add(task, thief)
        self._fill(thief, now, out)


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
        submitted = self._submitted
        pieces = self._pieces
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
