"""Sizes of one-sided resizes and frames, the eight symmetries, and lower resolutions, against NumPy and Pillow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests import oracle
from tests.images import gray, noise, photo
from tests.pillow_oracle import resize
from variegate import transforms as T
from variegate.program.ops import Op

SIZES = [(1, 1), (1, 7), (7, 1), (223, 225), (480, 640), (333, 500), (3, 2), (10, 1000)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("side", [1, 24, 200])
def test_one_side_gets_the_length(draw: Any, size: tuple[int, int], side: int) -> None:
    for cls, of in ((T.LongestMaxSize, max), (T.SmallestMaxSize, min)):
        program = draw(cls(side), [size])
        expected = tuple(max(1, round(s * (side / of(size)))) for s in size)
        assert program.final_size(0) == expected
        assert of(expected) == side
        assert int(program.length[0]) == (expected != size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("upscale", [True, False])
def test_letter_box_is_pillows_resize_in_the_middle_of_the_frame(
    draw: Any, size: tuple[int, int], upscale: bool
) -> None:
    img_HWC, frame = noise(*size), (40, 63)
    (out,) = oracle.run(draw(T.LetterBox(frame, fill=(1, 2, 3), upscale=upscale), [size]), [img_HWC])
    out_HWC = out.transpose(1, 2, 0)
    factor = min(40 / size[0], 63 / size[1], 1e9 if upscale else 1.0)
    height, width = (max(1, round(s * factor)) for s in size)
    top, left = (40 - height) // 2, (63 - width) // 2
    wanted = np.full((40, 63, 3), (1, 2, 3), np.uint8)
    small = resize(Image.fromarray(img_HWC), (width, height), Image.Resampling.BILINEAR)
    wanted[top : top + height, left : left + width] = np.asarray(small)
    # Images under 3 pixels on a side: Pillow and we resize in another order there (docs/operations.md).
    assert np.abs(out_HWC.astype(int) - wanted).max() <= 1


def test_letter_box_ends_at_the_frame_of_any_image(draw: Any) -> None:
    rng = np.random.default_rng(0)
    sizes = [tuple(pair) for pair in rng.integers(1, 900, (300, 2)).tolist()]
    assert (draw(T.LetterBox((31, 57)), sizes).final_sizes() == [31, 57]).all()


@pytest.mark.parametrize("image", [photo(3, 2), photo(17, 31), gray(9, 4)])
def test_transpose_and_the_eight_symmetries(draw: Any, image: np.ndarray) -> None:
    def made(transform: T.Transform, ids: list[int]) -> list[np.ndarray]:
        shape = (*image.shape, 1)[:3]
        return oracle.run(draw(transform, [shape] * len(ids), ids=ids), [image] * len(ids))

    img_HWC = image if image.ndim == 3 else image[..., None]
    (transposed,) = made(T.Transpose(p=1.0), [0])
    np.testing.assert_array_equal(transposed, img_HWC.transpose(2, 1, 0))
    turns = [np.rot90(each, k) for each in (img_HWC, img_HWC[:, ::-1]) for k in range(4)]
    known = [(turn.shape, turn.tobytes()) for turn in turns]
    assert len(set(known)) == 8
    outs = [out.transpose(1, 2, 0) for out in made(T.D4(), list(range(400)))]
    count = np.bincount([known.index((out.shape, out.tobytes())) for out in outs], minlength=8)
    assert count.min() > 20


def test_downscale_goes_down_and_up_again(draw: Any) -> None:
    img_HWC = photo(31, 50)
    (out,) = oracle.run(draw(T.Downscale(0.3, "bilinear", "nearest"), [(31, 50)]), [img_HWC])
    small = resize(Image.fromarray(img_HWC), (15, 9), Image.Resampling.BILINEAR)
    wanted = np.asarray(small.resize((50, 31), Image.Resampling.NEAREST))
    np.testing.assert_array_equal(out.transpose(1, 2, 0), wanted)
    assert draw(T.Downscale(1.0), [(31, 50)]).length[0] == 0


def test_dropped_pixels_are_salt_or_pepper(draw: Any) -> None:
    for value, salt in ((0, 0.0), (255, 1.0)):
        program = draw(T.PixelDropout(0.25, value), [(64, 64)])
        assert program.operations(0)[0][0] is Op.SALT_AND_PEPPER
        assert program.args[0, 0, :2].tolist() == [0.25, salt]
        (out,) = oracle.run(program, [np.full((64, 64, 3), 100, np.uint8)])
        hit = out[0] == value
        assert (out == np.where(hit, value, 100)).all()
        assert abs(hit.mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75) / 64
