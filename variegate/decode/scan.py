"""The heads of many JPEG files read at once, in compiled code without Python's lock.

Reading one in Python takes as long as decoding a small picture, and other threads wait for it. Here only plain files
are read: everything that ``header.read_header`` would have to think about is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.decode.header import JpegHeader
from variegate.decode.limits import MAX_DECODE_BYTES, MAX_PIXELS
from variegate.decode.memory import byte_at, short_at
from variegate.program.compiled import pixel_kernel
from variegate.program.program import MAX_SIDE

HEIGHT, WIDTH, COMPONENTS, HEIGHT_OFFSET, MCU_HEIGHT, COEFFICIENT_BYTES, IS_COMPLETE = range(7)
"""Columns of what ``scan_headers`` gives. A picture that has coefficients kept comes in several scans."""
_COLUMNS = 7
_SOF0, _SOF2, _DHT, _STANDALONE, _EOI, _SOS = 0xC0, 0xC2, 0xC4, 0xD0, 0xD9, 0xDA
_APP0, _APP1, _APP14 = 0xE0, 0xE1, 0xEE
_PIECE = 512


def scan_headers(
    files: Sequence[bytes], max_pixels: int = MAX_PIXELS, max_decode_bytes: int = MAX_DECODE_BYTES
) -> npt.NDArray[np.int64]:
    """int64[N, 7], a row for each file; zeros for those that ``checked_header`` is to look at."""
    found = np.zeros((len(files), _COLUMNS), np.int64)
    views = [np.frombuffer(data, np.uint8) if data else _NOTHING for data in files]  # kept until all are read
    places = np.array([(view.__array_interface__["data"][0], view.size) for view in views], np.int64).reshape(-1, 2)
    _scan(places, found)
    height, width = found[:, HEIGHT], found[:, WIDTH]
    is_fit = (height * width <= max_pixels) & (3 * height * width + found[:, COEFFICIENT_BYTES] <= max_decode_bytes)
    is_fit &= (np.minimum(height, width) > 0) & (np.maximum(height, width) <= MAX_SIDE)
    found[~is_fit] = 0
    return found


def header_of(row: npt.NDArray[np.int64]) -> JpegHeader | None:
    """A row of ``scan_headers`` as ``read_header`` gives it; None for one of zeros."""
    height, width, components, offset, mcu_height, coefficients, _ = row.tolist()
    if not components:
        return None
    return JpegHeader(height, width, components, 1, offset, mcu_height, not coefficients, True, coefficients)


_NOTHING = np.zeros(0, np.uint8)


@pixel_kernel
def _scan(places: Any, found: Any) -> None:
    for n in range(places.shape[0]):
        _scan_file(places[n, 0], places[n, 1], found[n])


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _scan_file(data: Any, size: Any, found: Any) -> None:
    if size < 4 or short_at(data, 0) != 0xFFD8 or byte_at(data, 2) != 0xFF:
        return
    frame, has_exif, at = 0, False, 2
    while at + 4 <= size:
        marker = np.int64(byte_at(data, at + 1))
        # Bytes between segments, fill bytes, markers without a segment.
        if byte_at(data, at) != 0xFF or marker <= 1 or marker == 0xFF or _STANDALONE <= marker <= _EOI:
            return
        length = short_at(data, at + 2)
        if marker == _SOS:
            if frame:
                _describe(data, size, frame, at, found)
            return
        if at + 2 + length > size or (marker < _STANDALONE and marker > _SOF2 and marker != _DHT):
            return
        if marker <= _SOF2:
            if frame or marker < _SOF0:
                return
            frame = at
        elif marker == _APP0:
            # "JFIF" of a version that never was.
            if length < 8 or (short_at(data, at + 4) == 0x4A46 and not 1 <= byte_at(data, at + 9) <= 2):
                return
        elif marker == _APP1:
            is_exif = length >= 6 and short_at(data, at + 4) == 0x4578 and short_at(data, at + 6) == 0x6966
            if (is_exif and has_exif) or _may_be_oriented(data + at + 4, length - 2):
                return
            has_exif = has_exif or is_exif
        elif marker == _APP14 and (length < 14 or byte_at(data, at + 15) == 0):
            return  # Adobe's, whose last byte is 0 for RGB and CMYK
        at += 2 + length


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _may_be_oriented(data: Any, size: Any) -> Any:
    """EXIF's tag in either byte order, or the beginning of XMP's "Orientation"."""
    for at in range(size - 1):
        word = short_at(data, at)
        if word == 0x0112 or word == 0x1201 or word == 0x4F72:
            return True
    return False


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _describe(data: Any, size: Any, frame: Any, scan: Any, found: Any) -> None:
    """Of a frame whose first scan begins at ``scan``."""
    head = data + frame
    if frame + 10 > scan or scan + 5 > size:
        return
    components = np.int64(byte_at(head, 9))
    if (components != 1 and components != 3) or byte_at(head, 4) != 8:
        return
    if frame + 10 + 3 * components > scan:
        return
    if components == 3 and byte_at(head, 10) == 0x52 and byte_at(head, 13) == 0x47 and byte_at(head, 16) == 0x42:
        return  # components that are called R, G and B
    height, width = short_at(head, 5), short_at(head, 7)
    across = down = np.int64(1)
    blocks = np.int64(0)
    for i in range(components):
        factors = np.int64(byte_at(head, 11 + 3 * i))
        across = np.int64(max(across, factors >> 4))
        down = np.int64(max(down, factors & 15))
        blocks += (factors >> 4) * (factors & 15)
    in_one_scan = byte_at(data, scan + 4) == components
    coefficients = 0
    if byte_at(head, 1) == _SOF2 or not in_one_scan or _has_more(data + scan + 2, size - scan - 2):
        units = (-(-width // (8 * across))) * (-(-height // (8 * down)))
        coefficients = 128 * units * blocks
        if not coefficients:
            return
    found[HEIGHT], found[WIDTH], found[COMPONENTS] = height, width, components
    found[HEIGHT_OFFSET], found[COEFFICIENT_BYTES] = frame + 5, coefficients
    found[MCU_HEIGHT] = 8 * down if components > 1 else 8
    for at in range(max(0, size - 64), size - 1):
        if short_at(data, at) == 0xFFD9:
            found[IS_COMPLETE] = 1


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _has_more(data: Any, size: Any) -> Any:
    """Another scan, or a table. In pieces that are looked at whole, which takes vectors."""
    start = 0
    while start < size - 1:
        end = min(start + _PIECE, size - 1)
        found = np.uint8(0)
        for i in range(start, end):
            second = byte_at(data, i + 1)
            found |= np.uint8(byte_at(data, i) == 0xFF) & (np.uint8(second == _SOS) | np.uint8(second == _DHT))
        if found:
            return True
        start = end
    return False
