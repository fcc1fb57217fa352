"""What any worker does inside, without a process or thread around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from variegate.workers.protocol import (
    Assignment,
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


class Raises:
    """A task fails with what belongs to it."""

    def open(self, device: str, num_threads: int) -> Raises:
        return self

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        if payload is not None:
            raise payload[0]
        return Result([None] * len(items), {})


def events(*errors: Exception | None) -> list[WorkerEvent]:
    """Of tasks that end so, one after another."""
    tasks = [Assignment(number, number, number + 1, error and [error]) for number, error in enumerate(errors)]
    waiting = iter([*tasks, None])
    said: list[WorkerEvent] = []
    serve(Raises, PLACE, lambda: next(waiting), said.append)
    return said


def test_a_worker_lives_on_after_a_failure() -> None:
    failed = TaskFailed(7, 0, "ValueError: odd")
    assert events(ValueError("odd"), None) == [WorkerReady(7), failed, TaskDone(7, 1, {}, [None])]


def test_no_room_on_the_device_is_told_apart() -> None:
    errors = [MemoryError("none"), torch.cuda.OutOfMemoryError("CUDA out of memory")]
    assert [event.is_memory for event in events(*errors) if isinstance(event, TaskFailed)] == [True, True]


def test_a_worker_ends_when_its_cuda_context_is_lost() -> None:
    """Everything that the process asks of the GPU from then on would fail, whatever the image."""
    said = events(DEVICE_ERROR("CUDA error: an illegal memory access was encountered"), None)
    assert said[0] == WorkerReady(7)
    assert len(said) == 2
    assert isinstance(said[1], WorkerLost)
    assert "illegal memory access" in said[1].reason
