"""CLAHE: OpenCV's levels, every way of cutting an image into tiles, and what stands beside it in a pass."""

from __future__ import annotations

import numpy as np
import pytest

import variegate as vg
from tests.executors.contract import Device, check, every_device
from tests.images import gray, noise, photo
from tests.oracle.executor import apply
from tests.oracle.values import luma
from tests.programs import SIZES, crop, program_of, step
from variegate.program.ops import Op
from variegate.transforms import CLAHE, ArgumentError


@every_device
@pytest.mark.parametrize("tiles", [(8, 8), (1, 1), (3, 16)])
def test_every_size(device: Device, tiles: tuple[int, int]) -> None:
    images = [make(h, w) for h, w in (*SIZES, (5, 300)) for make in (noise, gray, photo)]
    chains = [[step(Op.CLAHE, 1.0 + 0.7 * i, *tiles)] for i in range(len(images))]
    check(device, program_of(chains, images), images, chains)


@every_device
def test_among_others(device: Device) -> None:
    clahe = step(Op.CLAHE, 2.5, 4, 3)
    chains = [
        [step(Op.HFLIP), clahe, step(Op.INVERT)],
        [crop(-3, 4, 12, 70, fill=(255, 0, 9)), step(Op.POSTERIZE, 4), clahe, step(Op.EQUALIZE)],
        [step(Op.GAUSSIAN_BLUR, 5, 5, 1.0, 1.0), clahe, step(Op.CLAHE, 9.0, 2, 2), step(Op.MEDIAN, 5)],
    ]
    images = [photo(60, 80), noise(33, 65), gray(40, 50)]
    check(device, program_of(chains, images), images, chains)


def test_gray_levels_are_opencvs() -> None:
    """What ``cv2.createCLAHE(limit, tiles).apply`` of OpenCV 5.0 makes of these images."""
    for (height, width, limit, tiles), expected in RECORDED.items():
        made = apply(Op.CLAHE, ramp(height, width), (limit, *tiles))[..., 0]
        assert [int(made.sum()), *made.reshape(-1)[:: max(1, made.size // 12)].tolist()] == expected


def ramp(height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return ((x * x * 3 + y * 5 + x * y) % 251 // 2 + 40).astype(np.uint8)[..., None]


RECORDED: dict[tuple[int, int, float, tuple[int, int]], list[int]] = {
    (64, 64, 2.0, (8, 8)): [517378, 12, 192, 228, 124, 215, 207, 61, 210, 162, 206, 178, 88, 92],
    (61, 77, 4.0, (8, 8)): [584435, 13, 185, 104, 69, 62, 67, 94, 156, 232, 102, 232, 149, 103],
    (64, 77, 1.0, (3, 2)): [575451, 25, 37, 39, 27, 148, 30, 86, 45, 177, 114, 96, 111, 114],
    (7, 5, 40.0, (8, 8)): [
        8925,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
        255,
    ],
    (200, 100, 3.3, (1, 1)): [2571148, 2, 153, 29, 230, 27, 86, 254, 234, 220, 98, 6, 175, 18],
}


def test_colours_keep_their_differences() -> None:
    img = photo(60, 80) // 4 + 96  # nothing is cut off at either end
    out = apply(Op.CLAHE, img, (2.0, 2, 2))
    differences = [(image.astype(int)[..., 1:] - image.astype(int)[..., :1]) for image in (img, out)]
    np.testing.assert_array_equal(*differences)
    np.testing.assert_allclose(luma(out)[..., 0], apply(Op.CLAHE, luma(img), (2.0, 2, 2))[..., 0], atol=1)


def test_local_contrast_rises() -> None:
    images = vg.sample_images(4)
    outputs = vg.Augmenter(CLAHE(4.0), layout="NHWC")(images, ids=range(4))
    for image, out in zip(images, outputs, strict=True):
        assert luma(out.numpy()).std() > luma(np.asarray(image)).std() - 5
        assert (out.numpy() != np.asarray(image)).mean() > 0.5


@pytest.mark.parametrize("arguments", [(0.5,), (300,), (2.0, 0), (2.0, (8, 17)), (2.0, (1, 2, 3)), (2.0, 1.5)])
def test_bad_arguments_are_named(arguments: tuple[object, ...]) -> None:
    with pytest.raises(ArgumentError, match=r"CLAHE: (clip_limit|tile_grid_size)=.*; accepted: (a number|an integer)"):
        CLAHE(*arguments)  # type: ignore[arg-type]
