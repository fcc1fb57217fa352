"""Occlusions that grow: the kernel against its plain twin, the region's area and shape, and what may be asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.test_erase import holes
from tests.oracle.philox import philox4x32
from variegate import transforms as T
from variegate.ops.erase import grow

SIZES = [(1, 1), (1, 7), (3, 2), (17, 31), (64, 16), (65, 63), (223, 225)]


def grown(key: np.ndarray, height: int, width: int, side: int, seeds: int, pixels: int) -> np.ndarray:
    """The plain twin of ``ops/erase.py`` -> which pixels are covered."""
    counters = np.zeros((20_000, 4), np.uint64)
    counters[:, 0] = np.arange(len(counters))
    words = philox4x32(counters, key).reshape(-1).tolist()
    lines, columns = -(-height // side), -(-width // side)
    covered = np.zeros((lines, columns), bool)
    reached = covered.copy()
    waiting: list[tuple[int, int]] = []

    def mask() -> np.ndarray:
        return covered.repeat(side, axis=0).repeat(side, axis=1)[:height, :width]

    for step, word in enumerate(words):
        if mask().sum() >= pixels or (step >= seeds and not waiting):
            return mask()
        if step < seeds:
            y, x = divmod(word * (lines * columns) >> 32, columns)
        else:
            place = word * len(waiting) >> 32
            y, x = waiting[place]
            waiting[place] = waiting[-1]
            waiting.pop()
        if covered[y, x]:
            continue
        covered[y, x] = reached[y, x] = True
        for v, u in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
            if 0 <= v < lines and 0 <= u < columns and not reached[v, u]:
                reached[v, u] = True
                waiting.append((v, u))
    raise AssertionError("no end")


def mask_of(rectangles: np.ndarray, height: int, width: int) -> np.ndarray:
    """And that no two rectangles meet."""
    hits = np.zeros((height, width), int)
    for top, left, h, w in rectangles.tolist():
        hits[top : top + h, left : left + w] += 1
    assert hits.max(initial=0) <= 1
    return hits.astype(bool)


def test_the_kernel_grows_as_its_plain_twin() -> None:
    rng = np.random.default_rng(0)
    count = 8 * len(SIZES)
    size = np.array(SIZES * 8, np.int32)
    keys = rng.integers(0, 1 << 32, (count, 2), dtype=np.uint32)
    side, seeds = rng.integers(1, 9, count) + size.max(axis=1) // 24, rng.integers(1, 9, count)
    pixels = (rng.choice([0.0, 0.1, 0.4, 0.9, 1.0], count) * size.prod(axis=1)).astype(np.int64)
    rectangles, counts = grow(keys, size, side, seeds, pixels)
    assert len(rectangles) == counts.sum()
    for n, own in enumerate(np.split(rectangles, np.cumsum(counts)[:-1])):
        height, width = size[n].tolist()
        expected = grown(keys[n], height, width, int(side[n]), int(seeds[n]), int(pixels[n]))
        np.testing.assert_array_equal(mask_of(own, height, width), expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("area", [0.0, 0.15, 1.0])
def test_area_is_reached_and_exceeded_by_less_than_a_cell(draw: Any, size: tuple[int, int], area: float) -> None:
    program = draw(T.OcclusionDiffusion((1, 3), area, cells=16), 30, size=(*size, 3))
    side = -(-max(size) // 16)
    for row in range(30):
        covered = mask_of(holes(program, row), *size).sum()
        assert area * size[0] * size[1] <= covered < area * size[0] * size[1] + side * side + (area == 0)


def test_it_is_as_many_connected_regions_as_seeds_at_most(draw: Any) -> None:
    for seeds in (1, 3):
        program = draw(T.OcclusionDiffusion(seeds, (0.05, 0.3), cells=20), 40, size=(100, 80, 3))
        numbers = [regions(mask_of(holes(program, row), 100, 80)[::5, ::5]) for row in range(40)]
        assert max(numbers) == seeds
        assert min(numbers) == 1


def regions(mask: np.ndarray) -> int:
    left = {(int(y), int(x)) for y, x in np.argwhere(mask)}
    count = 0
    while left:
        front = [left.pop()]
        count += 1
        while front:
            y, x = front.pop()
            for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if near in left:
                    left.remove(near)
                    front.append(near)
    return count


def test_regions_are_ragged_and_anywhere(draw: Any) -> None:
    program = draw(T.OcclusionDiffusion(1, 0.1), 300, size=(64, 64, 3))
    masks = np.stack([mask_of(holes(program, row), 64, 64) for row in range(300)])
    # Everywhere about as often, corners less than the middle, as growth has fewer ways to them.
    assert (masks.mean(axis=0) > 0.01).all()
    assert 0.1 <= masks.mean() < 0.102
    outlines = (masks[:, 1:] != masks[:, :-1]).sum(axis=(1, 2)) + (masks[:, :, 1:] != masks[:, :, :-1]).sum(axis=(1, 2))
    # A square of that area has an outline of 4 * 20 pixels.
    assert outlines.mean() > 130
