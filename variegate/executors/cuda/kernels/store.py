"""The end of a tile: normalise, erase after that, cast, store planar or interleaved."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.position import erase_normalized


@triton.jit
def load_key(header):
    """The row's stream key, two uint32."""
    key = tl.load(header + L.KEY)
    return key.to(tl.uint32), (key >> 32).to(tl.uint32)


@triton.jit
def store_result(
    buffer,
    code,
    args,
    header,
    constants,
    begin,
    end,
    x,
    y,
    height,
    width,
    inside,
    r,
    g,
    b,
    key_low,
    key_high,
    HAS_NOISE: tl.constexpr,
    RESULT: tl.constexpr,
    IS_PLANAR: tl.constexpr,
):
    """Levels ``r, g, b`` to the result at ``header``'s target.

    ``constants``: float32 scale[3], bias[3] for one channel, then for three; the table of normal numbers behind them.
    """
    channels = tl.load(header + L.CHANNELS).to(tl.int32)
    target = tl.load(header + L.TARGET).to(tl.pointer_type(RESULT))
    if IS_PLANAR:
        at = (y * width + x).to(tl.uint32)
        step = height.to(tl.int64) * width
    else:
        at = ((y * width + x) * channels).to(tl.uint32)
        step = tl.full([], 1, tl.int64)
    if RESULT == tl.uint8:
        tl.store(target + at, r.to(tl.uint8), mask=inside)
        if channels == 3:
            tl.store(target + step + at, g.to(tl.uint8), mask=inside)
            tl.store(target + 2 * step + at, b.to(tl.uint8), mask=inside)
    else:
        scale = constants
        if channels == 3:
            scale += 6
        real_r = r.to(tl.float32) * tl.load(scale) + tl.load(scale + 3)
        real_g = g.to(tl.float32) * tl.load(scale + 1) + tl.load(scale + 4)
        real_b = b.to(tl.float32) * tl.load(scale + 2) + tl.load(scale + 5)
        if tl.load(header + L.ERASES) != 0:
            real_r, real_g, real_b = erase_normalized(
                buffer, code, args, header, constants, begin, end, x, y, width, real_r, real_g, real_b, key_low,
                key_high, HAS_NOISE,
            )  # fmt: skip
        tl.store(target + at, real_r.to(RESULT), mask=inside)
        if channels == 3:
            tl.store(target + step + at, real_g.to(RESULT), mask=inside)
            tl.store(target + 2 * step + at, real_b.to(RESULT), mask=inside)
