"""Hue of the CPU executor against the reference, which keeps Pillow's floats and doubles: for colours as such."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle import apply
from tests.programs import program_of, step
from variegate.executors.cpu import executor as cpu
from variegate.program.ops import Op

SHIFTS = (0, 1, 42, 127, 128, 255)


def check(colours: np.ndarray, shifts: tuple[int, ...]) -> None:
    """uint8[H, W, 3], turned by so many steps of 255."""
    for shift in shifts:
        factor = (shift + 0.5) / 255
        program = program_of([[step(Op.HUE, factor)]], [colours])
        np.testing.assert_array_equal(cpu.run(program, [colours], 1)[0], apply(Op.HUE, colours, (factor,)), f"{shift}")


def grid(red: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.stack(np.meshgrid(red, others, others, indexing="ij"), axis=-1).reshape(-1, len(others), 3)


def test_colours_of_a_dense_grid() -> None:
    """Both ends of every channel and steps that share few divisors with 255, so that every sextant has many spans."""
    check(grid(np.arange(0, 256, 17, dtype=np.uint8), np.append(np.arange(0, 256, 3), 254).astype(np.uint8)), SHIFTS)
    check(grid(np.append(np.arange(0, 256, 29), 255).astype(np.uint8), np.arange(256, dtype=np.uint8)), (0, 77))


@pytest.mark.parametrize("width", [1, 31, 32, 33, 64, 65])
def test_rows_of_every_width(width: int) -> None:
    check(np.random.default_rng(width).integers(0, 256, (5, width, 3), np.uint8), SHIFTS)


@pytest.mark.slow
@pytest.mark.parametrize("red", range(0, 256, 32))
def test_every_colour(red: int) -> None:
    """All colours of a red, with shifts of which the hues of all colours, together, reach every place."""
    every = np.arange(256, dtype=np.uint8)
    for n in range(red, red + 32):
        check(grid(every[n : n + 1], every), (0, (37 * n + 1) % 256))
