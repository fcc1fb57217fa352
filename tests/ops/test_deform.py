"""Deformations: what their fields are, by formulas and by plain twins; and that the pixels follow the fields."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.images import gray, photo
from tests.oracle.executor import instruction
from tests.oracle.geometry import displaced
from tests.oracle.philox import philox4x32
from variegate import transforms as T
from variegate.ops.fields import blurred_deviation, gaussian_taps
from variegate.program.program import Program
from variegate.transforms import functional as F

SIZES = ((1, 1), (3, 2), (17, 31), (64, 16), (65, 224))


def field(program: Program, row: int = 0) -> np.ndarray[Any, Any]:
    """What the only instruction of a row adds to each place, float64 [H, W, 2] in pixels."""
    height, width = program.in_shape[row, :2].tolist()
    places = displaced(instruction(program, row, 0), (height, width), 15)
    x, y = places.x_HW / 2**15 - np.arange(width) - 0.5, places.y_HW / 2**15 - np.arange(height)[:, None] - 0.5
    return np.stack([x, y], axis=-1)


def warped(img: np.ndarray[Any, Any], moved: np.ndarray[Any, Any], fill: int | None, twice: bool) -> Any:
    """torchvision's ``elastic`` in float64: ``grid_sample`` with zeros outside, of the image and of its weight; and if
    not ``twice``, the blend of OpenCV's ``remap`` with a constant border."""
    height, width = img.shape[:2]
    x, y = np.arange(width) + moved[..., 0], np.arange(height)[:, None] + moved[..., 1]
    j, i = np.floor(x).astype(int), np.floor(y).astype(int)
    dx, dy = (x - j)[..., None], (y - i)[..., None]
    pixels = img.reshape(height, width, -1).astype(np.float64)
    weighted = np.concatenate([pixels, np.ones((height, width, 1))], axis=2)

    def tap(a: Any, b: Any) -> Any:
        inside = (a >= 0) & (a < height) & (b >= 0) & (b < width)
        return np.where(inside[..., None], weighted[np.clip(a, 0, height - 1), np.clip(b, 0, width - 1)], 0.0)

    upper, lower = tap(i, j) * (1 - dx) + tap(i, j + 1) * dx, tap(i + 1, j) * (1 - dx) + tap(i + 1, j + 1) * dx
    sampled = upper * (1 - dy) + lower * dy
    values, weight = sampled[..., :-1], sampled[..., -1:]
    color = 0 if fill is None else fill
    return ((weight * values if twice else values) + (1 - weight) * color).reshape(img.shape)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", SIZES)
def test_no_displacement_is_the_image_and_a_constant_one_moves_it(size: tuple[int, int], interpolation: Any) -> None:
    img = photo(*size)
    still = np.zeros((*size, 2), np.float32)
    np.testing.assert_array_equal(F.elastic(img, still, interpolation), img)
    moved = T.OpticalFlowWarp(still + np.array([3, -2], np.float32), interpolation=interpolation, fill=(1, 2, 3))
    expected = T.Compose([T.TranslateX(-3, fill=(1, 2, 3)), T.TranslateY(2, fill=(1, 2, 3))])
    np.testing.assert_array_equal(one(moved, img), one(expected, img))


def one(transform: T.Transform, img: np.ndarray[Any, Any], sample: int = 0) -> np.ndarray[Any, Any]:
    """By the way of batches."""
    made = vg.Augmenter(transform, layout="NHWC", num_threads=1)([img, img], ids=[sample, 99])
    return np.asarray(made[0])


@pytest.mark.parametrize("fill", [None, 0, 77])
@pytest.mark.parametrize("img", [photo(61, 90), gray(33, 50), photo(1, 9), photo(9, 1)], ids=lambda img: str(img.shape))
def test_flows_are_applied_and_blended_at_borders_as_by_torchvision(
    img: np.ndarray[Any, Any], fill: int | None
) -> None:
    """Within the rounding of coordinates and values, and of displacements to 2**-12 pixels."""
    height, width = img.shape[:2]
    pixels = np.random.default_rng(0).normal(0, 3, (height, width, 2)).astype(np.float32)
    halves = pixels / np.array([width / 2, height / 2], np.float32)
    found = F.elastic(img, halves[None], "bilinear", fill=fill).astype(int)
    assert np.abs(found - warped(img, pixels, fill, twice=fill is not None)).max() < 1.5
    np.testing.assert_array_equal(F.elastic(img, halves, fill=fill, device="oracle"), found)
    others = one(T.Compose([T.RandomHorizontalFlip(1.0), T.OpticalFlowWarp(pixels, fill=fill)]), img)
    assert np.abs(others - warped(img[:, ::-1], pixels, fill, twice=False)).max() < 1.5


def test_an_elastic_field_has_torchvisions_deviation_and_correlation(draw: Any) -> None:
    """The formula's: of noise uniform in (-1, 1), of variance 1/3, blurred by a Gaussian; and alpha / 2 pixels."""
    sigma, alpha, size = 5.0, (50.0, 30.0), 128
    program = draw(T.ElasticTransform(alpha, sigma), 48, size=(size, size, 3))
    # Away from the border, where reflections of the noise add to its deviation.
    fields = np.stack([field(program, row)[20:-20, 20:-20] for row in range(48)])
    exact = math.sqrt(1 / 3) / (2 * math.sqrt(math.pi) * sigma) * np.array(alpha) / 2
    np.testing.assert_allclose(
        exact, math.sqrt(1 / 3) * blurred_deviation(sigma, 20) ** 2 * np.array(alpha) / 2, rtol=1e-3
    )
    np.testing.assert_allclose(fields.std(axis=(0, 1, 2)), exact, rtol=0.04)
    np.testing.assert_allclose(fields.mean(axis=(0, 1, 2)), 0, atol=0.1 * exact.max())
    for lag in (4, 8, 12):
        shifted = (fields[:, :, lag:] * fields[:, :, :-lag]).mean(axis=(0, 1, 2)) / fields.var(axis=(0, 1, 2))
        np.testing.assert_allclose(shifted, math.exp(-(lag**2) / (4 * sigma**2)), atol=0.08)
    # As good as normal.
    values = fields[..., 0].ravel() / exact[0]
    assert abs((np.abs(values) < 1).mean() - 0.683) < 0.02


def test_two_sigmas_cut_the_blur_as_torchvision_does(draw: Any) -> None:
    """Displacements along x by kernels of the first sigma's size along both axes, those along y by the second's."""
    program = draw(T.ElasticTransform(50.0, (2.0, 8.0)), 64, size=(96, 96, 3))
    fields = np.stack([field(program, row)[24:-24, 24:-24] for row in range(64)])
    white = np.random.default_rng(0).uniform(-1, 1, (40, 96, 96))
    for axis, radius in enumerate((8, 32)):
        blurred = white
        for along, sigma in ((2, 2.0), (1, 8.0)):
            taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
            blurred = np.apply_along_axis(np.convolve, along, blurred, taps / taps.sum(), "same")
        expected = 25 * blurred[:, 36:-36, 36:-36].std()
        np.testing.assert_allclose(fields[..., axis].std(), expected, rtol=0.08)


def test_smooth_noise_is_drawn_from_the_key_and_blurred_at_its_nodes(draw: Any) -> None:
    """A plain twin, node by node."""
    program = draw(T.ElasticTransform(80, 3.0), [(21, 30, 3)])
    first, lines, columns, _, _, step_x, unit, farthest = program.args[0, 0].tolist()
    assert (lines, columns, 2**26 / step_x) == (11 + 1, 15 + 1, 2)
    blocks = int(-(-lines * columns // 4))
    counter = [[b, 1, int(program.ids[0]) & 0xFFFFFFFF, int(program.ids[0]) >> 32] for b in range(blocks)]
    words = philox4x32(counter, program.key[0]).T.astype(np.int64)
    halves = np.concatenate([words & 0xFFFF, words >> 16]).ravel()
    white = ((2 * halves - 65535) / 65536)[: int(2 * lines * columns)].reshape(2, int(lines), int(columns))
    taps = gaussian_taps(3.0, 6, 2)
    blurred = np.pad(white, ((0, 0), (6, 6), (6, 6)), mode="symmetric")
    for axis in (1, 2):
        blurred = np.apply_along_axis(np.convolve, axis, blurred, taps, mode="valid")
    grid = program.tables.grids[int(first) :].reshape(int(lines), int(columns), 2).transpose(2, 0, 1)
    ratio = grid.std() / blurred.std()
    np.testing.assert_allclose(grid, blurred * ratio, atol=1.01)
    assert farthest == np.abs(grid.astype(int)).max() * 2.0 ** (unit - 6)


def test_grids_stretch_and_squeeze_the_whole_image(draw: Any) -> None:
    program = draw(T.GridDistortion(5, 0.3), 20, size=(103, 224, 3))
    for row in range(20):
        x = field(program, row)[0, :, 0] + np.arange(224)
        assert abs(x[0]) < 0.01
        # Where the strips end, so does the image, and a straight line ends where the last pixel does.
        assert abs(x[-1] + (x[-1] - x[-2]) - 224) < 0.05
        slopes = np.diff(x)
        assert (slopes > 0).all()
        inner = slopes[[20, 60, 100, 150, 200]]
        assert np.ptp(inner) > 0.05
        # Straight within a strip of 44 pixels.
        assert np.ptp(slopes[45:87]) < 0.01
    loose = draw(T.GridDistortion(5, (0.3, 0.3), normalized=False), [(100, 100, 3)])
    np.testing.assert_allclose(field(loose)[0, :, 0], 0.3 * np.arange(100), atol=0.01)


@pytest.mark.parametrize("mode", ["camera", "fisheye"])
def test_a_lens_follows_its_formula(draw: Any, mode: Any) -> None:
    height, width, k = 97, 224, 0.2
    moved = field(draw(T.OpticalDistortion((k, k), mode), [(height, width, 3)]))
    x, y = np.arange(width) - (width - 1) / 2, (np.arange(height) - (height - 1) / 2)[:, None]
    squared = (x / width) ** 2 + (y / height) ** 2 if mode == "camera" else (x**2 + y**2) / (width**2 + height**2) * 4
    factor = k * (squared + squared**2 if mode == "camera" else squared)
    # Straight lines between nodes: 0.4 pixels at this size where the strength is 1.
    np.testing.assert_allclose(moved[..., 0], x * factor, atol=0.4 * k)
    np.testing.assert_allclose(moved[..., 1], y * factor, atol=0.4 * k)


def test_a_thin_plate_goes_through_its_control_points(draw: Any) -> None:
    program = draw(T.ThinPlateSpline(0.3, 3), 150, size=(161, 161, 3))
    fields = np.stack([field(program, row) for row in range(150)])
    middle, corner = fields[:, 80, 80], fields[:, 0, 0]
    for points in (middle, corner):
        np.testing.assert_allclose(points.std(axis=0), 0.03 * 161, rtol=0.2)
    # Control points move by themselves.
    assert abs(np.corrcoef(middle[:, 0], corner[:, 0])[0, 1]) < 0.2
    smooth = np.abs(np.diff(fields, 2, axis=1)).max()
    assert smooth < 1.0


def test_flows_are_described_checked_and_replayed() -> None:
    flow = np.random.default_rng(1).normal(0, 2, (9, 14, 2)).astype(np.float32)
    transform = T.OpticalFlowWarp(flow.tolist(), fill=3)
    assert transform == T.OpticalFlowWarp(flow, fill=3)
    again = T.from_dict(json.loads(json.dumps(transform.to_dict())))
    assert again == transform
    assert hash(again) == hash(transform)
    img = photo(9, 14)
    np.testing.assert_array_equal(again(img).numpy(), transform(img).numpy())
    assert np.abs(transform(img).numpy().transpose(1, 2, 0) - warped(img, flow, 3, twice=False)).max() < 1.5
    with pytest.raises(ValueError, match=r"flow=.*9x14 pixels.*accepted: one of the image's size, 9x13"):
        transform(photo(9, 13))
