"""Makes batches of samples that were read: augmented together, with the unreadable ones skipped or replaced."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from variegate.arrays import BoolArray, Int32Array
from variegate.augmenter.augmenter import Augmenter
from variegate.augmenter.planner import MixedLabels, check_partners, num_partners
from variegate.augmenter.samples import follow
from variegate.decode.entropy.index import EntropyIndex
from variegate.errors import DecodeError, each_alone, not_taken
from variegate.executors.batches import extra_seconds
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.loader import batch as batches
from variegate.loader.batch import Batch, Failure
from variegate.loader.mixture import Mixture
from variegate.loader.options import ConditionsOfIds, LoaderOptions
from variegate.loader.reading import ReadCandidate, Rows, StepPlan
from variegate.loader.stats import StageTimes
from variegate.loader.targets import BatchTargets, RowsRefused, TargetBatch

# (plan, a bad row, epoch) -> (id, sample) of those to put in its place, one after another; perhaps bad as well.
AnyBatch = Batch | TargetBatch
AnyPlan = TypeVar("AnyPlan", bound=StepPlan)


@dataclass
class BatchResult:
    """A batch, and the failures among its samples."""

    batch: AnyBatch
    done: int
    failures: list[Failure]
    ready: Any = None  # what a consumer on another stream has to wait for


@dataclass
class MadeRows:
    """The rows of a batch, or of a part of it, augmented; with targets, a label is what belongs to the image and its
    own label. ``bad``: rows without a picture, or with one that the transform refuses, which hold anything."""

    outputs: Any
    labels: Any
    bad: dict[int, DecodeError]
    # Those of them that are bad with their partners alone: as partners they are not.
    misfits: set[int]
    # The id of the sample that replaces the only row, if it is a replacement.
    replacement_id: int | None = None


class Replacement(NamedTuple):
    """The row that replaces a bad sample; ``id``: of the sample whose pixels and label it has."""

    output: Any
    label: Any
    id: int


# (plan, what was made, bad rows, epoch) -> the replacement of each bad row.
Replace = Callable[[StepPlan, MadeRows, list[int], int], list[Replacement]]


def settle(plan: StepPlan, made: MadeRows, maker: BatchMaker, replace_rows: Replace, epoch: int) -> BatchResult:
    """A batch of its rows, which ``maker``, or another of the same loader, made. Raises DecodeError where errors are to
    be raised."""
    bad = made.bad
    number = len(plan.padding)
    on_error = maker.options.on_error
    if bad and on_error == "raise":
        raise bad[min(bad)]  # the first by its place, not the one that a thread happened to meet first

    # Ids of the samples whose pixels the rows have: those of replacements differ from the plan's.
    shown_ids = plan.ids.copy()

    def batch(outputs: Any, labels: Any, rows: Any, padding: BoolArray) -> AnyBatch:
        images = batches.whole_of_rows(outputs)
        ids = plan.ids[rows]
        targets = maker.targets
        copies = None if plan.copies is None else plan.copies[rows]
        key = ids, padding, copies, None if maker.mixture is None else maker.mixture.source_of(shown_ids[rows])
        if targets is None:
            return Batch(images, batches.stacked_labels(labels), *key)
        own = batches.stacked_labels([label for _, label in labels])
        return TargetBatch(targets.join(images, [of_row for of_row, _ in labels], own), *key)

    if not bad:
        return BatchResult(batch(made.outputs, made.labels, slice(number), plan.padding), plan.done, [])
    failures = []
    for row in sorted(bad):
        name = plan.name_of(row)
        failures.append(Failure(name.file, name.member, bad[row].reason, int(plan.ids[row]), epoch))
    images = batches.by_row(made.outputs)
    labels = batches.each_label(made.labels)
    padding = plan.padding.copy()
    # A batch must not be empty, since another rank waits for its step: then one row is replaced after all.
    own = [row for row in sorted(bad) if row < number]
    replaced = own if on_error == "replace" else ([0] if len(own) == number else [])
    for row, found in zip(replaced, replace_rows(plan, made, replaced, epoch) if replaced else [], strict=True):
        images[row], labels[row], shown_ids[row] = found
        padding[row] = True
    kept = [row for row in range(len(images)) if row not in bad or row in replaced]
    return BatchResult(
        batch([images[row] for row in kept], [labels[row] for row in kept], kept, padding[kept]), plan.done, failures
    )


class BatchMaker:
    """Makes batches, on a GPU on streams of their own, so that augmenting runs beside the training step.

    There are as many streams as makers at a time, the same ones in every epoch, as torch keeps memory for each. The
    consumer's stream waits for the batch; its thread does not.
    """

    def __init__(
        self,
        augmenter: Augmenter,
        options: LoaderOptions,
        read_candidates: Callable[[StepPlan, int, int], Iterator[ReadCandidate]],
        index: EntropyIndex | None = None,
        targets: BatchTargets | None = None,
    ) -> None:
        self.augmenter = augmenter
        self.options = options
        self.index = index
        self._read_candidates = read_candidates
        self.targets = targets
        self.num_partners = num_partners(augmenter.transform)
        self.mixture = options.source if isinstance(options.source, Mixture) else None
        self._device = torch.device(augmenter.device) if augmenter.device.startswith("cuda") else None
        self._idle: list[torch.cuda.Stream] = []

    def make(self, epoch: int, times: StageTimes, rows: Rows, given: ConditionsOfIds | None = None) -> BatchResult:
        """Raises DecodeError, or whatever the transform raises for a sample, where errors are to be raised."""
        if self._device is None:
            return self._make(epoch, times, rows, given)
        try:
            stream = self._idle.pop()
        except IndexError:
            stream = torch.cuda.Stream(self._device)
        try:
            with torch.cuda.device(self._device), torch.cuda.stream(stream):
                result = self._make(epoch, times, rows, given)
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

    def _make(self, epoch: int, times: StageTimes, rows: Rows, given: ConditionsOfIds | None) -> BatchResult:
        rows = self.with_partners(rows)
        made = self.make_rows(epoch, times, rows, given)

        def replace_rows(plan: StepPlan, made: MadeRows, bad: list[int], epoch: int) -> list[Replacement]:
            alone = rows.unmixed(partners=made.bad.keys() - made.misfits)
            found = ((row, self._read_candidates(plan, row, epoch)) for row in bad)
            return [
                self.stand_in(alone.part([row]), samples, made.bad[row], epoch, times, given) for row, samples in found
            ]

        return settle(rows, made, self, replace_rows, epoch)

    def with_partners(self, plan: AnyPlan) -> AnyPlan:
        """Within the batch, where the order of the epoch did not choose them."""
        if not self.num_partners or plan.partners is not None:
            return plan
        return replace(plan, partners=check_partners("batch", len(plan.ids), self.num_partners))

    def make_rows(self, epoch: int, times: StageTimes, rows: Rows, given: ConditionsOfIds | None) -> MadeRows:
        """Raises whatever the transform raises for a sample, where errors are to be raised."""
        extra: list[float] = []
        token = extra_seconds.set(extra)
        begin = time.perf_counter()
        try:
            made = _OneBatch(self, rows, epoch, times, given).make()
        finally:
            extra_seconds.reset(token)
        seconds = time.perf_counter() - begin + sum(extra)
        number = sum(row not in made.bad for row in range(len(rows.padding)))
        nbytes = sum(tensor.nbytes for tensor in batches.tensors_of(made.outputs))
        times.stage_done("augment", max(seconds, 0.0), number, nbytes)
        return made

    def stand_in(
        self,
        alone: Rows,
        samples: Iterator[ReadCandidate],
        error: DecodeError,
        epoch: int,
        times: StageTimes,
        given: ConditionsOfIds | None,
    ) -> Replacement:
        """Replace a bad sample, ``alone`` with its partners, by the first good one of ``samples``, with the bad
        sample's random numbers. Raises ``error`` if none is good."""
        for id, data, label in samples:
            if isinstance(data, DecodeError):
                continue
            failures: dict[int, DecodeError] = {}
            shown_ids = alone.ids.copy()
            shown_ids[0] = id
            one = replace(alone, data=[data, *alone.data[1:]], labels=[label, *alone.labels[1:]], shown_ids=shown_ids)
            with suppress(ValueError):  # the transform does not take this one either
                outputs, labels = _OneBatch(self, one, epoch, times, given).augment(failures)
                if not failures:
                    return Replacement(batches.by_row(outputs)[0], batches.each_label(labels)[0], id)
        # Not one good sample among so many: this is not a matter of single images.
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


class _OneBatch:
    """A batch, or a part of one, in the making; ``_bad`` and ``_misfits`` as in ``MadeRows``."""

    def __init__(
        self, maker: BatchMaker, rows: Rows, epoch: int, times: StageTimes, given: ConditionsOfIds | None
    ) -> None:
        self._maker, self._epoch, self._times, self._given = maker, epoch, times, given
        self._rows = rows
        self._bad: dict[int, DecodeError] = {}
        self._misfits: set[int] = set()

    def make(self) -> MadeRows:
        if not isinstance(self._rows.data, np.ndarray):
            self._bad.update({row: data for row, data in enumerate(self._rows.data) if isinstance(data, DecodeError)})
        outputs, labels = self._augment_good()
        return MadeRows(outputs, labels, self._bad, self._misfits)

    def augment(self, failures: dict[int, DecodeError]) -> tuple[Any, Any]:
        """All rows, as they are; their time is not counted."""
        token = extra_seconds.set([])
        try:
            return self._augment(self._rows, failures)
        finally:
            extra_seconds.reset(token)

    def _augment_good(self) -> tuple[Any, Any]:
        """Outputs and labels by row; bad rows hold anything. Notes what turns out to be bad."""
        bad = self._bad
        unread = self._bad.keys() - self._misfits
        rows = self._rows.unmixed(self._misfits, unread)
        good = [row for row in range(len(rows.data)) if row not in bad]
        if not good:
            # All of them are left out or replaced.
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
        """Those that the transform does not take, each tried alone."""
        alone = each_alone(good, lambda row: self._augment(rows.part([row]), {}))
        refused = ((row, result) for row, result in alone if isinstance(result, Exception))
        return {row: not_taken(str(rows.name_of(row)), result) for row, result in refused}

    def _augment(self, rows: Rows, failures: dict[int, DecodeError]) -> tuple[Any, Any]:
        """Outputs and labels by row; notes files that do not decode, whose rows hold anything."""
        has_targets = self._maker.targets is not None
        is_mixed = self._maker.num_partners > 0
        labels = [each.label for each in rows.labels] if has_targets else rows.labels
        conditions = batches.conditions_by_labels(labels)
        if (mixture := self._maker.mixture) is not None:
            names = np.array(mixture.names)[mixture.source_of(rows.ids if rows.shown_ids is None else rows.shown_ids)]
            conditions = {**(conditions or {}), "source": names}
        if self._given is not None:
            conditions = {**(conditions or {}), **self._given(rows.ids)}
        copies = 0 if rows.copies is None else rows.copies
        key: dict[str, Any] = {"ids": rows.ids, "epoch": self._epoch, "copy": copies, "conditions": conditions}
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
        encoded = EncodedBatch(data, lambda row: str(rows.name_of(row)), failures, *limits)
        encoded.index = self._maker.index
        outputs = decode_and_run(encoded, **key)
        seconds = sum(encoded.decode_seconds)
        files = [piece for piece in data if not isinstance(piece, np.ndarray)]
        self._times.stage_done("decode", seconds, len(files), sum(map(len, files)))
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
        """As a call of the Augmenter; for labels, what belongs to each image and its label. Raises RowsRefused."""
        targets = self._maker.targets
        assert targets is not None

        def check(shapes: Int32Array) -> Any:
            if failures:
                raise RowsRefused(dict(failures))
            names = [str(rows.name_of(row)) for row in range(len(rows.labels))]
            return targets.check([each.targets for each in rows.labels], shapes, names)

        outputs, mixed, belonging, _ = follow(
            self._maker.augmenter, images, check, targets.options, labels, targets.classes, conditions=conditions, **key
        )
        own = [each.label for each in rows.labels] if mixed is None else batches.each_label(mixed)
        keys = rows.labels[0].targets
        return outputs, [({key: found[key] for key in keys}, own[row]) for row, found in enumerate(belonging)]
