"""Simulation of trainers fed by remote workers: their dispatchers with made-up workers, a wire and a clock."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from variegate.apps.scenario import TICKS, RandomInputs
from variegate.jobs import jobs as messages
from variegate.jobs.dispatcher import Dispatcher
from variegate.jobs.jobs import Release, Send, StartWorker, Task, TaskDone, WorkerLost, WorkerReady
from variegate.jobs.options import Rules, rows_of_part
from variegate.options.measurement import SCENARIO_OF_FEED, FeedScenario, Scenario

_READY, _MADE, _ARRIVED, _LOST, _TRAINED = range(5)
_TELL_EVERY = 5000  # events
# Batches of a loader that are under way besides those that it prefetches.
_READ_AHEAD = 1


@dataclass(frozen=True)
class FeedOutcome:
    """Of a number of workers; all of it simulated.

    Args:
        workers: of all ranks together.
        makespan: seconds from the start of the loaders to the end of the last step.
        images_per_second: that all ranks together trained on.
        waits: share of the time in which trainers waited for data or for a rank that did.
        at_work, wire, dispatcher: share of the time in which workers, wires and dispatchers were busy, on average.
        losses: of workers.
        ceiling: images per second that ``limit`` allows, if nothing ever waited for anything else.
        limit: "workers", "prefetch" (too few parts under way for all workers), "wire", "dispatcher" or "trainer".
    """

    workers: int
    makespan: float
    images_per_second: float
    waits: float
    at_work: float
    wire: float
    dispatcher: float
    losses: int
    ceiling: float
    limit: str


def simulate_feed(
    feed: FeedScenario,
    scenario: Scenario,
    workers: int,
    inputs: Callable[[Scenario], RandomInputs] = RandomInputs,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> FeedOutcome:
    """Train ``feed.steps`` steps; of ``scenario``, what it says of speeds, failures and chance.

    Raises ValueError for fewer workers than ranks, EngineError where a rank's workers are lost too often.
    """
    if workers < feed.ranks:
        got = f"got {workers} with {feed.ranks:,} ranks"
        raise ValueError(f"workers: {got}; accepted: at least as many as ranks, each of which has its own")
    return _Feeding(feed, scenario, workers, inputs).play(on_progress)


@dataclass(slots=True)
class _FeedWorker:
    rank: int
    device: int  # of its rank
    at: int  # of all
    speed: float
    number: int = -1
    lives: int = 0
    tasks: deque[Task] = field(default_factory=deque)
    since: int = 0


class _Rank:
    """``left``: rows to come of the batches under way, the first of which is wanted next."""

    def __init__(self, workers: list[_FeedWorker], in_flight: int) -> None:
        self.workers = workers
        names = [f"worker {worker.device}" for worker in workers]
        rules = Rules(ordered=False, in_flight=in_flight, max_failures=1 << 62)
        self.dispatcher = Dispatcher(names, rules)
        self.left: deque[int] = deque()
        self.taken = 0
        self.is_training = False
        # When the last of what was sent has come in, and when the dispatcher has dealt with it.
        self.wire_free = self.loop_free = 0


class _Feeding:
    def __init__(
        self, feed: FeedScenario, scenario: Scenario, workers: int, inputs: Callable[[Scenario], RandomInputs]
    ) -> None:
        self._feed, self._scenario, ranks = feed, scenario, feed.ranks
        shares = [len(range(rank, workers, ranks)) for rank in range(ranks)]
        self._rows = [rows_of_part(feed.batch_size, share, feed.prefetch) for share in shares]
        self._parts = [-(-feed.batch_size // rows) for rows in self._rows]
        self._inputs = inputs(
            replace(
                Scenario(devices=workers, tasks=feed.steps * sum(self._parts)),
                **{name: getattr(scenario, name) for name in SCENARIO_OF_FEED - {"in_flight"}},
            )
        )
        every = [_FeedWorker(at % ranks, at // ranks, at, speed) for at, speed in enumerate(self._inputs.speeds)]
        self._ranks = [_Rank(every[rank::ranks], scenario.in_flight) for rank in range(ranks)]
        self._wire_ticks = 0.0 if feed.wire is None else feed.image_bytes * 8 / (feed.wire * 1e9) * TICKS
        self._loop_ticks, self._step_ticks = feed.part_us / 1e6 * TICKS, round(feed.step_ms / 1e3 * TICKS)
        # (when, count, what, worker, its life, its task), as in ``simulate``.
        self._agenda: list[tuple[int, int, int, _FeedWorker | None, int, Task | None]] = []
        self._now = self._count = self._losses = self._training = self._steps = self._busy = 0

    def play(self, on_progress: Callable[[int, int], None]) -> FeedOutcome:
        feed = self._feed
        for rank in self._ranks:
            self._obey(rank, rank.dispatcher.start(0.0))
            self._begin_batches(rank)
        while self._steps < feed.steps:
            self._now, count, what, worker, life, task = heapq.heappop(self._agenda)
            if worker is None:
                self._steps, self._training = self._steps + 1, 0
                for rank in self._ranks:
                    rank.is_training = False
                    self._take(rank)
            elif life == worker.number or what == _ARRIVED:
                self._handle(what, worker, life, task)
            if count % _TELL_EVERY == 0:
                on_progress(self._steps, feed.steps)
        workers, spent, ceilings = len(self._inputs.speeds), self._now, self._ceilings()
        limit = min(ceilings, key=ceilings.__getitem__)
        return FeedOutcome(
            workers,
            spent / TICKS,
            feed.steps * feed.batch_size * feed.ranks / spent * TICKS,
            1.0 - feed.steps * self._step_ticks / spent,
            self._busy / (workers * spent),
            feed.steps * feed.batch_size * self._wire_ticks / spent,
            feed.steps * sum(self._parts) * self._loop_ticks / (feed.ranks * spent),
            self._losses,
            ceilings[limit],
            limit,
        )

    def _ceilings(self) -> dict[str, float]:
        """Images per second of all ranks, which go at the pace of the slowest."""
        feed, ceilings = self._feed, dict[str, float]()
        if self._step_ticks:
            ceilings["trainer"] = feed.batch_size / self._step_ticks * TICKS
        if self._wire_ticks:
            ceilings["wire"] = TICKS / self._wire_ticks
        if self._loop_ticks:
            ceilings["dispatcher"] = feed.batch_size / max(self._parts) / self._loop_ticks * TICKS
        for rank, parts in zip(self._ranks, self._parts, strict=True):
            speeds = sorted((worker.speed for worker in rank.workers), reverse=True)
            most = parts * (feed.prefetch + _READ_AHEAD)
            kind = "workers" if len(speeds) <= most else "prefetch"
            ceilings[kind] = min(ceilings.get(kind, math.inf), sum(speeds[:most]) * feed.worker_rate)
        return {kind: per_rank * feed.ranks for kind, per_rank in ceilings.items()}

    def _handle(self, what: int, worker: _FeedWorker, life: int, task: Task | None) -> None:
        rank = self._ranks[worker.rank]
        event: messages.Event | None = None
        if what == _MADE:
            task = worker.tasks.popleft()
            self._busy += self._now - worker.since
            if worker.tasks:
                self._work(worker)
            rank.wire_free = max(rank.wire_free, self._now) + round(task.size * self._wire_ticks)
            rank.loop_free = max(rank.loop_free, rank.wire_free) + round(self._loop_ticks)
            self._plan(rank.loop_free - self._now, _ARRIVED, worker, task)
        elif what == _ARRIVED:
            assert task is not None
            event = TaskDone(worker.device, life, task.number)
        elif what == _READY:
            if self._scenario.failure_rate:
                self._plan(self._inputs.uptime(worker.at, worker.lives - 1), _LOST, worker)
            event = WorkerReady(worker.device, life)
        else:
            self._losses += 1
            self._busy += self._now - worker.since if worker.tasks else 0
            worker.tasks.clear()
            worker.number = -1
            event = WorkerLost(worker.device, life, "lost by chance")
        if event is not None:
            self._obey(rank, rank.dispatcher.handle(event, self._now / TICKS))
            self._take(rank)

    def _take(self, rank: _Rank) -> None:
        """Begin the next step, if its batch is there."""
        if rank.is_training or rank.left[0]:
            return
        rank.left.popleft()
        rank.is_training, rank.taken = True, rank.taken + 1
        self._begin_batches(rank)
        self._training += 1
        if self._training == len(self._ranks):
            self._plan(self._step_ticks, _TRAINED, None)

    def _begin_batches(self, rank: _Rank) -> None:
        size, rows = self._feed.batch_size, self._rows[rank.workers[0].rank]
        while len(rank.left) <= self._feed.prefetch - 1 + _READ_AHEAD:
            first = (rank.taken + len(rank.left)) * size
            rank.left.append(size)
            for start in range(first, first + size, rows):
                self._obey(rank, rank.dispatcher.submit(start, min(start + rows, first + size), self._now / TICKS))

    def _obey(self, rank: _Rank, instructions: list[messages.Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Send):
                worker = rank.workers[instruction.device]
                worker.tasks.append(instruction.task)
                if len(worker.tasks) == 1:
                    self._work(worker)
            elif isinstance(instruction, Release):
                batch = instruction.start // self._feed.batch_size - rank.taken
                rank.left[batch] -= instruction.stop - instruction.start
            elif isinstance(instruction, StartWorker):
                worker = rank.workers[instruction.device]
                worker.number = instruction.worker
                self._plan(round(self._scenario.restart * TICKS) if worker.lives else 0, _READY, worker)
                worker.lives += 1

    def _work(self, worker: _FeedWorker) -> None:
        task, rank = worker.tasks[0], worker.rank
        batch, row = divmod(task.start, self._feed.batch_size)
        part = sum(self._parts[:rank]) * self._feed.steps + batch * self._parts[rank] + row // self._rows[rank]
        worker.since = self._now
        # Batches begun beyond the last step are as the first.
        work = self._inputs.work[part % len(self._inputs.work)] * task.size / self._feed.worker_rate
        self._plan(math.ceil(work / worker.speed), _MADE, worker)

    def _plan(self, ticks: int, what: int, worker: _FeedWorker | None, task: Task | None = None) -> None:
        self._count += 1
        life = -1 if worker is None else worker.number
        heapq.heappush(self._agenda, (self._now + ticks, self._count, what, worker, life, task))


def describe_feed(feed: FeedScenario, scenario: Scenario) -> list[str]:
    """Two lines: what is trained, and what feeds it."""
    ranks = "1 rank" if feed.ranks == 1 else f"{feed.ranks:,} ranks"
    step = f"steps of {feed.step_ms:g} ms" if feed.step_ms else "steps that take no time"
    wire = "a wire without limit" if feed.wire is None else f"{feed.wire:g} Gbit/s per rank"
    wrong = "no failures"
    if scenario.failure_rate:
        wrong = f"a worker is lost {scenario.failure_rate:g} times an hour, back after {scenario.restart:g} s"
    return [
        f"{ranks}, batches of {feed.batch_size:,}, {feed.steps:,} {step}, prefetch {feed.prefetch}; {wrong}",
        f"a worker makes {feed.worker_rate:g} images/s; {feed.image_bytes:,} bytes per image over {wire}; "
        f"{feed.part_us:g} us of the loader's process per part",
    ]
