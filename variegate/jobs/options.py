"""The options of an engine and of the runs on it, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from variegate.checks import one_of

Allocation = Literal["least_loaded", "round_robin", "random"]
WorkerKind = Literal["process", "thread", "ray"]
OnError = Literal["raise", "skip"]
OnChange = Literal["refuse", "same", "remake"]
ALLOCATIONS: tuple[Allocation, ...] = get_args(Allocation)
WORKER_KINDS: tuple[WorkerKind, ...] = get_args(WorkerKind)
ON_ERROR: tuple[OnError, ...] = get_args(OnError)
ON_CHANGE: tuple[OnChange, ...] = get_args(OnChange)


def check_on_error(value: str) -> None:
    """Raises ValueError for what is no ``OnError``."""
    one_of("on_error", value, ON_ERROR)


@dataclass(frozen=True)
class Rules:
    """Rules of a dispatcher.

    Args:
        allocation: "least_loaded", "round_robin" or "random" (by ``seed``).
        steal: a device with nothing to do takes tasks from the end of the longest queue.
        ordered: results come out in the order of the items.
        in_flight: tasks at a worker at a time, so that it need not wait for the next.
        queue_limit: tasks that wait, per device, before ``capacity`` is 0; None for no limit.
        max_items: items between submission and release, at most.
        max_failures: so many failures of an item alone put it in quarantine.
        max_setbacks: so many failed tasks and lost workers of a device with nothing done in between retire it.
        max_failed_starts: so many workers of a device in a row that did not start retire it.
        heartbeat_timeout: a worker with a task that is silent for so many seconds is stopped.
        start_timeout: the same while it starts.
    """

    allocation: Allocation = "least_loaded"
    steal: bool = True
    ordered: bool = True
    in_flight: int = 2
    queue_limit: int | None = 8
    max_items: int = 1 << 62
    max_failures: int = 3
    max_setbacks: int = 30
    max_failed_starts: int = 3
    heartbeat_timeout: float = 120.0
    start_timeout: float = 600.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises ValueError for what is not accepted."""
        one_of("allocation", self.allocation, ALLOCATIONS)
        for name in ("in_flight", "queue_limit", "max_items", "max_failures", "max_setbacks", "max_failed_starts"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}: got {value!r}; accepted: 1 or more")
        for name in ("heartbeat_timeout", "start_timeout"):
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"{name}: got {value!r}; accepted: seconds, more than 0")
