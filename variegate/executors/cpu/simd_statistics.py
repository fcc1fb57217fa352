"""Statistics of interleaved levels, many at a time: how often each occurs, the least and greatest, the sum of lumas.

They read RGB pixels from the first channel of one on. Of gray images the three channels are every third pixel each, and
what is found of them belongs together.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from variegate.compiling.levels import HAS_AVX2
from variegate.executors.cpu.simd import I64, after, call_named, i8, i32, i64, load, store, vector, vector_block
from variegate.program.ops import LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT

# Levels that ``count_levels`` reads at a time; tables that it fills in turn, per channel.
COUNTED, TABLES = 24, 2
# Levels that ``widen_extremes`` reads at a time.
EXTREMES = 96
# Pixels that ``sum_luma`` reads at a time.
_STRETCHES = 2 if HAS_AVX2 else 1
LUMAS = 4 * _STRETCHES


@vector_block(I64, I64, I64)
def count_levels(builder: Any, source: Any, groups: Any, counts: Any) -> Any:
    """Each of ``groups`` times COUNTED levels raises its counter, in int32[3][TABLES][256].

    Neighbouring pixels are often equal, and one counter cannot be raised twice at once: they take turns with the
    tables. More tables gain nothing, as the three channels have their own.
    """
    with cgutils.for_range(builder, groups) as loop:
        at = builder.add(source, builder.mul(loop.index, ir.Constant(i64, COUNTED)))
        for i in range(COUNTED):
            pixel, channel = divmod(i, 3)
            level = builder.zext(load(builder, after(builder, at, i), i8), i64)
            table = after(builder, counts, 1024 * (TABLES * channel + pixel % TABLES))
            place = builder.add(table, builder.mul(level, ir.Constant(i64, 4)))
            store(builder, builder.add(load(builder, place, i32), ir.Constant(i32, 1)), place)


@vector_block(I64, I64, I64)
def widen_extremes(builder: Any, source: Any, size: Any, extremes: Any) -> Any:
    """``size`` levels, no fewer than EXTREMES, into the least and the greatest of each place, uint8[2][EXTREMES]."""
    kind, step = vector(i8, 32), ir.Constant(i64, EXTREMES)
    held = [[cgutils.alloca_once(builder, kind) for _ in range(EXTREMES // 32)] for _ in range(2)]
    places = [[after(builder, extremes, EXTREMES * i + 32 * j) for j in range(EXTREMES // 32)] for i in range(2)]
    for i in range(2):
        for variable, place in zip(held[i], places[i], strict=True):
            builder.store(load(builder, place, kind), variable)
    last = builder.sub(size, step)
    with cgutils.for_range_slice(builder, ir.Constant(i64, 0), size, step, i64) as (x, _):
        # The last block overlaps the one before it, so that no read leaves the stretch.
        at = builder.add(source, builder.select(builder.icmp_signed("<", x, last), x, last))
        for j in range(EXTREMES // 32):
            levels = load(builder, after(builder, at, 32 * j), kind)
            for i, less in enumerate(("<", ">")):
                old = builder.load(held[i][j])
                builder.store(builder.select(builder.icmp_unsigned(less, levels, old), levels, old), held[i][j])
    for i in range(2):
        for variable, place in zip(held[i], places[i], strict=True):
            store(builder, builder.load(variable), place)


@vector_block(I64, I64, result=I64)
def sum_luma(builder: Any, source: Any, groups: Any) -> Any:
    """Sum of Pillow's L of ``groups`` times LUMAS pixels, at most a million. Reads four bytes past the last."""
    count = 4 * _STRETCHES
    words, narrow = vector(i32, count), vector(i8, 16)
    total = cgutils.alloca_once_value(builder, ir.Constant(words, [0] * count))
    with cgutils.for_range(builder, groups) as loop:
        at = builder.add(source, builder.mul(loop.index, ir.Constant(i64, 12 * _STRETCHES)))
        parts = [load(builder, after(builder, at, 12 * s), narrow) for s in range(_STRETCHES)]
        levels = parts[0]
        if _STRETCHES == 2:
            lanes = ir.Constant(vector(i32, 32), list(range(32)))
            levels = builder.shuffle_vector(parts[0], parts[1], lanes)
        none = ir.Constant(levels.type, [0] * levels.type.count)
        zero = levels.type.count

        def channel(c: int, levels: Any = levels, none: Any = none, zero: int = zero) -> Any:
            lanes = [
                lane for s in range(_STRETCHES) for i in range(4) for lane in (16 * s + 3 * i + c, zero, zero, zero)
            ]
            spread = builder.shuffle_vector(levels, none, ir.Constant(vector(i32, zero), lanes))
            return builder.bitcast(spread, words)

        red, green, blue = channel(0), channel(1), channel(2)
        # Twice the green and half its weight, which then fits into the 16 bits that are multiplied fastest.
        value = builder.mul(builder.add(green, green), ir.Constant(words, [LUMA_GREEN // 2] * count))
        value = builder.add(value, builder.mul(red, ir.Constant(words, [LUMA_RED] * count)))
        value = builder.add(value, builder.mul(blue, ir.Constant(words, [LUMA_BLUE] * count)))
        value = builder.lshr(
            builder.add(value, ir.Constant(words, [LUMA_HALF] * count)), ir.Constant(words, [LUMA_SHIFT] * count)
        )
        builder.store(builder.add(builder.load(total), value), total)
    return builder.zext(call_named(builder, f"llvm.vector.reduce.add.v{count}i32", i32, builder.load(total)), i64)
