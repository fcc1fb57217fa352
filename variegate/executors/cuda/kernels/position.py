"""Operations that depend on where a pixel is: noise, erased rectangles, also in the normalised output."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.fetch import blue, green, red
from variegate.executors.cuda.kernels.noise import normals, unit, words
from variegate.executors.cuda.kernels.values import to_level
from variegate.program import ops


@triton.jit
def is_erased(buffer, at, x, y):
    """Whether a pixel lies in one of the instruction's rectangles (top, left, height, width)."""
    rectangles = (buffer + tl.load(at + L.ARG)).to(tl.pointer_type(tl.int32))
    erased = tl.full(x.shape, 0, tl.int1)
    for q in range(tl.load(at + L.COUNT)):
        top, left = tl.load(rectangles + 4 * q), tl.load(rectangles + 4 * q + 1)
        bottom, right = top + tl.load(rectangles + 4 * q + 2), left + tl.load(rectangles + 4 * q + 3)
        erased = erased | ((y >= top) & (y < bottom) & (x >= left) & (x < right))
    return erased


@triton.jit
def apply_position(
    buffer, at, real, header, constants, x, y, width, r, g, b, key_low, key_high, HAS_NOISE: tl.constexpr
):
    """One POSITION instruction."""
    op = tl.load(at + L.OP)
    if op == ops.Op.ERASE:
        erased = is_erased(buffer, at, x, y)
        fill = tl.load(at + L.FILL)
        new_r, new_g, new_b = red(fill) + 0 * r, green(fill) + 0 * r, blue(fill) + 0 * r
        if HAS_NOISE:
            if tl.load(real + 2) != 0.0:
                slot = tl.load(real + 3).to(tl.uint32)
                w0, w1, w2, _ = _words(header, x, y, width, slot, key_low, key_high)
                new_r, new_g, new_b = (w0 >> 24).to(tl.int32), (w1 >> 24).to(tl.int32), (w2 >> 24).to(tl.int32)
        r = tl.where(erased, new_r, r)
        g = tl.where(erased, new_g, g)
        b = tl.where(erased, new_b, b)
    elif HAS_NOISE:
        if op == ops.Op.SALT_AND_PEPPER:
            slot = tl.load(real + 2).to(tl.uint32)
            w0, w1, _, _ = _words(header, x, y, width, slot, key_low, key_high)
            is_hit = unit(w0) < tl.load(real).to(tl.float32)
            extreme = tl.where(unit(w1) < tl.load(real + 1).to(tl.float32), 255, 0)
            r = tl.where(is_hit, extreme, r)
            g = tl.where(is_hit, extreme, g)
            b = tl.where(is_hit, extreme, b)
        else:
            first, second = tl.load(real).to(tl.float32), tl.load(real + 1).to(tl.float32)
            is_gaussian = op == ops.Op.GAUSSIAN_NOISE
            slot = tl.load(real + tl.where(is_gaussian, 2, 1)).to(tl.uint32)
            n0, n1, n2 = _normals(header, constants, x, y, width, slot, key_low, key_high)
            r = _add_noise(r, n0, first, second, is_gaussian)
            g = _add_noise(g, n1, first, second, is_gaussian)
            b = _add_noise(b, n2, first, second, is_gaussian)
    return r, g, b


@triton.jit
def _add_noise(level, n, first, second, is_gaussian):
    value = level.to(tl.float32)
    gaussian = 255.0 * (first + second * n)
    shot = tl.sqrt_rn(tl.maximum(value * first, 0.0)) * n
    # Truncation is the floor here: what is negative is clipped.
    return to_level(value + tl.where(is_gaussian, gaussian, shot) + 0.5)


@triton.jit
def _words(header, x, y, width, slot, key_low, key_high):
    id_low, id_high = tl.load(header + L.ID_LOW).to(tl.uint32), tl.load(header + L.ID_HIGH).to(tl.uint32)
    return words(y * width + x, slot, id_low, id_high, key_low, key_high)


@triton.jit
def _normals(header, constants, x, y, width, slot, key_low, key_high):
    id_low, id_high = tl.load(header + L.ID_LOW).to(tl.uint32), tl.load(header + L.ID_HIGH).to(tl.uint32)
    return normals(constants + L.SEGMENTS, y * width + x, slot, id_low, id_high, key_low, key_high)


@triton.jit
def erase_normalized(
    buffer, code, args, header, constants, begin, end, x, y, width, r, g, b, key_low, key_high, HAS_NOISE: tl.constexpr
):
    """The ERASE instructions after Normalize, on float32 values."""
    for slot in range(begin, end):
        at = code + slot * L.CODE
        if tl.load(at + L.CLASS) == L.POSITION_NORMALIZED:
            real = args + slot * 8
            erased = is_erased(buffer, at, x, y)
            new_r, new_g, new_b = (
                tl.load(real + 4).to(tl.float32) + 0.0 * r,
                tl.load(real + 5).to(tl.float32) + 0.0 * r,
                tl.load(real + 6).to(tl.float32) + 0.0 * r,
            )
            if HAS_NOISE:
                if tl.load(real + 2) != 0.0:
                    noise_slot = tl.load(real + 3).to(tl.uint32)
                    new_r, new_g, new_b = _normals(header, constants, x, y, width, noise_slot, key_low, key_high)
            r = tl.where(erased, new_r, r)
            g = tl.where(erased, new_g, g)
            b = tl.where(erased, new_b, b)
    return r, g, b
