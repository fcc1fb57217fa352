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
Doubles = npt.NDArray[np.float64]


def sharpness(img_HWC: Image, ins: Instruction) -> Image:
    """Blend with Pillow's SMOOTH. The outermost pixels stay unfiltered, and images under 3 pixels on a side do not
    change."""
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
    """Blur with torchvision's weights ``exp(-0.5 (i / sigma)**2)`` for odd kernel sizes, along columns first. Borders
    are mirrored, without the edge pixel. A share ``shade`` of the light is lost.

    The result is at most 1 level off torchvision's for tensors. Weights are multiples of 2**-15, rounded from the
    outside inwards so that each sum of outer weights is the nearest multiple; the center gets the rest. Between the two
    passes a level has 6 fraction bits. Weights that are 0 after rounding cost nothing: a blur of 23 pixels with
    ``sigma`` 0.5 is one of 5. Weights of deep images are real numbers.
    """
    return to_pixels(np.floor(_blurred(img_HWC, ins, ins.args[4]) + 0.5))


def _blurred(img_HWC: Image, ins: Instruction, shade: float) -> Doubles:
    """Columns first; between the passes levels keep LEVEL_BITS fraction bits. Whole levels, unless images are deep."""
    kernel_x, kernel_y = ins.integers(2)
    along_y, along_x = _mirrored(kernel_y, ins.args[3], shade), _mirrored(kernel_x, ins.args[2])
    columns = _rounded(_correlate(img_HWC, along_y[:, None], "reflect"), WEIGHT_BITS + 1 - LEVEL_BITS)
    total, bits = _correlate(columns, along_x[None, :], "reflect"), WEIGHT_BITS + 1 + LEVEL_BITS
    return _rounded(total, bits) if white() == 255 else total / (1 << bits)


def motion_blur(img_HWC: Image, ins: Instruction) -> Image:
    """Blur along a line of odd length ``kernel`` through the center, at ``angle`` degrees counter-clockwise. Weights go
    from ``(1 + direction) / 2`` to ``(1 - direction) / 2`` along it. Edge pixels are repeated.

    The position of each point is rounded to 9 decimals, and its weight is shared bilinearly among four cells. Weights
    are multiples of 2**-14, rounded so that each sum of a cell and all cells before it, row by row, is the nearest.
    FILTER rounds its weights in the same way.
    """
    kernel = motion_kernel(int(ins.args[0]), ins.args[1:2], ins.args[2:3])[0]
    return to_pixels(_rounded(_correlate(img_HWC, kernel, "edge"), WEIGHT_BITS))


def convolve_float(img_HWC: Image, ins: Instruction) -> Image:
    """Add up the results of ``kernels`` kernels, each rounded and clipped to 0..255, and clip the sum. Weights are
    ``tables.filters[first:]``, row by row, not flipped; edge pixels are repeated. A kernel and its negative give an
    absolute value."""
    first, size_x, size_y, count = ins.integers(4)
    weights = ins.side_tables().filters[first : first + size_x * size_y * count]
    total = np.zeros(img_HWC.shape, np.int64)
    for kernel in whole_weights(weights.reshape(count, -1)).reshape(count, size_y, size_x):
        total += to_pixels(_rounded(_correlate(img_HWC, kernel, "edge"), WEIGHT_BITS))
    return to_pixels(total)


def unsharp_mask(img_HWC: Image, ins: Instruction) -> Image:
    """Add ``(x - b) * k + 2**7 >> 8`` to a level x where ``abs(x - b) > threshold``, with the GAUSSIAN_BLUR b of x and
    ``k = floor(2**8 * amount + 0.5)``."""
    away = img_HWC - _blurred(img_HWC, ins, 0.0)
    added = _rounded(away * whole_amount(ins.args[4]), AMOUNT_BITS)
    return to_pixels(img_HWC + np.where(np.abs(away) > ins.args[5] * (white() // 255), added, 0))


def median(img_HWC: Image, ins: Instruction) -> Image:
    """Take the median of the ``kernel`` x ``kernel`` levels around a pixel, per channel, for kernels 3, 5 and 7. Edge
    pixels are repeated: Pillow's ``MedianFilter``, OpenCV's ``medianBlur``."""
    (size,) = ins.integers(1)
    height, width, _ = img_HWC.shape
    padded = np.pad(img_HWC, ((size // 2,) * 2, (size // 2,) * 2, (0, 0)), mode="edge")
    around = [padded[dy : dy + height, dx : dx + width] for dy in range(size) for dx in range(size)]
    middle: Image = np.sort(np.stack(around), axis=0)[size * size // 2]
    return middle


def morphology(img_HWC: Image, ins: Instruction) -> Image:
    """Take the greatest level in an ellipse around a pixel, per channel, or the least if ``dilates`` is 0. Pixels
    beyond the image do not count. Sides are 1 to 31: OpenCV's ``dilate`` and ``erode`` with ``MORPH_ELLIPSE``."""
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
    """Take the mean of the image, twice, and of ``zooms`` copies enlarged about the center by ``1 + step``, ``1 + 2
    step`` and so on, up to 30.

    Copies are read bilinearly, at 16ths of a pixel, clamped to the image. Sums have 8 fraction bits and are divided by
    ``zooms + 2``, rounded half up.
    """
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
    """Read red and blue at ``1 + k1 r**2 + k2 r**4`` times the distance from the center. Gray images do not change.

    Column x moves by ``floor(256 d (k1 + k2 s) s + 0.5)`` 256ths of a pixel, in float32, with ``d = x - (W - 1) / 2``
    and the sum s of the squares of ``d / W`` and its like along y. Results are bilinear, rounded half up.
    """
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
    """Read the pixel that lies ``times`` random steps away (0 to 3), clamped to the image. A step is up to ``distance``
    whole pixels, at most 1,024, along x and along y. The lower half h of random word i is step i along x: ``(h * (2
    distance + 1) >> 16) - distance``; the upper half is the step along y."""
    distance, times, slot = ins.integers(3)
    height, width, _ = img_HWC.shape
    words = noise_words(height, width, slot, ins)[..., :times].astype(np.int64)
    step_x, step_y = (((half * (2 * distance + 1)) >> 16) - distance for half in (words & 0xFFFF, words >> 16))
    x = np.clip(np.arange(width)[None, :] + step_x.sum(axis=2), 0, width - 1)
    y = np.clip(np.arange(height)[:, None] + step_y.sum(axis=2), 0, height - 1)
    return img_HWC[y, x]


def _mirrored(size: int, sigma: float, shade: float = 0.0) -> Doubles:
    """[size], of sum 2**15 less a share."""
    half = half_weights(size, np.array([sigma]), shade)[0]
    return np.concatenate([half[:0:-1], 2 * half[:1], half[1:]])


def _rounded(total: Ints | Doubles, bits: int) -> Doubles:
    """Divided by ``2**bits``, half up."""
    return np.floor(total / (1 << bits) + 0.5)


def _correlate(img_HWC: Image | Doubles, kernel: Doubles, padding: str) -> Doubles:
    height, width, _ = img_HWC.shape
    down, right = (size // 2 for size in kernel.shape)
    padded = np.pad(img_HWC, ((down, down), (right, right), (0, 0)), mode=padding)  # type: ignore[call-overload]
    total = np.zeros(img_HWC.shape)
    for (dy, dx), weight in np.ndenumerate(kernel):
        if weight:
            total += weight * padded[dy : dy + height, dx : dx + width]
    return total


def clahe(img_HWC: Image, ins: Instruction) -> Image:
    """Equalize adaptively with limited contrast: OpenCV's ``createCLAHE(clip_limit, (tiles_x, tiles_y))`` on the luma,
    to the bit. Each channel moves by as much as the luma, and is clipped.

    Tiles have ``H / tiles_y`` by ``W / tiles_x`` pixels if both are whole. Otherwise both sides are one more than the
    integer part, and the image is mirrored below and to the right. In a tile of n pixels, counts above
    ``max(int(clip_limit * n / 256), 1)`` are clipped, and a 256th of the clipped total is added to each count; the rest
    goes to the first of every ``max(256 // rest, 1)``-th. A pixel mixes the results of the four nearest tiles in
    float32, along x and then y.
    """
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
