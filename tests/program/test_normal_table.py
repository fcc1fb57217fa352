"""The table of normal quantiles: against the standard library's, in every segment, and as literals."""

from __future__ import annotations

import hashlib
from statistics import NormalDist

import numpy as np
import pytest

from tests.oracle.normals import segments, upper_quantile
from tests.oracle.position import normal
from variegate.program.rng import FIRST_SEGMENT, SEGMENT_BITS, SEGMENT_SHIFT, SEGMENTS


def normals(words: np.ndarray) -> np.ndarray:
    """Of any words -> float64."""
    pixels = np.resize(words.astype(np.uint32), (1, -(-len(words) // 3), 3))
    return normal(pixels).reshape(-1)[: len(words)].astype(np.float64)


def test_quantiles_are_those_of_the_standard_library() -> None:
    probability = np.concatenate([np.linspace(1e-6, 0.5, 2001), 2.0 ** -np.arange(2.0, 33.0)])
    expected = [-NormalDist().inv_cdf(p) for p in probability.tolist()]
    np.testing.assert_allclose(upper_quantile(probability), expected, rtol=1e-14, atol=1e-15)


def test_lines_are_near_the_quantiles_everywhere() -> None:
    """Ends, middles and random places of every segment."""
    start = (np.arange(len(SEGMENTS) - 1) + FIRST_SEGMENT) << SEGMENT_SHIFT
    places = np.random.default_rng(0).integers(0, 1 << SEGMENT_SHIFT, 30).tolist()
    offsets = np.array([0, 1 << SEGMENT_SHIFT - 1, (1 << SEGMENT_SHIFT) - 1, *places])
    number = (start[:, None] + offsets).astype(np.int32).view(np.float32).reshape(-1)
    words = (number.astype(np.int64) | 1).clip(1, 2**31 - 1).astype(np.uint32)
    error = normals(words) - upper_quantile(words * 2.0**-32)
    assert np.abs(error).max() < 3e-6
    assert len(SEGMENTS) == (31 << SEGMENT_BITS) + 1


def test_moments_of_the_quantiles_are_kept() -> None:
    """Over words that are evenly spread: 2**22 of them, so that their own moments are near those of the normal."""
    words = (np.arange(2**22, dtype=np.int64) * 2**9 + 2**8).astype(np.uint32)
    drawn, exact = normals(words), upper_quantile((words | 1) * 2.0**-32)
    for power in (1, 2, 3, 4, 6):
        np.testing.assert_allclose((drawn**power).mean(), (exact**power).mean(), rtol=1e-6)
    np.testing.assert_allclose((drawn**2).mean(), 1.0, rtol=1e-5)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (0, 6.2302604), (1, 6.2302604), (2, 6.0558267), (1000, 5.0397553), (0x12345678, 1.4675663),
        (0x7FFFFFFF, 0.0), (0x80000000, -6.2302604), (0xC0000000, -0.6744875), (0xFFFFFFFF, -0.0),
    ],
)  # fmt: skip
def test_literal_numbers(word: int, expected: float) -> None:
    """Pinned: a change is a change of everybody's noise."""
    assert normals(np.array([word]))[0] == pytest.approx(expected, abs=1e-6)


def test_literal_table() -> None:
    """Pinned to the bit: processors must agree, and with them all executors."""
    assert SEGMENTS.dtype == np.float32
    np.testing.assert_allclose(SEGMENTS, segments(), rtol=1e-6)
    assert hashlib.sha256(SEGMENTS.tobytes()).hexdigest()[:16] == "b4a01405a6a95c98"
