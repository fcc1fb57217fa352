"""Policies with a base augmentation (crop, flip, cutout) of their own."""

from __future__ import annotations

from typing import Any

from variegate.ops.compose import Compose
from variegate.ops.crop import RandomCrop
from variegate.ops.resize import Resize
from variegate.policies.pba import PBA


def has_base_augment(policy: Any) -> bool:
    """True if a policy has its own crop: training, evaluation and races then add no crop, flip or cutout.

    A race writes a ``RandomCrop``, of padding 0 if its winner has none. A schedule has all three in its space.
    """
    return crop_size(policy) is not None or _has_cropping_schedule(policy)


def crop_size(policy: Any) -> tuple[int, int] | None:
    """The (height, width) that a policy crops to in its chain, or resizes to before a schedule that crops; or None."""
    kinds = (RandomCrop, Resize) if _has_cropping_schedule(policy) else RandomCrop
    sizes: list[Any] = [
        step.size for step in _steps(policy) if isinstance(step, kinds) and isinstance(step.size, tuple)
    ]
    return (sizes[-1][0], sizes[-1][1]) if sizes else None


def _has_cropping_schedule(policy: Any) -> bool:
    return any(isinstance(one, PBA) and one.resolved.has_base_augment for one in _steps(policy))


def _steps(policy: Any) -> Any:
    return policy.transforms if isinstance(policy, Compose) else [policy]
