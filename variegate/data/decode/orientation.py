"""EXIF orientation as array views and a copy, equal to Pillow's ``ImageOps.exif_transpose``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Image_HWC = npt.NDArray[np.uint8]


# Of the stored picture: steps along its rows and columns, and whether these change places then.
_TURNS = {
    2: (1, -1, False),
    3: (-1, -1, False),
    4: (-1, 1, False),
    5: (1, 1, True),
    6: (-1, 1, True),
    7: (-1, -1, True),
    8: (1, -1, True),
}


def apply_orientation(img_HWC: Image_HWC, orientation: int) -> Image_HWC:
    """The stored picture as it is meant to be seen; contiguous. Values other than 2..8 change nothing."""
    if orientation not in _TURNS:
        return img_HWC
    y, x, is_transposed = _TURNS[orientation]
    turned = img_HWC[::y, ::x]
    return np.ascontiguousarray(turned.transpose(1, 0, 2) if is_transposed else turned)


def as_stored(shown_HWC: Image_HWC, orientation: int) -> Image_HWC:
    """A view of a picture as it is shown, laid out as it is stored: writing to it turns what is written."""
    y, x, is_transposed = _TURNS.get(orientation, (1, 1, False))
    return (shown_HWC.transpose(1, 0, 2) if is_transposed else shown_HWC)[::y, ::x]


def stored_rows_needed(
    orientation: int, stored_height: int, top: int, left: int, height: int, width: int
) -> tuple[int, bool, bool]:
    """Which upper rows of the stored picture hold a box of the shown one.

    Returns (rows, along_columns, from_far_end): the number of stored rows, whether stored rows are columns of the
    shown picture, and whether stored row 0 is shown last.
    """
    along_columns = orientation >= 5
    from_far_end = orientation in (3, 4, 6, 7)
    first, count = (left, width) if along_columns else (top, height)
    rows = int(stored_height - first if from_far_end else first + count)
    return rows, along_columns, from_far_end
