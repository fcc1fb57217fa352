"""Options of measurements: of a loader, and of a simulated dispatcher."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from variegate.options import check_options, option

# Not declared with the options: a number out of bounds is refused in these words from the command line too.
_BOUNDS: dict[str, tuple[float, float]] = {
    **{"devices": (1, 1024), "tasks": (1, 5_000_000), "task_items": (1, 1_000_000)},
    **{"task_seconds": (0.001, 100_000), "variation": (0, 2), "spread": (0, 2), "failure_rate": (0, 3600)},
    **{"restart": (0, 100_000), "in_flight": (1, 1000), "seed": (0, (1 << 64) - 1), "queue": (1, 5_000_000)},
    "speeds": (0.001, 1000),
}


@dataclass(frozen=True, kw_only=True)
class MeasurementOptions:
    """Of ``measure``, and of the commands that measure.

    ``seconds`` is approximate. Samples are drawn as a shuffled epoch draws them.

    Raises ValueError naming the argument.
    """

    batch_size: int = option(64, "How many images the loader puts in a batch.", "Loader", low=1)
    device: str = option(
        "auto", "The loader's device: cpu, cuda, cuda:N, or auto for a GPU if there is one.", "Loader", metavar="DEVICE"
    )
    threads: int | None = option(None, "The loader's threads. Without it, all cores.", "Loader", low=1)
    cache: str | os.PathLike[str] | None = option(
        None, "Keep decoded pixels there, as the loader's cache does.", "Loader", metavar="host|device|DIR"
    )
    cache_side: int | None = option(None, "Reduce images in the cache to this shorter side.", "Loader", low=1)
    fast_decode: bool = option(
        False,
        "Decode JPEGs at half, a quarter or an eighth of their size where crops are large enough for it, as the "
        "loader's fast_decode does.",
        "Loader",
    )
    index: str | None = option(
        None,
        "Cut crops out of coded JPEGs by an index, as the loader's index does: auto for the one of variegate index, or "
        "a file.",
        "Loader",
        metavar="auto|FILE",
    )
    prefetch: int = option(2, "How many batches the loader makes ahead.", "Loader", low=0)
    seconds: float = option(3.0, "How long each rate is measured.", "Measurement", low=0.01, high=3600)
    limit: int = option(
        1000,
        "How many samples to measure at most, drawn at random. Fewer are used where they are large.",
        "Measurement",
        low=1,
    )

    def __post_init__(self) -> None:
        check_options(self, "batch_size", "limit", "threads")
        if not self.seconds > 0:
            raise ValueError(f"seconds: got {self.seconds!r}; accepted: a positive number")


def _speeds(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"speeds: got {text!r}; accepted: numbers with commas between them") from None


def _queue(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"queue: got {text!r}; accepted: a number, or none") from None


@dataclass(frozen=True)
class Scenario:
    """Devices, work, and what goes wrong; the help of each field says what it is.

    Raises ValueError for a number that is not accepted.
    """

    devices: int = option(8, "How many devices there are, up to 1,024.", "Devices")
    tasks: int = option(10_000, "How many tasks there are. All of them are known from the start.", "Work")
    task_items: int = option(16, "How many items are in a task.", "Work")
    task_seconds: float = option(1.0, "How long a task takes on a device of speed 1, on average.", "Work")
    variation: float = option(0.2, "How much that varies: the standard deviation of its logarithm.", "Work")
    speeds: tuple[float, ...] = option(
        (1.0,), "The speeds of the devices, which take them in turn.", "Devices", metavar="1,1,0.5", parse=_speeds
    )
    spread: float = option(0.0, "How much speeds vary besides: the standard deviation of their logarithm.", "Devices")
    failure_rate: float = option(0.0, "How often a worker is lost, per hour that it is up.", "Failures")
    restart: float = option(10.0, "How many seconds pass from a loss until the next worker is ready.", "Failures")
    queue: int | None = option(
        8,
        "How many tasks wait for each device. With none, all are given out at once.",
        "Dispatcher",
        metavar="N|none",
        parse=_queue,
    )
    in_flight: int = option(2, "How many tasks are at a worker at a time.", "Dispatcher")
    seed: int = option(0, "Another seed gives other speeds, tasks and failures.", "Work")

    def __post_init__(self) -> None:
        for name, (low, high) in _BOUNDS.items():
            given = getattr(self, name)
            for value in given if isinstance(given, tuple) else (given,):
                if value is not None and not (math.isfinite(value) and low <= value <= high):
                    raise ValueError(f"{name}: got {value!r}; accepted: {low:,} to {high:,}")
        if not self.speeds:
            raise ValueError("speeds: got none; accepted: numbers from 0.001 to 1,000")
