"""Simulation of an engine: the dispatcher with made-up workers and a clock of its own, and a plot of the outcome."""

from __future__ import annotations

import heapq
import math
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.apps.plotting import FRAME, GREEN, INK, PALE_BLUE, RED, drawn_figure, label_rows
from variegate.apps.scenario import TICKS, RandomInputs, Strategy, seconds
from variegate.jobs import jobs as messages
from variegate.jobs.dispatcher import Dispatcher
from variegate.jobs.jobs import Release, Send, StartWorker, Task, TaskDone, WorkerReady
from variegate.options.measurement import Scenario

# Parts of the time from the beginning to the end for which it is said how many devices were at work.
BINS = 240

_READY, _DONE, _LOST = range(3)
_TELL_EVERY = 5000  # events


@dataclass(frozen=True)
class Outcome:
    """Of one strategy; all of it simulated.

    Args:
        makespan: seconds until everything was done.
        utilisation: by device: the share of that time that it was at work.
        at_work: by part of the makespan: the share of the devices that were at work.
        steals: tasks that were taken from another device's queue.
        losses: of workers.
        lost: seconds of work, on a device of speed 1, that were done in vain.
        retired: devices that were given up.
        items: that were made.
    """

    strategy: Strategy
    makespan: float
    utilisation: npt.NDArray[np.float64]
    at_work: npt.NDArray[np.float64]
    steals: int
    losses: int
    lost: float
    retired: int
    items: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy.name,
            "makespan": self.makespan,
            "utilisation_mean": float(self.utilisation.mean()),
            "utilisation_min": float(self.utilisation.min()),
            **{name: getattr(self, name) for name in ("steals", "losses", "lost", "retired", "items")},
        }


class BusyTimes:
    """When which device was at work, in ticks."""

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self._starts, self._stops, self._by = array("q"), array("q"), array("q")

    def add(self, device: int, start: int, stop: int) -> None:
        self._starts.append(start)
        self._stops.append(stop)
        self._by.append(device)

    def utilisation(self, makespan: int) -> npt.NDArray[np.float64]:
        lengths = np.frombuffer(self._stops, np.int64) - np.frombuffer(self._starts, np.int64)
        return np.bincount(np.frombuffer(self._by, np.int64), lengths, self._devices) / makespan

    def at_work(self, makespan: int) -> npt.NDArray[np.float64]:
        """The share of the devices at work, in each of ``BINS`` parts of the time."""
        edges = np.linspace(0, makespan, BINS + 1)
        done = _passed(self._starts, edges) - _passed(self._stops, edges)
        return np.diff(done) / (self._devices * makespan / BINS)


def _passed(moments: array[int], edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """At each edge, the time since each of the moments before it, in sum."""
    in_order = np.sort(np.frombuffer(moments, np.int64))
    sums = np.concatenate([[0.0], np.cumsum(in_order, dtype=np.float64)])
    before = np.searchsorted(in_order, edges)
    return before * edges - sums[before]


def simulate(
    scenario: Scenario,
    strategy: Strategy,
    inputs: RandomInputs | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """Play a scenario to its end; ``on_progress`` hears how many items of how many are made.

    ``inputs`` may be shared by strategies. Raises EngineError where workers are lost so often that all devices are
    given up.
    """
    return _Simulation(scenario, strategy, inputs or RandomInputs(scenario)).play(on_progress)


@dataclass(slots=True)
class _Worker:
    """Works through what it is sent, a task at a time."""

    device: int
    number: int = -1  # of the life that it is in
    lives: int = 0
    tasks: deque[Task] = field(default_factory=deque)  # the first is being worked on ...
    since: int = 0  # ... since then


class _Simulation:
    def __init__(self, scenario: Scenario, strategy: Strategy, inputs: RandomInputs) -> None:
        self._scenario, self._strategy, self._inputs = scenario, strategy, inputs
        names = [f"device {number}" for number in range(scenario.devices)]
        self._dispatcher = Dispatcher(names, strategy.rules(scenario))
        self._workers = [_Worker(number) for number in range(scenario.devices)]
        self._spans = BusyTimes(scenario.devices)
        # (when, count, what, device, worker): what happens next is first, and of two at a time what was known first.
        self._agenda: list[tuple[int, int, int, int, int]] = []
        self._now = self._count = self._submitted = self._items = self._losses = self._retired = 0
        self._lost = 0.0

    def play(self, on_progress: Callable[[int, int], None]) -> Outcome:
        dispatcher, agenda = self._dispatcher, self._agenda
        total = self._scenario.tasks * self._scenario.task_items
        self._obey(dispatcher.start(0.0))
        self._submit()
        while not dispatcher.is_finished:
            self._now, count, what, device, number = heapq.heappop(agenda)
            worker = self._workers[device]
            if number != worker.number:
                continue  # of an earlier life
            if what == _DONE:
                task = worker.tasks.popleft()
                self._spans.add(device, worker.since, self._now)
                if worker.tasks:
                    self._begin(worker)
                self._obey(dispatcher.handle(TaskDone(device, number, task.number), self._now / TICKS))
            elif what == _READY:
                if self._scenario.failure_rate:
                    self._plan(self._inputs.uptime(device, worker.lives - 1), _LOST, worker)
                self._obey(dispatcher.handle(WorkerReady(device, number), self._now / TICKS))
            else:
                self._losses += 1
                if worker.tasks:
                    self._spans.add(device, worker.since, self._now)
                    self._lost += (self._now - worker.since) * self._inputs.speeds[device]
                    worker.tasks.clear()
                worker.number = -1
                self._obey(dispatcher.handle(messages.WorkerLost(device, number, "lost by chance"), self._now / TICKS))
            self._submit()
            if count % _TELL_EVERY == 0:
                on_progress(self._items, total)
        return Outcome(
            self._strategy,
            self._now / TICKS,
            self._spans.utilisation(self._now),
            self._spans.at_work(self._now),
            sum(device.steals for device in dispatcher.snapshot().devices),
            self._losses,
            self._lost / TICKS,
            self._retired,
            self._items,
        )

    def _submit(self) -> None:
        """As much as the dispatcher takes."""
        tasks, size = self._scenario.tasks, self._scenario.task_items
        while self._submitted < tasks and self._dispatcher.capacity > 0:
            start = self._submitted * size
            self._submitted += 1
            self._obey(self._dispatcher.submit(start, start + size, self._now / TICKS))
            if self._submitted == tasks:
                self._dispatcher.close()

    def _obey(self, instructions: list[messages.Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Send):
                worker = self._workers[instruction.device]
                worker.tasks.append(instruction.task)
                if len(worker.tasks) == 1:
                    self._begin(worker)
            elif isinstance(instruction, Release):
                self._items += instruction.stop - instruction.start
            elif isinstance(instruction, StartWorker):
                worker = self._workers[instruction.device]
                worker.number = instruction.worker
                # The first are there at once.
                self._plan(round(self._scenario.restart * TICKS) if worker.lives else 0, _READY, worker)
                worker.lives += 1
            elif isinstance(instruction, messages.Retire):
                self._retired += 1

    def _begin(self, worker: _Worker) -> None:
        task, size = worker.tasks[0], self._scenario.task_items
        work = self._inputs.work[task.start // size] * task.size / size
        worker.since = self._now
        # Never less than the work would take, so that nobody is faster than the ideal.
        self._plan(math.ceil(work / self._inputs.speeds[worker.device]), _DONE, worker)

    def _plan(self, ticks: int, what: int, worker: _Worker) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (self._now + ticks, self._count, what, worker.device, worker.number))


def draw_plot(outcomes: Sequence[Outcome], ideal: float, lines: Sequence[str], path: Path) -> None:
    """Write a PNG. Raises PlotError without matplotlib, OSError where the file cannot be written."""
    end = max(outcome.makespan for outcome in outcomes)
    height = 0.75 + 0.62 * len(outcomes)
    with drawn_figure(path, 10.6, height, _title(outcomes, ideal), lines) as figure:
        makespans, work = figure.subplots(1, 2, sharey=True, width_ratios=[0.41, 0.59])
        _draw_makespans(makespans, outcomes, ideal, end)
        _draw_work(work, outcomes, ideal, end)
        label_rows(makespans, [outcome.strategy.name for outcome in outcomes])
        for axes in (makespans, work):
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g} s" if value else "0")
            axes.locator_params(axis="x", nbins=5)
            axes.set_xticks([tick for tick in axes.get_xticks() if tick <= 1.02 * end])
            axes.grid(axis="x")
            axes.spines["left"].set_visible(True)
        makespans.set_xlim(0, 1.16 * end)
        work.set_xlim(0, 1.02 * end)


def _draw_makespans(axes: Any, outcomes: Sequence[Outcome], ideal: float, end: float) -> None:
    for row, outcome in enumerate(outcomes):
        axes.barh(row, outcome.makespan, height=0.62, color=_colour(outcome), zorder=2)
        axes.text(outcome.makespan + 0.015 * end, row, f"{outcome.makespan / ideal:.2f}x", va="center", zorder=4)
    axes.axvline(ideal, color=RED, lw=1.4, zorder=3)
    axes.set_title(f"simulated time; the line is the ideal, {seconds(ideal)}")


def _draw_work(axes: Any, outcomes: Sequence[Outcome], ideal: float, end: float) -> None:
    for row, outcome in enumerate(outcomes):
        floor = row + 0.36
        axes.plot([0, end], [floor, floor], color=FRAME, lw=0.8, zorder=1)
        times = np.linspace(0, outcome.makespan, BINS + 1)
        heights = floor - 0.76 * np.clip(np.append(outcome.at_work, outcome.at_work[-1]), 0, 1)
        axes.fill_between(times, floor, heights, step="post", color=_colour(outcome), lw=0, zorder=2)
        axes.plot([outcome.makespan] * 2, [floor, floor - 0.76], color=INK, lw=0.9, zorder=3)
        axes.annotate(f"{outcome.utilisation.mean():.0%}", (1.01, row), xycoords=("axes fraction", "data"), va="center")
    axes.axvline(ideal, color=RED, lw=0.9, alpha=0.6, zorder=4)
    axes.set_title("devices at work, over the same time, and their mean")


def _colour(outcome: Outcome) -> str:
    return GREEN if outcome.strategy.steal else PALE_BLUE


def _title(outcomes: Sequence[Outcome], ideal: float) -> str:
    best, worst = (choose(outcomes, key=lambda outcome: outcome.makespan) for choose in (min, max))
    title = f"{best.strategy.name} takes {best.makespan / ideal:.2f}x the ideal"
    return title + (f", {worst.strategy.name} {worst.makespan / ideal:.2f}x" if len(outcomes) > 1 else "")
