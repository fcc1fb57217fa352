"""Vector blocks that gather: 16 pixels from anywhere in an image, chains of maps walked back.

A pixel is read by one 4-byte load, of which three bytes count.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from variegate.executors.cpu.simd import I32, I64, load, planes_from, splat, store, vector, vector_block

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


@vector_block(I64, I64, I32, I64, I64)
def gather_rgb(builder: Any, image: Any, offsets: Any, last: Any, planes: Any, stride: Any) -> Any:
    """16 pixels at the int32 byte offsets stored at ``offsets`` -> three planes. ``last``: image bytes - 4."""
    offset = load(builder, offsets, vector(_i32, 16))
    _gather(builder, image, offset, last, planes_from(builder, planes, stride))


@vector_block(I64, I32, I32, I32, I32, I32, I32, I64, I64)
def gather_rgb_affine(
    builder: Any, image: Any, x: Any, y: Any, dx: Any, dy: Any, width: Any, last: Any, planes: Any, stride: Any
) -> Any:
    """16 pixels at 16.16 coordinates ``(x + i dx, y + i dy)``, i = 0..15 -> three planes. ``last``: image bytes - 4."""
    lanes = 16
    words = vector(_i32, lanes)
    step, sixteen = ir.Constant(words, list(range(lanes))), ir.Constant(words, [16] * lanes)
    x, y, dx, dy, width = (splat(builder, value, lanes) for value in (x, y, dx, dy, width))
    column = builder.ashr(builder.add(x, builder.mul(dx, step)), sixteen)
    line = builder.ashr(builder.add(y, builder.mul(dy, step)), sixteen)
    pixel = builder.add(builder.mul(line, width), column)
    offset = builder.mul(pixel, ir.Constant(words, [3] * lanes))
    _gather(builder, image, offset, last, planes_from(builder, planes, stride))


@vector_block(I64, I64, I64, I64)
def step_back(builder: Any, column: Any, line: Any, stage: Any, mapping: Any) -> Any:
    """16 int32 coordinates (at ``column``, ``line``) through one 16.16 map, in place.

    ``mapping``: int32[11] a, b, c, d, e, f, top, left, bottom, right, slot. A pixel that is outside for the first
    time gets ``slot`` at ``stage``; whatever is outside goes on from (0, 0).
    """
    lanes = 16
    words = vector(_i32, lanes)
    x, y, left_at = (load(builder, address, words) for address in (column, line, stage))
    a, b, c, d, e, f, top, left, bottom, right, slot = (
        splat(builder, load(builder, builder.add(mapping, ir.Constant(_i64, 4 * i)), _i32), lanes) for i in range(11)
    )
    sixteen, zero = ir.Constant(words, [16] * lanes), ir.Constant(words, [0] * lanes)
    u = builder.ashr(builder.add(builder.add(builder.mul(a, x), builder.mul(b, y)), c), sixteen)
    v = builder.ashr(builder.add(builder.add(builder.mul(d, x), builder.mul(e, y)), f), sixteen)
    inside = builder.and_(
        builder.and_(builder.icmp_signed(">=", u, left), builder.icmp_signed("<", u, right)),
        builder.and_(builder.icmp_signed(">=", v, top), builder.icmp_signed("<", v, bottom)),
    )
    still_in = builder.or_(inside, builder.icmp_signed(">=", left_at, zero))
    store(builder, builder.select(still_in, left_at, slot), stage)
    store(builder, builder.select(inside, u, zero), column)
    store(builder, builder.select(inside, v, zero), line)


@vector_block(I32, I32, I64, I64, I64)
def begin_walk(builder: Any, x: Any, y: Any, column: Any, line: Any, stage: Any) -> Any:
    """16 output coordinates ``(x + i, y)``, none outside yet."""
    lanes = 16
    words = vector(_i32, lanes)
    store(builder, builder.add(splat(builder, x, lanes), ir.Constant(words, list(range(lanes)))), column)
    store(builder, splat(builder, y, lanes), line)
    store(builder, ir.Constant(words, [-1] * lanes), stage)


@vector_block(I64, I64, I64, I64)
def fill_block(builder: Any, stage: Any, colours: Any, planes: Any, stride: Any) -> Any:
    """Where ``stage`` (int32[16]) holds a slot, the pixel becomes that slot's packed colour, ``colours``
    int32[slots].
    """
    lanes = 16
    words, mask = vector(_i32, lanes), vector(ir.IntType(1), lanes)
    slot = load(builder, stage, words)
    outside = builder.icmp_signed(">=", slot, ir.Constant(words, [0] * lanes))
    anywhere = builder.icmp_unsigned(
        "!=", builder.bitcast(outside, ir.IntType(lanes)), ir.Constant(ir.IntType(lanes), 0)
    )
    with builder.if_then(anywhere):
        four = ir.Constant(vector(_i64, lanes), [4] * lanes)
        offset = builder.mul(builder.sext(slot, vector(_i64, lanes)), four)
        address = builder.add(offset, splat(builder, colours, lanes))
        pointers = builder.inttoptr(address, vector(_i32.as_pointer(), lanes))
        gather = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(words, [pointers.type, _i32, mask, words]),
            "llvm.masked.gather.v16i32.v16p0",
        )
        zero = ir.Constant(words, [0] * lanes)
        colour = builder.call(gather, [pointers, ir.Constant(_i32, 4), outside, zero])
        for channel, plane in enumerate(planes_from(builder, planes, stride)):
            level = builder.lshr(colour, ir.Constant(words, [8 * channel] * lanes))
            level = builder.trunc(level, vector(_i8, lanes))
            store(builder, builder.select(outside, level, load(builder, plane, vector(_i8, lanes))), plane)
