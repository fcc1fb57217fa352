"""The transform of a training run, and what is left of one without its policy."""

from __future__ import annotations

import variegate
from variegate.engine.recipe import build_transform, parse_size
from variegate.transforms import Transform
from variegate.transforms.compose import Compose
from variegate.transforms.crop import CenterCrop, Pad, RandomCrop
from variegate.transforms.output import Identity, Normalize, ToDtype
from variegate.transforms.resize import RandomResizedCrop, Resize

# What a batch cannot do without: its size and its format.
_FRAME = (CenterCrop, Normalize, Pad, RandomCrop, RandomResizedCrop, Resize, ToDtype)


def training_transform(policy: str, size: str) -> Transform:
    """``RandomResizedCrop(size)`` (none: whole images), the policy, ``Normalize``.

    Raises PolicyError or ValueError for a policy or size that is not known.
    """
    return Compose(
        [build_transform(policy, parse_size(size)), Normalize(variegate.IMAGENET_MEAN, variegate.IMAGENET_STD)]
    )


def without_policy(transform: Transform) -> Transform | None:
    """Crop, resize and normalise alone; None where the transform does nothing else."""
    steps = _flat(transform)
    kept = [step for step in steps if isinstance(step, _FRAME)]
    if len(kept) == len([step for step in steps if not isinstance(step, Identity)]):
        return None
    return Compose(kept) if kept else Identity()


def _flat(transform: Transform) -> list[Transform]:
    if isinstance(transform, Compose):
        return [step for child in transform.transforms for step in _flat(child)]
    return [transform]
