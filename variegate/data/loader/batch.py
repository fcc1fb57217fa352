"""``Batch``: what a loader hands out; unpacks as ``images, labels``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch


class Batch(tuple[Any, Any]):
    """``images, labels = batch``, and what else is known about its rows.

    Attributes:
        images: a tensor [N, C, H, W] or [N, H, W, C]; a list of tensors where shapes differ.
        labels: a tensor [N, ...], int64 for classes.
        ids: uint64[N], the number by which each sample's random numbers were drawn.
        copies: uint32[N], 0 but for samples that come more than once in an epoch (``weights``, ``sampler``): these are
            counted from 0 on, in no particular order, and each is augmented by random numbers of its own.
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
    def images(self) -> torch.Tensor | list[torch.Tensor]:
        return self[0]

    @property
    def labels(self) -> torch.Tensor:
        return self[1]

    @property
    def nbytes(self) -> int:
        """Of the images."""
        images = self.images
        return images.nbytes if isinstance(images, torch.Tensor) else sum(image.nbytes for image in images)
