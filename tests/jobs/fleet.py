"""Workers that do as a dispatcher says, and a referee who knows what it may say.

Whatever the dispatcher is told goes through a ``Fleet``, which checks every instruction that comes back against what
the dispatcher promises, and keeps books of its own: who has which task, which results are held, who is to blame.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from variegate.jobs.dispatcher import Dispatcher
from variegate.jobs.jobs import (
    Beat,
    EngineError,
    Event,
    Forget,
    Instruction,
    Quarantine,
    Release,
    Retire,
    Send,
    StartWorker,
    StopWorker,
    Task,
    TaskDone,
    TaskFailed,
    Tick,
    WorkerLost,
    WorkerReady,
)
from variegate.jobs.options import Rules


@dataclass
class Worker:
    """One life of a device. ``heard``: when it last gave a sign of life, or was last asked for one."""

    device: int
    number: int
    heard: float
    is_ready: bool = False
    tasks: list[Task] = field(default_factory=list)


class Fleet:
    """``devices`` workers under ``rules``; ``start`` is done."""

    def __init__(self, devices: int, rules: Rules) -> None:
        self.rules = rules
        self.now = 0.0
        self.workers: dict[int, Worker] = {}
        self.given_up: list[Worker] = []  # stopped with tasks at hand: they may still say something
        self.live = set(range(devices))
        self.submitted: list[int] = []
        self.out: list[int] = []  # items that were released or put in quarantine, as they came
        self.quarantined: dict[int, str] = {}
        self.held: dict[int, set[int]] = {}  # by task: good items of its result that are not out
        self.sent: list[Send] = []
        self.failures: Counter[int] = Counter()  # by item: those that can have been nobody else's
        self.accused: set[int] = set()  # items of tasks that were on a worker when that was lost
        self.failed_at: defaultdict[int, set[int]] = defaultdict(set)  # by item: devices
        self.setbacks: Counter[int] = Counter()  # by device, with nothing done in between
        self.failed_starts: Counter[int] = Counter()  # by device, in a row
        self.is_draining = False
        self.error: EngineError | None = None
        self.is_sound = True  # no instruction was wrong
        self.dispatcher = Dispatcher([f"d{number}" for number in range(devices)], rules)
        self._obey(self.dispatcher.start(self.now))
        assert {worker.device for worker in self.workers.values()} == self.live

    # What may happen.

    def submit(self, size: int, gap: int = 0) -> None:
        start = (self.submitted[-1] + 1 if self.submitted else 0) + gap
        self.submitted += range(start, start + size)
        self._obey(self.dispatcher.submit(start, start + size, self.now))

    def close(self) -> None:
        self.dispatcher.close()
        assert self.dispatcher.capacity <= 0

    def drain(self) -> None:
        self.is_draining = True
        self.dispatcher.drain()
        assert self.dispatcher.capacity <= 0

    def ready(self, number: int) -> None:
        worker = self.workers[number]
        worker.is_ready = True
        self.failed_starts[worker.device] = 0
        self._tell(WorkerReady(worker.device, number), worker)

    def all_ready(self) -> None:
        for worker in [*self.workers.values()]:
            if not worker.is_ready:
                self.ready(worker.number)

    def worker(self, device: int) -> int:
        """The number of a device's worker."""
        return next(worker.number for worker in self.workers.values() if worker.device == device)

    def lose(self, number: int, reason: str = "killed") -> None:
        """A worker dies, or does not start."""
        worker = self.workers.pop(number)
        self._accuse(worker)
        self._tell(WorkerLost(worker.device, number, reason), worker)

    def done(self, number: int, failed: Mapping[int, str] | None = None) -> None:
        """The oldest task of a worker, but for some items."""
        worker, failed = self.workers[number], failed or {}
        task = worker.tasks.pop(0)
        self.accused -= set(range(task.start, task.stop))
        self.setbacks[worker.device] = 0
        for item in failed:
            self.failures[item] += 1
            self.failed_at[item].add(worker.device)
        self.held[task.number] = set(range(task.start, task.stop)) - set(failed)
        self._tell(TaskDone(worker.device, number, task.number, failed), worker)

    def fail(self, number: int, reason: str = "failed", is_memory: bool = False) -> None:
        """The oldest task of a worker, as a whole."""
        worker = self.workers[number]
        task = worker.tasks.pop(0)
        if not (is_memory and task.size > 1):
            self.accused -= set(range(task.start, task.stop))
            self.setbacks[worker.device] += 1
            self._blame(task, worker.device)
        self._tell(TaskFailed(worker.device, number, task.number, reason, is_memory), worker)

    def beat(self, number: int) -> None:
        worker = self.workers[number]
        self._tell(Beat(worker.device, number), worker)

    def late(self, place: int) -> None:
        """A worker that was given up is heard of again: its result is of no use to anybody."""
        worker = self.given_up[place]
        if worker.tasks:
            task = worker.tasks.pop(0)
            self.held[task.number] = set()
            out = self.dispatcher.handle(TaskDone(worker.device, worker.number, task.number), self.now)
            assert out == [Forget(task.number)]
            self._obey(out)
        else:
            self.given_up.pop(place)
            for event in (Beat, WorkerReady):
                assert self.dispatcher.handle(event(worker.device, worker.number), self.now) == []
            assert self.dispatcher.handle(WorkerLost(worker.device, worker.number, "late"), self.now) == []

    def tick(self, seconds: float) -> None:
        """Nothing happens for so long: who should have been heard of is stopped, and nobody else."""
        self.now += seconds
        silent = [w for w in self.workers.values() if self.now - w.heard > self._patience(w)]
        for worker in silent:
            del self.workers[worker.number]
            self.given_up.append(worker)
            self._accuse(worker)
        stopped = self._tell(Tick(), None)
        if self.error is None:
            assert {stop.worker for stop in stopped} == {worker.number for worker in silent}

    def _patience(self, worker: Worker) -> float:
        if not worker.is_ready:
            return self.rules.start_timeout
        return self.rules.heartbeat_timeout if worker.tasks else float("inf")

    def _accuse(self, worker: Worker) -> None:
        """Its tasks were there when it was lost. If there was one, it was that."""
        (self.setbacks if worker.is_ready else self.failed_starts)[worker.device] += 1
        for task in worker.tasks:
            self.accused.update(range(task.start, task.stop))
        if len(worker.tasks) == 1:
            self._blame(worker.tasks[0], worker.device)

    def _blame(self, task: Task, device: int) -> None:
        for item in range(task.start, task.stop):
            self.failed_at[item].add(device)
        if task.size == 1:
            self.failures[task.start] += 1

    def _is_hopeless(self, device: int) -> bool:
        rules = self.rules
        return self.setbacks[device] >= rules.max_setbacks or self.failed_starts[device] >= rules.max_failed_starts

    # What the dispatcher may say.

    def _tell(self, event: Event, worker: Worker | None) -> list[StopWorker]:
        if worker is not None:
            worker.heard = self.now
        try:
            out = self.dispatcher.handle(event, self.now)
        except EngineError as error:
            assert all(self._is_hopeless(device) for device in self.live)
            self.error = error
            return []
        self._obey(out)
        return [instruction for instruction in out if isinstance(instruction, StopWorker)]

    def _obey(self, instructions: list[Instruction]) -> None:
        self.is_sound = False
        for instruction in instructions:
            if isinstance(instruction, Send):
                self._take(instruction)
            elif isinstance(instruction, Release):
                self._release(instruction)
            elif isinstance(instruction, Quarantine):
                assert self.failures[instruction.item] == self.rules.max_failures
                assert instruction.reason
                self.quarantined[instruction.item] = instruction.reason
                self.out.append(instruction.item)
            elif isinstance(instruction, Forget):
                assert self.held.pop(instruction.task) == set()
            elif isinstance(instruction, StartWorker):
                self._start(instruction)
            elif isinstance(instruction, StopWorker):
                worker = self.workers.pop(instruction.worker, None)
                if worker is not None:  # others were known to be silent
                    self.given_up.append(worker)
            else:
                assert isinstance(instruction, Retire)
                assert self._is_hopeless(instruction.device)
                self.live.remove(instruction.device)
                assert not any(worker.device == instruction.device for worker in self.workers.values())
        self.check()
        self.is_sound = True

    def _take(self, send: Send) -> None:
        worker, task = self.workers[send.worker], send.task
        assert not self.is_draining
        assert worker.is_ready
        assert worker.device == send.device
        assert not any(other.is_suspect for other in worker.tasks), "a suspect runs alone"
        assert not (task.is_suspect and worker.tasks), "a suspect runs alone"
        assert task.is_suspect or not self.accused & set(range(task.start, task.stop)), "what was accused is a suspect"
        for item in range(task.start, task.stop):
            failed_at = self.failed_at[item]
            assert send.device not in failed_at or self.live <= failed_at, "it failed here; others are tried first"
        if not worker.tasks:
            worker.heard = self.now
        worker.tasks.append(task)
        assert len(worker.tasks) <= self.rules.in_flight
        self.sent.append(send)

    def _release(self, release: Release) -> None:
        items = set(range(release.start, release.stop))
        assert items
        assert items <= self.held[release.task], "not there, or released before"
        self.held[release.task] -= items
        self.out += range(release.start, release.stop)

    def _start(self, start: StartWorker) -> None:
        assert not self.is_draining
        assert start.device in self.live
        assert start.worker not in self.workers
        assert not any(worker.device == start.device for worker in self.workers.values())
        self.workers[start.worker] = Worker(start.device, start.worker, self.now)

    # What is true at any time.

    def check(self) -> None:
        assert len(self.out) == len(set(self.out)), "an item came out twice"
        if self.rules.ordered:
            assert self.out == self.submitted[: len(self.out)]
        snapshot = self.dispatcher.snapshot()
        assert snapshot.outstanding == len(self.submitted) - len(self.out)
        assert snapshot.quarantined >= len(self.quarantined)  # in order, some may have to wait for their place
        assert sum(device.in_flight for device in snapshot.devices) == sum(len(w.tasks) for w in self.workers.values())
        assert self.dispatcher.is_idle == (not any(worker.tasks for worker in self.workers.values()))
        waiting = sum(device.queued for device in snapshot.devices)
        if self.rules.queue_limit is not None and waiting >= self.rules.queue_limit * len(self.live):
            assert self.dispatcher.capacity <= 0
        for device in self.dispatcher._queues.devices:
            tasks = [*device.queue, *device.suspects, *(task for task, _ in device.in_flight.values())]
            assert device.num_items == sum(task.size for task in tasks)
        if not self.is_draining:
            assert not any(self._is_hopeless(device) for device in self.live)
            self._check_nobody_waits_in_vain()

    def _check_nobody_waits_in_vain(self) -> None:
        """A worker with nothing to do means that there is nothing that it may do."""
        devices = self.dispatcher._queues.devices
        for idle in (worker for worker in self.workers.values() if worker.is_ready and not worker.tasks):
            own = devices[idle.device]
            assert not own.queue
            assert not own.suspects
            if self.rules.steal:
                at_lost = {w.device for w in self.workers.values() if not w.is_ready}
                assert all(idle.device in task.avoid for device in devices for task in device.suspects)
                assert all(
                    idle.device in device.queue[-1].avoid
                    for number, device in enumerate(devices)
                    if number in at_lost and device.queue
                )
