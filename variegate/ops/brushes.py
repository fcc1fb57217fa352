"""Compiled brushes that draw layers, uint8[n, planes, lines, columns]. Places and sizes are in nodes, float32.

They add, multiply, divide and take roots alone, which all processors round alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import inner_kernel, kernel

_ZERO, _HALF, _ONE, _MOST = (np.float32(value) for value in (0.0, 0.5, 1.0, 255.0))


@inner_kernel()
def _cover(layer: Any, y: Any, x: Any, alpha: Any) -> None:
    """Add an alpha from 0 to 1 to what is there."""
    before = np.float32(layer[y, x])
    layer[y, x] = np.uint8(before + (_MOST - before) * alpha + _HALF)


@inner_kernel()
def _cover_all(clear: Any, layer: Any) -> None:
    """Alphas of what is left to be seen through."""
    for i in range(layer.shape[0]):
        for j in range(layer.shape[1]):
            layer[i, j] = np.uint8(np.float32(255.5) - _MOST * clear[i, j])


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
        _cover_all(clear, layers[n, 0])


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
    """Drops where ``field[n]`` is above ``limits[n]``: alpha, which rises by ``slope`` per unit, and ``colour``, lit
    from the upper left by ``relief`` per unit."""
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
    lines, columns = layers.shape[2], layers.shape[3]
    clear = np.empty((3, lines, columns), np.float32)
    for n in range(len(layers)):
        glow = suns[n, 2]
        thin = np.float32(0.012) * glow
        for i in range(lines):
            for j in range(columns):
                across, down, glare = _away(j, suns[n, 0]), _away(i, suns[n, 1]), _ZERO
                away = np.sqrt(across * across + down * down)
                for k in range(rays):
                    glare += thin / (thin + abs(across * suns[n, 3 + 2 * k] + down * suns[n, 4 + 2 * k]))
                for c in range(3):
                    near = max(_ONE - away / (glow * spread[c]), _ZERO)
                    light = near * near * (near + np.float32(0.3) * glare if rays else _ONE)
                    clear[c, i, j] = _ONE - min(light, _ONE) * colour[c]
        for p in range(counts[n]):
            for c in range(3):
                x, y, radius = rings[n, p, 0], rings[n, p, 1], rings[n, p, 2] * spread[c]
                first, end = _near(x, np.float32(1.1) * radius + _ONE, columns)
                top, bottom = _near(y, np.float32(1.1) * radius + _ONE, lines)
                for i in range(top, bottom):
                    for j in range(first, end):
                        across, down = _away(j, x), _away(i, y)
                        away = np.sqrt(across * across + down * down) / radius
                        # A disc that is brighter towards its rim.
                        inside = _within((np.float32(1.05) - away) * radius, 0.0, 1.0)
                        light = rings[n, p, 3] * inside * (np.float32(0.55) + np.float32(0.45) * away * away)
                        clear[c, i, j] *= _ONE - min(light, _ONE) * rings[n, p, 4 + c]
        for c in range(3):
            _cover_all(clear[c], layers[n, c])
