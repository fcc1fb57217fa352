"""Layers that are laid over images by Op.OVERLAY: how they are stored, and compiled brushes that draw them.

A layer has nodes of its own, bilinear in between, so that its cost is its detail's and not the image's. Brushes draw
from the noise of a slot; they add, multiply, divide and take roots alone, which all processors round alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, as_numbers, refused
from variegate.ops.arguments import PROBABILITY, Colour, checks
from variegate.ops.fields import Lattice, lattice
from variegate.ops.magnitude import MagnitudeOp, between, integers_between, span
from variegate.program.compiled import inner_kernel, kernel
from variegate.program.ops import LAYER_PLANES, LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT, LayerMode, Op
from variegate.program.rng import philox_block
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
    return lattice(size, apart), 1.0 / apart


def blank(count: int, planes: int, over: Lattice) -> Layers:
    return np.zeros((count, planes, over.lines, over.columns), np.uint8)


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
    top, left = np.moveaxis(np.asarray(place), -1, 0)
    shared = (over.lines, over.columns, over.step_y, over.step_x, top, left, strength)
    args = [np.broadcast_to(value, len(rows)) for value in shared]
    for is_gray in (False, True):
        of = gray == is_gray
        if not of.any():
            continue
        own = layers if len(layers) == 1 or of.all() else layers[of]
        own = _without_colour(own) if is_gray and layers.shape[1] > 2 else own
        nodes = np.ascontiguousarray(own).reshape(len(own), -1)
        if nodes.shape[1] % 2:
            nodes = np.pad(nodes, ((0, 0), (0, 1)))
        first = sampling.add_grids(nodes.view(np.int16)) + np.arange(len(nodes)) * (nodes.shape[1] // 2)
        fill = (int(luma(*colour)),) * 3 if is_gray else colour
        flags = int(mode) + LAYER_PLANES * own.shape[1]
        sampling.emit(rows[of], Op.OVERLAY, first, *(v[of] for v in args), flags=flags, fill=fill, name=name)


def luma(red: Any, green: Any, blue: Any) -> Any:
    return LUMA_RED * red + LUMA_GREEN * green + LUMA_BLUE * blue + LUMA_HALF >> LUMA_SHIFT


def _without_colour(layers: Layers) -> Layers:
    """Of three planes or four, those of a gray image."""
    gray = luma(*np.moveaxis(layers[:, -3:].astype(np.int32), 1, 0)).astype(np.uint8)[:, None]
    return np.concatenate([layers[:, :1], gray], axis=1) if layers.shape[1] == 4 else gray


@inner_kernel()
def _unit(word: Any) -> Any:
    """24 bits of it as a float32 in [0, 1)."""
    return np.float32(np.int64(word) >> 8) * np.float32(2.0**-24)


@inner_kernel()
def _cover(layer: Any, y: Any, x: Any, alpha: Any) -> None:
    """Add an alpha from 0 to 1 to what is there."""
    before = np.float32(layer[y, x])
    layer[y, x] = np.uint8(before + (np.float32(255.0) - before) * alpha + np.float32(0.5))


@inner_kernel()
def _within(value: Any, low: Any, high: Any) -> Any:
    return min(max(value, np.float32(low)), np.float32(high))


@inner_kernel()
def _dab(layer: Any, x: Any, y: Any, radius: Any, soft: Any, alpha: Any) -> None:
    """A disc whose edge fades out over ``soft`` nodes."""
    reach = radius + soft * np.float32(0.5)
    for i in range(max(0, int(np.ceil(y - reach))), min(layer.shape[0], int(y + reach) + 1)):
        for j in range(max(0, int(np.ceil(x - reach))), min(layer.shape[1], int(x + reach) + 1)):
            away = np.sqrt((i - y) * (i - y) + (j - x) * (j - x))
            _cover(layer, i, j, alpha * _within((reach - away) / soft, 0.0, 1.0))


@kernel
def draw_fog(ids: Any, keys: Any, slot: Any, puffs: Any, alphas: Any, layers: Any) -> None:
    """Soft discs, denser towards the centre, each of alpha ``alphas[n]`` in its middle."""
    lines, columns = layers.shape[2], layers.shape[3]
    clear, shorter = np.empty((lines, columns), np.float32), np.float32(min(lines, columns))
    for n in range(len(layers)):
        low, high = np.uint32(ids[n] & np.uint64(0xFFFFFFFF)), np.uint32(ids[n] >> np.uint64(32))
        clear[:] = np.float32(1.0)
        for p in range(puffs):
            w0, w1, w2, w3 = philox_block(np.uint32(p), np.uint32(slot), low, high, keys[n, 0], keys[n, 1])
            # Means of two uniform numbers, stretched.
            x = (np.float32((w0 & 0xFFFF) + (w0 >> 16)) * np.float32(1.5 * 2.0**-17) - np.float32(0.25)) * columns
            y = (np.float32((w1 & 0xFFFF) + (w1 >> 16)) * np.float32(1.5 * 2.0**-17) - np.float32(0.25)) * lines
            u = _unit(w2)
            radius = shorter * (np.float32(0.08) + np.float32(0.42) * u * u)
            alpha, part = alphas[n] * (np.float32(0.4) + np.float32(0.6) * _unit(w3)), 1 / (radius * radius)
            for i in range(max(0, int(np.ceil(y - radius))), min(lines, int(y + radius) + 1)):
                for j in range(max(0, int(np.ceil(x - radius))), min(columns, int(x + radius) + 1)):
                    near = max(np.float32(1.0) - ((i - y) * (i - y) + (j - x) * (j - x)) * part, np.float32(0.0))
                    clear[i, j] *= np.float32(1.0) - alpha * near * near
        for i in range(lines):
            for j in range(columns):
                layers[n, 0, i, j] = np.uint8(np.float32(255.5) - np.float32(255.0) * clear[i, j])


@kernel
def draw_streaks(
    ids: Any, keys: Any, slot: Any, count: Any, slopes: Any, length: Any, width: Any, blur: Any, layers: Any
) -> None:
    """Lines of about one length, as a box of ``blur`` nodes leaves them; ``slopes``: nodes along x per node along y."""
    lines, columns = layers.shape[2], layers.shape[3]
    wide, most = np.float32(0.5) * (width + blur), min(width, blur)
    for n in range(len(layers)):
        low, high = np.uint32(ids[n] & np.uint64(0xFFFFFFFF)), np.uint32(ids[n] >> np.uint64(32))
        layer, slope = layers[n, 0], slopes[n]
        for d in range(count):
            w0, w1, w2, w3 = philox_block(np.uint32(d), np.uint32(slot), low, high, keys[n, 0], keys[n, 1])
            x, y = _unit(w0) * columns, _unit(w1) * lines
            tall = np.float32(0.5) * (length * (np.float32(0.7) + np.float32(0.6) * _unit(w2)) + blur)
            alpha = (np.float32(0.6) + np.float32(0.4) * _unit(w3)) / (blur * blur)
            for i in range(max(0, int(np.ceil(y - tall))), min(lines, int(y + tall) + 1)):
                end = alpha * min(tall - abs(i - y), blur)
                at = x + slope * (i - y)
                for j in range(max(0, int(np.ceil(at - wide))), min(columns, int(at + wide) + 1)):
                    _cover(layer, i, j, end * min(wide - abs(j - at), most))


@kernel
def draw_flakes(ids: Any, keys: Any, slot: Any, count: Any, haze: Any, scale: Any, layers: Any) -> None:
    """Haze, ``haze[n]`` at the top and a fifth of it at the bottom, and flakes, a few large and out of focus."""
    lines, columns = layers.shape[2], layers.shape[3]
    for n in range(len(layers)):
        low, high = np.uint32(ids[n] & np.uint64(0xFFFFFFFF)), np.uint32(ids[n] >> np.uint64(32))
        layer = layers[n, 0]
        for i in range(lines):
            layer[i] = np.uint8(255.0 * haze[n] * (1.0 - 0.8 * i / lines) + 0.5)
        for d in range(count):
            w0, w1, w2, w3 = philox_block(np.uint32(d), np.uint32(slot), low, high, keys[n, 0], keys[n, 1])
            u = _unit(w2)
            far = u * u * u * u
            radius = scale * (np.float32(0.55) + np.float32(0.5) * u + np.float32(3.0) * far * far)
            alpha = (np.float32(0.55) + np.float32(0.45) * _unit(w3)) * (np.float32(1.0) - np.float32(0.6) * far)
            _dab(layer, _unit(w0) * columns, _unit(w1) * lines, radius, np.float32(0.9) * radius + scale, alpha)


@kernel
def draw_stones(ids: Any, keys: Any, slot: Any, patches: Any, counts: Any, scale: Any, layers: Any) -> None:
    """Stones of ``counts[n, p]`` in the rectangles ``patches[n, p]`` (top, left, height, width): alpha, and gray that
    is lighter at the upper left."""
    lines, columns = layers.shape[2], layers.shape[3]
    one, half = np.float32(1.0), np.float32(0.5)
    for n in range(len(layers)):
        low, high = np.uint32(ids[n] & np.uint64(0xFFFFFFFF)), np.uint32(ids[n] >> np.uint64(32))
        alpha, gray = layers[n, 0], layers[n, 1]
        drawn = 0
        for p in range(patches.shape[1]):
            for _ in range(counts[n, p]):
                w0, w1, w2, w3 = philox_block(np.uint32(drawn), np.uint32(slot), low, high, keys[n, 0], keys[n, 1])
                drawn += 1
                y = patches[n, p, 0] + _unit(w0) * patches[n, p, 2]
                x = patches[n, p, 1] + _unit(w1) * patches[n, p, 3]
                u = _unit(w2)
                radius = scale * (np.float32(1.0) + np.float32(2.0) * u * u)
                # Flattened, as stones lie; 1 / (squared radii) along x and along y.
                flat = np.float32(0.6) + np.float32(0.4) * np.float32(w2 & 255) / 255
                along, down = 1 / (radius * radius), 1 / (radius * radius * flat * flat)
                level = np.float32(60.0) + np.float32(110.0) * _unit(w3)
                tall, edge = radius * flat + one, half / radius
                for i in range(max(0, int(np.ceil(y - tall))), min(lines, int(y + tall) + 1)):
                    for j in range(max(0, int(np.ceil(x - radius - one))), min(columns, int(x + radius + one) + 1)):
                        away = np.sqrt((j - x) * (j - x) * along + (i - y) * (i - y) * down)
                        cover = _within((one - away) / edge * half + half, 0.0, 1.0)
                        if cover == 0:
                            continue
                        light = one - np.float32(0.3) * ((j - x) + (i - y)) / (radius + half)
                        shade = _within(level * light, 0.0, 255.0)
                        if alpha[i, j] == 0:
                            gray[i, j] = np.uint8(shade)
                        else:
                            gray[i, j] = np.uint8(gray[i, j] + (shade - gray[i, j]) * cover)
                        _cover(alpha, i, j, cover)


@kernel
def draw_polygons(corners: Any, counts: Any, alphas: Any, layers: Any) -> None:
    """Polygons ``corners[n, p, V, 2]`` (x, y), the first ``counts[n]``, of alpha ``alphas[n, p]`` where an odd number
    of their sides lie to the left; four times finer along y than nodes, and exact along x."""
    lines, columns, sides = layers.shape[2], layers.shape[3], corners.shape[2]
    crossings, cover = np.empty(sides, np.float32), np.empty(columns, np.float32)
    for n in range(len(layers)):
        for p in range(counts[n]):
            for i in range(lines):
                cover[:] = np.float32(0.0)
                found = False
                for quarter in range(4):
                    y = np.float32(i) + np.float32(0.25) * quarter - np.float32(0.375)
                    count = 0
                    for s in range(sides):
                        a, b = corners[n, p, s], corners[n, p, (s + 1) % sides]
                        if (a[1] <= y) != (b[1] <= y):
                            crossings[count] = a[0] + (b[0] - a[0]) * ((y - a[1]) / (b[1] - a[1])) + np.float32(0.5)
                            count += 1
                    crossings[:count].sort()
                    for c in range(0, count - 1, 2):
                        begin, end = max(crossings[c], np.float32(0.0)), min(crossings[c + 1], np.float32(columns))
                        for j in range(int(begin), min(columns, int(end) + 1)):
                            part = min(end, np.float32(j + 1)) - max(begin, np.float32(j))
                            cover[j] += np.float32(0.25) * max(part, np.float32(0.0))
                            found = True
                for j in range(columns if found else 0):
                    if cover[j] > 0:
                        _cover(layers[n, 0], i, j, alphas[n, p] * min(cover[j], np.float32(1.0)))


@kernel
def draw_drops(
    ids: Any, keys: Any, slot: Any, taps: Any, thresholds: Any, slope: Any, colour: Any, relief: Any, layers: Any
) -> None:
    """White noise blurred by ``taps``, of deviation 1 afterwards, where it is above ``thresholds[n]``: alpha, which
    rises by ``slope`` per deviation, and ``colour``, lit from the upper left by ``relief``."""
    lines, columns, reach = layers.shape[2], layers.shape[3], len(taps) // 2
    wide = columns + 2 * reach
    white, along = np.empty((lines + 2 * reach, wide), np.float32), np.empty((lines + 2 * reach, columns), np.float32)
    field = np.empty((lines, columns), np.float32)
    flat, words = white.reshape(-1), np.empty(4, np.uint32)
    for n in range(len(layers)):
        low, high = np.uint32(ids[n] & np.uint64(0xFFFFFFFF)), np.uint32(ids[n] >> np.uint64(32))
        for b in range((flat.size + 3) // 4):
            w0, w1, w2, w3 = philox_block(np.uint32(b), np.uint32(slot), low, high, keys[n, 0], keys[n, 1])
            words[0], words[1], words[2], words[3] = w0, w1, w2, w3
            for k in range(min(4, flat.size - 4 * b)):
                w = np.int64(words[k])
                # Of four bytes: near enough to a normal number for what is blurred, and of deviation 1.
                total = (w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24)
                flat[4 * b + k] = np.float32(total - 510) * np.float32(0.0067658)
        along[:] = np.float32(0.0)
        for i in range(len(along)):
            for t in range(len(taps)):
                weight = taps[t]
                for j in range(columns):
                    along[i, j] += weight * white[i, j + t]
        field[:] = np.float32(0.0)
        for i in range(lines):
            for t in range(len(taps)):
                weight = taps[t]
                for j in range(columns):
                    field[i, j] += weight * along[i + t, j]
        for i in range(lines):
            for j in range(columns):
                above = slope * (field[i, j] - thresholds[n])
                layers[n, 0, i, j] = np.uint8(np.float32(255.0) * _within(above, 0.0, 1.0) + np.float32(0.5))
                up, down, left, right = max(i - 1, 0), min(i + 1, lines - 1), max(j - 1, 0), min(j + 1, columns - 1)
                # Bright where the surface of a drop rises towards the lower right.
                light = np.float32(1.0) + relief * (field[down, right] - field[up, left])
                for c in range(3):
                    layers[n, 1 + c, i, j] = np.uint8(_within(colour[c] * light + np.float32(0.5), 0.0, 255.0))


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
