"""An image that somebody opened with Pillow, as pixels."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from PIL import Image

from variegate.data.decode.refusals import check_pixels, check_side, reason_for
from variegate.errors import DecodeError
from variegate.outside.addresses import speakable

_IN_GRAY = ("1", "L", "LA", "La")


def pixels_of_pil(image: Image.Image, name: str) -> npt.NDArray[np.uint8]:
    """uint8 [H, W, 1] of gray images (modes 1, L, LA), [H, W, 3] of all others: palettes looked up, alpha dropped.

    The EXIF orientation is left alone, as torchvision does: whoever opened the image has turned it already if it was to
    be turned. An image that was opened and not yet loaded is decoded here. Raises DecodeError naming the image for a
    damaged or closed one, and for one with more pixels, or a longer side, than is taken.
    """
    check_pixels(name, image.height, image.width)
    check_side(name, image.height, image.width)
    warn_if_clipped(image, name)
    try:
        plain = image.convert("LA") if image.mode == "La" else image  # all that Pillow makes of premultiplied alpha
        pixels = np.array(plain.convert("L" if image.mode in _IN_GRAY else "RGB"))
    except MemoryError:
        raise
    except Exception as error:  # opened only, it decodes here, and damaged files make Pillow raise nearly anything
        if "closed" in str(error):
            raise DecodeError(name, "a closed PIL image; accepted: an open one, or a loaded copy of it") from error
        raise DecodeError(name, reason_for(error, b"?")) from error
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def warn_if_clipped(image: Image.Image, name: str) -> None:
    """A UserWarning for gray of 16 or 32 bits, most of which turns white."""
    if image.mode.startswith("I") or image.mode == "F":
        warnings.warn(
            f"{speakable(name)}: {image.mode} (16 or 32 bits of gray); values above 255 are clipped, as Pillow's "
            'convert("RGB") does. Scale such images to 8 bits first.',
            stacklevel=3,
        )
