"""Policies that are all the augmentation of a training."""

from __future__ import annotations

from typing import Any

from variegate.ops.compose import Compose
from variegate.ops.crop import RandomCrop
from variegate.ops.resize import Resize
from variegate.policies.pba import PBA


def is_whole(policy: Any) -> bool:
    """True of a policy that crops by itself: training, evaluation and races then add no crop, flip or cutout.

    The one rule of who crops, flips and cuts out. A race writes a ``RandomCrop``, of padding 0 where its winner has
    none; a schedule has all three in its space.
    """
    return whole_size(policy) is not None or _has_whole_schedule(policy)


def whole_size(policy: Any) -> tuple[int, int] | None:
    """(height, width) that a policy crops to in its chain, or resizes to before a schedule that crops; or None."""
    kinds = (RandomCrop, Resize) if _has_whole_schedule(policy) else RandomCrop
    sizes: list[Any] = [
        step.size for step in _steps(policy) if isinstance(step, kinds) and isinstance(step.size, tuple)
    ]
    return (sizes[-1][0], sizes[-1][1]) if sizes else None


def _has_whole_schedule(policy: Any) -> bool:
    return any(isinstance(one, PBA) and one.resolved.is_whole for one in _steps(policy))


def _steps(policy: Any) -> Any:
    return policy.transforms if isinstance(policy, Compose) else [policy]
