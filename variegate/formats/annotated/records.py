"""What becomes of records as samples are read: their targets, and how many wrong objects were left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.decode.mask import read_mask
from variegate.errors import DecodeError
from variegate.formats.annotated.fields import ObjectFields
from variegate.formats.annotated.source import size_of


class RecordReader:
    """``on_error``: "skip" leaves wrong objects out, counted once for each sample; else they are DecodeErrors."""

    def __init__(self, fields: ObjectFields, on_error: str) -> None:
        self.fields, self._is_skipping = fields, on_error == "skip"
        self._wrong: dict[int, int] = {}
        self._flat: dict[int, int] = {}
        self._first = ""

    def targets(self, sample: int, record: Any, size: tuple[int, int], name: str) -> dict[str, Any]:
        """``sample``: its number; ``size``: of its image, height and width. Raises DecodeError with ``name``."""
        try:
            found = self.fields.read(record, size)
        except (TypeError, ValueError, OverflowError) as error:
            raise DecodeError(name, f"its annotations: {error}") from None
        self.count(sample, found.wrong, found.flat, name)
        return found.targets

    def count(self, sample: int, wrong: list[str], flat: int, name: str) -> None:
        """Raises DecodeError for the first that is wrong, unless these are left out."""
        if wrong and not self._is_skipping:
            raise DecodeError(name, f'its annotations: {wrong[0]}; on_error="skip" of open_source leaves such out')
        if wrong:
            self._first = self._first or f"{name}: {wrong[0]}"
            self._wrong[sample] = len(wrong)
        if flat:
            self._flat[sample] = flat

    def notes(self) -> list[str]:
        """Of the samples that were read so far."""
        wrong, flat = sum(list(self._wrong.values())), sum(list(self._flat.values()))
        lines = [f"{wrong:,} wrong objects were left out (the first: {self._first})"] if wrong else []
        return [*lines, f"{flat:,} objects without area were left out"] if flat else lines


def image_size(image: Any, name: str) -> tuple[int, int]:
    """Height and width of pixels [H, W, C], or of a file, upright. Raises DecodeError."""
    return (image.shape[0], image.shape[1]) if isinstance(image, np.ndarray) else size_of(image, name)


def mask_beside(data: bytes, name: str, size: tuple[int, int]) -> Any:
    """The mask in an image file, uint8 or int32 [H, W]. Raises DecodeError where it is not of its image's size."""
    mask = read_mask(data, name)
    if mask.shape != size:
        shown = [f"{height} x {width}" for height, width in (mask.shape, size)]
        raise DecodeError(name, f"is {shown[0]}, and its image {shown[1]} (height x width)")
    return mask
