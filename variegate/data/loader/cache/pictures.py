"""What a cache holds: whole pictures, at their own size or reduced."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image

from variegate.data.decode import PillowFile, check_side, checked_header, decode_jpeg_scaled, is_jpeg, read_image

Picture = npt.NDArray[np.uint8]


def decode_unless_large(
    data: bytes, name: str, max_pixels: int | None = None, max_decode_bytes: int | None = None
) -> bytes | Picture:
    """A file that is no JPEG, decoded: uint8[H, W, 3]; as it is where a batch of such pictures would take too much
    memory, so that each is decoded when it is augmented. Raises DecodeError with ``name``."""
    with PillowFile(bytes(data), name, max_pixels, max_decode_bytes) as file:
        if file.is_large:
            return data
        image = file.decode()
    check_side(name, *image.shape[:2])
    return image


def decode_picture(
    data: bytes | Picture,
    name: str,
    side: int | None,
    max_pixels: int | None = None,
    max_decode_bytes: int | None = None,
) -> Picture:
    """A file's bytes, or pixels -> uint8[H, W, C]; with ``side``, the shorter side is reduced to that many pixels
    (never enlarged).

    A JPEG is decoded at the smallest DCT scale that still covers that, then resized as any picture is, by Pillow with
    antialiasing. Raises DecodeError with ``name``.
    """
    if isinstance(data, np.ndarray):
        image = data
    elif side is None or not is_jpeg(data):
        image = read_image(data, name, max_pixels, max_decode_bytes)
    else:
        header = checked_header(data, name, max_pixels, max_decode_bytes)
        sides = _reduced(*header.oriented_size, side)
        image = decode_jpeg_scaled(data, *sides, name, max_pixels, max_decode_bytes, header)
    check_side(name, *image.shape[:2])
    return image if side is None else _resize(image, side)


def _resize(image: Picture, side: int) -> Picture:
    height, width = _reduced(image.shape[0], image.shape[1], side)
    if (height, width) == image.shape[:2]:
        return image
    picture = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    return np.array(picture.resize((width, height), Image.Resampling.BILINEAR)).reshape(height, width, -1)


def _reduced(height: int, width: int, side: int) -> tuple[int, int]:
    shorter = min(height, width)
    if shorter <= side:
        return height, width
    return max(side, round(height * side / shorter)), max(side, round(width * side / shorter))
