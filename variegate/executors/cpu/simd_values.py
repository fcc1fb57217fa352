"""Vector blocks of value operations, to the bit as Pillow: tables of 256, mixed channels, sharpening, hue.

===================  ==================================================================================================
AVX-512 VBMI         four registers hold the table; one instruction picks 64 bytes from two of them
AVX-512              the same by words of two bytes, once for even and once for odd places
AVX2, SSSE3          16 rows of 16 bytes, one shuffle each, which gives zero where the top bit of an index is set
===================  ==================================================================================================

Elsewhere a plain loop looks up one byte at a time (``values.look_up``). Of hue, Pillow goes through float and double
(reference/hsv.py). That the few roundings here give the same bytes for all colours and all of HSV was checked one by
one; tests/executors/test_hue.py does so again.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from variegate.compiling.levels import HAS_AVX2, HAS_AVX512, HAS_BYTE_PERMUTE, HAS_BYTE_SHUFFLE
from variegate.executors.cpu import simd as S
from variegate.executors.cpu.lanes import Lanes, load_lanes, same_lanes
from variegate.executors.cpu.simd import BLOCK, F32, I32, I64, planes_from, vector_block
from variegate.program.ops import LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT

_bytes, _halves = S.vector(S.i8, BLOCK), S.vector(S.i16, BLOCK // 2)


def _quarters(builder: Any, table: Any, kind: Any) -> list[Any]:
    return [S.load(builder, S.after(builder, table, BLOCK * i), kind) for i in range(4)]


@vector_block(I64, I64, I64, needs=HAS_BYTE_PERMUTE)
def lookup_by_bytes(builder: Any, row: Any, count: Any, table: Any) -> Any:
    """``count`` bytes from ``row`` on become what ``table`` has for them; rounded up to whole blocks of 64."""
    quarters, name = _quarters(builder, table, _bytes), "llvm.x86.avx512.vpermi2var.qi.512"
    with cgutils.for_range_slice(builder, ir.Constant(S.i64, 0), count, ir.Constant(S.i64, BLOCK), S.i64) as (x, _):
        index = S.load(builder, builder.add(row, x), _bytes)
        low = S.call_named(builder, name, _bytes, quarters[0], index, quarters[1])
        high = S.call_named(builder, name, _bytes, quarters[2], index, quarters[3])
        is_high = builder.icmp_signed("<", index, S.same(_bytes, 0))
        S.store(builder, builder.select(is_high, high, low), builder.add(row, x))


@vector_block(I64, I64, I64, needs=HAS_AVX512)
def lookup_by_words(builder: Any, row: Any, count: Any, table: Any) -> Any:
    """As ``lookup_by_bytes``: bits 1 to 6 of an index pick a word, bit 7 the half of the table, bit 0 the byte."""
    quarters, name = _quarters(builder, table, _halves), "llvm.x86.avx512.vpermi2var.hi.512"
    eight, zero = S.same(_halves, 8), S.same(_halves, 0)
    is_odd_place = ir.Constant(S.vector(ir.IntType(1), BLOCK), [0, 1] * (BLOCK // 2))
    with cgutils.for_range_slice(builder, ir.Constant(S.i64, 0), count, ir.Constant(S.i64, BLOCK), S.i64) as (x, _):
        index = S.load(builder, builder.add(row, x), _halves)
        found = []
        for shift, is_high in (
            (1, builder.icmp_signed("!=", builder.and_(index, S.same(_halves, 128)), zero)),
            (9, builder.icmp_signed("<", index, zero)),
        ):
            at = builder.lshr(index, S.same(_halves, shift))
            low = S.call_named(builder, name, _halves, quarters[0], at, quarters[1])
            high = S.call_named(builder, name, _halves, quarters[2], at, quarters[3])
            found.append(builder.select(is_high, high, low))
        even, odd = found
        first, second = (
            builder.select(is_odd_place, builder.bitcast(b, _bytes), builder.bitcast(a, _bytes))
            for a, b in ((even, builder.shl(odd, eight)), (builder.lshr(even, eight), odd))
        )
        lowest = builder.and_(builder.bitcast(index, _bytes), S.same(_bytes, 1))
        is_second = builder.icmp_signed("!=", lowest, S.same(_bytes, 0))
        S.store(builder, builder.select(is_second, second, first), builder.add(row, x))


def _by_shuffles(width: int, shuffle: str, needs: bool) -> Any:
    @vector_block(I64, I64, I64, needs=needs)
    def lookup(builder: Any, row: Any, count: Any, table: Any) -> Any:
        """As ``lookup_by_bytes``, of up to 32 bytes at a time.

        An index loses 16 from row to row of the table, and stays below zero once it is: what remains of it picks from
        this row *and those before*. So each row is held as its difference (xor) to the one before, and what the
        shuffles give is put together by xor. The upper half of the table has the index less 128.
        """
        narrow, wide = S.vector(S.i8, 16), S.vector(S.i8, width)
        rows = [S.load(builder, S.after(builder, table, 16 * t), narrow) for t in range(16)]
        differences = cgutils.alloca_once(builder, wide, 16)
        lanes = ir.Constant(S.vector(S.i32, width), [i % 16 for i in range(width)])
        for t in range(16):
            difference = rows[t] if t % 8 == 0 else builder.xor(rows[t], rows[t - 1])
            difference = builder.shuffle_vector(difference, difference, lanes)
            builder.store(difference, builder.gep(differences, [ir.Constant(S.i32, t)]))
        # Seen as a variable. LLVM would make seven constants of the one, and copies for instructions that overwrite.
        sixteen = builder.asm(ir.FunctionType(wide, [wide]), "", "=x,0", [S.same(wide, 16)], False)
        subtract = f"llvm.ssub.sat.v{width}i8"
        with cgutils.for_range_slice(builder, ir.Constant(S.i64, 0), count, ir.Constant(S.i64, width), S.i64) as (x, _):
            low = S.load(builder, builder.add(row, x), wide)
            high, total = builder.xor(low, S.same(wide, 128)), S.same(wide, 0)
            for t in range(8):
                for half, index in ((0, low), (8, high)):
                    difference = builder.load(builder.gep(differences, [ir.Constant(S.i32, half + t)]))
                    total = builder.xor(total, S.call_named(builder, shuffle, wide, difference, index))
                low, high = (S.call_named(builder, subtract, wide, index, sixteen) for index in (low, high))
            S.store(builder, total, builder.add(row, x))

    return lookup


lookup_by_32 = _by_shuffles(32, "llvm.x86.avx2.pshuf.b", HAS_AVX2)
lookup_by_16 = _by_shuffles(16, "llvm.x86.ssse3.pshuf.b.128", HAS_BYTE_SHUFFLE)

lookup_row = (
    lookup_by_bytes
    if HAS_BYTE_PERMUTE
    else lookup_by_words
    if HAS_AVX512
    else lookup_by_32
    if HAS_AVX2
    else lookup_by_16
)


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


HUE_LANES = 32
# Levels fade by v * (_FADES - s * weight) / _FADES, weight 0 to 85: exact in float32 before the division.
_SIXTH, _FADES = 85, 255 * 85
# Added to a level, it rounds it to an integer, in the lower bits of the float32.
_ROUNDING = 2.0**23


@vector_block(I64, I64, I32)
def hue_block(builder: Any, planes: Any, stride: Any, shift: Any) -> Any:
    """32 pixels of three planes with their hue byte moved by ``shift``, in place."""
    addresses = planes_from(builder, planes, stride)
    h, s, high = _hue_and_saturation(*(load_lanes(builder, address, "i8", HUE_LANES) for address in addresses))
    place = (h + same_lanes(builder, shift, HUE_LANES).narrow("i16")) & 255
    place = place + place
    # How far the hue is from a channel's own, in 85ths of a sextant; it is full up to 85, and least from 170 on.
    red = 170 - (place - 255).magnitude()
    green = (place - 2 * _SIXTH).magnitude() - _SIXTH
    blue = (place - 4 * _SIXTH).magnitude() - _SIXTH
    value = high.wide("i32").floats() * (1.0 / _FADES)
    for address, weight in zip(addresses, (red, green, blue), strict=True):
        fade = _FADES - s * weight.clipped(0, _SIXTH)
        level = value * fade.signed("i32").floats() + _ROUNDING
        level.bits("i32").narrow("i8").store(address)


def _hue_and_saturation(r: Lanes, g: Lanes, b: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """int8 lanes -> hue and saturation, int16, and value, int8."""
    high, low = r.most(g).most(b), r.least(g).least(b)
    is_red, is_green = r.equals(high), g.equals(high)
    red_is_low, blue_is_low = r.equals(low).mask("i8"), b.equals(low).mask("i8")
    # Of six sextants, the hue is at ``base`` plus or minus the share that the middle level has of the span.
    base = is_green.choose((~blue_is_low & 2) + 1, (~red_is_low & 2) + 3)
    base = is_red.choose((blue_is_low & 2) - 1, base)
    falls = is_red.choose(blue_is_low, is_green.choose(~blue_is_low, ~red_is_low)).signed("i16")
    red, green, blue, most, least = (levels.wide("i16") for levels in (r, g, b, high, low))
    from_middle = most + most + least - red - green - blue
    span = high - low
    part = ((from_middle ^ falls) - falls).signed("i32").floats() / span.most(1).wide("i32").floats()
    turn = (base.signed("i32").floats() + part) / 6.0
    turn = turn.below(0.0).choose(turn + 1.0, turn)
    s = span.wide("i32").floats() * 255.0 / high.most(1).wide("i32").floats()
    return (turn * 255.0).truncated().narrow("i16"), s.truncated().narrow("i16"), high
