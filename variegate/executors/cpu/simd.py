"""The few vector moves that LLVM does not find by itself, as Numba intrinsics over raw addresses.

Each handles one block of 64 pixels, or a whole row, and is plain LLVM IR, so that it compiles for any processor. Those
that use an instruction by name say which level of processor they need, and have a plain twin for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from variegate.compiling.levels import HAS_AVX2

BLOCK = 64
I32, I64, F32 = types.int32, types.int64, types.float32

i8, i16, i32, i64, f32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()


class Block(NamedTuple):
    """What an intrinsic was made of."""

    kinds: tuple[Any, ...]
    result: Any
    needs: bool
    emit: Callable[..., Any]


def vector_block(*kinds: Any, result: Any = types.void, needs: bool = True) -> Any:
    """Make an intrinsic, with arguments of these types, of a function that writes its code: ``emit(builder, ...)``.

    ``needs``: whether the processor has the instructions that it names. Where it has not, the code is a trap: LLVM ends
    the process that asks it to compile an instruction that the target lacks, even in a branch that is never taken.
    """

    def decorate(emit: Callable[..., Any]) -> Any:
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

        made = intrinsic(define)
        made.block = Block(kinds, result, needs, emit)
        return made

    return decorate


def vector(element: ir.Type, count: int) -> ir.VectorType:
    return ir.VectorType(element, count)


def load(builder: Any, address: Any, kind: ir.Type) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def store(builder: Any, value: Any, address: Any) -> None:
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=1)


def call_named(builder: Any, name: str, result: ir.Type, *args: Any) -> Any:
    """Call one of LLVM's intrinsics."""
    function_type = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), args)


def shuffle(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    mask = ir.Constant(vector(i32, len(lanes)), lanes)
    return builder.shuffle_vector(a, b, mask)


def after(builder: Any, address: Any, offset: int) -> Any:
    return builder.add(address, ir.Constant(i64, offset))


def same(kind: Any, value: int) -> Any:
    """A vector of one constant."""
    return ir.Constant(kind, [value] * kind.count)


def clamp(builder: Any, value: Any, low: Any, high: Any) -> Any:
    value = builder.select(builder.icmp_signed(">", value, low), value, low)
    return builder.select(builder.icmp_signed("<", value, high), value, high)


def splat(builder: Any, scalar: Any, count: int) -> Any:
    kind = vector(scalar.type, count)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(i32, 0))
    return shuffle(builder, one, ir.Constant(kind, ir.Undefined), [0] * count)


def planes_from(builder: Any, first: Any, stride: Any) -> list[Any]:
    """Addresses in three planes that lie ``stride`` bytes apart, as those of a ``Scratch`` do."""
    second = builder.add(first, stride)
    return [first, second, builder.add(second, stride)]


# Pixels are taken apart in vectors of one or two stretches of 16 bytes, within which one instruction moves bytes
# anywhere (SSSE3's shuffle, AArch64's tbl). LLVM's own way through vectors of 64 pixels takes several times as many.
_STRETCHES = 2 if HAS_AVX2 else 1
_WIDTH = 16 * _STRETCHES


def _within(builder: Any, value: Any, lanes: Sequence[int]) -> Any:
    """The bytes of every stretch moved in the same way."""
    return shuffle(builder, value, value, [16 * s + lane for s in range(_STRETCHES) for lane in lanes])


def _chosen(builder: Any, values: list[Any], which: list[int]) -> Any:
    """Byte j of every stretch from ``values[which[j]]``."""
    result = values[0]
    for k in range(1, len(values)):
        lanes = [_WIDTH + j if which[j % 16] == k else j for j in range(_WIDTH)]
        result = shuffle(builder, result, values[k], lanes)
    return result


def _load_stretches(builder: Any, addresses: list[Any]) -> Any:
    parts = [load(builder, address, vector(i8, 16)) for address in addresses]
    return parts[0] if len(parts) == 1 else shuffle(builder, parts[0], parts[1], list(range(_WIDTH)))


def _store_stretches(builder: Any, value: Any, addresses: list[Any]) -> None:
    for s, address in enumerate(addresses):
        store(builder, shuffle(builder, value, value, list(range(16 * s, 16 * s + 16))), address)


def _three_planes(builder: Any, chunks: list[Any], order: list[int]) -> list[Any]:
    """Of 16 RGB pixels per stretch, in three chunks of 16 bytes. Byte j of the chunks holds channel c in just one."""
    chosen = [_chosen(builder, chunks, [(c - j) % 3 for j in range(16)]) for c in range(3)]
    return [_within(builder, value, [(3 * i + c) % 16 for i in order]) for c, value in enumerate(chosen)]


def _four_planes(builder: Any, chunks: list[Any], order: list[int]) -> list[Any]:
    """The first three of 16 RGBX pixels per stretch, in four chunks of 16 bytes: a transposition of words."""
    pixels = [4 * i + c for c in range(4) for i in (order[:4] if order[0] == 0 else [3, 2, 1, 0])]
    words = [builder.bitcast(_within(builder, chunk, pixels), vector(i32, _WIDTH // 4)) for chunk in chunks]
    if order[0] != 0:
        words.reverse()

    def pairs(a: Any, b: Any, size: int, first: int) -> Any:
        """Elements ``first`` on of every stretch of ``a`` and ``b``, in turn."""
        count, element = _WIDTH // size, ir.IntType(8 * size)
        a, b = (builder.bitcast(value, vector(element, count)) for value in (a, b))
        steps = range(first, first + 8 // size)
        return shuffle(
            builder, a, b, [16 // size * s + i + k * count for s in range(_STRETCHES) for i in steps for k in (0, 1)]
        )

    low, high = (pairs(words[0], words[1], 4, first) for first in (0, 2))
    low2, high2 = (pairs(words[2], words[3], 4, first) for first in (0, 2))
    planes = [pairs(low, low2, 8, 0), pairs(low, low2, 8, 1), pairs(high, high2, 8, 0)]
    return [builder.bitcast(plane, vector(i8, _WIDTH)) for plane in planes]


def _split_channels(pixel_bytes: int, reverse: bool) -> Any:
    """An intrinsic that spreads 64 interleaved pixels over three planes."""

    @vector_block(I64, I64, I64)
    def split(builder: Any, source: Any, planes: Any, stride: Any) -> Any:
        order = list(range(15, -1, -1) if reverse else range(16))
        addresses, taken = planes_from(builder, planes, stride), _three_planes if pixel_bytes == 3 else _four_planes
        for first in range(0, BLOCK, _WIDTH):
            starts = [first + 16 * s for s in range(_STRETCHES)]
            if reverse:
                starts = [BLOCK - 16 - start for start in starts]
            chunks = [
                _load_stretches(builder, [after(builder, source, pixel_bytes * start + 16 * k) for start in starts])
                for k in range(pixel_bytes)
            ]
            for plane, address in zip(taken(builder, chunks, order), addresses, strict=True):
                store(builder, plane, after(builder, address, first))

    return split


split_rgb = _split_channels(3, reverse=False)
split_rgb_reversed = _split_channels(3, reverse=True)
split_rgbx = _split_channels(4, reverse=False)
split_rgbx_reversed = _split_channels(4, reverse=True)


@vector_block(I64, I64, I64)
def join_rgb(builder: Any, planes: Any, stride: Any, target: Any) -> Any:
    """64 pixels of three planes -> 192 interleaved bytes at ``target``."""
    addresses = planes_from(builder, planes, stride)
    for first in range(0, BLOCK, _WIDTH):
        levels = [load(builder, after(builder, address, first), vector(i8, _WIDTH)) for address in addresses]
        # To the place, modulo 16, that a byte has among the pixels: 11 is the inverse of 3.
        moved = [_within(builder, level, [11 * (j - c) % 16 for j in range(16)]) for c, level in enumerate(levels)]
        for k in range(3):
            chunk = _chosen(builder, moved, [(16 * k + j) % 3 for j in range(16)])
            starts = [after(builder, target, 3 * (first + 16 * s) + 16 * k) for s in range(_STRETCHES)]
            _store_stretches(builder, chunk, starts)


@vector_block(I64, I64)
def copy_block(builder: Any, source: Any, target: Any) -> Any:
    """64 bytes."""
    store(builder, load(builder, source, vector(i8, BLOCK)), target)


def ask_for(builder: Any, address: Any) -> None:
    """Have a cache line brought into the second level, to be read later. Does no harm where no memory is."""
    pointer = builder.inttoptr(address, i8.as_pointer())
    how = [ir.Constant(i32, value) for value in (0, 2, 1)]  # to be read; that level; data
    call_named(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, *how)


@vector_block(I64, I64)
def prefetch(builder: Any, address: Any, size: Any) -> Any:
    """Have ``size`` bytes brought into the cache."""
    with cgutils.for_range_slice(builder, ir.Constant(i64, 0), size, ir.Constant(i64, 64), i64) as (at, _):
        ask_for(builder, builder.add(address, at))


def _scale(lanes: int, blocks: int, streaming: bool) -> Any:
    """An intrinsic: ``lanes * blocks`` bytes -> float32 ``x * scale + bias``, rounded twice (no fused multiply-add)."""

    @vector_block(I64, I64, F32, F32)
    def scale_levels(builder: Any, source: Any, target: Any, scale: Any, bias: Any) -> Any:
        floats = vector(f32, lanes)
        scales, biases = splat(builder, scale, lanes), splat(builder, bias, lanes)
        for part in range(blocks):
            levels = load(builder, builder.add(source, ir.Constant(i64, part * lanes)), vector(i8, lanes))
            value = builder.fadd(builder.fmul(builder.uitofp(levels, floats), scales), biases)
            address = builder.add(target, ir.Constant(i64, part * lanes * 4))
            if streaming:
                pointer = builder.inttoptr(address, floats.as_pointer())
                written = builder.store(value, pointer, align=lanes * 4)
                written.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(i32, 1)]))
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
    byte_pointer = i8.as_pointer()
    function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, byte_pointer, byte_pointer, i64, f32])
    function = builder.inttoptr(address, function_type.as_pointer())
    planes = [builder.inttoptr(plane, byte_pointer) for plane in (r, g, b)]
    builder.call(function, [*planes, n, magnitude])
