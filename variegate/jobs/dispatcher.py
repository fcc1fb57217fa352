"""The distribution of tasks, and what follows where one fails: a state machine without I/O and without a clock.

Events go in with the time at which they happened, instructions come out, for ``drive`` with real workers, or for
``simulation`` with a virtual clock. Its guarantees, whatever happens in whatever order:

- every item that was submitted is released once, or put in quarantine, as long as one device is left;
- an item is put in quarantine only for failures that were its own: a task of several items that failed is cut in two,
  and tasks that were on a worker together when that was lost run alone on the next;
- in order, if asked for; with no more than ``max_items`` items between submission and release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from variegate.jobs import jobs as messages
from variegate.jobs.jobs import EngineError, Instruction, Task, TaskDone, TaskFailed, Tick, WorkerLost, WorkerReady
from variegate.jobs.options import Rules
from variegate.jobs.queues import Device, Merge, Queues, State


class Dispatcher:
    """See the module. ``devices``: their names, one at least; ValueError for none."""

    def __init__(self, devices: Sequence[str], rules: Rules) -> None:
        if not devices:
            raise ValueError("devices: got none; accepted: one or more")
        self._rules = rules
        self._queues = Queues(devices, rules)
        self._devices = self._queues.devices
        self._merge = Merge(rules.ordered)
        self._next_worker = 0
        self._is_closed = False
        self._quarantined = 0

    @property
    def capacity(self) -> int:
        """Number of items it takes now; not more than 0 where it takes none."""
        rules = self._rules
        queues = self._queues
        if self._is_closed or queues.is_draining:
            return 0
        if rules.queue_limit is not None and queues.waiting >= rules.queue_limit * len(queues.live):
            return 0
        return rules.max_items - self._merge.outstanding

    @property
    def is_finished(self) -> bool:
        """All that will ever be submitted is out."""
        return self._is_closed and self._merge.outstanding == 0

    @property
    def is_idle(self) -> bool:
        """No worker has a task."""
        return not any(device.in_flight for device in self._devices)

    def start(self, now: float) -> list[Instruction]:
        """To be called first."""
        return [self._start_worker(device, now) for device in self._devices]

    def submit(self, start: int, stop: int, now: float) -> list[Instruction]:
        """One task more, of items that follow those submitted before (there may be a gap)."""
        self._merge.submit(start, stop)
        self._queues.add(self._queues.new_task(start, stop))
        out: list[Instruction] = []
        self._queues.feed(now, out)
        return out

    def close(self) -> None:
        """Nothing more will be submitted."""
        self._is_closed = True

    def drain(self) -> None:
        """Send nothing any more; what is in flight may still come in. A worker that is lost now is not replaced."""
        self._queues.is_draining = True

    def handle(self, event: messages.Event, now: float) -> list[Instruction]:
        """Raises EngineError when the last device is given up, KeyError for a task that the worker does not have."""
        if isinstance(event, Tick):
            return self._check_times(now)
        device = self._devices[event.device]
        if event.worker != device.worker:
            # It was given up: its tasks are elsewhere by now.
            return [messages.Forget(event.task)] if isinstance(event, TaskDone) else []
        device.last_seen = now
        if isinstance(event, TaskDone):
            out = self._done(device, event.task, event.failed, now)
        elif isinstance(event, TaskFailed):
            out = self._failed(device, event, now)
        elif isinstance(event, WorkerLost):
            out = self._lost(device, event.reason, now)
        elif isinstance(event, WorkerReady):
            out = []
            if device.state is State.STARTING:
                device.state = State.READY
                device.failed_starts = 0
                device.free_since = now
        else:
            assert isinstance(event, messages.Beat)
            return []
        self._queues.feed(now, out)
        return out

    def snapshot(self) -> messages.Snapshot:
        devices = [
            messages.DeviceSnapshot(
                device.name,
                device.state.value,
                device.rate if device.state is not State.RETIRED else 0.0,
                len(device.queue) + len(device.suspects),
                len(device.in_flight),
                device.done,
                device.steals,
                device.losses,
            )
            for device in self._devices
        ]
        return messages.Snapshot(devices, self._merge.outstanding, self._quarantined)

    def _start_worker(self, device: Device, now: float) -> messages.StartWorker:
        device.state = State.STARTING
        device.worker = self._next_worker
        device.last_seen = now
        self._next_worker += 1
        return messages.StartWorker(device.number, device.worker)

    def _done(self, device: Device, task_number: int, failed: Mapping[int, str], now: float) -> list[Instruction]:
        task = self._queues.take_done(device, task_number, now)
        device.setbacks = 0
        device.done += task.size - len(failed)
        out = self._merge.add(task.number, task.without(failed))
        for item in sorted(failed):
            # A worker that names the item leaves no doubt, so it need not be alone the next time.
            failures = task.failures if task.size == 1 else 0
            out += self._item_failed(item, failures + 1, failed[item], task.avoid | {device.number}, is_suspect=False)
        return out

    def _failed(self, device: Device, event: TaskFailed, now: float) -> list[Instruction]:
        task = self._queues.take_back(device, event.task)
        device.free_since = now
        if event.is_memory and task.size > 1:
            # Nobody's fault, and no setback: this device takes smaller ones from now on.
            device.largest = min(task.size // 2, device.largest or task.size)
            self._queues.add_halves(task, task.is_suspect, task.avoid, device)
            return []
        device.setbacks += 1
        return self._blame(task, device, event.reason, False) + self._retire_if_hopeless(device, event.reason)

    def _lost(self, device: Device, reason: str, now: float) -> list[Instruction]:
        device.losses += 1
        device.failed_starts += device.state is State.STARTING
        device.setbacks += device.state is State.READY
        in_flight = self._queues.take_all_back(device)
        out: list[Instruction] = []
        if len(in_flight) == 1:
            out += self._blame(in_flight[0], device, reason, is_suspect=True)
        else:
            for task in reversed(in_flight):
                self._queues.add_again(task, is_suspect=True)
        if self._queues.is_draining:
            device.worker = -1
            return out
        return out + (self._retire_if_hopeless(device, reason) or [self._start_worker(device, now)])

    def _check_times(self, now: float) -> list[Instruction]:
        out: list[Instruction] = []
        num_ready = sum(device.state is State.READY for device in self._devices)
        for device in self._devices:
            silence = now - device.last_seen
            is_needed = num_ready < self._rules.enough
            if device.state is State.STARTING and is_needed and silence > self._rules.start_timeout:
                reason = f"did not start within {self._rules.start_timeout:g} s"
            elif device.in_flight and silence > self._rules.heartbeat_timeout:
                reason = f"gave no sign of life for {self._rules.heartbeat_timeout:g} s"
            else:
                continue
            out.append(messages.StopWorker(device.number, device.worker, reason))
            out += self._lost(device, reason, now)
        self._queues.feed(now, out)
        return out

    def _blame(self, task: Task, device: Device, reason: str, is_suspect: bool) -> list[Instruction]:
        """A task failed on a device, and no other can have been the reason."""
        avoid = task.avoid | {device.number}
        if task.size == 1:
            return self._item_failed(task.start, task.failures + 1, reason, avoid, is_suspect)
        self._queues.add_halves(task, is_suspect, avoid)
        return []

    def _item_failed(
        self, item: int, failures: int, reason: str, avoid: frozenset[int], is_suspect: bool
    ) -> list[Instruction]:
        if failures < self._rules.max_failures:
            self._queues.add(self._queues.new_task(item, item + 1, failures, is_suspect, avoid), is_first=True)
            return []
        self._quarantined += 1
        return self._merge.give_up(item, reason)

    def _retire_if_hopeless(self, device: Device, reason: str) -> list[Instruction]:
        rules = self._rules
        if self._queues.is_draining:
            return []  # There is nothing left to give up.
        if device.failed_starts < rules.max_failed_starts and device.setbacks < rules.max_setbacks:
            return []
        what = "did not start" if device.failed_starts else f"{device.setbacks} failures in a row"
        has_worker = device.state is State.READY
        stop = [messages.StopWorker(device.number, device.worker, reason)] if has_worker else []
        orphans = self._queues.retire(device)
        if not self._queues.live:
            raise EngineError(f"no device is left; the last was {device.name}, {what}: {reason}")
        for task in reversed(orphans):
            self._queues.add_again(task, task.is_suspect)
        return [*stop, messages.Retire(device.number, f"{what}: {reason}")]
