"""Blurs become convolutions, whose integer weights every executor shares."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from variegate.program.ops import IS_BLUR, Op
from variegate.program.program import Program

# Fraction bits: of a full kernel's weights, and of the half of a separable one's; and of levels between its two passes.
# A sum of two levels with LEVEL_BITS, and a weight, each fit into 16 bits; any number of products into 32.
WEIGHT_BITS, LEVEL_BITS = 14, 6
_ONE = 1 << WEIGHT_BITS
# Full kernels that are worked out at a time hold at most so many cells together.
_MOST_CELLS = 1 << 20

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def blurs_to_kernels(program: Program) -> list[npt.NDArray[np.int16]]:
    """CONVOLVE holds (table, kernel_x, kernel_y, separable, cells) -> the tables, int16.

    Of a separable one: ``half_weights`` along x, then those along y, as far as they are not 0, each with zeros behind
    it up to ``room`` of its radius. Else: the weights of ``cells`` cells, an even number, then their columns and then
    their lines from the centre.
    """
    kernels: list[npt.NDArray[np.int16]] = []
    at_r, at_k = np.nonzero(IS_BLUR[program.opcode])
    if not len(at_r):
        return kernels
    args, op = program.args[at_r, at_k], program.opcode[at_r, at_k]
    # One kernel at a time would cost about as much as the pixels of a small image.
    for gaussian in (True, False):
        chosen = np.flatnonzero((op == Op.GAUSSIAN_BLUR) == gaussian)
        sizes = args[chosen, : 2 if gaussian else 1].astype(np.int64)
        for size in np.unique(sizes, axis=0):
            same = chosen[(sizes == size).all(axis=1)]
            made = _separable(*size, args[same, 2:4]) if gaussian else _sparse(*size, args[same, 1:3])
            for i, (table, radius_x, radius_y, cells) in zip(same, made, strict=True):
                held = (len(kernels), 2 * radius_x + 1, 2 * radius_y + 1, gaussian, cells, 0, 0, 0)
                program.args[at_r[i], at_k[i]] = held
                kernels.append(table)
    program.opcode[at_r, at_k] = Op.CONVOLVE
    return kernels


def _separable(kernel_x: int, kernel_y: int, sigma: Floats) -> Iterator[tuple[npt.NDArray[np.int16], int, int, int]]:
    along_x, along_y = half_weights(kernel_x, sigma[:, 0]), half_weights(kernel_y, sigma[:, 1])
    padded_x, padded_y = (np.pad(half, ((0, 0), (0, 3))).astype(np.int16) for half in (along_x, along_y))
    # Weights fall from the centre on, but for the rounding: the last one that is not 0.
    last_x, last_y = ((half.cumsum(axis=1) < _ONE).sum(axis=1).tolist() for half in (along_x, along_y))
    for i, (x, y) in enumerate(zip(last_x, last_y, strict=True)):
        yield np.concatenate([padded_x[i, : room(x)], padded_y[i, : room(y)]]), x, y, 0


def room(radius: int) -> int:
    """Weights that are stored of a separable blur's axis: an even number, and never fewer than four."""
    return max((radius + 2) // 2 * 2, 4)


def _sparse(size: int, line: Floats) -> Iterator[tuple[npt.NDArray[np.int16], int, int, int]]:
    step = max(1, _MOST_CELLS // (size + 1) ** 2)
    for begin in range(0, len(line), step):
        for kernel in motion_kernel(size, *line[begin : begin + step].T):
            lines, columns = np.nonzero(kernel)
            cells = (len(lines) + 1) // 2 * 2
            table = np.zeros((3, cells), np.int16)
            table[:, : len(lines)] = kernel[lines, columns], columns - size // 2, lines - size // 2
            yield table.reshape(-1), size // 2, size // 2, cells


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
