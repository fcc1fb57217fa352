"""Drop instructions that leave every pixel as it is, and give lowering its own copy of the arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.program.ops import Op
from variegate.program.program import Program

# Operations that are the identity for one value of their first argument.
_NEUTRAL = {
    Op.SHEAR_X: 0.0,
    Op.SHEAR_Y: 0.0,
    Op.TRANSLATE_X: 0.0,
    Op.TRANSLATE_Y: 0.0,
    Op.BRIGHTNESS: 1.0,
    Op.SATURATION: 1.0,
    Op.CONTRAST: 1.0,
    Op.SHARPNESS: 1.0,
    Op.POSTERIZE: 8.0,
    Op.ROT90: 0.0,
}
# Operations that mix channels: the identity on images of one channel.
_COLOUR_ONLY = (Op.SATURATION, Op.HUE, Op.GRAYSCALE, Op.PERMUTE)

_NEUTRAL_TABLE = np.full(128, np.nan)
for _op, _value in _NEUTRAL.items():
    _NEUTRAL_TABLE[_op] = _value
_COLOUR_TABLE = np.zeros(128, dtype=bool)
_COLOUR_TABLE[list(_COLOUR_ONLY)] = True

_GRIDS = ("opcode", "args", "flags", "fill", "out_size", "label")


def drop_identities(program: Program) -> Program:
    """Remove neutral instructions and close the gaps, keeping order."""
    opcode, args = program.opcode, program.args
    used = np.arange(opcode.shape[1]) < program.length[:, None]
    neutral = args[:, :, 0] == _NEUTRAL_TABLE[opcode]
    gray = program.in_shape[:, 2] == 1
    if gray.any():
        neutral |= _COLOUR_TABLE[opcode] & gray[:, None]
    keep = used & (opcode != Op.NOP) & ~neutral & ~_neutral_maps(program)
    length = keep.sum(axis=1).astype(np.int32)
    order = np.argsort(~keep, axis=1, kind="stable")[:, : max(1, int(length.max(initial=0)))]
    rows = np.arange(len(order))[:, None]
    grids = {name: getattr(program, name)[rows, order] for name in _GRIDS}
    grids["opcode"][np.arange(order.shape[1]) >= length[:, None]] = Op.NOP
    return program.replace(length=length, stage="compact", **grids)


def _neutral_maps(program: Program) -> npt.NDArray[np.bool_]:
    """Whole-image crops, empty pads, turns by a multiple of 360 degrees, solarize above every level, same-size resizes."""
    opcode, args = program.opcode, program.args
    neutral = (opcode == Op.ROTATE) & (args[:, :, 0] % 360.0 == 0.0) & np.isnan(args[:, :, 1])
    neutral |= (opcode == Op.SOLARIZE) & (args[:, :, 0] > 255.0)
    sized = np.isin(opcode, (Op.CROP, Op.PAD, Op.RESIZED_CROP))
    if sized.any():
        first = program.in_shape[:, None, :2]
        in_size = np.concatenate([first, program.out_size[:, :-1]], axis=1)
        same = (in_size == program.out_size).all(axis=2)
        at_origin = (args[:, :, 0] == 0.0) & (args[:, :, 1] == 0.0)
        whole = (args[:, :, 2:4] == in_size).all(axis=2) & (args[:, :, 6] == 0.0)
        neutral |= (opcode == Op.CROP) & same & at_origin
        neutral |= (opcode == Op.PAD) & same
        neutral |= (opcode == Op.RESIZED_CROP) & same & at_origin & whole
    return neutral
