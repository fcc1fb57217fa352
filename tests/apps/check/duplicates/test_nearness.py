"""How near two hashes have to be follows from how near those of unlike images are."""

from __future__ import annotations

import numpy as np

from variegate.apps.check.near_hashes import DISTANCE, distance_for

_CHANCE = np.random.default_rng(7)


def _spread(number: int, fixed: int = 0) -> np.ndarray:
    """Hashes that share the lowest ``fixed`` bits."""
    low = np.uint64((1 << fixed) - 1)
    return _CHANCE.integers(0, 2**64, number, dtype=np.uint64) & ~low | np.uint64(0x5A5A5A5A5A5A5A5A) & low


def test_hashes_of_photos_and_of_a_few_images_have_the_fixed_distance() -> None:
    assert distance_for(_spread(5000)) == DISTANCE
    assert distance_for(_spread(19, fixed=60)) == DISTANCE
    assert distance_for(_spread(0)) == DISTANCE


def test_images_that_look_alike_anyway_have_to_be_nearer() -> None:
    found = [distance_for(_spread(5000, fixed)) for fixed in (0, 16, 32, 48, 64)]
    assert found == sorted(found, reverse=True)
    assert found[2] < DISTANCE
    assert found[-1] == 0


def test_true_duplicates_hardly_move_it() -> None:
    hashes = _spread(200)
    assert distance_for(np.repeat(hashes, 4) ^ _CHANCE.integers(0, 4, 800, dtype=np.uint64)) == DISTANCE
