"""Vector blocks of the operations that mix channels or neighbours: 16 pixels at a time, Pillow's arithmetic to
the bit.
"""

from __future__ import annotations

from typing import Any

from variegate.executors.cpu import simd as S
from variegate.executors.cpu.lanes import load_lanes, same_lanes
from variegate.executors.cpu.simd import BLOCK, F32, I64, planes_from, vector_block
from variegate.program.ops import LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT

COLOUR_LANES = 16

_words, _floats = S.vector(S.i32, COLOUR_LANES), S.vector(S.f32, COLOUR_LANES)


def _levels(builder: Any, address: Any) -> Any:
    return builder.zext(S.load(builder, address, S.vector(S.i8, COLOUR_LANES)), _words)


def _luma(builder: Any, r: Any, g: Any, b: Any) -> Any:
    """Pillow's L of int32 lanes."""
    # Twice the green and half its weight, which then has 15 bits: LLVM multiplies such numbers by faster instructions.
    green = builder.mul(builder.add(g, g), S.same(_words, LUMA_GREEN // 2))
    total = builder.add(builder.mul(r, S.same(_words, LUMA_RED)), green)
    total = builder.add(builder.add(total, builder.mul(b, S.same(_words, LUMA_BLUE))), S.same(_words, LUMA_HALF))
    return builder.lshr(total, S.same(_words, LUMA_SHIFT))


def _blend(builder: Any, degenerate: Any, level: Any, factor: Any) -> Any:
    """Image.blend of int32 lanes in float32, truncated and clipped -> int8 lanes. ``factor``: float lanes."""
    base = builder.sitofp(degenerate, _floats)
    value = builder.fadd(base, builder.fmul(factor, builder.fsub(builder.sitofp(level, _floats), base)))
    # Factors are finite and levels small, so the conversion never overflows; clip as integers.
    whole = builder.fptosi(value, _words)
    whole = builder.select(builder.icmp_signed("<", whole, S.same(_words, 0)), S.same(_words, 0), whole)
    whole = builder.select(builder.icmp_signed(">", whole, S.same(_words, 255)), S.same(_words, 255), whole)
    return builder.trunc(whole, S.vector(S.i8, COLOUR_LANES))


@vector_block(I64, I64, F32)
def mix_block(builder: Any, planes: Any, stride: Any, factor: Any) -> Any:
    """16 pixels of three planes blended with their luma, in place."""
    addresses = planes_from(builder, planes, stride)
    levels = [_levels(builder, address) for address in addresses]
    gray, factor = _luma(builder, *levels), S.splat(builder, factor, COLOUR_LANES)
    for address, level in zip(addresses, levels, strict=True):
        S.store(builder, _blend(builder, gray, level, factor), address)


@vector_block(I64, I64, I64)
def matrix_block(builder: Any, planes: Any, stride: Any, matrix: Any) -> Any:
    """16 pixels of three planes times a float32[3, 4] on (r, g, b, 1), summed left to right, in place."""
    addresses = planes_from(builder, planes, stride)
    levels = [load_lanes(builder, address, "i8", COLOUR_LANES).wide("i32").floats() for address in addresses]
    for row, address in enumerate(addresses):
        *weights, offset = (
            same_lanes(builder, S.load(builder, S.after(builder, matrix, 16 * row + 4 * i), S.f32), COLOUR_LANES)
            for i in range(4)
        )
        red, green, blue = (level * weight for level, weight in zip(levels, weights, strict=True))
        value = red + green + blue + offset + 0.5
        # Half up: truncation is the floor of what is not negative.
        value.most(0.0).least(255.0).truncated().narrow("i8").store(address)


@vector_block(I64, I64, I64, I64, I64)
def permute_block(builder: Any, planes: Any, stride: Any, red: Any, green: Any, blue: Any) -> Any:
    """64 pixels of three planes, made of the planes that lie so many bytes from the first, in place."""
    levels = [load_lanes(builder, builder.add(planes, offset), "i8", BLOCK) for offset in (red, green, blue)]
    for level, address in zip(levels, planes_from(builder, planes, stride), strict=True):
        level.store(address)


@vector_block(I64, I64, I64, F32, I64)
def sharpen_block(builder: Any, above: Any, row: Any, below: Any, factor: Any, target: Any) -> Any:
    """16 pixels of one plane blended with Pillow's SMOOTH; the addresses are of the pixels themselves, in three
    rows.
    """
    halves = S.vector(S.i16, COLOUR_LANES)

    def neighbour(address: Any, dx: int) -> Any:
        at = S.after(builder, address, dx)
        return builder.zext(S.load(builder, at, S.vector(S.i8, COLOUR_LANES)), halves)

    centre = neighbour(row, 0)
    total = builder.mul(centre, S.same(halves, 4))
    for address in [above, row, below]:
        for dx in (-1, 0, 1):
            total = builder.add(total, neighbour(address, dx))
    # floor((2 total + 13) / 26), by a product that is exact for every total up to 13 * 255.
    total = builder.zext(total, _words)
    odd = builder.add(builder.shl(total, S.same(_words, 1)), S.same(_words, 13))
    smooth = builder.lshr(builder.mul(odd, S.same(_words, 20165)), S.same(_words, 19))
    value = _blend(builder, smooth, builder.zext(centre, _words), S.splat(builder, factor, COLOUR_LANES))
    S.store(builder, value, target)
