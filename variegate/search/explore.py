"""A policy perturbed: algorithm 2 of Population Based Augmentation (arXiv 1905.05393)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from variegate.program.rng import to_unit
from variegate.search.draws import Purpose, below, draw
from variegate.search.policy import Numbers, SearchSpace

RESAMPLED = 0.2  # How often a number is drawn anew.
AMOUNTS = 4  # Otherwise it moves by 0..3.


def explore(space: SearchSpace, numbers: Sequence[int], *, seed: int, step: int, member: int) -> Numbers:
    """Every number for itself: with probability 0.2 any value it may have; else 0 to 3 less or more, kept in bounds.

    A function of its arguments alone. Raises PolicyError for numbers that are no policy of ``space``.
    """
    before = np.array(space.check(numbers))
    limits = np.array(space.limits)
    words = draw(Purpose.EXPLORE, seed, step, member, len(before))
    anew = below(words[:, 1], limits + 1)
    amount = below(words[:, 2], AMOUNTS)
    moved = np.where(below(words[:, 3], 2) == 0, before - amount, before + amount)
    is_anew = to_unit(words[:, 0].astype(np.uint32)) < RESAMPLED
    return tuple(np.where(is_anew, anew, np.clip(moved, 0, limits)).tolist())
