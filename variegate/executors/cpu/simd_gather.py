"""Vector blocks that gather pixels from anywhere in an image, and fill what lies outside.

A pixel is read by one 4-byte load, of which three bytes count.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from variegate.executors.cpu import simd as S
from variegate.executors.cpu.simd import I32, I64, planes_from, vector_block


@vector_block(I64, I64, I64, I64, I64)
def load_pixels(builder: Any, image: Any, offsets: Any, count: Any, ahead: Any, out: Any) -> Any:
    """The four bytes at each of ``count`` int32 byte offsets, rounded up to a multiple of 8 -> words at ``out``.

    By scalar loads: gather instructions took longer wherever they were measured, and take far longer where microcode
    keeps them from leaking data. What lies ``ahead`` bytes further is brought into the cache.
    """
    size, step = builder.shl(count, ir.Constant(S.i64, 2)), ir.Constant(S.i64, 32)
    with cgutils.for_range_slice(builder, ir.Constant(S.i64, 0), size, step, S.i64) as (at, _):
        for pair in range(0, 32, 8):
            place = S.after(builder, at, pair)
            # Two offsets by one load.
            both = S.load(builder, builder.add(offsets, place), S.i64)
            low, high = builder.and_(both, ir.Constant(S.i64, 0xFFFFFFFF)), builder.lshr(both, ir.Constant(S.i64, 32))
            if pair == 0:
                S.ask_for(builder, builder.add(builder.add(image, low), ahead))
            pixels = [S.load(builder, builder.add(image, offset), S.i32) for offset in (low, high)]
            for pixel, offset in zip(pixels, (0, 4), strict=True):
                S.store(builder, pixel, builder.add(builder.add(out, place), ir.Constant(S.i64, offset)))


@vector_block(I64, I64, I32, I32, I64, I64)
def fill_row(builder: Any, stages: Any, count: Any, slot: Any, colour: Any, planes: Any, stride: Any) -> Any:
    """Where ``stages``, int32[count] rounded up to a multiple of 16, hold ``slot``, the pixel gets a packed colour."""
    lanes = 16
    levels = [
        S.splat(builder, builder.trunc(builder.lshr(colour, ir.Constant(S.i32, 8 * c)), S.i8), lanes) for c in range(3)
    ]
    slots, addresses = S.splat(builder, slot, lanes), planes_from(builder, planes, stride)
    step = ir.Constant(S.i64, lanes)
    with cgutils.for_range_slice(builder, ir.Constant(S.i64, 0), count, step, S.i64) as (x, _):
        stage = S.load(builder, builder.add(stages, builder.shl(x, ir.Constant(S.i64, 2))), S.vector(S.i32, lanes))
        left_here = builder.icmp_signed("==", stage, slots)
        which = builder.bitcast(left_here, ir.IntType(lanes))
        with builder.if_then(builder.icmp_unsigned("!=", which, ir.Constant(which.type, 0))):
            for level, address in zip(levels, addresses, strict=True):
                place = builder.add(address, x)
                S.store(builder, builder.select(left_here, level, S.load(builder, place, level.type)), place)
