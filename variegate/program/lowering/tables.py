"""Value operations become tables: per-channel ones a 3x256 LUT each, LUTs side by side one; saturation and grayscale a
MIX.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.program.lowering.blurs import blurs_to_kernels
from variegate.program.lowering.identities import close_gaps
from variegate.program.ops import IS_TABLE, Op
from variegate.program.program import Program

# Of a blend: any that is larger does the same, since levels differ by 1 or more. Products stay within 32 bits.
_LARGEST_FACTOR = 1e6


def values_to_tables(program: Program) -> Program:
    """Give every per-channel operation a LUT of its own (so that later rewrites may compose in place), and every blur
    its weights.
    """
    luts = np.empty((np.count_nonzero(IS_TABLE[program.opcode]), 3, 256), np.uint8)
    missing = build(program.arrays(), program.tables.luts, luts)
    if missing != Op.NOP:
        raise unknown_table(missing)
    return program.replace(tables=replace(program.tables, luts=luts, kernels=blurs_to_kernels(program)))


def unknown_table(op: int) -> NotImplementedError:
    return NotImplementedError(f"{Op(op).name} becomes a table, but lowering/tables.py has no branch for it")


def merge_luts(program: Program) -> Program:
    """Compose LUTs that stand side by side; the first keeps the composed table."""
    compose(program.arrays(), program.tables.luts)
    return program


@pixel_kernel
def build(program: Any, emitted: Any, luts: Any) -> int:
    """-> NOP, or an operation of which nobody has said what its table is. ``emitted``: the tables of LUTs."""
    at = 0
    for r in range(program.opcode.shape[0]):
        for k in range(program.length[r]):
            op, a = program.opcode[r, k], program.args[r, k]
            if op == Op.SATURATION or op == Op.CONTRAST or op == Op.SHARPNESS:
                a[0] = min(max(a[0], -_LARGEST_FACTOR), _LARGEST_FACTOR)
            if op == Op.SATURATION:
                program.opcode[r, k] = Op.MIX
            elif op == Op.GRAYSCALE:
                program.opcode[r, k] = Op.MIX
                a[0] = 0.0
            elif IS_TABLE[op]:
                if not _fill_table(op, a, emitted, luts[at]):
                    return int(op)
                program.opcode[r, k] = Op.LUT
                a[0] = at
                at += 1
    return 0


@inner_kernel()
def _fill_table(op: Any, a: Any, emitted: Any, table: Any) -> bool:
    """``table``: uint8[3, 256], of red, green and blue -> whether the operation is known here."""
    is_shared = op != Op.LUT and op != Op.RGB_SHIFT
    if is_shared and not _fill_channel(op, a, table[0]):
        return False
    for c in range(3):
        for i in range(256):
            if is_shared:
                table[c, i] = table[0, i]
            elif op == Op.LUT:
                table[c, i] = emitted[int(a[0]), c, i]
            else:
                table[c, i] = min(max(i + int(a[c]), 0), 255)
    return True


@inner_kernel()
def _fill_channel(op: Any, a: Any, table: Any) -> bool:
    """``table``: uint8[256], the same for every channel."""
    if op == Op.BRIGHTNESS:
        factor = np.float32(a[0])
        for i in range(256):
            table[i] = np.uint8(min(max(factor * np.float32(i), np.float32(0.0)), np.float32(255.0)))
    elif op == Op.GAMMA:
        for i in range(256):
            table[i] = np.uint8(min(max((255.0 + 1.0 - 1e-3) * a[1] * (i / 255.0) ** a[0], 0.0), 255.0))
    elif op == Op.POSTERIZE:
        mask = 255 & ~((1 << (8 - int(a[0]))) - 1)
        for i in range(256):
            table[i] = i & mask
    elif op == Op.SOLARIZE:
        for i in range(256):
            table[i] = i if i < a[0] else 255 - i
    elif op == Op.SOLARIZE_ADD:
        for i in range(256):
            table[i] = np.uint8(min(max(i + a[0], 0.0), 255.0)) if i < a[1] else i
    elif op == Op.INVERT:
        for i in range(256):
            table[i] = 255 - i
    else:
        return False
    return True


@pixel_kernel
def compose(program: Any, luts: Any) -> None:
    for r in range(program.opcode.shape[0]):
        last = -1  # the slot whose table the next LUT is composed with
        for k in range(program.length[r]):
            if program.opcode[r, k] != Op.LUT:
                last = -1
            elif last < 0:
                last = k
            else:
                first, then = luts[int(program.args[r, last, 0])], luts[int(program.args[r, k, 0])]
                for c in range(3):
                    for i in range(256):
                        first[c, i] = then[c, first[c, i]]
                program.opcode[r, k] = Op.NOP
        close_gaps(program, r)
