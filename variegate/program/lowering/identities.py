"""Drop instructions that leave every pixel as it is, and give lowering its own copy of the arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import kernel
from variegate.program.ops import IS_COLOUR_ONLY, NEUTRAL_OF, Op
from variegate.program.program import Program

_GRIDS = ("opcode", "args", "flags", "fill", "out_size", "label")
_ROTATE, _SOLARIZE, _CROP, _PAD, _RESIZED_CROP = (
    int(op) for op in (Op.ROTATE, Op.SOLARIZE, Op.CROP, Op.PAD, Op.RESIZED_CROP)
)


def drop_identities(program: Program) -> Program:
    """Remove neutral instructions and close the gaps, keeping order."""
    grids = {name: getattr(program, name).copy() for name in _GRIDS}
    length = program.length.copy()
    _compact(*grids.values(), length, program.in_shape)
    longest = max(1, int(length.max(initial=0)))
    if longest < program.opcode.shape[1]:
        grids = {name: np.ascontiguousarray(grid[:, :longest]) for name, grid in grids.items()}
    return program.replace(length=length, stage="compact", **grids)


@kernel
def _compact(
    opcode: Any, args: Any, flags: Any, fill: Any, out_size: Any, label: Any, length: Any, in_shape: Any
) -> None:
    for r in range(opcode.shape[0]):
        n = 0
        h, w = in_shape[r, 0], in_shape[r, 1]
        for k in range(length[r]):
            op = opcode[r, k]
            is_gray = in_shape[r, 2] == 1
            if op == 0 or (is_gray and IS_COLOUR_ONLY[op]) or _is_neutral(op, args[r, k], out_size[r, k], h, w):
                continue
            h, w = out_size[r, k, 0], out_size[r, k, 1]
            if n < k:
                opcode[r, n], flags[r, n], label[r, n] = op, flags[r, k], label[r, k]
                args[r, n], fill[r, n], out_size[r, n] = args[r, k], fill[r, k], out_size[r, k]
            n += 1
        opcode[r, n:] = 0
        length[r] = n


@kernel
def _is_neutral(op: Any, a: Any, out_size: Any, h: Any, w: Any) -> bool:
    if a[0] == NEUTRAL_OF[op]:
        return True
    # What one value of one argument does not say.
    if op == _ROTATE:
        return bool(a[0] % 360.0 == 0.0 and np.isnan(a[1]))
    if op == _SOLARIZE:
        return bool(a[0] > 255.0)
    same = out_size[0] == h and out_size[1] == w
    if op == _PAD:
        return bool(same)
    at_origin = a[0] == 0.0 and a[1] == 0.0
    if op == _CROP:
        return bool(same and at_origin)
    if op == _RESIZED_CROP:
        return bool(same and at_origin and a[2] == h and a[3] == w and a[6] == 0.0)
    return False
