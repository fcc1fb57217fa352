"""From how many bits on two hashes are near, in this data set."""

from __future__ import annotations

import numpy as np

from variegate.apps.curate.duplicates.grouping import distances
from variegate.apps.curate.duplicates.lookup import Hashes

# Of photos, hashes of unlike ones differ in 28 bits or so, with a standard deviation of 3.
DISTANCE = 11
_SIGMAS = 5.0
_PAIRS, _FEWEST = 100_000, 20


def distance_for(hashes: Hashes) -> int:
    """``DISTANCE``, or less where images of the set look alike anyway, as digits do: five standard deviations below the
    median of how many bits random pairs differ in, both from quantiles, which some true duplicates hardly move.
    ``hashes``: uint64 [n], of images with different pixels."""
    if len(hashes) < _FEWEST:
        return DISTANCE
    chance = np.random.default_rng(0)
    one, other = chance.integers(0, len(hashes), (2, _PAIRS))
    bits = distances(hashes[one], hashes[other])[0][one != other]
    # Whole numbers spread over their unit, so that quantiles lie between them.
    spread = bits + chance.uniform(-0.5, 0.5, len(bits))
    median, lower = np.quantile(spread, [0.5, 0.1587])
    return int(np.clip(median - _SIGMAS * (median - lower), 0, DISTANCE))
