"""What a file is before its pixels count: its format, how it stores them, whether it ends before its image does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from variegate.apps.curate.measures.gif import has_gif_end
from variegate.decode import PillowFile, checked_header, decode_jpeg_warned, is_complete, is_jpeg
from variegate.decode.memory import TOTAL, Budget
from variegate.errors import DecodeError

Image_HWC = npt.NDArray[np.uint8]
T = TypeVar("T")

# Large pictures wait for each other while they are measured, as they do while they are decoded. This is asked before
# decoding asks, and never while decoding holds any.
_measured = Budget(TOTAL)

_PNG, _GIF = b"\x89PNG\r\n\x1a\n", (b"GIF87a", b"GIF89a")
_TIFF = (b"II*\0", b"MM\0*")
_PNG_END = b"IEND\xaeB`\x82"
_JPEG_END = b"\xff\xd9"
_AMONG_LAST = 64
_PREMATURE = "premature end"


@dataclass
class FileFacts:
    """``height``, ``width``: upright, by the header where the image does not decode; None where that is not read
    either. ``error``: why it does not decode. ``warning``: what the decoder said of an image that it made all the same.
    The rest is as in the columns of ``apps/curate/table.py``.
    """

    kind: str | None = None
    mode: str | None = None
    orientation: int = 1
    height: int | None = None
    width: int | None = None
    is_truncated: bool = False
    error: str | None = None
    warning: str | None = None

    def read(self, data: bytes, name: str, measure: Callable[[Image_HWC], T]) -> T | None:
        """Fill these in for the bytes of a file -> what ``measure`` gives for its pixels uint8 [H, W, 3], upright, or
        None with ``error`` set."""
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
        # height. A file that was cut off and given an end again is filled with gray: only libjpeg's warning tells.
        self.is_truncated = self.is_truncated and data.find(_JPEG_END, header.height_offset) < 0
        self.mode = {1: "L", 4: "CMYK"}.get(header.components, "RGB")
        self.orientation = header.orientation
        height, width = self.height, self.width = header.oriented_size
        with _measured.room_for(3 * height * width):
            image, warning = decode_jpeg_warned(data, header, name)
            if warning:
                self.warning = warning
                self.is_truncated = self.is_truncated or _PREMATURE in warning.lower()
            return measure(image)

    def _read_other(self, data: bytes, name: str, measure: Callable[[Image_HWC], T]) -> T:
        self.is_truncated = _is_cut_off(data)
        with PillowFile(data, name) as file:
            self.kind, self.mode = file.kind, file.mode
            self.height, self.width = height, width = file.stored_size
            self.orientation = file.orientation()
            if self.orientation >= 5:
                self.height, self.width = width, height
            with _measured.room_for(3 * height * width):
                # Pillow turns TIFFs itself, and says then that they are upright.
                image = file.decode(None if file.kind == "TIFF" else self.orientation)
                self.height, self.width = image.shape[:2]
                return measure(image)


def _is_cut_off(data: bytes) -> bool:
    """Whether a file lacks the end that its format asks for. False where a format has none; of those Pillow says more
    when it decodes."""
    if data.startswith(_PNG):
        return _PNG_END not in data[-_AMONG_LAST:] and _PNG_END not in data
    if data.startswith(_GIF):
        return not has_gif_end(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return int.from_bytes(data[4:8], "little") + 8 > len(data)
    if data.startswith(_TIFF):  # its directory often comes last
        return int.from_bytes(data[4:8], "little" if data.startswith(b"II") else "big") >= len(data)
    return False
