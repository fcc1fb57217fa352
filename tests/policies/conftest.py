"""Sampling a transform over many images without any pixels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from variegate.program import rng
from variegate.program.program import Output, Program
from variegate.program.sampling import Sampling
from variegate.transforms import Transform

Draw = Callable[..., Program]


def _draw(
    transform: Transform,
    count: int = 1000,
    epoch: int = 0,
    size: tuple[int, int] = (200, 331),
    seed: int = 0,
    ids: list[int] | None = None,
) -> Program:
    chosen = np.arange(count, dtype=np.uint64) if ids is None else np.array(ids, np.uint64)
    shapes = np.array([[*size, 3]] * len(chosen), np.int32)
    sampling = Sampling(shapes, chosen, rng.stream_key(seed, epoch), transform.num_slots, epoch)
    transform.sample(sampling, np.arange(len(chosen)), 0)
    return sampling.finish(Output())


@pytest.fixture
def draw() -> Draw:
    """draw(transform, count=1000, epoch=0, size=(200, 331), seed=0, ids=None) -> Program."""
    return _draw
