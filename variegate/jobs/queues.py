"""Which task waits where and goes to whom (``Queues``), and in which order results come out (``Merge``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from variegate.jobs.devices import Device, Loads, State, allocator
from variegate.jobs.messages import Forget, Instruction, Quarantine, Release, Send, Task
from variegate.jobs.options import Rules


class Queues:
    """All tasks that were not given up: waiting, or in flight at a worker.

    A queue per device, stealing, and suspects that run alone.
    """

    def __init__(self, names: Sequence[str], rules: Rules) -> None:
        self.devices = [Device(name) for name in names]
        self.loads = Loads(len(names))
        self.is_draining = False
        self.waiting = 0  # tasks, suspects among them
        self._num_suspects = 0
        self._rules = rules
        self._allocate = allocator(rules.allocation, self.loads, rules.seed)
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
        size = task.size
        if number is None:
            number = self._allocate(size, task.avoid)
        device = self.devices[number]
        self.loads.items[number] += size
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
        """What was in flight waits once more, before all others."""
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
                if device.largest is not None:
                    task = self._cut_to_fit(task, number, device.largest)
            else:
                self._hungry[number] = None
                return
            self.waiting -= 1
            if not device.in_flight:
                device.last_seen = now  # silence counts from here
            device.is_isolated = task.is_suspect
            device.in_flight[task.number] = task, now
            out.append(Send(number, device.worker, task))

    def _cut_to_fit(self, task: Task, number: int, largest: int) -> Task:
        """As much of a task as the device has room for; what is left waits for the same device."""
        if task.size <= largest:
            return task
        middle = task.start + largest
        self.loads.items[number] -= task.stop - middle
        self.add(self.new_task(middle, task.stop, avoid=task.avoid), number, is_first=True)
        return self.new_task(task.start, middle, avoid=task.avoid)

    def _steal(self, now: float, out: list[Instruction]) -> None:
        """From the end of the longest queue, by the hungry device that is the first to have it done.

        Not if that is later than its own device has done all that waits there, and not where it failed before.
        """
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
    """Takes pieces of results in any order; gives instructions to hand them out, each item once: as they come, or in
    order, where an item waits until all that were submitted before it are out."""

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
        if not pieces:
            return [Forget(task)]
        if not self._is_ordered:
            out: list[Instruction] = []
            for start, stop in pieces:
                self.outstanding -= stop - start
                out.append(Release(task, start, stop))
            return [*out, Forget(task)]
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
        submitted, waiting, pieces = self._submitted, self._waiting, self._pieces
        while submitted:
            start, last = submitted[0]
            found = waiting.pop(start, None)
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
