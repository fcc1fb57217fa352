"""Reading the source at computed places: nearest, bilinear and bicubic, with the fill colour outside.

Behaviour of Pillow 13 ``src/libImaging/Geometry.c``: a place is inside when it lies in [0, W) x [0, H); taps of the
interpolating filters are clamped to the edge; arithmetic in double; results truncated, not rounded.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.executors.reference.instruction import Image, to_uint8
from variegate.program.ops import Interpolation

Floats = npt.NDArray[np.floating]


def gather_nearest(
    img_HWC: Image, x_HW: npt.NDArray[np.int64], y_HW: npt.NDArray[np.int64], colour: npt.NDArray[np.uint8]
) -> Image:
    """Source pixels at integer places."""
    height, width, _ = img_HWC.shape
    inside = (x_HW >= 0) & (x_HW < width) & (y_HW >= 0) & (y_HW < height)
    taken = img_HWC[np.where(inside, y_HW, 0), np.where(inside, x_HW, 0)]
    return np.where(inside[..., None], taken, colour)


def gather(img_HWC: Image, x_HW: Floats, y_HW: Floats, colour: npt.NDArray[np.uint8], flags: int) -> Image:
    """Source values at real places, (0.5, 0.5) being the centre of the first pixel; ``flags`` an Interpolation."""
    height, width, _ = img_HWC.shape
    x_HW, y_HW = np.broadcast_arrays(x_HW, y_HW)
    inside = (x_HW >= 0) & (x_HW < width) & (y_HW >= 0) & (y_HW < height)
    # Outside places (which may be infinite or NaN) are parked on a legal one and painted over at the end.
    x_HW, y_HW = np.where(inside, x_HW, 0.5), np.where(inside, y_HW, 0.5)
    interpolation = Interpolation(flags)
    if interpolation is Interpolation.NEAREST:
        taken = img_HWC[y_HW.astype(np.int64), x_HW.astype(np.int64)]
    elif interpolation is Interpolation.BILINEAR:
        taken = to_uint8(_bilinear(img_HWC, x_HW - 0.5, y_HW - 0.5))
    else:
        taken = to_uint8(_bicubic(img_HWC, x_HW - 0.5, y_HW - 0.5))
    return np.where(inside[..., None], taken, colour)


def _split(v: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    whole = np.floor(v).astype(np.int64)
    return whole, (v - whole)[..., None]


def _bilinear(img_HWC: Image, x_HW: Floats, y_HW: Floats) -> Floats:
    x, dx = _split(x_HW)
    y, dy = _split(y_HW)
    upper = _mix(_tap(img_HWC, y, x), _tap(img_HWC, y, x + 1), dx)
    lower = _mix(_tap(img_HWC, y + 1, x), _tap(img_HWC, y + 1, x + 1), dx)
    return _mix(upper, lower, dy)


def _bicubic(img_HWC: Image, x_HW: Floats, y_HW: Floats) -> Floats:
    x, dx = _split(x_HW)
    y, dy = _split(y_HW)
    rows = [_cubic([_tap(img_HWC, y + j, x + i) for i in (-1, 0, 1, 2)], dx) for j in (-1, 0, 1, 2)]
    return _cubic(rows, dy)


def _tap(img_HWC: Image, y: npt.NDArray[np.int64], x: npt.NDArray[np.int64]) -> Floats:
    height, width, _ = img_HWC.shape
    return img_HWC[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)].astype(np.float64)


def _mix(a: Floats, b: Floats, t: Floats) -> Floats:
    return a + (b - a) * t


def _cubic(taps: list[Floats], t: Floats) -> Floats:
    """Cubic convolution with a = -1 through four neighbours, ``t`` from the second toward the third."""
    v1, v2, v3, v4 = taps
    p2 = -v1 + v3
    p3 = 2 * (v1 - v2) + v3 - v4
    p4 = -v1 + v2 - v3 + v4
    return v2 + t * (p2 + t * (p3 + t * p4))
