"""Formats that a package next to Pillow decodes, imported for the first file of its format: HEIC and JPEG XL.

The extras ``heif`` and ``jxl`` install them; AVIF is Pillow's. JPEG XL is decoded when a file is opened, so its size is
read here first, from its header (ISO/IEC 18181-1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from typing import Any

import numpy as np

from variegate.arrays import AnyArray

# Kinds of HEIF by the brand of a file.
HEIF_BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), "HEIC"),
    **dict.fromkeys((b"mif1", b"msf1"), "HEIF"),
}
_JXL_CODESTREAM = b"\xff\x0a"
_JXL_CONTAINER = b"\x00\x00\x00\x0cJXL \r\n\x87\n"
JXL_SIGNATURES = (_JXL_CODESTREAM, _JXL_CONTAINER)
DICOM_PREFIX_AT, _DICOM_PREFIX = 128, b"DICM"
DICOM_META_AT = DICOM_PREFIX_AT + len(_DICOM_PREFIX)
# Bits of a side in JPEG XL, by its two-bit selector.
_JXL_SIDE_BITS = (9, 13, 18, 30)
# Width to height, by the three bits of the ratio; 0 means that the width follows.
_JXL_RATIOS = {1: (1, 1), 2: (12, 10), 3: (4, 3), 4: (3, 2), 5: (16, 9), 6: (5, 4), 7: (2, 1)}
# At most: the signature, and two sides with their selectors and the ratio; all up to the bits of a channel.
_JXL_SIZE_BYTES = 11
_JXL_HEADER_BYTES = 64
# Offsets and bits of the four forms of a number.
_JXL_INTEGER_BITS = (8, 0), (10, 0), (12, 0), (1, 6)
_JXL_FLOAT_BITS = (32, 0), (16, 0), (24, 0), (1, 6)
_JXL_PREVIEW_BLOCKS = (16, 0), (32, 0), (1, 5), (33, 9)
_JXL_PREVIEW_SIDES = (1, 6), (65, 8), (321, 10), (1345, 12)
_JXL_ANIMATION = (
    ((100, 0), (1000, 0), (1, 10), (1, 30)),
    ((1, 0), (1001, 0), (1, 8), (1, 10)),
    ((0, 0), (0, 3), (0, 16), (0, 32)),
)
_MOST_BOXES = 64


@dataclass(frozen=True)
class Plugin:
    """A Pillow plugin of another package. ``accepts`` gets the first 16 bytes of a file."""

    module: str
    class_name: str
    requirement: str
    accepts: Callable[[bytes], bool]

    def open(self, file: BytesIO) -> Any:
        """The file as a Pillow image. Raises ImportError with the command that installs the package."""
        try:
            module = import_module(self.module)
        except ImportError as error:
            package = self.module.partition(".")[0]
            raise ImportError(f"needs {package}: pip install '{self.requirement}'") from error
        return getattr(module, self.class_name)(file, "")


def is_heif(start: bytes) -> bool:
    """True for the file type box of a HEIF file; AVIF files may have the brands of both."""
    return start[4:8] == b"ftyp" and start[8:12] in HEIF_BRANDS


def is_dicom(start: bytes) -> bool:
    """True for a DICOM file: "DICM" follows a preamble of 128 bytes, which may be the header of a TIFF."""
    return start[DICOM_PREFIX_AT : DICOM_PREFIX_AT + len(_DICOM_PREFIX)] == _DICOM_PREFIX


def is_jxl(start: bytes) -> bool:
    """True for a JPEG XL codestream or container."""
    return start.startswith(JXL_SIGNATURES)


# Pillow's names of the formats.
PLUGINS = {
    "HEIF": Plugin("pillow_heif", "HeifImageFile", "variegate[heif]", is_heif),
    "JXL": Plugin("pillow_jxl.JpegXLImagePlugin", "JXLImageFile", "variegate[jxl]", is_jxl),
}


def heif_values(data: bytes) -> tuple[AnyArray, int]:
    """[H, W, C] of a HEIC file of more than 8 bits, and the value of white."""
    pillow_heif = import_module("pillow_heif")
    file = pillow_heif.HeifFile(BytesIO(data), convert_hdr_to_8bit=False)
    values = np.asarray(file)
    bits = file.info["bit_depth"]
    # The bits of a number come first.
    return values.reshape(*values.shape[:2], -1) >> (16 - bits), (1 << bits) - 1


def jxl_size(data: bytes) -> tuple[int, int] | None:
    """Height and width of a JPEG XL file by its header, (0, 0) if it has none; None for other files."""
    if not is_jxl(data):
        return None
    codestream = _jxl_codestream(data)
    return (0, 0) if len(codestream) < _JXL_SIZE_BYTES else _take_size(_Bits(codestream))


def jxl_bits(data: bytes) -> int:
    """Bits of a channel of a JPEG XL file by its header."""
    bits = _Bits(_jxl_codestream(data))
    _take_size(bits)
    if bits.take(1):  # everything has its default
        return 8
    if bits.take(1):
        bits.take(3)  # the orientation
        if bits.take(1):
            _take_size(bits)  # of the picture on a page
        if bits.take(1):
            _take_preview(bits)
        if bits.take(1):
            _take_animation(bits)
    is_float = bits.take(1)
    return bits.number(*(_JXL_FLOAT_BITS if is_float else _JXL_INTEGER_BITS))


def _take_size(bits: _Bits) -> tuple[int, int]:
    is_small = bits.take(1)
    height = _jxl_side(bits, is_small)
    ratio = bits.take(3)
    if ratio == 0:
        return height, _jxl_side(bits, is_small)
    across, down = _JXL_RATIOS[ratio]
    return height, height * across // down


def _take_preview(bits: _Bits) -> None:
    sides = _JXL_PREVIEW_BLOCKS if bits.take(1) else _JXL_PREVIEW_SIDES
    bits.number(*sides)
    if bits.take(3) == 0:
        bits.number(*sides)


def _take_animation(bits: _Bits) -> None:
    for numbers in _JXL_ANIMATION:
        bits.number(*numbers)
    bits.take(1)


class _Bits:
    """Bits of a codestream after its signature, lowest first."""

    def __init__(self, codestream: bytes) -> None:
        self._value = int.from_bytes(codestream[len(_JXL_CODESTREAM) :], "little")

    def take(self, count: int) -> int:
        taken = self._value & ((1 << count) - 1)
        self._value >>= count
        return taken

    def number(self, *choices: tuple[int, int]) -> int:
        """A number in one of four forms, each an offset to which some bits are added."""
        offset, count = choices[self.take(2)]
        return offset + self.take(count)


def _jxl_side(bits: _Bits, is_small: int) -> int:
    if is_small:
        return 8 * (bits.take(5) + 1)
    return bits.take(_JXL_SIDE_BITS[bits.take(2)]) + 1


def _jxl_codestream(data: bytes) -> bytes:
    """The first bytes of the codestream, which a container holds in its box ``jxlc``, or in several, ``jxlp``."""
    if data.startswith(_JXL_CODESTREAM):
        return data[:_JXL_HEADER_BYTES]
    start = 0
    for _ in range(_MOST_BOXES):
        size = int.from_bytes(data[start : start + 4], "big")
        kind = data[start + 4 : start + 8]
        content = start + 8
        if size == 1:  # a 64-bit size follows the kind
            size = int.from_bytes(data[content : content + 8], "big")
            content += 8
        if kind in (b"jxlc", b"jxlp"):
            content += 4 if kind == b"jxlp" else 0  # the part's number
            return data[content : content + _JXL_HEADER_BYTES]
        if size < 8:  # 0: the last box of the file
            break
        start += size
    return b""
