"""The geometry of a sampled Program as a table: a line for every step that moves pixels or erases them.

Pixel i covers [i, i + 1). ``back`` leads from a place of a step's output to the one that it reads, ``ahead`` forwards.
A map whose image goes on beyond its edges is two steps: a pad that adds nothing, and the map, of an endless image.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.native.library import as_c_contiguous
from variegate.native.structs import STAGES, pack_struct
from variegate.program.ops import (
    INTERPOLATION_BITS,
    INTERPOLATION_MASK,
    SPECS,
    Interpolation,
    Kind,
    Op,
    PadMode,
)
from variegate.program.program import Program

Floats = npt.NDArray[np.float64]

# Kinds of steps: a projective map; displacements between the nodes of a grid; a pad that repeats the image, which for
# points is a shift; rectangles that are erased; a map that scales columns and lines, to the nearest pixel.
MAP, GRID, REPEAT, ERASE, SCALE = range(5)

# What ``numbers`` holds of a grid, and of a pad (``LEFT``, ``TOP``, ``MODE``), of rectangles (``FIRST``, ``COUNT``),
# and of a scale (``FIRST``, in ``tables``).
FIRST, LINES, COLUMNS, STEP_Y, STEP_X, UNIT = range(6)
LEFT, TOP, MODE = range(3)
COUNT = 1
NUMBERS = ("FIRST", "LINES", "COLUMNS", "STEP_Y", "STEP_X", "UNIT", "LEFT", "TOP", "MODE", "COUNT")

# A step of a grid, STEP_X or STEP_Y, is so many nodes in a pixel.
NODES_PER_STEP = 2.0**-26
# Sides of an endless image, which reaches as far to the other side of its first pixel.
ENDLESS = 1 << 52
# An executor adds this to every place it interpolates at (docs/operations.md).
_NUDGE = 2.0**-24
_ONE = 65536.0
_FIXED_LIMIT = 32768.0


class Stages(NamedTuple):
    """S steps; those of row r are ``begin[r]`` up to ``begin[r + 1]``, in the order of the image."""

    begin: Any  # int64[R + 1]
    kind: Any  # int64[S]
    back: Any  # float64[S, 9]: of a map, line by line; else the identity
    ahead: Any  # float64[S, 9]: its inverse, NaN where it has none
    before: Any  # int64[S, 2]: height and width that the step reads
    after: Any  # int64[S, 2]
    is_aligned: Any  # bool[S]: sides of a rectangle stay along the axes
    rounds: Any  # bool[S]: the image takes the nearest pixel here
    numbers: Any  # int64[S, 6]
    grids: Any  # int16[...]
    rectangles: Any  # int32[T, 4]
    tables: Any  # float64[...]: the places that a scale's columns read, then those of its lines
    packed: Any  # the native struct of all these


def _are(*ops: Op) -> npt.NDArray[np.bool_]:
    """bool, by opcode."""
    table = np.zeros(max(Op) + 1, np.bool_)
    table[list(ops)] = True
    return table


_MOVING = [op for op, spec in SPECS.items() if op < Op.MAP_FIXED and spec.kind in (Kind.GEOMETRY, Kind.RESAMPLE)]
_FOLLOWED = _are(*_MOVING, Op.ERASE)
_REAL = _are(Op.ROTATE, Op.SHEAR_X, Op.SHEAR_Y, Op.TRANSLATE_X, Op.TRANSLATE_Y, Op.AFFINE, Op.PERSPECTIVE)
_IDENTITY = np.eye(3).ravel()


def stages_of(program: Program, resized_by_corners: bool = False) -> Stages:
    """The steps of every row of a sampled program. ``resized_by_corners``: resizes as torchvision's of its ``Mask``."""
    slots = np.arange(program.opcode.shape[1])
    used = slots < program.length[:, None]
    kept = used & _FOLLOWED[program.opcode]
    row, slot = np.nonzero(kept)
    goes_on = program.flags[row, slot] > INTERPOLATION_MASK
    step = np.repeat(np.arange(len(row)), 1 + goes_on)
    row, slot, goes_on = row[step], slot[step], goes_on[step]
    # The first of two is the pad.
    is_pad, flags = np.diff(step, append=-1) == 0, program.flags[row, slot]
    flags = np.where(is_pad, flags >> INTERPOLATION_BITS, flags & INTERPOLATION_MASK)
    op = np.where(is_pad, Op.PAD, program.opcode[row, slot])
    args = np.where(is_pad[:, None], 0.0, program.args[row, slot])
    # What is not geometry changes no size.
    before = np.where((slot > 0)[:, None], program.out_size[row, slot - 1], program.in_shape[row, :2]).astype(np.int64)
    after = np.where(is_pad[:, None], before, program.out_size[row, slot])
    steps = Stages(
        begin=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=program.num_rows))]).astype(np.int64),
        kind=np.full(len(op), MAP, np.int64),
        back=np.full((len(op), 9), _IDENTITY),
        ahead=np.empty((len(op), 9)),
        before=before,
        after=after,
        is_aligned=np.ones(len(op), np.bool_),
        rounds=np.zeros(len(op), np.bool_),
        numbers=np.zeros((len(op), 6), np.int64),
        grids=program.tables.grids,
        rectangles=program.tables.rectangles,
        tables=np.empty(0),
        packed=None,
    )
    for code in sorted(set(op.tolist())):
        at = np.flatnonzero(op == code)
        _fill(steps, Op(code), at, args[at], flags[at])
    by_corners = (op == Op.RESIZED_CROP) & resized_by_corners
    steps.kind[by_corners], steps.rounds[by_corners] = SCALE, True
    steps.ahead[:] = inverse(steps.back)
    steps.before[goes_on & ~is_pad] = ENDLESS
    real = np.flatnonzero(_REAL[op] & ~steps.rounds)
    if len(real):
        steps.back[real, 0:3] += _NUDGE * steps.back[real, 6:9]
        steps.back[real, 3:6] += _NUDGE * steps.back[real, 6:9]
    arrays = steps._replace(tables=_tables(steps, by_corners))._asdict()
    read = {name: as_c_contiguous(arrays[name]) for name in arrays if name != "packed"}
    return Stages(**read, packed=pack_struct(STAGES, rows=program.num_rows, **read))


def _tables(steps: Stages, by_corners: npt.NDArray[np.bool_]) -> Floats:
    """Places of scales, added up pixel by pixel as Pillow does, or in float32 as torch: a product would break ties
    otherwise."""
    tables = [np.empty(0)]
    begin = 0
    for s in np.flatnonzero(steps.kind == SCALE).tolist():
        steps.numbers[s, FIRST] = begin
        for (scale, start), number in zip(steps.back[s, [0, 2, 4, 5]].reshape(2, 2), steps.after[s, ::-1], strict=True):
            # A mirror reads the same places from the other end.
            step = abs(scale)
            first = start if scale >= 0.0 else start - step * number
            if by_corners[s]:
                places = first + np.floor(np.arange(number, dtype=np.float32) * np.float32(step)) + 0.5
            else:
                places = np.add.accumulate(np.concatenate([[first + step * 0.5], np.full(number - 1, step)]))
            tables.append(places if scale >= 0.0 else places[::-1])
            begin += int(number)
    return np.concatenate(tables)


# Element n of an adjugate is the product of the first two of these less that of the last two.
_MINORS = np.array(
    [
        *((4, 8, 5, 7), (2, 7, 1, 8), (1, 5, 2, 4)),
        *((5, 6, 3, 8), (0, 8, 2, 6), (2, 3, 0, 5)),
        *((3, 7, 4, 6), (1, 6, 0, 7), (0, 4, 1, 3)),
    ]
).T


def inverse(maps: Floats) -> Floats:
    """Of 3x3 matrices [S, 9]; NaN where there is none."""
    one, two, three, four = (maps[:, at] for at in _MINORS)
    adjugate = one * two - three * four
    determinant = (maps[:, :3] * adjugate[:, ::3]).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = adjugate / determinant[:, None]
    found[np.abs(determinant) < 1e-12] = np.nan
    return np.asarray(found)


def _fill(steps: Stages, op: Op, at: npt.NDArray[np.intp], args: Floats, flags: npt.NDArray[np.int16]) -> None:
    """The steps ``at``, all of which are one operation."""
    height, width = steps.before[at].T.astype(np.float64)
    back = steps.back
    if op is Op.HFLIP:
        back[at, 0], back[at, 2] = -1.0, width
    elif op is Op.VFLIP:
        back[at, 4], back[at, 5] = -1.0, height
    elif op is Op.ROT90:
        back[at, :6] = _quarter_turns(args[:, 0].astype(np.int64) % 4, height, width)
    elif op is Op.CROP:
        back[at, 2], back[at, 5] = np.trunc(args[:, 1]), np.trunc(args[:, 0])
    elif op is Op.PAD:
        left, top = np.trunc(args[:, 0]), np.trunc(args[:, 1])
        back[at, 2], back[at, 5] = -left, -top
        steps.kind[at] = np.where(flags == PadMode.CONSTANT, MAP, REPEAT)
        steps.numbers[at, :3] = np.stack([left, top, flags], axis=1)
    elif op is Op.RESIZED_CROP:
        _resize(steps, at, args, flags)
    elif op is Op.ROTATE:
        back[at, :6] = _rotation(args, height, width, steps.after[at].astype(np.float64))
        turns = _exact_turns(args, height, width)
        exact = turns >= 0
        back[at[exact], :6] = _quarter_turns(turns[exact], height[exact], width[exact])
        _affine(steps, at[~exact], flags[~exact])
    elif op is Op.DISPLACE:
        steps.kind[at], steps.is_aligned[at] = GRID, False
        steps.rounds[at] = flags == Interpolation.NEAREST
        steps.numbers[at] = args[:, [0, 1, 2, 4, 5, 6]]
    elif op is Op.ERASE:
        steps.kind[at] = ERASE
        steps.numbers[at, :2] = args[:, :2]
    elif op is Op.PERSPECTIVE:
        back[at, :8] = args
        steps.is_aligned[at] = (args[:, [1, 3, 6, 7]] == 0.0).all(axis=1)
        steps.rounds[at] = flags == Interpolation.NEAREST
    else:
        back[at, :6] = _simple(op, args)
        _affine(steps, at, flags)


def _simple(op: Op, args: Floats) -> Floats:
    """Of a matrix that is its own instruction: float64[S, 6]."""
    if op is Op.AFFINE:
        return args[:, :6]
    maps = np.tile(np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]), (len(args), 1))
    column, sign = {Op.SHEAR_X: (1, 1), Op.SHEAR_Y: (3, 1), Op.TRANSLATE_X: (2, -1), Op.TRANSLATE_Y: (5, -1)}[op]
    maps[:, column] = sign * args[:, 0]
    return maps


def _resize(steps: Stages, at: npt.NDArray[np.intp], args: Floats, flags: npt.NDArray[np.int16]) -> None:
    top, left, bottom, right = (
        v.astype(np.float32).astype(np.float64)
        for v in (args[:, 0], args[:, 1], args[:, 0] + args[:, 2], args[:, 1] + args[:, 3])
    )
    out_height, out_width = args[:, 4], args[:, 5]
    scale_x, is_mirrored = (right - left) / out_width, args[:, 6] == 1.0
    steps.back[at, 0] = np.where(is_mirrored, -scale_x, scale_x)
    steps.back[at, 2] = np.where(is_mirrored, right, left)
    steps.back[at, 4], steps.back[at, 5] = (bottom - top) / out_height, top
    steps.rounds[at] = flags == Interpolation.NEAREST
    steps.kind[at] = np.where(steps.rounds[at], SCALE, MAP)


def _quarter_turns(turns: npt.NDArray[np.int64], height: Floats, width: Floats) -> Floats:
    """Counter-clockwise, 0 to 3 of them -> float64[S, 6]."""
    table = np.array(
        [[1, 0, 0, 0, 1, 0], [0, -1, 0, 1, 0, 0], [-1, 0, 0, 0, -1, 0], [0, 1, 0, -1, 0, 0]], dtype=np.float64
    )
    maps = table[turns]
    maps[:, 2] = np.where((turns == 1) | (turns == 2), width, 0.0)
    maps[:, 5] = np.where((turns == 2) | (turns == 3), height, 0.0)
    return maps


def _exact_turns(args: Floats, height: Floats, width: Floats) -> npt.NDArray[np.int64]:
    """Number of quarter turns of a rotation that Pillow does by transposing; else -1."""
    angle, fits = args[:, 0] % 360.0, (args[:, 3] != 0.0) | (height == width)
    turns = np.where(
        (angle == 0.0) | (angle == 180.0) | (((angle == 90.0) | (angle == 270.0)) & fits), angle / 90.0, -1
    )
    return np.where(np.isnan(args[:, 1]), turns, -1).astype(np.int64)


def _rotation(args: Floats, height: Floats, width: Floats, after: Floats) -> Floats:
    """Pillow's ``Image.rotate``, as lowering writes it."""
    radians = -np.radians(args[:, 0] % 360.0)
    cos, sin = np.round(np.cos(radians), 15), np.round(np.sin(radians), 15)
    x = np.where(np.isnan(args[:, 1]), width / 2.0, args[:, 1])
    y = np.where(np.isnan(args[:, 2]), height / 2.0, args[:, 2])
    c, f = -cos * x - sin * y + x, sin * x - cos * y + y
    grows = args[:, 3] != 0.0
    dx, dy = np.where(grows, -(after[:, 1] - width) / 2.0, 0.0), np.where(grows, -(after[:, 0] - height) / 2.0, 0.0)
    return np.stack([cos, sin, cos * dx + sin * dy + c, -sin, cos, -sin * dx + cos * dy + f], axis=1)


def _affine(steps: Stages, at: npt.NDArray[np.intp], flags: npt.NDArray[np.int16]) -> None:
    """Affine maps as the image's executor takes them: nearest ones in 16.16 fixed point, or by whole pixels."""
    maps, nearest = steps.back[at, :6], flags == Interpolation.NEAREST
    steps.is_aligned[at] = (maps[:, [1, 3]] == 0.0).all(axis=1) | (maps[:, [0, 4]] == 0.0).all(axis=1)
    if not nearest.any():
        return
    steps.rounds[at] = nearest
    shifts = nearest & (maps[:, [0, 1, 3, 4]] == [1.0, 0.0, 0.0, 1.0]).all(axis=1)
    maps[shifts] = np.floor(maps[shifts] + 0.5)
    corners = steps.after[at][:, ::-1, None] * np.array([[0, 1, 0, 1], [0, 0, 1, 1]], np.float64)
    reach = np.abs(np.einsum("sij,sjn->sin", maps.reshape(-1, 2, 3)[:, :, :2], corners) + maps[:, [2, 5], None])
    is_scale = (maps[:, [1, 3]] == 0.0).all(axis=1)
    # A mirror that is written as a scale is added up from its other end; that is left to the product.
    steps.kind[at[nearest & ~shifts & is_scale & (maps[:, [0, 4]] > 0.0).all(axis=1)]] = SCALE
    fixed = nearest & ~shifts & ~is_scale & (reach < _FIXED_LIMIT).all(axis=(1, 2))
    # Fixed-point places of pixels' centres, as a map of real places.
    centre = maps[:, [2, 5]] + 0.5 * (maps[:, [0, 3]] + maps[:, [1, 4]])
    snapped = np.floor(maps * _ONE + 0.5) / _ONE
    snapped[:, [2, 5]] = np.floor(centre * _ONE + 0.5) / _ONE - 0.5 * (snapped[:, [0, 3]] + snapped[:, [1, 4]])
    steps.back[at, :6] = np.where(fixed[:, None], snapped, maps)
