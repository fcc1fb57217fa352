"""Which task waits where, and which goes to whom: a queue per device, stealing, and suspects that run alone."""

from __future__ import annotations

from collections.abc import Sequence

from variegate.engine.allocation import allocator
from variegate.engine.devices import Device, Loads, State
from variegate.engine.messages import Instruction, Send, Task
from variegate.engine.rules import Rules


class Queues:
    """All tasks that were not given up: waiting, or in flight at a worker."""

    def __init__(self, names: Sequence[str], rules: Rules) -> None:
        self.devices = [Device(name) for name in names]
        self.loads = Loads(len(names))
        self.is_draining = False
        self.queued = 0
        self._num_suspects = 0
        self._rules = rules
        self._allocate = allocator(rules.allocation, self.loads, rules.seed)
        self._next_task = 0
        self._hungry: dict[int, None] = {}  # ready devices with room in flight, longest hungry first
        self._awake: list[int] = []  # of those, the ones that were given a task to wait for them

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
            self.queued += 1
        if number in self._hungry:
            self._awake.append(number)

    def add_again(self, task: Task, is_suspect: bool) -> None:
        """What was in flight waits once more, before all others."""
        self.add(self.new_task(task.start, task.stop, task.failures, is_suspect, task.avoid), is_first=True)

    def add_halves(self, task: Task, is_suspect: bool, avoid: frozenset[int], number: int | None = None) -> None:
        middle = (task.start + task.stop) // 2
        for start, stop in ((middle, task.stop), (task.start, middle)):
            self.add(self.new_task(start, stop, 0, is_suspect, avoid), number, is_first=True)

    def take_back(self, number: int, task_number: int) -> tuple[Task, float] | None:
        """A task that is not in flight any more, with the time when it was sent; None if it was not."""
        device = self.devices[number]
        found = device.in_flight.pop(task_number, None)
        if found is not None:
            self.loads.items[number] -= found[0].size
            device.is_isolated = False
        return found

    def take_all_back(self, number: int) -> list[Task]:
        """A device has no worker any more -> what was in flight."""
        device = self.devices[number]
        tasks = [task for task, _ in device.in_flight.values()]
        self.loads.items[number] -= sum(task.size for task in tasks)
        self.loads.is_ready[number] = False
        device.in_flight.clear()
        device.is_isolated = False
        self._hungry.pop(number, None)
        return tasks

    def retire(self, number: int) -> list[Task]:
        """A device is given up -> what it had, in the order in which it would have been done."""
        device = self.devices[number]
        orphans = [*self.take_all_back(number), *device.suspects, *device.queue]
        self._num_suspects -= len(device.suspects)
        self.queued -= len(device.queue)
        device.suspects.clear()
        device.queue.clear()
        device.state = State.RETIRED
        self.loads.forget(number)
        return orphans

    def feed(self, now: float) -> list[Instruction]:
        """Send to the devices that have room for more, as long as there is anything that they may take."""
        out: list[Instruction] = []
        for number in self._awake:
            self.fill(number, now, out)
        self._awake.clear()
        if self._rules.steal and (self.queued or self._num_suspects):
            for number in list(self._hungry):
                self.fill(number, now, out)
        return out

    def fill(self, number: int, now: float, out: list[Instruction]) -> None:
        """Send to a device what it has room for; it is hungry as long as some room is left."""
        device = self.devices[number]
        self._hungry.pop(number, None)
        if device.state is not State.READY or self.is_draining:
            return
        while len(device.in_flight) < self._rules.in_flight and not device.is_isolated:
            task = self._next_for(number)
            if task is None:
                self._hungry[number] = None
                return
            if not device.in_flight:
                device.last_seen = now  # silence counts from here
            device.is_isolated = task.is_suspect
            device.in_flight[task.number] = task, now
            out.append(Send(number, device.worker, task))

    def _next_for(self, number: int) -> Task | None:
        """Take a task out of a queue, for this device; None if there is none that it should do now."""
        device = self.devices[number]
        if device.suspects:
            # Nothing else is sent until what is in flight has come in and the suspects have had their turns.
            return None if device.in_flight else self._take_suspect(number)
        if device.queue:
            task = self._take_queued(number)
        else:
            stolen = self._steal(number) if self._rules.steal else None
            if stolen is None:
                return None
            task = stolen
        if device.largest is not None and task.size > device.largest and not task.is_suspect:
            middle = task.start + device.largest
            self.loads.items[number] -= task.stop - middle
            self.add(self.new_task(middle, task.stop, 0, False, task.avoid), number, is_first=True)
            task = self.new_task(task.start, middle, 0, False, task.avoid)
        return task

    def _steal(self, thief: int) -> Task | None:
        """From the end of the longest queue, unless its own device would have done it sooner."""
        loads = self.loads
        victim, seconds = loads.longest_queue()
        if victim >= 0:
            if loads.seconds(thief, self.devices[victim].queue[-1].size) > seconds:
                return None
            task = self._take_queued(victim, is_last=True)
        else:
            victim = self._suspects_for(thief)
            if victim < 0:
                return None
            task = self._take_suspect(victim, is_last=True)
        loads.items[victim] -= task.size
        loads.items[thief] += task.size
        self.devices[thief].steals += 1
        return task

    def _suspects_for(self, thief: int) -> int:
        """A device where a task waits to be alone that could be alone here; -1 if there is none."""
        if not self._num_suspects or self.devices[thief].in_flight:
            return -1
        waiting = (number for number, device in enumerate(self.devices) if device.suspects)
        return next((number for number in waiting if thief not in self.devices[number].suspects[-1].avoid), -1)

    def _take_queued(self, number: int, is_last: bool = False) -> Task:
        self.loads.queued[number] -= 1
        self.queued -= 1
        queue = self.devices[number].queue
        return queue.pop() if is_last else queue.popleft()

    def _take_suspect(self, number: int, is_last: bool = False) -> Task:
        self._num_suspects -= 1
        suspects = self.devices[number].suspects
        return suspects.pop() if is_last else suspects.popleft()
