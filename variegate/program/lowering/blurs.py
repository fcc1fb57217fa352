"""Blurs become convolutions, whose integer weights every executor shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.ops import IS_BLUR, NUM_ARGS, Op
from variegate.program.program import Program

# Fraction bits: of a full kernel's weights, and of the half of a separable one's; and of levels between its two passes.
# A sum of two levels with LEVEL_BITS, and a weight, each fit into 16 bits; any number of products into 32.
WEIGHT_BITS, LEVEL_BITS = 14, 6
# Of the amount of an unsharp mask.
AMOUNT_BITS = 8
_ONE = 1 << WEIGHT_BITS
_LARGEST = (1 << 15) - 1
# Kernels that are worked out at a time have at most so many cells together.
_MOST_CELLS = 1 << 20

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def blurs_to_kernels(program: Program) -> npt.NDArray[np.int16]:
    """CONVOLVE holds (start, kernel_x, kernel_y, separable, apart, cells, more, threshold): where its table begins in
    the one returned.

    A separable one's: ``half_weights`` along x, then those along y, as far as they are not 0, with at least one 0
    behind each. Else the weights of ``cells`` cells, an even number, then their columns and then their lines from the
    centre. Each of these parts begins ``apart`` after the one before it. No part has fewer than four numbers.

    ``more``: of a separable one, 0, or of an unsharp mask its amount plus 1, with its ``threshold``; else how many
    kernels with as many cells follow, whose results are added.
    """
    at_r, at_k = np.nonzero(IS_BLUR[program.opcode])
    if not len(at_r):
        return np.empty(0, np.int16)
    args = program.args[at_r, at_k]
    # One kernel at a time would cost about as much as the pixels of a small image.
    alike: dict[tuple[int, int, int], list[int]] = {}
    for i, (op, x, y) in enumerate(zip(program.opcode[at_r, at_k].tolist(), *args[:, :2].T.tolist(), strict=True)):
        # Of a filter, which weights.
        key = (op, int(x), 0) if op == Op.FILTER else (op, int(x), int(x if op == Op.MOTION_BLUR else y))
        alike.setdefault(key, []).append(i)
    tables, start = [], 0
    for (op, x, y), same in alike.items():
        step = max(1, _MOST_CELLS // (x + 1) // (y + 1))
        for part in (same[begin : begin + step] for begin in range(0, len(same), step)):
            if op == Op.FILTER:
                table, held = _dense(program.tables.filters[x:], args[part, 1:4])
            elif op != Op.MOTION_BLUR:
                table, held = _separable(x, y, args[part, 2:4], args[part, 4] * (op == Op.GAUSSIAN_BLUR))
                if op == Op.UNSHARP_MASK:
                    held[:, 6], held[:, 7] = whole_amount(args[part, 4]) + 1, args[part, 5]
            else:
                table, held = _sparse(x, args[part, 1:3])
            held[:, 0] = start + np.arange(len(part)) * (table.size // len(part) if op != Op.FILTER else 0)
            program.args[at_r[part], at_k[part]] = held
            tables.append(table.reshape(-1))
            start += table.size
    program.opcode[at_r, at_k] = Op.CONVOLVE
    return np.concatenate(tables)


def _separable(size_x: int, size_y: int, sigma: Floats, shade: Any) -> tuple[npt.NDArray[np.int16], Floats]:
    """int16[N, 2, apart], the tables of kernels of one size; and their arguments but for the start."""
    along_x = along_y = half_weights(size_x, sigma[:, 0])
    if size_x != size_y or (sigma[:, 0] != sigma[:, 1]).any() or np.any(shade):
        along_y = half_weights(size_y, sigma[:, 1], shade)
    held = np.zeros((len(sigma), NUM_ARGS))
    held[:, 3] = 1.0
    for axis, half in enumerate((along_x, along_y)):
        # Weights fall from the centre on, but for the rounding: the last one that is not 0.
        held[:, 1 + axis] = 2 * (half.cumsum(axis=1) < half.sum(axis=1, keepdims=True)).sum(axis=1) + 1
    held[:, 4] = apart = max(int(held[:, 1:3].max()) // 2 + 2, 4)
    table = np.zeros((len(sigma), 2, apart), np.int16)
    table[:, 0, : along_x.shape[1]], table[:, 1, : along_y.shape[1]] = along_x[:, :apart], along_y[:, :apart]
    return table, held


def _sparse(size: int, line: Floats) -> tuple[npt.NDArray[np.int16], Floats]:
    """int16[N, 3, apart], as ``_separable``, of the lines that ``motion_kernel`` draws."""
    kernel, half = motion_kernel(size, line[:, 0], line[:, 1]), size // 2
    which, lines, columns = np.nonzero(kernel)
    count = np.bincount(which, minlength=len(line))
    held = np.zeros((len(line), NUM_ARGS))
    held[:, 1:3], held[:, 5] = size, (count + 1) // 2 * 2
    held[:, 4] = apart = max(int(held[:, 5].max()), 4)
    table, place = np.zeros((len(line), 3, apart), np.int16), np.arange(len(which)) - (count.cumsum() - count)[which]
    table[which, 0, place] = kernel[which, lines, columns]
    table[which, 1, place], table[which, 2, place] = columns - half, lines - half
    return table, held


def _dense(weights: npt.NDArray[np.float32], sizes: Floats) -> tuple[npt.NDArray[np.int16], Floats]:
    """``_separable`` of the kernels of one FILTER; a weight beyond 16 bits is that of several cells in one place."""
    size_x, size_y, count = (int(size) for size in sizes[0])
    lists = []
    for kernel in whole_weights(weights[: size_x * size_y * count].reshape(count, -1)):
        cells = np.flatnonzero(kernel)
        parts = -(-np.abs(kernel[cells]) // _LARGEST)
        cells, last = np.repeat(cells, parts), parts.cumsum() - 1
        value = np.sign(kernel[cells]) * _LARGEST
        value[last] = (kernel - np.sign(kernel) * _LARGEST * (-(-np.abs(kernel) // _LARGEST) - 1))[cells[last]]
        lists.append((value, cells % size_x - size_x // 2, cells // size_x - size_y // 2))
    most = max(len(value) for value, _, _ in lists)
    held = np.zeros((len(sizes), NUM_ARGS))
    held[:, 1], held[:, 2], held[:, 5], held[:, 6] = size_x, size_y, max((most + 1) // 2 * 2, 2), count - 1
    held[:, 4] = apart = max(int(held[0, 5]), 4)
    table = np.zeros((count, 3, apart), np.int16)
    for of, (value, columns, lines) in zip(table, lists, strict=True):
        of[0, : len(value)], of[1, : len(value)], of[2, : len(value)] = value, columns, lines
    return table, held


def whole_weights(weights: npt.NDArray[np.float32]) -> Ints:
    """Weights of M kernels in units of 2**-14, int64[M, cells]; running sums are rounded, so that sum 1 stays sum 1."""
    whole = np.floor(weights.astype(np.float64).cumsum(axis=1) * _ONE + 0.5).astype(np.int64)
    return np.diff(whole, axis=1, prepend=0)


def whole_amount(amount: Any) -> Any:
    """In units of 2**-8."""
    return np.floor(np.asarray(amount, np.float64) * (1 << AMOUNT_BITS) + 0.5).astype(np.int64)


def half_weights(size: int, sigma: Floats, shade: Any = 0.0) -> Ints:
    """Gaussian weights in units of 2**-15, the centre's half and those of one side: int64[N, size // 2 + 1], sum
    2**14 but for the share ``shade``. Sums from outside are rounded: constant images stay, small weights as well."""
    total = np.floor(_ONE * (1.0 - np.broadcast_to(shade, len(sigma))) + 0.5).astype(np.int64)
    away = np.arange(size // 2, 0, -1) / sigma[:, None]
    outer = np.zeros((len(sigma), size // 2 + 1))
    np.cumsum(np.exp(-0.5 * away * away), axis=1, out=outer[:, 1:])
    whole = np.floor(outer * (2 * total[:, None] / (2.0 * outer[:, -1:] + 1.0)) + 0.5).astype(np.int64)
    return np.hstack([total[:, None] - whole[:, -1:], np.diff(whole, axis=1)[:, ::-1]])


def motion_kernel(size: int, angle: Floats, direction: Floats) -> Ints:
    """Lines through the centre at ``angle`` degrees, counter-clockwise: int64[N, size, size], each of sum 2**14.
    Weights run linearly from (1 + direction) / 2 to (1 - direction) / 2, shared bilinearly among cells; running sums
    rounded."""
    number, half = len(angle), size // 2
    step, angle = np.arange(size) - half, np.deg2rad(angle)[:, None]
    along = np.arange(size) / (size - 1) if size > 1 else np.array([0.5])
    weight = (1.0 + direction[:, None]) / 2.0 - direction[:, None] * along
    # Cosines of 90 degrees are 6e-17, not 0: without rounding, such dust would light a neighbour cell.
    x, y = np.round(half + step * np.cos(angle), 9), np.round(half - step * np.sin(angle), 9)
    x0, y0 = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    kernel, wide = np.zeros(number * (size + 1) ** 2), size + 1
    first = np.arange(number)[:, None] * wide * wide
    for dy in (0, 1):
        for dx in (0, 1):
            share = (1.0 - np.abs(x - x0 - dx)) * (1.0 - np.abs(y - y0 - dy))
            at = first + (y0 + dy) * wide + x0 + dx
            kernel += np.bincount(at.ravel(), (weight * share).ravel(), minlength=len(kernel))
    outer = kernel.reshape(number, wide, wide)[:, :size, :size].reshape(number, -1).cumsum(axis=1)
    whole = np.floor(outer * (_ONE / outer[:, -1:]) + 0.5).astype(np.int64)
    whole[:, 1:] -= whole[:, :-1].copy()
    return whole.reshape(number, size, size)
