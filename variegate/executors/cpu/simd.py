"""The few vector moves that LLVM does not find by itself, as Numba intrinsics over raw addresses.

Each handles one block of 64 pixels (16 for the gather) and is plain LLVM IR, so that it compiles for any processor;
only the 256-entry table lookup uses an instruction by name (AVX-512 VBMI's two-register byte permute) and has a
scalar twin for the rest.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numba as nb
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from variegate.program.compiled import pixel_kernel

BLOCK = 64

_i8, _i32, _i64, _f32 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()


def _has_byte_permute() -> bool:
    """Whether code is generated for this very processor and it has AVX-512 VBMI."""
    if nb.config.CPU_NAME or nb.config.CPU_FEATURES:
        return False
    return bool(llvmlite.binding.get_host_cpu_features().get("avx512vbmi", False))


HAS_BYTE_PERMUTE = _has_byte_permute()


def vector(element: ir.Type, count: int) -> ir.VectorType:
    return ir.VectorType(element, count)


def load(builder: Any, address: Any, kind: ir.Type) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def store(builder: Any, value: Any, address: Any) -> None:
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=1)


def _shuffle(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    mask = ir.Constant(vector(_i32, len(lanes)), lanes)
    return builder.shuffle_vector(a, b, mask)


def _undefined(value: Any) -> Any:
    return ir.Constant(value.type, ir.Undefined)


def splat(builder: Any, scalar: Any, count: int) -> Any:
    kind = vector(scalar.type, count)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(_i32, 0))
    return _shuffle(builder, one, ir.Constant(kind, ir.Undefined), [0] * count)


def _split_channels(stride: int, reverse: bool) -> Any:
    """An intrinsic that spreads 64 pixels of ``stride`` interleaved bytes over three planes."""

    @intrinsic
    def split(typing_context: Any, source: Any, r: Any, g: Any, b: Any) -> Any:
        signature = types.void(types.int64, types.int64, types.int64, types.int64)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pixels = load(builder, args[0], vector(_i8, stride * BLOCK))
            order = range(BLOCK - 1, -1, -1) if reverse else range(BLOCK)
            for channel in range(3):
                plane = _shuffle(builder, pixels, _undefined(pixels), [stride * i + channel for i in order])
                store(builder, plane, args[1 + channel])
            return context.get_dummy_value()

        return signature, codegen

    return split


split_rgb = _split_channels(3, reverse=False)
split_rgb_reversed = _split_channels(3, reverse=True)
split_rgbx = _split_channels(4, reverse=False)
split_rgbx_reversed = _split_channels(4, reverse=True)


@intrinsic
def join_rgb(typing_context: Any, r: Any, g: Any, b: Any, target: Any) -> Any:
    """64 pixels of three planes -> 192 interleaved bytes at ``target``."""
    signature = types.void(types.int64, types.int64, types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        red, green, blue = (load(builder, args[i], vector(_i8, BLOCK)) for i in range(3))
        red_green = _shuffle(builder, red, green, list(range(2 * BLOCK)))
        blue_twice = _shuffle(builder, blue, blue, list(range(2 * BLOCK)))
        lanes = [(i // 3) + (i % 3) * BLOCK for i in range(3 * BLOCK)]
        store(builder, _shuffle(builder, red_green, blue_twice, lanes), args[3])
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def copy_block(typing_context: Any, source: Any, target: Any) -> Any:
    """64 bytes."""
    signature = types.void(types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        store(builder, load(builder, args[0], vector(_i8, BLOCK)), args[1])
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def lookup_block(typing_context: Any, source: Any, target: Any, table: Any) -> Any:
    """64 bytes looked up in a 256-byte table. Only where HAS_BYTE_PERMUTE."""
    signature = types.void(types.int64, types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bytes64 = vector(_i8, BLOCK)
        index = load(builder, args[0], bytes64)
        quarters = [load(builder, builder.add(args[2], ir.Constant(_i64, BLOCK * i)), bytes64) for i in range(4)]
        permute = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(bytes64, [bytes64, bytes64, bytes64]),
            "llvm.x86.avx512.vpermi2var.qi.512",
        )
        low = builder.call(permute, [quarters[0], index, quarters[1]])
        high = builder.call(permute, [quarters[2], index, quarters[3]])
        is_high = builder.icmp_signed("<", index, ir.Constant(bytes64, [0] * BLOCK))
        store(builder, builder.select(is_high, high, low), args[1])
        return context.get_dummy_value()

    return signature, codegen


def _scale(lanes: int, blocks: int, streaming: bool) -> Any:
    """An intrinsic: ``lanes * blocks`` bytes -> float32 ``x * scale + bias``, rounded twice (no fused multiply-add)."""

    @intrinsic
    def scale_levels(typing_context: Any, source: Any, target: Any, scale: Any, bias: Any) -> Any:
        signature = types.void(types.int64, types.int64, types.float32, types.float32)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            floats = vector(_f32, lanes)
            scales, biases = splat(builder, args[2], lanes), splat(builder, args[3], lanes)
            for part in range(blocks):
                levels = load(builder, builder.add(args[0], ir.Constant(_i64, part * lanes)), vector(_i8, lanes))
                value = builder.fadd(builder.fmul(builder.uitofp(levels, floats), scales), biases)
                address = builder.add(args[1], ir.Constant(_i64, part * lanes * 4))
                if streaming:
                    pointer = builder.inttoptr(address, floats.as_pointer())
                    written = builder.store(value, pointer, align=lanes * 4)
                    written.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(_i32, 1)]))
                else:
                    store(builder, value, address)
            return context.get_dummy_value()

        return signature, codegen

    return scale_levels


# 64 levels to any address; and 16 levels past the caches, to an address that is a multiple of 64.
scale_block = _scale(16, 4, streaming=False)
stream_levels = _scale(16, 1, streaming=True)
STREAMED = 16


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
def gather_rgb(typing_context: Any, image: Any, offsets: Any, last: Any, r: Any, g: Any, b: Any) -> Any:
    """16 pixels at the int32 byte offsets stored at ``offsets`` -> three planes. ``last``: image bytes - 4."""
    signature = types.void(types.int64, types.int64, types.int32, types.int64, types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        offset = load(builder, args[1], vector(_i32, 16))
        _gather(builder, args[0], offset, args[2], args[3:])
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def gather_rgb_affine(
    typing_context: Any, image: Any, x: Any, y: Any, dx: Any, dy: Any, width: Any, last: Any, r: Any, g: Any, b: Any
) -> Any:
    """16 pixels at 16.16 coordinates ``(x + i dx, y + i dy)``, i = 0..15 -> three planes. ``last``: image bytes - 4."""
    word = types.int32
    signature = types.void(types.int64, word, word, word, word, word, word, types.int64, types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = 16
        words = vector(_i32, lanes)
        step, sixteen = ir.Constant(words, list(range(lanes))), ir.Constant(words, [16] * lanes)
        x, y, dx, dy, width = (splat(builder, args[i], lanes) for i in range(1, 6))
        column = builder.ashr(builder.add(x, builder.mul(dx, step)), sixteen)
        line = builder.ashr(builder.add(y, builder.mul(dy, step)), sixteen)
        pixel = builder.add(builder.mul(line, width), column)
        _gather(builder, args[0], builder.mul(pixel, ir.Constant(words, [3] * lanes)), args[6], args[7:])
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
def fill_block(typing_context: Any, stage: Any, colours: Any, r: Any, g: Any, b: Any) -> Any:
    """Where ``stage`` (int32[16]) holds a slot, the pixel becomes that slot's packed colour, ``colours``
    int32[slots].
    """
    signature = types.void(types.int64, types.int64, types.int64, types.int64, types.int64)

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
            for channel, plane in enumerate(args[2:]):
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


@intrinsic
def call_point(typing_context: Any, address: Any, r: Any, g: Any, b: Any, n: Any, magnitude: Any) -> Any:
    """Call a compiled point function's row form (program.custom.PointFunction.address)."""
    signature = types.void(types.int64, types.int64, types.int64, types.int64, types.int64, types.float32)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte_pointer = _i8.as_pointer()
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, byte_pointer, byte_pointer, _i64, _f32])
        function = builder.inttoptr(args[0], function_type.as_pointer())
        planes = [builder.inttoptr(args[i], byte_pointer) for i in (1, 2, 3)]
        builder.call(function, [*planes, args[4], args[5]])
        return context.get_dummy_value()

    return signature, codegen


def _view_of(element: Any, size_of_element: int) -> Any:
    """An intrinsic that looks at memory as a one-dimensional array, without owning it."""

    @intrinsic
    def view(typing_context: Any, address: Any, size: Any) -> Any:
        array_type = types.Array(element, 1, "C")
        signature = array_type(types.int64, types.int64)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = make_array(array_type)(context, builder)
            data = builder.inttoptr(args[0], context.get_data_type(element).as_pointer())
            item = context.get_constant(types.intp, size_of_element)
            populate_array(array, data=data, shape=[args[1]], strides=[item], itemsize=item, meminfo=None)
            return array._getvalue()

        return signature, codegen

    return view


# uint8[size] and float32[size] at an address; the caller keeps the memory alive.
bytes_at = _view_of(types.uint8, 1)
floats_at = _view_of(types.float32, 4)


@pixel_kernel(inline="always")
def address_of(array: Any) -> Any:
    return nb.int64(array.ctypes.data)
