"""Percentiles of uint16 and float32 images: a radix select of two values per channel, by 256 counts in each round.

A round counts the next digit of the values that share the digits found so far with the value that is searched. Round 0
is measured as other statistics are, further rounds by ``statistics.search``. Counts are integers, so that results do
not depend on the order of tiles. NaN is not counted. CPU counterpart: ``native/kernels/deep.cpp``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.deep import key_of, value_of


@triton.jit
def count(work, seen, level):
    """Add a tile's levels of 0..255 to the counts at ``work``."""
    counts = tl.histogram(level, 256, mask=seen)
    bins = tl.arange(0, 256)
    tl.atomic_add(work + L.COUNTS + bins, counts, mask=counts != 0, sem="relaxed")


@triton.jit
def cut_off(total, percent):
    """The number of ``total`` values that a share of ``percent`` cuts off, as in Python."""
    share = total.to(tl.float64) * percent
    cut = (share / 100.0).to(tl.int32)
    return tl.where(cut.to(tl.float64) * 100.0 > share, cut - 1, cut)


@triton.jit
def is_number(value):
    """False for NaN."""
    return value == value


@triton.jit
def _digits_of(value, number, FORMAT: tl.constexpr):
    """The digits of a value up to round ``number``, uint32 in the order of values."""
    if FORMAT == L.UINT16:
        key = value.to(tl.uint32)
    else:
        # Negative numbers come first.
        key = (key_of(value) ^ (-L.LAST_KEY - 1)).to(tl.uint32, bitcast=True)
    return key >> (L.DIGIT_BITS * (L.ROUNDS[FORMAT] - 1 - number)).to(tl.uint32)


@triton.jit
def _split(digits):
    """The last digit, and those before it, int32."""
    return (digits & ((1 << L.DIGIT_BITS) - 1)).to(tl.int32), (digits >> L.DIGIT_BITS).to(tl.int32)


@triton.jit
def count_first_digits(work, seen, value, FORMAT: tl.constexpr):
    """Count the first digits of a channel's values, of a tile."""
    digit, _ = _split(_digits_of(value, tl.full([], 0, tl.int32), FORMAT))
    count(work, seen & is_number(value), digit)


@triton.jit
def count_digits(work, channel, number, seen, value, FORMAT: tl.constexpr):
    """Count digit ``number`` of the values that begin as a channel's percentiles do, of a tile."""
    digit, begin = _split(_digits_of(value, number, FORMAT))
    seen = seen & is_number(value)
    found = work + L.PERCENTILES + 4 * channel
    count(work + 256 * channel, seen & (begin == tl.load(found)), digit)
    count(work + L.SECOND_COUNTS + 256 * channel, seen & (begin == tl.load(found + 2)), digit)


@triton.jit
def _take_counts(at):
    """The counts at ``at``; clears them."""
    at += tl.arange(0, 256)
    counts = tl.load(at, cache_modifier=".cg")
    tl.debug_barrier()
    tl.store(at, counts * 0)
    return counts


@triton.jit
def _seek(found, begin, rank, counts):
    """Write a percentile's digits: ``begin``, and the digit of value number ``rank`` of the counted ones; then the
    number of counted values that are smaller and have the same digits."""
    up_to = tl.cumsum(counts, axis=0)
    is_below = up_to <= rank
    digit = tl.sum(is_below.to(tl.int32), axis=0)
    tl.store(found, (begin << L.DIGIT_BITS) | digit)
    tl.store(found + 1, rank - tl.max(tl.where(is_below, up_to, 0), axis=0))


@triton.jit
def begin_search(work, channel, low, high, outside, fill, FORMAT: tl.constexpr):
    """Find the first digits of percentiles ``low`` and ``high`` of a channel. Without any number, all digits become 0.

    ``outside`` pixels of the color ``fill`` count besides the image.
    """
    bins = tl.arange(0, 256)
    digit, _ = _split(_digits_of(fill, tl.full([], 0, tl.int32), FORMAT))
    counts = _take_counts(work + 256 * channel) + tl.where(bins == digit, outside, 0)
    total = tl.sum(counts, axis=0)
    found = work + L.PERCENTILES + 4 * channel
    _seek(found, 0, tl.minimum(cut_off(total, low), total - 1), counts)
    _seek(found + 2, 0, total - 1 - cut_off(total, 100.0 - high), counts)


@triton.jit
def continue_search(work, channel, number, outside, fill, FORMAT: tl.constexpr):
    """Find digit ``number`` of both percentiles of a channel."""
    bins = tl.arange(0, 256)
    digit, fill_begin = _split(_digits_of(fill, number, FORMAT))
    for end in tl.static_range(2):
        found = work + L.PERCENTILES + 4 * channel + 2 * end
        begin = tl.load(found, cache_modifier=".cg")
        rank = tl.load(found + 1, cache_modifier=".cg")
        counts = _take_counts(work + end * L.SECOND_COUNTS + 256 * channel)
        counts += tl.where((bins == digit) & (fill_begin == begin), outside, 0)
        _seek(found, begin, rank, counts)


@triton.jit
def end_search(work, channel, FORMAT: tl.constexpr):
    """The values at both percentiles of a channel, whose digits are all found; clears the digits."""
    # Other threads may have written the digits.
    tl.debug_barrier()
    found = work + L.PERCENTILES + 4 * channel
    low = _value_of_digits(tl.load(found, cache_modifier=".cg"), FORMAT)
    high = _value_of_digits(tl.load(found + 2, cache_modifier=".cg"), FORMAT)
    tl.debug_barrier()
    tl.store(found + tl.arange(0, 4), tl.full([4], 0, tl.int32))
    return low, high


@triton.jit
def _value_of_digits(digits, FORMAT: tl.constexpr):
    if FORMAT == L.UINT16:
        value = digits.to(tl.float32)
    else:
        value = value_of(digits ^ (-L.LAST_KEY - 1))
    return value
