"""What the dispatcher of a loader costs per part of a batch, with workers that do nothing."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from variegate.formats.base import SampleName
from variegate.jobs.jobs import Result, Task, TaskDone, WorkerEvent, WorkerPool, WorkerReady
from variegate.jobs.local_workers import ProcessPool, ThreadPool
from variegate.jobs.options import Rules
from variegate.jobs.ray_workers import RayPool
from variegate.loader.reading import StepPlan
from variegate.loader.workers.fleet import Fleet
from variegate.loader.workers.parts import BatchPart, MadePart

BATCH, ROWS, UNDER_WAY, BATCHES = 64, 8, 3, 250


class NoWork:
    """Spec and job."""

    def open(self, device: str, num_threads: int) -> NoWork:
        return self

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        return Result(MadePart(len(payload), payload.numbers), {})


class IdlePool:
    """See ``WorkerPool``. Everything is done as it is sent, so that nothing but the dispatcher takes time."""

    def __init__(self, *_: Any) -> None:
        self._devices: dict[int, int] = {}
        self._said: list[WorkerEvent] = []

    def start(self, device: int, worker: int) -> None:
        self._devices[worker] = device
        self._said.append(WorkerReady(device, worker))

    def send(self, worker: int, task: Task, payload: Sequence[Any] | None) -> None:
        made: Any = NoWork().run(range(task.start, task.stop), payload, lambda: None).outputs
        self._said.append(TaskDone(self._devices[worker], worker, task.number, {}, made))

    def stop(self, worker: int) -> None:
        pass

    def wait(self, timeout: float) -> list[WorkerEvent]:
        said, self._said = self._said, []
        return said

    def close(self, force: bool = False) -> None:
        pass


def part_costs() -> list[dict[str, Any]]:
    """Microseconds of the processor per part: of the thread that drives the workers, and of the whole process."""
    kinds: list[tuple[str, Any, int]] = [("no workers", IdlePool, count) for count in (2, 8, 64, 1024)]
    kinds += [("threads", ThreadPool, 2), ("processes", ProcessPool, 2), ("Ray actors", RayPool, 2)]
    return [{"kind": kind, "devices": count} | _cost(pool, count) for kind, pool, count in kinds]


def _cost(pool: Callable[..., WorkerPool], count: int) -> dict[str, float]:
    devices = [f"cpu:{place}" for place in range(count)]
    driver: list[int] = []

    def start() -> WorkerPool:
        driver.append(threading.get_ident())
        return pool(NoWork(), devices, 1)

    fleet = Fleet(devices, Rules(ordered=False), start)
    ids = np.arange(BATCH, dtype=np.uint64)
    plan = StepPlan(
        ids=ids,
        padding=np.zeros(BATCH, bool),
        done=0,
        name_of=lambda row: SampleName(str(row)),
        samples=ids.astype(np.int64),
    )
    whole = BatchPart(0, plan, np.arange(BATCH))
    parts = [whole[at : at + ROWS] for at in range(0, BATCH, ROWS)]
    for _ in range(UNDER_WAY):  # every worker is there, and has been used
        fleet.submit(parts, str).future.result()
    clock = time.pthread_getcpuclockid(driver[0])
    thread, process, waiting = time.clock_gettime(clock), time.process_time(), deque[Any]()
    for _ in range(BATCHES):
        waiting.append(fleet.submit(parts, str).future)
        if len(waiting) == UNDER_WAY:
            waiting.popleft().result()
    while waiting:
        waiting.popleft().result()
    spent = time.clock_gettime(clock) - thread, time.process_time() - process
    fleet.close()
    driving_us, process_us = (seconds / (BATCHES * len(parts)) * 1e6 for seconds in spent)
    return {"driving_us": driving_us, "process_us": process_us}
