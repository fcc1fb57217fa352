"""Image files for tests of checks."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

from PIL import Image

import variegate as vg

PHOTO = Image.fromarray(vg.sample_images(1)[0][:120, :160])


def saved(kind: str = "PNG", image: Image.Image = PHOTO, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def bomb() -> bytes:
    """A PNG whose header names 60,000 x 60,000 pixels."""
    data = bytearray(saved())
    data[16:24] = struct.pack(">II", 60_000, 60_000)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)
