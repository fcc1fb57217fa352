"""The head of a JPEG file, read without decoding anything; EXIF orientation as views, equal to ``exif_transpose``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from variegate.arrays import UInt8Array
from variegate.decode.limits import JPEG_FORMATS, open_image_file

Image_HWC = UInt8Array

_ORIENTATION_TAG = 0x0112
# By equality, as Pillow looks them up: damaged EXIF may hold one as a fraction.
_ORIENTATIONS: dict[object, int] = {value: value for value in range(2, 9)}
_SOF_MARKERS = frozenset((0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF))
_STANDALONE_MARKERS = frozenset((0x01, *range(0xD0, 0xD9)))
_SOI, _SOS, _EOI, _APP0, _APP1, _APP14 = b"\xff\xd8\xff", 0xDA, 0xD9, 0xE0, 0xE1, 0xEE
_HUFFMAN_MARKERS = (0xC0, 0xC1, 0xC2)
_TABLES = 0xC4
_ORIENTATION_HINTS = (b"\x01\x12", b"\x12\x01", b"Orientation")
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


@dataclass(frozen=True)
class JpegHeader:
    """``height`` and ``width`` are as stored; ``oriented_size`` is what a viewer shows."""

    height: int
    width: int
    components: int
    orientation: int  # EXIF: 1 as stored, 2 to 8 flipped and turned
    height_offset: int  # where the two bytes of the height are, for decoding the upper rows only
    mcu_height: int  # rows that are coded together
    is_sequential: bool  # one pass over the picture, top to bottom, in Huffman code
    # Gray or YCbCr, 8 bits, Huffman code, and nothing that libjpeg warns of before the picture begins: nearly all. Not
    # RGB, CMYK, 12 bits or arithmetic code; no bytes between segments, no version that JFIF never had.
    is_ordinary: bool
    coefficient_bytes: int  # that libjpeg holds where the picture comes in several scans; 0 where it comes in one

    @property
    def oriented_size(self) -> tuple[int, int]:
        """Height and width after the EXIF orientation is applied."""
        return (self.width, self.height) if self.orientation >= 5 else (self.height, self.width)


def is_jpeg(data: bytes) -> bool:
    """True when the bytes begin as a JPEG does; the same test as Pillow's."""
    return data[:3] == _SOI


def read_header(data: bytes) -> JpegHeader:
    """Walk the segments up to the first scan. Raises ValueError with a plain reason where that is not possible."""
    data = bytes(data)  # a memoryview has no search for metadata
    if not is_jpeg(data):
        raise ValueError("not a JPEG: it does not begin with ff d8 ff")
    frame: tuple[int, int] | None = None
    may_be_oriented = has_exif = is_rgb = is_odd = False
    at = 2
    end = len(data)
    while at + 4 <= end:
        if data[at] != 0xFF:
            at += 1  # junk between segments, which libjpeg skips as well
            is_odd = True
            continue
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1  # padding, which a marker may have
            continue
        if marker == 0 or marker in _STANDALONE_MARKERS:
            at += 2
            is_odd = True
            continue
        if marker == _EOI:
            break
        length = data[at + 2] << 8 | data[at + 3]
        if marker in _SOF_MARKERS:
            is_odd = is_odd or frame is not None
            frame = (marker, at)
        elif marker == _APP0:
            is_odd = is_odd or (data[at + 4 : at + 9] == b"JFIF\0" and data[at + 9 : at + 10] not in (b"\1", b"\2"))
        elif marker == _APP1:
            segment = data[at + 4 : at + 2 + length]
            # Pillow joins the parts of EXIF that comes in several.
            is_exif = segment[:4] == b"Exif"
            # Only a hint, and cheap: Pillow reads the metadata (EXIF in both byte orders, XMP) of the few that have it.
            may_be_oriented = may_be_oriented or any(hint in segment for hint in _ORIENTATION_HINTS)
            may_be_oriented = may_be_oriented or (has_exif and is_exif)
            has_exif = has_exif or is_exif
        elif marker == _APP14:
            # Adobe's: its last byte says how colours are stored, 0 for RGB (or CMYK).
            is_rgb = is_rgb or (data[at + 4 : at + 9] == b"Adobe" and data[at + 15 : at + 16] == b"\0")
        elif marker == _SOS:
            if frame is None:
                break
            return _from_frame(data, *frame, scan_at=at, may_be_oriented=may_be_oriented, is_rgb=is_rgb, is_odd=is_odd)
        at += 2 + length
    raise ValueError(f"truncated: it ends after {end:,} bytes, before the picture begins")


def jpeg_size(data: bytes) -> tuple[int, int]:
    """Height and width of the picture that ``read_image`` would give, from the header alone (some microseconds)."""
    return read_header(data).oriented_size


def pillow_orientation(image: Image.Image) -> int:
    """The EXIF or XMP orientation 1..8 that ``ImageOps.exif_transpose`` would act on; 1 if there is none, and if the
    metadata cannot be parsed."""
    try:
        return _ORIENTATIONS.get(image.getexif().get(_ORIENTATION_TAG), 1)
    except MemoryError:
        raise
    except Exception:  # garbage makes Pillow's parsers raise nearly anything, and says nothing of the pixels
        return 1


def _has_more(data: bytes, start: int) -> bool:
    """Another scan, or a table, from ``start`` on. (NumPy finds ff in a sixth of the time of ``bytes.find``.)"""
    rest = np.frombuffer(data, np.uint8, offset=start)
    markers = rest[1:][np.flatnonzero(rest[:-1] == 0xFF)]
    return bool(((markers == _SOS) | (markers == _TABLES)).any())


def _from_frame(
    data: bytes, marker: int, at: int, *, scan_at: int, may_be_oriented: bool, is_rgb: bool, is_odd: bool
) -> JpegHeader:
    if at + 10 > len(data):
        raise ValueError(f"truncated: it ends after {len(data):,} bytes, in its header")
    components = data[at + 9]
    if components == 0 or at + 10 + 3 * components > len(data) or scan_at + 5 > len(data):
        raise ValueError("damaged: its header names no color components")
    factors = [divmod(data[at + 11 + 3 * i], 16) for i in range(components)]
    # Files without Adobe's segment may name their components instead.
    is_rgb = is_rgb or bytes(data[at + 10 + 3 * i] for i in range(components)) == b"RGB"
    in_one_scan = data[scan_at + 4] == components
    height = data[at + 5] << 8 | data[at + 6]
    width = data[at + 7] << 8 | data[at + 8]
    orientation = 1
    if may_be_oriented:
        try:
            with open_image_file(data, JPEG_FORMATS) as image:
                orientation = pillow_orientation(image)
        except Exception as error:
            raise ValueError(f"damaged: {error}") from error
    is_sequential = marker in (0xC0, 0xC1) and in_one_scan and not _has_more(data, scan_at + 2)
    return JpegHeader(
        height=height,
        width=width,
        components=components,
        orientation=orientation,
        height_offset=at + 5,
        # A component alone in its scan is coded block by block, whatever its sampling factors say.
        mcu_height=8 * (max(1, *(rows for _, rows in factors)) if components > 1 else 1),
        is_sequential=is_sequential,
        is_ordinary=(
            marker in _HUFFMAN_MARKERS and data[at + 4] == 8 and components in (1, 3) and not is_rgb and not is_odd
        ),
        coefficient_bytes=0 if is_sequential else _coefficient_bytes(height, width, factors),
    )


def _coefficient_bytes(height: int, width: int, factors: list[tuple[int, int]]) -> int:
    """Two for each sample of each component, whose sides are filled up to whole blocks."""
    across, down = (max(1, *(factor[axis] for factor in factors)) for axis in (0, 1))
    units = -(-width // (8 * across)) * -(-height // (8 * down))
    return 2 * 64 * units * sum(columns * rows for columns, rows in factors)


def apply_orientation(img_HWC: Image_HWC, orientation: int) -> Image_HWC:
    """The stored picture as it is meant to be seen; contiguous. Values other than 2..8 change nothing."""
    if orientation not in _TURNS:
        return img_HWC
    y, x, is_transposed = _TURNS[orientation]
    turned = img_HWC[::y, ::x]
    return np.ascontiguousarray(turned.transpose(1, 0, 2) if is_transposed else turned)


def as_stored(shown_HWC: Image_HWC, orientation: int) -> Image_HWC:
    """A view of a picture as it is shown, laid out as it is stored: writing to it turns what is written."""
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
    # Mirrored as it is stored, before it is transposed.
    mirrored = {(1, 1): 1, (1, -1): 2, (-1, -1): 3, (-1, 1): 4}[y, x]
    top, left, bottom, right = stored_box(mirrored, stored_height, stored_width, box)
    return (left, top, right, bottom) if is_transposed else (top, left, bottom, right)


def stored_rows_needed(
    orientation: int, stored_height: int, top: int, left: int, height: int, width: int
) -> tuple[int, bool, bool]:
    """-> (upper rows of the stored picture that hold a box of the shown one, whether these are columns of the shown
    picture, whether stored row 0 is shown last)."""
    along_columns = orientation >= 5
    from_far_end = orientation in (3, 4, 6, 7)
    first, count = (left, width) if along_columns else (top, height)
    rows = int(stored_height - first if from_far_end else first + count)
    return rows, along_columns, from_far_end
