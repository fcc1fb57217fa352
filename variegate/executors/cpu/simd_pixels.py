"""Vector blocks that move pixels: between interleaved bytes and planes, past the caches, and to float32; and that count
interleaved levels, find the least and greatest, and add up lumas.

Pixels are taken apart in vectors of one or two stretches of 16 bytes, within which one instruction moves bytes anywhere
(SSSE3's shuffle, AArch64's tbl). LLVM's own way through vectors of 64 pixels takes several times as many.

Statistics read RGB pixels from the first channel of one on. Of gray images the three channels are every third pixel
each, and what is found of them belongs together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from llvmlite import ir

from variegate.compiling.levels import HAS_AVX2
from variegate.executors.cpu.simd import (
    BLOCK,
    F32,
    I64,
    Value,
    kind_of,
    planes_from,
    prefetch_line,
    repeat,
    steps,
    vector_block,
)
from variegate.executors.cpu.simd_values import luma

_STRETCHES = 2 if HAS_AVX2 else 1
_WIDTH = 16 * _STRETCHES


def _within(value: Value, lanes: Sequence[int]) -> Value:
    """The bytes of every stretch moved in the same way."""
    return value.picked([16 * s + lane for s in range(_STRETCHES) for lane in lanes])


def _chosen(values: list[Value], which: list[int]) -> Value:
    """Byte j of every stretch from ``values[which[j]]``."""
    result = values[0]
    for k in range(1, len(values)):
        result = result.shuffled(values[k], [_WIDTH + j if which[j % 16] == k else j for j in range(_WIDTH)])
    return result


def _three_planes(chunks: list[Value], order: list[int]) -> list[Value]:
    """Of 16 RGB pixels per stretch, in three chunks of 16 bytes. Byte j of the chunks holds channel c in just one."""
    chosen = [_chosen(chunks, [(c - j) % 3 for j in range(16)]) for c in range(3)]
    return [_within(value, [(3 * i + c) % 16 for i in order]) for c, value in enumerate(chosen)]


def _four_planes(chunks: list[Value], order: list[int]) -> list[Value]:
    """The first three of 16 RGBX pixels per stretch, in four chunks of 16 bytes: a transposition of words."""
    pixels = [4 * i + c for c in range(4) for i in (order[:4] if order[0] == 0 else [3, 2, 1, 0])]
    words = [_within(chunk, pixels).bits("i32", _WIDTH // 4) for chunk in chunks]
    if order[0] != 0:
        words.reverse()

    def pairs(a: Value, b: Value, size: int, first: int) -> Value:
        """Elements ``first`` on of every stretch of ``a`` and ``b``, in turn."""
        count, wanted = _WIDTH // size, range(first, first + 8 // size)
        lanes = [16 // size * s + i + k * count for s in range(_STRETCHES) for i in wanted for k in (0, 1)]
        a, b = (value.bits(f"i{8 * size}", count) for value in (a, b))
        return a.shuffled(b, lanes)

    low, high = (pairs(words[0], words[1], 4, first) for first in (0, 2))
    low2, high2 = (pairs(words[2], words[3], 4, first) for first in (0, 2))
    planes = [pairs(low, low2, 8, 0), pairs(low, low2, 8, 1), pairs(high, high2, 8, 0)]
    return [plane.bits("i8", _WIDTH) for plane in planes]


def _split_channels(pixel_bytes: int, reverse: bool) -> Any:
    """An intrinsic that spreads 64 interleaved pixels over three planes."""

    @vector_block(I64, I64, I64)
    def split(source: Value, planes: Value, stride: Value) -> None:
        order = list(range(15, -1, -1) if reverse else range(16))
        addresses, taken = planes_from(planes, stride), _three_planes if pixel_bytes == 3 else _four_planes
        for first in range(0, BLOCK, _WIDTH):
            starts = [first + 16 * s for s in range(_STRETCHES)]
            if reverse:
                starts = [BLOCK - 16 - start for start in starts]
            at = [[source + (pixel_bytes * start + 16 * k) for start in starts] for k in range(pixel_bytes)]
            chunks = [reduce(Value.joined, [address.load("i8", 16) for address in stretches]) for stretches in at]
            for plane, address in zip(taken(chunks, order), addresses, strict=True):
                plane.store(address + first)

    return split


split_rgb, split_rgb_reversed, split_rgbx, split_rgbx_reversed = (
    _split_channels(pixel_bytes, reverse) for pixel_bytes in (3, 4) for reverse in (False, True)
)


@vector_block(I64, I64, I64)
def join_rgb(planes: Value, stride: Value, target: Value) -> None:
    """64 pixels of three planes -> 192 interleaved bytes at ``target``."""
    addresses = planes_from(planes, stride)
    for first in range(0, BLOCK, _WIDTH):
        levels = [(address + first).load("i8", _WIDTH) for address in addresses]
        # To the place, modulo 16, that a byte has among the pixels: 11 is the inverse of 3.
        moved = [_within(level, [11 * (j - c) % 16 for j in range(16)]) for c, level in enumerate(levels)]
        for k in range(3):
            chunk = _chosen(moved, [(16 * k + j) % 3 for j in range(16)])
            places = [target + (3 * (first + 16 * s) + 16 * k) for s in range(_STRETCHES)]
            for s, place in enumerate(places):
                chunk.picked(range(16 * s, 16 * s + 16)).store(place)


# Pixels at a time, by the number of channels, as measured; of others they go one by one.
_AT_A_TIME = {2: 16, 4: 32, 5: 32, 6: 16, 7: 5, 8: 32}
# Pixels that vectors may reach beyond a line, which its last ones therefore do not use where nothing follows.
PICK_MARGIN = 34


@vector_block(I64, I64, I64, I64)
def pick_channels(source: Value, target: Value, count: Value, channels: Value) -> None:
    """Three channels of ``count`` pixels, rounded up to a number at a time."""

    def pick(numbers: list[int]) -> None:
        if not numbers:
            with steps(count, 1) as x:
                (source + x * channels).load("i32").store(target + x * 3)
            return
        number, pixels = numbers[0], _AT_A_TIME[numbers[0]]
        chosen = [pixel * number + min(i, number - 1) for pixel in range(pixels) for i in range(3)]
        with source.builder.if_else(channels.equals(number).value) as (then, otherwise):
            with then, steps(count, pixels) as x:
                levels = (source + x * number).load("i8", max(16, pixels * number))
                levels.picked([*chosen, *[0] * (-len(chosen) % 16)]).store(target + x * 3)
            with otherwise:
                pick(numbers[1:])

    pick(list(_AT_A_TIME))


@vector_block(I64, I64)
def copy_block(source: Value, target: Value) -> None:
    """64 bytes."""
    source.load("i8", BLOCK).store(target)


@vector_block(I64, I64)
def prefetch(address: Value, size: Value) -> None:
    """Have ``size`` bytes brought into the cache."""
    with steps(size, 64) as at:
        prefetch_line(address + at)


def _scale(lanes: int, blocks: int, streaming: bool) -> Any:
    """An intrinsic: ``lanes * blocks`` bytes -> float32 ``x * scale + bias``, rounded twice (no fused multiply-add)."""

    @vector_block(I64, I64, F32, F32)
    def scale_levels(source: Value, target: Value, scale: Value, bias: Value) -> None:
        scales, biases = scale.splat(lanes), bias.splat(lanes)
        for part in range(blocks):
            levels = (source + part * lanes).load("i8", lanes)
            value = levels.unsigned_floats() * scales + biases
            address = target + part * lanes * 4
            if not streaming:
                value.store(address)
                continue
            builder = value.builder
            pointer = builder.inttoptr(address.value, value.value.type.as_pointer())
            written = builder.store(value.value, pointer, align=lanes * 4)
            written.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(kind_of("i32"), 1)]))

    return scale_levels


# 64 levels to any address; and 16 levels past the caches, to an address that is a multiple of 64.
scale_block = _scale(16, 4, streaming=False)
stream_levels = _scale(16, 1, streaming=True)
STREAMED = 16


@vector_block(I64, I64, I64, I64, I64, F32)
def call_point(address: Value, r: Value, g: Value, b: Value, n: Value, magnitude: Value) -> None:
    """Call a compiled point function's row form (program.custom.PointFunction.address)."""
    builder, pointer = address.builder, kind_of("i8").as_pointer()
    function_type = ir.FunctionType(ir.VoidType(), [pointer, pointer, pointer, kind_of("i64"), kind_of("f32")])
    function = builder.inttoptr(address.value, function_type.as_pointer())
    planes = [builder.inttoptr(plane.value, pointer) for plane in (r, g, b)]
    builder.call(function, [*planes, n.value, magnitude.value])


# Levels that ``count_levels`` reads at a time; tables that it fills in turn, per channel.
COUNTED, TABLES = 24, 2
# Levels that ``widen_extremes`` reads at a time.
EXTREMES = 96
# Pixels that ``sum_luma`` reads at a time.
LUMAS = 4 * _STRETCHES


@vector_block(I64, I64, I64)
def count_levels(source: Value, groups: Value, counts: Value) -> None:
    """Each of ``groups`` times COUNTED levels raises its counter, in int32[3][TABLES][256].

    Neighbouring pixels are often equal, and one counter cannot be raised twice at once: they take turns with the
    tables. More tables gain nothing, as the three channels have their own.
    """
    with repeat(groups) as group:
        at = source + group * COUNTED
        for i in range(COUNTED):
            pixel, channel = divmod(i, 3)
            level = (at + i).load("i8").wide("i64")
            place = counts + 1024 * (TABLES * channel + pixel % TABLES) + level * 4
            (place.load("i32") + 1).store(place)


@vector_block(I64, I64, I64)
def widen_extremes(source: Value, size: Value, extremes: Value) -> None:
    """``size`` levels, no fewer than EXTREMES, into the least and the greatest of each place, uint8[2][EXTREMES]."""
    places = [extremes + (EXTREMES * i + 32 * j) for i in range(2) for j in range(EXTREMES // 32)]
    held = [place.load("i8", 32).variable() for place in places]
    last = size - EXTREMES
    with steps(size, EXTREMES) as x:
        # The last block overlaps the one before it, so that no read leaves the stretch.
        at = source + (x < last).choose(x, last)
        for j in range(EXTREMES // 32):
            levels = (at + 32 * j).load("i8", 32)
            least, most = held[j], held[j + EXTREMES // 32]
            least.set(levels.least(least.get()))
            most.set(levels.most(most.get()))
    for variable, place in zip(held, places, strict=True):
        variable.get().store(place)


@vector_block(I64, I64, result=I64)
def sum_luma(source: Value, groups: Value) -> Value:
    """Sum of Pillow's L of ``groups`` times LUMAS pixels, at most a million. Reads four bytes past the last."""
    words = kind_of("i32", LUMAS)
    total = Value(source.builder, ir.Constant(words, [0] * LUMAS)).variable()
    with repeat(groups) as group:
        at = source + group * (12 * _STRETCHES)
        levels = reduce(Value.joined, [(at + 12 * s).load("i8", 16) for s in range(_STRETCHES)])
        zero = 16 * _STRETCHES
        channels = []
        for c in range(3):
            lanes = [n for s in range(_STRETCHES) for i in range(4) for n in (16 * s + 3 * i + c, zero, zero, zero)]
            channels.append(levels.shuffled(levels.constant(0), lanes).bits("i32", LUMAS))
        total.set(total.get() + luma(*channels))
    return total.get().call(f"llvm.vector.reduce.add.v{LUMAS}i32", kind_of("i32")).wide("i64")
