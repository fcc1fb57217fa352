"""Vector blocks that gather: 16 pixels from anywhere in an image, chains of maps walked back, taps weighed.

A pixel is read by one 4-byte load, of which three bytes count.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from variegate.executors.cpu.simd import load, planes_from, splat, store, vector

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


def _gather(builder: Any, image: Any, offset: Any, last: Any, planes: Any) -> None:
    """16 pixels at byte ``offset`` -> three planes."""
    pixel = _gather_words(builder, image, offset, last)
    for channel, plane in enumerate(planes):
        level = builder.lshr(pixel, ir.Constant(pixel.type, [8 * channel] * 16))
        store(builder, builder.trunc(level, vector(_i8, 16)), plane)


@intrinsic
def gather_rgb(typing_context: Any, image: Any, offsets: Any, last: Any, planes: Any, stride: Any) -> Any:
    """16 pixels at the int32 byte offsets stored at ``offsets`` -> three planes. ``last``: image bytes - 4."""
    signature = types.void(types.int64, types.int64, types.int32, types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        offset = load(builder, args[1], vector(_i32, 16))
        _gather(builder, args[0], offset, args[2], planes_from(builder, *args[3:]))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def gather_rgb_affine(
    typing_context: Any, image: Any, x: Any, y: Any, dx: Any, dy: Any, width: Any, last: Any, planes: Any, stride: Any
) -> Any:
    """16 pixels at 16.16 coordinates ``(x + i dx, y + i dy)``, i = 0..15 -> three planes. ``last``: image bytes - 4."""
    word = types.int32
    signature = types.void(types.int64, word, word, word, word, word, word, types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = 16
        words = vector(_i32, lanes)
        step, sixteen = ir.Constant(words, list(range(lanes))), ir.Constant(words, [16] * lanes)
        x, y, dx, dy, width = (splat(builder, args[i], lanes) for i in range(1, 6))
        column = builder.ashr(builder.add(x, builder.mul(dx, step)), sixteen)
        line = builder.ashr(builder.add(y, builder.mul(dy, step)), sixteen)
        pixel = builder.add(builder.mul(line, width), column)
        offset = builder.mul(pixel, ir.Constant(words, [3] * lanes))
        _gather(builder, args[0], offset, args[6], planes_from(builder, *args[7:]))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def step_back(typing_context: Any, column: Any, line: Any, stage: Any, mapping: Any) -> Any:
    """16 int32 coordinates (at ``column``, ``line``) through one 16.16 map, in place.

    ``mapping``: int32[11] a, b, c, d, e, f, top, left, bottom, right, slot. A pixel that is outside for the first
    time gets ``slot`` at ``stage``; whatever is outside goes on from (0, 0).
    """
    signature = types.void(types.int64, types.int64, types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = 16
        words = vector(_i32, lanes)
        x, y, left_at = (load(builder, args[i], words) for i in range(3))
        a, b, c, d, e, f, top, left, bottom, right, slot = (
            splat(builder, load(builder, builder.add(args[3], ir.Constant(_i64, 4 * i)), _i32), lanes)
            for i in range(11)
        )
        sixteen, zero = ir.Constant(words, [16] * lanes), ir.Constant(words, [0] * lanes)
        u = builder.ashr(builder.add(builder.add(builder.mul(a, x), builder.mul(b, y)), c), sixteen)
        v = builder.ashr(builder.add(builder.add(builder.mul(d, x), builder.mul(e, y)), f), sixteen)
        inside = builder.and_(
            builder.and_(builder.icmp_signed(">=", u, left), builder.icmp_signed("<", u, right)),
            builder.and_(builder.icmp_signed(">=", v, top), builder.icmp_signed("<", v, bottom)),
        )
        still_in = builder.or_(inside, builder.icmp_signed(">=", left_at, zero))
        store(builder, builder.select(still_in, left_at, slot), args[2])
        store(builder, builder.select(inside, u, zero), args[0])
        store(builder, builder.select(inside, v, zero), args[1])
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def begin_walk(typing_context: Any, x: Any, y: Any, column: Any, line: Any, stage: Any) -> Any:
    """16 output coordinates ``(x + i, y)``, none outside yet."""
    signature = types.void(types.int32, types.int32, types.int64, types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = 16
        words = vector(_i32, lanes)
        store(builder, builder.add(splat(builder, args[0], lanes), ir.Constant(words, list(range(lanes)))), args[2])
        store(builder, splat(builder, args[1], lanes), args[3])
        store(builder, ir.Constant(words, [-1] * lanes), args[4])
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def fill_block(typing_context: Any, stage: Any, colours: Any, planes: Any, stride: Any) -> Any:
    """Where ``stage`` (int32[16]) holds a slot, the pixel becomes that slot's packed colour, ``colours``
    int32[slots].
    """
    signature = types.void(types.int64, types.int64, types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = 16
        words, mask = vector(_i32, lanes), vector(ir.IntType(1), lanes)
        slot = load(builder, args[0], words)
        outside = builder.icmp_signed(">=", slot, ir.Constant(words, [0] * lanes))
        anywhere = builder.icmp_unsigned(
            "!=", builder.bitcast(outside, ir.IntType(lanes)), ir.Constant(ir.IntType(lanes), 0)
        )
        with builder.if_then(anywhere):
            four = ir.Constant(vector(_i64, lanes), [4] * lanes)
            offset = builder.mul(builder.sext(slot, vector(_i64, lanes)), four)
            address = builder.add(offset, splat(builder, args[1], lanes))
            pointers = builder.inttoptr(address, vector(_i32.as_pointer(), lanes))
            gather = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(words, [pointers.type, _i32, mask, words]),
                "llvm.masked.gather.v16i32.v16p0",
            )
            zero = ir.Constant(words, [0] * lanes)
            colour = builder.call(gather, [pointers, ir.Constant(_i32, 4), outside, zero])
            for channel, plane in enumerate(planes_from(builder, *args[2:])):
                level = builder.lshr(colour, ir.Constant(words, [8 * channel] * lanes))
                level = builder.trunc(level, vector(_i8, lanes))
                store(builder, builder.select(outside, level, load(builder, plane, vector(_i8, lanes))), plane)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def weigh_block(
    typing_context: Any, image: Any, offsets: Any, weights: Any, stride: Any, taps: Any, last: Any, target: Any
) -> Any:
    """16 output pixels of a horizontal resize: sums of ``taps`` RGB pixels times weights -> 16 RGBX pixels at
    ``target``.

    ``offsets``: int32[16] byte offset of each output's first tap; ``weights``: int32[taps][16], rows ``stride`` bytes
    apart, 22 fraction bits. Rounded and clipped as Pillow's ImagingResampleHorizontal_8bpc.
    """
    signature = types.void(types.int64, types.int64, types.int64, types.int64, types.int64, types.int32, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = 16
        words = vector(_i32, lanes)
        byte = ir.Constant(words, [255] * lanes)
        half = ir.Constant(words, [1 << 21] * lanes)
        totals = [cgutils.alloca_once_value(builder, half) for _ in range(3)]
        first = load(builder, args[1], words)
        with cgutils.for_range(builder, args[4]) as loop:
            weight = load(builder, builder.add(args[2], builder.mul(loop.index, args[3])), words)
            step = builder.trunc(builder.mul(loop.index, ir.Constant(_i64, 3)), _i32)
            pixel = _gather_words(builder, args[0], builder.add(first, splat(builder, step, lanes)), args[5])
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
        store(builder, packed, args[6])
        return context.get_dummy_value()

    return signature, codegen
