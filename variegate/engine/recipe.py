"""The transform that a command line asks for: a policy by name, with or without a crop to one size before it."""

from __future__ import annotations

import os
import re

from variegate.data.sources.paths import is_url, plain
from variegate.policies import load_policy
from variegate.transforms.base import Transform
from variegate.transforms.compose import Compose
from variegate.transforms.output import Identity
from variegate.transforms.resize import RandomResizedCrop


def parse_size(text: str) -> tuple[int, int] | None:
    """``"224"``, ``"192x256"`` (height x width) or ``"none"`` -> (height, width) or None; ValueError for others."""
    if text.lower() == "none":
        return None
    match = re.fullmatch(r"(\d+)(?:x(\d+))?", text.lower())
    sides = [int(side) for side in match.groups() if side] if match else []
    if not sides or not all(1 <= side <= 65_535 for side in sides):
        raise ValueError(f"size: got {text!r}; accepted: a side such as 224, height x width such as 192x256, or none")
    return sides[0], sides[-1]


def build_transform(policy: str, size: tuple[int, int] | None) -> Transform:
    """The policy (a name, a file, or "none"), after ``RandomResizedCrop(size)`` where a size is given.

    Without a size images keep their own. Raises PolicyError for what ``load_policy`` does not know.
    """
    steps: list[Transform] = [] if size is None else [RandomResizedCrop(size)]
    if policy.lower() != "none":
        steps.append(load_policy(policy))
    if not steps:
        steps.append(Identity())
    return steps[0] if len(steps) == 1 else Compose(steps)


def absolute_place(spec: str) -> str:
    """A source as it was given, so that it means the same from any folder."""
    path = plain(spec)
    return path if is_url(path) else os.path.abspath(path)
