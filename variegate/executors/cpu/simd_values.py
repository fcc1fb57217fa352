"""Vector blocks of value operations, to the bit as Pillow: tables of 256, mixed channels, sharpening, hue; and noise.

===================  ==================================================================================================
AVX-512 VBMI         four registers hold the table; one instruction picks 64 bytes from two of them
AVX-512              the same by words of two bytes, once for even and once for odd places
AVX2, SSSE3          16 rows of 16 bytes, one shuffle each, which gives zero where the top bit of an index is set
===================  ==================================================================================================

Elsewhere a plain loop looks up one byte at a time (``values.look_up``). Of hue, Pillow goes through float and double
(reference/values.py). That the few roundings here give the same bytes for all colours and all of HSV was checked one by
one; tests/executors/test_hue.py does so again.

Noise is made of Philox words and normal numbers by the table of program/rng.py, 16 pixels at a time. Words and normal
numbers lie in three rows, one for each channel.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from variegate.compiling.levels import HAS_AVX2, HAS_AVX512, HAS_BYTE_PERMUTE, HAS_BYTE_SHUFFLE
from variegate.executors.cpu.simd import BLOCK, F32, I32, I64, Value, kind_of, planes_from, steps, vector_block
from variegate.program.ops import LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT
from variegate.program.rng import FIRST_SEGMENT, MAGNITUDE, MULTIPLIERS, ROUNDS, SEGMENT_SHIFT, SIGN, WEYL


def _permute(quarters: list[Value], index: Value, name: str) -> tuple[Value, Value]:
    """Bytes or words that the index picks from the low and from the high half of a table."""
    low, high = (quarters[i].call(name, index.value.type, index, quarters[i + 1]) for i in (0, 2))
    return low, high


@vector_block(I64, I64, I64, needs=HAS_BYTE_PERMUTE)
def lookup_by_bytes(row: Value, count: Value, table: Value) -> None:
    """``count`` bytes from ``row`` on become what ``table`` has for them; rounded up to whole blocks of 64."""
    quarters = [(table + BLOCK * i).load("i8", BLOCK) for i in range(4)]
    with steps(count, BLOCK) as x:
        index = (row + x).load("i8", BLOCK)
        low, high = _permute(quarters, index, "llvm.x86.avx512.vpermi2var.qi.512")
        (index < 0).choose(high, low).store(row + x)


@vector_block(I64, I64, I64, needs=HAS_AVX512)
def lookup_by_words(row: Value, count: Value, table: Value) -> None:
    """As ``lookup_by_bytes``: bits 1 to 6 of an index pick a word, bit 7 the half of the table, bit 0 the byte."""
    quarters = [(table + BLOCK * i).load("i16", BLOCK // 2) for i in range(4)]
    is_odd_place = Value(row.builder, ir.Constant(kind_of("i1", BLOCK), [0, 1] * (BLOCK // 2)))
    with steps(count, BLOCK) as x:
        index = (row + x).load("i16", BLOCK // 2)
        found = []
        for shift, is_high in ((1, (index & 128).differs(0)), (9, index < 0)):
            low, high = _permute(quarters, index >> shift, "llvm.x86.avx512.vpermi2var.hi.512")
            found.append(is_high.choose(high, low))
        even, odd = found
        first, second = (
            is_odd_place.choose(upper.bits("i8", BLOCK), lower.bits("i8", BLOCK))
            for lower, upper in ((even, odd << 8), (even >> 8, odd))
        )
        is_second = (index.bits("i8", BLOCK) & 1).differs(0)
        is_second.choose(second, first).store(row + x)


def _by_shuffles(width: int, shuffle: str, needs: bool) -> Any:
    @vector_block(I64, I64, I64, needs=needs)
    def lookup(row: Value, count: Value, table: Value) -> None:
        """As ``lookup_by_bytes``, of up to 32 bytes at a time.

        An index loses 16 from row to row of the table, and stays below zero once it is: what remains of it picks from
        this row *and those before*. So each row is held as its difference (xor) to the one before, and what the
        shuffles give is put together by xor. The upper half of the table has the index less 128.
        """
        builder, wide = row.builder, kind_of("i8", width)
        rows = [(table + 16 * t).load("i8", 16) for t in range(16)]
        differences = cgutils.alloca_once(builder, wide, 16)
        places = [ir.Constant(kind_of("i32"), t) for t in range(16)]
        for t in range(16):
            difference = (rows[t] if t % 8 == 0 else rows[t] ^ rows[t - 1]).picked([i % 16 for i in range(width)])
            builder.store(difference.value, builder.gep(differences, [places[t]]))
        # Seen as a variable. LLVM would make seven constants of the one, and copies for instructions that overwrite.
        constant = ir.Constant(wide, [16] * width)
        sixteen = Value(builder, builder.asm(ir.FunctionType(wide, [wide]), "", "=x,0", [constant], False))
        with steps(count, width) as x:
            low = (row + x).load("i8", width)
            high, total = low ^ 128, low.constant(0)
            for t in range(8):
                for half, index in ((0, low), (8, high)):
                    difference = Value(builder, builder.load(builder.gep(differences, [places[half + t]])))
                    total = total ^ difference.call(shuffle, wide, index)
                low, high = (index.call(f"llvm.ssub.sat.v{width}i8", wide, sixteen) for index in (low, high))
            total.store(row + x)

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


def luma(r: Value, g: Value, b: Value) -> Value:
    """Pillow's L of i32."""
    # Twice the green and half its weight, which then has 15 bits: LLVM multiplies such numbers by faster instructions.
    return ((g + g) * (LUMA_GREEN // 2) + r * LUMA_RED + b * LUMA_BLUE + LUMA_HALF) >> LUMA_SHIFT


def _blend(degenerate: Value, level: Value, factor: Value) -> Value:
    """Image.blend of i32 in float32, truncated and clipped -> i8."""
    base = degenerate.floats()
    # Factors are finite and levels small, so the conversion never overflows; clip as integers.
    return (base + factor * (level.floats() - base)).truncated().within(0, 255).narrow("i8")


@vector_block(I64, I64, F32)
def mix_block(planes: Value, stride: Value, factor: Value) -> None:
    """16 pixels of three planes blended with their luma, in place."""
    addresses = planes_from(planes, stride)
    levels = [address.load("i8", COLOUR_LANES).wide("i32") for address in addresses]
    gray, factors = luma(*levels), factor.splat(COLOUR_LANES)
    for address, level in zip(addresses, levels, strict=True):
        _blend(gray, level, factors).store(address)


@vector_block(I64, I64, I64)
def matrix_block(planes: Value, stride: Value, matrix: Value) -> None:
    """16 pixels of three planes times a float32[3, 4] on (r, g, b, 1), summed left to right, in place."""
    addresses = planes_from(planes, stride)
    levels = [address.load("i8", COLOUR_LANES).wide("i32").floats() for address in addresses]
    for row, address in enumerate(addresses):
        *weights, offset = ((matrix + (16 * row + 4 * i)).load("f32").splat(COLOUR_LANES) for i in range(4))
        red, green, blue = (level * weight for level, weight in zip(levels, weights, strict=True))
        value = red + green + blue + offset + 0.5
        # Half up: truncation is the floor of what is not negative.
        value.most(0.0).least(255.0).truncated().narrow("i8").store(address)


@vector_block(I64, I64, I64, I64, I64)
def permute_block(planes: Value, stride: Value, red: Value, green: Value, blue: Value) -> None:
    """64 pixels of three planes, made of the planes that lie so many bytes from the first, in place."""
    levels = [(planes + offset).load("i8", BLOCK) for offset in (red, green, blue)]
    for level, address in zip(levels, planes_from(planes, stride), strict=True):
        level.store(address)


@vector_block(I64, I64, I64, F32, I64)
def sharpen_block(above: Value, row: Value, below: Value, factor: Value, target: Value) -> None:
    """16 pixels of one plane blended with Pillow's SMOOTH; the addresses are of the pixels themselves, in three
    rows.
    """
    centre = (row + 0).load("i8", COLOUR_LANES).wide("i16")
    total = centre * 4
    for address in (above, row, below):
        for dx in (-1, 0, 1):
            total = total + (address + dx).load("i8", COLOUR_LANES).wide("i16")
    # floor((2 total + 13) / 26), by a product that is exact for every total up to 13 * 255.
    smooth = (((total.wide("i32") << 1) + 13) * 20165) >> 19
    _blend(smooth, centre.wide("i32"), factor.splat(COLOUR_LANES)).store(target)


HUE_LANES = 32
# Levels fade by v * (_FADES - s * weight) / _FADES, weight 0 to 85: exact in float32 before the division.
_SIXTH, _FADES = 85, 255 * 85
# Added to a level, it rounds it to an integer, in the lower bits of the float32.
_ROUNDING = 2.0**23


@vector_block(I64, I64, I32)
def hue_block(planes: Value, stride: Value, shift: Value) -> None:
    """32 pixels of three planes with their hue byte moved by ``shift``, in place."""
    addresses = planes_from(planes, stride)
    h, s, high = _hue_and_saturation(*(address.load("i8", HUE_LANES) for address in addresses))
    place = (h + shift.splat(HUE_LANES).narrow("i16")) & 255
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


def _hue_and_saturation(r: Value, g: Value, b: Value) -> tuple[Value, Value, Value]:
    """i8 -> hue and saturation, i16, and value, i8."""
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


NOISE_LANES = 16
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
        # Numba's own would be filled with zeros in every call.
        with builder.goto_entry_block():
            room = builder.alloca(ir.ArrayType(kind_of("i8"), 3 * CHUNK_STRIDE))
        room.align = 64
        return builder.ptrtoint(room, kind_of("i64"))

    return types.int64(), codegen


@vector_block(*[I64] * 7)
def words_block(pixel: Value, slot: Value, low: Value, high: Value, key0: Value, key1: Value, target: Value) -> None:
    """The first three Philox words of the pixels from ``pixel`` on. See program/rng.py."""
    rows = planes_from(target, CHUNK_STRIDE)
    for first in range(0, NOISE_LANES, _AT_A_TIME):
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
    word, builder = words.load("i32", NOISE_LANES), words.builder
    number = ((word & MAGNITUDE) | 1).floats()
    segment = number.bits("i32") >> SEGMENT_SHIFT
    segments = segments - 8 * FIRST_SEGMENT
    # Loads one by one, base and slope together: gathers are slower on most processors, on some by far.
    pairs = ir.Constant(kind_of("i64", NOISE_LANES), ir.Undefined)
    for i in range(NOISE_LANES):
        lane = ir.Constant(kind_of("i32"), i)
        at = segments + (Value(builder, builder.extract_element(segment.value, lane)).wide("i64") << 3)
        pair = builder.load(builder.inttoptr(at.value, kind_of("i64").as_pointer()), align=8)
        pairs = builder.insert_element(pairs, pair, lane)
    lines = Value(builder, pairs).bits("f32", 2 * NOISE_LANES)
    base, slope = (lines.picked(range(k, 2 * NOISE_LANES, 2)) for k in (0, 1))
    return ((base + slope * number).bits("i32") ^ (word & SIGN)).bits("f32")


@vector_block(I64, I64)
def normal_block(words: Value, segments: Value) -> None:
    """Words of one channel, in place, as standard normal float32. ``segments``: the table's address."""
    _normals(words, segments).store(words)


@vector_block(I64, I64, I64, F32, F32)
def gaussian_block(levels: Value, words: Value, segments: Value, mean: Value, sigma: Value) -> None:
    """Levels of one channel, in place."""
    normals = _normals(words, segments)
    shift = (mean.splat(NOISE_LANES) + sigma.splat(NOISE_LANES) * normals) * 255.0
    _store_rounded(levels.load("i8", NOISE_LANES).wide("i32").floats() + shift, levels)


@vector_block(I64, I64, I64, F32)
def shot_block(levels: Value, words: Value, segments: Value, scale: Value) -> None:
    """Levels of one channel, in place."""
    level = levels.load("i8", NOISE_LANES).wide("i32").floats()
    shift = (level * scale.splat(NOISE_LANES)).root() * _normals(words, segments)
    _store_rounded(level + shift, levels)


def _store_rounded(value: Value, address: Value) -> None:
    """Half up, within the levels: truncation is the floor of what is not negative."""
    (value + 0.5).most(0.0).least(255.0).truncated().narrow("i8").store(address)


@vector_block(I64, I64, I64, F32, F32)
def salt_block(planes: Value, stride: Value, words: Value, amount: Value, salt: Value) -> None:
    """Pixels of three planes, in place, made white or black by the words of two channels."""
    first, second, _ = planes_from(words, CHUNK_STRIDE)
    is_hit = _unit(first).below(amount.splat(NOISE_LANES))
    extreme = _unit(second).below(salt.splat(NOISE_LANES)).mask("i8")
    for address in planes_from(planes, stride):
        is_hit.choose(extreme, address.load("i8", NOISE_LANES)).store(address)


def _unit(words: Value) -> Value:
    return (words.load("i32", NOISE_LANES) >> 8).floats() * 2.0**-24
