"""What any worker does inside, without a process or thread around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from variegate.workers.protocol import (
    Assignment,
    ItemStarted,
    Job,
    Result,
    TaskDone,
    TaskFailed,
    WorkerEvent,
    WorkerInfo,
    WorkerLost,
    WorkerReady,
    serve,
)

PLACE = WorkerInfo(7, "cuda:0", 1)
# Before it had a class of its own, torch raised such errors as RuntimeError.
DEVICE_ERROR: type[Exception] = getattr(torch, "AcceleratorError", RuntimeError)


class Raises(Job):
    """A payload that is an error is raised, a number is room for so many items."""

    def open(self, device: str, num_threads: int) -> Raises:
        return self

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        for each in payload:
            if isinstance(each, Exception):
                raise each
        if len(items) > payload[0]:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return Result([list(items)] * len(items), {})

    def join(self, items: range, payload: Any, result: Result, announce: Callable[[int], None]) -> Result:
        return Result([len(payload), *result.outputs], result.failed)


def events(*tasks: list[Any], skip: dict[int, str] | None = None) -> list[WorkerEvent]:
    """Of tasks with such payloads, one after another; carefully if there are items to ``skip``."""
    is_careful = skip is not None
    starts = [10 * number for number in range(len(tasks))]
    work = [
        Assignment(number, start, start + len(payload), is_careful, skip or {}, payload)
        for number, (start, payload) in enumerate(zip(starts, tasks, strict=True))
    ]
    waiting = iter([*work, None])
    said: list[WorkerEvent] = []
    serve(Raises, PLACE, lambda: next(waiting), said.append)
    return said


def test_a_worker_lives_on_after_a_failure() -> None:
    failed = TaskFailed(7, 0, "ValueError: odd")
    assert events([ValueError("odd")], [1]) == [WorkerReady(7), failed, TaskDone(7, 1, {}, [1, [10]])]


def test_items_that_have_no_room_together_are_made_in_pieces_that_have() -> None:
    done = [event.outputs[1:] for event in events([2] * 10, [2] * 3) if isinstance(event, TaskDone)]
    pieces = [[0, 1], [2], [3, 4], [5, 6], [7, 8], [9]]  # ten, five and three have no room
    assert done == [[piece for piece in pieces for _ in piece], [[10, 11], [10, 11], [12]]]
    assert events([0])[1] == TaskFailed(7, 0, "OutOfMemoryError: CUDA out of memory")


def test_a_careful_task_announces_each_item_and_skips_those_that_it_is_told_to() -> None:
    said = events([1, LookupError("odd"), 1], skip={1: "killed"})
    outputs = [3, [0], None, [2]]
    started = [ItemStarted(7, item) for item in (0, 2, None)]
    assert said == [WorkerReady(7), *started, TaskDone(7, 0, {1: "killed"}, outputs)]
    assert events([1, LookupError("odd"), 1], skip={})[1:] == [
        ItemStarted(7, 0),
        ItemStarted(7, 1),
        TaskFailed(7, 0, "LookupError: odd"),
    ]


def test_a_worker_ends_when_its_cuda_context_is_lost() -> None:
    """Everything that the process asks of the GPU from then on would fail, whatever the image."""
    said = events([DEVICE_ERROR("CUDA error: an illegal memory access was encountered")], [1])
    assert said[0] == WorkerReady(7)
    assert len(said) == 2
    assert isinstance(said[1], WorkerLost)
    assert "illegal memory access" in said[1].reason
