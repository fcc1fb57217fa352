"""Strategies of sharing work among devices, compared on the engine's own scheduler under a virtual clock.

Each allocation (to the next idle device, round robin, random) runs with and without taking over: an idle device takes a
task from the end of the longest queue. Workers are made up: devices have speeds, tasks have lengths, and workers fail
at the same moments under every strategy. Nothing is measured on this machine, and the result depends on the seed only::

    python -m benchmarks.simulate                    the strategies of docs/results/engine.md
    python -m benchmarks.simulate --devices 64 --tasks 20000
"""

from __future__ import annotations

import argparse
import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from variegate.workers.protocol import TaskDone, WorkerEvent, WorkerLost, WorkerReady
from variegate.workers.scheduler import (
    ALLOCATIONS,
    Action,
    Allocation,
    Finish,
    Scheduler,
    SchedulerSettings,
    Send,
    StartWorker,
    Task,
)


@dataclass(frozen=True)
class Scenario:
    """Devices, work and failures. ``speeds`` are repeated in turn; times are in seconds."""

    title: str
    devices: int = 8
    tasks: int = 2000
    speeds: tuple[float, ...] = (1.0,)
    task_seconds: float = 1.0
    variation: float = 0.2  # standard deviation of the logarithm of task times
    queue: int | None = 8  # tasks that wait per device; None assigns all tasks at once
    in_flight: int = 2
    failures_per_hour: float = 0.0  # of a worker
    restart: float = 60.0
    seed: int = 0


SCENARIOS = (
    Scenario("Equal devices"),
    Scenario("Two of eight devices have a quarter of the speed", speeds=(1.0, 1.0, 1.0, 0.25)),
    Scenario("The same, all tasks assigned at once", speeds=(1.0, 1.0, 1.0, 0.25), queue=None),
    Scenario(
        "Workers fail every two minutes and return a minute later",
        failures_per_hour=30.0,
    ),
)


@dataclass(frozen=True)
class Outcome:
    """Result of a strategy. ``busy``: share of the time in which devices worked, by device."""

    allocation: Allocation
    steal: bool
    makespan: float
    busy: tuple[float, ...]
    steals: int
    losses: int
    items: int

    @property
    def name(self) -> str:
        return f"{self.allocation}, {'taking over' if self.steal else 'own queue only'}"


class Chance:
    """Random numbers of a scenario, the same for every strategy."""

    def __init__(self, scenario: Scenario) -> None:
        rng = np.random.default_rng(scenario.seed)
        self.speeds: list[float] = np.resize(np.array(scenario.speeds), scenario.devices).tolist()
        mean = -(scenario.variation**2) / 2
        factors = rng.lognormal(mean, scenario.variation, scenario.tasks)
        self.work: list[float] = (scenario.task_seconds * factors).tolist()
        self._uptimes = [self._draw_uptimes(scenario, device) for device in range(scenario.devices)]

    @staticmethod
    def _draw_uptimes(scenario: Scenario, device: int) -> Iterator[float]:
        rng = np.random.default_rng((scenario.seed, device))
        while True:
            yield rng.exponential(3600 / scenario.failures_per_hour)

    def uptime(self, device: int) -> float:
        """Return the seconds until the device's next worker fails."""
        return next(self._uptimes[device])

    def ideal_seconds(self) -> float:
        """Return the seconds if all devices worked all the time and none failed."""
        return sum(self.work) / sum(self.speeds)


@dataclass
class Worker:
    """The current worker of a device, with the tasks that it was sent. ``since``: the first of them began."""

    number: int = -1
    lives: int = 0
    tasks: deque[Task] = field(default_factory=deque)
    since: float = 0.0
    busy: float = 0.0


class Simulation:
    """The scheduler with made-up workers."""

    def __init__(self, scenario: Scenario, allocation: Allocation, steal: bool) -> None:
        rules = SchedulerSettings(
            allocation=allocation,
            steal=steal,
            ordered=False,
            in_flight=scenario.in_flight,
            queue_limit=scenario.queue,
            max_failures=1 << 62,  # workers fail, and no task is to blame
            seed=scenario.seed,
        )
        names = [f"device {number}" for number in range(scenario.devices)]
        self._scenario = scenario
        self._allocation = allocation
        self._steal = steal
        self._chance = Chance(scenario)
        self._scheduler = Scheduler(names, rules)
        self._workers = [Worker() for _ in names]
        # (time, order of planning, device, event)
        self._agenda: list[tuple[float, int, int, WorkerEvent]] = []
        self._order = count()
        self._now = 0.0
        self._submitted = 0
        self._items = 0
        self._losses = 0

    def run(self) -> Outcome:
        """Run until every task is done."""
        self._apply(self._scheduler.start(0.0))
        self._submit()
        while not self._scheduler.is_finished:
            self._now, _, device, event = heapq.heappop(self._agenda)
            worker = self._workers[device]
            if event.worker == worker.number:
                self._update(worker, device, event)
                self._apply(self._scheduler.handle(event, self._now))
                self._submit()
        busy = tuple(worker.busy / self._now for worker in self._workers)
        steals = sum(device.steals for device in self._scheduler.snapshot().devices)
        return Outcome(
            self._allocation,
            self._steal,
            self._now,
            busy,
            steals,
            self._losses,
            self._items,
        )

    def _update(self, worker: Worker, device: int, event: WorkerEvent) -> None:
        if isinstance(event, WorkerReady):
            if self._scenario.failures_per_hour:
                lost = WorkerLost(worker.number, "failed by chance")
                self._plan(self._chance.uptime(device), device, lost)
            return
        if worker.tasks:
            worker.busy += self._now - worker.since
        if isinstance(event, WorkerLost):
            self._losses += 1
            worker.tasks.clear()
            worker.number = -1
        else:
            worker.tasks.popleft()
            if worker.tasks:
                self._begin(device)

    def _apply(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                worker = self._workers[action.device]
                worker.tasks.append(action.task)
                if len(worker.tasks) == 1:
                    self._begin(action.device)
            elif isinstance(action, Finish):
                self._items += action.task.stop - action.task.start
            elif isinstance(action, StartWorker):
                worker = self._workers[action.device]
                worker.number = action.worker
                delay = self._scenario.restart if worker.lives else 0.0
                worker.lives += 1
                self._plan(delay, action.device, WorkerReady(action.worker))

    def _begin(self, device: int) -> None:
        """Begin the first of the worker's tasks."""
        worker = self._workers[device]
        task = worker.tasks[0]
        worker.since = self._now
        seconds = self._chance.work[task.start] / self._chance.speeds[device]
        self._plan(seconds, device, TaskDone(worker.number, task.number))

    def _submit(self) -> None:
        """Submit as many tasks, of one item each, as the scheduler takes."""
        while self._submitted < self._scenario.tasks and self._scheduler.capacity > 0:
            start = self._submitted
            self._submitted += 1
            self._apply(self._scheduler.submit(start, start + 1, None, self._now))
            if self._submitted == self._scenario.tasks:
                self._scheduler.close()

    def _plan(self, seconds: float, device: int, event: WorkerEvent) -> None:
        heapq.heappush(self._agenda, (self._now + seconds, next(self._order), device, event))


def simulate(scenario: Scenario) -> list[Outcome]:
    """Run the scenario with each allocation, with and without taking over."""
    return [Simulation(scenario, allocation, steal).run() for allocation in ALLOCATIONS for steal in (True, False)]


def table_of(scenario: Scenario) -> str:
    """Return the outcomes of a scenario as a Markdown table."""
    ideal = Chance(scenario).ideal_seconds()
    lines = [
        f"### {scenario.title}",
        "",
        f"{scenario.devices} devices, {scenario.tasks:,} tasks. Ideal (all devices always at work): {ideal:,.0f} s.",
        "",
        "| strategy | seconds | of the ideal | devices at work | least | taken over | failures |",
        "|---|---|---|---|---|---|---|",
    ]
    for outcome in simulate(scenario):
        ratio = outcome.makespan / ideal
        mean = sum(outcome.busy) / len(outcome.busy)
        cells = f"{outcome.makespan:,.0f} | {ratio:.2f}x | {mean:.0%} | {min(outcome.busy):.0%}"
        lines.append(f"| {outcome.name} | {cells} | {outcome.steals:,} | {outcome.losses:,} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare strategies of sharing work among devices.")
    parser.add_argument("--devices", type=int, default=Scenario.devices)
    parser.add_argument("--tasks", type=int, default=Scenario.tasks)
    parser.add_argument("--seed", type=int, default=Scenario.seed)
    typed = parser.parse_args()
    for scenario in SCENARIOS:
        print(table_of(replace(scenario, devices=typed.devices, tasks=typed.tasks, seed=typed.seed)))
        print()


if __name__ == "__main__":
    main()
