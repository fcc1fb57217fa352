"""The rule for pixels of more than 8 bits: scaled to 8 bits or refused, with a note.

Unsigned integers of 16 bits are scaled over their full range, ``round(value * 255 / 65535)``, whatever range a picture
uses. Signed integers, 32-bit integers and floats are refused, because the file does not record their range. Masks are
class indices, so their values are not scaled (``read_mask``).

Within ``note_once(noted, depth)`` a thread reads in another ``Depth``: see ``in_depth``. Within ``own_numbers()`` it
reads the stored numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import AnyArray, ImageArray, UInt8Array
from variegate.errors import DecodeError
from variegate.io.addresses import redact_text
from variegate.program.depth import Depth, depth_of, in_native_order

# 65535 is 255 times 257, an odd number: no value lies halfway between two results.
_TO_8_BITS = ((np.arange(1 << 16) + 128) // 257).astype(np.uint8)
_NOTE = "pixels of 16 bits are scaled to 8 bits (value * 255 / 65535)"
# Between a note and the name of the first image that it is about.
FIRST = "; the first: "
ADVICE = "scale them to uint8 first"


_NUMBERS = ("uint8", "uint16", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


@dataclass
class OwnNumbers:
    """``depth``: kind and bits of the numbers of the image that was read last: uint8, uint12, int16, float32, ...."""

    depth: str = "uint8"


class _Reading(NamedTuple):
    """The way in which a thread reads. ``noted``: the notes of its source so far; ``depth``: None for 8 bits with a
    note; ``dicom``: options of DICOM files, a ``vg.Dicom``; ``own``: set while stored numbers are read."""

    noted: set[str] | None = None
    depth: Depth | None = None
    keeps_depth: bool = False
    dicom: Any = None
    own: OwnNumbers | None = None


_AS_USUAL = _Reading()
_reading: ContextVar[_Reading] = ContextVar("reading", default=_AS_USUAL)


def is_16_bit(dtype: Any) -> bool:
    """True for NumPy's uint16 in either byte order, and for torch's."""
    return str(dtype) in ("uint16", ">u2", "<u2", "torch.uint16")


def scaled_to_8_bits(pixels: AnyArray, full: int = 65535) -> UInt8Array:
    """uint8 of integers from 0 to ``full``, the value that white has; see above."""
    if full == 65535:
        return _TO_8_BITS[pixels]
    return ((pixels.astype(np.uint32) * 255 + full // 2) // full).astype(np.uint8)


def as_read(pixels: AnyArray, name: str, stored: str | None = None) -> AnyArray:
    """Convert pixels to the depth that this thread reads. In 8 bits, uint16 pixels are scaled, with a note, and others
    stay unchanged. ``name``: of the image, for the note. ``stored``: kind and bits of the numbers in its file, such as
    "uint12"; None if the dtype says it. Raises DecodeError as ``in_depth`` does."""
    _, depth, keeps_depth, _, own = _reading.get()
    if own is not None:
        pixels = in_native_order(pixels)
        own.depth = stored or pixels.dtype.name
        return pixels
    if depth is not None:
        return in_depth(pixels, depth, name)
    if keeps_depth and depth_of(in_native_order(pixels).dtype) is not None:
        return in_native_order(pixels)
    if not is_16_bit(pixels.dtype):
        return pixels
    note_depth(name)
    return scaled_to_8_bits(pixels)


def reads_unchanged(depth: Depth) -> bool:
    """True if ``as_read`` does not change images of this depth."""
    _, wanted, keeps_depth, _, own = _reading.get()
    return own is not None or depth is wanted or (wanted is None and (keeps_depth or not depth.is_deep))


def wanted_depth() -> Depth | None:
    """The depth that this thread reads; None for 8 bits with a note."""
    return _reading.get().depth


def reads_own_numbers() -> bool:
    """True within ``own_numbers``."""
    return _reading.get().own is not None


def dicom_options() -> Any:
    """The ``vg.Dicom`` with which this thread reads; None for the defaults."""
    return _reading.get().dicom


def in_depth(pixels: AnyArray, depth: Depth, name: str) -> ImageArray:
    """Pixels of any dtype in a depth. Black and white of unsigned integers stay black and white; floats and signed
    integers, which have no white, keep their numbers. Raises DecodeError if the depth cannot have them."""
    pixels = in_native_order(pixels)
    known = depth_of(pixels.dtype)
    if known is depth:
        return pixels
    if known is Depth.UINT8 and depth is Depth.UINT16:
        return pixels * np.uint16(257)
    if known is Depth.UINT16 and depth is Depth.UINT8:
        return scaled_to_8_bits(pixels)
    if depth is Depth.FLOAT32 and known is not None:
        return pixels / np.float32(known.white)
    if depth is Depth.FLOAT32 and pixels.dtype.kind in "if":
        return pixels.astype(np.float32)
    accepted = "unsigned integers of 8 or 16 bits, and with depth='float32' floats and signed integers"
    raise DecodeError(name, f"its pixels are {pixels.dtype}; accepted with depth={str(depth)!r}: {accepted}")


def readable_dtypes() -> tuple[str, ...]:
    """Names of the dtypes that this thread may read; ``in_depth`` may refuse some."""
    return ("uint8", "uint16") if wanted_depth() is None else _NUMBERS


@contextmanager
def note_once(
    noted: set[str], depth: Depth | None = None, keeps_depth: bool = False, dicom: Any = None
) -> Iterator[None]:
    """Context manager: this thread notes only the first scaled image among those sharing ``noted``.

    ``depth``: the depth in which it reads; None for 8 bits. ``keeps_depth``: without a depth, images of one keep it.
    ``dicom``: a ``vg.Dicom``.
    """
    token = _reading.set(_Reading(noted, depth, keeps_depth, dicom))
    try:
        yield
    finally:
        _reading.reset(token)


@contextmanager
def own_numbers(dicom: Any = None) -> Iterator[OwnNumbers]:
    """Context manager: this thread reads the stored numbers, of any dtype, and all channels of a TIFF but alpha.

    Gray DICOM files have values after slope and intercept, unless they have 8 bits, which are read as elsewhere.
    ``dicom``: a ``vg.Dicom``, None for that of the surrounding context; with a window, they are float32 shares of it.
    """
    own = OwnNumbers()
    token = _reading.set(_Reading(set(), Depth.FLOAT32, dicom=dicom or dicom_options(), own=own))
    try:
        yield own
    finally:
        _reading.reset(token)


def read_in(depth: Depth, noted: set[str], dicom: Any = None) -> AbstractContextManager[None]:
    """``note_once`` in a depth; in 8 bits with notes if that is uint8."""
    return note_once(noted, depth if depth.is_deep else None, dicom=dicom)


def note_depth(name: str, note: str = _NOTE) -> None:
    """A UserWarning that more than 8 bits are scaled; once for each source, whose first image it names."""
    noted = _reading.get().noted
    if noted is None:
        warnings.warn(f"{redact_text(name)}: {note}", stacklevel=3)
    elif note not in noted:
        noted.add(note)
        warnings.warn(f"{note}{FIRST}{redact_text(name)}", stacklevel=3)
