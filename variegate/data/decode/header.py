"""The head of a JPEG file: its size, how it is stored and where its height stands, read without decoding anything."""

from __future__ import annotations

import io
from dataclasses import dataclass

from PIL import Image

_ORIENTATION_TAG = 0x0112
_SOF_MARKERS = frozenset((0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF))
_STANDALONE_MARKERS = frozenset((0x01, *range(0xD0, 0xD9)))
_SOI, _SOS, _EOI, _APP1, _APP14 = b"\xff\xd8\xff", 0xDA, 0xD9, 0xE1, 0xEE
_HUFFMAN_MARKERS = (0xC0, 0xC1, 0xC2)


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
    is_ordinary: bool  # gray or YCbCr, 8 bits, Huffman code: nearly all; not RGB, CMYK, 12 bits or arithmetic code

    @property
    def oriented_size(self) -> tuple[int, int]:
        """Height and width after the EXIF orientation is applied."""
        return (self.width, self.height) if self.orientation >= 5 else (self.height, self.width)


def is_jpeg(data: bytes) -> bool:
    """True when the bytes begin as a JPEG does; the same test as Pillow's."""
    return data[:3] == _SOI


def read_header(data: bytes) -> JpegHeader:
    """Walk the segments up to the first scan. Raises ValueError with a plain reason where that is not possible."""
    if not is_jpeg(data):
        raise ValueError("not a JPEG: it does not begin with ff d8 ff")
    frame: tuple[int, int] | None = None
    may_be_oriented = is_rgb = False
    at, end = 2, len(data)
    while at + 4 <= end:
        if data[at] != 0xFF:
            at += 1  # junk between segments, which libjpeg skips as well
            continue
        marker = data[at + 1]
        if marker == 0xFF or marker == 0 or marker in _STANDALONE_MARKERS:
            at += 1 if marker == 0xFF else 2
            continue
        if marker == _EOI:
            break
        length = data[at + 2] << 8 | data[at + 3]
        if marker in _SOF_MARKERS:
            frame = (marker, at)
        elif marker == _APP1:
            may_be_oriented = may_be_oriented or _mentions_orientation(data[at + 4 : at + 2 + length])
        elif marker == _APP14:
            # Adobe's: its last byte says how colours are stored, 0 for RGB (or CMYK).
            is_rgb = is_rgb or (data[at + 4 : at + 9] == b"Adobe" and data[at + 15 : at + 16] == b"\0")
        elif marker == _SOS:
            if frame is None:
                break
            return _from_frame(data, *frame, scan_at=at, may_be_oriented=may_be_oriented, is_rgb=is_rgb)
        at += 2 + length
    raise ValueError(f"truncated: it ends after {end:,} bytes, before the picture begins")


def jpeg_size(data: bytes) -> tuple[int, int]:
    """Height and width of the picture that ``read_image`` would give, from the header alone (some microseconds)."""
    return read_header(data).oriented_size


def pillow_orientation(image: Image.Image) -> int:
    """The EXIF or XMP orientation 1..8 that ``ImageOps.exif_transpose`` would act on; 1 where there is none."""
    value = image.getexif().get(_ORIENTATION_TAG, 1)
    return value if isinstance(value, int) and 2 <= value <= 8 else 1


def _mentions_orientation(segment: bytes) -> bool:
    # Only a hint, and cheap: Pillow reads the metadata (EXIF in both byte orders, XMP) of the few files that have it.
    return b"\x01\x12" in segment or b"\x12\x01" in segment or b"Orientation" in segment


def _from_frame(data: bytes, marker: int, at: int, *, scan_at: int, may_be_oriented: bool, is_rgb: bool) -> JpegHeader:
    if at + 10 > len(data):
        raise ValueError(f"truncated: it ends after {len(data):,} bytes, in its header")
    components = data[at + 9]
    if components == 0 or at + 10 + 3 * components > len(data) or scan_at + 5 > len(data):
        raise ValueError("damaged: its header names no colour components")
    sampling = [data[at + 11 + 3 * i] & 15 for i in range(components)]
    # Files without Adobe's segment may name their components instead.
    is_rgb = is_rgb or bytes(data[at + 10 + 3 * i] for i in range(components)) == b"RGB"
    in_one_scan = data[scan_at + 4] == components
    orientation = 1
    if may_be_oriented:
        try:
            with Image.open(io.BytesIO(data)) as image:
                orientation = pillow_orientation(image)
        except Exception as error:
            raise ValueError(f"damaged: {error}") from error
    return JpegHeader(
        height=data[at + 5] << 8 | data[at + 6],
        width=data[at + 7] << 8 | data[at + 8],
        components=components,
        orientation=orientation,
        height_offset=at + 5,
        # A component alone in its scan is coded block by block, whatever its sampling factors say.
        mcu_height=8 * (max(sampling) if components > 1 else 1),
        is_sequential=marker in (0xC0, 0xC1) and in_one_scan,
        is_ordinary=marker in _HUFFMAN_MARKERS and data[at + 4] == 8 and components in (1, 3) and not is_rgb,
    )
