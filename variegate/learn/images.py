"""A full data set in a device's memory, decoded once, and its baseline augmentation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from threading import Event
from typing import Any

import numpy as np
import torch

from variegate import transforms as T
from variegate.arrays import Float64Array, Int64Array, UInt64Array
from variegate.data.base import SourceError
from variegate.data.objects.arrays import open_arrays
from variegate.data.opening import open_source
from variegate.data.samples import Samples
from variegate.io.addresses import redact_url
from variegate.learn.reading import measure
from variegate.loader import Loader
from variegate.loader.shuffle import Permutation
from variegate.ops.description import normalize_by
from variegate.options.rows import Row
from variegate.policies.base_augment import crop_size, has_base_augment
from variegate.program.depth import Depth, depth_of
from variegate.threads import computed_once

_BATCH = 256
# Of the deviation, so that a channel that never changes is divided by something.
_LEAST_STD = 1e-3


@dataclass(frozen=True)
class LabelledImages:
    """``pixels``: uint8, uint16 or float32 [N, H, W, C]; ``labels``: int64 [N], both in memory; ``ids``: uint64 [N];
    ``names``: N, of the samples as their source calls them, or none."""

    pixels: torch.Tensor
    labels: torch.Tensor
    ids: UInt64Array
    classes: tuple[str, ...]
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def depth(self) -> Depth:
        depth = depth_of(self.pixels.numpy().dtype)
        assert depth is not None
        return depth

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @computed_once
    def samples(self) -> Samples:
        """The same images as a source, with their ids."""
        return replace(open_arrays(self.pixels.numpy(), self.labels.numpy(), self.classes), id=self.ids)

    def take(self, rows: Int64Array) -> LabelledImages:
        chosen = torch.from_numpy(rows)
        names = tuple(self.names[row] for row in rows.tolist()) if self.names else ()
        return LabelledImages(self.pixels[chosen], self.labels[chosen], self.ids[rows], self.classes, names)


def load_images(
    source: Any,
    size: tuple[int, int] | None = None,
    device: str = "auto",
    stop: Event | None = None,
    reading: Mapping[str, Any] | None = None,
) -> LabelledImages:
    """Decode all readable images of a source, in its order, resized to ``size`` (height, width) if given. ``reading``:
    arguments of a Loader.

    Raises SourceError where sizes differ, and where labels are not classes; KeyboardInterrupt once ``stop`` is set.
    """
    transform: T.Transform = T.Identity() if size is None else T.Compose([T.Resize(size)])
    options: dict[str, Any] = {"shuffle": False, "on_error": "skip", "layout": "NHWC", "prefetch": 1, "targets": False}
    options |= reading or {}
    loader = Loader(open_source(source, stream=False), transform, _BATCH, device, **options)
    parts: list[tuple[torch.Tensor, torch.Tensor, UInt64Array]] = []
    for batch in loader:
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        images, marks = batch
        if not isinstance(images, torch.Tensor) or (parts and images.shape[1:] != parts[0][0].shape[1:]):
            raise SourceError("the images have several sizes; give one that all of them are resized to (--size)")
        good = ~batch.padding
        keep = torch.from_numpy(good).to(images.device)
        parts.append((images[keep], marks.to(images.device)[keep], batch.ids[good]))
    pixels, labels, ids = zip(*parts, strict=True)
    every = torch.cat(labels)
    if every.dtype != torch.int64 or every.dim() != 1 or int(every.min()) < 0:
        raise SourceError("every image needs the number of its class as label: class folders, or a column of integers")
    names = loader.source.classes or tuple(str(n) for n in range(int(every.max()) + 1))
    found = np.concatenate(ids)
    return LabelledImages(torch.cat(pixels).cpu(), every.cpu(), found, names, _names(loader.source, found))


def _names(source: Samples, ids: UInt64Array) -> tuple[str, ...]:
    """Names of the samples with these ids."""
    every = source.ids(np.arange(len(source), dtype=np.int64))
    place = {number: index for index, number in enumerate(every.tolist())}
    return tuple(redact_url(str(source.name(place[number]))) for number in ids.tolist())


def split(
    images: LabelledImages, train: int, validation: int | None, seed: int
) -> tuple[LabelledImages, LabelledImages]:
    """Two disjoint parts with the classes in their shares, drawn by ``seed``. ``validation``: None takes all the rest.

    Raises SourceError for too few images, in all or of a class.
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
    # Stable by class after mixing, so that each class's selection is random.
    by_class = mixed[np.argsort(labels[mixed], kind="stable")]
    counts = np.bincount(labels, minlength=images.num_classes)
    parts = 1 if rest == 0 else 2
    # Classes without images keep their index, and have nothing to split.
    least = np.minimum(counts, 1)
    short = np.flatnonzero((counts < parts) & (counts > 0))
    if len(short):
        name = images.classes[int(short[0])]
        raise SourceError(f"class {name!r} has 1 of {total:,} images; accepted: {('one', 'two')[parts - 1]} or more")
    if min(train, rest or train) < (present := int(least.sum())):
        raise SourceError(f"{wanted}, of {present} classes; accepted: one or more of every class in each part")
    shares = counts.astype(np.float64)
    first_of = _apportion(shares * (train / total), least, counts - (parts - 1) * least, train)
    left = counts - first_of
    second_of = np.zeros_like(counts)
    if rest:
        second_of = _apportion(shares * (rest / total), np.minimum(1, left), left, rest)
    starts = np.cumsum(counts) - counts
    first = [by_class[start : start + n] for start, n in zip(starts, first_of, strict=True)]
    second = [by_class[start + n : start + n + m] for start, n, m in zip(starts, first_of, second_of, strict=True)]
    return images.take(np.sort(np.concatenate(first))), images.take(np.sort(np.concatenate(second)))


def _apportion(exact: Float64Array, least: Int64Array, most: Int64Array, size: int) -> Int64Array:
    """int64[classes] of sum ``size``, within bounds, nearest to ``exact``: the largest remainders first."""
    parts = np.clip(np.floor(exact).astype(np.int64), least, most)
    while (missing := size - int(parts.sum())) != 0:
        step = 1 if missing > 0 else -1
        may = parts < most if missing > 0 else parts > least
        behind = np.where(may, step * (exact - parts), -np.inf)
        parts[int(np.argmax(behind))] += step
    return parts


@dataclass(frozen=True)
class BaselineAugmentation:
    """Crop with a black border, flip, cutout filled with the mean, and normalization, after a policy.

    As Population Based Augmentation trains CIFAR; 0 and False leave a step out.
    """

    size: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    padding: int = 4
    flip: bool = True
    cutout: int = 16

    def __post_init__(self) -> None:
        for name in ("padding", "cutout"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: got {getattr(self, name)}; accepted: 0 or more")

    @classmethod
    def of(cls, images: LabelledImages, padding: int, flip: bool, cutout: int) -> BaselineAugmentation:
        """Create it with the mean and deviation of these images' channels."""
        height, width = images.pixels.shape[1:3]
        if images.depth.is_deep:
            measured = measure(part.numpy() for part in images.pixels.split(_BATCH))
            return cls((height, width), measured.mean, measured.std, padding, flip, cutout)
        found = [_mean_and_std(images.pixels[..., channel]) for channel in range(images.pixels.shape[3])]
        mean = tuple(mean for mean, _ in found)
        std = tuple(max(std, _LEAST_STD) for _, std in found)
        return cls((height, width), mean, std, padding, flip, cutout)

    @property
    def fill(self) -> tuple[int, int, int]:
        """The mean as a fill color, within black and white; for grayscale images, three equal values."""
        means = self.mean if len(self.mean) == 3 else self.mean[:1] * 3
        red, green, blue = (round(255 * min(max(mean, 0.0), 1.0)) for mean in means)
        return red, green, blue

    def with_row(self, row: Row, argument: str) -> BaselineAugmentation:
        """The crop, flip and cutout of a row. Raises ValueError for a part of 0 pixels."""
        padding, cutout = row.pixels(argument, self.padding, self.cutout)
        return replace(self, padding=padding, flip=row.flip, cutout=cutout)

    def steps(self) -> list[T.Transform]:
        """Crop, flip and cutout."""
        crop = T.RandomCrop(self.size, padding=self.padding) if self.padding else None
        flip = T.RandomHorizontalFlip() if self.flip else None
        cutout = T.Cutout(self.cutout, fill=self.fill) if self.cutout else None
        return [step for step in (crop, flip, cutout) if step is not None]

    @property
    def plain(self) -> T.Transform:
        """Transform of images that score."""
        return normalize_by(self.mean, self.std)

    def with_policy(self, policy: T.Transform | None) -> T.Transform:
        """Full transform of images that train; a complete policy brings its own crop, flip and cutout.

        Raises ValueError for a policy that crops to another size.
        """
        if policy is not None and has_base_augment(policy):
            if (size := crop_size(policy)) not in (None, self.size):
                got, mine = (f"{height}x{width}" for height, width in (size, self.size))
                raise ValueError(f"policy: crops to {got}, and the images are {mine}; accepted: one for this size")
            return T.Compose([policy, self.plain])
        return T.Compose([*([] if policy is None else [policy]), *self.steps(), self.plain])

    def to_dict(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def _mean_and_std(pixels: torch.Tensor) -> tuple[float, float]:
    """Mean and deviation as shares of 255 from counts of values, which are the same on every device."""
    counts = torch.bincount(pixels.flatten(), minlength=256).tolist()
    total = sum(counts)
    first = sum(count * value for value, count in enumerate(counts))
    second = sum(count * value * value for value, count in enumerate(counts))
    mean = first / total
    variance = (total * second - first * first) / (total * total)
    return round(mean / 255, 6), round(math.sqrt(variance) / 255, 6)
