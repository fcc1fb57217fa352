"""``Batch``: what a loader hands out, unpacks as ``images, labels``; and what became of samples without a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.checks import number, refused
from variegate.formats.base import SampleName
from variegate.io.addresses import speakable


class Batch(tuple[Any, Any]):
    """``images, labels = batch``, and what else is known about its rows.

    Attributes:
        images: a tensor [N, C, H, W] or [N, H, W, C]; a list of tensors where shapes differ. Of a ``T.MultiView`` a
            tuple of such, one for each group of views: [N, views, C, H, W].
        labels: a tensor [N, ...], int64 for classes.
        ids: uint64[N], the number by which each sample's random numbers were drawn.
        copies: uint32[N], 0 but for samples that come more than once in an epoch (``copies``, ``weights``,
            ``sampler``): these are counted from 0 on, and each is augmented by random numbers of its own.
        padding: bool[N], true for a row that stands in for none of its own: it fills up the last batch of a rank, or
            takes the place of an image that could not be read. Leave these out where every sample must count once.
    """

    ids: npt.NDArray[np.uint64]
    padding: npt.NDArray[np.bool_]
    copies: npt.NDArray[np.uint32]

    def __new__(
        cls,
        images: Any,
        labels: Any = None,
        ids: npt.NDArray[np.uint64] | None = None,
        padding: npt.NDArray[np.bool_] | None = None,
        copies: npt.NDArray[np.uint32] | None = None,
    ) -> Batch:
        # Frameworks that move a batch to a device make it anew from an iterable of its members, as any tuple.
        batch = super().__new__(cls, tuple(images) if labels is None else (images, labels))
        batch.ids = np.zeros(0, np.uint64) if ids is None else ids
        batch.padding = np.zeros(0, np.bool_) if padding is None else padding
        batch.copies = np.zeros(len(batch.ids), np.uint32) if copies is None else copies
        return batch

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (*self, self.ids, self.padding, self.copies)

    @property
    def images(self) -> torch.Tensor:  # as a checker is told: a list, or a tuple of views, is used alike
        return self[0]

    @property
    def labels(self) -> torch.Tensor:
        return self[1]

    @property
    def nbytes(self) -> int:
        """Of the images."""
        return sum(tensor.nbytes for tensor in tensors_of(self.images))


def tensors_of(whole: Any) -> Iterator[torch.Tensor]:
    """All that a batch's images, or its labels, consist of."""
    if isinstance(whole, torch.Tensor):
        yield whole
    else:
        for part in whole:
            yield from tensors_of(part)


@dataclass(frozen=True)
class Failure:
    """A sample that gave no picture. ``epoch`` is the first in which that happened, ``times`` how often it did."""

    file: str
    member: str | None
    reason: str
    id: int
    epoch: int
    times: int = 1

    def __str__(self) -> str:
        return speakable(f"{SampleName(self.file, self.member)}: {self.reason}")


class TooManyErrors(RuntimeError):
    """More samples failed than ``max_errors`` allows."""


class FailureLog:
    """Failures by sample; as long as there are bad samples, however many epochs meet them.

    ``limit``: None, a number of samples, or a share (a float below 1) of those that this rank is to read in an epoch.
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

    def add(self, failures: Iterable[Failure], seen: int) -> None:
        """Raises TooManyErrors where these are more than the limit; ``seen``: samples that a share is taken of."""
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
        """In the order in which they were met."""
        return list(self._by_id.values())
