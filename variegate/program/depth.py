"""Dtypes of images."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from variegate.arrays import AnyArray


class Depth(IntEnum):
    """Dtype of an image. Black is 0."""

    UINT8 = 0
    UINT16 = 1
    FLOAT32 = 2

    @classmethod
    def named(cls, name: str) -> Depth:
        """The depth of a dtype's name, such as "uint16"."""
        return cls[name.upper()]

    @property
    def dtype(self) -> np.dtype[Any]:
        return _DTYPES[self]

    @property
    def white(self) -> float:
        """The value of white: 255, 65535 or 1.0."""
        return _WHITE[self]

    @property
    def is_deep(self) -> bool:
        """True for more than 256 levels."""
        return self is not Depth.UINT8

    def __str__(self) -> str:
        return self.dtype.name


_DTYPES = np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.float32)
_WHITE = 255.0, 65535.0, 1.0
_KNOWN = {depth.dtype: depth for depth in Depth}
ACCEPTED = "uint8, uint16 or float32"


# Compared by identity first: hashing a dtype dominates the Python time of a small image.
_BYTE = np.dtype(np.uint8)


def depth_of(dtype: Any) -> Depth | None:
    """Return the depth of images of a NumPy dtype; None if the dtype is not accepted."""
    return Depth.UINT8 if dtype is _BYTE else _KNOWN.get(dtype)


def in_native_order(array: AnyArray) -> AnyArray:
    """Convert to the processor's byte order. Some files use the opposite order."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def needs_levels(name: str, depth: Depth) -> ValueError:
    return ValueError(f"{name}: got images of {depth}, and is defined on 256 levels; accepted: uint8 images")
