"""Batches as workers make them, in parts if a worker was lost or its device has no room, and joined by the loader.

A row depends on nothing but its sample, its partners and (seed, epoch, id, copy), so that a part may be made anywhere,
cut in two, or made again. What one row decides for others, such as a replacement, is left to the loader.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from variegate.arrays import Int64Array, UInt64Array
from variegate.augmenter.planner import MixedLabels
from variegate.data.base import SampleName
from variegate.data.indexing import open_entropy_index
from variegate.errors import DecodeError
from variegate.executors.cpu.memory import RESULTS
from variegate.loader.cache import PixelCache, open_cache
from variegate.loader.making import BatchMaker, MadeRows
from variegate.loader.options import ConditionsOfIds, LoaderOptions
from variegate.loader.reading import Reader, Rows, StepPlan, reader_threads
from variegate.loader.stats import STAGES, Stage, StageStats, StageTimes
from variegate.loader.targets import BatchTargets
from variegate.threads import Threads
from variegate.workers.protocol import Result, error_line, is_devices_fault


@dataclass
class BatchPart(Sequence[int]):
    """Rows of a batch as they are sent to a worker; slices are smaller parts.

    ``numbers``: of the plan's rows within the batch's. ``given``: ids, sorted, and the conditions of each.
    ``candidates``: (id, sample) of those that may stand in for its only row, which is ``bad``.
    """

    epoch: int
    plan: StepPlan
    numbers: Int64Array
    given: tuple[UInt64Array, Mapping[str, Any]] | None = None
    candidates: Sequence[tuple[int, Any]] = ()
    bad: DecodeError | None = None

    def __len__(self) -> int:
        return len(self.plan.padding)

    def __getitem__(self, rows: Any) -> Any:
        own = range(len(self))[rows]
        if own == range(len(self)):
            return self
        # The numbers travel as the samples do.
        plan = self.plan
        whole = replace(self.plan, samples=self.numbers)
        return replace(self, plan=plan.part(own), numbers=whole.part(own).samples)

    def __getstate__(self) -> dict[str, Any]:
        # Names are those of the worker's source.
        return self.__dict__ | {"plan": replace(self.plan, name_of=_unnamed)}

    def conditions(self, ids: UInt64Array) -> Mapping[str, Any]:
        assert self.given is not None
        places = np.searchsorted(self.given[0], ids)
        return {name: values[places] for name, values in self.given[1].items()}


def _unnamed(row: int) -> SampleName:
    raise LookupError(row)


@dataclass
class MadePart:
    """A part as a worker made it; rows in ``made`` count within the batch. ``error``: nothing was made, for this."""

    length: int
    numbers: Int64Array
    made: MadeRows | None = None
    error: Exception | None = None
    stages: Mapping[Stage, StageStats] | None = None


@dataclass(frozen=True)
class PartSpec:
    """A loader as its workers need it: ``options`` without what is asked in the loader's own process.

    ``cache``: one for all workers, where they are threads; else ``sharing`` processes share one by the name ``shared``.
    """

    options: LoaderOptions
    targets: BatchTargets | None
    cache: PixelCache | None = None
    shared: str | None = None
    sharing: int = 1

    def open(self, device: str, num_threads: int) -> PartJob:
        return PartJob(self, device, num_threads)


class PartJob:
    """On one device."""

    def __init__(self, spec: PartSpec, device: str, num_threads: int) -> None:
        options = spec.options
        source = spec.options.source
        assert options.transform is not None
        augmenter = options.make_augmenter(options.transform, device, num_threads)
        cache = spec.cache or open_cache(options, augmenter.device, spec.sharing, spec.shared)
        self._is_gpu = augmenter.device.startswith("cuda")
        self._source = source
        self._index = open_entropy_index(options.index, source)
        self._cache = cache
        self._reader = Reader(options, cache, spec.targets is not None)
        self._maker = BatchMaker(augmenter, options, lambda *_: iter(()), self._index, spec.targets)
        remote = getattr(source, "is_remote", False)
        self._pool = Threads(reader_threads(remote, num_threads), "variegate-read")
        self._epoch = -1

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        beat()
        part: BatchPart = payload
        if part.epoch != self._epoch:
            self._epoch = part.epoch
            if self._cache is not None:
                self._cache.use_added()
        times = StageTimes()
        result = MadePart(len(part), part.numbers)

        def is_stopped() -> bool:
            beat()  # with every sample, as each may take long to read
            return False

        try:
            made = result.made = self._make(part, times, is_stopped)
            if self._is_gpu:
                made.outputs, made.labels = _on_host(made.outputs), _on_host(made.labels)
        except Exception as error:
            if is_devices_fault(error):
                raise
            result.error = _sendable(error)
        result.stages = {stage: times.total(stage) for stage in STAGES}
        # In the place of its first row.
        return Result([result, *[None] * (len(part) - 1)], {})

    def _make(self, part: BatchPart, times: StageTimes, is_stopped: Callable[[], bool]) -> MadeRows:
        samples = part.plan.samples
        plan = replace(part.plan, name_of=lambda row: self._source.name(int(samples[row])))
        given: ConditionsOfIds | None = None if part.given is None else part.conditions
        if part.bad is not None:
            return self._stand_in(part, plan, times, given)
        rows = self._reader.begin(plan, self._pool, times, is_stopped)()
        made = self._maker.make_rows(part.epoch, times, rows, given)
        numbers = part.numbers.tolist()
        made.bad = {numbers[row]: error for row, error in made.bad.items()}
        made.misfits = {numbers[row] for row in made.misfits}
        return made

    def _stand_in(self, part: BatchPart, plan: StepPlan, times: StageTimes, given: ConditionsOfIds | None) -> MadeRows:
        assert part.bad is not None
        mates = replace(plan, ids=plan.ids[1:], samples=plan.samples[1:])
        read = self._reader.begin(mates, self._pool, times)()
        alone = Rows(**vars(plan), data=[None, *read.data], labels=[None, *read.labels])
        samples = self._reader.read_candidates(part.candidates)
        output, label, id = self._maker.stand_in(alone, samples, part.bad, part.epoch, times, given)
        return MadeRows([output], [label], {}, set(), id)


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return ValueError(error_line(error))
    return error


def _on_host(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.cpu()
    if isinstance(value, dict):
        return {key: _on_host(of_key) for key, of_key in value.items()}
    if isinstance(value, (list, tuple)):
        moved = [_on_host(each) for each in value]
        return MixedLabels(*moved) if isinstance(value, MixedLabels) else type(value)(moved)
    return value


def joined(parts: Sequence[MadePart]) -> MadeRows:
    """The rows of a batch, of its parts in order. Raises the error of the first that has one."""
    rows = []
    for part in parts:
        if part.error is not None:
            raise part.error
        assert part.made is not None
        rows.append(part.made)
    if len(rows) == 1:
        return rows[0]
    return MadeRows(
        _joined([made.outputs for made in rows]),
        _joined([made.labels for made in rows]),
        {row: error for made in rows for row, error in made.bad.items()},
        {row for made in rows for row in made.misfits},
    )


def _joined(values: list[Any]) -> Any:
    first = values[0]
    if all(isinstance(value, torch.Tensor) for value in values):
        if len({(value.shape[1:], value.dtype) for value in values}) > 1:
            return [row for value in values for row in value]
        shape = sum(map(len, values)), *first.shape[1:]
        whole = torch.from_numpy(RESULTS.take(sum(value.nbytes for value in values))).view(first.dtype).view(shape)
        return torch.cat(values, out=whole)
    if all(isinstance(value, np.ndarray) for value in values):
        return np.concatenate(values)
    if all(isinstance(value, MixedLabels) for value in values):
        return MixedLabels(*(torch.cat(of_field) for of_field in zip(*values, strict=True)))
    if all(isinstance(value, tuple) for value in values):  # groups of views
        return tuple(_joined(list(group)) for group in zip(*values, strict=True))
    return [row for value in values for row in _rows_of(value)]


def _rows_of(value: Any) -> Iterator[Any]:
    if isinstance(value, (MixedLabels, tuple)):
        yield from map(type(value)._make if isinstance(value, MixedLabels) else tuple, zip(*value, strict=True))
    else:
        yield from value
