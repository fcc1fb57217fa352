"""What is done to a training image besides the policy in question."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch

from variegate.training.images import LabelledImages
from variegate.transforms import Transform
from variegate.transforms.compose import Compose
from variegate.transforms.crop import RandomCrop, RandomHorizontalFlip
from variegate.transforms.erase import Cutout
from variegate.transforms.output import Normalize

# Of the deviation, so that a channel that never changes is divided by something.
_LEAST_STD = 1e-3


@dataclass(frozen=True)
class BaselineAugmentation:
    """After the policy: a random crop of the image with a black border of ``padding`` pixels, a flip, a ``cutout`` of
    so many pixels a side filled with the mean, and the normalisation. 0 and False leave a step out.

    What Population Based Augmentation trains CIFAR with, in its order: padding 4, flip, cutout 16.
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
        """With the mean and deviation of these images' channels."""
        found = [_mean_and_std(images.pixels[..., channel]) for channel in range(images.pixels.shape[3])]
        height, width = images.pixels.shape[1:3]
        mean, std = tuple(mean for mean, _ in found), tuple(max(std, _LEAST_STD) for _, std in found)
        return cls((height, width), mean, std, padding, flip, cutout)

    @property
    def fill(self) -> tuple[int, int, int]:
        """The mean as a colour; of grayscale images, three equal levels."""
        red, green, blue = (round(255 * mean) for mean in (self.mean if len(self.mean) == 3 else self.mean[:1] * 3))
        return red, green, blue

    @property
    def plain(self) -> Transform:
        """For images that are not trained on."""
        return Normalize(self.mean, self.std)

    def with_policy(self, policy: Transform | None) -> Transform:
        steps: list[Transform] = [] if policy is None else [policy]
        if self.padding:
            steps.append(RandomCrop(self.size, padding=self.padding))
        if self.flip:
            steps.append(RandomHorizontalFlip())
        if self.cutout:
            steps.append(Cutout(self.cutout, fill=self.fill))
        return Compose([*steps, self.plain])

    def to_dict(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def _mean_and_std(pixels: torch.Tensor) -> tuple[float, float]:
    """Of uint8 pixels as shares of 255, from how often each value occurs: counts are the same on every device, where
    sums of so many floats are not, and a search only goes on with the very numbers that it began with.
    """
    counts = torch.bincount(pixels.flatten(), minlength=256).tolist()
    total = sum(counts)
    first = sum(count * value for value, count in enumerate(counts))
    second = sum(count * value * value for value, count in enumerate(counts))
    mean, variance = first / total, (total * second - first * first) / (total * total)
    return round(mean / 255, 6), round(math.sqrt(variance) / 255, 6)
