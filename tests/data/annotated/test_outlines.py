"""Outlines of masks: what is filled by them is the mask again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from variegate.data.annotated.outlines import Runs, decode_runs, fill_rings, outline_of, runs_of


def masks() -> list[Any]:
    """Of one pixel, of none and of all, of noise, and of large parts with holes and corners that touch."""
    random = np.random.default_rng(2)
    made = [np.ones((1, 1)), np.zeros((3, 4)), np.ones((5, 2)), np.eye(6), 1 - np.eye(7), np.pad(np.ones((1, 1)), 2)]
    for height, width in random.integers(1, 40, (60, 2)).tolist():
        noise = random.random((height, width))
        made.append(noise < 0.5)
        coarse = random.random((height // 6 + 1, width // 6 + 1)) < 0.6
        made.append(np.kron(coarse, np.ones((6, 6)))[:height, :width])
        y, x = np.mgrid[:height, :width]
        made.append(np.hypot(y - height / 2, x - width / 3) // (1 + 5 * noise[0, 0]) % 2)
    return [np.asarray(one, np.uint8) for one in made]


def filled(rings: Any, shape: tuple[int, int]) -> Any:
    mask = np.zeros(shape, np.bool_)
    for ring in rings:
        fill_rings(mask, ring, [len(ring)])
    return mask


@pytest.mark.parametrize("is_single", [False, True])
def test_rings_are_filled_to_the_mask(is_single: bool) -> None:
    for mask in masks():
        rings = outline_of(mask, is_single)
        assert len(rings) <= 1 or not is_single
        assert all(len(ring) >= 3 for ring in rings)
        np.testing.assert_array_equal(filled(rings, mask.shape), mask != 0)


def test_parts_are_rings_of_their_own_unless_there_are_holes() -> None:
    parts = np.zeros((8, 20), np.uint8)
    parts[1:5, 1:5] = parts[2:7, 10:18] = 1
    assert len(outline_of(parts)) == 2
    parts[4, 12] = 0
    assert len(outline_of(parts)) == 1


def test_edges_of_a_rectangle_are_its_outlines_bounds() -> None:
    mask = np.zeros((30, 40), np.uint8)
    mask[5:20, 7:31] = 1
    [ring] = outline_of(mask)
    assert ring.min(axis=0).tolist() == [7, 5]
    assert ring.max(axis=0).tolist() == [31, 20]
    assert len(ring) == 8  # its corners are cut off


def test_runs_are_read_again() -> None:
    for mask in masks():
        height, width = mask.shape
        runs = Runs(height, width, runs_of(mask).encode())
        np.testing.assert_array_equal(decode_runs(runs, height, width), mask != 0)


def test_runs_are_written_as_coco_has_them() -> None:
    """By hand, after the rule of rleToString."""
    mask = np.zeros((5, 6), np.uint8)
    mask[1:4, 2:5] = 1
    assert runs_of(mask) == runs_of(mask != 0)
    lengths = [11, 3, 2, 3, 2, 3, 6]
    again = decode_runs(Runs(5, 6, tuple(lengths)), 5, 6)
    np.testing.assert_array_equal(again, mask != 0)
    # 11 3 2, and then differences from the one before the last: 0 0 0 4
    assert runs_of(mask) == ";320004"
