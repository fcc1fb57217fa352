"""One batch of what was read: augmented together, with the bad samples left out or replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.augmenter.per_image import check_partners, num_partners
from variegate.errors import DecodeError, each_alone, not_taken
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.executors.threads import extra_seconds
from variegate.loader.batch import (
    Batch,
    Failure,
    by_row,
    conditions_by_labels,
    each_label,
    stacked_labels,
    whole_of_rows,
)
from variegate.loader.observer import Observer
from variegate.loader.options import ConditionsOfIds
from variegate.loader.reading import Rows
from variegate.loader.targets import RowsRefused, TargetBatch

if TYPE_CHECKING:
    from variegate.loader.making import BatchMaker

# (rows, the bad one, epoch) -> data and label of samples to put in its place, one after another; perhaps bad as well.
FindSubstitutes = Callable[[Rows, int, int], Iterator[tuple[Any, Any]]]

AnyBatch = Batch | TargetBatch


@dataclass
class BatchResult:
    """A batch, and what went wrong with it."""

    batch: AnyBatch
    done: int
    failures: list[Failure]
    ready: Any = None  # what a consumer on another stream has to wait for


class OneBatch:
    """``bad``: rows without a picture, or with one that the transform does not take, and why."""

    def __init__(
        self, maker: BatchMaker, rows: Rows, epoch: int, observer: Observer, given: ConditionsOfIds | None
    ) -> None:
        self._given = given
        self._augmenter, self._substitutes = maker.augmenter, maker.substitutes
        self._on_error, self._limits = maker.options.on_error, maker.options.decode_limits
        self._index, self._targets = maker.index, maker.targets
        self._is_mixed = bool(needed := num_partners(self._augmenter.transform))
        if self._is_mixed and rows.partners is None:
            rows = replace(rows, partners=check_partners("batch", len(rows.ids), needed))
        self._rows, self._epoch, self._observer = rows, epoch, observer
        self._bad: dict[int, DecodeError] = {}
        # Those of them that are bad with their partners alone: as partners they are not.
        self._misfits: set[int] = set()

    def make(self) -> BatchResult:
        rows, bad = self._rows, self._bad
        if not isinstance(rows.data, np.ndarray):
            bad.update({row: data for row, data in enumerate(rows.data) if isinstance(data, DecodeError)})
        outputs, targets = self._augment_good()
        if bad and self._on_error == "raise":
            raise bad[min(bad)]  # the first by its place, not the one that a thread happened to meet first
        number = len(rows.padding)
        if not bad:
            copies = None if rows.copies is None else rows.copies[:number]
            batch = self._batch(whole_of_rows(outputs), targets, rows.ids[:number], rows.padding, copies)
            return BatchResult(batch, rows.done, [])
        failures = [self._failure(row) for row in sorted(bad)]
        images, labels, padding = by_row(outputs), each_label(targets), rows.padding.copy()
        # A batch must not be empty, since another rank waits for its step: then one row is replaced after all.
        own = [row for row in sorted(bad) if row < number]
        replaced = own if self._on_error == "replace" else ([0] if len(own) == number else [])
        for row in replaced:
            images[row], labels[row] = self._replace(row)
            padding[row] = True
        kept = [row for row in range(len(images)) if row not in bad or row in replaced]
        batch = self._batch(
            whole_of_rows([images[row] for row in kept]),
            [labels[row] for row in kept],
            rows.ids[kept],
            padding[kept],
            None if rows.copies is None else rows.copies[kept],
        )
        return BatchResult(batch, rows.done, failures)

    def _batch(
        self,
        images: Any,
        labels: Any,
        ids: npt.NDArray[np.uint64],
        padding: npt.NDArray[np.bool_],
        copies: npt.NDArray[np.uint32] | None,
    ) -> AnyBatch:
        """``labels``: with targets, for each row what belongs to its image and its label."""
        if self._targets is None:
            return Batch(images, stacked_labels(labels), ids, padding, copies)
        own = stacked_labels([label for _, label in labels])
        joined = self._targets.join(images, [of_row for of_row, _ in labels], own)
        return TargetBatch(joined, ids, padding, copies)

    def _augment_good(self) -> tuple[Any, Any]:
        """Outputs and labels by row; bad rows hold anything. Notes what turns out to be bad."""
        rows, bad = self._rows.without(self._bad.keys() - self._misfits).by_themselves(self._misfits), self._bad
        good = [row for row in range(len(rows.data)) if row not in bad]
        if not good:
            # All of them are left out or replaced.
            return [torch.empty(0)] * len(rows.padding), [None] * len(rows.padding)
        if bad:
            data, labels = list(rows.data), list(rows.labels)
            for row in bad.keys() - self._misfits:
                data[row], labels[row] = data[good[0]], labels[good[0]]
            rows = replace(rows, data=data, labels=labels)
        failures: dict[int, DecodeError] = {}
        try:
            result = self._augment(rows, failures)
        except RowsRefused as refusal:
            bad.update(refusal.errors)
            return self._augment_good()
        except ValueError:
            if self._on_error == "raise":
                raise
            refused = self._refused(rows.by_themselves(good), good)
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
        alone = each_alone(good, lambda row: self._augment(rows.alone(row), {}))
        refused = ((row, result) for row, result in alone if isinstance(result, Exception))
        return {row: not_taken(str(rows.name_of(row)), result) for row, result in refused}

    def _augment(self, rows: Rows, failures: dict[int, DecodeError]) -> tuple[Any, Any]:
        """Outputs and labels by row; notes files that do not decode, whose rows hold anything."""
        labels = rows.labels if self._targets is None else [each.label for each in rows.labels]
        key: dict[str, Any] = {"ids": rows.ids, "epoch": self._epoch, "given": conditions_by_labels(labels)}
        if self._given is not None:
            key["given"] = {**(key["given"] or {}), **self._given(rows.ids)}
        key["copy"] = 0 if rows.copies is None else rows.copies
        if self._is_mixed:
            key |= {"partners": rows.partners, "labels": labels}
        outputs = self._run(rows, key, failures)
        return outputs if self._is_mixed or self._targets is not None else (outputs, rows.labels)

    def _follow(
        self, rows: Rows, failures: dict[int, DecodeError], images: Any, *, given: Any, labels: Any = None, **key: Any
    ) -> tuple[Any, list[tuple[dict[str, Any], Any]]]:
        """As a call of the Augmenter; in the place of the labels, for each row what belongs to its image and its label.
        Raises RowsRefused, for files without a size as well, which the targets would be checked against."""
        assert self._targets is not None

        def check(shapes: npt.NDArray[np.int32]) -> Any:
            if failures:
                raise RowsRefused(dict(failures))
            names = [str(rows.name_of(row)) for row in range(len(rows.labels))]
            return self._targets.check([each.targets for each in rows.labels], shapes, names)  # type: ignore[union-attr]

        options = self._targets.options
        outputs, mixed, belonging, _ = self._augmenter.follow(images, check, options, labels, conditions=given, **key)
        own = [each.label for each in rows.labels] if mixed is None else each_label(mixed)
        keys = rows.labels[0].targets
        return outputs, [({key: found[key] for key in keys}, own[row]) for row, found in enumerate(belonging)]

    def _run(self, rows: Rows, key: dict[str, Any], failures: dict[int, DecodeError]) -> Any:
        data = rows.data
        call: Any = self._augmenter
        decode_and_run: Any = call.decode_and_run
        if self._targets is not None:
            call = decode_and_run = partial(self._follow, rows, failures)
        if isinstance(data, np.ndarray):
            return call(data, **key)
        on_device = [piece for piece in data if isinstance(piece, torch.Tensor)]
        for piece in on_device:
            # A picture that the cache had no room for dies with this batch, its memory not before it was read.
            piece.record_stream(torch.cuda.current_stream(piece.device))
        if on_device or all(isinstance(piece, np.ndarray) for piece in data):
            return call(data, **key)
        encoded = EncodedBatch(data, lambda row: str(rows.name_of(row)), failures, *self._limits)
        encoded.is_timed_exactly, encoded.index = self._observer.is_exact, self._index
        outputs = decode_and_run(encoded, **key)
        seconds, files = sum(encoded.decode_seconds), [piece for piece in data if not isinstance(piece, np.ndarray)]
        self._observer.stage_done("decode", seconds, len(files), sum(map(len, files)))
        extra = extra_seconds.get()
        assert extra is not None
        extra.append(-seconds)
        return outputs

    def _replace(self, row: int) -> tuple[Any, Any]:
        """Another image, augmented by the random numbers of the bad one."""
        alone = self._rows.without(self._bad.keys() - self._misfits).alone(row)
        for data, label in self._substitutes(self._rows, row, self._epoch):
            if isinstance(data, DecodeError):
                continue
            failures: dict[int, DecodeError] = {}
            one = replace(alone, data=[data, *alone.data[1:]], labels=[label, *alone.labels[1:]])
            with suppress(ValueError):  # the transform does not take this one either
                outputs, targets = self._augment(one, failures)
                if not failures:
                    return by_row(outputs)[0], each_label(targets)[0]
        # Not one good sample among so many: this is not a matter of single images.
        raise self._bad[row]

    def _failure(self, row: int) -> Failure:
        name = self._rows.name_of(row)
        return Failure(name.file, name.member, self._bad[row].reason, int(self._rows.ids[row]), self._epoch)
