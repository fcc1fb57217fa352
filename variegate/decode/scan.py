"""Headers of many JPEG files read in one compiled call, without Python's lock.

Reading one in Python takes as long as decoding a small picture, and other threads wait for it. Only plain files are
read here: everything that ``header.read_header`` would have to look at more closely is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_char_p, c_int64, c_void_p

import numpy as np

from variegate.arrays import Int64Array
from variegate.decode.header import JpegHeader
from variegate.decode.limits import MAX_DECODE_BYTES, MAX_PIXELS
from variegate.native.library import data_ptr, entry
from variegate.native.structs import JPEG_HEAD
from variegate.program.program import MAX_SIDE

HEIGHT, WIDTH, COMPONENTS, HEIGHT_OFFSET, MCU_HEIGHT, COEFFICIENT_BYTES, IS_COMPLETE = range(len(JPEG_HEAD))
"""Columns of what ``scan_headers`` returns. A picture that has coefficients kept comes in several scans."""

_read_heads = entry("vg_jpeg_heads", c_void_p, c_void_p, *[c_int64] * 4, c_void_p, result=None)


def scan_headers(
    files: Sequence[bytes], max_pixels: int = MAX_PIXELS, max_decode_bytes: int = MAX_DECODE_BYTES
) -> Int64Array:
    """int64[N, 7], a row for each file; zeros for those that ``checked_header`` is to look at."""
    heads = np.empty((len(files), len(JPEG_HEAD)), np.int64)
    addresses = (c_char_p * len(files))(*files)
    sizes = np.fromiter(map(len, files), np.int64, len(files))
    limits = MAX_SIDE, max_pixels, max_decode_bytes
    _read_heads(addresses, data_ptr(sizes), len(files), *limits, data_ptr(heads))
    return heads


def header_of(row: Int64Array) -> JpegHeader | None:
    """A row of ``scan_headers`` as ``read_header`` returns it; None for one of zeros."""
    height, width, components, offset, mcu_height, coefficients, _ = row.tolist()
    if not components:
        return None
    return JpegHeader(height, width, components, 1, offset, mcu_height, not coefficients, True, coefficients)
