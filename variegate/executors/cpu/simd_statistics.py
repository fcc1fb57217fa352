"""Statistics of interleaved levels, many at a time: how often each occurs, the least and greatest, the sum of lumas.

They read RGB pixels from the first channel of one on. Of gray images the three channels are every third pixel each, and
what is found of them belongs together.
"""

from __future__ import annotations

from functools import reduce

from llvmlite import ir

from variegate.compiling.levels import HAS_AVX2
from variegate.executors.cpu.simd import I64, Value, kind_of, repeat, steps, vector_block
from variegate.executors.cpu.simd_values import luma

# Levels that ``count_levels`` reads at a time; tables that it fills in turn, per channel.
COUNTED, TABLES = 24, 2
# Levels that ``widen_extremes`` reads at a time.
EXTREMES = 96
# Pixels that ``sum_luma`` reads at a time.
_STRETCHES = 2 if HAS_AVX2 else 1
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
