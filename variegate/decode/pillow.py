"""Pillow's files and images as arrays: every kind but JPEG, JPEGs that simplejpeg refuses, and images in memory.

Pillow keeps four bytes for a pixel of color. Its own way to an upright RGB array (``exif_transpose``, ``convert``,
``np.array``) holds up to fourteen; strips of rows, converted and turned on their way into the result, hold seven.
"""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageFile

from variegate.arrays import AnyArray, ImageArray, UInt8Array
from variegate.decode.depth import (
    ADVICE,
    as_read,
    in_depth,
    note_depth,
    reads_own_numbers,
    scaled_to_8_bits,
    wanted_depth,
)
from variegate.decode.header import as_stored, pillow_orientation
from variegate.decode.limits import (
    FORMATS,
    MAX_PIXELS,
    check_limit,
    check_pixels,
    check_side,
    open_image_file,
    pillow_limit,
    reason_for,
    size_when_opened,
)
from variegate.decode.memory import rgb_of
from variegate.decode.plugins import heif_values, jxl_bits
from variegate.errors import DecodeError
from variegate.program.depth import ACCEPTED, Depth, depth_of, in_native_order

Image_HWC = UInt8Array

# Pixels of a strip; pictures of no more are converted in one go.
_STRIP = 1 << 18
# Files with such a byte string may have metadata behind the pixels that rotate them.
_SIGNS_OF_ORIENTATION = (b"eXIf", b"EXIF", b"Exif", b"Orientation", b"XML:com.adobe.xmp", b"Raw profile type")
# Their containers say how a picture is turned in boxes of their own.
_TURNED_BY_CONTAINER = ("TIFF", "AVIF")
_IN_GRAY = ("1", "L", "LA", "La")
# Formats whose mode "I" holds unsigned integers of 16 bits.
_UNSIGNED_16 = ("PNG", "PPM")
_PNG_DEPTH_AT, _PNG_COLOR_AT, _PNG_GRAY_ALPHA = 24, 25, 4
# Of AVIF: the box of its code's settings, where a byte is in it, and that byte's bit for more than 8 bits.
_AVIF_SETTINGS, _AVIF_DEPTH_AT, _AVIF_IS_DEEP = b"av1C", 6, 0x40
# Tags of TIFF, and a value of the last.
_PLANAR_CONFIGURATION, _SEPARATE_PLANES = 284, 2
_BITS_PER_SAMPLE, _PHOTOMETRIC, _TILE_WIDTH, _TILE_LENGTH, _EXTRA_SAMPLES, _SAMPLE_FORMAT = 258, 262, 322, 323, 338, 339
# Values of the tags of colors, of more channels, and of kinds of numbers.
_WHITE_IS_ZERO, _RGB = 0, 2
_UNSPECIFIED = 0
_UNSIGNED, _SIGNED = 1, 2


class _DecodeErrors:
    """Whatever Pillow raises becomes a DecodeError of the file. (A class, as a generator takes longer.)"""

    def __init__(self, data: bytes, path: str) -> None:
        self._data = data
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, (DecodeError, MemoryError)):
            raise DecodeError(self._path, reason_for(error, self._data)) from error


class PillowFile:
    """A picture whose header was read; a context manager that closes it. Raises DecodeError, ValueError for limits.

    ``divisor``: 2, 4 or 8 for a JPEG at a reduced scale.
    """

    def __init__(
        self,
        data: bytes,
        path: str,
        max_pixels: int | None = None,
        formats: tuple[str, ...] = FORMATS,
        *,
        divisor: int = 1,
    ) -> None:
        max_pixels = check_limit("max_pixels", max_pixels, MAX_PIXELS)
        self._data = data
        self._path = path
        self._errors = _DecodeErrors(data, path)
        with self._errors:  # damaged files make Pillow's plug-ins raise nearly anything
            if size := size_when_opened(data):
                check_pixels(path, *size, max_pixels)
            self._image = image = open_image_file(data, formats)
            check_pixels(path, image.height, image.width, max_pixels)
            if tile := _tile_size(image):
                check_pixels(path, *tile, max_pixels)
            if divisor > 1:
                # Sides that are not whole numbers ask for exactly this scale; whole ones of narrow pictures do not.
                image.draft(None, (image.width / divisor, image.height / divisor))  # type: ignore[arg-type]

    def __enter__(self) -> PillowFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._image.close()

    @property
    def is_gray(self) -> bool:
        """All channels of what ``decode`` gives are equal, whatever the pixels."""
        image = self._image
        is_gray_png = image.format == "PNG" and self._data[_PNG_COLOR_AT] == _PNG_GRAY_ALPHA
        return is_gray_mode(image.mode) or is_gray_png

    @property
    def kind(self) -> str | None:
        """Pillow's name of the format: PNG, GIF, ..."""
        return self._image.format

    @property
    def mode(self) -> str:
        """Pillow's mode of the picture: RGB, L, P, I;16, ..."""
        return self._image.mode

    @property
    def stored_size(self) -> tuple[int, int]:
        """Height and width by the header. They are upright for a TIFF."""
        return self._image.height, self._image.width

    @property
    def oriented_size(self) -> tuple[int, int]:
        """Height and width after the EXIF orientation is applied, which Pillow's size of a TIFF already reflects."""
        height, width = self.stored_size
        is_swapped = self.kind != "TIFF" and self.orientation() >= 5
        return (width, height) if is_swapped else (height, width)

    def orientation(self) -> int:
        """EXIF, 1 to 8, before anything is decoded; PNGs whose metadata come last are decoded for it."""
        has_sign = any(sign in self._data for sign in _SIGNS_OF_ORIENTATION)
        if self._image.format not in _TURNED_BY_CONTAINER and not has_sign:
            return 1
        with self._errors:
            return pillow_orientation(self._image)

    def decode(self, orientation: int | None = None, mode: str = "RGB") -> ImageArray:
        """uint8[H, W, 3], RGB, upright, contiguous; [H, W, 4] in ``mode`` "RGBA", [H, W, 1] in "L". ``orientation``:
        None asks Pillow. More than 8 bits: see ``decode/depth.py``. Raises DecodeError, also for channels that would be
        lost."""
        image = self._image
        self._check_channels()
        depth = wanted_depth()
        if self.bits > 8 and depth not in (None, Depth.UINT8):
            return self._decode_deep(orientation, len(mode))
        full = gray_range(image, self._path)
        if self.bits > 8 and depth is None:
            note_depth(self._path)
        with self._errors, pillow_limit.lifted(image.height, image.width):
            image.load()
            turn = pillow_orientation(image) if orientation is None else orientation
            return _converted(image, turn, mode, full)

    def _decode_deep(self, orientation: int | None, channels: int) -> ImageArray:
        """[H, W, channels] of a picture of more than 8 bits, in the depth that this thread reads. Gray is repeated."""
        image = self._image
        with self._errors, pillow_limit.lifted(image.height, image.width):
            values, full = self._deep_values()
            turn = pillow_orientation(image) if orientation is None else orientation
        stored = None
        if image.format == "TIFF":
            bits = image.tag_v2[_BITS_PER_SAMPLE]  # type: ignore[attr-defined]
            stored = f"{'float' if image.mode == 'F' else 'int'}{bits[0] if isinstance(bits, tuple) else bits}"
        if full:
            stored = f"uint{full.bit_length()}"
            if reads_own_numbers():
                values = np.clip(values, 0, full).astype(np.uint16)
            else:
                values = _as_uint16(values, full)
                full = 65535
            if _is_negative(image):
                values = np.uint16(full) - values
        values = as_read(values, self._path, stored)
        height, width, stored_channels = values.shape
        has_alpha = stored_channels in (2, 4)
        colors = values[:, :, : stored_channels - has_alpha]
        shown = (width, height) if turn >= 5 else (height, width)
        img_HWC = np.empty((*shown, channels), values.dtype)
        unturned = as_stored(img_HWC, turn)
        unturned[:, :, :3] = colors
        if channels == len("RGBA"):
            unturned[:, :, 3] = values[:, :, -1] if has_alpha else Depth.named(values.dtype.name).white
        return img_HWC

    def _deep_values(self) -> tuple[AnyArray, int]:
        """[H, W, C], the last of two or four channels alpha, and the value of white; 0 for numbers without one."""
        image = self._image
        if image.format == "PNG" and not image.mode.startswith("I"):
            return _color_of_png(image, self._data), 65535
        if image.format == "HEIF":
            return heif_values(self._data)
        if image.mode != "F" and not image.mode.startswith("I"):
            accepted = "PNG, HEIC, TIFF (pip install 'variegate[tiles]'), or gray"
            reason = f"{self.mode} pixels of {self.bits} bits, of which 8 would be read; accepted: {accepted}"
            raise DecodeError(self._path, reason)
        full = gray_range(image, self._path) if self.bits == 16 and image.mode != "F" else 0
        image.load()
        return np.asarray(image)[:, :, None], full

    @property
    def bits(self) -> int:
        """Bits of a channel by the header: 16, or 8 for all that have no more."""
        image = self._image
        data = self._data
        if image.mode.startswith("I") or image.mode == "F":
            return 32 if image.mode in ("I", "F") and image.format not in _UNSIGNED_16 else 16
        if image.format == "PNG":
            return max(8, data[_PNG_DEPTH_AT])
        if image.format == "HEIF":
            return 16 if image.info["bit_depth"] > 8 else 8
        if image.format == "JXL":
            return 16 if jxl_bits(data) > 8 else 8
        if image.format == "AVIF":
            at = data.find(_AVIF_SETTINGS) + _AVIF_DEPTH_AT
            return 16 if at >= _AVIF_DEPTH_AT and at < len(data) and data[at] & _AVIF_IS_DEEP else 8
        if image.format == "PPM":  # the raw decoder, which takes no 16 bits of color, has no maximum
            args = image.tile[0].args if image.tile else ()
            return 16 if isinstance(args, tuple) and isinstance(args[-1], int) and args[-1] > 255 else 8
        if image.format == "TIFF":
            bits = image.tag_v2.get(_BITS_PER_SAMPLE, 8)  # type: ignore[attr-defined]
            return 16 if max(bits if isinstance(bits, tuple) else (bits,)) > 8 else 8
        return 8

    @property
    def has_other_numbers(self) -> bool:
        """True for a TIFF that Pillow reads wrongly.

        That is signed gray of 8 bits, unsigned gray of 32 bits, and color of 16 bits in separate planes.
        """
        tags = getattr(self._image, "tag_v2", {})
        number = tags.get(_SAMPLE_FORMAT, (_UNSIGNED,))
        formats = number if isinstance(number, tuple) else (number,)
        if tags.get(_PLANAR_CONFIGURATION) == _SEPARATE_PLANES and self.bits > 8 and not self.is_gray:
            return True
        return (self.bits == 8 and _SIGNED in formats) or (self._image.mode == "I" and _UNSIGNED in formats)

    @property
    def unspecified_channels(self) -> int:
        """Number of a TIFF's channels of unspecified meaning, such as near infrared."""
        if self._image.format != "TIFF":
            return 0
        extra = self._image.tag_v2.get(_EXTRA_SAMPLES, ())  # type: ignore[attr-defined]
        return (extra if isinstance(extra, tuple) else (extra,)).count(_UNSPECIFIED)

    def check_deep_color(self) -> None:
        """Raise DecodeError for a TIFF of more than 8 bits that is not RGB or RGBA."""
        self._check_channels()
        if self._image.tag_v2.get(_PHOTOMETRIC) != _RGB:  # type: ignore[attr-defined]
            reason = f"color of {self.bits} bits in {self.mode} pixels; accepted: gray, RGB, RGBA"
            raise DecodeError(self._path, reason)

    def _check_channels(self) -> None:
        """Raises DecodeError for a TIFF with channels of unspecified meaning."""
        unspecified = self.unspecified_channels
        if unspecified:
            bits = self._image.tag_v2.get(_BITS_PER_SAMPLE, ())  # type: ignore[attr-defined]
            count = len(bits) if isinstance(bits, tuple) else 1
            some = "the last is" if unspecified == 1 else f"the last {unspecified} are"
            reason = f"it has {count} channels, of which {some} unspecified; pass channels={count} to read all of them"
            raise DecodeError(self._path, reason)

    def stored(self) -> AnyArray:
        """[H, W, ...] as the file has it: palettes not looked up, not turned, a copy. Raises DecodeError."""
        with self._errors, pillow_limit.lifted(self._image.height, self._image.width):
            self._image.load()
            return np.array(self._image)


def _color_of_png(image: ImageFile.ImageFile, data: bytes) -> AnyArray:
    """uint16 [H, W, C] of a PNG of 16 bits: gray or color, with or without alpha. ``image``: opened, not loaded.

    Pillow unpacks the first byte of a big-endian number, and the second byte of a little-endian one.
    """
    rawmode = image.tile[0].args
    if rawmode == "LA;16B":
        four = _unpacked(image, "RGBA", "RGBA").astype(np.uint16)
        return four[:, :, ::2] << 8 | four[:, :, 1::2]
    mode = image.mode
    values = _unpacked(image, mode, f"{mode};16B").astype(np.uint16) << 8
    with open_image_file(data, ("PNG",)) as again:
        values |= _unpacked(again, mode, f"{mode};16L")
    return values


def _unpacked(image: ImageFile.ImageFile, mode: str, rawmode: str) -> UInt8Array:
    image._mode = mode
    image.tile = [tile._replace(args=rawmode) for tile in image.tile]
    image.load()
    return np.asarray(image)


def _tile_size(image: Image.Image) -> tuple[int, int] | None:
    """Height and width of a TIFF's tiles; libtiff decodes a full tile even of a smaller picture."""
    tags = getattr(image, "tag_v2", {})
    is_tiled = _TILE_LENGTH in tags and _TILE_WIDTH in tags
    return (int(tags[_TILE_LENGTH]), int(tags[_TILE_WIDTH])) if is_tiled else None


def gray_range(image: Image.Image, name: str) -> int:
    """The value of white of a gray image of 16 bits; 0 for images of 8 bits and of color. Raises DecodeError for signed
    integers, 32-bit integers, and floats."""
    if image.mode == "F" or (image.mode == "I" and image.format not in _UNSIGNED_16):
        kind = "floats" if image.mode == "F" else "signed or 32-bit integers"
        accepted = "8 or 16 bits, or any with depth='float32'"
        raise DecodeError(name, f"its pixels are {kind} (mode {image.mode}); accepted: {accepted}; {ADVICE}")
    if not image.mode.startswith("I"):
        return 0
    bits = getattr(image, "tag_v2", {}).get(_BITS_PER_SAMPLE, 16)
    return (1 << int(bits[0] if isinstance(bits, tuple) else bits)) - 1


def _as_uint16(values: AnyArray, full: int) -> ImageArray:
    """uint16 of integers from 0 to ``full``, the value of white."""
    levels = np.clip(values, 0, full).astype(np.uint32)
    return ((levels * 65535 + full // 2) // full).astype(np.uint16)


def _scaled_gray(image: Image.Image, full: int, is_negative: bool = False) -> UInt8Array:
    """uint8 [H, W] of a gray image of 16 bits."""
    levels = scaled_to_8_bits(np.clip(np.asarray(image), 0, full), full)
    return np.uint8(255) - levels if is_negative else levels


def _is_negative(image: Image.Image) -> bool:
    """A TIFF whose white is 0, which Pillow inverts only up to 8 bits."""
    return getattr(image, "tag_v2", {}).get(_PHOTOMETRIC) == _WHITE_IS_ZERO


def _converted(image: Image.Image, orientation: int, mode: str, full: int = 0) -> Image_HWC:
    """``full``: of ``gray_range``."""
    width, height = image.size
    shown = (width, height) if orientation >= 5 else (height, width)
    img_HWC = np.empty((*shown, len(mode)), np.uint8)
    stored = as_stored(img_HWC, orientation)
    rows = max(1, _STRIP // width)
    is_negative = _is_negative(image)
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        strip = image if rows >= height else image.crop((0, top, width, bottom))
        if full:
            strip = Image.fromarray(_scaled_gray(strip, full, is_negative))
        pixels = np.asarray(strip if strip.mode == mode else strip.convert(mode))
        stored[top:bottom] = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return img_HWC


def is_gray_mode(mode: str) -> bool:
    """True for Pillow's modes of gray images, also of more than 8 bits."""
    return mode in (*_IN_GRAY, "F") or mode.startswith("I")


def pixels_of_pil(image: Image.Image, name: str, keeps_depth: bool = False) -> ImageArray:
    """[H, W, 1] of gray images, [H, W, 3] of all others: palettes looked up, alpha dropped, and the EXIF orientation
    left alone, as torchvision does: an image in memory is the pixels that it holds, and only files are turned. One that
    was opened and not yet loaded is decoded here.

    More than 8 bits: see ``decode/depth.py``; with ``keeps_depth``, modes I;16 and F keep their dtype. Raises
    DecodeError for a damaged or closed image, for pixels that the depth cannot have, and beyond the limits.
    """
    check_pixels(name, image.height, image.width)
    check_side(name, image.height, image.width)
    depth = wanted_depth()
    is_deep = image.mode == "F" or image.mode.startswith("I")
    if is_deep and not keeps_depth and depth in (None, Depth.UINT8):
        gray_range(image, name)  # raises for floats and other integers
        if depth is None:
            note_depth(name)
    try:
        mode = "L" if is_gray_mode(image.mode) else "RGB"
        plain = image.convert("LA") if image.mode == "La" else image  # all that Pillow makes of premultiplied alpha
        plain.load()  # which the mode may depend on
        pixels: AnyArray | None
        if is_deep:
            pixels = _deep_numbers(plain, name)
        else:
            plain = plain if plain.mode == mode else plain.convert(mode)
            pixels = rgb_of(plain)
            if pixels is None:
                pixels = np.array(plain)
    except (DecodeError, MemoryError):
        raise
    except Exception as error:  # opened only, it decodes here, and damaged files make Pillow raise nearly anything
        if "closed" in str(error):
            raise DecodeError(name, "a closed PIL image; accepted: an open one, or a loaded copy of it") from error
        raise DecodeError(name, reason_for(error, b"?")) from error
    if is_deep:
        pixels = _in_depth(pixels, depth, keeps_depth, image.mode, name)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def _deep_numbers(image: Image.Image, name: str) -> AnyArray:
    """[H, W] of a loaded image of more than 8 bits: uint16 if it has a white, else int32 or float32."""
    values = in_native_order(np.array(image))
    is_unsigned = image.mode != "F" and (image.mode != "I" or image.format in _UNSIGNED_16)
    return _as_uint16(values, gray_range(image, name)) if is_unsigned else values


def _in_depth(pixels: AnyArray, depth: Depth | None, keeps_depth: bool, mode: str, name: str) -> ImageArray:
    if reads_own_numbers():
        return as_read(pixels, name)
    if not keeps_depth:
        return in_depth(pixels, Depth.UINT8 if depth is None else depth, name)
    if depth_of(pixels.dtype) is None:
        raise DecodeError(name, f"its pixels are {pixels.dtype} (mode {mode}); accepted: {ACCEPTED}")
    return pixels
