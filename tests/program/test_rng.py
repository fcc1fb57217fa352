"""Philox against the Random123 known answers; the numbers made of its words against their distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.oracle.philox import philox4x32
from variegate.program import rng

# Random123 1.14 tests/kat_vectors, philox 4x32 10: counter, key, answer.
KNOWN = {
    "zeros": ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    "ones": ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    "pi": ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
}


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize("name", KNOWN)
def test_known_answers(name: str) -> None:
    counter, key, answer = (words(text) for text in KNOWN[name])
    assert philox4x32(counter, key).tolist() == answer


def test_compiled_words_equal_the_plain_ones() -> None:
    ids = np.array([0, 1, 2**32 - 1, 2**32, 2**63 + 12345, 2**64 - 1], np.uint64)
    key = rng.stream_key(seed=2**64 - 1, epoch=3, copy=2)
    compiled = rng.sample_words(ids, key, 5)
    for n, sample in enumerate(ids.tolist()):
        for slot in range(5):
            plain = philox4x32([0, slot, sample & 0xFFFFFFFF, sample >> 32], key)
            assert compiled[n, slot].tolist() == plain.tolist()


def test_words_of_noise_count_blocks() -> None:
    ids, keys = np.array([5, 2**40], np.uint64), np.array([[1, 2], [3, 4]], np.uint32)
    compiled = rng.noise_words(ids, keys, 7, 3)
    for n, sample in enumerate(ids.tolist()):
        plain = philox4x32([[i, 7, sample & 0xFFFFFFFF, sample >> 32] for i in range(3)], keys[n])
        assert compiled[n].tolist() == plain.tolist()


def test_broadcasting() -> None:
    counters = np.random.default_rng(0).integers(0, 2**32, (3, 5, 4))
    together = philox4x32(counters, [7, 9])
    assert together.shape == (3, 5, 4)
    assert together.dtype == np.uint32
    np.testing.assert_array_equal(together[2, 4], philox4x32(counters[2, 4], [7, 9]))


def test_every_input_changes_the_stream() -> None:
    base = {"seed": 1, "epoch": 2, "copy": 3, "domain": rng.SAMPLE_DOMAIN}
    changes = [{}, {"seed": 2}, {"seed": 1 + 2**32}, {"epoch": 3}, {"epoch": 2 + 2**32}, {"copy": 4}]
    changes.append({"domain": rng.SHUFFLE_DOMAIN})
    keys = {tuple(rng.stream_key(**{**base, **change}).tolist()) for change in changes}
    assert len(keys) == len(changes)


@pytest.fixture(scope="module")
def blocks() -> np.ndarray:
    """uint32[20_000, 12, 4]: as samples draw them."""
    return rng.sample_words(np.arange(20_000, dtype=np.uint64), rng.stream_key(0, 0), rng.GAMMA_SLOTS)


def test_uniform_numbers_fill_the_unit_interval_evenly(blocks: np.ndarray) -> None:
    unit = rng.to_unit(blocks)
    assert unit.min() >= 0
    assert unit.max() < 1
    assert rng.to_unit(np.array([0, 2**32 - 1], np.uint32)).tolist() == [0.0, 1 - 2.0**-32]
    # Each of the 48 words of a sample alone: 100 cells of 200 expected; 99 degrees of freedom, 5 standard deviations.
    for column in unit.reshape(len(unit), -1).T:
        counts = np.bincount((column * 100).astype(int), minlength=100)
        chi2 = ((counts - 200.0) ** 2 / 200.0).sum()
        assert abs(chi2 - 99) < 5 * math.sqrt(2 * 99)


def test_words_of_a_sample_do_not_go_together(blocks: np.ndarray) -> None:
    columns = rng.to_unit(blocks).reshape(len(blocks), -1)
    correlation = np.corrcoef(columns.T) - np.eye(columns.shape[1])
    # 1,128 pairs of 20,000 numbers: 5 standard deviations of 1 / sqrt(20,000).
    assert np.abs(correlation).max() < 5 / math.sqrt(len(blocks))


def test_normal_numbers(blocks: np.ndarray) -> None:
    x = rng.to_normal(blocks).reshape(-1)
    assert np.isfinite(x).all()
    n = len(x)
    assert abs(x.mean()) < 5 / math.sqrt(n)
    assert abs(x.var() - 1) < 5 * math.sqrt(2 / n)
    for level in (-2.0, -1.0, 0.0, 0.5, 3.0):
        share = 0.5 * (1 + math.erf(level / math.sqrt(2)))
        assert abs((x < level).mean() - share) < 5 * math.sqrt(share * (1 - share) / n)
    assert np.isfinite(rng.to_normal(np.zeros(4, np.uint32))).all()


@pytest.mark.parametrize("alpha", [0.2, 1.0, 2.5, 30.0])
def test_gamma_numbers(blocks: np.ndarray, alpha: float) -> None:
    x = rng.to_gamma(blocks, alpha)
    n = len(x)
    assert x.shape == (n,)
    assert (x > 0).all()
    # Mean and variance of Gamma(alpha, 1) are alpha; its fourth central moment is 3 alpha^2 + 6 alpha.
    assert abs(x.mean() - alpha) < 5 * math.sqrt(alpha / n)
    assert abs(x.var() - alpha) < 5 * math.sqrt((2 * alpha**2 + 6 * alpha) / n)
    if alpha == 1.0:
        assert abs((x < math.log(2)).mean() - 0.5) < 5 * 0.5 / math.sqrt(n)
