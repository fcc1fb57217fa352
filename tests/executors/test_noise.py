"""Noise of the CPU executor: its vectors of Philox, and the distribution of what a large image draws."""

from __future__ import annotations

import math
from ctypes import c_int64, c_void_p

import numpy as np
import pytest

from tests import oracle
from tests.images import gray, photo
from tests.oracle.philox import philox4x32
from tests.programs import program_of, step
from variegate.executors.cpu import executor as cpu
from variegate.native.library import data_ptr, entry
from variegate.program.ops import Op
from variegate.program.program import Output
from variegate.program.rng import stream_key

# Random123 1.14 tests/kat_vectors, philox 4x32 10: counter, key, the first three words of the answer.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420),
    ),
]
SIDE = 1300


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_vectors_of_philox_give_the_known_answers(
    counter: tuple[int, ...], key: tuple[int, ...], answer: tuple[int, ...]
) -> None:
    assert philox4x32(counter, key)[:3].tolist() == list(answer)
    counters, keys, found = np.array([counter], np.uint32), np.array(key, np.uint32), np.empty(2, np.uint32)
    fill_keys = entry("vg_fill_keys", c_void_p, c_int64, c_void_p, c_void_p, result=None)
    fill_keys(data_ptr(counters), 1, data_ptr(keys), data_ptr(found))
    assert found.tolist() == list(answer[:2])


# Noise is drawn for so many pixels at a time.
CHUNK = 256


@pytest.mark.parametrize("width", [1, 15, 16, 17, 63, 64, 65, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 31])
@pytest.mark.parametrize("make", [photo, gray])
def test_rows_of_every_width(width: int, make: object) -> None:
    """Noise, then rectangles that begin and end anywhere in a chunk, with bytes and with normal numbers."""
    image = make(3, width)  # type: ignore[operator]
    rectangles = ((0, width // 3, 2, width // 2 + 1), (1, -4, 9, 6), (2, width - 1, 5, 5))
    erase = step(Op.ERASE, 3, 1, 9, table=rectangles)
    after = step(Op.ERASE, 3, 1, 11, 0, 0, 0, 1, table=rectangles)
    chains = [
        [step(Op.GAUSSIAN_NOISE, 0.05, 0.2, 4), erase],
        [step(Op.SHOT_NOISE, 2.5, 5)],
        [step(Op.SALT_AND_PEPPER, 0.4, 0.3, 6), after],
    ]
    for output in (Output(), Output((0.5,), (0.25,)), Output((0.5,), (0.25,), layout="NHWC")):
        rows = chains if output.is_float else [chain[:1] for chain in chains]
        program = program_of(rows, [image] * 3, output, [3, 2**40 + 5, 2**64 - 1])
        for out, wanted in zip(cpu.run(program, [image] * 3, 1), oracle.run(program, [image] * 3), strict=True):
            np.testing.assert_array_equal(out, wanted)


def draw(sample_id: int, key: np.ndarray) -> np.ndarray:
    """float64[SIDE, SIDE, 3] standard normal numbers."""
    image = np.zeros((SIDE, SIDE, 3), np.uint8)
    everything = step(Op.ERASE, 1, 1, 4, 0, 0, 0, 1, table=((0, 0, SIDE, SIDE),))
    program = program_of([[everything]], [image], Output((0.5,), (0.25,), layout="NHWC"), [sample_id], key)
    return cpu.run(program, [image], 1)[0].astype(np.float64)


def test_normal_numbers_of_a_large_image() -> None:
    """5 million of one fixed draw: mean, spread, skewness, kurtosis, every part of the distribution, and the tails."""
    x = np.sort(draw(12345, stream_key(0, 0)).reshape(-1))
    n = len(x)
    # Five standard errors of each moment.
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((x**power).mean() - moment) < 5 * math.sqrt(variance / n), power
    # Kolmogorov and Smirnov, probability 1e-3, at 2,000 of the numbers.
    at = np.linspace(0, n - 1, 2000).astype(int)
    below = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x[at].tolist()])
    assert np.abs(below - (at + 0.5) / n).max() < 1.95 / math.sqrt(n)
    for level in (1, 2, 3, 3.5, 4, 4.5):
        expected = n * 0.5 * math.erfc(level / math.sqrt(2))
        for found in ((x > level).sum(), (x < -level).sum()):
            assert abs(found - expected) < 4.5 * math.sqrt(expected), level
    # 2.9 are expected beyond 5 standard deviations, both sides together: none and 13 are 1 in 18 and 1 in 10,000.
    assert 0 < (np.abs(x) > 5).sum() < 13
    assert np.abs(x).max() < 6.24


def test_normal_numbers_of_neighbours_do_not_go_together() -> None:
    x = draw(12345, stream_key(0, 0))
    others = {
        "channels": (x[..., 0], x[..., 1]),
        "other channels": (x[..., 1], x[..., 2]),
        "pixels": (x[:, 1:], x[:, :-1]),
        "rows": (x[1:], x[:-1]),
        "sizes of pixels": (np.abs(x[:, 1:]), np.abs(x[:, :-1])),
        "copies": (x, draw(12345, stream_key(0, 0, copy=1))),
        "samples": (x, draw(12346, stream_key(0, 0))),
    }
    for name, (a, b) in others.items():
        assert abs(np.corrcoef(a.reshape(-1), b.reshape(-1))[0, 1]) < 5 / math.sqrt(a.size), name
