"""Whole programs through the oracle: rows, blends, normalizing and layouts."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from tests.images import gray, photo
from tests.oracle import run
from tests.oracle.philox import philox4x32
from tests.pillow_oracle import run_pillow
from variegate.program.ops import Op
from variegate.program.program import Output
from variegate.program.rng import stream_key
from variegate.program.sampling import Sampling

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
NORMALIZED = Output(mean=MEAN, std=STD, layout="NHWC")
ROW = np.zeros(1, np.intp)


def sampling_for(*images: np.ndarray, ids: list[int] | None = None) -> Sampling:
    shapes = np.array([(*img.shape, 1)[:3] for img in images], np.int32)
    numbers = np.array(range(len(images)) if ids is None else ids, np.uint64)
    return Sampling(shapes, numbers, stream_key(0, 0), num_slots=0)


def test_rows_of_different_length_and_size() -> None:
    images = [photo(30, 40), photo(50, 20, "coffee"), gray(7, 9)]
    sampling = sampling_for(*images)
    sampling.emit(np.array([0]), Op.HFLIP)
    sampling.emit(np.array([0, 2]), Op.SOLARIZE, 100.0)
    sampling.emit(np.array([1]), Op.CROP, 1, 2, 10, 5, size=np.array([[10, 5]], np.int32))
    outputs = run(sampling.finish(Output(layout="NHWC")), images)
    np.testing.assert_array_equal(outputs[0], run_pillow("SOLARIZE", images[0][:, ::-1].copy(), 100.0))
    np.testing.assert_array_equal(outputs[1], images[1][1:11, 2:7])
    np.testing.assert_array_equal(outputs[2], run_pillow("SOLARIZE", images[2], 100.0))
    assert all(out.dtype == np.uint8 and out.flags.c_contiguous for out in outputs)


def test_layouts() -> None:
    planar = Output(layout="NCHW")
    img_HWC, img_HW = photo(6, 7), gray(6, 7)[..., 0]
    np.testing.assert_array_equal(run(sampling_for(img_HWC).finish(planar), [img_HWC])[0], img_HWC.transpose(2, 0, 1))
    np.testing.assert_array_equal(run(sampling_for(img_HW).finish(planar), [img_HW])[0], img_HW[None])


def test_normalizing_rounds_twice_in_float32() -> None:
    img_HWC = photo(6, 7)
    out = run(sampling_for(img_HWC).finish(NORMALIZED), [img_HWC])[0]
    scale, bias = NORMALIZED.scale_and_bias(3)
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, (img_HWC.astype(np.float32) * scale) + bias)
    # Folding the division into the scale costs a few roundings of numbers of magnitude up to 5.
    np.testing.assert_allclose(out, (img_HWC / 255 - MEAN) / STD, atol=2e-6)
    # Gray takes the average of the three means and deviations.
    gray_out = run(sampling_for(gray(5, 4)).finish(NORMALIZED), [gray(5, 4)])[0]
    np.testing.assert_allclose(gray_out, (gray(5, 4) / 255 - np.mean(MEAN)) / np.mean(STD), atol=2e-6)


def test_erase_after_normalizing_writes_into_the_floats() -> None:
    img_HWC = photo(8, 10)
    sampling = sampling_for(img_HWC, ids=[99])
    first = sampling.add_rectangles(np.array([[1, 2, 3, 4], [5, 5, 2, 2]], np.int32))
    sampling.emit(ROW, Op.ERASE, first, 1, 0, 0, 0.25, -1.5, 3.0, 1)
    sampling.emit(ROW, Op.ERASE, first + 1, 1, 1, 6, 0, 0, 0, 1)
    sampling.emit(ROW, Op.INVERT)
    out = run(sampling.finish(NORMALIZED), [img_HWC])[0]
    expected = run(sampling_for(img_HWC).finish(NORMALIZED), [255 - img_HWC])[0]
    expected[1:4, 2:6] = (0.25, -1.5, 3.0)
    expected[5:7, 5:7] = out[5:7, 5:7]
    np.testing.assert_array_equal(out, expected)
    word = int(philox4x32([5 * 10 + 5, 6, 99, 0], stream_key(0, 0))[0])
    magnitude = -NormalDist().inv_cdf((word & 0x7FFFFFFF | 1) / 2**32)
    np.testing.assert_allclose(out[5, 5, 0], magnitude if word >> 31 == 0 else -magnitude, rtol=1e-4)


def test_blend_joins_rows_before_normalizing() -> None:
    images = [photo(9, 11), photo(9, 11, "coffee")]
    sampling = sampling_for(*images)
    forks = sampling.fork(np.array([0]), 2)
    sampling.emit(forks[0], Op.INVERT)
    sampling.emit(forks[1], Op.BRIGHTNESS, 0.5)
    for rows, weight in ((np.array([0]), 0.5), (forks[0], 0.3), (forks[1], 0.2)):
        sampling.blend(rows, weight)
    mixed, untouched = run(sampling.finish(Output(layout="NHWC")), images)
    x = images[0].astype(np.float32)
    half = run_pillow("BRIGHTNESS", images[0], 0.5).astype(np.float32)
    weighted = x * np.float32(0.5) + (255 - x) * np.float32(0.3) + half * np.float32(0.2)
    np.testing.assert_array_equal(mixed, np.trunc(weighted).astype(np.uint8))
    np.testing.assert_array_equal(untouched, images[1])


def test_primitives_are_refused() -> None:
    program = sampling_for(photo(8, 8)).finish(Output())
    program.opcode[0, 0], program.length[0] = Op.MIX, 1
    with pytest.raises(ValueError, match="codes below 100"):
        run(program, [photo(8, 8)])
