"""EXIF orientation as array views and a copy, equal to Pillow's ``ImageOps.exif_transpose``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Image_HWC = npt.NDArray[np.uint8]


def apply_orientation(img_HWC: Image_HWC, orientation: int) -> Image_HWC:
    """The stored picture as it is meant to be seen; contiguous. Values other than 2..8 change nothing."""
    if orientation == 2:
        turned = img_HWC[:, ::-1]
    elif orientation == 3:
        turned = img_HWC[::-1, ::-1]
    elif orientation == 4:
        turned = img_HWC[::-1]
    elif orientation == 5:
        turned = img_HWC.transpose(1, 0, 2)
    elif orientation == 6:
        turned = img_HWC[::-1].transpose(1, 0, 2)
    elif orientation == 7:
        turned = img_HWC[::-1, ::-1].transpose(1, 0, 2)
    elif orientation == 8:
        turned = img_HWC[:, ::-1].transpose(1, 0, 2)
    else:
        return img_HWC
    return np.ascontiguousarray(turned)


def as_stored(shown_HWC: Image_HWC, orientation: int) -> Image_HWC:
    """A view of a picture as it is shown, laid out as it is stored: writing to it turns what is written."""
    if orientation == 2:
        return shown_HWC[:, ::-1]
    if orientation == 3:
        return shown_HWC[::-1, ::-1]
    if orientation == 4:
        return shown_HWC[::-1]
    if orientation == 5:
        return shown_HWC.transpose(1, 0, 2)
    if orientation == 6:
        return shown_HWC.transpose(1, 0, 2)[::-1]
    if orientation == 7:
        return shown_HWC.transpose(1, 0, 2)[::-1, ::-1]
    if orientation == 8:
        return shown_HWC.transpose(1, 0, 2)[:, ::-1]
    return shown_HWC


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
