"""Pixels to the bytes of image files."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from variegate.decode import read_image
from variegate.decode.depth import note_once
from variegate.jobs.output.files import FORMATS, encode_image
from variegate.program.depth import depth_of

PHOTO = np.random.default_rng(0).integers(0, 256, (4, 5, 3)).astype(np.uint8).repeat(8, 0).repeat(8, 1)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", [(32, 40, 3), (32, 40, 1), (32, 40)])
def test_every_format_reads_back(name: str, shape: tuple[int, ...]) -> None:
    img_HWC = PHOTO.reshape(32, 40, 3) if shape[-1] == 3 else PHOTO[..., 0].reshape(shape)
    data = encode_image(img_HWC, name)
    assert data == encode_image(img_HWC, name)
    if name == "npy":
        np.testing.assert_array_equal(np.load(io.BytesIO(data)).squeeze(), img_HWC.squeeze())
        return
    image = Image.open(io.BytesIO(data))
    assert (image.height, image.width) == shape[:2]
    if name == "png":
        np.testing.assert_array_equal(np.asarray(image), img_HWC.squeeze())
    elif name == "jpg":
        assert image.mode == ("RGB" if shape[-1] == 3 else "L")


def test_a_view_is_encoded_as_it_is_seen() -> None:
    flipped = PHOTO[:, ::-1]
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(encode_image(flipped, "png")))), flipped)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("kind", [np.uint16, np.float32])
def test_deep_images_keep_their_numbers_or_are_refused(name: str, channels: int, kind: Any) -> None:
    image = (np.random.default_rng(1).random((9, 7, channels)) * 65535).astype(kind)
    holds = {"npy": True, "tif": True, "png": kind is np.uint16 and channels == 1}
    if not holds.get(name, False):
        with pytest.raises(ValueError, match=rf"{name}'?,? (which )?holds .*(use|accepted.*) tif.* npy"):
            encode_image(image, name)
        return
    with note_once(set(), depth_of(image.dtype)):
        found = read_image(encode_image(image, name), channels=channels)
    assert found.dtype == kind
    np.testing.assert_array_equal(found, image)


def test_quality_matters() -> None:
    for name in ("jpg", "webp"):
        assert len(encode_image(PHOTO, name, 30)) < len(encode_image(PHOTO, name, 98))


def test_bad_settings_are_named() -> None:
    with pytest.raises(ValueError, match="format: got 'bmp'; accepted: one of 'jpg', 'png', 'webp'"):
        encode_image(PHOTO, "bmp")
    with pytest.raises(ValueError, match="quality: got 0; accepted: 1 to 100"):
        encode_image(PHOTO, "jpg", 0)
    with pytest.raises(ValueError, match="webp holds at most 16,383 pixels a side; this picture has 16,384"):
        encode_image(np.zeros((1, 16_384, 3), np.uint8), "webp")
