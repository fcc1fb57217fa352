"""A whole data set in a device's memory, decoded once, for trainings that go over it very often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.data.loader import Loader
from variegate.data.shuffle import Permutation
from variegate.data.sources.base import Source, SourceError
from variegate.data.sources.paths import shown
from variegate.transforms.base import Transform
from variegate.transforms.compose import Compose
from variegate.transforms.output import Identity
from variegate.transforms.resize import Resize

_BATCH = 256


@dataclass(frozen=True)
class LabelledImages:
    """``pixels``: uint8 [N, H, W, C]; ``labels``: int64 [N], both on the device; ``ids``: uint64 [N]; ``names``: N, of
    the samples as their source calls them, or none."""

    pixels: torch.Tensor
    labels: torch.Tensor
    ids: npt.NDArray[np.uint64]
    classes: tuple[str, ...]
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    def to(self, device: str) -> LabelledImages:
        return replace(self, pixels=self.pixels.to(device), labels=self.labels.to(device))

    def take(self, rows: npt.NDArray[np.int64]) -> LabelledImages:
        chosen = torch.from_numpy(rows).to(self.pixels.device)
        names = tuple(self.names[row] for row in rows.tolist()) if self.names else ()
        return LabelledImages(self.pixels[chosen], self.labels[chosen], self.ids[rows], self.classes, names)


def load_images(source: Any, size: tuple[int, int] | None = None, device: str = "auto") -> LabelledImages:
    """Decode all images of a source (whatever ``vg.open_source`` takes) that can be read, in its order.

    ``size``: (height, width) that all are resized to; None where they have one size already. Images that cannot be
    read are left out. Raises SourceError where sizes differ, and where labels are not classes.
    """
    transform: Transform = Identity() if size is None else Compose([Resize(size)])
    loader = Loader(source, transform, _BATCH, device, shuffle=False, on_error="skip", layout="NHWC", prefetch=1)
    pixels: list[torch.Tensor] = []
    labels: list[torch.Tensor] = []
    ids: list[npt.NDArray[np.uint64]] = []
    for batch in loader:
        images, marks = batch
        if not isinstance(images, torch.Tensor) or (pixels and images.shape[1:] != pixels[0].shape[1:]):
            raise SourceError("the images have several sizes; give one that all of them are resized to (--size)")
        good = ~batch.padding
        keep = torch.from_numpy(good).to(images.device)
        pixels.append(images[keep])
        labels.append(marks.to(images.device)[keep])
        ids.append(batch.ids[good])
    every = torch.cat(labels)
    if every.dtype != torch.int64 or every.dim() != 1 or int(every.min()) < 0:
        raise SourceError("every image needs the number of its class as label: class folders, or a column of integers")
    names = loader.source.classes or tuple(str(n) for n in range(int(every.max()) + 1))
    found = np.concatenate(ids)
    return LabelledImages(torch.cat(pixels), every, found, names, _names(loader.source, found))


def _names(source: Source, ids: npt.NDArray[np.uint64]) -> tuple[str, ...]:
    """Of the samples with these ids."""
    every = source.ids(np.arange(len(source), dtype=np.int64))
    place = {number: index for index, number in enumerate(every.tolist())}
    return tuple(shown(str(source.name(place[number]))) for number in ids.tolist())


def split(
    images: LabelledImages, train: int, validation: int | None, seed: int
) -> tuple[LabelledImages, LabelledImages]:
    """Two parts without an image in common, each with the classes in their shares; drawn by ``seed`` alone.

    ``validation``: None takes all the rest, 0 nothing. Raises SourceError for too few images, in all or of a class.
    """
    total = len(images)
    rest = total - train if validation is None else validation
    others = "some" if rest < 1 else f"{rest:,}"
    wanted = f"{train:,} to train" + ("" if validation == 0 else f" and {others} to validate")
    if train < 1 or rest < (validation != 0) or train + rest > total:
        raise SourceError(
            f"{total:,} images are not enough for {wanted}; accepted: together no more than there are (--train)"
        )
    labels = images.labels.cpu().numpy()
    mixed = Permutation(total, seed, 0)(np.arange(total))
    # Stable by class after mixing, so that what is drawn of a class is a random part of it.
    by_class = mixed[np.argsort(labels[mixed], kind="stable")]
    counts = np.bincount(labels, minlength=images.num_classes)
    empty = [images.classes[label] for label in np.flatnonzero(counts == 0)]
    if empty:
        raise SourceError(f"class {empty[0]!r} has no image; accepted: two or more of every class")
    parts = _shares(counts, (train, rest))
    short = np.flatnonzero((parts[: 1 if rest == 0 else 2] == 0).any(axis=0))
    if len(short):
        label = int(short[0])
        raise SourceError(
            f"class {images.classes[label]!r} has {counts[label]:,} of {total:,} images, too few for its share of "
            f"{wanted}; accepted: one or more in each part"
        )
    starts = np.cumsum(counts) - counts
    first = [by_class[start : start + n] for start, n in zip(starts, parts[0], strict=True)]
    second = [by_class[start + n : start + n + m] for start, n, m in zip(starts, *parts, strict=True)]
    return images.take(np.sort(np.concatenate(first))), images.take(np.sort(np.concatenate(second)))


def _shares(counts: npt.NDArray[np.int64], sizes: tuple[int, int]) -> npt.NDArray[np.int64]:
    """int64[2, classes]: how many of each class go into each part; the largest remainders fill up."""
    parts = np.zeros((2, len(counts)), np.int64)
    left = counts.copy()
    for part, size in enumerate(sizes):
        exact = counts * (size / counts.sum())
        parts[part] = np.minimum(np.floor(exact).astype(np.int64), left)
        for label in np.argsort(parts[part] - exact, kind="stable").tolist() * 2:
            if parts[part].sum() == size:
                break
            parts[part, label] += parts[part, label] < left[label]
        left -= parts[part]
    return parts
