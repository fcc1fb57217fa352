"""The pass table of a fused Program, written by lowering, read by executors and ``explain``."""

from __future__ import annotations

from enum import IntEnum


class PassSource(IntEnum):
    """Sources of the pixels that the value operations of a pass act on."""

    DIRECT = 0  # as they are
    ROW_COPY = 1  # one map whose rows are parts of source rows: a flip, a crop, a pad, a shift by whole pixels
    FIXED = 2  # one nearest map in fixed point
    CHAIN = 3  # several of them, walked back
    TABLE = 4  # a table of columns and one of rows: a nearest scale, padding that repeats the image
    INTERPOLATED = 5  # real-valued maps, walked back, then one interpolation
    FILTER = 6  # a pixel's neighbors
    RESAMPLE = 7  # an area of the source
    FOLDED = 8  # a CHAIN, or one map, some of which fold what lies beyond their images


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


# Columns of ``Program.passes``, int32[R, P, PASS_FIELDS]. Slots count from the row's first instruction; a range is
# begin..end, empty where both are equal. A JPEG lies in the slot before BEGIN.
(
    BEGIN,  # slots of the pass
    END,
    SOURCE,  # a PassSource
    FIRST,  # the first map, the filter or the resample; BEGIN where there is none
    MAPS_END,  # one past the last map; of a filter, the filter itself
    VALUES,  # from here on value operations act on what was read; those before it act on what is read
    POSITION,  # the first operation that depends on position, else END
    STATISTICS,  # the first statistic, else END
    STATISTICS_END,  # one past the last statistic
    NEEDS,  # what statistics are made of: NEEDS_LUMA, NEEDS_COUNTS
    TOP,  # the part of the source that the first statistic sees
    LEFT,
    BOTTOM,
    RIGHT,
    NUM_FILL,  # how many pixels with its map's fill color it sees besides
    BREAK,  # a PassBreak: why BEGIN is not in the pass before
    BLOCKING_SLOT,  # the slot in the pass before that it could not join, else -1
    HEIGHT,  # the size of the image that the pass writes
    WIDTH,
    QUALITY,  # of the JPEG that the image goes through before the pass reads it, 1 to 100; 0 for none
) = range(20)
PASS_FIELDS = 20

NEEDS_LUMA = 1
NEEDS_COUNTS = 2
