"""``python -m benchmarks.run_dispatcher [--devices 2 8 64 1024]``: what the dispatcher itself costs, per task.

Workers are played by a loop that reports the tasks in the order in which they were sent, so that nothing but the
dispatcher takes time. All its work is counted: submission, queues, stealing, the merge in order, back-pressure.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import deque

from benchmarks import machine
from variegate.jobs.dispatcher import Dispatcher
from variegate.jobs.jobs import Instruction, Release, Send, StartWorker, TaskDone, WorkerReady
from variegate.jobs.options import ALLOCATIONS, Allocation, Rules

TARGET = 20.0  # microseconds per task
ITEMS = 16  # of a task


class WrongError(AssertionError):
    """What came out was not what went in, so there is no speed."""


class Players:
    """Do as told, at once; and look whether everything comes out once and in order."""

    def __init__(self) -> None:
        self.starting: deque[StartWorker] = deque()
        self.working: deque[Send] = deque()
        self.released = 0

    def obey(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Send):
                self.working.append(instruction)
            elif isinstance(instruction, Release):
                if instruction.start != self.released:
                    raise WrongError(f"item {instruction.start} came out after item {self.released - 1}")
                self.released = instruction.stop
            elif isinstance(instruction, StartWorker):
                self.starting.append(instruction)


def play(devices: int, allocation: Allocation, steal: bool, tasks: int) -> float:
    """Submit and work off ``tasks`` tasks, with as many waiting as the dispatcher takes -> microseconds for each.

    Of the processor, so that what else runs on a machine counts for less. Raises WrongError.
    """
    players = Players()
    now, submitted, done = 0.0, 0, 0
    before = time.process_time()
    dispatcher = Dispatcher([f"cpu:{number}" for number in range(devices)], Rules(allocation=allocation, steal=steal))
    players.obey(dispatcher.start(now))
    while players.starting:
        start = players.starting.popleft()
        players.obey(dispatcher.handle(WorkerReady(start.device, start.worker), now))
    while not dispatcher.is_finished:
        now += 0.001
        while submitted < tasks and dispatcher.capacity > 0:
            players.obey(dispatcher.submit(submitted * ITEMS, (submitted + 1) * ITEMS, now))
            submitted += 1
        if submitted == tasks:
            dispatcher.close()
        if players.working:
            sent = players.working.popleft()
            players.obey(dispatcher.handle(TaskDone(sent.device, sent.worker, sent.task.number), now))
            done += 1
    spent = time.process_time() - before
    if (players.released, done, submitted) != (tasks * ITEMS, tasks, tasks):
        raise WrongError(f"{players.released} items of {tasks * ITEMS} came out, of {done} tasks")
    return spent / tasks * 1e6


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 when a check failed; speed itself never fails a run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_dispatcher", description=__doc__)
    parser.add_argument("--devices", type=int, nargs="+", default=[2, 8, 64, 1024], help="a row for each")
    parser.add_argument("--tasks", type=int, default=50_000, help="of a run (50000)")
    parser.add_argument("--repeats", type=int, default=5, help="timed runs, of which the median is shown (5)")
    options = parser.parse_args(arguments)
    print(", ".join(f"{name}: {value}" for name, value in machine.describe().items()))
    print("microseconds of the processor per task: median (lowest - highest); everything came out once and in order")
    print("devices  allocation    stealing          without")
    worst = 0.0
    for devices in options.devices:
        for allocation in ALLOCATIONS:
            cells = []
            for steal in (True, False):
                try:
                    found = [play(devices, allocation, steal, options.tasks) for _ in range(options.repeats)]
                except WrongError as error:
                    print(f"FAILED {devices} devices, {allocation}: {error}; no speed is reported")
                    return 1
                worst = max(worst, statistics.median(found))
                cells.append(f"{statistics.median(found):4.1f} ({min(found):.1f} - {max(found):.1f})")
            print(f"{devices:7,}  {allocation:12}  {cells[0]:17} {cells[1]}", flush=True)
    print(f"asked for: at most {TARGET:g}; the slowest is {worst:.1f}: {'met' if worst <= TARGET else 'missed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
