"""Pixels of Pillow's images, read from Pillow's own memory.

Pillow keeps four bytes per pixel of a color image. Its own export (``np.asarray``) packs pixel by pixel into a buffer
that is copied again, which takes three times as long or longer. From version 11.2 on it says by Arrow's C data
interface where an image's memory is.
"""

from __future__ import annotations

import ctypes
from ctypes import c_int64, c_void_p

import numpy as np
from PIL import Image

from variegate.arrays import UInt8Array
from variegate.native.library import data_ptr, entry

_unpack_rgb = entry("vg_unpack_rgb", c_void_p, c_int64, c_void_p)
_capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def rgb_of(image: Image.Image) -> UInt8Array | None:
    """Copy an image of mode RGB to uint8[H, W, 3]; None if Pillow's memory is not known, or not its own."""
    export = getattr(image, "__arrow_c_array__", None)
    if export is None or image.mode != "RGB":
        return None
    image.load()
    # Borrowed memory has a layout of its own; to ask for that of a mapped file or buffer crashes Pillow 11 and 12.
    # Aligned rows have gaps between them, which Arrow does not describe.
    if image.readonly or Image.core.get_alignment() != 1:  # type: ignore[attr-defined]
        return None
    try:
        _, capsule = export()  # which keeps the memory alive
    except ValueError:  # an image of more than 16 MB, in several pieces
        return None
    width, height = image.size
    img_HWC = np.empty((height, width, 3), np.uint8)
    return img_HWC if unpack_rgb(capsule, img_HWC) else None


def unpack_rgb(capsule: object, img_HWC: UInt8Array) -> bool:
    """Fill an image from a capsule of Arrow's ``arrow_array``; False if that does not hold four bytes per pixel."""
    array = _capsule_pointer(capsule, b"arrow_array")
    pixels = img_HWC.shape[0] * img_HWC.shape[1]
    return bool(_unpack_rgb(array, pixels, data_ptr(img_HWC)))
