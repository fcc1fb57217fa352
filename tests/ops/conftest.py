"""One way to sample a transform in tests: sizes and ids in, a Program out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from variegate.program import rng
from variegate.program.program import Program
from variegate.program.sampling import Sampling
from variegate.transforms import Transform

Draw = Callable[..., Program]


def _draw(
    transform: Transform,
    sizes: Sequence[tuple[int, ...]] | int = 64,
    ids: Sequence[int] | None = None,
    seed: int = 0,
    epoch: int = 0,
    given: Mapping[str, Any] | None = None,
    size: tuple[int, int, int] = (37, 53, 3),
) -> Program:
    shapes = [size] * sizes if isinstance(sizes, int) else [(*s, 3)[:3] for s in sizes]
    chosen = np.arange(len(shapes)) if ids is None else np.asarray(ids)
    sampling = Sampling(
        np.array(shapes, np.int32).reshape(-1, 3),
        chosen.astype(np.uint64),
        rng.stream_key(seed, epoch),
        transform.num_slots,
        epoch=epoch,
        given=given,
        first_key=rng.stream_key(seed, 0),
    )
    transform.sample(sampling, np.arange(len(shapes)), 0)
    return sampling.finish(sampling.output)


@pytest.fixture(scope="session")
def draw() -> Draw:
    """``draw(transform, number of images or list of sizes, ids=, seed=, epoch=, given=, size=) -> Program``."""
    return _draw
