"""Value operations become tables: per-channel ones a 3x256 LUT, blurs a kernel, saturation and grayscale a MIX."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from variegate.program.compiled import kernel
from variegate.program.kernels import gaussian_kernel, motion_kernel
from variegate.program.ops import IS_TABLE, Op
from variegate.program.program import Program

_BRIGHTNESS, _GAMMA, _POSTERIZE, _SOLARIZE, _SOLARIZE_ADD, _INVERT, _RGB_SHIFT, _LUT = (
    int(op)
    for op in (
        *(Op.BRIGHTNESS, Op.GAMMA, Op.POSTERIZE, Op.SOLARIZE, Op.SOLARIZE_ADD, Op.INVERT, Op.RGB_SHIFT),
        Op.LUT,
    )
)
_SATURATION, _GRAYSCALE, _MIX = int(Op.SATURATION), int(Op.GRAYSCALE), int(Op.MIX)


def values_to_tables(program: Program) -> Program:
    """Give every per-channel operation a LUT of its own (so that later rewrites may compose in place)."""
    opcode, args = program.opcode, program.args
    count = int(IS_TABLE[opcode].sum())
    luts = np.empty((count, 3, 256), np.uint8)
    _build(opcode, args, program.length, program.tables.luts, luts)
    kernels = _blurs_to_kernels(program)
    return program.replace(tables=replace(program.tables, luts=luts, kernels=kernels), stage="tabled")


@kernel
def _build(opcode: Any, args: Any, length: Any, given: Any, luts: Any) -> None:
    at = 0
    for r in range(opcode.shape[0]):
        for k in range(length[r]):
            op = opcode[r, k]
            a = args[r, k]
            if op == _SATURATION:
                opcode[r, k] = _MIX
            elif op == _GRAYSCALE:
                opcode[r, k] = _MIX
                a[0] = 0.0
            elif IS_TABLE[op]:
                table = luts[at]
                if op == _LUT:
                    table[:] = given[int(a[0])]
                elif op == _RGB_SHIFT:
                    for c in range(3):
                        for i in range(256):
                            table[c, i] = min(max(i + int(a[c]), 0), 255)
                else:
                    _one_channel(op, a, table[0])
                    table[1] = table[0]
                    table[2] = table[0]
                opcode[r, k] = _LUT
                a[0] = at
                at += 1


@kernel
def _one_channel(op: Any, a: Any, table: Any) -> None:
    if op == _BRIGHTNESS:
        factor = np.float32(a[0])
        for i in range(256):
            table[i] = np.uint8(min(factor * np.float32(i), np.float32(255.0)))
    elif op == _GAMMA:
        for i in range(256):
            table[i] = np.uint8(min(max((255.0 + 1.0 - 1e-3) * a[1] * (i / 255.0) ** a[0], 0.0), 255.0))
    elif op == _POSTERIZE:
        mask = 255 & ~((1 << (8 - int(a[0]))) - 1)
        for i in range(256):
            table[i] = i & mask
    elif op == _SOLARIZE:
        for i in range(256):
            table[i] = i if i < a[0] else 255 - i
    elif op == _SOLARIZE_ADD:
        for i in range(256):
            table[i] = np.uint8(min(max(i + a[0], 0.0), 255.0)) if i < a[1] else i
    else:
        for i in range(256):
            table[i] = 255 - i


def _blurs_to_kernels(program: Program) -> list[np.ndarray]:
    """CONVOLVE holds (table, kernel_x, kernel_y, separable); a separable table is the row weights, then the
    column's.
    """
    kernels: list[np.ndarray] = []
    blurs = np.argwhere((program.opcode == Op.GAUSSIAN_BLUR) | (program.opcode == Op.MOTION_BLUR))
    for r, k in blurs:
        a = program.args[r, k]
        if program.opcode[r, k] == Op.GAUSSIAN_BLUR:
            kx, ky = int(a[0]), int(a[1])
            kernels.append(np.concatenate([gaussian_kernel(kx, a[2]), gaussian_kernel(ky, a[3])]))
            new_args = (len(kernels) - 1, kx, ky, 1.0)
        else:
            size = int(a[0])
            kernels.append(motion_kernel(size, a[1], a[2]).reshape(-1))
            new_args = (len(kernels) - 1, size, size, 0.0)
        program.opcode[r, k] = Op.CONVOLVE
        a[:] = 0.0
        a[:4] = new_args
    return kernels
