"""Workers of a loader on other devices, in other processes and on other machines, kept from epoch to epoch."""

from __future__ import annotations

import os
import threading
import uuid
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import count
from queue import Queue
from typing import Any

import numpy as np

from variegate.augmenter.augmenter import Augmenter
from variegate.errors import DecodeError
from variegate.jobs.dispatcher import Dispatcher
from variegate.jobs.drive import FailedItem, drive
from variegate.jobs.engine import augmenter_name, choose_devices, cores_each, kind_of
from variegate.jobs.jobs import Snapshot, WorkerPool
from variegate.jobs.local_workers import ProcessPool, ThreadPool
from variegate.jobs.options import Rules
from variegate.jobs.ray_workers import RayPool, connect
from variegate.jobs.warm import make_ready
from variegate.loader.making import BatchMaker, BatchResult, MadeRows, settle
from variegate.loader.observer import StageTimes
from variegate.loader.options import ConditionsOfIds, LoaderOptions, RayWorkers
from variegate.loader.parts import MadePart, Part, PartSpec, joined
from variegate.loader.ranks import processes_here
from variegate.loader.reading import Plan, Steps
from variegate.threads import Threads, at_fork
from variegate.transforms import Compose, Identity, Normalize, ToDtype, Transform

# Fewer rows cost more to hand over than they gain by being made side by side.
_FEWEST_ROWS = 8
# A request for a batch waits so long at most while others are being made.
_TURN_SECONDS = 0.01
_JOIN_SECONDS = 10.0
# How many samples are sent to stand in for one that cannot be read.
_CANDIDATES = 64


class _Stopped(Exception):
    """Nobody wants any more of what the workers do."""


class _Making:
    """A batch of which parts are under way. ``base``: the number of its first row among those of all batches."""

    def __init__(self, base: int, parts: Sequence[Part], names: Callable[[int], str]) -> None:
        self.base, self.parts, self.names = base, parts, names
        self.future: Future[list[MadePart]] = Future()
        self.is_dropped = False
        self._left = self._rows = sum(map(len, parts))
        self._made: dict[int, MadePart] = {}

    @property
    def stop(self) -> int:
        return self.base + self._rows

    def add(self, start: int, made: MadePart) -> bool:
        """Rows from ``start`` on, among those of all batches -> whether that is all."""
        self._made[start] = made
        self._left -= len(made)
        if self._left:
            return False
        self.future.set_result([self._made[place] for place in sorted(self._made)])
        return True

    def lose(self, item: int, reason: str) -> bool:
        """A row that no worker could make."""
        start = self.base
        for part in self.parts:
            if item < start + len(part):
                break
            start += len(part)
        row = int(part.numbers[item - start])
        error = DecodeError(self.names(row), reason)
        made = MadeRows([None], [None], {row: error}, set())
        return self.add(item, MadePart(1, part.numbers[item - start :][:1], made))


class Fleet:
    """Workers that make parts of batches: started at the first, and ended by ``close``.

    ``start``: makes the pool of workers, in the thread that drives them.
    """

    def __init__(self, devices: Sequence[str], rules: Rules, start: Callable[[], WorkerPool]) -> None:
        self.devices, self._rules, self._start = devices, rules, start
        self.snapshot: Snapshot | None = None
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, parts: Sequence[Part], names: Callable[[int], str]) -> _Making:
        """Begin to make a batch, or what stands in for rows of one; ``names``: of its rows."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._queue: Queue[tuple[_Making, int, Part] | None] = Queue()
                self._making: dict[int, _Making] = {}
                self._next = 0
                self._is_stopped = threading.Event()
                self._thread = threading.Thread(target=self._run, name="variegate-workers", daemon=True)
                self._thread.start()
            making = self._making[self._next] = _Making(self._next, parts, names)
            for part in parts:
                self._queue.put((making, self._next, part))
                self._next += len(part)
        return making

    def close(self) -> None:
        """End the workers, whatever they do. Returns in bounded time."""
        if (thread := self._thread) is not None and thread.is_alive():
            self._is_stopped.set()
            self._queue.put(None)
            if thread is not threading.current_thread():
                thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        queue, making = self._queue, self._making
        error: BaseException
        try:
            dispatcher = Dispatcher(self.devices, self._rules)
            for made in drive(
                self._start(),
                dispatcher,
                self._feed(queue, making),
                on_turn=self._on_turn,
                has_room=lambda: not queue.empty(),
                turn_seconds=_TURN_SECONDS,
            ):
                item = made.item if isinstance(made, FailedItem) else made.start
                starts = list(making)
                batch = making[starts[max(bisect_right(starts, item) - 1, 0)]] if starts else None
                if batch is None or not batch.base <= item < batch.stop:
                    continue  # it was dropped
                if isinstance(made, FailedItem):
                    is_whole = batch.lose(made.item, made.reason)
                else:
                    part: Any = made.outputs
                    is_whole = batch.add(made.start, part)
                if is_whole:
                    del making[batch.base]
            error = RuntimeError("the loader's workers were ended")
        except _Stopped:
            error = RuntimeError("the loader's workers were ended")
        except BaseException as caught:
            error = caught
        with self._lock:
            left, self._thread = list(making.values()), None
        for batch in left:
            batch.future.set_exception(error)

    def _feed(self, queue: Queue[Any], making: dict[int, _Making]) -> Generator[tuple[int, int, Part], None, None]:
        while (given := queue.get()) is not None:
            batch, start, part = given
            if not batch.is_dropped:
                yield start, start + len(part), part
            else:
                making.pop(batch.base, None)

    def _on_turn(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        if self._is_stopped.is_set():
            raise _Stopped


@dataclass(frozen=True)
class Places:
    """Devices of a loader's workers, and how workers start there. ``fewest``: of them that must be ready."""

    options: LoaderOptions
    devices: tuple[str, ...]
    num_threads: int
    fewest: int

    @classmethod
    def find(cls, options: LoaderOptions, num_threads: int | None) -> Places:
        """``num_threads``: of each worker; None shares out the cores. Raises ValueError, ImportError without Ray."""
        workers = options.workers
        ray = connect(workers.address) if isinstance(workers, RayWorkers) else None
        count = None if isinstance(workers, str) else workers.count
        fewest, most = count if isinstance(count, tuple) else (count, count)
        if options.devices is not None and count is not None:
            raise ValueError(f"devices: got {options.devices!r} with count={count!r}; accepted: one of the two")
        if most is None or (options.device not in ("auto", "cpu") and most == 1):
            kinds = options.devices or (options.device if options.device != "cpu" else "cpu:0")
            devices = choose_devices(kinds, ray)
        elif isinstance(workers, RayWorkers):
            kind = "cuda" if workers.gpus else "cpu"
            devices = tuple(f"{kind}:{place}" for place in range(most))
        else:
            found = choose_devices("auto") if options.device == "auto" else ("cpu:0",)
            is_gpu = kind_of(found[0]) == "cuda"
            devices = found[:most] if is_gpu else tuple(f"cpu:{place}" for place in range(most))
            if options.device not in ("auto", "cpu") or len(devices) < most:
                got = f"got {most} with device={options.device!r} and {len(found)} GPUs"
                raise ValueError(f"count: {got}; accepted: as many as there are, device='cpu', or devices=[...]")
        if num_threads is None:
            cpus = workers.cpus if isinstance(workers, RayWorkers) else None
            num_threads = cpus or max(1, cores_each(fewest or len(devices), ray) // (1 if ray else processes_here()))
        return cls(options, devices, num_threads, fewest or len(devices))

    @property
    def host_device(self) -> str:
        """Where batches arrive."""
        return "reference" if kind_of(self.devices[0]) == "reference" else "cpu"

    @property
    def are_threads(self) -> bool:
        return self.options.workers == "thread"

    def fleet(self, spec: PartSpec) -> Fleet:
        workers, threads = self.options.workers, self.num_threads
        names = [augmenter_name(name) for name in self.devices]

        def start() -> WorkerPool:
            if isinstance(workers, RayWorkers):
                is_asked = workers.gpus or workers.cpus
                needs = {"num_gpus": workers.gpus, "num_cpus": workers.cpus or threads} if is_asked else None
                return RayPool(spec, names, threads, workers.address, needs)
            if kind_of(names[0]) == "cpu":
                make_ready(spec.has_targets)
            return (ThreadPool if self.are_threads else ProcessPool)(spec, names, threads)

        enough = self.fewest if self.fewest < len(self.devices) else Rules.enough
        return Fleet(self.devices, Rules(ordered=False, enough=enough), start)


def split_wire(options: LoaderOptions, is_far: bool) -> tuple[LoaderOptions, Transform | None]:
    """-> (what workers make, what is left to do where batches arrive; None: nothing).

    Floats are made of bytes at the end of a transform, so that they may as well be made by the receiver of the bytes.
    Raises ValueError where that is asked for and not so.
    """
    transform, wire = options.transform, options.wire
    parts: list[Any] = list(transform.transforms) if isinstance(transform, Compose) else [transform]
    tail: list[Any] = []
    while parts and isinstance(parts[-1], (Normalize, ToDtype)):
        tail.insert(0, parts.pop())
    rest = Compose(parts) if parts and tail else Identity()
    can_split = bool(tail) and rest._finisher is None and not rest._mixers
    if wire == "uint8" and not can_split:
        accepted = "a transform that ends with Normalize or ToDtype, and does not mix images or make views; or 'auto'"
        raise ValueError(f"wire: got 'uint8' with {transform!r}; accepted: {accepted}")
    if not can_split or wire == "same" or not (is_far or wire == "uint8"):
        return options, None
    return replace(options, transform=rest, layout="NHWC"), Compose(tail)


@dataclass
class _Begun:
    """A batch that workers make, and its plan."""

    plan: Plan
    making: _Making
    given: tuple[Any, Any] | None


class WorkerBatches:
    """The steps of epochs, made by a fleet. ``finish``: what is left to do with joined images; None: nothing."""

    def __init__(
        self,
        fleet: Fleet,
        maker: BatchMaker,
        candidates: Callable[[Plan, int, int], Iterator[tuple[int, Any]]],
        finish: Callable[[Any], Any] | None,
    ) -> None:
        self.fleet, self._maker, self._candidates, self._finish = fleet, maker, candidates, finish
        self._planner = Threads(1, "variegate-plan")
        prefetch, workers = max(maker.options.prefetch, 1), len(fleet.devices)
        # With targets, a sample is compared with most of its batch.
        self._parts = 1 if maker.targets is not None else -(-workers // prefetch)

    def steps(
        self, plans: Iterator[Plan], number: int | None, epoch: int, times: StageTimes, given: ConditionsOfIds | None
    ) -> Steps:
        """Each ``next`` plans a step and gives it to the workers. ``number`` of steps; None: not known."""
        begun: list[_Making] = []

        def begin() -> _Begun | None:
            plan = next(plans, None)
            if plan is None:
                return None
            one = self._begin(self._maker.with_partners(plan), epoch, times, given)
            begun.append(one.making)
            return one

        def wait(planned: Future[_Begun | None]) -> Any:
            one = planned.result()
            if one is not None:
                one.making.future.exception()
                begun.remove(one.making)
            return one

        def stop() -> None:
            for making in begun:
                making.is_dropped = True

        begin_each = count() if number is None else range(number)
        waits = (self._planner.submit(begin) for _ in begin_each)
        return ((lambda planned=planned: wait(planned)) for planned in waits), stop

    def _begin(self, plan: Plan, epoch: int, times: StageTimes, given: ConditionsOfIds | None) -> _Begun:
        ids = np.unique(plan.ids)
        values = None if given is None else (ids, {name: np.asarray(v) for name, v in given(ids).items()})
        whole = Part(epoch, plan, np.arange(len(plan.ids)), values, times.is_exact)
        rows = max(-(-len(whole) // self._parts), _FEWEST_ROWS)
        parts = [whole[start : start + rows] for start in range(0, len(whole), rows)]
        return _Begun(plan, self.fleet.submit(parts, lambda row: str(plan.name_of(row))), values)

    def make(self, epoch: int, times: StageTimes, begun: Any, given: ConditionsOfIds | None = None) -> BatchResult:
        """Raises what a worker met, EngineError where no worker is left."""
        parts = begun.making.future.result()
        for part in parts:
            for stage, total in (part.stages or {}).items():
                if total.times:
                    times.stage_done(stage, total.seconds, total.samples, total.nbytes)
        made = joined(parts)
        if self._finish is not None:
            made.outputs = self._finished(made)

        def replace_rows(plan: Plan, made: MadeRows, bad: list[int], epoch: int) -> list[tuple[Any, Any]]:
            unmixed = plan.unmixed(partners=made.bad.keys() - made.misfits)
            numbers = np.arange(len(plan.ids))
            whole = Part(epoch, unmixed, numbers, begun.given, times.is_exact)
            found = []
            for row in bad:
                chosen = list(self._candidates(plan, row, epoch))
                alone = whole[row : row + 1]
                part = replace(alone, candidates=chosen, bad=made.bad[row])
                found.append(self.fleet.submit([part], lambda row: str(plan.name_of(row))))
            stand_ins = []
            for each in found:
                one = joined(each.future.result())
                if one.bad:  # no worker could make it
                    raise one.bad[min(one.bad)]
                stand_ins.append((one.outputs[0] if self._finish is None else self._finished(one)[0], one.labels[0]))
            return stand_ins

        return settle(begun.plan, made, self._maker.options, self._maker.targets, replace_rows, epoch)

    def _finished(self, made: MadeRows) -> Any:
        assert self._finish is not None
        if not made.bad:
            return self._finish(made.outputs)
        # Bad rows hold anything.
        return [row if place in made.bad else self._finish([row])[0] for place, row in enumerate(made.outputs)]


def begin(
    options: LoaderOptions, places: Places, source: Any, targets: Any, cache: Any, maker: BatchMaker, order: Any
) -> WorkerBatches:
    """``options``: with the transform of the loader; ``cache``: of workers that are threads. Raises ValueError."""
    is_shared = not places.are_threads and options.cache == "host"
    if options.cache == "device":
        raise ValueError("cache: got 'device' with workers or devices; accepted: 'host', a folder, or None")
    if is_shared and targets is not None:
        raise ValueError("cache: got 'host' with targets and workers; accepted: None, or workers='thread'")
    transform = maker.augmenter.transform
    options = replace(options, transform=transform, source=source)
    sent, tail = split_wire(options, is_far=isinstance(options.workers, RayWorkers))
    folder = options.cache if options.cache in (None, "host") else os.path.abspath(os.path.expanduser(options.cache))
    # What is asked in this process alone may be what cannot be sent.
    sent = replace(sent, cache=folder, sampler=None, weights=None, conditions=None, annotations=None)
    shared = uuid.uuid4().hex if is_shared else None
    spec = PartSpec(sent, targets, cache, shared, len(places.devices))
    finish = None
    if tail is not None:
        finish = Augmenter(tail, places.host_device, 0, options.dtype, options.layout, options.num_threads)
    return WorkerBatches(places.fleet(spec), maker, order.candidates, finish)
