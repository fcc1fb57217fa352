"""Batches as workers make them: together, or row by row if the device has no room or a row may end its worker.

A row depends only on its sample, its partners and (seed, epoch, id, copy), so that any worker may make it, in any
batch. Decisions that one row makes for others, such as the shape of the batch, are made when rows are joined.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from variegate.arrays import Int64Array, UInt64Array
from variegate.data.indexing import open_entropy_index
from variegate.errors import DecodeError
from variegate.loader.cache import PixelCache, open_cache
from variegate.loader.making import BatchMaker, BatchResult, EpochWork, MadeRows, join_rows
from variegate.loader.options import LoaderOptions
from variegate.loader.reading import Reader, StepPlan, reader_threads
from variegate.loader.stats import STAGES, Stage, StageStats, StageTimes
from variegate.loader.targets import BatchTargets
from variegate.threads import Threads
from variegate.workers.protocol import Job, Result, error_line, is_device_error


@dataclass
class BatchTask(Sequence[int]):
    """A batch to be sent to a worker; slices are ranges of its rows.

    ``conditions``: ids, sorted, and the conditions of each.
    """

    epoch: int
    plan: StepPlan
    rows: range
    conditions: tuple[UInt64Array, Mapping[str, Any]] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> Any:
        return replace(self, rows=self.rows[rows])

    def work(self, times: StageTimes) -> EpochWork:
        return EpochWork(self.epoch, times, None if self.conditions is None else self._conditions_of)

    def _conditions_of(self, ids: UInt64Array) -> Mapping[str, Any]:
        assert self.conditions is not None
        places = np.searchsorted(self.conditions[0], ids)
        return {name: values[places] for name, values in self.conditions[1].items()}


@dataclass
class BatchReport:
    """A batch of a worker, or the error that the loader raises instead."""

    result: BatchResult | Exception
    stages: Mapping[Stage, StageStats]

    def unpack(self, times: StageTimes) -> BatchResult:
        for stage, total in self.stages.items():
            if total.times:
                times.stage_done(stage, total.seconds, total.samples, total.nbytes)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@dataclass(frozen=True)
class BatchSpec:
    """A loader's settings for its workers: ``options`` without the sampler and the weights, which only the loader's
    process uses.

    ``cache``: one for all workers, where they are threads; else ``sharing`` processes share one by the name ``shared``.
    """

    options: LoaderOptions
    targets: BatchTargets | None
    cache: PixelCache | None = None
    shared: str | None = None
    sharing: int = 1

    def open(self, device: str, num_threads: int) -> BatchJob:
        return BatchJob(self, device, num_threads)


class BatchJob(Job):
    """Makes batches on one device."""

    def __init__(self, spec: BatchSpec, device: str, num_threads: int) -> None:
        options = spec.options
        source = options.source
        assert options.transform is not None
        augmenter = options.make_augmenter(options.transform, device, num_threads)
        self._cache = spec.cache or open_cache(options, augmenter.device, spec.sharing, spec.shared)
        self._reader = Reader(options, self._cache, spec.targets is not None)
        index = open_entropy_index(options.index, source)
        self._maker = BatchMaker(augmenter, options, self._reader, _candidates_of, index, spec.targets, to_host=True)
        self._pool = Threads(reader_threads(source.is_remote, num_threads), "variegate-read")
        self._epoch = -1
        self._times = StageTimes()

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        beat()
        task: BatchTask = payload
        if task.epoch != self._epoch:
            self._epoch = task.epoch
            if self._cache is not None:
                self._cache.use_added()
        try:
            return Result(self._make_rows(task, beat), {})
        except Exception as error:
            if is_device_error(error):
                raise
            return Result([error] * len(items), {})

    def _make_rows(self, task: BatchTask, beat: Callable[[], None]) -> MadeRows:
        def is_stopped() -> bool:
            beat()  # with every sample, as each may take long to read
            return False

        plan = task.plan
        if len(task) < len(plan.padding):
            plan = plan.part(task.rows)
        rows = self._reader.begin(plan, self._pool, self._times, is_stopped)()
        return self._maker.make_rows(rows, task.work(self._times))

    def join(self, items: range, payload: Any, result: Result, announce: Callable[[int], None]) -> Result:
        task: BatchTask = payload
        batch: BatchResult | Exception
        try:
            batch = self._join(items, task, result, announce)
        except Exception as error:
            if is_device_error(error):
                raise
            batch = _sendable(error)
        stages = {stage: self._times.total(stage) for stage in STAGES}
        self._times = StageTimes()
        return Result([BatchReport(batch, stages)], {})

    def _join(self, items: range, task: BatchTask, result: Result, announce: Callable[[int], None]) -> BatchResult:
        outputs = result.outputs
        if not isinstance(outputs, MadeRows):
            for output in outputs:
                if isinstance(output, Exception):
                    raise output
            outputs = join_rows(outputs)
        for item, reason in result.failed.items():
            row = items.index(item)
            outputs.bad[row] = DecodeError(self._maker.name(task.plan, row), reason)
        return self._maker.join(task.plan, outputs, task.work(self._times), lambda row: announce(items[row]))


def _candidates_of(plan: StepPlan, row: int, epoch: int) -> Int64Array:
    assert plan.candidates is not None
    candidates: Int64Array = plan.candidates[row]
    return candidates


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return ValueError(error_line(error))
    return error
