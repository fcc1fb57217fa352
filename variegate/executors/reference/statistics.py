"""Operations that need a statistic of the image, or of its tiles (as in Pillow 13; CLAHE: OpenCV)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from variegate.executors.reference.instruction import Image, Instruction, to_uint8
from variegate.executors.reference.values import blend, luma


def contrast(img_HWC: Image, ins: Instruction) -> Image:
    gray = luma(img_HWC)
    mean = int(int(gray.sum(dtype=np.int64)) / gray.size + 0.5)
    return blend(mean, img_HWC, ins.args[0])


def autocontrast(img_HWC: Image, _: Instruction) -> Image:
    return _per_channel(img_HWC, _stretching_table)


def equalize(img_HWC: Image, _: Instruction) -> Image:
    return _per_channel(img_HWC, _equalizing_table)


def _per_channel(img_HWC: Image, make_table: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.uint8]]) -> Image:
    out = np.empty_like(img_HWC)
    for c in range(img_HWC.shape[2]):
        histogram = np.bincount(img_HWC[..., c].reshape(-1), minlength=256)
        out[..., c] = make_table(histogram)[img_HWC[..., c]]
    return out


def _stretching_table(histogram: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    used = np.flatnonzero(histogram)
    low, high = int(used[0]), int(used[-1])
    if low == high:
        return np.arange(256, dtype=np.uint8)
    scale = 255.0 / (high - low)
    return to_uint8(np.arange(256) * scale + -low * scale)


def _equalizing_table(histogram: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    used = np.flatnonzero(histogram)
    step = int(histogram.sum() - histogram[used[-1]]) // 255
    if len(used) <= 1 or step == 0:
        return np.arange(256, dtype=np.uint8)
    before = np.cumsum(histogram) - histogram
    return to_uint8((step // 2 + before) // step)


Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def clahe(img_HWC: Image, ins: Instruction) -> Image:
    """Every channel is moved as far as the luma is. Arithmetic in float32, as OpenCV's."""
    tiles_x, tiles_y = (int(number) for number in ins.args[1:3])
    gray = luma(img_HWC)[..., 0]
    height, width = gray.shape
    is_whole = height % tiles_y == 0 and width % tiles_x == 0
    tile_h, tile_w = (n // tiles + (not is_whole) for n, tiles in ((height, tiles_y), (width, tiles_x)))
    # Continued below and to the right, mirrored about the last pixel.
    continued = np.pad(gray, ((0, tile_h * tiles_y - height), (0, tile_w * tiles_x - width)), mode="reflect")
    tiles = continued.reshape(tiles_y, tile_h, tiles_x, tile_w).swapaxes(1, 2).reshape(tiles_y, tiles_x, -1)
    tables = np.array([[_table(tile, float(ins.args[0])) for tile in row] for row in tiles])
    above, below, share_y = _between(height, tile_h, tiles_y)
    left, right, share_x = _between(width, tile_w, tiles_x)
    one = np.float32(1)

    def along(line: Ints) -> Floats:
        """Between the tables of two tiles of the lines ``line`` of tiles."""
        at_left, at_right = tables[line[:, None], left, gray], tables[line[:, None], right, gray]
        mixed: Floats = at_left * (one - share_x) + at_right * share_x
        return mixed

    upper, lower = along(above), along(below)
    equalized = np.rint(upper * (one - share_y)[:, None] + lower * share_y[:, None])
    return to_uint8(img_HWC + (equalized - gray)[..., None])


def _table(levels: Image, clip_limit: float) -> Floats:
    """float32[256]: whole levels."""
    counts = np.bincount(levels, minlength=256)
    limit = max(int(clip_limit * len(levels) / 256), 1)
    batch, rest = divmod(int(np.maximum(counts - limit, 0).sum()), 256)
    counts = np.minimum(counts, limit) + batch
    step = max(256 // max(rest, 1), 1)
    counts[: rest * step : step] += 1
    scale = np.float32(255) / np.float32(len(levels))
    return np.minimum(np.rint(counts.cumsum().astype(np.float32) * scale), 255)


def _between(size: int, tile: int, tiles: int) -> tuple[Ints, Ints, Floats]:
    """For every pixel along a side: the tile before it, the one behind it, by their centres, and the latter's share."""
    at = np.arange(size, dtype=np.float32) * (np.float32(1) / np.float32(tile)) - np.float32(0.5)
    first = np.floor(at)
    return np.maximum(first, 0).astype(np.int64), np.minimum(first + 1, tiles - 1).astype(np.int64), at - first
