"""Masks: images whose pixels are numbers, read as they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.decode.pillow import PillowFile
from variegate.errors import DecodeError

# Pillow's names of what a pixel is stored as -> what its number is kept in.
_KINDS: dict[str, Any] = {
    "P": np.uint8,
    "L": np.uint8,
    "1": np.uint8,
    "I": np.int32,
    "I;16": np.int32,
    "I;16B": np.int32,
}


def read_mask(data: bytes, name: str) -> npt.NDArray[Any]:
    """The bytes of a file -> uint8 or int32 [H, W]: palettes not looked up, 16 bits kept, 1 for white of one bit.

    Metadata that would turn a picture turn no mask. Raises DecodeError with ``name`` for damaged files, and for
    colours, which are no numbers.
    """
    with PillowFile(data, name) as file:
        if file.mode not in _KINDS:
            raise DecodeError(name, f"a mask of {file.mode} pixels; accepted: one number a pixel, gray or of a palette")
        if file.kind == "JPEG":
            raise DecodeError(name, "a mask in a JPEG, which blurs its numbers; accepted: PNG, TIFF, BMP, GIF")
        return file.stored().astype(_KINDS[file.mode])
