"""Which pixels an outline covers, and run lengths."""

from __future__ import annotations

import numpy as np
import pytest

from variegate.data.annotated.outlines import (
    Runs,
    ShapeColumns,
    decode_runs,
    fill_rings,
    masks_of,
    rings_of,
    uncompressed,
)


def filled(points: list[tuple[float, float]], size: tuple[int, int] = (12, 14)) -> np.ndarray:
    mask = np.zeros(size, np.bool_)
    fill_rings(mask, np.array(points, np.float64), [len(points)])
    return mask


def by_definition(points: list[tuple[float, float]], size: tuple[int, int]) -> np.ndarray:
    """Even-odd: how many edges lie to the left of each centre, in its row."""
    mask = np.zeros(size, np.bool_)
    for row, column in np.ndindex(size):
        x, y = column + 0.5, row + 0.5
        for (x0, y0), (x1, y1) in zip(points, points[1:] + points[:1], strict=True):
            if min(y0, y1) <= y < max(y0, y1):
                mask[row, column] ^= x0 + (y - y0) * (x1 - x0) / (y1 - y0) <= x
    return mask


def test_a_pixel_is_covered_where_its_centre_is() -> None:
    mask = filled([(2, 3), (7.4, 3), (7.4, 8.6), (2, 8.6)])
    assert np.argwhere(mask).min(0).tolist() == [3, 2]
    assert np.argwhere(mask).max(0).tolist() == [8, 6]
    # Centres on the outline: the left and the upper one are inside, so that neighbours share no pixel and miss none.
    left, right = filled([(0, 0.5), (4.5, 0.5), (4.5, 6)]), filled([(0, 0.5), (4.5, 6), (0, 6)])
    assert not (left & right).any()
    np.testing.assert_array_equal(left | right, filled([(0, 0.5), (4.5, 0.5), (4.5, 6), (0, 6)]))


def test_random_rings_as_defined() -> None:
    random = np.random.default_rng(0)
    for _ in range(40):
        points = [tuple(point) for point in (random.random((random.integers(3, 9), 2)) * 24 - 6).tolist()]
        np.testing.assert_array_equal(filled(points), by_definition(points, (12, 14)))


def test_nothing_is_covered_outside_or_on_a_line() -> None:
    assert not filled([(-9, -9), (-2, -9), (-2, -1)]).any()
    assert not filled([(1, 1), (5, 5), (1, 1)]).any()


def test_rings_of_an_object_are_joined_and_objects_reordered() -> None:
    rings = rings_of([[0, 0, 3, 0, 3, 3, 0, 3], [2, 2, 6, 2, 6, 6, 2, 6]])
    columns = ShapeColumns()
    for shape in (rings, Runs(12, 14, (0, 12, 156))):
        columns.append(shape)
    packed = columns.packed()
    assert packed is not None
    shapes = packed[np.array([1, 0])]
    masks, areas = masks_of(shapes, range(2), (12, 14), (1.0, 1.0))
    assert masks[1].sum() == masks[1][areas[1]].sum() == 9 + 16 - 1
    np.testing.assert_array_equal(np.flatnonzero(masks[0].any(0)), [0])
    # Twice the size.
    assert masks_of(shapes, range(1, 2), (12, 14), (2.0, 2.0))[0].sum() == 4 * (9 + 16 - 1)


def test_compressed_counts() -> None:
    """Written by pycocotools."""
    assert uncompressed(b"T3d0XW2") == [100, 20, 2280]
    assert uncompressed(b"") == []


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e308, -1e308])
@pytest.mark.parametrize("at", range(6))
def test_any_number_fills_within_the_mask(odd: float, at: int) -> None:
    """Readers refuse most of these; the loop that writes depends on nobody."""
    corners = np.array([[1, 1], [9, 2], [4, 11]], np.float64)
    corners.flat[at] = odd
    whole = np.zeros((16, 12), np.uint8)
    fill_rings(whole[2:14].view(np.bool_), corners, [3])
    assert not whole[:2].any()
    assert not whole[14:].any()


@pytest.mark.parametrize("ends", [[4], [2, 1], [-1], [2**62]])
def test_rings_that_end_elsewhere(ends: list[int]) -> None:
    with pytest.raises(ValueError, match=r"ends: got .*; accepted: ascending numbers, up to that of 3 points"):
        fill_rings(np.zeros((4, 4), np.bool_), np.zeros((3, 2)), ends)


def test_compressed_counts_that_run_over() -> None:
    """Differences add up past int64, and back to the sum that is expected."""
    largest = b"o" * 11 + b"?"  # 2 ** 59 - 1
    for counts in (largest * 40, b"0" + largest * 33 + b"T3", largest + b"T3d0"):
        with pytest.raises(ValueError, match="an RLE of 2 x 3 with a run of"):
            decode_runs(Runs(2, 3, counts), 2, 3)


@pytest.mark.parametrize("counts", [b"T", b"T3d0", b" ~~", b"Pooooooooooooooooooooo0", (3, -1, 4)])
def test_damaged_counts(counts: bytes | tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="an RLE"):
        decode_runs(Runs(2, 3, counts), 2, 3)
    with pytest.raises(ValueError, match="an RLE of 2 x 3, and the image is 4 x 3"):
        decode_runs(Runs(2, 3, counts), 4, 3)
