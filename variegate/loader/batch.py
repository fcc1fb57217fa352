"""Rows of a batch, apart and joined to tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
import torch

from variegate.arrays import AnyArray, BoolArray, Int64Array, UInt32Array, UInt64Array
from variegate.augmenter.planner import MixedLabels
from variegate.checks import number, refused
from variegate.data.base import SampleRef
from variegate.io.addresses import redact_text
from variegate.threads import at_fork, by_openmp


def by_row(outputs: Any) -> list[Any]:
    """Values of each row; of groups of views a tuple, of its part of each."""
    return list(zip(*outputs, strict=True)) if isinstance(outputs, tuple) else list(outputs)


def whole_of_rows(outputs: Any) -> Any:
    """One tensor if the shapes agree; for groups of views a tuple with one tensor each."""
    if isinstance(outputs, (torch.Tensor, tuple)):
        return outputs
    if isinstance(outputs[0], tuple):
        return tuple(whole_of_rows(list(group)) for group in zip(*outputs, strict=True))
    shapes = {output.shape if isinstance(output, torch.Tensor) else None for output in outputs}
    same = len(shapes) == 1 and None not in shapes
    return by_openmp(lambda: torch.stack(list(outputs))) if same else list(outputs)


def each_label(labels: Any) -> list[Any]:
    """Labels by row."""
    return list(map(MixedLabels._make, zip(*labels, strict=True))) if isinstance(labels, MixedLabels) else list(labels)


def stacked_labels(labels: Any) -> torch.Tensor | MixedLabels:
    """int64 for whole numbers, float32 for Python's and NumPy's floats, else as they come; stacked."""
    if isinstance(labels, (torch.Tensor, MixedLabels)):
        return labels
    if isinstance(labels[0], MixedLabels):
        return MixedLabels(*(torch.stack(parts) for parts in zip(*labels, strict=True)))
    if isinstance(labels[0], torch.Tensor):
        return torch.stack(list(labels))
    array = np.asarray(labels)
    if array.dtype.kind in "iu":
        return torch.from_numpy(array.astype(np.int64))
    return torch.from_numpy(array.astype(np.float32) if array.dtype == np.float64 else array)


def conditions_by_labels(labels: Any) -> dict[str, AnyArray] | None:
    """Conditions for ``Cond(by="label")``, where labels are classes."""
    if isinstance(labels, np.ndarray):
        return {"label": labels} if labels.dtype.kind in "iu" and labels.ndim == 1 else None
    are_classes = all(isinstance(label, (int, np.integer)) for label in labels)
    return {"label": np.array(labels, np.int64)} if are_classes else None


class RowFields:
    """Fields that a batch has for each of its rows; see ``Batch``."""

    ids: UInt64Array
    padding: BoolArray
    copies: UInt32Array
    source: Int64Array

    def _set_rows(
        self,
        ids: UInt64Array | None,
        padding: BoolArray | None,
        copies: UInt32Array | None,
        source: Int64Array | None,
    ) -> None:
        self.ids = np.zeros(0, np.uint64) if ids is None else ids
        self.padding = np.zeros(0, np.bool_) if padding is None else padding
        self.copies = np.zeros(len(self.ids), np.uint32) if copies is None else copies
        self.source = np.zeros(len(self.ids), np.int64) if source is None else source


class Batch(tuple[Any, Any], RowFields):
    """A batch of a ``Loader``: ``images, labels = batch``, with ids and flags per row as attributes.

    Attributes:
        images: a tensor [N, C, H, W] or [N, H, W, C], or a list of tensors if shapes differ. For ``T.MultiView``, a
            tuple with one such tensor per group of views: [N, views, C, H, W].
        labels: a tensor [N, ...]; int64 for classes.
        ids: uint64 [N], the ids that determine the samples' random numbers.
        padding: bool [N], True for rows that do not count: they fill up the last batch of a rank, or replace an
            unreadable image. Ignore these rows where every sample must count once, as in an evaluation.
        copies: uint32 [N], counting the occurrences of a sample within the epoch from 0. Each is augmented differently.
            Above 0 only with ``copies``, ``weights``, a ``sampler`` or a ``Mixture``.
        source: int64 [N], of a ``Mixture``: index in ``mixture.names`` of the source of each row's pixels and label; of
            a replacement that is the replacement's source, while ``ids`` keeps the unreadable sample's id. Otherwise 0.
    """

    def __new__(
        cls,
        images: Any,
        labels: Any = None,
        ids: UInt64Array | None = None,
        padding: BoolArray | None = None,
        copies: UInt32Array | None = None,
        source: Int64Array | None = None,
    ) -> Batch:
        # Frameworks that move a batch to a device rebuild it from an iterable of its members, as with any tuple.
        batch = super().__new__(cls, tuple(images) if labels is None else (images, labels))
        batch._set_rows(ids, padding, copies, source)
        return batch

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (*self, self.ids, self.padding, self.copies, self.source)

    @property
    def images(self) -> torch.Tensor:  # a list, or a tuple of views; Any, because both are used alike
        return self[0]

    @property
    def labels(self) -> torch.Tensor:
        return self[1]

    @property
    def nbytes(self) -> int:
        """Size of the images in bytes."""
        return sum(tensor.nbytes for tensor in tensors_of(self.images))


def tensors_of(whole: Any) -> Iterator[torch.Tensor]:
    """All tensors in a batch's images or labels."""
    if isinstance(whole, torch.Tensor):
        yield whole
    else:
        for part in whole:
            yield from tensors_of(part)


def on_host(value: Any) -> Any:
    """The same, with all tensors in the host's memory."""
    if isinstance(value, torch.Tensor):
        return value.cpu()
    if isinstance(value, dict):
        return {key: on_host(of_key) for key, of_key in value.items()}
    if isinstance(value, (list, tuple)):
        moved = [on_host(each) for each in value]
        return MixedLabels(*moved) if isinstance(value, MixedLabels) else type(value)(moved)
    return value


@dataclass(frozen=True)
class Failure:
    """A sample that could not be read; ``epoch`` is the first one in which it failed, ``times`` counts failures."""

    file: str
    member: str | None
    reason: str
    id: int
    epoch: int
    times: int = 1

    def __str__(self) -> str:
        return redact_text(f"{SampleRef(self.file, self.member)}: {self.reason}")


class TooManyErrors(RuntimeError):
    """Raised when more samples have failed than ``max_errors`` allows."""


class FailureLog:
    """Failures by sample; as long as there are bad samples, however many epochs meet them. Any thread may call any
    method.

    ``limit``: None, a number of samples, or a share (a float below 1) of the samples that this rank reads in an epoch.
    """

    def __init__(self, limit: int | float | None) -> None:
        if limit is not None:
            accepted = (
                "a number of samples (an integer), a share of the data set (a float from 0 to below 1), or None for any"
            )
            limit = number("max_errors", limit, 0, accepted=accepted)
            if isinstance(limit, float) and limit >= 1.0:
                raise refused("max_errors", limit, accepted)
        self._limit = limit
        self._by_id: dict[int, Failure] = {}
        self._seen = 0
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {**vars(self), "_by_id": self._by_id.copy(), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.after_fork()
        at_fork(self)

    def add(self, failures: Iterable[Failure], seen: int) -> None:
        """Raises TooManyErrors where these are more than the limit; ``seen``: samples that a share is taken of."""
        with self._lock:
            self._seen = max(self._seen, seen)
            for failure in failures:
                known = self._by_id.get(failure.id)
                self._by_id[failure.id] = failure if known is None else replace(known, times=known.times + 1)
        if self._limit is None or not self._by_id:
            return
        allowed = self._limit if isinstance(self._limit, int) else int(self._limit * self._seen)
        if len(self._by_id) > allowed:
            latest = self.list()[-1]
            raise TooManyErrors(
                f"{len(self._by_id):,} samples could not be read, max_errors={self._limit!r} allows {allowed:,}; the "
                f"last: {latest} (all: loader.errors)"
            )

    def list(self) -> list[Failure]:
        """List failures in the order of their occurrence."""
        return list(self._by_id.values())
