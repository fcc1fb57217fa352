"""Reading the source at computed places: nearest, bilinear and bicubic, with the fill colour outside.

Nearest is Pillow's, to the bit. Interpolation is Pillow's in integers, so that every executor does the same: taps are
clamped to the edge, a place has 15 fraction bits (bilinear) or 14 (bicubic), sums are rounded once per axis, and the
result is cut off to a level, not rounded. Both kinds of weights are the same numbers read from either side, so that a
mirrored image is interpolated to the mirrored result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from variegate.executors.reference.instruction import Image, to_uint8
from variegate.executors.reference.places import Places
from variegate.program.ops import Interpolation

Floats = npt.NDArray[np.floating]
Integers = npt.NDArray[np.integer]

FRACTION_BITS = {Interpolation.BILINEAR: 15, Interpolation.BICUBIC: 14}


def gather_nearest(
    img_HWC: Image, x_HW: npt.NDArray[np.int64], y_HW: npt.NDArray[np.int64], colour: npt.NDArray[np.uint8]
) -> Image:
    """Source pixels at integer places."""
    height, width, _ = img_HWC.shape
    inside = (x_HW >= 0) & (x_HW < width) & (y_HW >= 0) & (y_HW < height)
    taken = img_HWC[np.where(inside, y_HW, 0), np.where(inside, x_HW, 0)]
    return np.where(inside[..., None], taken, colour)


def gather_real(img_HWC: Image, x_HW: Floats, y_HW: Floats, colour: npt.NDArray[np.uint8]) -> Image:
    """The pixels that real places lie in, (0.5, 0.5) being the centre of the first."""
    height, width, _ = img_HWC.shape
    x_HW, y_HW = np.broadcast_arrays(x_HW, y_HW)
    inside = (x_HW >= 0) & (x_HW < width) & (y_HW >= 0) & (y_HW < height)
    # Outside places may be infinite or NaN.
    columns, lines = np.where(inside, x_HW, 0).astype(np.int64), np.where(inside, y_HW, 0).astype(np.int64)
    return np.where(inside[..., None], img_HWC[lines, columns], colour)


def gather(img_HWC: Image, places: Places, colour: npt.NDArray[np.uint8], interpolation: Interpolation) -> Image:
    """Source values interpolated at ``places``, which have as many fraction bits as FRACTION_BITS says."""
    x_HW, y_HW = (np.where(places.inside_HW, place, 0) for place in (places.x_HW, places.y_HW))
    read = _bilinear if interpolation is Interpolation.BILINEAR else _bicubic
    return np.where(places.inside_HW[..., None], read(img_HWC, x_HW, y_HW), colour)


def _split(place: Integers, bits: int) -> tuple[Integers, Integers]:
    """The last pixel whose centre is not beyond a place, and how far beyond it the place lies."""
    from_centre = place.astype(np.int64) - (1 << bits - 1)
    return from_centre >> bits, (from_centre & (1 << bits) - 1)[..., None]


def _tap(img_HWC: Image, y: Integers, x: Integers) -> Integers:
    height, width, _ = img_HWC.shape
    return img_HWC[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)].astype(np.int64)


def _bilinear(img_HWC: Image, x_HW: Integers, y_HW: Integers) -> Image:
    x, dx = _split(x_HW, 15)
    y, dy = _split(y_HW, 15)
    upper = _mix(_tap(img_HWC, y, x) << 7, _tap(img_HWC, y, x + 1) << 7, dx)
    lower = _mix(_tap(img_HWC, y + 1, x) << 7, _tap(img_HWC, y + 1, x + 1) << 7, dx)
    return to_uint8(_mix(upper, lower, dy) >> 7)


def _mix(a: Integers, b: Integers, t: Integers) -> Integers:
    return a + ((b - a) * t + (1 << 14) >> 15)


def _bicubic(img_HWC: Image, x_HW: Integers, y_HW: Integers) -> Image:
    x, dx = _split(x_HW, 14)
    y, dy = _split(y_HW, 14)
    # Lines in 1/64 levels.
    lines = [_weighed([_tap(img_HWC, y + j, x + i) for i in (-1, 0, 1, 2)], dx) + (1 << 7) >> 8 for j in (-1, 0, 1, 2)]
    return to_uint8(_weighed(lines, dy) >> 20)


def _weighed(taps: Sequence[Integers], t: Integers) -> Integers:
    return np.sum([w * tap for w, tap in zip(_weights(t), taps, strict=True)], axis=0)


def _weights(t: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """Of a cubic convolution with a = -1 through four neighbours, ``t`` / 2**14 from the second toward the third; in
    2**-14, of which they sum up to one."""
    u = (1 << 14) - t
    product = t * u + (1 << 13) >> 14
    first, last = -(product * u + (1 << 13) >> 14), -(product * t + (1 << 13) >> 14)
    return first, u - first, t - last, last
