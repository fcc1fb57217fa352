"""The options of an engine and of the runs on it, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from variegate.checks import one_of

Allocation = Literal["least_loaded", "round_robin", "random"]
WorkerKind = Literal["process", "thread", "ray"]
OnError = Literal["raise", "skip"]
ALLOCATIONS: tuple[Allocation, ...] = get_args(Allocation)
WORKER_KINDS: tuple[WorkerKind, ...] = get_args(WorkerKind)
ON_ERROR: tuple[OnError, ...] = get_args(OnError)
# Fewer rows cost more to hand over than they gain by being made side by side.
_FEWEST_ROWS = 8


def rows_of_part(batch_size: int, workers: int, prefetch: int) -> int:
    """Rows of the parts that a loader cuts a batch into: with those that it prefetches, one for each worker."""
    return max(-(-batch_size // -(-workers // prefetch)), _FEWEST_ROWS)


@dataclass(frozen=True)
class Rules:
    """Rules of a dispatcher. Raises ValueError for what is not accepted."""

    allocation: Allocation = "least_loaded"
    steal: bool = True  # a device with nothing to do takes tasks from the end of the longest queue
    ordered: bool = True  # results come out in the order of the items
    in_flight: int = 2  # tasks at a worker at a time, so that it need not wait for the next
    queue_limit: int | None = 8  # tasks that wait, per device, before ``capacity`` is 0
    max_items: int = 1 << 62  # between submission and release
    max_failures: int = 3  # of an item alone, which put it in quarantine
    max_setbacks: int = 30  # failed tasks and lost workers with nothing done in between, which retire a device
    max_failed_starts: int = 3  # of a device's workers in a row, which retire it
    heartbeat_timeout: float = 120.0  # seconds of silence after which a worker with a task is stopped
    start_timeout: float = 600.0  # the same while it starts
    enough: int = 1 << 62  # ready devices with which others may take any time to start
    seed: int = 0  # of random allocation

    def __post_init__(self) -> None:
        one_of("allocation", self.allocation, ALLOCATIONS)
        if self.max_failures < 1:
            raise ValueError(f"max_failures: got {self.max_failures!r}; accepted: 1 or more")
        if not self.heartbeat_timeout > 0:
            raise ValueError(f"heartbeat_timeout: got {self.heartbeat_timeout!r}; accepted: seconds, more than 0")
