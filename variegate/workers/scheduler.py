"""Scheduling of tasks over devices and the response to failures: a state machine without I/O and without a clock.

Events go in with the time at which they happened, actions come out. Whatever happens in whatever order:

- every item that was submitted comes out once, made or failed, as long as one device is left;
- an item fails only for failures of its own: what was on a worker when that was lost runs again one item at a time,
  each alone on its worker;
- tasks come out in the order of submission, if requested, and at most ``max_items`` items are under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from variegate.checks import one_of
from variegate.workers.protocol import EngineError, TaskDone, TaskFailed, WorkerEvent, WorkerLost, WorkerReady

Allocation = Literal["next_idle", "round_robin", "random"]
ALLOCATIONS: tuple[Allocation, ...] = get_args(Allocation)
State = Literal["starting", "ready", "lost", "retired"]


@dataclass(frozen=True)
class Rules:
    """Settings of a scheduler. Raises ValueError for values that are not accepted."""

    allocation: Allocation = "next_idle"
    steal: bool = True  # an idle device takes tasks from the end of the longest queue
    ordered: bool = True
    in_flight: int = 2  # units at a worker at a time, so that it need not wait for the next
    queue_limit: int | None = 8  # units that wait, per device, before ``capacity`` is 0
    max_items: int = 1 << 62  # between submission and result
    max_failures: int = 3  # of an item, after which it is given up
    max_consecutive_failures: int = 30  # failed units and lost workers that retire a device
    max_failed_starts: int = 3  # in a row, that retire a device
    heartbeat_timeout: float = 120.0  # seconds of silence after which a worker with a task is replaced
    start_timeout: float = 600.0  # the same while it starts
    min_ready_workers: int = 1 << 62  # with so many ready, others may take any time to start
    seed: int = 0  # of random allocation

    def __post_init__(self) -> None:
        one_of("allocation", self.allocation, ALLOCATIONS)
        if self.max_failures < 1:
            raise ValueError(f"max_failures: got {self.max_failures!r}; accepted: 1 or more")
        if not self.heartbeat_timeout > 0:
            raise ValueError(f"heartbeat_timeout: got {self.heartbeat_timeout!r}; accepted: seconds, more than 0")


@dataclass(slots=True, eq=False)
class Task:
    """Items ``start..stop-1`` as they were submitted, and what became of them."""

    start: int
    stop: int
    payload: Sequence[Any] | None
    num_left: int
    outputs: list[tuple[int, Sequence[Any]]] = field(default_factory=list)  # with the first item, as they came
    failed: dict[int, str] = field(default_factory=dict)  # reasons

    def merged_outputs(self) -> Sequence[Any]:
        """One output per item, None for failed items; those of a single unit as the job returned them."""
        if len(self.outputs) == 1 and len(self.outputs[0][1]) == self.stop - self.start:
            return self.outputs[0][1]
        merged = [None] * (self.stop - self.start)
        for first, outputs in self.outputs:
            merged[first - self.start : first - self.start + len(outputs)] = outputs
        return merged


@dataclass(slots=True, eq=False)
class Unit:
    """Items of a task that are sent to a worker together."""

    number: int
    task: Task
    start: int
    stop: int
    failures: int = 0  # of its only item
    is_alone: bool = False  # it may have ended its worker: nothing else is sent there until it is done
    avoid: frozenset[int] = frozenset()  # devices where it failed; others are tried first

    @property
    def size(self) -> int:
        return self.stop - self.start

    @property
    def payload(self) -> Sequence[Any] | None:
        task = self.task
        if task.payload is None or self.size == task.stop - task.start:
            return task.payload
        return task.payload[self.start - task.start : self.stop - task.start]


@dataclass(slots=True, eq=False)
class Device:
    number: int
    name: str
    state: State = "starting"
    worker: int = -1
    queue: deque[Unit] = field(default_factory=deque)
    in_flight: dict[int, tuple[Unit, float]] = field(default_factory=dict)  # with the time of sending, oldest first
    is_reserved: bool = False  # by a unit that runs alone
    last_seen: float = 0.0
    failed_starts: int = 0
    consecutive_failures: int = 0
    losses: int = 0
    steals: int = 0
    done: int = 0  # items
    busy_seconds: float = 0.0
    free_since: float = 0.0
    max_size: int | None = None  # items per unit, after it ran out of memory


class DeviceSnapshot(NamedTuple):
    """``rate``: items per second of work; ``queued`` and ``in_flight`` count units, ``done`` items."""

    name: str
    state: str
    rate: float
    queued: int
    in_flight: int
    done: int
    steals: int
    losses: int


class Snapshot(NamedTuple):
    """``outstanding``: items that were submitted and are not out yet; ``quarantined``: failed items."""

    devices: list[DeviceSnapshot]
    outstanding: int
    quarantined: int


class StartWorker(NamedTuple):
    """WorkerReady or WorkerLost is expected. Worker numbers are never used again."""

    device: int
    worker: int


class StopWorker(NamedTuple):
    """End a worker, by force if need be."""

    worker: int


class Send(NamedTuple):
    device: int
    worker: int
    unit: Unit


class Finish(NamedTuple):
    """All items of a task are made or failed, and it is its turn."""

    task: Task


class Retire(NamedTuple):
    """A device gets no more work; the others do what it had."""

    name: str
    reason: str


Action: TypeAlias = StartWorker | StopWorker | Send | Finish | Retire


class Scheduler:
    """See the module. ``devices``: their names, one at least; ValueError for none."""

    def __init__(self, devices: Sequence[str], rules: Rules) -> None:
        if not devices:
            raise ValueError("devices: got none; accepted: one or more")
        self._rules = rules
        self._devices = [Device(number, name) for number, name in enumerate(devices)]
        self._live = frozenset(range(len(devices)))
        self._by_worker: dict[int, Device] = {}
        self._shared: deque[Unit] = deque()  # for the next idle device
        self._again: deque[Unit] = deque()  # for any device, before all others
        self._order: deque[Task] = deque()
        self._random = Random(rules.seed)
        self._num_waiting = self._num_tasks = self._num_units = self._num_workers = 0
        self._outstanding = self._quarantined = 0
        self._is_closed = self._is_draining = False
        self._actions: list[Action] = []

    @property
    def capacity(self) -> int:
        """Number of items that may be submitted now; none if not above 0."""
        limit = self._rules.queue_limit
        if self._is_closed or self._is_draining:
            return 0
        if limit is not None and self._num_waiting >= limit * len(self._live):
            return 0
        return self._rules.max_items - self._outstanding

    @property
    def num_outstanding(self) -> int:
        """Items that were submitted and are not out yet."""
        return self._outstanding

    @property
    def is_finished(self) -> bool:
        return self._is_closed and self._outstanding == 0

    @property
    def is_idle(self) -> bool:
        """No worker has a unit."""
        return not any(device.in_flight for device in self._devices)

    def start(self, now: float) -> list[Action]:
        """Call this first."""
        for device in self._devices:
            self._start_worker(device, now)
        return self._take_actions()

    def submit(self, start: int, stop: int, payload: Sequence[Any] | None, now: float) -> list[Action]:
        """Add a task of items that follow those submitted before, perhaps after a gap."""
        task = Task(start, stop, payload, stop - start)
        if self._rules.ordered:
            self._order.append(task)
        self._outstanding += task.num_left
        self._queue_of_new().append(self._new_unit(task, start, stop))
        self._num_tasks += 1
        return self._feed(now, self._devices)

    def close(self) -> None:
        """Nothing more will be submitted."""
        self._is_closed = True

    def drain(self) -> None:
        """Send nothing any more, and replace no worker. Units in flight may still be done."""
        self._is_draining = True

    def handle(self, event: WorkerEvent, now: float) -> list[Action]:
        """Raises EngineError when the last device is retired. Events of workers that were replaced are ignored."""
        device = self._by_worker.get(event.worker)
        if device is None:
            return []
        device.last_seen = now
        if isinstance(event, TaskDone):
            self._done(device, event, now)
        elif isinstance(event, TaskFailed):
            self._failed(device, event, now)
        elif isinstance(event, WorkerLost):
            self._lost(device, event.reason, now)
        elif isinstance(event, WorkerReady) and device.state == "starting":
            device.state = "ready"
            device.failed_starts = 0
            device.free_since = now
        # Others have no more room than before, and may only take what has to run again.
        return self._feed(now, self._devices if self._again else [device])

    def check_times(self, now: float) -> list[Action]:
        """Replace workers that have been silent for too long. Raises EngineError as ``handle`` does."""
        rules = self._rules
        num_ready = sum(device.state == "ready" for device in self._devices)
        for device in self._devices:
            silence = now - device.last_seen
            is_needed = num_ready < rules.min_ready_workers
            if device.state == "starting" and is_needed and silence > rules.start_timeout:
                reason = f"did not start within {rules.start_timeout:g} s"
            elif device.in_flight and silence > rules.heartbeat_timeout:
                reason = f"gave no sign of life for {rules.heartbeat_timeout:g} s"
            else:
                continue
            self._actions.append(StopWorker(device.worker))
            self._lost(device, reason, now)
        return self._feed(now, self._devices)

    def snapshot(self) -> Snapshot:
        devices = [
            DeviceSnapshot(
                device.name,
                device.state,
                device.done / device.busy_seconds if device.busy_seconds else 0.0,
                len(device.queue),
                len(device.in_flight),
                device.done,
                device.steals,
                device.losses,
            )
            for device in self._devices
        ]
        return Snapshot(devices, self._outstanding, self._quarantined)

    # Queues.

    def _queue_of_new(self) -> deque[Unit]:
        if self._rules.allocation == "next_idle":
            return self._shared
        live = [device for device in self._devices if device.state != "retired"]
        if self._rules.allocation == "random":
            return live[int(self._random.random() * len(live))].queue
        return live[self._num_tasks % len(live)].queue

    def _new_unit(self, task: Task, start: int, stop: int, *state: Any) -> Unit:
        self._num_units += 1
        self._num_waiting += 1
        return Unit(self._num_units, task, start, stop, *state)

    def _redo(self, unit: Unit, size: int, avoid: frozenset[int], is_alone: bool = False) -> None:
        """Run a unit again, before all others, in units of at most ``size`` items."""
        starts = reversed(range(unit.start, unit.stop, size))
        self._again.extendleft(
            self._new_unit(unit.task, start, min(start + size, unit.stop), unit.failures, is_alone, avoid)
            for start in starts
        )

    def _feed(self, now: float, devices: Sequence[Device]) -> list[Action]:
        """Send units to the devices that have room, first to those that have none."""
        limit = 0 if self._is_draining or not self._num_waiting else self._rules.in_flight
        open_devices = [device for device in devices if device.state == "ready" and len(device.in_flight) < limit]
        for depth in range(limit):
            for device in open_devices:
                has_room = self._num_waiting and len(device.in_flight) == depth and not device.is_reserved
                unit = self._next_unit(device) if has_room else None
                if unit is not None:
                    self._send(device, unit, now)
        return self._take_actions()

    def _next_unit(self, device: Device) -> Unit | None:
        for unit in self._again:
            if device.number not in unit.avoid or self._live <= unit.avoid:
                if unit.is_alone and device.in_flight:
                    return None  # once these are done
                self._again.remove(unit)
                return unit
        if device.queue:
            return device.queue.popleft()
        if self._shared:
            return self._shared.popleft()
        longest = max(self._devices, key=lambda other: len(other.queue)) if self._rules.steal else device
        if not longest.queue:
            return None
        device.steals += 1
        return longest.queue.pop()

    def _send(self, device: Device, unit: Unit, now: float) -> None:
        self._num_waiting -= 1
        if device.max_size is not None and unit.size > device.max_size:
            rest = self._new_unit(unit.task, unit.start + device.max_size, unit.stop, 0, unit.is_alone, unit.avoid)
            self._again.appendleft(rest)
            unit.stop = rest.start
        if not device.in_flight:
            device.last_seen = now
        device.is_reserved = unit.is_alone
        device.in_flight[unit.number] = unit, now
        self._actions.append(Send(device.number, device.worker, unit))

    # Events.

    def _start_worker(self, device: Device, now: float) -> None:
        device.state = "starting"
        device.worker = self._num_workers
        device.last_seen = now
        self._by_worker[device.worker] = device
        self._num_workers += 1
        self._actions.append(StartWorker(device.number, device.worker))

    def _done(self, device: Device, event: TaskDone, now: float) -> None:
        unit, sent = device.in_flight.pop(event.unit)
        device.is_reserved = False
        device.consecutive_failures = 0
        device.done += unit.size - len(event.failed)
        device.busy_seconds += now - max(sent, device.free_since)
        device.free_since = now
        unit.task.outputs.append((unit.start, event.outputs))
        self._settle(unit.task, unit.size - len(event.failed))
        for item, reason in event.failed.items():
            failures = unit.failures if unit.size == 1 else 0
            self._item_failed(unit.task, item, failures + 1, reason, unit.avoid | {device.number})

    def _failed(self, device: Device, event: TaskFailed, now: float) -> None:
        unit, _ = device.in_flight.pop(event.unit)
        device.is_reserved = False
        device.free_since = now
        if event.is_memory and unit.size > 1:
            device.max_size = min(unit.size // 2, device.max_size or unit.size)
            self._redo(unit, -(-unit.size // 2), unit.avoid)
            return
        device.consecutive_failures += 1
        self._blame(unit, device, event.reason)
        self._retire_if_hopeless(device, event.reason)

    def _lost(self, device: Device, reason: str, now: float) -> None:
        units = [unit for unit, _ in device.in_flight.values()]
        self._by_worker.pop(device.worker)
        device.in_flight.clear()
        device.is_reserved = False
        device.losses += 1
        device.failed_starts += device.state == "starting"
        device.consecutive_failures += device.state == "ready"
        device.state = "lost"
        if len(units) == 1:
            self._blame(units[0], device, reason, is_alone=True)
        else:
            for unit in reversed(units):
                self._redo(unit, 1, unit.avoid, is_alone=True)
        if not self._is_draining and not self._retire_if_hopeless(device, reason):
            self._start_worker(device, now)

    def _blame(self, unit: Unit, device: Device, reason: str, is_alone: bool = False) -> None:
        """A unit failed, and no other unit can have been the reason."""
        avoid = unit.avoid | {device.number}
        if unit.size > 1:
            self._redo(unit, 1, avoid, is_alone)
        else:
            self._item_failed(unit.task, unit.start, unit.failures + 1, reason, avoid, is_alone)

    def _item_failed(
        self, task: Task, item: int, failures: int, reason: str, avoid: frozenset[int], is_alone: bool = False
    ) -> None:
        if failures < self._rules.max_failures:
            self._again.appendleft(self._new_unit(task, item, item + 1, failures, is_alone, avoid))
            return
        self._quarantined += 1
        task.failed[item] = reason
        self._settle(task, 1)

    def _settle(self, task: Task, number: int) -> None:
        """So many more items of a task are made or failed."""
        task.num_left -= number
        if not task.num_left:
            task.payload = None
        if self._rules.ordered:
            while self._order and not self._order[0].num_left:
                self._finish(self._order.popleft())
        elif not task.num_left:
            self._finish(task)

    def _finish(self, task: Task) -> None:
        self._outstanding -= task.stop - task.start
        self._actions.append(Finish(task))

    def _retire_if_hopeless(self, device: Device, reason: str) -> bool:
        rules = self._rules
        is_usable = (
            device.failed_starts < rules.max_failed_starts
            and device.consecutive_failures < rules.max_consecutive_failures
        )
        if is_usable or self._is_draining:
            return False
        failure = "did not start" if device.failed_starts else f"{device.consecutive_failures} failures in a row"
        if self._by_worker.pop(device.worker, None) is not None:
            self._actions.append(StopWorker(device.worker))
        device.state = "retired"
        self._live -= {device.number}
        if not self._live:
            raise EngineError(f"no device is left; the last was {device.name}, {failure}: {reason}")
        for unit, _ in reversed(device.in_flight.values()):
            self._redo(unit, unit.size, unit.avoid, unit.is_alone)
        device.in_flight.clear()
        self._again.extend(device.queue)
        device.queue.clear()
        self._actions.append(Retire(device.name, f"{failure}: {reason}"))
        return True

    def _take_actions(self) -> list[Action]:
        actions = self._actions
        self._actions = []
        return actions
