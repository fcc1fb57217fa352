"""Operations that look at neighbours: sharpness, blurs, medians, CLAHE, erosion, zooms, fringes of color, glass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.oracle.blurs import (
    AMOUNT_BITS,
    LEVEL_BITS,
    WEIGHT_BITS,
    half_weights,
    motion_kernel,
    whole_amount,
    whole_weights,
)
from tests.oracle.instruction import Image, Instruction, to_pixels, white
from tests.oracle.position import noise_words
from tests.oracle.values import blend, luma

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def sharpness(img_HWC: Image, ins: Instruction) -> Image:
    return blend(smooth(img_HWC), img_HWC, ins.args[0])


def smooth(img_HWC: Image) -> Image:
    """Pillow's ``ImageFilter.SMOOTH``: weights 1 around 5 over 13, the outermost pixels unfiltered."""
    height, width, _ = img_HWC.shape
    if height < 3 or width < 3:
        return img_HWC
    x = img_HWC.astype(np.int64)
    total = 4 * x[1:-1, 1:-1]
    for dy in range(3):
        for dx in range(3):
            total = total + x[dy : dy + height - 2, dx : dx + width - 2]
    out = img_HWC.copy()
    # The nearest integer of total / 13, which is never a tie; Pillow gets the same in float32.
    out[1:-1, 1:-1] = (2 * total + 13) // 26
    return out


def gaussian_blur(img_HWC: Image, ins: Instruction) -> Image:
    return _blurred(img_HWC, ins, ins.args[4])


def _blurred(img_HWC: Image, ins: Instruction, shade: float) -> Image:
    """Columns first; between the passes levels keep LEVEL_BITS fraction bits."""
    kernel_x, kernel_y = ins.integers(2)
    along_y, along_x = _mirrored(kernel_y, ins.args[3], shade), _mirrored(kernel_x, ins.args[2])
    columns = _rounded(_correlate(img_HWC.astype(np.int64), along_y[:, None], "reflect"), WEIGHT_BITS + 1 - LEVEL_BITS)
    whole = _rounded(_correlate(columns, along_x[None, :], "reflect"), WEIGHT_BITS + 1 + LEVEL_BITS)
    return to_pixels(whole)


def motion_blur(img_HWC: Image, ins: Instruction) -> Image:
    kernel = motion_kernel(int(ins.args[0]), ins.args[1:2], ins.args[2:3])[0]
    return to_pixels(_rounded(_correlate(img_HWC.astype(np.int64), kernel, "edge"), WEIGHT_BITS))


def filter(img_HWC: Image, ins: Instruction) -> Image:
    """Sum of the image filtered by several kernels, each result clipped to levels."""
    first, size_x, size_y, count = ins.integers(4)
    weights = ins.side_tables().filters[first : first + size_x * size_y * count]
    total = np.zeros(img_HWC.shape, np.int64)
    for kernel in whole_weights(weights.reshape(count, -1)).reshape(count, size_y, size_x):
        total += to_pixels(_rounded(_correlate(img_HWC.astype(np.int64), kernel, "edge"), WEIGHT_BITS))
    return to_pixels(total)


def unsharp_mask(img_HWC: Image, ins: Instruction) -> Image:
    """Add the difference to the blurred image, times the amount, where it is more than the threshold."""
    away = img_HWC.astype(np.int64) - _blurred(img_HWC, ins, 0.0)
    added = _rounded(away * whole_amount(ins.args[4]), AMOUNT_BITS)
    return to_pixels(img_HWC + np.where(np.abs(away) > ins.args[5] * (white() // 255), added, 0))


def median(img_HWC: Image, ins: Instruction) -> Image:
    """The middle one of the levels in a square window."""
    (size,) = ins.integers(1)
    height, width, _ = img_HWC.shape
    padded = np.pad(img_HWC, ((size // 2,) * 2, (size // 2,) * 2, (0, 0)), mode="edge")
    around = [padded[dy : dy + height, dx : dx + width] for dy in range(size) for dx in range(size)]
    middle: Image = np.sort(np.stack(around), axis=0)[size * size // 2]
    return middle


def morphology(img_HWC: Image, ins: Instruction) -> Image:
    """The greatest or the least level in OpenCV's ellipse around a pixel, of those within the image."""
    columns, lines = ins.integers(2)
    height, width, _ = img_HWC.shape
    x, y = columns // 2, lines // 2
    values = img_HWC if ins.args[2] else white() - img_HWC
    padded = np.pad(values, ((y, y), (x, x), (0, 0)))
    out = np.zeros_like(img_HWC)
    for line in range(lines):
        half = int(np.rint(x * np.sqrt((y * y - (line - y) ** 2) / (y * y)))) if y else 0
        for column in range(max(x - half, 0), min(x + half + 1, columns)):
            out = np.maximum(out, padded[line : line + height, column : column + width])
    return out if ins.args[2] else to_pixels(white() - out)


def zoom_blur(img_HWC: Image, ins: Instruction) -> Image:
    """The mean of the image, twice, and of its zooms about the center by 1 + step, 1 + 2 step and so on."""
    zooms, count = int(ins.args[0]), int(ins.args[0]) + 2
    total = 2 * img_HWC.astype(np.int64) << 8
    for zoom in range(1, zooms + 1):
        nearer = int(np.floor(32768.0 / (1.0 + zoom * ins.args[1]) + 0.5))
        along_y, along_x = (
            ((2 * np.arange(side) - (side - 1)) * nearer + (side - 1) * 32768 + 2048) >> 12
            for side in img_HWC.shape[:2]
        )
        total += _between_pixels(img_HWC, along_x[None, :], along_y[:, None], 4)
    mean: Ints = ((total + count * 128) >> 8) // count
    return to_pixels(mean)


def aberration(img_HWC: Image, ins: Instruction) -> Image:
    """Red and blue from (k1 + k2 r^2) r^2 times as far beyond a pixel as the center is away; float32."""
    height, width, channels = img_HWC.shape
    one, half, limit = np.float32(1), np.float32(0.5), np.float32(1 << 23)
    x, y = (np.float32(0.5) * (2 * np.arange(side) - (side - 1)).astype(np.float32) for side in (width, height))
    squared = ((x * (one / np.float32(width))) ** 2)[None, :] + ((y * (one / np.float32(height))) ** 2)[:, None]
    out = img_HWC.copy()
    for channel, args in ((0, ins.args[:2]), (2, ins.args[2:4])) if channels == 3 else ():
        first, second = args.astype(np.float32)
        bend = (first + second * squared) * squared
        moved_x, moved_y = (
            np.floor(np.clip(away * bend * np.float32(256) + half, -limit, limit)).astype(np.int64)
            for away in (x[None, :], y[:, None])
        )
        along_x, along_y = 256 * np.arange(width)[None, :] + moved_x, 256 * np.arange(height)[:, None] + moved_y
        places = np.clip(along_x, 0, 256 * (width - 1)), np.clip(along_y, 0, 256 * (height - 1))
        level = _between_pixels(img_HWC[..., channel : channel + 1], *places, 8)
        out[..., channel] = _rounded(level, 16)[..., 0]
    return out


def _between_pixels(img_HWC: Image, x: Ints, y: Ints, bits: int) -> Ints:
    """Bilinear levels, times 2**(2 bits), at places within the image, in units of 2**-bits pixels."""
    height, width, _ = img_HWC.shape
    one, levels, left, top = 1 << bits, img_HWC.astype(np.int64), x >> bits, y >> bits
    right, bottom = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    dx, dy = (x & (one - 1))[..., None], (y & (one - 1))[..., None]
    upper = (one - dx) * levels[top, left] + dx * levels[top, right]
    lower = (one - dx) * levels[bottom, left] + dx * levels[bottom, right]
    return (one - dy) * upper + dy * lower


def scatter(img_HWC: Image, ins: Instruction) -> Image:
    """Each pixel from a place up to ``times`` random steps of at most ``distance`` pixels away, by its noise."""
    distance, times, slot = ins.integers(3)
    height, width, _ = img_HWC.shape
    words = noise_words(height, width, slot, ins)[..., :times].astype(np.int64)
    step_x, step_y = (((half * (2 * distance + 1)) >> 16) - distance for half in (words & 0xFFFF, words >> 16))
    x = np.clip(np.arange(width)[None, :] + step_x.sum(axis=2), 0, width - 1)
    y = np.clip(np.arange(height)[:, None] + step_y.sum(axis=2), 0, height - 1)
    return img_HWC[y, x]


def _mirrored(size: int, sigma: float, shade: float = 0.0) -> Ints:
    """int64[size], of sum 2**15 less a share."""
    half = half_weights(size, np.array([sigma]), shade)[0]
    return np.concatenate([half[:0:-1], 2 * half[:1], half[1:]])


def _rounded(total: Ints, bits: int) -> Ints:
    """Divided by ``2**bits``, half up."""
    return (total + (1 << (bits - 1))) >> bits


def _correlate(img_HWC: Ints, kernel: Ints, padding: str) -> Ints:
    height, width, _ = img_HWC.shape
    down, right = (size // 2 for size in kernel.shape)
    padded = np.pad(img_HWC, ((down, down), (right, right), (0, 0)), mode=padding)  # type: ignore[call-overload]
    total = np.zeros_like(img_HWC)
    for (dy, dx), weight in np.ndenumerate(kernel):
        if weight:
            total += weight * padded[dy : dy + height, dx : dx + width]
    return total


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
    return to_pixels(img_HWC + (equalized - gray)[..., None])


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
