"""Erasing: where the rectangles lie, and what is written into them before and after Normalize."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests import oracle
from variegate import transforms as T
from variegate.program.ops import Op
from variegate.program.program import Program


def holes(program: Program, row: int) -> np.ndarray:
    if program.length[row] == 0:
        return np.empty((0, 4), int)
    assert program.opcode[row, 0] == Op.ERASE
    first, count = program.args[row, 0, :2].astype(int)
    return np.asarray(program.tables.rectangles[first : first + count])


def torchvision_erasing(rng: np.random.Generator, height: int, width: int) -> tuple[int, ...] | None:
    """One draw of torchvision's RandomErasing.make_params with its default scale and ratio."""
    for _ in range(10):
        area = height * width * rng.uniform(0.02, 0.33)
        aspect = math.exp(rng.uniform(math.log(0.3), math.log(3.3)))
        h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if h < height and w < width:
            return int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - w + 1)), h, w
    return None


@pytest.mark.parametrize("size", [(60, 200), (224, 224)])
def test_random_erasing_draws_torchvisions_boxes(draw: Any, size: tuple[int, int]) -> None:
    n = 10_000
    program = draw(T.RandomErasing(p=1.0), n, size=(*size, 3))
    ours = np.concatenate([holes(program, row) for row in range(n)])
    rng = np.random.default_rng(0)
    theirs = np.array([box for box in (torchvision_erasing(rng, *size) for _ in range(n)) if box is not None])
    assert abs(len(ours) - len(theirs)) <= 20
    for column in range(4):
        a, b = np.sort(ours[:, column]), np.sort(theirs[:, column])
        grid = np.unique(np.concatenate([a, b]))
        shares = np.searchsorted(a, grid, "right") / len(a) - np.searchsorted(b, grid, "right") / len(b)
        # Kolmogorov-Smirnov at n = 10,000 twice: 0.0276 is passed by chance once in a thousand.
        assert np.abs(shares).max() < 0.0276


def test_values_before_normalize_are_levels(draw: Any) -> None:
    image = np.full((20, 30, 3), 100, np.uint8)
    program = draw(T.RandomErasing(p=1.0, value=(1, 2, 3)), [(20, 30)])
    (top, left, height, width) = holes(program, 0)[0]
    out = _as_hwc(oracle.run(program, [image])[0])
    inside = np.zeros((20, 30), bool)
    inside[top : top + height, left : left + width] = True
    assert (out[inside] == (1, 2, 3)).all()
    assert (out[~inside] == 100).all()
    with pytest.raises(
        T.ArgumentError, match=r"RandomErasing: value=-0.5; accepted: levels from 0 to 255, as there is"
    ):
        draw(T.RandomErasing(p=1.0, value=-0.5), 4)


def test_values_after_normalize_are_as_given(draw: Any) -> None:
    program = draw(T.Compose([T.Normalize(0.5, 0.5), T.RandomErasing(p=1.0, value=(-0.5, 0.25, 3))]), 4)
    assert program.args[:, 0, 2:].tolist() == [[0, 0, -0.5, 0.25, 3, 1]] * 4


def test_random_values_have_a_slot_of_their_own(draw: Any) -> None:
    transform = T.RandomErasing(p=1.0, value="random")
    program = draw(T.Compose([T.GaussianNoise(), transform]), 4)
    assert program.args[:, 1, 2:4].tolist() == [[1, 2 + 11]] * 4
    assert transform.num_slots == 12


def test_cutout_is_a_square_about_any_pixel(draw: Any) -> None:
    program = draw(T.Cutout(5), 20_000, size=(8, 9, 3))
    boxes = np.array([holes(program, row)[0] for row in range(20_000)])
    assert boxes[:, 2:].max() == 5
    assert boxes[:, 2:].min() == 3
    middle = boxes[:, 2] == 5
    assert sorted(set(boxes[middle, 0].tolist())) == [0, 1, 2, 3]
    # Centres are uniform over 8 rows, four of which leave the square whole.
    assert abs(middle.mean() - 4 / 8) < 0.02
    assert draw(T.Cutout(0), 5).length.max() == 0


def test_coarse_dropout_lies_within_the_image(draw: Any) -> None:
    program = draw(T.CoarseDropout((2, 4), (3, 6)), 600, size=(12, 10, 3))
    found = [holes(program, row) for row in range(600)]
    assert sorted({len(h) for h in found}) == [2, 3, 4]
    sides = np.concatenate(found)[:, 2:]
    assert sorted(set(sides.ravel().tolist())) == [3, 4, 5, 6]
    shares = draw(T.CoarseDropout(5, (0.25, 0.5)), 200, size=(40, 80, 3))
    sides = np.concatenate([holes(shares, row) for row in range(200)])[:, 2:]
    assert (sides.min(axis=0) == (10, 20)).all()
    assert (sides.max(axis=0) <= (20, 40)).all()


def test_coarse_dropout_noise_has_a_slot_of_its_own(draw: Any) -> None:
    program = draw(T.CoarseDropout(2, 3, fill="random"), 4)
    assert program.args[:, 0, 2:4].tolist() == [[1, 1]] * 4


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (30, 41), (223, 225)])
def test_grid_mask_is_a_regular_grid(draw: Any, size: tuple[int, int]) -> None:
    height, width = size
    program = draw(T.GridMask(10, 0.4), 60, size=(*size, 3))
    for row in range(60):
        mask = np.zeros(size, bool)
        for top, left, h, w in holes(program, row):
            assert not mask[top : top + h, left : left + w].any()
            mask[top : top + h, left : left + w] = True
        rows, columns = mask.any(axis=1), mask.any(axis=0)
        if mask.any():
            np.testing.assert_array_equal(mask, rows[:, None] & columns)
            for line, length in ((rows, height), (columns, width)):
                places = np.flatnonzero(line) % 10
                offsets = [o for o in range(10) if set(places.tolist()) <= {(o + i) % 10 for i in range(4)}]
                assert any(np.array_equal(line, [(i - o) % 10 < 4 for i in range(length)]) for o in offsets)


def _as_hwc(out: Any) -> np.ndarray:
    array = np.asarray(out)
    return array if array.shape[-1] == 3 else array.transpose(1, 2, 0)
