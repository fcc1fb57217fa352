"""Batches made by workers: planned here, made there, settled here."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from variegate.loader.making import BatchMaker, BatchResult, MadeRows, Replacement, settle
from variegate.loader.options import ConditionsOfIds, LoaderOptions
from variegate.loader.reading import StepPlan, Steps
from variegate.loader.stats import StageTimes
from variegate.loader.workers.fleet import BatchInMaking, Fleet
from variegate.loader.workers.parts import BatchPart, PartSpec, joined
from variegate.loader.workers.places import WorkerPlaces
from variegate.threads import Threads


@dataclass
class _Begun:
    """A batch that workers make, and its plan."""

    plan: StepPlan
    making: BatchInMaking
    given: tuple[Any, Any] | None


class WorkerBatches:
    """The steps of epochs, made by a fleet."""

    def __init__(
        self,
        fleet: Fleet,
        maker: BatchMaker,
        candidates: Callable[[StepPlan, int, int], Iterator[tuple[int, Any]]],
    ) -> None:
        self.fleet = fleet
        self._maker = maker
        self._candidates = candidates
        self._planner = Threads(1, "variegate-plan")
        # Steps to begin beyond those that are prefetched, so that each worker has one, and one waits for the next idle.
        self.read_depth = max(1, len(fleet.devices) + 1 - maker.options.prefetch)

    def steps(
        self,
        plans: Iterator[StepPlan],
        number: int | None,
        epoch: int,
        times: StageTimes,
        given: ConditionsOfIds | None,
    ) -> Steps:
        """Each ``next`` plans a step and gives it to the workers. ``number`` of steps; None: not known."""
        begun: list[BatchInMaking] = []

        def begin() -> _Begun | None:
            plan = next(plans, None)
            if plan is None:
                return None
            one = self._begin(self._maker.with_partners(plan), epoch, given)
            begun.append(one.making)
            return one

        def wait(planned: Future[_Begun | None]) -> Any:
            one = planned.result()
            if one is not None:
                one.making.future.exception()
                begun.remove(one.making)
            return one

        def stop() -> None:
            for making in begun:
                making.is_dropped = True

        begin_each = count() if number is None else range(number)
        waits = (self._planner.submit(begin) for _ in begin_each)
        return ((lambda planned=planned: wait(planned)) for planned in waits), stop

    def _begin(self, plan: StepPlan, epoch: int, given: ConditionsOfIds | None) -> _Begun:
        ids = np.unique(plan.ids)
        values = None if given is None else (ids, {name: np.asarray(v) for name, v in given(ids).items()})
        whole = BatchPart(epoch, plan, np.arange(len(plan.ids)), values)
        return _Begun(plan, self.fleet.submit(whole, lambda row: str(plan.name_of(row))), values)

    def make(self, epoch: int, times: StageTimes, begun: Any) -> BatchResult:
        """Raises what a worker met, EngineError where no worker is left."""
        parts = begun.making.future.result()
        for part in parts:
            for stage, total in (part.stages or {}).items():
                if total.times:
                    times.stage_done(stage, total.seconds, total.samples, total.nbytes)
        made = joined(parts)

        def replace_rows(plan: StepPlan, made: MadeRows, bad: list[int], epoch: int) -> list[Replacement]:
            unmixed = plan.unmixed(partners=made.bad.keys() - made.misfits)
            numbers = np.arange(len(plan.ids))
            whole = BatchPart(epoch, unmixed, numbers, begun.given)
            found = []
            for row in bad:
                chosen = list(self._candidates(plan, row, epoch))
                alone = whole[row : row + 1]
                part = replace(alone, candidates=chosen, bad=made.bad[row])
                found.append(self.fleet.submit(part, lambda row: str(plan.name_of(row))))
            stand_ins = []
            for each in found:
                one = joined(each.future.result())
                if one.bad:  # no worker could make it
                    raise one.bad[min(one.bad)]
                assert one.replacement_id is not None
                stand_ins.append(Replacement(one.outputs[0], one.labels[0], one.replacement_id))
            return stand_ins

        return settle(begun.plan, made, self._maker, replace_rows, epoch)


def begin(
    options: LoaderOptions, places: WorkerPlaces, targets: Any, cache: Any, maker: BatchMaker, order: Any
) -> WorkerBatches:
    """``options``: with the transform of the loader; ``cache``: of workers that are threads. Raises ValueError."""
    is_shared = not places.are_threads and options.cache == "host"
    if options.cache == "device":
        raise ValueError("cache: got 'device' with workers or devices; accepted: 'host', a folder, or None")
    if is_shared and targets is not None:
        raise ValueError("cache: got 'host' with targets and workers; accepted: None, or workers='thread'")
    folder = options.cache if options.cache in (None, "host") else os.path.abspath(os.path.expanduser(options.cache))
    # Arguments that are asked in this process only need not be picklable.
    sent = replace(
        options,
        transform=maker.augmenter.transform,
        cache=folder,
        sampler=None,
        weights=None,
        conditions=None,
        annotations=None,
    )
    shared = uuid.uuid4().hex if is_shared else None
    spec = PartSpec(sent, targets, cache, shared, sharing=len(places.devices))
    return WorkerBatches(places.fleet(spec), maker, order.candidates)
