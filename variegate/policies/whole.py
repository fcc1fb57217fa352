"""Policies that are all the augmentation of a training."""

from __future__ import annotations

from typing import Any

from variegate.ops.compose import Compose
from variegate.ops.crop import RandomCrop


def is_whole(policy: Any) -> bool:
    """True of a policy that crops by itself: training, evaluation and races then add no crop, flip or cutout.

    The one rule of who crops, flips and cuts out. A race writes a ``RandomCrop``, of padding 0 where its winner has
    none.
    """
    return whole_size(policy) is not None


def whole_size(policy: Any) -> tuple[int, int] | None:
    """(height, width) that a policy crops to in its chain, or None."""
    steps = policy.transforms if isinstance(policy, Compose) else [policy]
    sizes: list[Any] = [step.size for step in steps if isinstance(step, RandomCrop)]
    return (sizes[-1][0], sizes[-1][1]) if sizes else None
