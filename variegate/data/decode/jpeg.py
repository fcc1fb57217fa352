"""JPEG bytes to RGB arrays by simplejpeg (libjpeg-turbo), whole, at a reduced scale, or only as far as a crop reaches.

simplejpeg and Pillow both run libjpeg-turbo's accurate integer DCT and fancy upsampling, and give the same bytes.
``fastdct`` would save 5 to 7 % and cost 1.2 levels on average (21 at most), so it is not offered.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import simplejpeg
from PIL import Image

from variegate.data.decode.header import JpegHeader, read_header
from variegate.data.decode.limits import check_pixels
from variegate.data.decode.orientation import apply_orientation, stored_rows_needed
from variegate.data.decode.reasons import reason_for
from variegate.errors import DecodeError

Image_HWC = npt.NDArray[np.uint8]

# Scales whose inverse DCT libjpeg-turbo has in SIMD. The others (7/8, 6/8, 5/8) take longer than a full decode.
_FAST_SCALES = (1, 2, 4)
_EOI = b"\xff\xd9"


def decode_jpeg(data: bytes, path: str = "<bytes>", max_pixels: int | None = None) -> Image_HWC:
    """JPEG bytes -> uint8[H, W, 3], RGB, EXIF orientation applied. Gray is repeated; CMYK and YCCK as Pillow does it.

    Raises DecodeError naming ``path``. What Pillow accepts with a shrug (bytes between segments, say), is accepted.
    """
    header = _header(data, path, max_pixels)
    return apply_orientation(_decode_stored(data, header, path), header.orientation)


def decode_jpeg_scaled(
    data: bytes, min_height: int, min_width: int, path: str = "<bytes>", max_pixels: int | None = None
) -> Image_HWC:
    """Decode at the smallest of 1/8, 1/4, 1/2 and 1 that keeps at least ``min_height`` x ``min_width`` pixels.

    The scaled picture is ``ceil(H * scale)`` x ``ceil(W * scale)``; sizes are those after the EXIF orientation. A
    picture smaller than asked for comes back whole. On photos of ImageNet's size, half scale saves about a quarter
    of the time and smaller scales little more: most of it goes into the Huffman code, which is read in any case.
    """
    header = _header(data, path, max_pixels)
    if header.orientation >= 5:
        min_height, min_width = min_width, min_height
    options: dict[str, Any] = {}
    for eighths in _FAST_SCALES:
        height, width = -(-header.height * eighths // 8), -(-header.width * eighths // 8)
        if height >= min_height and width >= min_width:
            options = {"min_height": height, "min_width": width}
            break
    return apply_orientation(_decode_stored(data, header, path, **options), header.orientation)


def decode_jpeg_box(
    data: bytes,
    top: int,
    left: int,
    height: int,
    width: int,
    path: str = "<bytes>",
    max_pixels: int | None = None,
    header: JpegHeader | None = None,
    buffer: npt.NDArray[np.uint8] | None = None,
) -> tuple[Image_HWC, int, int]:
    """Decode no further down than a box reaches -> (part of the picture, its top, its left) in the whole picture.

    Pixel ``(y, x)`` of the whole picture, as ``decode_jpeg`` gives it, is ``part[y - part_top, x - part_left]``, the
    same to the bit; the part holds the box at least. A sequential JPEG is told a smaller height, so the Huffman code
    below the box is never read: time falls nearly in proportion to the rows left out. Damage below the box goes
    unnoticed. Other JPEGs, and boxes that reach the end, are decoded whole. The part may lie in ``buffer`` (bytes,
    used if large enough): memory that is used again saves the page faults of fresh memory, a quarter of the time.
    """
    header = header or _header(data, path, max_pixels)
    rows, along_columns, from_far_end = stored_rows_needed(header.orientation, header.height, top, left, height, width)
    # Where chroma has fewer rows than luma, fancy upsampling of the last row looks at the row of blocks below it.
    block = header.mcu_height
    kept = (-(-rows // block) + (block > 8)) * block
    # A file that does not end as a JPEG should is decoded whole, so that truncation is found.
    if not header.is_sequential or header.components == 4 or kept >= header.height or not is_complete(data):
        whole = apply_orientation(_decode_stored(data, header, path, buffer), header.orientation)
        return whole, 0, 0
    patched = bytearray(data)
    patched[header.height_offset : header.height_offset + 2] = kept.to_bytes(2, "big")
    try:
        part = simplejpeg.decode_jpeg(patched, "RGB", strict=False, buffer=_fitting(buffer, kept, header.width))
    except ValueError as error:
        raise DecodeError(path, reason_for(error, data)) from error
    part = apply_orientation(part, header.orientation)
    offset = header.height - kept if from_far_end else 0
    return (part, 0, offset) if along_columns else (part, offset, 0)


def is_complete(data: bytes) -> bool:
    """True for a file that ends as a JPEG should; one that does not may have lost its lower part."""
    return data[-2:] == _EOI or _EOI in data[-64:]


def _header(data: bytes, path: str, max_pixels: int | None) -> JpegHeader:
    try:
        header = read_header(data)
    except ValueError as error:
        raise DecodeError(path, str(error)) from error
    check_pixels(path, header.height, header.width, max_pixels)
    return header


def _fitting(buffer: npt.NDArray[np.uint8] | None, height: int, width: int) -> npt.NDArray[np.uint8] | None:
    return buffer if buffer is not None and buffer.size >= 3 * height * width else None


def _decode_stored(
    data: bytes, header: JpegHeader, path: str, buffer: npt.NDArray[np.uint8] | None = None, **options: Any
) -> Image_HWC:
    if header.components != 4:
        try:
            room = _fitting(buffer, header.height, header.width)
            img_HWC: Image_HWC = simplejpeg.decode_jpeg(data, "RGB", buffer=room, **options)
            return img_HWC
        except ValueError:
            pass  # strict about warnings that Pillow passes over: Pillow decides below
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG", "MPO")) as image:
            if options:
                image.draft(None, (options["min_width"], options["min_height"]))
            return np.asarray(image.convert("RGB"))
    except Exception as error:
        raise DecodeError(path, reason_for(error, data)) from error
