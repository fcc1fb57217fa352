"""The affine family: drawn numbers, matrices against torchvision's formulas, pixels against Pillow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests import oracle
from variegate import transforms as T
from variegate.ops.matrices import (
    inverse_affine_of,
    inverse_rotated_then_sheared_of,
    perspective_coefficients,
    rotated_size,
)


def torchvision_inverse(
    center: tuple[float, float], angle: float, translate: tuple[float, float], scale: float, shear: tuple[float, float]
) -> list[float]:
    """M = T * C * R(a) * S(s) * ShearY * ShearX * C^-1, inverted, by plain 3x3 matrices."""
    a, sx, sy = (math.radians(v) for v in (angle, *shear))
    rotation = np.array([[math.cos(a), -math.sin(a), 0], [math.sin(a), math.cos(a), 0], [0, 0, 1]])
    shear_x = np.array([[1, -math.tan(sx), 0], [0, 1, 0], [0, 0, 1]])
    shear_y = np.array([[1, 0, 0], [-math.tan(sy), 1, 0], [0, 0, 1]])
    move = np.array([[1, 0, translate[0]], [0, 1, translate[1]], [0, 0, 1.0]])
    to_center = np.array([[1, 0, center[0]], [0, 1, center[1]], [0, 0, 1.0]])
    forward = move @ to_center @ rotation @ np.diag([scale, scale, 1]) @ shear_y @ shear_x @ np.linalg.inv(to_center)
    return np.linalg.inv(forward)[:2].ravel().tolist()


def test_affine_matrices_are_torchvisions() -> None:
    rng = np.random.default_rng(0)
    center, translate = rng.uniform(0, 99, (50, 2)), rng.uniform(-9, 9, (50, 2))
    angle, scale, shear = rng.uniform(-180, 180, 50), rng.uniform(0.3, 3, 50), rng.uniform(-40, 40, (50, 2))
    for row in range(50):
        ours = inverse_affine_of(center[row], angle[row], translate[row], scale[row], shear[row])
        theirs = torchvision_inverse(
            tuple(center[row]), angle[row], tuple(translate[row]), scale[row], tuple(shear[row])
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_affine_matrices_of_the_other_order_are_albumentations() -> None:
    center, shift, angle, scale, shear = (3.0, 7.0), (2.0, -1.0), 33.0, 1.7, (20.0, -35.0)
    a, sx, sy = (math.radians(v) for v in (angle, *shear))
    to_center = np.array([[1, 0, center[0]], [0, 1, center[1]], [0, 0, 1.0]])
    rotation = np.array([[math.cos(a), -math.sin(a), 0], [math.sin(a), math.cos(a), 0], [0, 0, 1]])
    sheared = np.array([[1, -math.tan(sx), 0], [-math.tan(sy), 1, 0], [0, 0, 1]])
    move = np.array([[1, 0, shift[0]], [0, 1, shift[1]], [0, 0, 1.0]])
    forward = to_center @ move @ sheared @ rotation @ np.diag([scale, scale, 1]) @ np.linalg.inv(to_center)
    ours = inverse_rotated_then_sheared_of(center, angle, shift, scale, shear)
    np.testing.assert_allclose(ours, np.linalg.inv(forward)[:2].ravel(), rtol=1e-12, atol=1e-12)


def test_random_affine_draws_within_its_ranges(draw: Any) -> None:
    transform = T.RandomAffine(0, translate=(0.1, 0.5))
    program = draw(transform, 5000, size=(40, 100, 3))
    shift = -program.args[:, 0, [2, 5]]
    assert (np.unique(shift[:, 0]) == np.arange(-10, 11)).all()
    assert (np.unique(shift[:, 1]) == np.arange(-20, 21)).all()
    program = draw(T.RandomAffine(0, scale=(0.5, 2.0)), 5000, size=(40, 100, 3))
    scale = 1 / program.args[:, 0, 0]
    assert 0.5 <= scale.min() < 0.51
    assert 1.98 < scale.max() <= 2.0
    assert abs(scale.mean() - 1.25) < 0.03


def test_random_affine_turns_clockwise_as_torchvision(draw: Any) -> None:
    image = np.random.default_rng(1).integers(0, 256, (9, 9, 3), np.uint8)
    program = draw(T.RandomAffine((90, 90)), [(9, 9)])
    (out,) = oracle.run(program, [image])
    np.testing.assert_array_equal(_as_hwc(out), np.rot90(image, -1))


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (40, 60), (223, 225), (50, 50)])
@pytest.mark.parametrize("center", [None, (3.0, 5.5)])
def test_expanded_sizes_are_pillows(size: tuple[int, int], center: tuple[float, float] | None) -> None:
    image = Image.new("RGB", size[::-1])
    angles = [0, 30, 45, 60, 89.99, 90, 135, 180, 225.5, 270, 300, -45, 720.0, *np.linspace(0, 360, 41).tolist()]
    ours = [rotated_size(*size, angle, center) for angle in angles]
    theirs = [image.rotate(a, expand=True, center=center).size[::-1] for a in angles]
    assert ours == theirs


def test_random_rotation_expands(draw: Any) -> None:
    program = draw(T.RandomRotation((90, 90), expand=True), [(4, 9), (9, 4), (5, 5)])
    assert [program.final_size(row) for row in range(3)] == [(9, 4), (4, 9), (5, 5)]
    assert program.args[:, 0, 3].tolist() == [1, 1, 1]


def test_perspective_moves_corners_to_corners() -> None:
    start = np.array([[[0, 0], [99, 0], [99, 49], [0, 49]]] * 20)
    end = start + np.random.default_rng(0).integers(-20, 21, start.shape)
    for row in range(20):
        (a, b, c, d, e, f, g, h), is_valid = perspective_coefficients(start[row].tolist(), end[row].tolist())
        assert is_valid
        for (x, y), expected in zip(end[row], start[row], strict=True):
            w = g * x + h * y + 1
            # Coefficients are rounded to float32, as torchvision's are.
            np.testing.assert_allclose([(a * x + b * y + c) / w, (d * x + e * y + f) / w], expected, atol=1e-3)


def test_perspective_without_an_area_does_nothing(draw: Any) -> None:
    program = draw(T.RandomPerspective(p=1.0), [(1, 1), (1, 50), (50, 1), (50, 50)])
    assert program.length.tolist() == [0, 0, 0, 1]
    assert np.isfinite(draw(T.RandomPerspective(1.0, p=1.0), [(2, 2), (3, 3), (2, 9)] * 200).args).all()


def test_perspective_corners_stay_within_the_distortion(draw: Any) -> None:
    program = draw(T.RandomPerspective(0.5, p=1.0), 3000, size=(41, 81, 3))
    corners = {"near": [], "far": []}  # type: ignore[var-annotated]
    for row in range(3000):
        inverse = np.linalg.inv(np.append(program.args[row, 0], 1.0).reshape(3, 3))
        for name, point in (("near", (0, 0, 1)), ("far", (80, 40, 1))):
            x, y, w = inverse @ point
            corners[name].append((x / w, y / w))
    near, far = np.array(corners["near"]), np.array(corners["far"])
    np.testing.assert_allclose(near.min(axis=0), [0, 0], atol=1e-2)
    np.testing.assert_allclose(near.max(axis=0), [20, 10], atol=1e-2)
    np.testing.assert_allclose(far.min(axis=0), [60, 30], atol=1e-2)
    np.testing.assert_allclose(far.max(axis=0), [80, 40], atol=1e-2)


def test_stretch_keeps_the_centre(draw: Any) -> None:
    program = draw(T.Stretch((0.5, 2.0), (0.5, 2.0)), 1000, size=(40, 60, 3))
    a, b, c, d, e, f = program.args[:, 0, :6].T
    np.testing.assert_allclose(a * 30 + c, 30)
    np.testing.assert_allclose(e * 20 + f, 20)
    assert (b == 0).all()
    assert (d == 0).all()
    assert abs(np.corrcoef(a, e)[0, 1]) < 0.1


def _as_hwc(out: Any) -> np.ndarray:
    array = np.asarray(out)
    return array if array.shape[-1] == 3 else array.transpose(1, 2, 0)
