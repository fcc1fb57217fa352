"""RGB to HSV bytes and back, rounding where Pillow rounds (Pillow 13 ``src/libImaging/Convert.c``).

Hue, saturation and value are bytes; hue 255 is a full turn. Pillow keeps intermediate results in float and does most of
the arithmetic in double; both are kept here because the truncations that follow show the difference.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.executors.reference.instruction import Image, to_uint8

Doubles = npt.NDArray[np.float64]


def rgb_to_hsv(img_HWC: Image) -> Image:
    """uint8[H, W, 3] -> uint8[H, W, 3]."""
    r, g, b = (img_HWC[..., i] for i in range(3))
    high, low = img_HWC.max(axis=-1), img_HWC.min(axis=-1)
    is_gray = high == low
    spread = np.where(is_gray, 1, high - low).astype(np.float32)
    from_r, from_g, from_b = ((high - channel).astype(np.float32) / spread for channel in (r, g, b))
    sextant = np.where(
        r == high,
        (from_b - from_g).astype(np.float64),
        np.where(
            g == high,
            2.0 + from_r.astype(np.float64) - from_b,
            4.0 + from_g.astype(np.float64) - from_r,
        ),
    )
    turn = np.fmod(_as_float(sextant) / 6.0 + 1.0, 1.0)
    saturation = _as_float(spread / np.maximum(high, 1).astype(np.float32))
    h = np.where(is_gray, 0, to_uint8(_as_float(turn) * 255.0))
    s = np.where(is_gray, 0, to_uint8(saturation * 255.0))
    return np.stack([h, s, high], axis=-1).astype(np.uint8)


def hsv_to_rgb(hsv_HWC: Image) -> Image:
    """uint8[H, W, 3] -> uint8[H, W, 3]."""
    h, s, v = (hsv_HWC[..., i] for i in range(3))
    turn = h.astype(np.float64) * 6.0 / 255.0
    sextant = np.floor(turn)
    part = (turn - sextant).astype(np.float32)
    strength = (s / 255.0).astype(np.float32)
    value = v.astype(np.float64)
    p = _round(value * (1.0 - strength.astype(np.float64)))
    q = _round(value * (1.0 - (strength * part).astype(np.float64)))
    t = _round(value * (1.0 - strength.astype(np.float64) * (1.0 - part.astype(np.float64))))
    choices = np.array([[v, t, p], [q, v, p], [p, v, t], [p, q, v], [t, p, v], [v, p, q]])
    chosen = (sextant.astype(np.int64) % 6)[None, None]
    rgb = np.take_along_axis(choices, chosen, axis=0)[0]
    return np.where(s == 0, v, rgb).transpose(1, 2, 0).astype(np.uint8)


def _as_float(values: npt.NDArray[np.floating]) -> Doubles:
    """Through a C float and back to double."""
    return values.astype(np.float32).astype(np.float64)


def _round(values: Doubles) -> Image:
    """C's ``round`` on non-negative numbers: halves go up, and 0.49999999999999994 does not."""
    whole = np.trunc(values)
    return to_uint8(whole + (values - whole >= 0.5))
