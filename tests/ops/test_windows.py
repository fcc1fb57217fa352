"""Windows of images in their own numbers, 12 bits in 16, and stretches between percentiles."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageOps

import variegate as vg
from variegate import transforms as T
from variegate.ops.arguments import ArgumentError
from variegate.transforms import functional as F

Array = npt.NDArray[Any]
RNG = np.random.default_rng(8)
# Hounsfield units: air, water, tissue, bone.
CT = RNG.integers(-1000, 3000, (2, 40, 50, 1)).astype(np.float32)
DTYPES = (np.uint8, np.uint16, np.float32)


def augmented(transform: Any, images: Any, **options: Any) -> Array:
    return np.asarray(vg.Augmenter(transform, seed=3, layout="NHWC", **options)(images, ids=range(len(images))))


def windowed(image: Array, center: float, width: float) -> Array:
    return np.clip((image.astype(np.float64) - center) / width + 0.5, 0, 1)


BEFORE = [
    [T.RandomHorizontalFlip(p=1), T.RandomRotation(20)],
    [T.RandomResizedCrop(32), T.GaussianBlur(3)],
    [T.RandomAffine(30, interpolation="bilinear"), T.RandomErasing(p=1.0, value=0)],
    [T.ElasticTransform(20.0)],
]


@pytest.mark.parametrize("before", BEFORE, ids=str)
def test_operations_before_a_window_keep_all_numbers(before: list[T.Transform]) -> None:
    plain = augmented(T.Compose(before), CT)
    assert plain.min() < -500
    assert plain.max() > 1500
    made = augmented(T.Compose([*before, T.Window(40, 400)]), CT)
    np.testing.assert_allclose(made, windowed(plain, 40, 400), atol=2e-6)


def test_a_window_fills_with_black_if_it_comes_first() -> None:
    half = T.CenterCrop((100, 50))
    first = augmented(T.Compose([T.Window(40, 400), half]), CT)
    assert (first[:, :30] == 0).all()
    last = augmented(T.Compose([half, T.Window(40, 400)]), CT)
    np.testing.assert_allclose(last[:, :30], windowed(np.float32(0), 40, 400))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_random_window_is_drawn_alike_for_every_dtype(dtype: Any) -> None:
    transform = T.Window((60, 140), (20.5, 300))
    shape = (200, 4, 5, 1)
    program = vg.Augmenter(transform, seed=5).program(np.zeros(shape, dtype), ids=range(200))
    center, width = program.args[:, 0, 0], program.args[:, 0, 1]
    assert 60 <= center.min() < 65 < 135 < center.max() < 140
    assert 20.5 <= width.min() < 35 < 285 < width.max() < 300
    assert abs(np.corrcoef(center, width)[0, 1]) < 0.2
    expected = vg.Augmenter(transform, seed=5).program(np.zeros(shape, np.uint8), ids=range(200))
    np.testing.assert_array_equal(program.args, expected.args)


def test_policies_draw_from_windows() -> None:
    policy = T.RandAugment(
        2, operations=[T.Window(100, (50, 150)), T.PercentileStretch(), "Window", "PercentileStretch"]
    )
    names = {line.split()[0] for id in range(20) for line in vg.Augmenter(policy).explain(id).split("\n")[2:4]}
    assert {"Window", "PercentileStretch"} <= names


TWELVE_BITS = np.arange(4096, dtype=np.uint16).reshape(1, 64, 64, 1)
FULL = T.Window(2047.5, 4095)


def _as_file(path: Path, suffix: str) -> Path:
    stream = io.BytesIO()
    if suffix == "npy":
        np.save(stream, TWELVE_BITS[0])
    else:
        Image.fromarray(TWELVE_BITS[0, ..., 0]).save(stream, suffix)
    (path / f"0.{suffix}").write_bytes(stream.getvalue())
    return path


def _loaded(source: Any) -> Array:
    loader = vg.Loader(source, FULL, batch_size=1, device="cpu", layout="NHWC", depth="uint16", channels=1)
    return np.asarray(next(iter(loader))[0])


WAYS: dict[str, Callable[[Path], Any]] = {
    "Augmenter": lambda path: augmented(FULL, TWELVE_BITS),
    "t(image)": lambda path: FULL(TWELVE_BITS[0])[..., None],
    "function": lambda path: F.window(TWELVE_BITS[0], 2047.5, 4095),
    "arrays": lambda path: _loaded((TWELVE_BITS, [0])),
    ".npy": lambda path: _loaded(_as_file(path, "npy")),
    ".png": lambda path: _loaded(_as_file(path, "png")),
}


@pytest.mark.parametrize("way", WAYS)
def test_12_bits_fill_16_and_stay_distinct(way: str, tmp_path: Path) -> None:
    made = np.asarray(WAYS[way](tmp_path)).reshape(-1)
    assert made.dtype == np.uint16
    assert (made[0], made[-1]) == (0, 65535)
    np.testing.assert_array_equal(np.rint(made * (4095 / 65535)), np.arange(4096))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("channels", [1, 3, 32])
def test_percentiles_are_exact_values_of_each_channel(channels: int, dtype: Any) -> None:
    """Repeated and negative values among them; on uint8 as Pillow's, whose table truncates."""
    numbers = RNG.normal(100, 40, (2, 33, 47, channels)).round(1) - (150 if dtype is np.float32 else 0)
    images = np.clip(numbers, None if dtype is np.float32 else 0, 255).astype(dtype)
    made = augmented(T.PercentileStretch(2.5, 90), images)
    white = {np.uint8: 255, np.uint16: 65535, np.float32: 1.0}[dtype]
    for n, c in np.ndindex(2, channels):
        channel = images[n, ..., c]
        if dtype is np.uint8:
            expected = np.array(ImageOps.autocontrast(Image.fromarray(channel), (2.5, 10)))
            np.testing.assert_array_equal(made[n, ..., c], expected)
            continue
        values = np.sort(channel.reshape(-1)).astype(np.float64)
        low, high = values[int(values.size * 2.5 // 100)], values[-1 - int(values.size * 10 // 100)]
        expected = np.clip((channel - low) / (high - low), 0, 1) * white
        np.testing.assert_allclose(made[n, ..., c], expected, atol=1.01 if white > 1 else 1e-6)


def test_percentiles_ignore_nan() -> None:
    image = np.full((5, 8, 1), np.nan, np.float32)
    image.reshape(-1)[:11] = np.linspace(-5, 5, 11)
    made = F.percentile_stretch(image, 10, 90).reshape(-1)
    np.testing.assert_allclose(made[:11], np.clip(np.linspace(-0.125, 1.125, 11), 0, 1), atol=1e-6)
    assert (made[11:] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 9, 3), (7, 5, 3)])
def test_constant_images_do_not_change(shape: tuple[int, ...], dtype: Any) -> None:
    image = np.full(shape, 1 if dtype is np.float32 else 93, dtype)
    np.testing.assert_array_equal(F.percentile_stretch(image, 1, 99), image)
    assert np.isin(F.window(image, 5, 2), (0, 255, 65535)).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_windows_of_numbers_beyond_all_bounds(value: float) -> None:
    image = np.full((3, 4, 1), value, np.float32)
    expected = 1.0 if value > 0 else 0.0
    for center, width in ((40, 400), (-1e9, 1e-9), (1e9, 1e9)):
        assert (F.window(image, center, width) == expected).all()
    assert np.isfinite(F.percentile_stretch(image)).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: T.Window(40, 0), "Window: width=0; accepted: a number, or a pair .* from 1e-09 to"),
        (lambda: T.Window(40, (400, 300)), r"Window: width=\(400, 300\); accepted"),
        (lambda: T.Window(float("nan"), 3), "Window: center=nan; accepted"),
        (lambda: F.window(CT[0], (1, 2), 3), r"center=\(1, 2\); accepted: a number from"),
        (lambda: T.PercentileStretch(99, 1), "PercentileStretch: low=99; accepted: a percentage below high=1"),
        (lambda: T.PercentileStretch(5, 5), "PercentileStretch: low=5; accepted: a percentage below high=5"),
        (lambda: T.PercentileStretch(0, 101), "PercentileStretch: high=101; accepted: a number from 0 to 100"),
    ],
)
def test_refused_windows(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()
