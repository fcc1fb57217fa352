"""What workers are given to do: ``JobSpec`` is sent to them, ``Job`` is what becomes of it on a device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from variegate.errors import DeviceMemoryError


class EngineError(RuntimeError):
    """A run that cannot go on: no device is left, or every further task would fail for the same reason."""


class FatalError(EngineError):
    """Raised by a job where trying again, here or elsewhere, is of no use: a full disk. It ends the run."""


def is_memory(error: BaseException) -> bool:
    """The device has no room: a smaller task may do."""
    if isinstance(error, (MemoryError, DeviceMemoryError)):
        return True
    # A job that never imported torch cannot have raised its error.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(error, torch.cuda.OutOfMemoryError)


def is_lost_context(error: BaseException) -> bool:
    """After an illegal access and its like every call of this process to the GPU fails; only a new one can go on."""
    torch = sys.modules.get("torch")
    kind = getattr(torch, "AcceleratorError", RuntimeError)  # newer versions of torch have one
    return torch is not None and isinstance(error, kind) and "CUDA error" in str(error)


def is_devices_fault(error: BaseException) -> bool:
    """No image is to blame."""
    return is_memory(error) or is_lost_context(error)


class Result(NamedTuple):
    """What came of a task.

    ``outputs``: one for each of its items; None for those in ``failed``, which has reasons by item.
    """

    outputs: list[Any]
    failed: dict[int, str]


class Job(Protocol):
    """Work on one device. A worker calls it from one thread, a task at a time."""

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        """Make the items, given what was submitted with them (``payload[k]`` belongs to ``items[k]``, or it is None).

        It calls ``beat`` whenever it has got on, at least once an item: a worker that is silent for long is taken for
        hung. Raises FatalError to end the run, MemoryError or DeviceMemoryError where the device has no room; anything
        else it raises counts against the task.
        """
        ...


class JobSpec(Protocol):
    """Made once, pickled to every worker."""

    def open(self, device: str, num_threads: int) -> Job:
        """Called once in each worker, before its first task: open files, compile kernels.

        ``device``: "cpu", "reference", "cuda:0", ... as an ``Augmenter`` takes it; ``num_threads``: cores for it.
        """
        ...
