"""Noise and erasing of the plain executor: against the formulas of docs/operations.md written out pixel by pixel."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from tests.images import gray, noise, photo
from tests.oracle import apply
from tests.oracle.philox import philox4x32
from variegate.program.ops import Op
from variegate.program.program import Tables
from variegate.program.rng import stream_key

KEY = stream_key(seed=7, epoch=3)
ID = (5 << 32) + 12345


def run(op: Op, img_HWC: np.ndarray, *args: float, sample_id: int = ID, **kwargs: object) -> np.ndarray:
    return apply(op, img_HWC, args, sample_id=sample_id, key=KEY, **kwargs)


def words_at(index: int, slot: int, sample_id: int = ID) -> list[int]:
    """The four words of a pixel, from its counter."""
    return [int(w) for w in philox4x32([index, slot, sample_id & 0xFFFFFFFF, sample_id >> 32], KEY)]


def normals_at(index: int, slot: int) -> list[float]:
    """Three standard normal numbers of a pixel, as exact quantiles."""
    return [quantile_of(word) for word in words_at(index, slot)[:3]]


def quantile_of(word: int) -> float:
    """The lower 31 bits, made odd, are 2**32 times the probability of more; the top bit is the sign."""
    size = -NormalDist().inv_cdf((word & 0x7FFFFFFF | 1) * 2.0**-32)
    return -size if word >> 31 else size


@pytest.mark.parametrize("img_HWC", [photo(11, 13), gray(11, 13), photo(1, 1)], ids=["rgb", "gray", "1x1"])
def test_normal_noise_is_the_written_formula(img_HWC: np.ndarray) -> None:
    height, width, channels = img_HWC.shape
    gaussian = run(Op.GAUSSIAN_NOISE, img_HWC, 0.05, 0.1, 4)
    shot = run(Op.SHOT_NOISE, img_HWC, 2.5, 9)
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                value = float(img_HWC[y, x, c])
                exact = value + 255 * (0.05 + 0.1 * normals_at(y * width + x, 4)[c])
                # The table is within 3e-6 of a quantile: here 1e-4 of a level, which tips what lies next to a half.
                assert abs(min(max(exact, 0), 255) - gaussian[y, x, c]) <= 0.5 + 1e-3
                exact = value + math.sqrt(value * 2.5) * normals_at(y * width + x, 9)[c]
                assert abs(min(max(exact, 0), 255) - shot[y, x, c]) <= 0.5 + 1e-3


def test_normal_noise_is_normal() -> None:
    flat = np.full((200, 300, 3), 128, np.uint8)
    change = run(Op.GAUSSIAN_NOISE, flat, 0.02, 0.05, 0).astype(np.float64) - 128
    # 60,000 numbers per channel: three standard errors of mean and deviation are 0.16 and 0.11 levels.
    np.testing.assert_allclose(change.mean(axis=(0, 1)), 255 * 0.02, atol=0.16)
    np.testing.assert_allclose(change.std(axis=(0, 1)), 255 * 0.05, atol=0.15)
    correlation = np.corrcoef(change.reshape(-1, 3).T)
    assert np.abs(correlation - np.eye(3)).max() < 0.02
    assert abs(np.corrcoef(change[:, :-1].ravel(), change[:, 1:].ravel())[0, 1]) < 0.02


def test_salt_and_pepper() -> None:
    img_HWC = noise(150, 200).clip(1, 254)
    out = run(Op.SALT_AND_PEPPER, img_HWC, 0.2, 0.25, 6)
    white, black = (out == 255).all(axis=-1), (out == 0).all(axis=-1)
    np.testing.assert_array_equal(out[~white & ~black], img_HWC[~white & ~black])
    assert abs(white.mean() - 0.05) < 0.005
    assert abs(black.mean() - 0.15) < 0.01
    for index in (0, 1, 777, 29_999):
        u = [(w >> 8) * 2.0**-24 for w in words_at(index, 6)]
        y, x = divmod(index, 200)
        expected = img_HWC[y, x] if u[0] >= np.float32(0.2) else (255 if u[1] < np.float32(0.25) else 0)
        np.testing.assert_array_equal(out[y, x], np.broadcast_to(expected, 3))
    np.testing.assert_array_equal(run(Op.SALT_AND_PEPPER, img_HWC, 0.0, 0.5, 6), img_HWC)
    assert (run(Op.SALT_AND_PEPPER, img_HWC, 1.0, 1.0, 6) == 255).all()


def test_noise_depends_on_id_and_slot_alone() -> None:
    img_HWC = photo(20, 30)
    first = run(Op.GAUSSIAN_NOISE, img_HWC, 0, 0.1, 1)
    np.testing.assert_array_equal(first, run(Op.GAUSSIAN_NOISE, img_HWC, 0, 0.1, 1))
    assert (first != run(Op.GAUSSIAN_NOISE, img_HWC, 0, 0.1, 2)).mean() > 0.5
    assert (first != run(Op.GAUSSIAN_NOISE, img_HWC, 0, 0.1, 1, sample_id=ID + 1)).mean() > 0.5
    assert (first != run(Op.GAUSSIAN_NOISE, img_HWC, 0, 0.1, 1, sample_id=ID & 0xFFFFFFFF)).mean() > 0.5


@pytest.mark.parametrize("img_HWC", [photo(20, 30), gray(20, 30)], ids=["rgb", "gray"])
def test_erase_clips_its_rectangles(img_HWC: np.ndarray) -> None:
    rectangles = np.array([[0, 0, 20, 30], [2, 3, 4, 5], [18, 25, 9, 9], [-3, -2, 5, 4], [50, 50, 2, 2]], np.int32)
    channels = img_HWC.shape[2]
    expected = img_HWC.copy()
    expected[2:6, 3:8] = expected[18:, 25:] = expected[:2, :2] = (9, 8, 7)[:channels]
    # The first rectangle, the whole image, is not among the four that are asked for.
    out = run(Op.ERASE, img_HWC, 1, 4, fill=(9, 8, 7), tables=Tables(rectangles=rectangles))
    np.testing.assert_array_equal(out, expected)


def test_erase_with_uniform_noise() -> None:
    img_HWC = photo(20, 30)
    out = run(Op.ERASE, img_HWC, 0, 1, 1, 8, tables=Tables(rectangles=np.array([[5, 6, 7, 8]], np.int32)))
    inside = np.zeros((20, 30), bool)
    inside[5:12, 6:14] = True
    np.testing.assert_array_equal(out[~inside], img_HWC[~inside])
    for y, x in ((5, 6), (11, 13), (8, 9)):
        assert out[y, x].tolist() == [w >> 24 for w in words_at(y * 30 + x, 8)[:3]]


def test_noise_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="stream key"):
        apply(Op.GAUSSIAN_NOISE, photo(), (0, 0.1, 0))
