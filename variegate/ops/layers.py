"""Layers that are laid over images by Op.OVERLAY: how they are stored, and compiled brushes that draw them.

A layer has nodes of its own, bilinear in between, so that its cost is its detail's and not the image's. Brushes add,
multiply, divide and take roots alone, which all processors round alike. They take places and sizes in nodes, float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, as_numbers, refused
from variegate.ops.arguments import PROBABILITY, Colour, checks
from variegate.ops.fields import Lattice, lattice
from variegate.ops.magnitude import MagnitudeOp, between, integers_between, span
from variegate.program.compiled import inner_kernel, kernel
from variegate.program.ops import LAYER_PLANES, LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT, LayerMode, Op
from variegate.program.rng import philox_block, to_unit
from variegate.program.sampling import Floats, Rows, Sampling

# Along the longer side, at most: what is drawn in pixels grows with images that are larger.
MAX_NODES = 512
WHITE: Colour = (255, 255, 255)
# Shadows, spots or reflections in one image.
MAX_SHAPES = 64
UNIT = span(0.0, 1.0)

Region = Sequence[float]

Layers = npt.NDArray[np.uint8]  # [R, planes, lines, columns]


def canvas(size: tuple[int, int], most: int = MAX_NODES, apart: float = 1.0) -> tuple[Lattice, float]:
    """Nodes for an image of a height and width, ``apart`` pixels or ``most`` along its longer side; and those per
    pixel."""
    apart = max(apart, (max(size) - 1) / most)
    over = lattice(size, apart)
    # An even number, which tables of 16 bits take as they are.
    return replace(over, columns=over.columns + over.columns % 2), 1.0 / apart


def blank(count: int, planes: int, over: Lattice) -> Layers:
    return np.zeros((count, planes, over.lines, over.columns), np.uint8)


def units(sampling: Sampling, rows: Rows, slot: int, count: int) -> Floats:
    """Numbers in [0, 1), float64[4, R, count], of the noise of ``slot``: for more than slots hold."""
    words = np.empty((len(rows), count, 4), np.uint32)
    _draw_words(*sampling.streams(rows), slot, words)
    return np.moveaxis(to_unit(words), -1, 0)


@kernel
def _draw_words(ids: Any, keys: Any, slot: Any, words: Any) -> None:
    for n in range(len(words)):
        low, high = np.uint32(ids[n] & np.uint64(0xFFFFFFFF)), np.uint32(ids[n] >> np.uint64(32))
        for i in range(words.shape[1]):
            w0, w1, w2, w3 = philox_block(np.uint32(i), np.uint32(slot), low, high, keys[n, 0], keys[n, 1])
            words[n, i, 0], words[n, i, 1], words[n, i, 2], words[n, i, 3] = w0, w1, w2, w3


def joined(*values: Floats) -> npt.NDArray[np.float32]:
    """What brushes take of each shape, side by side."""
    return np.stack(np.broadcast_arrays(*values), axis=-1).astype(np.float32)


def emit_layers(
    sampling: Sampling,
    rows: Rows,
    over: Lattice,
    layers: Layers,
    strength: npt.ArrayLike,
    name: str,
    mode: LayerMode = LayerMode.OVER,
    colour: Colour = WHITE,
    place: npt.ArrayLike = (0, 0),
) -> None:
    """Lay ``layers``, one for each of ``rows`` or one for all, over the images, from ``place`` on (top, left).

    Planes are: alpha of ``colour``; alpha and gray; alpha of ``colour`` for each channel; or alpha, red, green and
    blue. Gray images get the luma of colors.
    """
    gray = sampling.channels[rows] == 1
    args = (over.lines, over.columns, over.step_y, over.step_x, *np.moveaxis(np.asarray(place), -1, 0), strength)
    for is_gray in (False, True):
        of = np.flatnonzero(gray == is_gray)
        if not len(of):
            continue
        own = layers if len(layers) == 1 or len(of) == len(rows) else layers[of]
        own = _without_colour(own) if is_gray and layers.shape[1] > 2 else own
        nodes = np.ascontiguousarray(own).reshape(len(own), -1)
        if nodes.shape[1] % 2:
            nodes = np.pad(nodes, ((0, 0), (0, 1)))
        first = sampling.add_grids(nodes.view(np.int16)) + np.arange(len(nodes)) * (nodes.shape[1] // 2)
        fill = (int(luma(*colour)),) * 3 if is_gray else colour
        flags = int(mode) + LAYER_PLANES * own.shape[1]
        own_args = (np.asarray(v)[of] if np.ndim(v) else v for v in args)
        sampling.emit(rows[of], Op.OVERLAY, first, *own_args, flags=flags, fill=fill, name=name)


def luma(red: Any, green: Any, blue: Any) -> Any:
    return LUMA_RED * red + LUMA_GREEN * green + LUMA_BLUE * blue + LUMA_HALF >> LUMA_SHIFT


def _without_colour(layers: Layers) -> Layers:
    """Of three planes or four, those of a gray image."""
    gray = luma(*np.moveaxis(layers[:, -3:].astype(np.int32), 1, 0)).astype(np.uint8)[:, None]
    return np.concatenate([layers[:, :1], gray], axis=1) if layers.shape[1] == 4 else gray


_ZERO, _HALF, _ONE, _MOST = (np.float32(value) for value in (0.0, 0.5, 1.0, 255.0))


@inner_kernel()
def _cover(layer: Any, y: Any, x: Any, alpha: Any) -> None:
    """Add an alpha from 0 to 1 to what is there."""
    before = np.float32(layer[y, x])
    layer[y, x] = np.uint8(before + (_MOST - before) * alpha + _HALF)


@inner_kernel()
def _within(value: Any, low: Any, high: Any) -> Any:
    return min(max(value, np.float32(low)), np.float32(high))


@inner_kernel()
def _near(middle: Any, reach: Any, size: Any) -> Any:
    """First and end of the nodes within ``reach`` of a place, of ``size``."""
    return max(0, int(np.ceil(middle - reach))), min(size, int(middle + reach) + 1)


@inner_kernel()
def _away(node: Any, place: Any) -> Any:
    return np.float32(np.int32(node)) - place


@kernel
def draw_puffs(puffs: Any, haze: Any, layers: Any) -> None:
    """Haze, ``haze[n]`` at the top and a fifth of it at the bottom, and soft discs ``puffs[n, p]``: x, y, radius, and
    alpha in the middle."""
    lines, columns = layers.shape[2], layers.shape[3]
    clear = np.empty((lines, columns), np.float32)
    for n in range(len(layers)):
        for i in range(lines):
            clear[i] = _ONE - haze[n] * (_ONE - np.float32(0.8) * np.float32(i) / np.float32(lines))
        for p in range(puffs.shape[1]):
            x, y, radius, alpha = puffs[n, p]
            part = _ONE / (radius * radius)
            first, end = _near(x, radius, columns)
            top, bottom = _near(y, radius, lines)
            for i in range(top, bottom):
                down, row = _away(i, y), clear[i, first:end]
                for j in range(len(row)):
                    across = _away(first + j, x)
                    near = max(_ONE - (across * across + down * down) * part, _ZERO)
                    row[j] *= _ONE - alpha * near * near
        for i in range(lines):
            for j in range(columns):
                layers[n, 0, i, j] = np.uint8(np.float32(255.5) - _MOST * clear[i, j])


@kernel
def draw_streaks(streaks: Any, slopes: Any, width: Any, blur: Any, layers: Any) -> None:
    """Lines ``streaks[n, p]`` (x, y, half the height, alpha), as a box of ``blur`` nodes leaves them; ``slopes``: nodes
    along x per node along y."""
    lines, columns = layers.shape[2], layers.shape[3]
    wide, most, part = _HALF * (width + blur), min(width, blur), _ONE / (blur * blur)
    for n in range(len(layers)):
        for p in range(streaks.shape[1]):
            x, y, tall, alpha = streaks[n, p]
            top, bottom = _near(y, tall, lines)
            for i in range(top, bottom):
                down = _away(i, y)
                share, at = alpha * min(tall - abs(down), blur) * part, x + slopes[n] * down
                first, end = _near(at, wide, columns)
                for j in range(first, end):
                    _cover(layers[n, 0], i, j, share * min(wide - abs(_away(j, at)), most))


@kernel
def draw_stones(unit: Any, patches: Any, counts: Any, scale: Any, layers: Any) -> None:
    """Stones, ``counts[n, p]`` in the rectangle ``patches[n, p]`` (top, left, height, width), each by the next four of
    ``unit[n]``: alpha, and gray that is lighter at the upper left."""
    lines, columns = layers.shape[2], layers.shape[3]
    for n in range(len(layers)):
        alpha, gray, drawn = layers[n, 0], layers[n, 1], 0
        for p in range(patches.shape[1]):
            for _ in range(counts[n, p]):
                v, h, u, w = unit[n, drawn]
                drawn += 1
                y, x = patches[n, p, 0] + v * patches[n, p, 2], patches[n, p, 1] + h * patches[n, p, 3]
                radius, level = scale * (_ONE + np.float32(2.0) * u * u), np.float32(60.0) + np.float32(110.0) * w
                # Flattened, as stones lie.
                flat = _ONE - np.float32(0.4) * (np.float32(256.0) * u % _ONE)
                along, shade = _ONE / (radius * radius), np.float32(0.3) * level / (radius + _HALF)
                upright = along / (flat * flat)
                first, end = _near(x, radius + _HALF, columns)
                top, bottom = _near(y, radius * flat + _HALF, lines)
                for i in range(top, bottom):
                    down = _away(i, y)
                    for j in range(first, end):
                        across = _away(j, x)
                        away = np.sqrt(across * across * along + down * down * upright)
                        cover = _within((_ONE - away) * radius + _HALF, 0.0, 1.0)
                        if cover > 0:
                            lit = _within(level - shade * (across + down), 0.0, 255.0)
                            before = np.float32(gray[i, j])
                            gray[i, j] = np.uint8(lit if alpha[i, j] == 0 else before + (lit - before) * cover)
                            _cover(alpha, i, j, cover)


@kernel
def draw_polygons(corners: Any, counts: Any, alphas: Any, layers: Any) -> None:
    """Polygons ``corners[n, p, V, 2]`` (x, y), the first ``counts[n]``, of alpha ``alphas[n, p]``; none of their sides
    cross. They are four times finer along y than nodes, and exact along x."""
    lines, columns, sides = layers.shape[2], layers.shape[3], corners.shape[2]
    # By how much more of a node is within than of the one to its left.
    more = np.zeros((lines, columns + 2), np.float32)
    for n in range(len(layers)):
        for p in range(counts[n]):
            top, bottom = 4 * lines, 0
            for s in range(sides):
                a, b, sign = corners[n, p, s], corners[n, p, (s + 1) % sides], np.float32(0.25)
                if a[1] > b[1]:
                    a, b, sign = b, a, -sign
                first, end = max(int(np.ceil(4 * a[1] + 1.5)), 0), min(int(np.ceil(4 * b[1] + 1.5)), 4 * lines)
                top, bottom = min(top, first), max(bottom, end)
                for k in range(first, end):
                    down = (_away(k, np.float32(1.5)) * np.float32(0.25) - a[1]) / (b[1] - a[1])
                    x = _within(a[0] + (b[0] - a[0]) * down + _HALF, 0.0, columns)
                    part = _away(int(x), x) * sign
                    more[k // 4, int(x)] += sign + part
                    more[k // 4, int(x) + 1] -= part
            for i in range(top // 4, (bottom + 3) // 4):
                within = _ZERO
                for j in range(columns):
                    within += more[i, j]
                    _cover(layers[n, 0], i, j, alphas[n, p] * min(abs(within), _ONE))
                more[i] = _ZERO


@kernel
def draw_drops(field: Any, limits: Any, slope: Any, colour: Any, relief: Any, layers: Any) -> None:
    """Where ``field[n]`` is above ``limits[n]``: alpha, which rises by ``slope`` per unit, and ``colour``, lit from the
    upper left by ``relief`` per unit."""
    lines, columns = layers.shape[2], layers.shape[3]
    for n in range(len(layers)):
        for i in range(lines):
            row, above, below = field[n, i], field[n, max(i - 1, 0)], field[n, min(i + 1, lines - 1)]
            for j in range(columns):
                alpha = _within(slope * (np.float32(row[j]) - limits[n]), 0.0, 1.0)
                layers[n, 0, i, j] = np.uint8(_MOST * alpha + _HALF)
            for j in range(columns):
                # Bright where the surface of a drop rises towards the lower right.
                rise = np.int32(below[min(j + 1, columns - 1)]) - np.int32(above[max(j - 1, 0)])
                light = _ONE + relief * np.float32(rise)
                for c in range(3):
                    layers[n, 1 + c, i, j] = np.uint8(_within(colour[c] * light + _HALF, 0.0, 255.0))


@kernel
def draw_flare(suns: Any, rings: Any, counts: Any, rays: Any, colour: Any, spread: Any, layers: Any) -> None:
    """Light of suns (x, y, radius of the glow, and the normals of ``rays`` rays), and of the first ``counts[n]`` of
    ``rings[n, p]`` (x, y, radius, alpha, red, green, blue), for each channel ``spread[c]`` times as large."""
    lines, columns, one, zero = layers.shape[2], layers.shape[3], np.float32(1.0), np.float32(0.0)
    clear = np.empty((lines, columns), np.float32)
    for n in range(len(layers)):
        x0, y0, glow = suns[n, 0], suns[n, 1], suns[n, 2]
        for c in range(3):
            far, thin = 1 / (glow * spread[c]), np.float32(0.012) * glow
            for i in range(lines):
                for j in range(columns):
                    dx, dy = j - x0, i - y0
                    away = np.sqrt(dx * dx + dy * dy)
                    near = max(one - away * far, zero)
                    light = near * near * near if rays else near * near
                    for k in range(rays):
                        across = abs(dx * suns[n, 3 + 2 * k] + dy * suns[n, 4 + 2 * k])
                        light += np.float32(0.3) * near * near * thin / (thin + across)
                    clear[i, j] = one - min(light, one) * colour[c]
            for p in range(counts[n]):
                x, y, radius = rings[n, p, 0], rings[n, p, 1], rings[n, p, 2] * spread[c]
                reach = np.float32(1.1) * radius + one
                for i in range(max(0, int(np.ceil(y - reach))), min(lines, int(y + reach) + 1)):
                    for j in range(max(0, int(np.ceil(x - reach))), min(columns, int(x + reach) + 1)):
                        away = np.sqrt((j - x) * (j - x) + (i - y) * (i - y)) / radius
                        # A disc that is brighter towards its rim.
                        inside = _within((np.float32(1.05) - away) * radius, zero, one)
                        light = rings[n, p, 3] * inside * (np.float32(0.55) + np.float32(0.45) * away * away)
                        clear[i, j] *= one - min(light, one) * rings[n, p, 4 + c]
            for i in range(lines):
                for j in range(columns):
                    layers[n, c, i, j] = np.uint8(np.float32(255.5) - np.float32(255.0) * clear[i, j])


def gradient(over: Lattice, size: tuple[int, int]) -> tuple[Floats, Floats]:
    """Of the nodes, x and y in shares of the image's width and height: [columns], [lines, 1]."""
    along, down = over.places()
    return along / max(size[1] - 1, 1), (down / max(size[0] - 1, 1))[:, None]


def check_region(name: str, value: Any, *, error: Refusal = refused) -> tuple[float, ...]:
    ends = as_numbers(value) or ()
    if len(ends) != 4 or not (0 <= ends[0] < ends[2] <= 1 and 0 <= ends[1] < ends[3] <= 1):
        raise error(name, value, "shares (x_min, y_min, x_max, y_max) of the sides, 0 <= min < max <= 1")
    return ends


def pixels_of(region: Region, size: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Top and left, and height and width, of a region of an image of a height and width."""
    left, top, right, bottom = (int(share * size[i]) for share, i in zip(region, (1, 0, 1, 0), strict=True))
    return (top, left), (max(bottom - top, 1), max(right - left, 1))


class Overlaid(MagnitudeOp, abstract=True):
    """With probability ``p``, lay a drawn layer over the image; masks, boxes and points do not change."""

    p: float
    num_slots = 3
    _checks = checks(p=PROBABILITY)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        chosen = unit[:, 0] < self.p
        value = getattr(self, self._number)
        values = (integers_between if self._integral else between)(value, unit[chosen, 1])
        if chosen.any():
            self.emit_magnitude(sampling, rows[chosen], np.broadcast_to(values, chosen.sum()), slot)
