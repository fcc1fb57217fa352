"""The rule for pixels of more than 8 bits: scaled to 8 bits or refused, with a note.

Unsigned integers of 16 bits are scaled over their full range, ``round(value * 255 / 65535)``, whatever range a picture
uses. Signed integers, 32-bit integers and floats are refused, because the file does not record their range. Masks are
class indices, so their values are not scaled (``read_mask``).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from variegate.arrays import AnyArray, UInt8Array
from variegate.io.addresses import speakable

if TYPE_CHECKING:
    import torch

# 65535 is 255 times 257, an odd number: no value lies halfway between two results.
_TO_8_BITS = ((np.arange(1 << 16) + 128) // 257).astype(np.uint8)
_NOTE = "pixels of 16 bits are scaled to 8 bits (value * 255 / 65535)"
# Between a note and the name of the first image that it is about.
FIRST = "; the first: "
ADVICE = "scale them to uint8 first"

_noted: ContextVar[set[str] | None] = ContextVar("noted", default=None)


def is_16_bit(dtype: Any) -> bool:
    """True for NumPy's uint16 in either byte order, and for torch's."""
    return str(dtype) in ("uint16", ">u2", "<u2", "torch.uint16")


def scaled_to_8_bits(pixels: AnyArray, full: int = 65535) -> UInt8Array:
    """uint8 of integers from 0 to ``full``, the value that white has; see above."""
    if full == 65535:
        return _TO_8_BITS[pixels]
    return ((pixels.astype(np.uint32) * 255 + full // 2) // full).astype(np.uint8)


def as_8_bits(pixels: AnyArray, name: str) -> AnyArray:
    """Scale uint16 pixels to uint8, with a note; return other pixels unchanged. ``name``: of the image, for the
    note."""
    if not is_16_bit(pixels.dtype):
        return pixels
    note_depth(name)
    return scaled_to_8_bits(pixels)


def tensor_as_8_bits(pixels: torch.Tensor, name: str) -> torch.Tensor:
    """``as_8_bits`` of a tensor, on its device."""
    import torch

    if not is_16_bit(pixels.dtype):
        return pixels
    note_depth(name)
    return ((pixels.to(torch.int32) + 128) // 257).to(torch.uint8)


@contextmanager
def one_note(noted: set[str]) -> Iterator[None]:
    """Context manager: this thread notes only the first scaled image among those sharing ``noted``."""
    token = _noted.set(noted)
    try:
        yield
    finally:
        _noted.reset(token)


def note_depth(name: str) -> None:
    """A UserWarning that 16 bits are scaled; once for each source, whose first image it names."""
    noted = _noted.get()
    if noted is None:
        warnings.warn(f"{speakable(name)}: {_NOTE}", stacklevel=3)
    elif _NOTE not in noted:
        noted.add(_NOTE)
        warnings.warn(f"{_NOTE}{FIRST}{speakable(name)}", stacklevel=3)
