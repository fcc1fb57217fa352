"""Integer blurs: their weights, and that the CPU's vectors are the reference to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests import oracle
from tests.images import gray, noise, photo
from tests.oracle.blurs import half_weights, motion_kernel
from tests.programs import program_of, step
from variegate.executors import cpu
from variegate.program.lowering import lower
from variegate.program.ops import Op

ODD_SIZES = ((1, 1), (1, 9), (9, 1), (3, 2), (17, 31), (5, 64), (9, 65), (40, 224))
GAUSSIAN = (
    (1, 1, 1.0, 1.0),
    (3, 3, 1e-6, 0.3),
    (5, 5, 1.0, 1.0),
    (5, 3, 0.4, 2.0),
    (7, 9, 3.0, 3.0),
    (7, 7, 2.0, 2.0, 0.3),
    (3, 5, 1.0, 0.5, 1.0),
    (23, 23, 2.0, 2.0),
    (23, 1, 50.0, 1.0),
    (101, 401, 1000.0, 60.0),
)
MOTION = ((1, 3.0, 0.0), (3, 0.0, 0.0), (5, 45.0, 0.3), (7, 90.0, -1.0), (23, 33.0, 1.0), (99, 170.0, 0.0))


@pytest.mark.parametrize("size", ODD_SIZES)
def test_cpu_is_the_reference_to_the_bit(size: tuple[int, int]) -> None:
    chains = [[step(Op.GAUSSIAN_BLUR, *args)] for args in GAUSSIAN] + [[step(Op.MOTION_BLUR, *args)] for args in MOTION]
    for images in ([noise(*size, 3, i) for i in range(len(chains))], [gray(*size)] * len(chains)):
        program = program_of(chains, images)
        for chain, out, wanted in zip(chains, cpu.run(program, images, 1), oracle.run(program, images), strict=True):
            np.testing.assert_array_equal(out, wanted, err_msg=str(chain))


def test_a_constant_image_stays_as_it_is() -> None:
    """Nothing is lost by rounding, and nothing overflows, at the highest level and under the widest kernels."""
    images = [np.full((30, 70, 3), 255, np.uint8)] * 3
    chains = [
        [step(Op.GAUSSIAN_BLUR, 2001, 2001, 1000.0, 1000.0)],
        [step(Op.GAUSSIAN_BLUR, 23, 1023, 4.0, 300.0)],
        [step(Op.MOTION_BLUR, 255, 12.0, 0.2)],
    ]
    for out in cpu.run(program_of(chains, images), images, 1):
        assert (out == 255).all()


def test_blurs_see_what_flips_and_tables_before_them_make() -> None:
    images = [photo(33, 70), photo(70, 33)]
    blurs = [step(Op.GAUSSIAN_BLUR, 5, 5, 1.2, 1.2)], [step(Op.MOTION_BLUR, 9, 20.0, 0.5)]
    chains = [[step(Op.HFLIP), step(Op.INVERT), *blur, step(Op.SHARPNESS, 1.6)] for blur in blurs]
    program = program_of(chains, images)
    for out, wanted in zip(cpu.run(program, images, 1), oracle.run(program, images), strict=True):
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("size", [1, 3, 5, 23, 101, 2001])
def test_half_weights_sum_to_one(size: int) -> None:
    sigma = np.array([1e-6, 0.1, 0.7, 2.0, 30.0, 1000.0])
    half = half_weights(size, sigma)
    assert half.shape == (6, size // 2 + 1)
    assert (half.sum(axis=1) == 2**14).all()
    assert half.min() >= 0
    x = np.arange(size // 2 + 1) / sigma[:, None]
    exact = np.exp(-0.5 * x * x)
    exact /= 2 * exact.sum(axis=1, keepdims=True) - 1
    exact[:, 0] /= 2
    assert np.abs(half * 2.0**-15 - exact).max() < 2.0**-15
    tails = np.abs((half * 2.0**-15 - exact)[:, ::-1].cumsum(axis=1))
    assert tails.max() <= 2.0**-16 + 1e-12
    for i in range(6):
        np.testing.assert_array_equal(half_weights(size, sigma[i : i + 1])[0], half[i])


@pytest.mark.parametrize("size", [1, 3, 7, 31])
def test_motion_weights_sum_to_one(size: int) -> None:
    angle, direction = np.array([0.0, 45.0, 90.0, 133.0, -7.0]), np.array([0.0, 1.0, -1.0, 0.3, 0.9])
    kernel = motion_kernel(size, angle, direction)
    assert kernel.shape == (5, size, size)
    assert (kernel.sum(axis=(1, 2)) == 2**14).all()
    assert kernel.min() >= 0
    for i in range(5):
        np.testing.assert_array_equal(motion_kernel(size, angle[i : i + 1], direction[i : i + 1])[0], kernel[i])


def test_lowering_leaves_out_weights_of_zero() -> None:
    chains = [[step(Op.GAUSSIAN_BLUR, 23, 9, 0.5, 1e-6)], [step(Op.MOTION_BLUR, 15, 0.0, 0.0)]]
    images = [noise(8, 8), noise(8, 8)]
    fused = lower(program_of(chains, images))
    assert (fused.opcode[:, 0] == Op.CONVOLVE_FIXED).all()
    assert fused.args[0, 0, :6].tolist() == [0, 5, 1, 1, 4, 0]
    assert fused.tables.kernels[:8].tolist() == [*half_weights(5, np.array([0.5]))[0], 0, 2**14, 0, 0, 0]
    # Fifteen cells in a line, and one of weight 0 that makes their number even.
    assert fused.args[1, 0, :6].tolist() == [8, 15, 15, 0, 16, 16]
    weights, columns, lines = fused.tables.kernels[8:].reshape(3, 16)
    assert weights[15] == 0
    assert columns[:15].tolist() == list(range(-7, 8))
    assert not lines.any()
