"""Noise, 16 pixels at a time: Philox words, normal numbers by the table of program/normal_table.py, and what is added
to levels. Words and normal numbers lie in three rows, one for each channel.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from variegate.executors.cpu.simd import F32, I64, Value, kind_of, planes_from, vector_block
from variegate.program.normal_table import FIRST_SEGMENT, MAGNITUDE, SEGMENT_SHIFT, SIGN
from variegate.program.rng import MULTIPLIERS, ROUNDS, WEYL

LANES = 16
# Pixels of a row whose words are made before any is used: they stay in the nearest cache.
CHUNK = 256
# From a channel's words to the next one's, in bytes.
CHUNK_STRIDE = 4 * CHUNK
# Blocks whose counters the registers hold.
_AT_A_TIME = 8

_MASK32 = 0xFFFFFFFF


@intrinsic
def chunk_memory(typing_context: Any) -> Any:
    """Address of room for the words of a chunk, on the stack of the function that asks."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        room = cgutils.alloca_once(builder, ir.ArrayType(kind_of("i8"), 3 * CHUNK_STRIDE))
        room.align = 64
        return builder.ptrtoint(room, kind_of("i64"))

    return types.int64(), codegen


@vector_block(*[I64] * 7)
def words_block(pixel: Value, slot: Value, low: Value, high: Value, key0: Value, key1: Value, target: Value) -> None:
    """The first three Philox words of the pixels from ``pixel`` on. See program/rng.py."""
    rows = planes_from(target, CHUNK_STRIDE)
    for first in range(0, LANES, _AT_A_TIME):
        pixels, *rest = (scalar.splat(_AT_A_TIME) for scalar in (pixel, slot, low, high))
        words = _philox([pixels + pixels.constant(range(first, first + _AT_A_TIME)), *rest], key0, key1)
        for row, word in zip(rows, words[:3], strict=True):
            word.narrow("i32").store(row + 4 * first)


def _philox(counter: list[Value], key0: Value, key1: Value) -> list[Value]:
    """Vectors of i64, whose lower halves alone count: a product of two lower halves is one instruction."""
    c0, c1, c2, c3 = counter
    for n in range(ROUNDS):
        product0, product1 = (c0 & _MASK32) * MULTIPLIERS[0], (c2 & _MASK32) * MULTIPLIERS[1]
        k0, k1 = ((key + (step * n & _MASK32)).splat(_AT_A_TIME) for key, step in zip((key0, key1), WEYL, strict=True))
        c0, c1, c2, c3 = (product1 >> 32) ^ c1 ^ k0, product1, (product0 >> 32) ^ c3 ^ k1, product0
    return [c0, c1, c2, c3]


def _normals(words: Value, segments: Value) -> Value:
    """Of the words at ``words``: standard normal float32."""
    word, builder = words.load("i32", LANES), words.builder
    number = ((word & MAGNITUDE) | 1).floats()
    segment = number.bits("i32") >> SEGMENT_SHIFT
    segments = segments - 8 * FIRST_SEGMENT
    # Loads one by one, base and slope together: gathers are slower on most processors, on some by far.
    pairs = ir.Constant(kind_of("i64", LANES), ir.Undefined)
    for i in range(LANES):
        lane = ir.Constant(kind_of("i32"), i)
        at = segments + (Value(builder, builder.extract_element(segment.value, lane)).wide("i64") << 3)
        pair = builder.load(builder.inttoptr(at.value, kind_of("i64").as_pointer()), align=8)
        pairs = builder.insert_element(pairs, pair, lane)
    lines = Value(builder, pairs).bits("f32", 2 * LANES)
    base, slope = (lines.picked(range(k, 2 * LANES, 2)) for k in (0, 1))
    return ((base + slope * number).bits("i32") ^ (word & SIGN)).bits("f32")


@vector_block(I64, I64)
def normal_block(words: Value, segments: Value) -> None:
    """Words of one channel, in place, as standard normal float32. ``segments``: the table's address."""
    _normals(words, segments).store(words)


@vector_block(I64, I64, I64, F32, F32)
def gaussian_block(levels: Value, words: Value, segments: Value, mean: Value, sigma: Value) -> None:
    """Levels of one channel, in place."""
    normals = _normals(words, segments)
    shift = (mean.splat(LANES) + sigma.splat(LANES) * normals) * 255.0
    _store_rounded(levels.load("i8", LANES).wide("i32").floats() + shift, levels)


@vector_block(I64, I64, I64, F32)
def shot_block(levels: Value, words: Value, segments: Value, scale: Value) -> None:
    """Levels of one channel, in place."""
    level = levels.load("i8", LANES).wide("i32").floats()
    shift = (level * scale.splat(LANES)).root() * _normals(words, segments)
    _store_rounded(level + shift, levels)


def _store_rounded(value: Value, address: Value) -> None:
    """Half up, within the levels: truncation is the floor of what is not negative."""
    (value + 0.5).most(0.0).least(255.0).truncated().narrow("i8").store(address)


@vector_block(I64, I64, I64, F32, F32)
def salt_block(planes: Value, stride: Value, words: Value, amount: Value, salt: Value) -> None:
    """Pixels of three planes, in place, made white or black by the words of two channels."""
    first, second, _ = planes_from(words, CHUNK_STRIDE)
    is_hit = _unit(first).below(amount.splat(LANES))
    extreme = _unit(second).below(salt.splat(LANES)).mask("i8")
    for address in planes_from(planes, stride):
        is_hit.choose(extreme, address.load("i8", LANES)).store(address)


def _unit(words: Value) -> Value:
    return (words.load("i32", LANES) >> 8).floats() * 2.0**-24
