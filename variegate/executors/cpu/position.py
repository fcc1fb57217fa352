"""Operations that depend on where a pixel is: noise by Philox, erased rectangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import pixel_kernel
from variegate.program.ops import Op
from variegate.program.rng import philox_block

_GAUSSIAN, _SALT, _SHOT, _ERASE = (int(op) for op in (Op.GAUSSIAN_NOISE, Op.SALT_AND_PEPPER, Op.SHOT_NOISE, Op.ERASE))
_TWO_PI = np.float32(2.0 * np.pi)
_UNIT = np.float32(2.0**-24)


@pixel_kernel(inline="always")
def _unit(word: Any) -> Any:
    return np.float32(word >> np.uint32(8)) * _UNIT


@pixel_kernel
def _words(pixel: Any, slot: Any, sample_id: Any, key: Any) -> Any:
    return philox_block(
        np.uint32(pixel),
        np.uint32(slot),
        np.uint32(sample_id & np.uint64(0xFFFFFFFF)),
        np.uint32(sample_id >> np.uint64(32)),
        key[0],
        key[1],
    )


@pixel_kernel
def normals(pixel: Any, slot: Any, sample_id: Any, key: Any) -> Any:
    """Three standard normal float32 of one pixel, by Box and Muller."""
    w0, w1, w2, w3 = _words(pixel, slot, sample_id, key)
    radius = np.sqrt(np.float32(-2.0) * np.log(_unit(w0) + _UNIT))
    other = np.sqrt(np.float32(-2.0) * np.log(_unit(w2) + _UNIT))
    angle = _TWO_PI * _unit(w1)
    return radius * np.cos(angle), radius * np.sin(angle), other * np.cos(_TWO_PI * _unit(w3))


@pixel_kernel
def _clip(value: Any) -> Any:
    return np.uint8(min(max(np.floor(value + np.float32(0.5)), np.float32(0.0)), np.float32(255.0)))


@pixel_kernel
def apply_position(
    op: Any,
    a: Any,
    fill: Any,
    rectangles: Any,
    y: Any,
    width: Any,
    channels: Any,
    sample_id: Any,
    key: Any,
    planes: Any,
) -> None:
    """One operation on row ``y``, in place."""
    if op == _ERASE:
        for q in range(int(a[0]), int(a[0]) + int(a[1])):
            if rectangles[q, 0] <= y < rectangles[q, 0] + rectangles[q, 2]:
                first = max(0, rectangles[q, 1])
                end = max(first, min(width, rectangles[q, 1] + rectangles[q, 3]))
                if a[2] != 0.0:
                    _erase_with_noise(planes, channels, y, width, first, end, int(a[3]), sample_id, key)
                else:
                    for c in range(channels):
                        planes[c, first:end] = fill[c]
        return
    slot = int(a[1]) if op == _SHOT else int(a[2])
    for x in range(width):
        pixel = y * width + x
        if op == _SALT:
            w0, w1, _, _ = _words(pixel, slot, sample_id, key)
            if _unit(w0) < np.float32(a[0]):
                extreme = 255 if _unit(w1) < np.float32(a[1]) else 0
                for c in range(channels):
                    planes[c, x] = extreme
            continue
        n0, n1, n2 = normals(pixel, slot, sample_id, key)
        for c in range(channels):
            n = n0 if c == 0 else (n1 if c == 1 else n2)
            level = np.float32(planes[c, x])
            if op == _GAUSSIAN:
                shift = np.float32(255.0) * (np.float32(a[0]) + np.float32(a[1]) * n)
            else:
                shift = np.sqrt(level * np.float32(a[0])) * n
            planes[c, x] = _clip(level + shift)


@pixel_kernel
def _erase_with_noise(
    planes: Any, channels: Any, y: Any, width: Any, first: Any, end: Any, slot: Any, sample_id: Any, key: Any
) -> None:
    for x in range(first, end):
        w0, w1, w2, _ = _words(y * width + x, slot, sample_id, key)
        planes[0, x] = w0 >> np.uint32(24)
        if channels == 3:
            planes[1, x] = w1 >> np.uint32(24)
            planes[2, x] = w2 >> np.uint32(24)


@pixel_kernel
def erase_normalized(
    a: Any, rectangles: Any, height: Any, width: Any, channels: Any, planar: Any, sample_id: Any, key: Any, out: Any
) -> None:
    """ERASE after Normalize: constants or standard normal noise written into the float output."""
    for q in range(int(a[0]), int(a[0]) + int(a[1])):
        top, left = max(0, rectangles[q, 0]), max(0, rectangles[q, 1])
        bottom = min(height, rectangles[q, 0] + rectangles[q, 2])
        right = min(width, rectangles[q, 1] + rectangles[q, 3])
        for y in range(top, bottom):
            for x in range(left, right):
                pixel = y * width + x
                if a[2] != 0.0:
                    v0, v1, v2 = normals(pixel, int(a[3]), sample_id, key)
                else:
                    v0, v1, v2 = np.float32(a[4]), np.float32(a[5]), np.float32(a[6])
                for c in range(channels):
                    value = v0 if c == 0 else (v1 if c == 1 else v2)
                    out[c * height * width + pixel if planar else pixel * channels + c] = value
