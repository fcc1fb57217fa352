"""Images of uint16 and float32 in the 256 levels of a screen."""

from __future__ import annotations

import numpy as np

from variegate.arrays import AnyArray, UInt8Array
from variegate.program.depth import depth_of

# Images that use a smaller share of black to white are stretched: they would look black.
_LEAST_USED = 0.1


def for_screen(pixels: AnyArray) -> tuple[UInt8Array, list[str]]:
    """Return uint8 pixels unchanged, and others scaled from black to white.

    Images that are beyond black or white, or use less than a tenth of the range, are scaled from their least to their
    greatest value; the returned line for the caption says so. NaN becomes black.
    """
    depth = depth_of(pixels.dtype)
    assert depth is not None
    if not depth.is_deep:
        return pixels, []
    finite = pixels[np.isfinite(pixels)]
    black, white = 0.0, depth.white
    notes = []
    if finite.size:
        least, greatest = float(finite.min()), float(finite.max())
        is_narrow = greatest - least < _LEAST_USED * white
        if least < greatest and (is_narrow or least < black or greatest > white):
            black, white = least, greatest
            notes = [f"shown from {black:g} to {white:g}"]
    shares = (pixels.astype(np.float64) - black) / (white - black)
    levels = np.rint(255.0 * np.clip(np.nan_to_num(shares, nan=0.0), 0.0, 1.0))
    return levels.astype(np.uint8), notes
