"""Operations that depend on where a pixel is: noise, erased rectangles and overlaid layers.

Noise of a pixel is the Philox block ``(y * width + x, slot, id_low, id_high)`` under the stream key, so it depends on
the sample's id and the place alone. Arithmetic in float32 (docs/operations.md, Position).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.oracle.instruction import Image, Instruction, to_pixels, white
from tests.oracle.philox import philox4x32
from variegate.program.coords import STEP_BITS
from variegate.program.ops import LAYER_PLANES, LIGHTNESSES, LayerMode
from variegate.program.rng import FIRST_SEGMENT, MAGNITUDE, SEGMENT_SHIFT, SEGMENTS, SIGN

Floats = npt.NDArray[np.float32]


def noise_words(height: int, width: int, slot: int, ins: Instruction) -> npt.NDArray[np.uint32]:
    """uint32[H, W, 4]: the random words of every pixel."""
    if ins.key is None:
        raise ValueError("per-pixel noise needs the program's stream key, but key=None was given")
    counter = np.empty((height, width, 4), np.uint64)
    counter[..., 0] = np.arange(height * width).reshape(height, width)
    counter[..., 1] = slot
    counter[..., 2] = ins.sample_id & 0xFFFFFFFF
    counter[..., 3] = ins.sample_id >> 32
    return philox4x32(counter, ins.key)


def uniform(words: npt.NDArray[np.uint32]) -> Floats:
    """uint32 -> float32 in [0, 1), exact multiples of 2**-24."""
    return (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def normal(words_HW4: npt.NDArray[np.uint32]) -> Floats:
    """uint32[H, W, 4] -> three standard normal numbers float32[H, W, 3], by the table of program/rng.py."""
    words = words_HW4[..., :3]
    number = (words & np.uint32(MAGNITUDE) | np.uint32(1)).astype(np.int32).astype(np.float32)
    segment = (number.view(np.int32) >> SEGMENT_SHIFT) - FIRST_SEGMENT
    quantile = SEGMENTS[segment, 0] + SEGMENTS[segment, 1] * number
    return np.where(words & np.uint32(SIGN), -quantile, quantile)


def gaussian_noise(img_HWC: Image, ins: Instruction) -> Image:
    """Set ``clip(floor(x + 255 * (mean + sigma * n) + 0.5))``, with a standard normal n per pixel and channel."""
    mean, sigma = np.float32(ins.args[0]), np.float32(ins.args[1])
    return _rounded(img_HWC + np.float32(white()) * (mean + sigma * _normal_like(img_HWC, int(ins.args[2]), ins)))


def shot_noise(img_HWC: Image, ins: Instruction) -> Image:
    """Set ``clip(floor(x + sqrt(x * scale) * n + 0.5))``: the normal approximation of a Poisson distribution of rate
    ``x / scale``, times ``scale``."""
    x = img_HWC.astype(np.float32)
    spread = np.sqrt(x * (np.float32(ins.args[0]) * np.float32(white() / 255)))
    return _rounded(x + spread * _normal_like(img_HWC, int(ins.args[1]), ins))


def salt_and_pepper(img_HWC: Image, ins: Instruction) -> Image:
    """Make a pixel white with probability ``amount * salt`` and black with ``amount * (1 - salt)``, all channels
    together: ``u(w0) < amount``, then ``u(w1) < salt``."""
    amount, salt = np.float32(ins.args[0]), np.float32(ins.args[1])
    height, width, _ = img_HWC.shape
    u = uniform(noise_words(height, width, int(ins.args[2]), ins))
    hit, is_white = u[..., 0] < amount, u[..., 1] < salt
    return to_pixels(np.where(hit[..., None], np.where(is_white, white(), 0)[..., None], img_HWC))


def erase(img_HWC: Image, ins: Instruction) -> Image:
    """Fill the rectangles ``tables.rectangles[first : first + count]`` (top, left, height, width), clipped to the
    image: with ``fill``, or with uniform noise ``w >> 24`` per channel if ``random`` is 1.

    With ``normalized`` 1, emitted after Normalize, the rectangle is written into the float output after everything else
    of its row: the values v0 to v2, or standard normal noise. Nothing else may be emitted after a Normalize.
    ``variegate/ops/erase.py`` says how ``T.OcclusionDiffusion`` grows its cells.
    """
    if ins.args[7]:
        return img_HWC
    height, width, channels = img_HWC.shape
    paint: Image = np.broadcast_to(ins.colour(channels), img_HWC.shape)
    if ins.args[2]:
        words = noise_words(height, width, int(ins.args[3]), ins)
        paint = to_pixels(words[..., :channels].astype(np.int64) * (white() + 1) >> 32)
    return _paste(img_HWC, paint, ins)


def erase_normalized(out_HWC: Floats, ins: Instruction) -> Floats:
    """Rectangles of given values or of standard normal noise, in a float32 output that is normalised already."""
    height, width, channels = out_HWC.shape
    paint: Floats = np.broadcast_to(ins.args[4:7].astype(np.float32)[:channels], out_HWC.shape)
    if ins.args[2]:
        paint = normal(noise_words(height, width, int(ins.args[3]), ins))[..., :channels]
    return _paste(out_HWC, paint, ins)


def _paste(img_HWC: npt.NDArray, paint_HWC: npt.NDArray, ins: Instruction) -> npt.NDArray:  # type: ignore[type-arg]
    first, count = ins.integers(2)
    out = img_HWC.copy()
    for top, left, height, width in ins.side_tables().rectangles[first : first + count].tolist():
        rows, columns = slice(max(top, 0), max(top + height, 0)), slice(max(left, 0), max(left + width, 0))
        out[rows, columns] = paint_HWC[rows, columns]
    return out


def overlay(img_HWC: Image, ins: Instruction) -> Image:
    """Blend a layer of nodes with the image from (top, left) on: fog, rain, shadows, stickers. ``flags`` is a mode plus
    8 times the number of planes.

    Nodes are bytes, ``tables.grids`` from ``first`` on, [planes, lines, columns]: one plane is the alpha of ``fill``,
    three are that of each channel, two are alpha and gray, four are alpha, red, green and blue. Node (0, 0) is at the
    center of pixel (top, left), and each pixel advances by ``step / 2**26`` nodes. Values between nodes are bilinear
    with 7 fraction bits, and weights with 15. Level x becomes ``clip(x + q w)`` with the weight w, alpha times
    ``strength``. In mode 0 (over) q is color - x, in mode 1 (scale) x, and in mode 2 (add) the color. Mode 3 (curve)
    has no nodes, but two numbers for each of 511 sums m of a pixel's least and greatest level: the new lightness a,
    times 64, and a factor b. x becomes ``clip((64 a + b (2 x - m) + 2**11) >> 12)``.
    """
    first, lines, columns, step_y, step_x, top, left = ins.integers(7)
    planes, mode = divmod(ins.flags, LAYER_PLANES)
    table, out = ins.side_tables().grids[first:], img_HWC.copy()
    if mode == LayerMode.CURVE:
        return _bent(img_HWC, table[: 2 * LIGHTNESSES].reshape(LIGHTNESSES, 2).astype(np.int32))
    nodes = table.view(np.uint8)[: planes * lines * columns].reshape(planes, lines, columns).astype(np.int32) << 7
    y, upper, down = _cells(img_HWC.shape[0], top, step_y, lines)
    x, before, across = _cells(img_HWC.shape[1], left, step_x, columns)
    along = nodes[:, :, before] + _scaled(nodes[:, :, before + 1] - nodes[:, :, before], across)
    values = along[:, upper] + _scaled(along[:, upper + 1] - along[:, upper], down[:, None])
    for c in range(img_HWC.shape[2]):
        level = out[y, x, c].astype(np.int32)
        colour = np.int32(ins.fill[c])
        if planes in (2, 4):
            colour = values[1 + (c if planes == 4 else 0)] + 64 >> 7
        weight = _scaled(values[c if planes == 3 else 0], np.int32(np.floor(ins.args[7] * 32767 + 0.5)))
        towards: Any = {LayerMode.OVER: colour - level, LayerMode.SCALE: level, LayerMode.ADD: colour}[LayerMode(mode)]
        out[y, x, c] = np.clip(level + _scaled(towards, weight + (weight >> 8)), 0, 255)
    return out


def _cells(side: int, start: int, step: int, nodes: int) -> tuple[slice, npt.NDArray, npt.NDArray]:  # type: ignore[type-arg]
    """Pixels between the nodes of an axis: which, the node before each, and its share of the way to the next one."""
    at = (np.arange(side, dtype=np.int64) - start) * step
    covered = np.flatnonzero((at >= 0) & (at < (nodes - 1 << STEP_BITS)))
    at = at[covered]
    pixels = slice(covered[0], covered[-1] + 1) if len(covered) else slice(0)
    return pixels, at >> STEP_BITS, (at >> STEP_BITS - 15 & 32767).astype(np.int32)


def _scaled(value: Any, share: Any) -> Any:
    """Times a number with 15 fraction bits, rounded half up."""
    return value * share + (1 << 14) >> 15


def _bent(img_HWC: Image, curve: npt.NDArray[np.int32]) -> Image:
    """Lightness by a curve: of each, the new one in 64ths of a level, and the factor of distances from it, in
    2**-11."""
    level = img_HWC.astype(np.int32)
    lightness = (level.min(axis=2) + level.max(axis=2))[..., None]
    new, factor = curve[lightness, 0], curve[lightness, 1]
    return to_pixels((new << 6) + factor * (2 * level - lightness) + (1 << 11) >> 12)


def _normal_like(img_HWC: Image, slot: int, ins: Instruction) -> Floats:
    height, width, channels = img_HWC.shape
    return normal(noise_words(height, width, slot, ins))[..., :channels]


def _rounded(values: Floats) -> Image:
    return to_pixels(np.floor(values + np.float32(0.5)))
