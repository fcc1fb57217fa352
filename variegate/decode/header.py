"""Headers of JPEG files, read in compiled code without decoding; EXIF orientation as views, equal to
``exif_transpose``."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_char_p, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from variegate.arrays import Int64Array, UInt8Array
from variegate.decode.limits import JPEG_FORMATS, MAX_PIXELS, open_image_file
from variegate.native.library import data_ptr, entry
from variegate.native.structs import JPEG_HEAD, JpegStatus
from variegate.program.program import MAX_SIDE

Image_HWC = UInt8Array

_SOI = b"\xff\xd8\xff"
_ORIENTATION_TAG = 0x0112
# By equality, as Pillow looks them up: damaged EXIF may hold one as a fraction.
_ORIENTATIONS: dict[object, int] = {value: value for value in range(2, 9)}
# Of the stored picture: steps along its rows and columns, and whether these change places then.
_TURNS = {
    2: (1, -1, False),
    3: (-1, -1, False),
    4: (-1, 1, False),
    5: (1, 1, True),
    6: (-1, 1, True),
    7: (-1, -1, True),
    8: (1, -1, True),
}
_NO_TURN = (1, 1, False)

(
    _STATUS,
    HEIGHT,
    WIDTH,
    COMPONENTS,
    HEIGHT_OFFSET,
    MCU_HEIGHT,
    IS_SEQUENTIAL,
    _IS_ORDINARY,
    _MAY_BE_ORIENTED,
    IS_COMPLETE,
) = range(len(JPEG_HEAD))
"""Columns of what ``scan_headers`` returns."""

_REASONS = {
    JpegStatus.NOT_JPEG: "not a JPEG: it does not begin with ff d8 ff",
    JpegStatus.NO_SCAN: "truncated: it ends after {size:,} bytes, before the picture begins",
    JpegStatus.CUT_FRAME: "truncated: it ends after {size:,} bytes, in its header",
    JpegStatus.NO_COMPONENTS: "damaged: its header names no color components",
}

_read_heads = entry("vg_jpeg_heads", c_void_p, c_void_p, c_int64, c_void_p, result=None)


@dataclass(frozen=True)
class JpegHeader:
    """``height`` and ``width`` are the stored size; ``oriented_size`` is the size in a viewer."""

    height: int
    width: int
    components: int
    orientation: int  # EXIF: 1 as stored, 2 to 8 flipped and turned
    height_offset: int  # of the two bytes of the height, for decoding the upper rows only
    mcu_height: int  # rows that are coded together
    is_sequential: bool  # one scan over the picture, top to bottom, in Huffman code
    # Gray or YCbCr, 8 bits, Huffman code, and nothing that libjpeg warns of before the picture begins: nearly all. Not
    # RGB, CMYK, 12 bits or arithmetic code; no bytes between segments, no version that JFIF never had.
    is_ordinary: bool

    @property
    def oriented_size(self) -> tuple[int, int]:
        """Height and width after the EXIF orientation is applied."""
        return (self.width, self.height) if self.orientation >= 5 else (self.height, self.width)


def is_jpeg(data: bytes) -> bool:
    """True when the bytes begin as a JPEG does; the same test as Pillow's."""
    return data[:3] == _SOI


def read_header(data: bytes) -> JpegHeader:
    """Read the segments up to the first scan. Raises ValueError with a plain reason if that is not possible."""
    data = bytes(data)
    head = _read([data])[0].tolist()
    if head[_STATUS] != JpegStatus.OK:
        raise ValueError(_REASONS[head[_STATUS]].format(size=len(data)))
    orientation = 1
    if head[_MAY_BE_ORIENTED]:
        try:
            # The few files that may be oriented: Pillow reads EXIF in both byte orders, and XMP.
            with open_image_file(data, JPEG_FORMATS) as image:
                orientation = pillow_orientation(image)
        except Exception as error:
            raise ValueError(f"damaged: {error}") from error
    return _header(head, orientation)


def scan_headers(files: Sequence[bytes], max_pixels: int = MAX_PIXELS) -> Int64Array:
    """int64[N, F]: the headers of many files in one call, without Python's lock. Rows of zeros are left to
    ``checked_header``: files that are not ordinary, may be oriented, or are beyond a limit."""
    heads = _read(files)
    sides = heads[:, [HEIGHT, WIDTH]]
    pixels = sides.prod(axis=1)
    is_plain = (heads[:, _IS_ORDINARY] > 0) & (heads[:, _MAY_BE_ORIENTED] == 0)
    is_plain &= (pixels > 0) & (pixels <= max_pixels) & (sides.max(axis=1) <= MAX_SIDE)
    heads[~is_plain] = 0
    return heads


def header_of(row: Int64Array) -> JpegHeader | None:
    """A row of ``scan_headers`` as ``read_header`` returns it; None for a row of zeros."""
    head = row.tolist()
    return _header(head, 1) if head[COMPONENTS] else None


def jpeg_size(data: bytes) -> tuple[int, int]:
    """Height and width of the picture that ``read_image`` would give, from the header alone (some microseconds)."""
    return read_header(data).oriented_size


def pillow_orientation(image: Image.Image) -> int:
    """The EXIF or XMP orientation 1..8 that ``ImageOps.exif_transpose`` applies; 1 without metadata or if they cannot
    be parsed."""
    try:
        return _ORIENTATIONS.get(image.getexif().get(_ORIENTATION_TAG), 1)
    except MemoryError:
        raise
    except Exception:  # garbage makes Pillow's parsers raise nearly anything, and says nothing of the pixels
        return 1


def _read(files: Sequence[bytes]) -> Int64Array:
    heads = np.empty((len(files), len(JPEG_HEAD)), np.int64)
    addresses = (c_char_p * len(files))(*files)
    sizes = np.fromiter(map(len, files), np.int64, len(files))
    _read_heads(addresses, data_ptr(sizes), len(files), data_ptr(heads))
    return heads


def _header(head: list[int], orientation: int) -> JpegHeader:
    return JpegHeader(
        height=head[HEIGHT],
        width=head[WIDTH],
        components=head[COMPONENTS],
        orientation=orientation,
        height_offset=head[HEIGHT_OFFSET],
        mcu_height=head[MCU_HEIGHT],
        is_sequential=bool(head[IS_SEQUENTIAL]),
        is_ordinary=bool(head[_IS_ORDINARY]),
    )


def apply_orientation(img_HWC: Image_HWC, orientation: int) -> Image_HWC:
    """Turn a stored picture as its orientation says; contiguous. Values other than 2..8 change nothing."""
    if orientation not in _TURNS:
        return img_HWC
    y, x, is_transposed = _TURNS[orientation]
    turned = img_HWC[::y, ::x]
    return np.ascontiguousarray(turned.transpose(1, 0, 2) if is_transposed else turned)


def as_stored(shown_HWC: Image_HWC, orientation: int) -> Image_HWC:
    """The inverse view: a displayed picture in the layout of the file; writing to the view writes the picture."""
    y, x, is_transposed = _TURNS.get(orientation, _NO_TURN)
    return (shown_HWC.transpose(1, 0, 2) if is_transposed else shown_HWC)[::y, ::x]


# Of numbers, or of arrays of them.
Box = tuple[Any, Any, Any, Any]


def stored_box(orientation: int, stored_height: int, stored_width: int, box: Box) -> Box:
    """Top, left, bottom and right in the stored picture of a box of the shown one."""
    top, left, bottom, right = box
    y, x, is_transposed = _TURNS.get(orientation, _NO_TURN)
    if is_transposed:
        top, left, bottom, right = left, top, right, bottom
    if y < 0:
        top, bottom = stored_height - bottom, stored_height - top
    if x < 0:
        left, right = stored_width - right, stored_width - left
    return top, left, bottom, right


def shown_box(orientation: int, stored_height: int, stored_width: int, box: Box) -> Box:
    """The other way round."""
    y, x, is_transposed = _TURNS.get(orientation, _NO_TURN)
    # Orientations that mirror the stored picture before they transpose it.
    mirrored = {(1, 1): 1, (1, -1): 2, (-1, -1): 3, (-1, 1): 4}[y, x]
    top, left, bottom, right = stored_box(mirrored, stored_height, stored_width, box)
    return (left, top, right, bottom) if is_transposed else (top, left, bottom, right)


def stored_rows_needed(
    orientation: int, stored_height: int, top: int, left: int, height: int, width: int
) -> tuple[int, bool, bool]:
    """Map a box of the displayed picture to stored rows -> (number of upper stored rows; True if these are columns of
    the displayed picture; True if stored row 0 is displayed last)."""
    along_columns = orientation >= 5
    from_far_end = orientation in (3, 4, 6, 7)
    first, count = (left, width) if along_columns else (top, height)
    rows = int(stored_height - first if from_far_end else first + count)
    return rows, along_columns, from_far_end
