"""Time that the stages of a loader take.

| stage | thread | input bytes |
|---|---|---|
| read | reading threads | files, or pixels of a source or cache that stores pixels |
| decode | decoding threads, while reading or augmenting | files |
| augment | augmenting threads: random draws, planning, pixels, the batch's tensor | the batch's images |
| hand_over | the consumer, inside of the loader, which starts further batches | the batch's images |
| wait | the consumer, for a batch that is not ready | none |
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock
from typing import Literal, get_args

from variegate.io.amounts import pluralize
from variegate.threads import at_fork

Stage = Literal["read", "decode", "augment", "hand_over", "wait"]
STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True)
class StageStats:
    """``seconds`` of all threads together, ``samples`` and ``nbytes`` that went through; ``times``: pieces of work, of
    "wait" the batches that were not ready."""

    seconds: float = 0.0
    samples: int = 0
    nbytes: int = 0
    times: int = 0

    def __add__(self, other: StageStats) -> StageStats:
        nbytes = self.nbytes + other.nbytes
        times = self.times + other.times
        return StageStats(self.seconds + other.seconds, self.samples + other.samples, nbytes, times)

    def __sub__(self, other: StageStats) -> StageStats:
        return self + StageStats(-other.seconds, -other.samples, -other.nbytes, -other.times)


@dataclass(frozen=True)
class LoaderStats:
    """Time that each stage has spent in an epoch so far; ``seconds`` is the time since its iteration began.

    Stages run concurrently, so their seconds can add up to more than that.
    """

    epoch: int
    seconds: float
    read: StageStats
    decode: StageStats
    augment: StageStats
    hand_over: StageStats
    wait: StageStats

    def __str__(self) -> str:
        stages = ", ".join(f"{stage} {getattr(self, stage).seconds:.3g} s" for stage in STAGES)
        return f"epoch {self.epoch}: {pluralize(self.hand_over.samples, 'sample')} in {self.seconds:.3g} s ({stages})"


class StageTimes:
    """Totals of the stages. Any thread may call any method."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self._totals: dict[Stage, StageStats] = {}
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def stage_done(self, stage: Stage, seconds: float, samples: int, nbytes: int) -> None:
        """Add a work item to the totals."""
        with self._lock:
            self._totals[stage] = self.total(stage) + StageStats(seconds, samples, nbytes, 1)

    def total(self, stage: Stage) -> StageStats:
        return self._totals.get(stage, StageStats())

    def stats(self, epoch: int) -> LoaderStats:
        with self._lock:
            stages = [self.total(stage) for stage in STAGES]
        return LoaderStats(epoch, time.perf_counter() - self.begin, *stages)
