"""Vector blocks that gather pixels from anywhere in an image, weigh taps, and fill what lies outside.

A pixel is read by one 4-byte load, of which three bytes count.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from variegate.executors.cpu.simd import I32, I64, ask_for, load, planes_from, splat, store, vector, vector_block

_i8, _i32, _i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _gather_words(builder: Any, image: Any, offset: Any, last: Any) -> Any:
    """16 pixels at byte ``offset`` (clamped to 0..last) as words whose low three bytes are R, G, B: one load each."""
    lanes = 16
    words = vector(_i32, lanes)
    limit, zero = splat(builder, last, lanes), ir.Constant(words, [0] * lanes)
    offset = builder.select(builder.icmp_signed(">", offset, zero), offset, zero)
    safe = builder.select(builder.icmp_signed("<", offset, limit), offset, limit)
    # The last pixel of an image is read one byte early and shifted back, so that no load leaves the image.
    shift = builder.shl(builder.sub(offset, safe), ir.Constant(words, [3] * lanes))
    address = builder.add(builder.sext(safe, vector(_i64, lanes)), splat(builder, image, lanes))
    pointers = builder.inttoptr(address, vector(_i32.as_pointer(), lanes))
    mask = vector(ir.IntType(1), lanes)
    gather = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(words, [pointers.type, _i32, mask, words]),
        "llvm.masked.gather.v16i32.v16p0",
    )
    pixel = builder.call(gather, [pointers, ir.Constant(_i32, 1), ir.Constant(mask, [1] * lanes), zero])
    # More than one pixel beyond the end only happens to lanes that nobody looks at; their shift may be anything below
    # 32.
    return builder.lshr(pixel, builder.and_(shift, ir.Constant(words, [31] * lanes)))


@vector_block(I64, I64, I64, I64, I64)
def load_pixels(builder: Any, image: Any, offsets: Any, count: Any, ahead: Any, out: Any) -> Any:
    """The four bytes at each of ``count`` int32 byte offsets, rounded up to a multiple of 8 -> words at ``out``.

    By scalar loads: gather instructions took longer wherever they were measured, and take far longer where microcode
    keeps them from leaking data. What lies ``ahead`` bytes further is brought into the cache.
    """
    size, step = builder.shl(count, ir.Constant(_i64, 2)), ir.Constant(_i64, 32)
    with cgutils.for_range_slice(builder, ir.Constant(_i64, 0), size, step, _i64) as (at, _):
        for pair in range(0, 32, 8):
            place = builder.add(at, ir.Constant(_i64, pair))
            # Two offsets by one load.
            both = load(builder, builder.add(offsets, place), _i64)
            low, high = builder.and_(both, ir.Constant(_i64, 0xFFFFFFFF)), builder.lshr(both, ir.Constant(_i64, 32))
            if pair == 0:
                ask_for(builder, builder.add(builder.add(image, low), ahead))
            pixels = [load(builder, builder.add(image, offset), _i32) for offset in (low, high)]
            for pixel, offset in zip(pixels, (0, 4), strict=True):
                store(builder, pixel, builder.add(builder.add(out, place), ir.Constant(_i64, offset)))


@vector_block(I64, I64, I32, I32, I64, I64)
def fill_row(builder: Any, stages: Any, count: Any, slot: Any, colour: Any, planes: Any, stride: Any) -> Any:
    """Where ``stages``, int32[count] rounded up to a multiple of 16, hold ``slot``, the pixel gets a packed colour."""
    lanes = 16
    levels = [
        splat(builder, builder.trunc(builder.lshr(colour, ir.Constant(_i32, 8 * c)), _i8), lanes) for c in range(3)
    ]
    slots, addresses = splat(builder, slot, lanes), planes_from(builder, planes, stride)
    step = ir.Constant(_i64, lanes)
    with cgutils.for_range_slice(builder, ir.Constant(_i64, 0), count, step, _i64) as (x, _):
        stage = load(builder, builder.add(stages, builder.shl(x, ir.Constant(_i64, 2))), vector(_i32, lanes))
        left_here = builder.icmp_signed("==", stage, slots)
        which = builder.bitcast(left_here, ir.IntType(lanes))
        with builder.if_then(builder.icmp_unsigned("!=", which, ir.Constant(which.type, 0))):
            for level, address in zip(levels, addresses, strict=True):
                place = builder.add(address, x)
                store(builder, builder.select(left_here, level, load(builder, place, level.type)), place)


@vector_block(I64, I64, I64, I64, I64, I32, I64)
def weigh_block(
    builder: Any, image: Any, offsets: Any, weights: Any, stride: Any, taps: Any, last: Any, target: Any
) -> Any:
    """16 output pixels of a horizontal resize: sums of ``taps`` RGB pixels times weights -> 16 RGBX pixels at
    ``target``.

    ``offsets``: int32[16] byte offset of each output's first tap; ``weights``: int32[taps][16], rows ``stride`` bytes
    apart, 22 fraction bits. Rounded and clipped as Pillow's ImagingResampleHorizontal_8bpc.
    """
    lanes = 16
    words = vector(_i32, lanes)
    byte = ir.Constant(words, [255] * lanes)
    half = ir.Constant(words, [1 << 21] * lanes)
    totals = [cgutils.alloca_once_value(builder, half) for _ in range(3)]
    first = load(builder, offsets, words)
    with cgutils.for_range(builder, taps) as loop:
        weight = load(builder, builder.add(weights, builder.mul(loop.index, stride)), words)
        step = builder.trunc(builder.mul(loop.index, ir.Constant(_i64, 3)), _i32)
        pixel = _gather_words(builder, image, builder.add(first, splat(builder, step, lanes)), last)
        for channel, total in enumerate(totals):
            level = builder.lshr(pixel, ir.Constant(words, [8 * channel] * lanes))
            product = builder.mul(builder.and_(level, byte), weight)
            builder.store(builder.add(builder.load(total), product), total)
    zero, packed = ir.Constant(words, [0] * lanes), ir.Constant(words, [0] * lanes)
    for channel, total in enumerate(totals):
        value = builder.ashr(builder.load(total), ir.Constant(words, [22] * lanes))
        value = builder.select(builder.icmp_signed("<", value, zero), zero, value)
        value = builder.select(builder.icmp_signed(">", value, byte), byte, value)
        packed = builder.or_(packed, builder.shl(value, ir.Constant(words, [8 * channel] * lanes)))
    store(builder, packed, target)
