"""The pass table of a fused Program: written by lowering, read by executors and ``explain``."""

from __future__ import annotations

from enum import IntEnum


class PassSource(IntEnum):
    """Ways in which a pass reads the pixels for its value operations."""

    DIRECT = 0  # the same pixel of the source
    ROW_COPY = 1  # one map whose output rows are segments of source rows: a flip, crop, pad or integer shift
    FIXED = 2  # one nearest map in fixed point
    CHAIN = 3  # several fixed-point maps, applied from the output back to the source
    TABLE = 4  # source columns and rows from two tables: a nearest scale, or non-constant padding
    INTERPOLATED = 5  # real-valued maps, applied from the output back to the source, then one interpolation
    FILTER = 6  # a pixel's neighbors
    RESAMPLE = 7  # an area of the source
    FOLDED = 8  # as FIXED or CHAIN, where at least one map has a border mode other than a constant


class PassBreak(IntEnum):
    """Why an instruction could not join the pass before it."""

    NONE = 0  # the first pass
    MAP_AFTER_POSITION = 1
    MAP_AFTER_SOURCE = 2
    MAP_OF_ANOTHER_KIND = 3
    MAP_STAGE_BY_STAGE = 4
    MAP_AFTER_VALUES = 5
    STATISTIC_OF_NEW_IMAGE = 6
    STATISTIC_MEASURED_BEFORE = 7
    FILTER_OF_NEW_IMAGE = 8
    RESAMPLE_NOT_FIRST = 9
    CODEC = 10


# Columns of ``Program.passes``, int32[R, P, PASS_FIELDS]. Slots are instruction indices in the row. Ranges exclude
# their end. A JPEG occupies the slot before BEGIN.
(
    BEGIN,  # slots of the pass
    END,
    SOURCE,  # a PassSource
    FIRST,  # slot of the first map, the filter or the resample; BEGIN for none
    MAPS_END,  # one past the last map; for a filter, its slot
    VALUES,  # value operations before this slot apply to source pixels, later ones to the pixels that the source yields
    POSITION,  # slot of the first operation that depends on position, else END
    STATISTICS,  # slot of the first statistic, else END
    STATISTICS_END,  # one past the last statistic
    NEEDS,  # inputs of the statistics: bits NEEDS_LUMA, NEEDS_COUNTS
    TOP,  # the part of the source that the first statistic covers
    LEFT,
    BOTTOM,
    RIGHT,
    NUM_FILL,  # number of further pixels that the first statistic counts with the map's fill color
    BREAK,  # a PassBreak: why BEGIN could not join the previous pass
    BLOCKING_SLOT,  # the slot of the previous pass that prevented it, else -1
    HEIGHT,  # size of the image that the pass writes
    WIDTH,
    QUALITY,  # 1 to 100: JPEG quality of a round trip before the pass reads its source; 0: none
) = range(20)
PASS_FIELDS = 20

NEEDS_LUMA = 1
NEEDS_COUNTS = 2
