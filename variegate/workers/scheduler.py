"""Scheduling of tasks over devices and the response to failures: a state machine without I/O and without a clock.

Events with their times go in, actions are returned. Guarantees, for any order of events:

- every submitted item is returned once, finished or failed, as long as a device remains;
- a task that failed, or whose worker was lost, is retried carefully, on another device if possible: the worker
  announces each item before it begins, so that the next failure has a single culprit. An item that fails
  ``max_failures`` times in this way is skipped;
- tasks are returned in the order of submission, if requested, and at most ``max_items`` items are in flight.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from variegate.checks import one_of
from variegate.workers.protocol import (
    EngineError,
    ItemStarted,
    TaskDone,
    TaskFailed,
    WorkerEvent,
    WorkerLost,
    WorkerReady,
)

Allocation = Literal["next_idle", "round_robin", "random"]
ALLOCATIONS: tuple[Allocation, ...] = get_args(Allocation)
State = Literal["starting", "ready", "lost", "retired"]


@dataclass(frozen=True)
class SchedulerSettings:
    """Settings of a scheduler. Raises ValueError for values that are not accepted."""

    allocation: Allocation = "next_idle"
    steal: bool = True  # an idle device takes tasks from the end of the longest queue
    ordered: bool = True
    in_flight: int = 2  # tasks at a worker at a time, so that it need not wait for the next
    queue_limit: int | None = 8  # tasks that wait, per device, before ``capacity`` is 0
    max_items: int = 1 << 62  # between submission and result
    max_failures: int = 3  # of an item, after which it is skipped
    max_consecutive_failures: int = 30  # failed tasks and lost workers that retire a device
    max_failed_starts: int = 3  # in a row, that retire a device
    heartbeat_timeout: float = 120.0  # seconds of silence after which a worker with a task is replaced
    start_timeout: float = 600.0  # the same while it starts
    min_ready_workers: int = 1 << 62  # with this many ready, the other workers may take any time to start
    seed: int = 0  # of random allocation

    def __post_init__(self) -> None:
        one_of("allocation", self.allocation, ALLOCATIONS)
        if self.max_failures < 1:
            raise ValueError(f"max_failures: got {self.max_failures!r}; accepted: 1 or more")
        if not self.heartbeat_timeout > 0:
            raise ValueError(f"heartbeat_timeout: got {self.heartbeat_timeout!r}; accepted: seconds, more than 0")


@dataclass(slots=True, eq=False)
class Task:
    """Items ``start..stop-1``. ``failed``: reasons by item; of a task that is not done, of the items to be skipped."""

    number: int
    start: int
    stop: int
    payload: Sequence[Any] | None
    is_careful: bool = False
    is_done: bool = False
    outputs: Sequence[Any] = ()
    failed: Mapping[int, str] = field(default_factory=dict)
    failures: Counter[int | None] = field(default_factory=Counter)  # by item; None: of the task without an item
    avoid: frozenset[int] = frozenset()  # devices where it failed; others are tried first

    @property
    def size(self) -> int:
        return self.stop - self.start


@dataclass(slots=True, eq=False)
class Device:
    number: int
    name: str
    state: State = "starting"
    worker: int = -1
    queue: deque[Task] = field(default_factory=deque)
    in_flight: dict[int, tuple[Task, float]] = field(default_factory=dict)  # with the time of sending, oldest first
    item: int | None = None  # announced by a careful task
    last_seen: float = 0.0
    failed_starts: int = 0
    consecutive_failures: int = 0
    losses: int = 0
    steals: int = 0
    done: int = 0  # items
    busy_seconds: float = 0.0
    free_since: float = 0.0


class DeviceSnapshot(NamedTuple):
    """``rate``: items per second of work; ``queued`` and ``in_flight`` count tasks, ``done`` items."""

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
    task: Task


class Finish(NamedTuple):
    """All items of a task are made or failed, and it is its turn."""

    task: Task


class Retire(NamedTuple):
    """A device gets no more work; other devices do its tasks."""

    name: str
    reason: str


Action: TypeAlias = StartWorker | StopWorker | Send | Finish | Retire


class Scheduler:
    """See the module. ``devices``: their names, one at least; ValueError for none."""

    def __init__(self, devices: Sequence[str], rules: SchedulerSettings) -> None:
        if not devices:
            raise ValueError("devices: got none; accepted: one or more")
        self._rules = rules
        self._devices = [Device(number, name) for number, name in enumerate(devices)]
        self._live = frozenset(range(len(devices)))
        self._by_worker: dict[int, Device] = {}
        self._shared: deque[Task] = deque()  # for the next idle device
        self._again: deque[Task] = deque()  # for any device, before all others
        self._order: deque[Task] = deque()
        self._random = Random(rules.seed)
        self._num_waiting = self._num_tasks = self._num_workers = 0
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
        """True if no worker has a task."""
        return not any(device.in_flight for device in self._devices)

    def start(self, now: float) -> list[Action]:
        """Call this first."""
        for device in self._devices:
            self._start_worker(device, now)
        return self._take_actions()

    def submit(self, start: int, stop: int, payload: Sequence[Any] | None, now: float) -> list[Action]:
        """Add a task of items that follow those submitted before, perhaps after a gap."""
        task = Task(self._num_tasks, start, stop, payload)
        if self._rules.ordered:
            self._order.append(task)
        self._outstanding += task.size
        self._num_waiting += 1
        self._choose_queue().append(task)
        self._num_tasks += 1
        return self._feed(now, self._devices)

    def close(self) -> None:
        """End of input: nothing more will be submitted."""
        self._is_closed = True

    def drain(self) -> None:
        """Send nothing any more, and replace no worker. Tasks in flight may still be done."""
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
            task, _ = device.in_flight.pop(event.task)
            device.free_since = now
            device.consecutive_failures += 1
            self._redo(task, device, event.reason)
            self._retire_if_hopeless(device, event.reason)
        elif isinstance(event, WorkerLost):
            self._lost(device, event.reason, now)
        elif isinstance(event, ItemStarted):
            if device.item is not None:  # that item is made
                device.consecutive_failures = 0
            device.item = event.item
        elif isinstance(event, WorkerReady) and device.state == "starting":
            device.state = "ready"
            device.failed_starts = 0
            device.free_since = now
        # Busy devices have no more room than before, and may only take tasks that must run again.
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

    def _choose_queue(self) -> deque[Task]:
        if self._rules.allocation == "next_idle":
            return self._shared
        live = [device for device in self._devices if device.state != "retired"]
        if self._rules.allocation == "random":
            return live[int(self._random.random() * len(live))].queue
        return live[self._num_tasks % len(live)].queue

    def _feed(self, now: float, devices: Sequence[Device]) -> list[Action]:
        """Send tasks to devices with room, idle devices first."""
        limit = 0 if self._is_draining or not self._num_waiting else self._rules.in_flight
        open_devices = [device for device in devices if device.state == "ready" and len(device.in_flight) < limit]
        for depth in range(limit):
            for device in open_devices:
                has_room = self._num_waiting and len(device.in_flight) == depth
                task = self._next_task(device) if has_room else None
                if task is not None:
                    self._send(device, task, now)
        return self._take_actions()

    def _next_task(self, device: Device) -> Task | None:
        for task in self._again:
            if device.number not in task.avoid or self._live <= task.avoid:
                self._again.remove(task)
                return task
        if device.queue:
            return device.queue.popleft()
        if self._shared:
            return self._shared.popleft()
        longest = max(self._devices, key=lambda other: len(other.queue)) if self._rules.steal else device
        if not longest.queue:
            return None
        device.steals += 1
        return longest.queue.pop()

    def _send(self, device: Device, task: Task, now: float) -> None:
        self._num_waiting -= 1
        if not device.in_flight:
            device.last_seen = now
        device.in_flight[task.number] = task, now
        self._actions.append(Send(device.number, device.worker, task))

    # Events.

    def _start_worker(self, device: Device, now: float) -> None:
        device.state = "starting"
        device.worker = self._num_workers
        device.last_seen = now
        self._by_worker[device.worker] = device
        self._num_workers += 1
        self._actions.append(StartWorker(device.number, device.worker))

    def _done(self, device: Device, event: TaskDone, now: float) -> None:
        task, sent = device.in_flight.pop(event.task)
        device.item = None
        device.consecutive_failures = 0
        device.done += task.size - len(event.failed)
        device.busy_seconds += now - max(sent, device.free_since)
        device.free_since = now
        self._finish(task, event.outputs, event.failed)

    def _lost(self, device: Device, reason: str, now: float) -> None:
        tasks = [task for task, _ in device.in_flight.values()]
        self._by_worker.pop(device.worker)
        device.in_flight.clear()
        device.losses += 1
        device.failed_starts += device.state == "starting"
        device.consecutive_failures += device.state == "ready"
        device.state = "lost"
        # A worker takes its tasks in the order in which they were sent: the others were not begun.
        self._requeue(tasks[1:])
        for task in tasks[:1]:
            self._redo(task, device, reason)
        if not self._is_draining and not self._retire_if_hopeless(device, reason):
            self._start_worker(device, now)

    def _requeue(self, tasks: Sequence[Task]) -> None:
        self._again.extendleft(reversed(tasks))
        self._num_waiting += len(tasks)

    def _redo(self, task: Task, device: Device, reason: str) -> None:
        """Run a failed task again, carefully; a careful one without the item that was announced, if that has failed too
        often. A task that fails too often with no such item fails as a whole."""
        item = None if device.item in task.failed else device.item
        device.item = None
        if task.is_careful:
            task.failures[item] += 1
            if task.failures[item] == self._rules.max_failures:
                if item is None:
                    every = range(task.start, task.stop)
                    return self._finish(task, [None] * task.size, dict.fromkeys(every, reason) | dict(task.failed))
                task.failed = {**task.failed, item: reason}
        task.is_careful = True
        task.avoid |= {device.number}
        self._requeue([task])

    def _finish(self, task: Task, outputs: Sequence[Any], failed: Mapping[int, str]) -> None:
        task.outputs = outputs
        task.failed = failed
        task.payload = None
        task.is_done = True
        self._quarantined += len(failed)
        if not self._rules.ordered:
            self._release(task)
        while self._order and self._order[0].is_done:
            self._release(self._order.popleft())

    def _release(self, task: Task) -> None:
        self._outstanding -= task.size
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
        self._requeue([task for task, _ in device.in_flight.values()])
        device.in_flight.clear()
        self._again.extend(device.queue)
        device.queue.clear()
        self._actions.append(Retire(device.name, f"{failure}: {reason}"))
        return True

    def _take_actions(self) -> list[Action]:
        actions = self._actions
        self._actions = []
        return actions
