"""Pillow's files and images as arrays: every kind but JPEG, JPEGs that simplejpeg refuses, and images in memory.

Pillow keeps four bytes for a pixel of colour. Its own way to an upright RGB array (``exif_transpose``, ``convert``,
``np.array``) holds up to fourteen; strips of rows, converted and turned on their way into the result, hold seven.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from variegate.decode.header import as_stored, pillow_orientation
from variegate.decode.limits import (
    FORMATS,
    LARGE,
    MAX_DECODE_BYTES,
    MAX_PIXELS,
    bytes_needed,
    check_bytes,
    check_limit,
    check_pixels,
    check_side,
    reason_for,
    room_for,
)
from variegate.errors import DecodeError
from variegate.io.addresses import speakable

Image_HWC = npt.NDArray[np.uint8]

# Pixels of a strip; pictures of no more are converted in one go.
_STRIP = 1 << 18
# Where one of these stands anywhere in a file, it may be turned by metadata that come after its pixels.
_SIGNS_OF_ORIENTATION = (b"eXIf", b"EXIF", b"Exif", b"Orientation", b"XML:com.adobe.xmp", b"Raw profile type")
_IN_GRAY = ("1", "L", "LA", "La")


class _DecodeErrors:
    """Whatever Pillow raises becomes a DecodeError of the file. (A class, as a generator takes longer.)"""

    def __init__(self, data: bytes, path: str) -> None:
        self._data, self._path = data, path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, (DecodeError, MemoryError)):
            raise DecodeError(self._path, reason_for(error, self._data)) from error


class PillowFile:
    """A picture whose header was read; a context manager that closes it. Raises DecodeError, ValueError for limits.

    ``needed``: about how many bytes ``decode`` takes at its peak, the result among them. ``is_large``: a batch of such
    had better be decoded one after the other.
    """

    def __init__(
        self,
        data: bytes,
        path: str,
        max_pixels: int | None = None,
        max_decode_bytes: int | None = None,
        formats: tuple[str, ...] = FORMATS,
        *,
        divisor: int = 1,
        decoder_bytes: int = 0,
    ) -> None:
        max_pixels = check_limit("max_pixels", max_pixels, MAX_PIXELS)
        max_decode_bytes = check_limit("max_decode_bytes", max_decode_bytes, MAX_DECODE_BYTES)
        self._data, self._path = data, path
        self._errors = _DecodeErrors(data, path)
        with self._errors:  # damaged files make Pillow's plug-ins raise nearly anything
            self._image = image = Image.open(io.BytesIO(data), formats=formats)
            check_pixels(path, image.height, image.width, max_pixels)
            needed = bytes_needed(image, len(data), decoder_bytes)
            check_bytes(path, image.height, image.width, image.mode, needed, max_decode_bytes)
            if divisor > 1:
                # Sides that are not whole numbers ask for exactly this scale; whole ones of narrow pictures do not.
                image.draft(None, (image.width / divisor, image.height / divisor))  # type: ignore[arg-type]
            self.needed = bytes_needed(image, len(data), decoder_bytes)
            self.is_large = 3 * image.height * image.width >= LARGE

    def __enter__(self) -> PillowFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._image.close()

    @property
    def is_gray(self) -> bool:
        """All channels of what ``decode`` gives are equal, whatever the pixels."""
        return self._image.mode in (*_IN_GRAY, "F") or self._image.mode.startswith("I")

    @property
    def kind(self) -> str | None:
        """Pillow's name of the format: PNG, GIF, ..."""
        return self._image.format

    @property
    def mode(self) -> str:
        """Pillow's name of what a pixel is stored as: RGB, L, P, I;16, ..."""
        return self._image.mode

    @property
    def stored_size(self) -> tuple[int, int]:
        """Height and width by the header."""
        return self._image.height, self._image.width

    def orientation(self) -> int:
        """EXIF, 1 to 8, before anything is decoded; PNGs whose metadata come last are decoded for it."""
        if self._image.format != "TIFF" and not any(sign in self._data for sign in _SIGNS_OF_ORIENTATION):
            return 1
        with self._errors:
            return pillow_orientation(self._image)

    def size(self) -> tuple[int, int]:
        """Height and width as ``decode`` gives them; decodes only where they cannot be known otherwise."""
        if any(sign in self._data for sign in _SIGNS_OF_ORIENTATION):
            height, width, _ = self.decode().shape
            return height, width
        return self._image.height, self._image.width

    def decode(self, orientation: int | None = None, mode: str = "RGB") -> Image_HWC:
        """uint8[H, W, 3], RGB, upright, contiguous; [H, W, 4] in ``mode`` "RGBA". ``orientation``: None asks Pillow."""
        image = self._image
        warn_if_clipped(image, self._path)
        with self._errors, room_for(self.needed):
            image.load()
            return _converted(image, pillow_orientation(image) if orientation is None else orientation, mode)

    def stored(self) -> npt.NDArray[Any]:
        """[H, W, ...] as the file has it: palettes not looked up, not turned, a copy. Raises DecodeError."""
        with self._errors, room_for(self.needed):
            self._image.load()
            return np.array(self._image)


def _converted(image: Image.Image, orientation: int, mode: str) -> Image_HWC:
    width, height = image.size
    shown = (width, height) if orientation >= 5 else (height, width)
    img_HWC = np.empty((*shown, len(mode)), np.uint8)
    stored = as_stored(img_HWC, orientation)
    rows = max(1, _STRIP // width)
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        strip = image if rows >= height else image.crop((0, top, width, bottom))
        stored[top:bottom] = np.asarray(strip if strip.mode == mode else strip.convert(mode))
    return img_HWC


def pixels_of_pil(image: Image.Image, name: str) -> npt.NDArray[np.uint8]:
    """uint8 [H, W, 1] of gray images (modes 1, L, LA), [H, W, 3] of all others: palettes looked up, alpha dropped, and
    the EXIF orientation left alone, as torchvision does. One that was opened and not yet loaded is decoded here. Raises
    DecodeError for a damaged or closed image, and for more pixels, or a longer side, than is taken."""
    check_pixels(name, image.height, image.width)
    check_side(name, image.height, image.width)
    warn_if_clipped(image, name)
    try:
        mode = "L" if image.mode in _IN_GRAY else "RGB"
        plain = image.convert("LA") if image.mode == "La" else image  # all that Pillow makes of premultiplied alpha
        plain.load()  # which the mode may depend on
        plain = plain if plain.mode == mode else plain.convert(mode)
        pixels = None
        if mode == "RGB":
            from variegate.decode.memory import rgb_of  # compiled code, which most who read files do without

            pixels = rgb_of(plain)
        if pixels is None:
            pixels = np.array(plain)
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
