"""How fast a loader reads a data set before and after it was packed: the same pipeline, the same threads, in turns."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from variegate.formats.base import Source
from variegate.jobs.arguments import open_by_index
from variegate.loader import Loader
from variegate.ops.compose import Compose
from variegate.ops.crop import RandomHorizontalFlip
from variegate.ops.output import Normalize
from variegate.ops.resize import RandomResizedCrop

_SAMPLES, _RUNS, _BATCH = 512, 4, 32
_ROUNDS, _SECONDS = 3, 0.7


class Speedup(NamedTuple):
    """Images a second: the best of a few spans of each."""

    before: float
    after: float
    samples: int
    threads: int

    @property
    def ratio(self) -> float:
        return self.after / self.before if self.before else math.nan


def measure_speedup(source: Source, packed: str, side: int = 224, threads: int | None = None) -> Speedup | None:
    """RandomResizedCrop, flip and normalise on up to 512 samples, runs of neighbours from all over, in the same order.
    They are read once before, so that both are in the system's memory as far as there is room; the packed one
    reads its index, if there is one. None where samples of the source are missing in the packed one, or none can be
    read.
    """
    after = open_by_index(packed)
    if len(after) != len(source) or not len(source):
        return None
    picked = _picked(len(source))
    count = len(picked)
    transform = Compose([RandomResizedCrop(side), RandomHorizontalFlip(), Normalize(mean=(0.5,), std=(0.5,))])
    options: dict[str, Any] = {
        "batch_size": min(_BATCH, count),
        "device": "cpu",
        "sampler": picked,
        "num_threads": threads,
        "rank": 0,
        "world_size": 1,
        "targets": False,
    }
    loaders = [Loader(source, transform, **options), Loader(after, transform, index="auto", **options)]
    batches = [_endless(loader) for loader in loaders]
    best = [0.0, 0.0]
    try:
        for loader in loaders:
            for _ in loader:
                pass
        for _ in range(_ROUNDS):
            for side_of, stream in enumerate(batches):
                best[side_of] = max(best[side_of], _rate(stream))
    finally:
        for stream in batches:
            stream.close()
    return Speedup(best[0], best[1], count, loaders[0].num_threads)


def _picked(length: int) -> list[int]:
    """A few runs of neighbours, spread over all: what is read by groups of them is not read for one of each."""
    run = _SAMPLES // _RUNS
    starts = [0] if length <= _SAMPLES else np.linspace(0, length - run, _RUNS).astype(np.int64).tolist()
    size = length if length <= _SAMPLES else run
    return [start + place for start in starts for place in range(size)]


def _rate(batches: Iterator[int]) -> float:
    next(batches)  # what was made ahead of the span
    next(batches)
    images, begin = 0, time.perf_counter()
    while (seconds := time.perf_counter() - begin) < _SECONDS:
        images += next(batches)
    return images / seconds


def _endless(loader: Loader) -> Any:
    while True:
        for batch in loader:
            yield len(batch.ids)
