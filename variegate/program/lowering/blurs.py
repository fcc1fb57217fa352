"""Blurs become convolutions, whose weights every executor shares."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from variegate.program.ops import IS_BLUR, Op
from variegate.program.program import Program


def blurs_to_kernels(program: Program) -> list[npt.NDArray[np.float32]]:
    """CONVOLVE holds (table, kernel_x, kernel_y, separable) -> the tables; a separable one is the row weights, then the
    column's.
    """
    kernels: list[npt.NDArray[np.float32]] = []
    for r, k in zip(*np.nonzero(IS_BLUR[program.opcode]), strict=True):
        a = program.args[r, k]
        if program.opcode[r, k] == Op.GAUSSIAN_BLUR:
            kx, ky, separable = int(a[0]), int(a[1]), 1
            kernels.append(np.concatenate([gaussian_kernel(kx, a[2]), gaussian_kernel(ky, a[3])]))
        else:
            kx, ky, separable = int(a[0]), int(a[0]), 0
            kernels.append(motion_kernel(kx, a[1], a[2]).reshape(-1))
        program.opcode[r, k] = Op.CONVOLVE
        a[:] = (len(kernels) - 1, kx, ky, separable, 0, 0, 0, 0)
    return kernels


@lru_cache(maxsize=64)
def gaussian_kernel(size: int, sigma: float) -> npt.NDArray[np.float32]:
    """float32[size]: torchvision's 1-D weights ``exp(-0.5 (i / sigma)**2)`` for i centred on 0, normalised to sum 1."""
    half = np.float32((size - 1) * 0.5)
    x = np.arange(size, dtype=np.float32) - half
    weight = np.exp(np.float32(-0.5) * (x / np.float32(sigma)) ** 2)
    return _kept(np.asarray(weight / weight.sum(), dtype=np.float32))


@lru_cache(maxsize=16)
def motion_kernel(size: int, angle: float, direction: float) -> npt.NDArray[np.float32]:
    """float32[size, size]: a line through the centre at ``angle`` degrees (counter-clockwise), sum 1.

    ``direction`` in [-1, 1] shifts the weight to one end of the line, as Kornia's motion blur does: weights run
    linearly from ``(1 + direction) / 2`` to ``(1 - direction) / 2``. Each point of the line is shared bilinearly among
    the four cells around it, so that every angle gives a smooth kernel.
    """
    half = size // 2
    step = np.arange(size) - half
    weight = np.linspace((1.0 + direction) / 2.0, (1.0 - direction) / 2.0, size)
    x = half + step * np.cos(np.deg2rad(angle))
    y = half - step * np.sin(np.deg2rad(angle))
    # Cosines of 90 degrees are 6e-17, not 0: without rounding, such dust would light a neighbour cell.
    x, y = np.round(x, 9), np.round(y, 9)
    x0, y0 = np.floor(x).astype(int), np.floor(y).astype(int)
    kernel = np.zeros((size + 1, size + 1))
    for dy in (0, 1):
        for dx in (0, 1):
            share = (1.0 - np.abs(x - x0 - dx)) * (1.0 - np.abs(y - y0 - dy))
            np.add.at(kernel, (y0 + dy, x0 + dx), weight * share)
    kernel = kernel[:size, :size]
    return _kept(np.asarray(kernel / kernel.sum(), dtype=np.float32))


def _kept(weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """For all who ask for the same blur: nobody may write to it."""
    weights.flags.writeable = False
    return weights
