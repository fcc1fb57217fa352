"""Blurs become convolutions, whose integer weights every executor shares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.program.ops import IS_BLUR, NUM_ARGS, Op
from variegate.program.program import Program

# Fraction bits: of a full kernel's weights, and of the half of a separable one's; and of levels between its two passes.
# A sum of two levels with LEVEL_BITS, and a weight, each fit into 16 bits; any number of products into 32.
WEIGHT_BITS, LEVEL_BITS = 14, 6
_ONE = 1 << WEIGHT_BITS
# Kernels that are worked out at a time have at most so many cells together.
_MOST_CELLS = 1 << 20

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def blurs_to_kernels(program: Program) -> npt.NDArray[np.int16]:
    """CONVOLVE holds (start, kernel_x, kernel_y, separable, apart, cells): where its table begins in the one returned.

    A separable one's: ``half_weights`` along x, then those along y, as far as they are not 0, with at least one 0
    behind each. Else the weights of ``cells`` cells, an even number, then their columns and then their lines from the
    centre. Each of these parts begins ``apart`` after the one before it. No part has fewer than four numbers.
    """
    at_r, at_k = np.nonzero(IS_BLUR[program.opcode])
    if not len(at_r):
        return np.empty(0, np.int16)
    tables, start = [], 0
    args, op = program.args[at_r, at_k], program.opcode[at_r, at_k]
    # One kernel at a time would cost about as much as the pixels of a small image.
    for make, kind, sizes in ((_separable, Op.GAUSSIAN_BLUR, 2), (_sparse, Op.MOTION_BLUR, 1)):
        chosen = np.flatnonzero(op == kind)
        for size in np.unique(args[chosen, :sizes], axis=0):
            same = chosen[(args[chosen, :sizes] == size).all(axis=1)]
            step = max(1, _MOST_CELLS // int((size + 1).prod() ** (2 / sizes)))
            for part in (same[begin : begin + step] for begin in range(0, len(same), step)):
                table, held = make(size.astype(int).tolist(), args[part, sizes : sizes + 2])
                program.args[at_r[part], at_k[part]] = held
                program.args[at_r[part], at_k[part], 0] = start + np.arange(len(part)) * table.shape[1]
                tables.append(table.reshape(-1))
                start += table.size
    program.opcode[at_r, at_k] = Op.CONVOLVE
    return np.concatenate(tables)


def _separable(size: list[int], sigma: Floats) -> tuple[npt.NDArray[np.int16], Floats]:
    """The tables of kernels of one size, and their arguments but for the start."""
    halves = [half_weights(size[axis], sigma[:, axis]) for axis in (0, 1)]
    # Weights fall from the centre on, but for the rounding: the last one that is not 0.
    radius = np.stack([(half.cumsum(axis=1) < _ONE).sum(axis=1) for half in halves], axis=1)
    apart = max(int(radius.max()) + 2, 4)
    table = np.zeros((len(sigma), 2, apart), np.int16)
    for axis, half in enumerate(halves):
        table[:, axis, : half.shape[1]] = half[:, :apart]
    held = np.zeros((len(sigma), NUM_ARGS))
    held[:, 1:3], held[:, 3], held[:, 4] = 2 * radius + 1, 1.0, apart
    return table.reshape(len(sigma), -1), held


def _sparse(size: list[int], line: Floats) -> tuple[npt.NDArray[np.int16], Floats]:
    """As ``_separable``, of the lines that ``motion_kernel`` draws."""
    kernel = motion_kernel(size[0], line[:, 0], line[:, 1])
    which, lines, columns = np.nonzero(kernel)
    count = np.bincount(which, minlength=len(line))
    even = (count + 1) // 2 * 2
    apart, half = max(int(even.max()), 4), size[0] // 2
    table = np.zeros((len(line), 3, apart), np.int16)
    place = np.arange(len(which)) - (count.cumsum() - count)[which]
    for part, values in enumerate((kernel[which, lines, columns], columns - half, lines - half)):
        table[which, part, place] = values
    held = np.zeros((len(line), NUM_ARGS))
    held[:, 1:3], held[:, 4], held[:, 5] = size[0], apart, even
    return table.reshape(len(line), -1), held


def half_weights(size: int, sigma: Floats) -> Ints:
    """int64[N, size // 2 + 1]: of torchvision's weights ``exp(-0.5 (i / sigma)**2) / total``, the centre's half, then
    those of one side; in units of 2**-15, so that they sum to 2**14.

    Rounded from the outside inwards so that every sum of outer weights is the nearest integer: a constant image stays
    as it is, and small weights are not lost, however many there are.
    """
    away = np.arange(size // 2, 0, -1) / sigma[:, None]
    outer = np.pad(np.exp(-0.5 * away * away), ((0, 0), (1, 0))).cumsum(axis=1)
    total = 2.0 * outer[:, -1:] + 1.0
    whole = np.floor(outer * (2 * _ONE / total) + 0.5).astype(np.int64)
    return np.concatenate([_ONE - whole[:, -1:], np.diff(whole, axis=1)[:, ::-1]], axis=1)


def motion_kernel(size: int, angle: Floats, direction: Floats) -> Ints:
    """int64[N, size, size]: lines through the centre at ``angle`` degrees (counter-clockwise), each of sum 2**14.

    ``direction`` in [-1, 1] shifts the weight to one end of the line, as Kornia's motion blur does: weights run
    linearly from ``(1 + direction) / 2`` to ``(1 - direction) / 2``. Each point of the line is shared bilinearly among
    the four cells around it, so that every angle gives a smooth kernel. Rounded so that the sum of a cell and all
    before it, row by row, is the nearest integer.
    """
    number, half = len(angle), size // 2
    step, angle = np.arange(size) - half, np.deg2rad(angle)[:, None]
    along = np.linspace(0.0, 1.0, size) if size > 1 else np.array([0.5])
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
    return np.diff(whole, axis=1, prepend=0).reshape(number, size, size)
