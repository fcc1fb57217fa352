"""Any image file to a uint8 RGB array: simplejpeg for JPEG, Pillow for the rest."""

from __future__ import annotations

from os import PathLike, fsdecode
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.decode.header import is_jpeg
from variegate.decode.jpeg import Image_HWC, decode_jpeg
from variegate.decode.pillow import PillowFile
from variegate.errors import DecodeError
from variegate.io.files import NotRegularError, TooLargeError, read_regular

Source = str | PathLike[str] | bytes | bytearray | memoryview


def read_image(
    source: Source, name: str | None = None, max_pixels: int | None = None, max_decode_bytes: int | None = None
) -> Image_HWC:
    """A path, or the bytes of a file -> uint8[H, W, 3], RGB, contiguous.

    JPEG, PNG, WebP, GIF, BMP, TIFF and PPM are read, whatever the name. The pixels are those of Pillow's
    ``ImageOps.exif_transpose(img).convert("RGB")``: the EXIF orientation is applied, palettes are looked up, alpha is
    dropped (not blended), gray is repeated, the first frame of an animation is taken. 16-bit RGB keeps its upper eight
    bits; **16-bit and float gray are clipped to 0..255** as Pillow does, which turns most of such a picture white, so a
    UserWarning names the file. ``name`` stands for the file in errors.

    Raises DecodeError(path, reason) whatever the file holds, and, before any pixel is decoded, for more than
    ``max_pixels`` (default ``MAX_PIXELS``) pixels and for a picture that takes more than ``max_decode_bytes``
    (default ``MAX_DECODE_BYTES``, 1 GB) of memory to decode. ValueError for a limit that is no positive integer.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        path, data = name or "<bytes>", bytes(source)
    else:
        path = name or fsdecode(source)
        data = read_bytes(source, path)
    if is_jpeg(data):
        return decode_jpeg(data, path, max_pixels, max_decode_bytes)
    with PillowFile(data, path, max_pixels, max_decode_bytes) as file:
        return file.decode()


def read_bytes(source: str | PathLike[str], name: str | None = None) -> bytes:
    """The bytes of a regular file, 2 GiB at most; whatever the system refuses becomes a DecodeError."""
    try:
        return read_regular(source)
    except FileNotFoundError:
        reason = "no such file"
    except (IsADirectoryError, NotRegularError, TooLargeError) as error:
        reason = str(error.strerror)
    except (OSError, ValueError) as error:  # a name with NUL is a ValueError
        reason = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    raise DecodeError(name or fsdecode(source), reason)


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
