"""Images of a source as references of transforms (``ops/domain.py``), decoded at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.formats.base import Source, SourceError
from variegate.formats.opening import open_source
from variegate.loader.reading import decode_picture


def reference_images(spec: Any, most: int) -> list[npt.NDArray[np.uint8]]:
    """uint8 [H, W, C] of ``most`` samples at most, evenly spaced, of whatever ``open_source`` opens.

    Raises SourceError for a stream or an empty source, and DecodeError for a damaged image.
    """
    source = open_source(spec)
    count = len(source) if isinstance(source, Source) else 0
    if not count:
        raise SourceError(f"{spec}: no images by index, which references are read by")
    chosen = np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64)).tolist()
    return [decode_picture(source.read(i).data, str(source.name(i)), None) for i in chosen]
