"""A sample's row in the table of a check: read, decoded and measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from variegate.apps.check.findings import BYTE, COLORS
from variegate.apps.check.fingerprint import Fingerprint, fingerprint
from variegate.apps.check.pixels import PixelMeasures, measure_pixels
from variegate.apps.check.values import ValueMeasures, measure_values
from variegate.arrays import AnyArray, ImageArray, UInt8Array
from variegate.checks import as_integer
from variegate.data.base import Item, SampleRef
from variegate.data.folder import FLAT_CLASS
from variegate.data.labels import MOST_LABEL, NO_LABEL
from variegate.decode import PillowFile, checked_header, decode_jpeg_warned, is_complete, is_jpeg
from variegate.decode.channels import NUMPY, read_channels
from variegate.decode.depth import own_numbers
from variegate.decode.plugins import is_dicom
from variegate.errors import DecodeError
from variegate.program.program import MAX_CHANNELS

Image_HWC = UInt8Array
T = TypeVar("T")
Row = tuple[Any, ...]
# A function of an image.
Measure: TypeAlias = Callable[[ImageArray], T]

_PNG = b"\x89PNG\r\n\x1a\n"
_TIFF = (b"II*\0", b"MM\0*")
_PNG_END = b"IEND\xaeB`\x82"
_JPEG_END = b"\xff\xd9"
_PREMATURE = "premature end"

# The columns of a pass, except the split, in the order of a row; findings are added later.
FIELDS = (
    "index",
    "file",
    "label",
    "class",
    "error",
    "warning",
    "bytes",
    "kind",
    "mode",
    "depth",
    "orientation",
    "is_truncated",
    "height",
    "width",
    *PixelMeasures._fields,
    *ValueMeasures._fields,
    *Fingerprint._fields,
)
# Pillow's modes of more than 8 bits, and the suffix of modes of color images.
DEEP_GRAY = ("I;16", "I;16B", "I;16L", "I;16N", "I", "F")
DEEP = ";16"
# Suffix of modes of 2 or more than 3 channels, such as "5-channel".
CHANNELS = "-channel"
# By the kind of a dtype.
_GRAY_MODES = {"u": DEEP_GRAY[0], "i": "I", "f": "F"}
_UNMEASURED = (None,) * (len(PixelMeasures._fields) + len(ValueMeasures._fields) + len(Fingerprint._fields))


def row_of(index: int, key: str, name: SampleRef, fetch: Callable[[], Item], classes: Sequence[str]) -> Row:
    """``key``: name in the table; ``name``: name in messages. Errors of the sample never raise: any error of a storage,
    a decoder or a user's data set becomes its ``error``. Runs within ``own_numbers``."""
    facts, label, size, measures = FileFacts(), NO_LABEL, None, None
    try:
        item = fetch()
        whole = as_integer(item.label)
        # A float, or an array for each sample, is no class.
        label = NO_LABEL if whole is None or not NO_LABEL <= whole <= MOST_LABEL else whole
        data = item.data if isinstance(item.data, (bytes, np.ndarray)) else bytes(item.data)
        size = data.nbytes if isinstance(data, np.ndarray) else len(data)
        measures = facts.read(data, str(name), partial(_measure, facts))
    except DecodeError as error:
        facts.error = error.reason
    except MemoryError:
        facts.error = "not enough memory to decode it"
    except Exception as error:  # of a data set of the user's, or of a storage
        facts.error = f"cannot be read ({type(error).__name__}: {error})"
    if facts.error is not None:  # UTF-8 can hold it, whatever bytes a name or a message had
        facts.error = facts.error.encode("utf-8", "backslashreplace").decode()
    class_name = classes[label] if 0 <= label < len(classes) else None
    if class_name == FLAT_CLASS:  # the images of a folder without class folders
        label = NO_LABEL
        class_name = None
    return (
        index,
        key,
        label,
        class_name,
        facts.error,
        facts.warning,
        size,
        facts.kind,
        facts.mode,
        facts.depth,
        facts.orientation,
        facts.is_truncated,
        facts.height,
        facts.width,
        *(measures or _UNMEASURED),
    )


def _measure(facts: FileFacts, image: ImageArray) -> Row:
    if facts.depth in (None, BYTE) and image.shape[2] == COLORS:
        return (*measure_pixels(image), *ValueMeasures(), *fingerprint(image))
    look, values, found = measure_values(image, facts.depth or BYTE)
    return (*look, *values, *found)


@dataclass
class FileFacts:
    """``height``, ``width``: upright, by the header where the image does not decode; None where that is not read
    either. ``error``: why it does not decode. ``warning``: the decoder's warning about an image that it returned.
    ``depth``: kind and bits of its numbers; None if only 8 of more bits are read. The rest is as in the columns of
    ``SCHEMA``."""

    kind: str | None = None
    mode: str | None = None
    depth: str | None = None
    orientation: int = 1
    height: int | None = None
    width: int | None = None
    is_truncated: bool = False
    error: str | None = None
    warning: str | None = None

    def read(self, data: bytes | AnyArray, name: str, measure: Measure[T]) -> T | None:
        """Fill in the fields for a file's bytes, or an array. Returns the result of ``measure`` for its upright pixels,
        or None with ``error`` set. Pixels are uint8 [H, W, 3], or [H, W, C] of any numbers and channels."""
        try:
            if isinstance(data, np.ndarray):
                return self._read_array(data, data.dtype.name, measure)
            if is_jpeg(data):
                return self._read_jpeg(data, name, measure)
            if data.startswith(NUMPY) or is_dicom(data):
                return self._read_numbers(data, name, measure)
            return self._read_other(data, name, measure)
        except DecodeError as error:
            self.error = error.reason
            self.is_truncated = self.is_truncated or error.reason.startswith("truncated")
            return None

    def _read_array(self, image: AnyArray, depth: str, measure: Measure[T]) -> T:
        """``depth``: of its file, or its dtype."""
        is_image = image.dtype.kind in _GRAY_MODES and image.ndim == 3
        if not is_image or not 1 <= image.shape[2] <= MAX_CHANNELS:
            accepted = f"numbers [H, W, C] of 1 to {MAX_CHANNELS} channels"
            raise DecodeError("", f"pixels {image.dtype} {list(image.shape)}; accepted: {accepted}")
        is_deep = image.dtype != np.uint8
        channels = image.shape[2]
        self.depth = depth if is_deep else BYTE
        if channels == 1:
            self.mode = _GRAY_MODES[image.dtype.kind] if is_deep else "L"
        else:
            self._set_mode(channels, f"RGB{DEEP}" if is_deep else "RGB")
        self.height, self.width = image.shape[:2]
        if not image.size:
            raise DecodeError("", f"it has no pixels ({self.width} x {self.height})")
        if not is_deep and channels == 1:
            image = np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], COLORS)))
        return measure(image)

    def _set_mode(self, channels: int, mode: str) -> None:
        self.mode = mode if channels in (1, COLORS) else f"{channels}{CHANNELS}"

    def _read_numbers(self, data: bytes, name: str, measure: Measure[T]) -> T:
        self.kind = "NPY" if data.startswith(NUMPY) else "DICOM"
        with own_numbers() as own:
            pixels = read_channels(data, name)
        assert pixels is not None
        return self._read_array(pixels, own.depth, measure)

    def _read_jpeg(self, data: bytes, name: str, measure: Measure[T]) -> T:
        self.kind = "JPEG"
        self.depth = BYTE
        self.is_truncated = not is_complete(data)
        header = checked_header(data, name)
        # Phones write a film, or notes of their own, behind the picture's end. A thumbnail's end comes before the
        # height. A truncated file with a restored end marker is filled with gray: only libjpeg's warning reveals it.
        self.is_truncated = self.is_truncated and data.find(_JPEG_END, header.height_offset) < 0
        self.mode = {1: "L", 4: "CMYK"}.get(header.components, "RGB")
        self.orientation = header.orientation
        self.height, self.width = header.oriented_size
        image, warning = decode_jpeg_warned(data, header, name)
        if warning:
            self.warning = warning
            self.is_truncated = self.is_truncated or _PREMATURE in warning.lower()
        return measure(image)

    def _read_other(self, data: bytes, name: str, measure: Measure[T]) -> T:
        self.is_truncated = _is_cut_off(data)
        try:
            opened = PillowFile(data, name)
        except DecodeError:
            if self.is_truncated:
                raise
            with own_numbers() as own:
                several = read_channels(data, name)
            if several is None:
                raise
            self.kind = "TIFF"
            return self._read_array(several, own.depth, measure)
        with opened as file:
            self.kind = file.kind
            self.mode = file.mode
            if file.bits > 8 and self.mode not in DEEP_GRAY:
                self.mode += DEEP
            self.orientation = file.orientation()
            self.height, self.width = file.oriented_size
            # Pillow turns TIFFs itself, and says then that they are upright.
            turn = None if file.kind == "TIFF" else self.orientation
            has_more = file.unspecified_channels > 0
            is_deep = file.bits > 8 or file.has_other_numbers
            is_gray = file.is_gray
            image = None if is_deep or has_more else file.decode(turn)
        if image is None:
            image = self._read_deep(data, name, turn, is_gray, has_more)
            self._set_mode(image.shape[2], self.mode)
        else:
            self.depth = BYTE
        self.height, self.width = image.shape[:2]
        return measure(image)

    def _read_deep(self, data: bytes, name: str, turn: int | None, is_gray: bool, has_more: bool) -> ImageArray:
        """The stored numbers; uint8 of color of formats that are read in 8 bits, such as AVIF. ``has_more``: channels
        than Pillow reads."""
        try:
            with own_numbers() as own:
                image = read_channels(data, name) if self.kind == "TIFF" else None
                if image is None:
                    with PillowFile(data, name) as file:
                        image = file.decode(turn, "L" if is_gray else "RGB")
            self.depth = own.depth
            return image
        except DecodeError:
            if is_gray or has_more:
                raise
        with PillowFile(data, name) as file:
            return file.decode(turn)


def _is_cut_off(data: bytes) -> bool:
    """True if a file lacks the end that its format asks for. False for formats without an end, and for GIF: Pillow
    reports those when it decodes."""
    if data.startswith(_PNG):
        return data.rfind(_PNG_END) < 0
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return int.from_bytes(data[4:8], "little") + 8 > len(data)
    if data.startswith(_TIFF):  # its directory often comes last
        return int.from_bytes(data[4:8], "little" if data.startswith(b"II") else "big") >= len(data)
    return False
