"""Drop instructions that leave every pixel as it is, and give lowering its own copy of the arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.program.ops import IS_COLOUR_ONLY, NEUTRAL_OF, Op
from variegate.program.program import INSTRUCTION_ARRAYS, Program


def drop_identities(program: Program) -> Program:
    """Remove neutral instructions and close the gaps, keeping order."""
    copied = program.replace(**{name: getattr(program, name).copy() for name in (*INSTRUCTION_ARRAYS, "length")})
    compact(copied.arrays(), NEUTRAL_OF)
    longest = max(1, int(copied.length.max(initial=0)))
    if longest == copied.opcode.shape[1]:
        return copied
    trimmed = {name: np.ascontiguousarray(getattr(copied, name)[:, :longest]) for name in INSTRUCTION_ARRAYS}
    return copied.replace(**trimmed)


@pixel_kernel
def compact(program: Any, neutral: Any) -> None:
    """``neutral``: float64[MAX_OPCODE, 2], NEUTRAL_OF."""
    for r in range(program.opcode.shape[0]):
        h, w, channels = program.in_shape[r, 0], program.in_shape[r, 1], program.in_shape[r, 2]
        for k in range(program.length[r]):
            op, size = program.opcode[r, k], program.out_size[r, k]
            if (channels == 1 and IS_COLOUR_ONLY[op]) or _is_neutral(op, program.args[r, k], neutral[op], size, h, w):
                program.opcode[r, k] = Op.NOP
            else:
                h, w = size[0], size[1]
        close_gaps(program, r)


@inner_kernel()
def close_gaps(program: Any, r: Any) -> None:
    """Move the instructions of a row together, over slots whose opcode is NOP."""
    n = 0
    for k in range(program.length[r]):
        if program.opcode[r, k] == Op.NOP:
            continue
        if n < k:
            program.opcode[r, n], program.flags[r, n] = program.opcode[r, k], program.flags[r, k]
            program.label[r, n] = program.label[r, k]
            _move(program.args[r], k, n)
            _move(program.fill[r], k, n)
            _move(program.out_size[r], k, n)
            if len(program.window):
                _move(program.window[r], k, n)
        n += 1
    for k in range(n, program.length[r]):
        program.opcode[r, k] = Op.NOP
    program.length[r] = n


@inner_kernel()
def _move(values: Any, k: Any, n: Any) -> None:
    for i in range(values.shape[1]):
        values[n, i] = values[k, i]


@inner_kernel()
def _is_neutral(op: Any, a: Any, neutral: Any, out_size: Any, h: Any, w: Any) -> bool:
    if neutral[0] <= a[0] <= neutral[1]:
        return True
    # What a range of one argument does not say.
    if op == Op.ROTATE:
        return bool(a[0] % 360.0 == 0.0 and np.isnan(a[1]))
    same = out_size[0] == h and out_size[1] == w
    if op == Op.PAD:
        return bool(same)
    at_origin = a[0] == 0.0 and a[1] == 0.0
    if op == Op.CROP:
        return bool(same and at_origin)
    if op == Op.RESIZED_CROP:
        return bool(same and at_origin and a[2] == h and a[3] == w and a[6] == 0.0)
    return False
