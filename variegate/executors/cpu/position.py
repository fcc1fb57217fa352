"""Operations that depend on where a pixel is: noise by Philox, erased rectangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cpu.kernel import floats_at, inlined
from variegate.executors.cpu.layout import FLOATS_CHW
from variegate.program.compiled import inner_kernel
from variegate.program.ops import Op
from variegate.program.rng import philox_block

_GAUSSIAN, _SALT, _SHOT, _ERASE = (int(op) for op in (Op.GAUSSIAN_NOISE, Op.SALT_AND_PEPPER, Op.SHOT_NOISE, Op.ERASE))
_TWO_PI = np.float32(2.0 * np.pi)
_UNIT = np.float32(2.0**-24)


@inlined
def _unit(word: Any) -> Any:
    return np.float32(word >> np.uint32(8)) * _UNIT


@inner_kernel()
def _words(pixel: Any, slot: Any, noise: Any) -> Any:
    low, high = noise.sample_id & np.uint64(0xFFFFFFFF), noise.sample_id >> np.uint64(32)
    words = philox_block(
        np.uint32(pixel), np.uint32(slot), np.uint32(low), np.uint32(high), noise.key_low, noise.key_high
    )
    return np.uint32(words[0]), np.uint32(words[1]), np.uint32(words[2]), np.uint32(words[3])


@inner_kernel()
def _normals(pixel: Any, slot: Any, noise: Any) -> Any:
    """Three standard normal float32 of one pixel, by Box and Muller."""
    w0, w1, w2, w3 = _words(pixel, slot, noise)
    radius = np.sqrt(np.float32(-2.0) * np.log(_unit(w0) + _UNIT))
    other = np.sqrt(np.float32(-2.0) * np.log(_unit(w2) + _UNIT))
    angle = _TWO_PI * _unit(w1)
    return radius * np.cos(angle), radius * np.sin(angle), other * np.cos(_TWO_PI * _unit(w3))


@inlined
def _clip(value: Any) -> Any:
    return np.uint8(min(max(np.floor(value + np.float32(0.5)), np.float32(0.0)), np.float32(255.0)))


@inner_kernel()
def add_noise(op: Any, a: Any, y: Any, width: Any, channels: Any, noise: Any, planes: Any) -> None:
    """GAUSSIAN_NOISE, SHOT_NOISE or SALT_AND_PEPPER on row ``y``, in place."""
    slot = int(a[1]) if op == _SHOT else int(a[2])
    for x in range(width):
        pixel = y * width + x
        if op == _SALT:
            w0, w1, _, _ = _words(pixel, slot, noise)
            if _unit(w0) < np.float32(a[0]):
                extreme = 255 if _unit(w1) < np.float32(a[1]) else 0
                for c in range(channels):
                    planes[c, x] = extreme
            continue
        normals = _normals(pixel, slot, noise)
        for c in range(channels):
            level = np.float32(planes[c, x])
            if op == _GAUSSIAN:
                shift = np.float32(255.0) * (np.float32(a[0]) + np.float32(a[1]) * normals[c])
            else:
                shift = np.sqrt(level * np.float32(a[0])) * normals[c]
            planes[c, x] = _clip(level + shift)


@inner_kernel()
def erase(a: Any, fill: Any, rectangles: Any, y: Any, width: Any, channels: Any, noise: Any, planes: Any) -> None:
    """ERASE on row ``y``, in place: with a colour, or with noise."""
    for q in range(int(a[0]), int(a[0]) + int(a[1])):
        if rectangles[q, 0] <= y < rectangles[q, 0] + rectangles[q, 2]:
            first = max(0, rectangles[q, 1])
            end = max(first, min(width, rectangles[q, 1] + rectangles[q, 3]))
            if a[2] == 0.0:
                for c in range(channels):
                    planes[c, first:end] = fill[c]
                continue
            for x in range(first, end):
                words = _words(y * width + x, int(a[3]), noise)
                for c in range(channels):
                    planes[c, x] = words[c] >> np.uint32(24)


@inner_kernel()
def erase_normalized(row: Any, begin: Any, end: Any, target: Any) -> None:
    """Each ERASE of slots begin..end that comes after Normalize: constants or standard normal noise in the float
    result.
    """
    height, width, channels = target.height, target.width, target.channels
    out, rectangles = floats_at(target.address, height * width * channels), row.side.rectangles
    pixel_step, channel_step = (1, height * width) if target.kind == FLOATS_CHW else (channels, 1)
    for k in range(begin, end):
        a = row.args[k]
        if row.opcode[k] != _ERASE or a[7] == 0.0:
            continue
        for q in range(int(a[0]), int(a[0]) + int(a[1])):
            top, left = max(0, rectangles[q, 0]), max(0, rectangles[q, 1])
            bottom = min(height, rectangles[q, 0] + rectangles[q, 2])
            right = min(width, rectangles[q, 1] + rectangles[q, 3])
            for y in range(top, bottom):
                if a[2] == 0.0:
                    for c in range(channels):
                        value, at = np.float32(a[4 + c]), c * channel_step + y * width * pixel_step
                        for x in range(left, right):
                            out[at + x * pixel_step] = value
                    continue
                for x in range(left, right):
                    pixel = y * width + x
                    normals = _normals(pixel, int(a[3]), row.noise)
                    for c in range(channels):
                        out[c * channel_step + pixel * pixel_step] = normals[c]
