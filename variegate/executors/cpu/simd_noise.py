"""Noise, 16 pixels at a time: Philox words, normal numbers by the table of program/normal_table.py, and what is added
to levels. Words and normal numbers lie in three rows, one for each channel.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from variegate.executors.cpu.lanes import Lanes, load_lanes, same_lanes
from variegate.executors.cpu.simd import F32, I64, after, f32, i32, i64, planes_from, vector, vector_block
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
        room = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(8), 3 * CHUNK_STRIDE))
        room.align = 64
        return builder.ptrtoint(room, i64)

    return types.int64(), codegen


@vector_block(*[I64] * 7)
def words_block(builder: Any, pixel: Any, slot: Any, low: Any, high: Any, key0: Any, key1: Any, target: Any) -> Any:
    """The first three Philox words of the pixels from ``pixel`` on. See program/rng.py."""
    rows = planes_from(builder, target, ir.Constant(i64, CHUNK_STRIDE))
    for first in range(0, LANES, _AT_A_TIME):
        steps = ir.Constant(vector(i64, _AT_A_TIME), list(range(first, first + _AT_A_TIME)))
        pixels, *rest = (same_lanes(builder, scalar, _AT_A_TIME) for scalar in (pixel, slot, low, high))
        words = _philox(builder, [pixels + Lanes(builder, steps), *rest], key0, key1)
        for row, word in zip(rows, words[:3], strict=True):
            word.narrow("i32").store(after(builder, row, 4 * first))


def _philox(builder: Any, counter: list[Lanes], key0: Any, key1: Any) -> list[Lanes]:
    """int64 lanes, whose lower halves alone count: a product of two lower halves is one instruction."""
    c0, c1, c2, c3 = counter
    for n in range(ROUNDS):
        product0, product1 = (c0 & _MASK32) * MULTIPLIERS[0], (c2 & _MASK32) * MULTIPLIERS[1]
        k0, k1 = (
            same_lanes(builder, after(builder, key, step * n & _MASK32), _AT_A_TIME)
            for key, step in zip((key0, key1), WEYL, strict=True)
        )
        c0, c1, c2, c3 = (product1 >> 32) ^ c1 ^ k0, product1, (product0 >> 32) ^ c3 ^ k1, product0
    return [c0, c1, c2, c3]


def _normals(builder: Any, words: Any, segments: Any) -> Lanes:
    """Of the words at ``words``: standard normal float32."""
    word = load_lanes(builder, words, "i32", LANES)
    number = ((word & MAGNITUDE) | 1).floats()
    segment = number.bits("i32") >> SEGMENT_SHIFT
    segments = builder.sub(segments, ir.Constant(i64, 8 * FIRST_SEGMENT))
    # Loads one by one, base and slope together: gathers are slower on most processors, on some by far.
    pairs = ir.Constant(vector(i64, LANES), ir.Undefined)
    for i in range(LANES):
        lane = ir.Constant(i32, i)
        at = builder.shl(builder.zext(builder.extract_element(segment.value, lane), i64), ir.Constant(i64, 3))
        pair = builder.load(builder.inttoptr(builder.add(segments, at), i64.as_pointer()), align=8)
        pairs = builder.insert_element(pairs, pair, lane)
    lines = builder.bitcast(pairs, vector(f32, 2 * LANES))
    base, slope = (
        Lanes(
            builder,
            builder.shuffle_vector(lines, lines, ir.Constant(vector(i32, LANES), [2 * i + k for i in range(LANES)])),
        )
        for k in (0, 1)
    )
    return ((base + slope * number).bits("i32") ^ (word & SIGN)).bits("f32")


@vector_block(I64, I64)
def normal_block(builder: Any, words: Any, segments: Any) -> Any:
    """Words of one channel, in place, as standard normal float32. ``segments``: the table's address."""
    _normals(builder, words, segments).store(words)


@vector_block(I64, I64, I64, F32, F32)
def gaussian_block(builder: Any, levels: Any, words: Any, segments: Any, mean: Any, sigma: Any) -> Any:
    """Levels of one channel, in place."""
    normals = _normals(builder, words, segments)
    shift = (same_lanes(builder, mean, LANES) + same_lanes(builder, sigma, LANES) * normals) * 255.0
    _store_rounded(load_lanes(builder, levels, "i8", LANES).wide("i32").floats() + shift, levels)


@vector_block(I64, I64, I64, F32)
def shot_block(builder: Any, levels: Any, words: Any, segments: Any, scale: Any) -> Any:
    """Levels of one channel, in place."""
    level = load_lanes(builder, levels, "i8", LANES).wide("i32").floats()
    shift = (level * same_lanes(builder, scale, LANES)).root() * _normals(builder, words, segments)
    _store_rounded(level + shift, levels)


def _store_rounded(value: Lanes, address: Any) -> None:
    """Half up, within the levels: truncation is the floor of what is not negative."""
    (value + 0.5).most(0.0).least(255.0).truncated().narrow("i8").store(address)


@vector_block(I64, I64, I64, F32, F32)
def salt_block(builder: Any, planes: Any, stride: Any, words: Any, amount: Any, salt: Any) -> Any:
    """Pixels of three planes, in place, made white or black by the words of two channels."""
    first, second, _ = planes_from(builder, words, ir.Constant(i64, CHUNK_STRIDE))
    is_hit = _unit(builder, first).below(same_lanes(builder, amount, LANES))
    extreme = _unit(builder, second).below(same_lanes(builder, salt, LANES)).mask("i8")
    for address in planes_from(builder, planes, stride):
        is_hit.choose(extreme, load_lanes(builder, address, "i8", LANES)).store(address)


def _unit(builder: Any, words: Any) -> Lanes:
    return (load_lanes(builder, words, "i32", LANES) >> 8).floats() * 2.0**-24
