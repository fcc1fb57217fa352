"""From what was read to a batch: augmented together, with the bad samples left out or replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.augmenter import Augmenter
from variegate.backends.encoded_batch import EncodedBatch
from variegate.data.loader.batch import Batch
from variegate.data.loader.failures import Failure
from variegate.data.loader.reading import Rows
from variegate.data.sources.base import SampleName
from variegate.errors import DecodeError
from variegate.threads import by_openmp

# (rows, the bad one, epoch) -> data and label of samples to put in its place, one after another; perhaps bad as well.
FindSubstitutes = Callable[[Rows, int, int], Iterator[tuple[Any, Any]]]


@dataclass
class Made:
    """A batch, and what went wrong with it."""

    batch: Batch
    done: int
    failures: list[Failure]
    ready: Any = None  # what a consumer on another stream has to wait for


class BatchMaker:
    """``on_error``: "raise" for the first bad sample of a batch, "skip" them, or "replace" each by another sample."""

    def __init__(
        self,
        augmenter: Augmenter,
        on_error: str,
        max_pixels: int | None,
        substitutes: FindSubstitutes,
        max_decode_bytes: int | None = None,
    ) -> None:
        self._augmenter, self._on_error, self._limits = augmenter, on_error, (max_pixels, max_decode_bytes)
        self._substitutes = substitutes

    def make(self, rows: Rows, epoch: int) -> Made:
        """Raises DecodeError, or whatever the transform raises for a sample, where errors are to be raised."""
        bad: dict[int, DecodeError] = {}
        if not isinstance(rows.data, np.ndarray):
            bad = {row: data for row, data in enumerate(rows.data) if isinstance(data, DecodeError)}
        outputs = self._augment_good(rows, bad, epoch)
        if bad and self._on_error == "raise":
            raise bad[min(bad)]  # the first by its place, not the one that a thread happened to meet first
        if not bad:
            batch = Batch(_whole(outputs), _labels(rows.labels), rows.ids, rows.padding, rows.copies)
            return Made(batch, rows.done, [])
        failures = [self._failure(rows, row, bad[row], epoch) for row in sorted(bad)]
        images, labels, padding = list(outputs), list(rows.labels), rows.padding.copy()
        # A batch must not be empty, since another rank waits for its step: then one row is replaced after all.
        replaced = sorted(bad) if self._on_error == "replace" else ([0] if len(bad) == len(images) else [])
        for row in replaced:
            images[row], labels[row] = self._replace(rows, row, bad[row], epoch)
            padding[row] = True
        kept = [row for row in range(len(images)) if row not in bad or row in replaced]
        batch = Batch(
            _whole([images[row] for row in kept]),
            _labels([labels[row] for row in kept]),
            rows.ids[kept],
            padding[kept],
            None if rows.copies is None else rows.copies[kept],
        )
        return Made(batch, rows.done, failures)

    def _augment_good(self, rows: Rows, bad: dict[int, DecodeError], epoch: int) -> Any:
        """Outputs by row; bad rows hold anything. Adds to ``bad`` what turns out to be."""
        data, labels = rows.data, rows.labels
        good = [row for row in range(len(data)) if row not in bad]
        if not good:
            return [torch.empty(0)] * len(data)
        if bad:
            data, labels = list(data), list(labels)
            for row in bad:
                data[row], labels[row] = data[good[0]], labels[good[0]]
        try:
            return self._augment(data, labels, rows.name_of, rows.ids, rows.copies, epoch, bad)
        except ValueError as error:
            # An image that the transform does not take, such as one smaller than a crop: which is it?
            if self._on_error == "raise":
                raise
            found = {row: self._refusal(rows, row, epoch) for row in good if row not in bad}
            refused = {row: refusal for row, refusal in found.items() if refusal is not None}
            if not refused:
                raise error  # a matter of the batch
            bad.update(refused)
            return self._augment_good(rows, bad, epoch)

    def _refusal(self, rows: Rows, row: int, epoch: int) -> DecodeError | None:
        one = slice(row, row + 1)
        name_of = partial(_same, rows.name_of(row))
        try:
            self._augment(rows.data[one], rows.labels[one], name_of, rows.ids[one], _part(rows, one), epoch, {})
        except ValueError as error:
            refusal = DecodeError(str(rows.name_of(row)), f"not taken by the transform: {error}")
            refusal.__cause__ = error
            return refusal
        return None

    def _augment(
        self,
        data: Any,
        labels: Any,
        name_of: Callable[[int], SampleName],
        ids: npt.NDArray[np.uint64],
        copies: npt.NDArray[np.uint32] | None,
        epoch: int,
        bad: dict[int, DecodeError],
    ) -> Any:
        key: dict[str, Any] = {"ids": ids, "epoch": epoch, "copy": 0 if copies is None else copies}
        given = given_by_labels(labels)
        if isinstance(data, np.ndarray):
            return self._augmenter(data, **key, conditions=given)
        on_device = [piece for piece in data if isinstance(piece, torch.Tensor)]
        for piece in on_device:
            # A picture that the cache had no room for dies with this batch, its memory not before it was read.
            piece.record_stream(torch.cuda.current_stream(piece.device))
        if on_device or all(isinstance(piece, np.ndarray) for piece in data):
            return self._augmenter(data, **key, conditions=given)
        failures: dict[int, DecodeError] = {}
        encoded = EncodedBatch(data, lambda row: str(name_of(row)), failures, *self._limits)
        outputs = self._augmenter.decode_and_run(encoded, **key, conditions=given)
        for row, error in failures.items():
            bad.setdefault(row, error)
        return outputs

    def _replace(self, rows: Rows, row: int, error: DecodeError, epoch: int) -> tuple[torch.Tensor, Any]:
        """Another image, augmented by the random numbers of the bad one."""
        for data, label in self._substitutes(rows, row, epoch):
            if isinstance(data, DecodeError):
                continue
            bad: dict[int, DecodeError] = {}
            name_of = partial(_same, rows.name_of(row))
            with suppress(ValueError):  # the transform does not take this one either
                one = slice(row, row + 1)
                output = self._augment([data], [label], name_of, rows.ids[one], _part(rows, one), epoch, bad)
                if not bad:
                    return output[0], label
        # Not one good sample among so many: this is not a matter of single images.
        raise error

    def _failure(self, rows: Rows, row: int, error: DecodeError, epoch: int) -> Failure:
        name = rows.name_of(row)
        return Failure(name.file, name.member, error.reason, int(rows.ids[row]), epoch)


def _part(rows: Rows, which: slice) -> npt.NDArray[np.uint32] | None:
    return None if rows.copies is None else rows.copies[which]


def _whole(outputs: Any) -> Any:
    """One tensor, if the shapes agree."""
    if isinstance(outputs, torch.Tensor):
        return outputs
    same = len({tuple(output.shape) for output in outputs}) == 1
    return by_openmp(lambda: torch.stack(list(outputs))) if same else list(outputs)


def _same(name: SampleName, row: int) -> SampleName:
    """The name of the only row."""
    return name


def _labels(labels: Any) -> torch.Tensor:
    """int64 for whole numbers, float32 for Python's and NumPy's floats, else as they come; stacked."""
    if isinstance(labels[0], torch.Tensor):
        return torch.stack(list(labels))
    array = np.asarray(labels)
    if array.dtype.kind in "iu":
        return torch.from_numpy(array.astype(np.int64))
    return torch.from_numpy(array.astype(np.float32) if array.dtype == np.float64 else array)


def given_by_labels(labels: Any) -> dict[str, npt.NDArray[Any]] | None:
    """What ``Cond(by="label")`` chooses by, where labels are classes."""
    if isinstance(labels, np.ndarray):
        return {"label": labels} if labels.dtype.kind in "iu" and labels.ndim == 1 else None
    are_classes = all(isinstance(label, (int, np.integer)) for label in labels)
    return {"label": np.array(labels, np.int64)} if are_classes else None
