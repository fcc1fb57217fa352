"""Sharpness and blurs: a row of the filtered image, from an image held in padded planes."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu.kernel import address_of
from variegate.executors.cpu.simd_colour import LANES, sharpen_block
from variegate.program.compiled import inner_kernel
from variegate.program.coordinate_tables import reflect
from variegate.program.ops import Op

_SHARPNESS = int(Op.SHARPNESS)


@inner_kernel(forceinline=True)
def filter_row(row: Any, slot: Any, height: Any, width: Any, y: Any, channels: Any, scratch: Any) -> None:
    """Row ``y`` of the filter at ``slot``, from ``scratch.plane_image``."""
    stride, op, a, planes = scratch.planes.shape[1], row.opcode[slot], row.args[slot], scratch.planes
    image = scratch.plane_image[: channels * height * stride].reshape((channels, height, stride))
    for c in range(channels):
        if op == _SHARPNESS:
            _sharpen_row(image[c], height, width, y, nb.float32(a[0]), planes[c])
        else:
            weights, size = row.side.kernels[row.side.kernel_start[int(a[0])] :], (int(a[1]), int(a[2]))
            if a[3] != 0.0:
                _blur_row(image[c], height, width, y, weights, size, scratch.sums, planes[c])
            else:
                _convolve_row(image[c], height, width, y, weights, size, scratch.sums, planes[c])


@inner_kernel()
def _sharpen_row(image: Any, height: Any, width: Any, y: Any, factor: Any, target: Any) -> None:
    """``image``: uint8[H, Wp], one padded plane. Pillow's blend with SMOOTH; the one-pixel border stays as it is."""
    row = image[y]
    if y == 0 or y == height - 1 or height < 3 or width < 3:
        for x in range(width):
            target[x] = row[x]
        return
    above, at, below, out = address_of(image[y - 1]), address_of(row), address_of(image[y + 1]), address_of(target)
    for x in range(1, width - 1, LANES):
        sharpen_block(above + x, at + x, below + x, factor, out + x)
    target[0], target[width - 1] = row[0], row[width - 1]


@inner_kernel()
def _blur_row(image: Any, height: Any, width: Any, y: Any, weights: Any, size: Any, sums: Any, target: Any) -> None:
    """Separable blur, reflect padding: columns of the needed rows first, then along the row, rounded half to even."""
    kx, ky = size
    rx, ry = kx // 2, ky // 2
    for x in range(width + 2 * rx):
        sums[x] = 0.0
    for j in range(ky):
        row, weight = image[reflect(y + j - ry, height)], weights[kx + j]
        for x in range(width):
            sums[rx + x] += weight * np.float32(row[x])
    for i in range(rx):
        sums[i] = sums[rx + reflect(i - rx, width)]
        sums[rx + width + i] = sums[rx + reflect(width + i, width)]
    for x in range(width):
        total = np.float32(0.0)
        for i in range(kx):
            total += weights[i] * sums[x + i]
        target[x] = np.uint8(np.rint(min(max(total, np.float32(0.0)), np.float32(255.0))))


@inner_kernel()
def _convolve_row(image: Any, height: Any, width: Any, y: Any, weights: Any, size: Any, sums: Any, target: Any) -> None:
    """A full kx x ky kernel, edge padding, rounded half up. Kernel cells of zero weight cost nothing."""
    kx, ky = size
    rx, ry = kx // 2, ky // 2
    for x in range(width):
        sums[x] = 0.5
    for j in range(ky):
        row = image[min(max(y + j - ry, 0), height - 1)]
        for i in range(kx):
            weight = weights[j * kx + i]
            if weight == 0.0:
                continue
            shift = i - rx
            first, end = min(max(0, -shift), width), max(min(width, width - shift), 0)
            for x in range(first):
                sums[x] += weight * np.float32(row[0])
            for x in range(first, end):
                sums[x] += weight * np.float32(row[x + shift])
            for x in range(max(first, end), width):
                sums[x] += weight * np.float32(row[width - 1])
    for x in range(width):
        target[x] = np.uint8(min(max(sums[x], np.float32(0.0)), np.float32(255.0)))
