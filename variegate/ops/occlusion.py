"""Occlusions that grow over an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from variegate.checks import integer
from variegate.ops.arguments import BLACK, Fill, Number, checks
from variegate.ops.erase import MAX_HOLES, colour_or_random, emit_rectangles
from variegate.ops.growth import grow
from variegate.ops.magnitude import MagnitudeOp, integers_between, span
from variegate.program.sampling import Floats, Rows, Sampling

MAX_CELLS = 128


@dataclass(frozen=True)
class OcclusionDiffusion(MagnitudeOp):
    """Erase a region that has grown from seeds by random neighbours: ragged, connected occlusions.

    The image is cut into square cells, ``cells`` of them along its longer side (an integer from 1 to 128; the cells'
    side is rounded up to whole pixels). ``num_seeds`` cells, an integer or a range, are drawn uniformly; then a free
    neighbour of the region is added at a time, each equally likely (Eden's model of growth, 1961). ``area``: the share
    of the image that is covered at last, a number or a range from 0 to 1, exceeded by less than a cell. ``fill``: a
    colour, or "random" for noise in every pixel.
    """

    num_seeds: int | Sequence[int] = (1, 4)
    area: Number = (0.02, 0.2)
    fill: Fill | str = BLACK
    cells: int = 32
    num_slots = 3
    _number, _bounds = "area", (0.0, 1.0)
    _checks = checks(
        num_seeds=span(1, MAX_HOLES, whole=True),
        fill=colour_or_random,
        cells=partial(integer, low=1, high=MAX_CELLS),
    )

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        # The first slot draws how much, the second is the key of the growth's own words, the third of the noise.
        seeds = integers_between(self.num_seeds, sampling.uniform(rows, slot)[:, 1]).astype(np.int64)
        keys = sampling.words(rows, slot + 1)[:, 0, :2]
        size = sampling.size[rows]
        side = -(-size.max(axis=1).astype(np.int64) // self.cells)
        pixels = np.ceil(values * size.prod(axis=1, dtype=np.int64)).astype(np.int64)
        rectangles, count = grow(keys, size, side, seeds, pixels)
        owner = np.repeat(np.arange(len(rows)), count)
        emit_rectangles(sampling, rows, rectangles, owner, self.fill, "OcclusionDiffusion", noise_slot=slot + 2)
