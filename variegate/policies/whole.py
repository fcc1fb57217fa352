"""Policies that are all the augmentation of a training."""

from __future__ import annotations

from typing import Any

from variegate.ops.compose import Compose
from variegate.policies.pba import PBA


def is_whole(policy: Any) -> bool:
    """True for a policy with a schedule that has crop, flip and cutout in it: users of policies then add none."""
    steps = policy.transforms if isinstance(policy, Compose) else [policy]
    return any(isinstance(step, PBA) and step.resolved.is_whole for step in steps)
