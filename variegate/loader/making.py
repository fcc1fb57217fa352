"""Batches of samples that were read: augmented together, with the unreadable ones skipped or replaced."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from variegate.arrays import BoolArray, Int32Array, Int64Array, UInt64Array
from variegate.augmenter.augmenter import Augmenter
from variegate.augmenter.planner import MixedLabels, num_partners
from variegate.augmenter.samples import follow
from variegate.decode.entropy.index import EntropyIndex
from variegate.errors import DecodeError, refused_by_transform, try_each
from variegate.executors.batches import extra_seconds
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.loader import batch as batches
from variegate.loader.batch import Batch, Failure
from variegate.loader.buckets import CONDITION
from variegate.loader.mixture import Mixture
from variegate.loader.options import ConditionsOfIds, LoaderOptions
from variegate.loader.reading import Reader, Rows, StepPlan
from variegate.loader.stats import StageTimes
from variegate.loader.targets import BatchTargets, RowsRefused, TargetBatch

AnyBatch = Batch | TargetBatch


@dataclass
class BatchResult:
    """A batch, and the failures among its samples."""

    batch: AnyBatch
    done: int
    failures: list[Failure]
    ready: Any = None  # event that a consumer on another stream waits for


class EpochWork(NamedTuple):
    """Common values of all rows of an epoch."""

    epoch: int
    times: StageTimes
    conditions: ConditionsOfIds | None = None


class MadeRow(NamedTuple):
    """``bad``: as of ``MadeRows``, of the row and its partners."""

    output: Any
    label: Any
    bad: dict[int, DecodeError]


@dataclass
class MadeRows(Sequence[MadeRow]):
    """Augmented rows of a batch. With targets, a label is an ``Annotated``: the image's targets and its own label.

    ``bad``: rows without a picture, or with one that the transform refuses, by their number in the batch; their outputs
    hold anything.
    """

    outputs: Any
    labels: Any
    bad: dict[int, DecodeError]
    num_rows: int

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, row: Any) -> Any:
        return list(self)[row]

    def __iter__(self) -> Iterator[MadeRow]:
        for output, label in zip(batches.by_row(self.outputs), batches.each_label(self.labels), strict=True):
            yield MadeRow(output, label, self.bad)


def join_rows(rows: Sequence[MadeRow | None]) -> MadeRows:
    """Rows of a batch that were not made together. None: not made, and to be added to ``bad``."""
    made = [MadeRow(None, None, {}) if row is None else row for row in rows]
    bad = {number: error for row in made for number, error in row.bad.items()}
    return MadeRows([row.output for row in made], [row.label for row in made], bad, len(made))


class BatchMaker:
    """Makes batches, on a GPU on separate streams, so that augmenting runs parallel to the training step.

    There are as many streams as makers at a time, the same ones in every epoch, as torch keeps memory for each. The
    consumer's stream waits for the batch; its thread does not.

    Args:
        reader: reads replacements of bad samples.
        candidates_of: (plan, row, epoch) -> samples that may replace a bad one, in this order; perhaps bad as well.
        to_host: move rows to the host's memory.
    """

    def __init__(
        self,
        augmenter: Augmenter,
        options: LoaderOptions,
        reader: Reader,
        candidates_of: Callable[[StepPlan, int, int], Int64Array],
        index: EntropyIndex | None = None,
        targets: BatchTargets | None = None,
        to_host: bool = False,
    ) -> None:
        self.augmenter = augmenter
        self.options = options
        self.index = index
        self.targets = targets
        self.num_partners = num_partners(augmenter.transform)
        self.mixture = options.source if isinstance(options.source, Mixture) else None
        self._reader = reader
        self._candidates_of = candidates_of
        is_gpu = augmenter.device.startswith("cuda")
        self._to_host = to_host and is_gpu
        self._device = torch.device(augmenter.device) if is_gpu else None
        self._idle: list[torch.cuda.Stream] = []

    def name(self, plan: StepPlan, row: int) -> str:
        return str(self.options.source.name(int(plan.samples[row])))

    def make(self, rows: Rows, work: EpochWork) -> BatchResult:
        """Raises DecodeError, or whatever the transform raises for a sample, where errors are to be raised."""
        if self._device is None:
            return self.join(rows, self.make_rows(rows, work), work)
        try:
            stream = self._idle.pop()
        except IndexError:
            stream = torch.cuda.Stream(self._device)
        try:
            with torch.cuda.device(self._device), torch.cuda.stream(stream):
                result = self.join(rows, self.make_rows(rows, work), work)
                batch = result.batch
                if isinstance(batch, Batch):
                    parts = batches.tensors_of(batch.labels)
                    moved = [part.pin_memory().to(self._device, non_blocking=True) for part in parts]
                    labels = MixedLabels(*moved) if isinstance(batch.labels, MixedLabels) else moved[0]
                    result.batch = Batch(batch.images, labels, batch.ids, batch.padding, batch.copies, batch.source)
                result.ready = torch.cuda.Event()
                result.ready.record()
        finally:
            self._idle.append(stream)
        return result

    def make_rows(self, rows: Rows, work: EpochWork) -> MadeRows:
        """Raises whatever the transform raises for a sample, where errors are to be raised."""
        extra: list[float] = []
        token = extra_seconds.set(extra)
        begin = time.perf_counter()
        try:
            made = self._make_rows(rows, work)
        finally:
            extra_seconds.reset(token)
        seconds = time.perf_counter() - begin + sum(extra)
        number = sum(row not in made.bad for row in range(len(made)))
        nbytes = sum(tensor.nbytes for tensor in batches.tensors_of(made.outputs))
        work.times.stage_done("augment", max(seconds, 0.0), number, nbytes)
        if rows.numbers is not None:
            made.bad = {int(rows.numbers[row]): error for row, error in made.bad.items()}
        return made

    def _make_rows(self, rows: Rows, work: EpochWork) -> MadeRows:
        made = _RowMaker(self, rows, work).make()
        if self._to_host:
            made.outputs, made.labels = batches.on_host(made.outputs), batches.on_host(made.labels)
        return made

    def join(
        self, plan: StepPlan, made: MadeRows, work: EpochWork, announce: Callable[[int], None] | None = None
    ) -> BatchResult:
        """A batch of its rows, with the bad ones skipped or replaced. ``announce``: called with a row before it is
        replaced. Raises DecodeError where errors are to be raised."""
        bad = made.bad
        if not bad:
            batch = self._batch(plan, made.outputs, made.labels, slice(len(made)), plan.padding, plan.ids)
            return BatchResult(batch, plan.done, [])
        if self.options.on_error == "raise":
            raise bad[min(bad)]  # the first by its place, not the one that a thread happened to meet first
        images = batches.by_row(made.outputs)
        labels = batches.each_label(made.labels)
        padding = plan.padding.copy()
        # Ids of the samples whose pixels are in the rows; a replacement's id differs from the planned id.
        shown_ids = plan.ids.copy()
        own = [row for row in sorted(bad) if row < len(made)]
        # A batch must not be empty, since another rank waits for its step: then one row is replaced after all.
        replaced = own if self.options.on_error == "replace" else ([0] if len(own) == len(made) else [])
        for row in replaced:
            if announce is not None:
                announce(row)
            images[row], labels[row], shown_ids[row] = self._replace(plan, row, bad[row], work)
            padding[row] = True
        kept = [row for row in range(len(made)) if row not in bad or row in replaced]
        images = [images[row] for row in kept]
        labels = [labels[row] for row in kept]
        batch = self._batch(plan, images, labels, kept, padding[kept], shown_ids)
        failures = []
        for row in sorted(bad):
            name = self.options.source.name(int(plan.samples[row]))
            failures.append(Failure(name.file, name.member, bad[row].reason, int(plan.ids[row]), work.epoch))
        return BatchResult(batch, plan.done, failures)

    def _batch(
        self, plan: StepPlan, outputs: Any, labels: Any, rows: Any, padding: BoolArray, shown_ids: UInt64Array
    ) -> AnyBatch:
        images = batches.whole_of_rows(outputs)
        copies = None if plan.copies is None else plan.copies[rows]
        source = None if self.mixture is None else self.mixture.source_of(shown_ids[rows])
        key = plan.ids[rows], padding, copies, source
        if self.targets is None:
            return Batch(images, batches.stacked_labels(labels), *key)
        own = batches.stacked_labels([label for _, label in labels])
        return TargetBatch(self.targets.join(images, [of_row for of_row, _ in labels], own), *key)

    def _replace(self, plan: StepPlan, row: int, error: DecodeError, work: EpochWork) -> tuple[Any, Any, int]:
        """Output, label and id of the first good candidate, made with the bad sample's random numbers and partners.
        Raises ``error`` if none is good."""
        alone = plan.part([row])
        keys = list(zip(alone.ids.tolist(), alone.samples.tolist(), strict=True))
        partners = self._reader.read(keys[1:])
        for index in self._candidates_of(plan, row, work.epoch).tolist():
            id = int(self.options.source.ids(np.array([index]))[0])
            read = [*self._reader.read([(id, index)]), *partners]
            if isinstance(read[0][0], DecodeError):
                continue
            shown_ids = alone.ids.copy()
            shown_ids[0] = id
            data, labels = map(list, zip(*read, strict=True))
            rows = alone.read(data, labels, shown_ids)
            token = extra_seconds.set([])  # the time is not counted
            try:
                made = self._make_rows(rows, work)
            finally:
                extra_seconds.reset(token)
            if 0 not in made.bad:
                return batches.by_row(made.outputs)[0], batches.each_label(made.labels)[0], id
        # If this many samples fail, single damaged images are not the cause.
        raise error

    def hand_over(self, result: BatchResult) -> AnyBatch:
        """The batch, for use on the caller's current stream."""
        batch = result.batch
        if self._device is None:
            return batch
        current = torch.cuda.current_stream(self._device)
        current.wait_event(result.ready)
        for tensor in batches.tensors_of(batch if isinstance(batch, Batch) else batch.on_device()):
            # Its memory belongs to the making stream; it must not be used again before the consumer is done with it.
            tensor.record_stream(current)
        return batch


class _RowMaker:
    """Rows in the making. ``_misfits``: bad with their partners alone; as partners they are not."""

    def __init__(self, maker: BatchMaker, rows: Rows, work: EpochWork) -> None:
        self._maker = maker
        self._rows = rows
        self._work = work
        self._bad: dict[int, DecodeError] = {}
        self._misfits: set[int] = set()

    def make(self) -> MadeRows:
        if not isinstance(self._rows.data, np.ndarray):
            self._bad.update({row: data for row, data in enumerate(self._rows.data) if isinstance(data, DecodeError)})
        outputs, labels = self._augment_good()
        return MadeRows(outputs, labels, self._bad, len(self._rows.padding))

    def _augment_good(self) -> tuple[Any, Any]:
        """Outputs and labels by row; bad rows hold anything. Notes what turns out to be bad."""
        bad = self._bad
        unread = self._bad.keys() - self._misfits
        rows = self._rows.unmixed(self._misfits, unread)
        good = [row for row in range(len(rows.data)) if row not in bad]
        if not good:
            # Each of them is skipped or replaced.
            return [torch.empty(0)] * len(rows.padding), [None] * len(rows.padding)
        if bad:
            data = list(rows.data)
            labels = list(rows.labels)
            for row in unread:
                data[row], labels[row] = data[good[0]], labels[good[0]]
            rows = replace(rows, data=data, labels=labels)
        failures: dict[int, DecodeError] = {}
        try:
            result = self._augment(rows, failures)
        except RowsRefused as refusal:
            bad.update(refusal.errors)
            return self._augment_good()
        except ValueError:
            if self._maker.options.on_error == "raise":
                raise
            refused = self._refused(rows.unmixed(good), good)
            if not refused and rows.partners is not None:
                refused = self._refused(rows, good)
                self._misfits.update(refused)
            if not refused:
                raise  # a matter of the batch
            bad.update(refused)
            return self._augment_good()
        found = {row: error for row, error in failures.items() if row not in bad}
        bad.update(found)
        if rows.partners is not None and np.isin(rows.partners, list(found)).any():
            return self._augment_good()  # others were mixed with those
        return result

    def _refused(self, rows: Rows, good: Sequence[int]) -> dict[int, DecodeError]:
        """Find images that the transform does not accept, by trying each alone."""
        alone = try_each(good, lambda row: self._augment(rows.part([row]), {}))
        refused = ((row, result) for row, result in alone if isinstance(result, Exception))
        return {row: refused_by_transform(self._maker.name(rows, row), result) for row, result in refused}

    def _augment(self, rows: Rows, failures: dict[int, DecodeError]) -> tuple[Any, Any]:
        """Outputs and labels by row; notes files that do not decode, whose rows hold anything."""
        has_targets = self._maker.targets is not None
        is_mixed = self._maker.num_partners > 0
        labels = [each.label for each in rows.labels] if has_targets else rows.labels
        conditions = batches.conditions_by_labels(labels)
        if (mixture := self._maker.mixture) is not None:
            names = np.array(mixture.names)[mixture.source_of(rows.ids if rows.shown_ids is None else rows.shown_ids)]
            conditions = {**(conditions or {}), "source": names}
        if self._work.conditions is not None:
            conditions = {**(conditions or {}), **self._work.conditions(rows.ids)}
        if rows.bucket is not None:
            buckets = self._maker.options.buckets
            assert buckets is not None
            conditions = {**(conditions or {}), CONDITION: buckets.condition(rows.bucket, len(rows.ids))}
        copies = 0 if rows.copies is None else rows.copies
        key: dict[str, Any] = {"ids": rows.ids, "epoch": self._work.epoch, "copy": copies, "conditions": conditions}
        if is_mixed:
            key |= {"partners": rows.partners, "labels": labels}
        outputs = self._run(rows, key, failures)
        return outputs if is_mixed or has_targets else (outputs, rows.labels)

    def _run(self, rows: Rows, key: dict[str, Any], failures: dict[int, DecodeError]) -> Any:
        data: Any = rows.data
        call: Any = self._maker.augmenter
        decode_and_run: Any = call.decode_and_run
        if self._maker.targets is not None:
            call = decode_and_run = partial(self._follow, rows, failures)
        if isinstance(data, np.ndarray):
            return call(data, **key)
        on_device = [piece for piece in data if isinstance(piece, torch.Tensor)]
        for piece in on_device:
            # A picture that the cache had no room for dies with this batch, its memory not before it was read.
            piece.record_stream(torch.cuda.current_stream(piece.device))
        if on_device or all(isinstance(piece, np.ndarray) for piece in data):
            return call(data, **key)
        options = self._maker.options
        limits = options.max_pixels, options.channels
        encoded = EncodedBatch(data, partial(self._maker.name, rows), failures, *limits)
        encoded.index = self._maker.index
        outputs = decode_and_run(encoded, **key)
        seconds = sum(encoded.decode_seconds)
        files = [piece for piece in data if not isinstance(piece, np.ndarray)]
        self._work.times.stage_done("decode", seconds, len(files), sum(map(len, files)))
        extra = extra_seconds.get()
        assert extra is not None
        extra.append(-seconds)
        return outputs

    def _follow(
        self,
        rows: Rows,
        failures: dict[int, DecodeError],
        images: Any,
        *,
        conditions: Any,
        labels: Any = None,
        **key: Any,
    ) -> tuple[Any, list[tuple[dict[str, Any], Any]]]:
        """Call the Augmenter with targets; ``labels`` are ``Annotated``. Raises RowsRefused."""
        targets = self._maker.targets
        assert targets is not None

        def check(shapes: Int32Array) -> Any:
            if failures:
                raise RowsRefused(dict(failures))
            names = [self._maker.name(rows, row) for row in range(len(rows.labels))]
            return targets.check([each.targets for each in rows.labels], shapes, names)

        outputs, mixed, belonging, _ = follow(
            self._maker.augmenter, images, check, targets.options, labels, targets.classes, conditions=conditions, **key
        )
        own = [each.label for each in rows.labels] if mixed is None else batches.each_label(mixed)
        keys = rows.labels[0].targets
        return outputs, [({key: found[key] for key in keys}, own[row]) for row, found in enumerate(belonging)]
