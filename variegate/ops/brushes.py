"""Drawing of shapes on layers, uint8[n, planes, lines, columns], in C++ (``native/kernels/brushes.cpp``).

Positions and sizes are in nodes of the layer. Numbers are float32, counts int64. Layers are modified in place.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_float, c_int64, c_void_p

import numpy as np

from variegate.arrays import AnyArray, Float32Array, Int16Array, Int64Array, UInt8Array
from variegate.native.library import as_c_contiguous, check_status, data_ptr, entry
from variegate.native.structs import LAYERS, pack_struct

_puffs = entry("vg_draw_puffs", c_void_p, c_void_p, c_int64, c_void_p)
_streaks = entry("vg_draw_streaks", c_void_p, c_void_p, c_int64, c_void_p, c_float, c_float)
_stones = entry("vg_draw_stones", c_void_p, c_void_p, c_int64, c_void_p, c_void_p, c_int64, c_float)
_polygons = entry("vg_draw_polygons", c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_void_p)
_drops = entry("vg_draw_drops", c_void_p, c_void_p, c_void_p, c_float, c_void_p, c_float)
_flare = entry(
    "vg_draw_flare", c_void_p, c_void_p, c_int64, c_int64, *(c_void_p, c_int64, c_void_p, c_void_p, c_void_p)
)


def draw_puffs(puffs: Float32Array, haze: Float32Array, layers: UInt8Array) -> None:
    """Draw haze and soft discs.

    ``haze[n]``: alpha at the top; a fifth of it at the bottom. ``puffs[n, p]``: x, y, radius, and alpha in the center.
    """
    _draw(_puffs, layers, puffs, puffs.shape[1], haze)


def draw_streaks(streaks: Float32Array, slopes: Float32Array, width: float, blur: float, layers: UInt8Array) -> None:
    """Draw lines of ``width`` nodes, blurred by a box of ``blur`` nodes.

    ``streaks[n, p]``: x, y, half the height, alpha. ``slopes[n]``: nodes along x per node along y.
    """
    _draw(_streaks, layers, streaks, streaks.shape[1], slopes, width, blur)


def draw_stones(
    units: Float32Array, patches: Float32Array, counts: Int64Array, scale: float, layers: UInt8Array
) -> None:
    """Draw ``counts[n, p]`` stones in each rectangle ``patches[n, p]`` (top, left, height, width).

    Each stone consumes four random numbers of ``units[n]``. Planes are alpha, and gray that is lighter at the upper
    left.
    """
    _draw(_stones, layers, units, units.shape[1], patches, counts, patches.shape[1], scale)


def draw_polygons(corners: Float32Array, counts: Int64Array, alphas: Float32Array, layers: UInt8Array) -> None:
    """Draw the first ``counts[n]`` of the simple polygons ``corners[n, p, V, 2]`` (x, y), with alpha ``alphas[n, p]``.

    Coverage of a node is computed from four scan lines, each exact along x.
    """
    _draw(_polygons, layers, corners, corners.shape[1], corners.shape[2], counts, alphas)


def draw_drops(
    field: Int16Array, limits: Float32Array, slope: float, color: Float32Array, relief: float, layers: UInt8Array
) -> None:
    """Draw drops where ``field[n]`` exceeds ``limits[n]``.

    Alpha increases by ``slope`` per unit of the field. ``color`` is lit from the upper left, by ``relief`` per unit.
    """
    _draw(_drops, layers, field, limits, slope, color, relief)


def draw_flare(
    suns: Float32Array,
    rings: Float32Array,
    counts: Int64Array,
    rays: int,
    color: Float32Array,
    spread: Float32Array,
    layers: UInt8Array,
) -> None:
    """Draw suns and their reflections in the lens.

    ``suns[n]``: x, y, radius of the glow, and the normals of ``rays`` rays. ``rings[n, p]``: x, y, radius, alpha, red,
    green, blue, the first ``counts[n]``. ``spread[c]``: factor of the sizes in channel c.
    """
    _draw(_flare, layers, suns, suns.shape[1], rays, rings, rings.shape[1], counts, color, spread)


def _draw(brush: Callable[..., int], layers: UInt8Array, *arguments: AnyArray | float) -> None:
    """Call a native brush. Arrays are passed as addresses."""
    count, planes, lines, columns = layers.shape
    canvas = pack_struct(LAYERS, count=count, planes=planes, lines=lines, columns=columns, nodes=layers)
    held = [as_c_contiguous(value) if isinstance(value, np.ndarray) else value for value in arguments]
    words = [data_ptr(value) if isinstance(value, np.ndarray) else value for value in held]
    check_status(brush(data_ptr(canvas), *words))
