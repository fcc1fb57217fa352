"""What is done to a training image besides the policy in question."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch

from variegate.training.images import LabelledImages
from variegate.transforms.base import Transform
from variegate.transforms.compose import Compose
from variegate.transforms.crop import RandomCrop
from variegate.transforms.erase import Cutout
from variegate.transforms.flips import RandomHorizontalFlip
from variegate.transforms.output import Normalize

# Added to the deviation, so that a channel that never changes is divided by something.
_LEAST_STD = 1e-3


@dataclass(frozen=True)
class Around:
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
    def of(cls, images: LabelledImages, padding: int, flip: bool, cutout: int) -> Around:
        """With the mean and deviation of these images' channels."""
        values = images.pixels.to(torch.float32) / 255.0
        mean, std = values.mean((0, 1, 2)), values.std((0, 1, 2), correction=0)
        height, width = images.pixels.shape[1:3]
        return cls((height, width), _rounded(mean), _rounded(std.clamp(min=_LEAST_STD)), padding, flip, cutout)

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
            gray = [round(255 * value) for value in self.mean]
            steps.append(Cutout(self.cutout, fill=tuple(gray) if len(gray) == 3 else gray[0]))
        return Compose([*steps, self.plain])

    def to_dict(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def _rounded(values: torch.Tensor) -> tuple[float, ...]:
    # Six digits: the same on devices that add up in another order.
    return tuple(round(value, 6) for value in values.tolist())
