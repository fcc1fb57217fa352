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
    **{"workers": (1, 1024), "ranks": (1, 256), "steps": (1, 100_000), "batch_size": (1, 1_000_000)},
    **{"prefetch": (1, 1000), "worker_rate": (0.001, 1e9), "step_ms": (0, 1e8), "image_bytes": (1, 1 << 40)},
    **{"wire": (1e-6, 1e6), "part_us": (0, 1e9)},
}

# Fields of ``Scenario`` that apply to the workers of trainers as well.
SCENARIO_OF_FEED = {"variation", "speeds", "spread", "seed", "failure_rate", "restart", "in_flight"}


@dataclass(frozen=True, kw_only=True)
class MeasurementOptions:
    """Of ``measure``, and of the commands that measure.

    ``seconds`` is approximate. Samples are drawn as a shuffled epoch draws them.

    Raises ValueError naming the argument.
    """

    batch_size: int = option(64, "Images per batch.", "Loader", low=1)
    device: str = option(
        "auto", "Device of the loader: cpu, cuda, cuda:N, or auto (a GPU if there is one).", "Loader", metavar="DEVICE"
    )
    threads: int | None = option(None, "Threads of the loader. By default, all cores.", "Loader", low=1)
    cache: str | os.PathLike[str] | None = option(
        None,
        "Cache decoded pixels in host memory, in device memory, or in a folder.",
        "Loader",
        metavar="host|device|DIR",
    )
    cache_side: int | None = option(None, "Shrink cached images to this length of the shorter side.", "Loader", low=1)
    fast_decode: bool = option(
        False, "Decode JPEGs at 1/2, 1/4 or 1/8 of their size where crops are large enough.", "Loader"
    )
    index: str | None = option(
        None,
        "Read crops of JPEGs through an index: the one that variegate index wrote (auto), or a file.",
        "Loader",
        metavar="auto|FILE",
    )
    prefetch: int = option(2, "Batches to prefetch.", "Loader", low=0)
    seconds: float = option(3.0, "Seconds to measure each rate.", "Measurement", low=0.01, high=3600)
    limit: int = option(
        1000,
        "Maximum number of samples to measure, drawn at random. Fewer are used if they are large.",
        "Measurement",
        low=1,
    )

    def __post_init__(self) -> None:
        check_options(self, "batch_size", "limit", "threads", "seconds")


def _speeds(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"speeds: got {text!r}; accepted: numbers with commas between them") from None


def _workers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"workers: got {text!r}; accepted: whole numbers with commas between them") from None


def _wire(text: str) -> float | None:
    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"wire: got {text!r}; accepted: a number of gigabits per second, or none") from None


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

    devices: int = option(8, "Number of devices, up to 1,024.", "Devices")
    tasks: int = option(10_000, "Number of tasks. All are known at the start.", "Work")
    task_items: int = option(16, "Items per task.", "Work")
    task_seconds: float = option(1.0, "Mean seconds per task on a device of speed 1.", "Work")
    variation: float = option(0.2, "Variation of task times: the standard deviation of their logarithm.", "Work")
    speeds: tuple[float, ...] = option(
        (1.0,), "Speeds of the devices, repeated in turn.", "Devices", metavar="1,1,0.5", parse=_speeds
    )
    spread: float = option(0.0, "Additional variation of speeds: the standard deviation of their logarithm.", "Devices")
    failure_rate: float = option(0.0, "Worker failures per hour of uptime.", "Failures")
    restart: float = option(10.0, "Seconds from a failure until the next worker is ready.", "Failures")
    queue: int | None = option(
        8, "Tasks queued per device; none assigns all tasks at once.", "Dispatcher", metavar="N|none", parse=_queue
    )
    in_flight: int = option(2, "Tasks in flight per worker.", "Dispatcher")
    seed: int = option(0, "Seed for speeds, task times and failures.", "Work")

    def __post_init__(self) -> None:
        _check_bounds(self)
        if not self.speeds:
            raise ValueError("speeds: got none; accepted: numbers from 0.001 to 1,000")


@dataclass(frozen=True)
class FeedScenario:
    """Trainers and the remote workers of their loaders; the help of each field says what it is.

    Raises ValueError for a number that is not accepted.
    """

    workers: tuple[int, ...] = option(
        (),
        "Simulate trainers that remote workers feed, for each of these numbers of workers (of all ranks together).",
        "Loader",
        metavar="8,16,32",
        parse=_workers,
    )
    ranks: int = option(1, "Training processes, up to 256. Each has its own share of the workers.", "Loader")
    batch_size: int = option(256, "Images per batch and rank.", "Loader")
    prefetch: int = option(2, "Batches to prefetch.", "Loader")
    steps: int = option(200, "Training steps to simulate.", "Loader")
    step_ms: float = option(0.0, "Milliseconds of a training step whose batch is there.", "Loader")
    worker_rate: float = option(500.0, "Images per second of a worker of speed 1.", "Loader")
    image_bytes: int = option(150_528, "Bytes per image on the wire.", "Loader")
    wire: float | None = option(
        10.0, "Gigabits per second that each rank receives.", "Loader", metavar="GBIT|none", parse=_wire
    )
    part_us: float = option(50.0, "Microseconds of the loader's process per part of a batch.", "Loader")

    def __post_init__(self) -> None:
        _check_bounds(self)


def _check_bounds(options: Scenario | FeedScenario) -> None:
    for name, (low, high) in _BOUNDS.items():
        given = getattr(options, name, None)
        for value in given if isinstance(given, tuple) else (given,):
            if value is not None and not (math.isfinite(value) and low <= value <= high):
                raise ValueError(f"{name}: got {value!r}; accepted: {low:,} to {high:,}")
