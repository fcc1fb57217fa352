"""Geometry becomes maps from output pixels to places of the input.

MAP_FIXED: six 16.16 integers, source = ``(a x + b y + c) >> 16, (d x + e y + f) >> 16``, as Pillow steps them.
MAP_FLOAT, MAP_PERSPECTIVE: real coefficients (``program/places.py``). MAP_GRID: displacements. MAP_SCALE, MAP_PAD:
tables by axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.program.ops import INTERPOLATION_MASK, KIND_OF, Interpolation, Kind, Op, PadMode
from variegate.program.places import FAR, ONE, moves_whole_pixels, snap, stays_inside

# Pillow's affine_fixed is taken only where every coordinate stays below this.
_FIXED_LIMIT = 32768.0


@pixel_kernel
def rewrite_maps(program: Any) -> None:
    """Rewrite every geometric instruction to a map with its window (top, left, bottom, right) into the source."""
    for r in range(program.opcode.shape[0]):
        h, w = program.in_shape[r, 0], program.in_shape[r, 1]
        for k in range(program.length[r]):
            op, a, flag, size = program.opcode[r, k], program.args[r, k], program.flags[r, k], program.out_size[r, k]
            program.window[r, k, 2], program.window[r, k, 3] = h, w
            if op == Op.RESIZED_CROP and flag != Interpolation.NEAREST:
                a[7] = _vertical_first(h, w, size)
            elif KIND_OF[op] == Kind.GEOMETRY or op == Op.RESIZED_CROP:
                program.opcode[r, k] = to_map(op, a, flag & INTERPOLATION_MASK, h, w, size)
                # What never leaves the image has nothing to fold.
                is_whole = program.opcode[r, k] == Op.MAP_FIXED and moves_whole_pixels(a)
                if is_whole and stays_inside(a, program.window[r, k], size):
                    program.flags[r, k] = flag & INTERPOLATION_MASK
            h, w = size[0], size[1]


@inner_kernel()
def _vertical_first(h: Any, w: Any, out_size: Any) -> float:
    """True if Pillow 13 takes the vertical pass first (python-pillow/Pillow#9549): the rounding between them shows."""
    return 1.0 if h > out_size[0] and h - out_size[0] > 2 * (w - out_size[1]) else 0.0


@inner_kernel()
def _set_integer(a: Any, xx: Any, xy: Any, x0: Any, yx: Any, yy: Any, y0: Any) -> int:
    """Source x = xx x + xy y + x0, source y = yx x + yy y + y0, in whole pixels."""
    a[:] = 0.0
    a[0], a[1], a[2], a[3], a[4], a[5] = xx * ONE, xy * ONE, x0 * ONE, yx * ONE, yy * ONE, y0 * ONE
    return Op.MAP_FIXED


@inner_kernel()
def to_map(op: Any, a: Any, flag: Any, h: Any, w: Any, out_size: Any) -> int:
    """Rewrite the arguments ``a`` in place -> the map's opcode. ``h, w``: size of the input."""
    if op == Op.HFLIP:
        return _set_integer(a, -1, 0, w - 1, 0, 1, 0)
    if op == Op.VFLIP:
        return _set_integer(a, 1, 0, 0, 0, -1, h - 1)
    if op == Op.ROT90:
        return _quarter_turns(a, int(a[0]) % 4, h, w)
    if op == Op.CROP:
        return _set_integer(a, 1, 0, int(a[1]), 0, 1, int(a[0]))
    if op == Op.PAD:
        return _set_integer(a, 1, 0, -int(a[0]), 0, 1, -int(a[1])) if flag == PadMode.CONSTANT else Op.MAP_PAD
    if op == Op.RESIZED_CROP:
        top, left, scale_y, scale_x, flip = a[0], a[1], a[2] / a[4], a[3] / a[5], a[6]
        a[:] = 0.0
        a[0], a[1], a[2], a[3], a[4] = scale_x, left, scale_y, top, flip
        return Op.MAP_SCALE
    if op == Op.DISPLACE:
        return Op.MAP_GRID
    if op == Op.PERSPECTIVE:
        if flag != Interpolation.NEAREST:
            snap(a, 8)
        return Op.MAP_PERSPECTIVE
    if op == Op.ROTATE:
        turns = _exact_turns(a, h, w)
        if turns >= 0:
            return _quarter_turns(a, turns, h, w)
        _rotation(a, h, w, out_size)
    elif op == Op.SHEAR_X:
        _set(a, 1.0, a[0], 0.0, 0.0, 1.0, 0.0)
    elif op == Op.SHEAR_Y:
        _set(a, 1.0, 0.0, 0.0, a[0], 1.0, 0.0)
    elif op == Op.TRANSLATE_X:
        _set(a, 1.0, 0.0, -a[0], 0.0, 1.0, 0.0)
    elif op == Op.TRANSLATE_Y:
        _set(a, 1.0, 0.0, 0.0, 0.0, 1.0, -a[0])
    return _affine_to_map(a, flag, out_size)


@inner_kernel()
def _set(a: Any, a0: Any, a1: Any, a2: Any, a3: Any, a4: Any, a5: Any) -> None:
    a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7] = a0, a1, a2, a3, a4, a5, 0.0, 0.0


@pixel_kernel
def _quarter_turns(a: Any, turns: Any, h: Any, w: Any) -> int:
    if turns == 1:
        return _set_integer(a, 0, -1, w - 1, 1, 0, 0)
    if turns == 2:
        return _set_integer(a, -1, 0, w - 1, 0, -1, h - 1)
    if turns == 3:
        return _set_integer(a, 0, 1, 0, -1, 0, h - 1)
    return _set_integer(a, 1, 0, 0, 0, 1, 0)


@inner_kernel()
def _exact_turns(a: Any, h: Any, w: Any) -> int:
    """Quarter turns if Pillow's rotate would transpose, else -1."""
    angle = a[0] % 360.0
    if not np.isnan(a[1]):
        return -1
    if angle == 0.0:
        return 0
    if angle == 180.0:
        return 2
    if angle == 90.0 and (h == w or a[3] != 0.0):
        return 1
    if angle == 270.0 and (h == w or a[3] != 0.0):
        return 3
    return -1


@inner_kernel()
def _round15(v: Any) -> float:
    return np.round(v * 1e15) / 1e15


@inner_kernel()
def _rotation(a: Any, h: Any, w: Any, out_size: Any) -> None:
    """Image.rotate's output->input matrix, entries of the rotation rounded to 15 decimals as there."""
    radians = -np.radians(a[0] % 360.0)
    cx = w / 2.0 if np.isnan(a[1]) else a[1]
    cy = h / 2.0 if np.isnan(a[2]) else a[2]
    cos, sin = _round15(np.cos(radians)), _round15(np.sin(radians))
    x0 = cos * -cx + sin * -cy + cx
    y0 = -sin * -cx + cos * -cy + cy
    if a[3] != 0.0:
        dx, dy = -(out_size[1] - w) / 2.0, -(out_size[0] - h) / 2.0
        x0, y0 = cos * dx + sin * dy + x0, -sin * dx + cos * dy + y0
    _set(a, cos, sin, x0, -sin, cos, y0)


@inner_kernel()
def _affine_to_map(a: Any, flag: Any, out_size: Any) -> int:
    """Choose how an affine matrix runs. ``a`` holds real coefficients on entry."""
    # Of a custom operation the magnitude stood here.
    a[6], a[7] = 0.0, 0.0
    is_shift = a[0] == 1.0 and a[1] == 0.0 and a[3] == 0.0 and a[4] == 1.0
    if is_shift and flag == Interpolation.NEAREST:
        x, y = min(max(a[2], -FAR / 2), FAR / 2), min(max(a[5], -FAR / 2), FAR / 2)
        return _set_integer(a, 1, 0, np.floor(x + 0.5), 0, 1, np.floor(y + 0.5))
    is_near = abs(a[2]) < FAR and abs(a[5]) < FAR
    if is_shift and is_near and a[2] == np.floor(a[2]) and a[5] == np.floor(a[5]):
        # Interpolating at whole pixels reads one pixel with weight one.
        return _set_integer(a, 1, 0, a[2], 0, 1, a[5])
    if flag != Interpolation.NEAREST:
        snap(a, 6)
        return Op.MAP_FLOAT
    if a[1] == 0.0 and a[3] == 0.0:
        a0, a2, a4, a5 = a[0], a[2], a[4], a[5]
        a[:] = 0.0
        a[0], a[1], a[2], a[3] = a0, a2, a4, a5
        return Op.MAP_SCALE
    height, width = out_size[0], out_size[1]
    if not (_fits(a, 0.0, 0.0) and _fits(a, width, height) and _fits(a, 0.0, height) and _fits(a, width, 0.0)):
        return Op.MAP_FLOAT
    c = np.floor((a[2] + a[0] * 0.5 + a[1] * 0.5) * ONE + 0.5)
    f = np.floor((a[5] + a[3] * 0.5 + a[4] * 0.5) * ONE + 0.5)
    for i in (0, 1, 3, 4):
        a[i] = np.floor(a[i] * ONE + 0.5)
    a[2], a[5] = c, f
    return Op.MAP_FIXED


@inner_kernel()
def _fits(a: Any, x: Any, y: Any) -> bool:
    u = x * a[0] + y * a[1] + a[2]
    v = x * a[3] + y * a[4] + a[5]
    return bool(abs(u) < _FIXED_LIMIT and abs(v) < _FIXED_LIMIT)
