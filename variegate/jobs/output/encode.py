"""Pixels to the bytes of an image file."""

from __future__ import annotations

import io
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import simplejpeg
from PIL import Image

from variegate.checks import one_of

ImageFormat = Literal["jpg", "png", "webp"]
FORMATS: tuple[ImageFormat, ...] = get_args(ImageFormat)
_LONGEST_SIDE = {"jpg": 65_535, "webp": 16_383}
# Level 6, Pillow's default, takes twice as long for files 2 to 3 % smaller.
_PNG_LEVEL = 3
_MOST_IN_PNG = 65_535


def check_format(name: str, quality: int) -> None:
    """Raise ValueError for an unknown format or a quality outside 1..100."""
    one_of("format", name, [*FORMATS])
    if not 1 <= quality <= 100:
        raise ValueError(f"quality: got {quality}; accepted: 1 to 100")


def encode_image(img_HWC: npt.NDArray[np.uint8], name: str, quality: int = 95) -> bytes:
    """uint8[H, W, 3] RGB, or [H, W] or [H, W, 1] gray -> the bytes of a jpg, png or webp.

    The same pixels give the same bytes. JPEG stores colour at half resolution (4:2:0) as Pillow does; ``quality``
    does nothing for png, which is lossless. Raises ValueError for a picture larger than the format can hold.
    """
    check_format(name, quality)
    longest = max(img_HWC.shape[:2])
    if longest > _LONGEST_SIDE.get(name, longest):
        raise ValueError(f"{name} holds at most {_LONGEST_SIDE[name]:,} pixels a side; this picture has {longest:,}")
    if img_HWC.ndim == 2:
        img_HWC = img_HWC[:, :, None]
    is_gray = img_HWC.shape[2] == 1
    img_HWC = np.ascontiguousarray(img_HWC)
    if name == "jpg":
        colours, sampling = ("GRAY", "Gray") if is_gray else ("RGB", "420")
        return bytes(simplejpeg.encode_jpeg(img_HWC, quality, colours, sampling))
    buffer = io.BytesIO()
    image = Image.fromarray(img_HWC[:, :, 0] if is_gray else img_HWC)
    if name == "png":
        image.save(buffer, "PNG", compress_level=_PNG_LEVEL)
    else:
        image.save(buffer, "WEBP", quality=quality)
    return buffer.getvalue()


def encode_mask(mask_HW: npt.NDArray[Any]) -> bytes:
    """Numbers 0 to 65,535 [H, W] -> the bytes of a PNG of 8 bits for uint8, else 16. Raises ValueError for others."""
    if mask_HW.dtype != np.uint8:
        low, high = (int(mask_HW.min()), int(mask_HW.max())) if mask_HW.size else (0, 0)
        if low < 0 or high > _MOST_IN_PNG:
            raise ValueError(f"a mask with numbers from {low:,} to {high:,}; a PNG holds 0 to {_MOST_IN_PNG:,}")
        mask_HW = mask_HW.astype(np.uint16)
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(mask_HW)).save(buffer, "PNG", compress_level=_PNG_LEVEL)
    return buffer.getvalue()
