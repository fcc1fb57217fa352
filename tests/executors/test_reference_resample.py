"""The plain executor's crop-and-resize against Pillow: bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.images import SIZES, gray, noise, photo, sized_images
from tests.oracle import apply
from tests.oracle.resample import vertical_pass_first
from tests.pillow_oracle import run_pillow
from variegate.program.ops import Op

IMAGES = sized_images()
INTERPOLATIONS = pytest.mark.parametrize(
    "flags", range(6), ids=["nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"]
)


def same(img_HWC: np.ndarray, *args: float, flags: int) -> None:
    expected = run_pillow("RESIZED_CROP", img_HWC, *args, flags=flags)
    np.testing.assert_array_equal(apply(Op.RESIZED_CROP, img_HWC, args, flags), expected, err_msg=str(args))


@INTERPOLATIONS
@pytest.mark.parametrize("name", IMAGES)
def test_whole_image(name: str, flags: int) -> None:
    height, width, _ = IMAGES[name].shape
    for out in (*SIZES[:-1], (height, width), (2 * height, width), (height, 2 * width + 1), (224, 224)):
        same(IMAGES[name], 0, 0, height, width, *out, flags=flags)


@INTERPOLATIONS
@pytest.mark.parametrize("img_HWC", [photo(90, 120), gray(90, 120), noise(90, 61)], ids=["rgb", "gray", "noise"])
def test_boxes(img_HWC: np.ndarray, flags: int) -> None:
    rng = np.random.default_rng(3)
    height, width, _ = img_HWC.shape
    for _ in range(25):
        top, bottom = np.sort(rng.uniform(0, height, 2)).tolist()
        left, right = np.sort(rng.uniform(0, width, 2)).tolist()
        out = rng.integers(1, 130, 2).tolist()
        same(img_HWC, top, left, bottom - top, right - left, *out, int(rng.integers(2)), flags=flags)


@INTERPOLATIONS
def test_whole_pixel_box_of_the_output_size_is_a_crop(flags: int) -> None:
    img_HWC = photo(40, 50)
    out = apply(Op.RESIZED_CROP, img_HWC, (3, 5, 20, 30, 20, 30), flags)
    np.testing.assert_array_equal(out, img_HWC[3:23, 5:35])
    same(img_HWC, 3, 5, 20, 30, 20, 30, flags=flags)


def test_flip_is_folded_in() -> None:
    box = (1.5, 2.25, 30.0, 40.0, 17, 19)
    plain, flipped = (apply(Op.RESIZED_CROP, photo(), (*box, flip), 1) for flip in (0, 1))
    np.testing.assert_array_equal(flipped, plain[:, ::-1])


def test_pillow_takes_the_vertical_pass_first_for_lost_height() -> None:
    # Noise and bicubic clipping make the order of the passes visible; a Pillow that changes its rule fails here.
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(60):
        height, width, out_height, out_width = np.exp(rng.uniform(0.7, 4.8, 4)).astype(int).tolist()
        seen.add(vertical_pass_first(height, width, out_height, out_width))
        same(noise(height, width, 1), 0, 0, height, width, out_height, out_width, flags=2)
    assert seen == {True, False}


def test_box_outside_the_image_is_refused() -> None:
    with pytest.raises(ValueError, match=r"box=\(0.0, 0.0, 81.0, 64.0\); accepted: .* inside the 80x64 image"):
        apply(Op.RESIZED_CROP, photo(), (0, 0, 64, 81, 10, 10), 1)
