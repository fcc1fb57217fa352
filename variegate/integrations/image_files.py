"""Augmented pixels as image files in a table, the way Hugging Face's data sets hold them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.sinks.encode import FORMATS, check_format, encode_image
from variegate.sinks.naming import output_path


class ImageFiles:
    """``format``: "jpg", "png" or "webp"; ``numbered``: whether names end in the copy's number.

    Raises ValueError for other formats, and for a quality outside 1..100.
    """

    def __init__(self, format: str, quality: int, numbered: bool) -> None:
        if format not in FORMATS:
            raise ValueError(f"encode: got {format!r}; accepted: None, " + ", ".join(map(repr, FORMATS)))
        check_format(format, quality)
        self._format, self._quality, self._numbered = format, quality, numbered

    def make(self, img_HWC: npt.NDArray[Any], path: str, copy: int) -> dict[str, Any]:
        """{"bytes": ..., "path": ...}; the path is that of the original, by the new format's extension.

        Raises ValueError for pixels that are not uint8, and for a picture larger than the format can hold.
        """
        if img_HWC.dtype != np.uint8:
            raise ValueError(
                f"encode: got {img_HWC.dtype} pixels, as the transform ends in Normalize; accepted: one without it, "
                "since image files hold bytes"
            )
        stem = os.path.splitext(path)[0]
        name = output_path(stem, copy, self._format) if self._numbered else f"{stem}.{self._format}"
        return {"bytes": encode_image(img_HWC, self._format, self._quality), "path": name}
