"""A sample's row in the table of a check: read, decoded and measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from variegate.apps.check.fingerprint import Fingerprint, fingerprint
from variegate.apps.check.pixels import PixelMeasures, measure_pixels
from variegate.arrays import UInt8Array
from variegate.checks import as_integer
from variegate.data.base import Item, SampleRef
from variegate.data.folder import FLAT_CLASS
from variegate.data.labels import MOST_LABEL, NO_LABEL
from variegate.decode import PillowFile, checked_header, decode_jpeg_warned, is_complete, is_jpeg
from variegate.decode.channels import NUMPY, read_channels
from variegate.decode.depth import note_once
from variegate.decode.plugins import is_dicom
from variegate.errors import DecodeError

Image_HWC = UInt8Array
T = TypeVar("T")
Row = tuple[Any, ...]

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
    "orientation",
    "is_truncated",
    "height",
    "width",
    *PixelMeasures._fields,
    *Fingerprint._fields,
)
# Pillow's modes of more than 8 bits, and suffixes of modes of 16-bit color images.
DEEP_GRAY = ("I;16", "I;16B", "I;16L", "I;16N", "I", "F")
DEEP = ";16"
_UNMEASURED = (None,) * (len(PixelMeasures._fields) + len(Fingerprint._fields))


def row_of(index: int, key: str, name: SampleRef, fetch: Callable[[], Item], classes: Sequence[str]) -> Row:
    """``key``: name in the table; ``name``: name in messages. Errors of the sample never raise: any error of a storage,
    a decoder or a user's data set becomes its ``error``."""
    facts, label, size, measures = FileFacts(), NO_LABEL, None, None
    noted: set[str] = set()  # not empty if pixels of 16 bits are scaled
    try:
        with note_once(noted):
            item = fetch()
        whole = as_integer(item.label)
        # A float, or an array for each sample, is no class.
        label = NO_LABEL if whole is None or not NO_LABEL <= whole <= MOST_LABEL else whole
        if isinstance(item.data, np.ndarray):
            size = item.data.nbytes
            measures = _measure_array(item.data, facts, bool(noted))
        else:
            data = item.data if isinstance(item.data, bytes) else bytes(item.data)
            size = len(data)
            if data.startswith(NUMPY) or is_dicom(data):
                with note_once(noted):
                    pixels = read_channels(data, str(name))
                assert pixels is not None
                measures = _measure_array(pixels, facts, bool(noted))
            else:
                measures = facts.read(data, str(name), _measure)
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
        facts.orientation,
        facts.is_truncated,
        facts.height,
        facts.width,
        *(measures or _UNMEASURED),
    )


def _measure(image: Image_HWC) -> Row:
    return (*measure_pixels(image), *fingerprint(image))


def _measure_array(image: UInt8Array, facts: FileFacts, is_deep: bool) -> Row | None:
    """``is_deep``: it had 16 bits."""
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3):
        facts.error = f"pixels {image.dtype} {list(image.shape)}; accepted: uint8 [H, W, 3] or [H, W, 1]"
        return None
    facts.mode = "L" if image.shape[2] == 1 else "RGB"
    if is_deep:
        facts.mode = DEEP_GRAY[0] if image.shape[2] == 1 else f"RGB{DEEP}"
    facts.height, facts.width = image.shape[:2]
    if not image.size:
        facts.error = f"it has no pixels ({facts.width} x {facts.height})"
        return None
    return _measure(np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3))))


@dataclass
class FileFacts:
    """``height``, ``width``: upright, by the header where the image does not decode; None where that is not read
    either. ``error``: why it does not decode. ``warning``: the decoder's warning about an image that it returned. The
    rest is as in the columns of ``SCHEMA``."""

    kind: str | None = None
    mode: str | None = None
    orientation: int = 1
    height: int | None = None
    width: int | None = None
    is_truncated: bool = False
    error: str | None = None
    warning: str | None = None

    def read(self, data: bytes, name: str, measure: Callable[[Image_HWC], T]) -> T | None:
        """Fill in the fields for a file's bytes. Returns the result of ``measure`` for its pixels uint8 [H, W, 3],
        upright, or None with ``error`` set."""
        try:
            return self._read_jpeg(data, name, measure) if is_jpeg(data) else self._read_other(data, name, measure)
        except DecodeError as error:
            self.error = error.reason
            self.is_truncated = self.is_truncated or error.reason.startswith("truncated")
            return None

    def _read_jpeg(self, data: bytes, name: str, measure: Callable[[Image_HWC], T]) -> T:
        self.kind = "JPEG"
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

    def _read_other(self, data: bytes, name: str, measure: Callable[[Image_HWC], T]) -> T:
        self.is_truncated = _is_cut_off(data)
        with PillowFile(data, name) as file:
            self.kind = file.kind
            self.mode = file.mode
            if file.bits > 8 and self.mode not in DEEP_GRAY:
                self.mode += DEEP
            self.orientation = file.orientation()
            self.height, self.width = file.oriented_size
            # Pillow turns TIFFs itself, and says then that they are upright.
            image = file.decode(None if file.kind == "TIFF" else self.orientation)
        self.height, self.width = image.shape[:2]
        return measure(image)


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
