"""Image files to arrays: JPEGs by simplejpeg (libjpeg-turbo), whole or in part, the rest by Pillow.

simplejpeg and Pillow both run libjpeg-turbo's accurate integer DCT and fancy upsampling, and give the same bytes.
``fastdct`` would save 5 to 7 % and cost 1.2 levels on average (21 at most), so it is not offered.

simplejpeg refuses headers that libjpeg merely warns of, and Pillow reads. Pillow then decides for every crop of the
picture, so that a file is not readable for one crop and damaged for another.
"""

from __future__ import annotations

from os import fsdecode
from typing import Any

import numpy as np
import simplejpeg

from variegate.arrays import AnyArray, UInt8Array
from variegate.decode.channels import read_channels
from variegate.decode.dicom import dicom_size
from variegate.decode.header import JpegHeader, apply_orientation, is_jpeg, read_header, stored_rows_needed
from variegate.decode.limits import JPEG_FORMATS, check_pixels
from variegate.decode.pillow import PillowFile
from variegate.decode.plugins import is_dicom
from variegate.errors import DecodeError
from variegate.io.files import NotRegularError, StrPath, TooLargeError, read_regular

Image_HWC = UInt8Array

# Divisors of the scales for which libjpeg-turbo has a SIMD inverse DCT. The others (7/8, 6/8, 5/8)
# take longer than a full decode.
_FAST_DIVISORS = (8, 4, 2)
_EOI = b"\xff\xd9"


def decode_jpeg(data: bytes, path: str = "<bytes>", max_pixels: int | None = None) -> Image_HWC:
    """JPEG bytes -> uint8[H, W, 3], RGB, EXIF orientation applied. Gray is repeated; CMYK and YCCK as Pillow does it.
    Raises DecodeError naming ``path``. What Pillow accepts with a shrug (bytes between segments, say), is accepted."""
    return decode_jpeg_warned(data, checked_header(data, path, max_pixels), path)[0]


def decode_jpeg_warned(
    data: bytes, header: JpegHeader, path: str = "<bytes>", buffer: Image_HWC | None = None, divisor: int = 1
) -> tuple[Image_HWC, str]:
    """``decode_jpeg`` with a header of ``checked_header`` -> the picture, and what libjpeg warned of, "" for nothing:
    missing data, which it fills up with gray, and damaged code. CMYK is decoded by Pillow, which ignores such warnings.
    ``divisor``: 2, 4 or 8 for a reduced scale."""
    warning = ""
    height = -(-header.height // divisor)
    width = -(-header.width // divisor)
    if header.components != 4:
        options: dict[str, Any] = {"min_height": height, "min_width": width} if divisor > 1 else {}
        try:
            image = simplejpeg.decode_jpeg(data, "RGB", buffer=_fitting(buffer, height, width), **options)
            if image.shape == (height, width, 3):
                return apply_orientation(image, header.orientation), ""
        except ValueError as error:
            warning = str(error)  # strict about damage that Pillow tolerates: Pillow decides below
    limit = header.height * header.width
    with PillowFile(data, path, limit, JPEG_FORMATS, divisor=divisor) as file:
        image = file.decode(header.orientation)
    if image.shape[:2] != ((width, height) if header.orientation >= 5 else (height, width)):
        raise DecodeError(path, "damaged: its headers disagree about its size")
    return image, warning


def decode_jpeg_scaled(
    data: bytes,
    min_height: int,
    min_width: int,
    path: str = "<bytes>",
    max_pixels: int | None = None,
    header: JpegHeader | None = None,
) -> Image_HWC:
    """Decode at the smallest of 1/8, 1/4, 1/2 and 1 that keeps at least ``min_height`` x ``min_width`` pixels, upright.
    The scaled picture is ``ceil(H * scale)`` x ``ceil(W * scale)``; a picture that is smaller than the requested size
    is decoded in full. Half scale saves about a quarter of the time, smaller ones little more. ``header``: of
    ``checked_header``."""
    header = header or checked_header(data, path, max_pixels)
    if header.orientation >= 5:
        min_height, min_width = min_width, min_height
    for divisor in _FAST_DIVISORS:
        if -(-header.height // divisor) >= min_height and -(-header.width // divisor) >= min_width:
            return decode_jpeg_warned(data, header, path, divisor=divisor)[0]
    return decode_jpeg_warned(data, header, path)[0]


def decode_jpeg_box(
    data: bytes,
    top: int,
    left: int,
    height: int,
    width: int,
    path: str = "<bytes>",
    max_pixels: int | None = None,
    header: JpegHeader | None = None,
    buffer: UInt8Array | None = None,
) -> tuple[Image_HWC, int, int]:
    """Decode no further down than a box reaches -> (part of the picture, its top, its left), equal to the bit.

    For a sequential JPEG the header's height is lowered, so that the Huffman code below the box is never read. Damage
    there is not detected. Other JPEGs, and boxes that reach the end, are decoded in full. ``buffer`` (bytes, used if
    large enough) saves the page faults of fresh memory. ``header``: as for ``decode_jpeg_scaled``.
    """
    header = header or checked_header(data, path, max_pixels)
    rows, along_columns, from_far_end = stored_rows_needed(header.orientation, header.height, top, left, height, width)
    # Where chroma has fewer rows than luma, fancy upsampling of a block's last row looks at the one below it.
    block = header.mcu_height
    kept = -(-(rows + (block > 8)) // block) * block
    # A file that does not end as a JPEG should is decoded whole, so that truncation is found.
    if header.is_sequential and header.components != 4 and kept < header.height and is_complete(data):
        memory = _fitting(buffer, kept, header.width)
        part = decode_plain(data, kept, header.width, height_offset=header.height_offset, buffer=memory)
        if part is not None:
            offset = header.height - kept if from_far_end else 0
            places = (0, offset) if along_columns else (offset, 0)
            return apply_orientation(part, header.orientation), *places
    return decode_jpeg_warned(data, header, path, buffer)[0], 0, 0


def decode_plain(
    data: bytes | UInt8Array,
    height: int,
    width: int,
    divisor: int = 1,
    height_offset: int = 0,
    buffer: UInt8Array | None = None,
    room_for_file: UInt8Array | None = None,
) -> Image_HWC | None:
    """A plain JPEG -> uint8[height, width, 3]; None where it turns out otherwise. ``divisor``: 2, 4 or 8 for a smaller
    scale. ``height_offset``: of the bytes that are to say ``height`` instead; ``room_for_file``: for that copy."""
    file: Any = data
    options: dict[str, Any] = {}
    if height_offset:
        file = bytearray(data) if room_for_file is None else room_for_file[: len(data)]
        if room_for_file is not None:
            file[:] = np.frombuffer(data, np.uint8)  # without Python's lock, which bytearray holds
        file[height_offset], file[height_offset + 1] = height >> 8, height & 255
        options = {"strict": False}
    elif divisor > 1:
        options = {"min_height": height, "min_width": width}
    try:
        image: Image_HWC = simplejpeg.decode_jpeg(file, "RGB", buffer=buffer, **options)
    except ValueError:
        return None
    return image if image.shape == (height, width, 3) else None


def is_complete(data: bytes) -> bool:
    """True for a file that ends as a JPEG should; one that does not may have lost its lower part."""
    return data[-2:] == _EOI or _EOI in data[-64:]


def checked_header(data: bytes, path: str, max_pixels: int | None = None) -> JpegHeader:
    """Raises DecodeError for a picture beyond the limit. The limit applies to the full picture, whichever part is
    decoded."""
    try:
        header = read_header(data)
    except ValueError as error:
        raise DecodeError(path, str(error)) from error
    check_pixels(path, header.height, header.width, max_pixels)
    return header


def _fitting(buffer: Image_HWC | None, height: int, width: int) -> Image_HWC | None:
    return buffer if buffer is not None and buffer.size >= 3 * height * width else None


def image_size(
    data: bytes, name: str = "<bytes>", max_pixels: int | None = None, channels: int | None = None
) -> tuple[int, int]:
    """Upright height and width of the image that ``read_image`` would return, mostly from its header.

    Raises DecodeError.
    """
    if is_dicom(data):
        return dicom_size(data, name, max_pixels)
    several = read_channels(data, name, max_pixels, channels)
    if several is not None:
        return several.shape[0], several.shape[1]
    if is_jpeg(data):
        return checked_header(data, name, max_pixels).oriented_size
    with PillowFile(data, name, max_pixels) as file:
        return file.oriented_size


Source = StrPath | bytes | bytearray | memoryview


def read_image(
    source: Source,
    name: str | None = None,
    max_pixels: int | None = None,
    channels: int | None = None,
) -> Image_HWC:
    """A path, or the bytes of a file -> uint8[H, W, 3], RGB, contiguous; or [H, W, C], see below.

    JPEG, PNG, WebP, GIF, BMP, TIFF, PPM, AVIF, HEIC, JPEG XL and DICOM are read, whatever the name. The last three need
    ``variegate[heif]``, ``variegate[jxl]`` and ``variegate[dicom]``. The pixels equal Pillow's
    ``ImageOps.exif_transpose(img).convert("RGB")``: the EXIF orientation is applied, palettes are looked up, alpha is
    dropped (not blended), gray is repeated, the first frame of an animation is read. **More than 8 bits**: 16-bit gray
    is scaled over its full range (``value * 255 / 65535``, rounded). 16-bit RGB keeps its upper eight bits, one value
    less at most. A UserWarning says so. ``name`` stands for the file in errors and warnings.

    NumPy files of uint8 or uint16 [H, W] or [H, W, C] keep their 1 to 32 channels; so do TIFFs that Pillow does not
    read (they need ``tifffile``). ``channels``: the number that a file must have; 1 reads gray files as one channel, 4
    the alpha of PNG, WebP and GIF.

    Raises DecodeError(path, reason) for any invalid file, for floats, signed and 32-bit integers, and for TIFFs with
    channels of an unspecified meaning. Raises it before any pixel is decoded for more than ``max_pixels`` (default
    ``MAX_PIXELS``) pixels; every four channels count as one pixel. ValueError for a limit that is no positive integer.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        path = name or "<bytes>"
        data = bytes(source)
    else:
        path = name or fsdecode(source)
        data = read_bytes(source, path)
    several = read_channels(data, path, max_pixels, channels)
    if several is not None:
        return several
    if is_jpeg(data):
        return decode_jpeg(data, path, max_pixels)
    with PillowFile(data, path, max_pixels) as file:
        return file.decode()


def read_bytes(source: StrPath, name: str | None = None) -> bytes:
    """The bytes of a regular file, 2 GiB at most; whatever the system refuses becomes a DecodeError."""
    try:
        return read_regular(source)
    except FileNotFoundError:
        reason = "no such file"
    except (IsADirectoryError, NotRegularError, TooLargeError) as error:
        reason = str(error.strerror)
    except (OSError, ValueError) as error:  # a name with NUL is a ValueError
        reason = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    raise DecodeError(name or fsdecode(source), reason)


# Pillow's raw modes -> dtype of the pixel's number.
_KINDS: dict[str, Any] = dict.fromkeys(("P", "L", "1"), np.uint8) | dict.fromkeys(("I", "I;16", "I;16B"), np.int32)


def read_mask(data: bytes, name: str) -> AnyArray:
    """The bytes of a file -> uint8 or int32 [H, W]: palettes not looked up, 16 bits kept, 1 for white of one bit,
    not turned. Raises DecodeError with ``name`` for damaged files, and for color images."""
    with PillowFile(data, name) as file:
        if file.mode not in _KINDS:
            raise DecodeError(name, f"a mask of {file.mode} pixels; accepted: one number a pixel, gray or of a palette")
        if file.kind == "JPEG":
            raise DecodeError(name, "a mask in a JPEG, which blurs its numbers; accepted: PNG, TIFF, BMP, GIF")
        return file.stored().astype(_KINDS[file.mode])
