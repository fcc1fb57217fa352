"""The few vector moves that LLVM does not find by itself, as Numba intrinsics over raw addresses.

Each handles one block of 64 pixels (16 for the gather) and is plain LLVM IR, so that it compiles for any processor;
only the 256-entry table lookup uses an instruction by name (AVX-512 VBMI's two-register byte permute) and has a
scalar twin for the rest.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from variegate.compiling.levels import HAS_BYTE_PERMUTE

BLOCK = 64
I32, I64, F32 = types.int32, types.int64, types.float32

_i8, _i32, _i64, _f32 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()


def vector_block(*kinds: Any, result: Any = types.void, needs: bool = True) -> Any:
    """Make an intrinsic, with arguments of these types, of a function that writes its code: ``emit(builder, ...)``.

    ``needs``: whether the processor has the instructions that it names. Where it has not, the code is a trap: LLVM ends
    the process that asks it to compile an instruction that the target lacks, even in a branch that is never taken.
    """

    def decorate(emit: Any) -> Any:
        @wraps(emit)
        def define(typing_context: Any, *args: Any) -> Any:
            def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                if not needs:
                    trap = ir.FunctionType(ir.VoidType(), [])
                    builder.call(cgutils.get_or_insert_function(builder.module, trap, "llvm.trap"), [])
                    return context.get_constant_null(signature.return_type)
                value = emit(builder, *values)
                return context.get_dummy_value() if value is None else value

            return result(*kinds), codegen

        return intrinsic(define)

    return decorate


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


def planes_from(builder: Any, first: Any, stride: Any) -> list[Any]:
    """Addresses in three planes that lie ``stride`` bytes apart, as those of a ``Scratch`` do."""
    second = builder.add(first, stride)
    return [first, second, builder.add(second, stride)]


def _split_channels(pixel_bytes: int, reverse: bool) -> Any:
    """An intrinsic that spreads 64 interleaved pixels over three planes."""

    @vector_block(I64, I64, I64)
    def split(builder: Any, source: Any, planes: Any, stride: Any) -> Any:
        pixels = load(builder, source, vector(_i8, pixel_bytes * BLOCK))
        order = range(BLOCK - 1, -1, -1) if reverse else range(BLOCK)
        for channel, plane in enumerate(planes_from(builder, planes, stride)):
            lanes = [pixel_bytes * i + channel for i in order]
            store(builder, _shuffle(builder, pixels, _undefined(pixels), lanes), plane)

    return split


split_rgb = _split_channels(3, reverse=False)
split_rgb_reversed = _split_channels(3, reverse=True)
split_rgbx = _split_channels(4, reverse=False)
split_rgbx_reversed = _split_channels(4, reverse=True)


@vector_block(I64, I64, I64)
def join_rgb(builder: Any, planes: Any, stride: Any, target: Any) -> Any:
    """64 pixels of three planes -> 192 interleaved bytes at ``target``."""
    red, green, blue = (load(builder, plane, vector(_i8, BLOCK)) for plane in planes_from(builder, planes, stride))
    red_green = _shuffle(builder, red, green, list(range(2 * BLOCK)))
    blue_twice = _shuffle(builder, blue, blue, list(range(2 * BLOCK)))
    lanes = [(i // 3) + (i % 3) * BLOCK for i in range(3 * BLOCK)]
    store(builder, _shuffle(builder, red_green, blue_twice, lanes), target)


@vector_block(I64, I64)
def copy_block(builder: Any, source: Any, target: Any) -> Any:
    """64 bytes."""
    store(builder, load(builder, source, vector(_i8, BLOCK)), target)


@vector_block(I64)
def prefetch_line(builder: Any, address: Any) -> Any:
    """Ask for the 64 bytes at any address, of memory or not."""
    pointer = builder.inttoptr(address, _i8.as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, _i32, _i32, _i32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [pointer, *(ir.Constant(_i32, value) for value in (0, 2, 1))])


@vector_block(I64, I64, I64, needs=HAS_BYTE_PERMUTE)
def lookup_block(builder: Any, source: Any, target: Any, table: Any) -> Any:
    """64 bytes looked up in a 256-byte table. Only where HAS_BYTE_PERMUTE."""
    bytes64 = vector(_i8, BLOCK)
    index = load(builder, source, bytes64)
    quarters = [load(builder, builder.add(table, ir.Constant(_i64, BLOCK * i)), bytes64) for i in range(4)]
    permute = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(bytes64, [bytes64, bytes64, bytes64]),
        "llvm.x86.avx512.vpermi2var.qi.512",
    )
    low = builder.call(permute, [quarters[0], index, quarters[1]])
    high = builder.call(permute, [quarters[2], index, quarters[3]])
    is_high = builder.icmp_signed("<", index, ir.Constant(bytes64, [0] * BLOCK))
    store(builder, builder.select(is_high, high, low), target)


def _scale(lanes: int, blocks: int, streaming: bool) -> Any:
    """An intrinsic: ``lanes * blocks`` bytes -> float32 ``x * scale + bias``, rounded twice (no fused multiply-add)."""

    @vector_block(I64, I64, F32, F32)
    def scale_levels(builder: Any, source: Any, target: Any, scale: Any, bias: Any) -> Any:
        floats = vector(_f32, lanes)
        scales, biases = splat(builder, scale, lanes), splat(builder, bias, lanes)
        for part in range(blocks):
            levels = load(builder, builder.add(source, ir.Constant(_i64, part * lanes)), vector(_i8, lanes))
            value = builder.fadd(builder.fmul(builder.uitofp(levels, floats), scales), biases)
            address = builder.add(target, ir.Constant(_i64, part * lanes * 4))
            if streaming:
                pointer = builder.inttoptr(address, floats.as_pointer())
                written = builder.store(value, pointer, align=lanes * 4)
                written.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(_i32, 1)]))
            else:
                store(builder, value, address)

    return scale_levels


# 64 levels to any address; and 16 levels past the caches, to an address that is a multiple of 64.
scale_block = _scale(16, 4, streaming=False)
stream_levels = _scale(16, 1, streaming=True)
STREAMED = 16


@vector_block(I64, I64, I64, I64, I64, F32)
def call_point(builder: Any, address: Any, r: Any, g: Any, b: Any, n: Any, magnitude: Any) -> Any:
    """Call a compiled point function's row form (program.custom.PointFunction.address)."""
    byte_pointer = _i8.as_pointer()
    function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, byte_pointer, byte_pointer, _i64, _f32])
    function = builder.inttoptr(address, function_type.as_pointer())
    planes = [builder.inttoptr(plane, byte_pointer) for plane in (r, g, b)]
    builder.call(function, [*planes, n, magnitude])
