"""PNGs of 16 bits, which Pillow does not write in color: every filter, interlaced or not."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

# Kinds of color by their number of channels.
_KINDS = {1: 0, 2: 4, 3: 2, 4: 6}
# First row and column of Adam7's passes, and their steps.
_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def png_16(img_HWC: npt.NDArray[Any], is_interlaced: bool = False) -> bytes:
    """A PNG of uint16 pixels: gray, gray and alpha, color, or color and alpha."""
    height, width, channels = img_HWC.shape
    passes = [img_HWC[y::dy, x::dx] for y, x, dy, dx in _PASSES] if is_interlaced else [img_HWC]
    head = struct.pack(">IIBBBBB", width, height, 16, _KINDS[channels], 0, 0, is_interlaced)
    body = zlib.compress(b"".join(_filtered(part) for part in passes if part.size))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")


def _filtered(img_HWC: npt.NDArray[Any]) -> bytes:
    """Rows with the five filters in turn."""
    height, _, channels = img_HWC.shape
    rows = np.ascontiguousarray(img_HWC).astype(">u2").view(np.uint8).reshape(height, -1).astype(np.int32)
    pixel = 2 * channels
    above = np.vstack([np.zeros_like(rows[:1]), rows[:-1]])
    left, corner = (np.pad(plane, ((0, 0), (pixel, 0)))[:, :-pixel] for plane in (rows, above))
    guess = left + above - corner
    distances = np.abs(np.stack([guess - left, guess - above, guess - corner]))
    paeth = np.choose(distances.argmin(axis=0), [left, above, corner])
    predicted = (np.zeros_like(rows), left, above, (left + above) // 2, paeth)
    lines = [bytes([y % 5]) + ((rows - predicted[y % 5])[y] & 255).astype(np.uint8).tobytes() for y in range(height)]
    return b"".join(lines)
