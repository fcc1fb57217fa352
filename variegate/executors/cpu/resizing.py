"""The weights of a resize, as Pillow's ImagingResample computes them, and the tables that its vector form reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir

from variegate.compiling.levels import HAS_BYTE_DOT
from variegate.executors.cpu.kernel import inlined
from variegate.executors.cpu.simd import (
    I64,
    REGISTER,
    Value,
    bytes_of,
    halves_of,
    interleaved,
    kind_of,
    multiplied,
    repeat,
    vector_block,
)
from variegate.program.compiled import inner_kernel
from variegate.program.ops import Interpolation

PRECISION = 22
LANES = 16
_BILINEAR, _BICUBIC = int(Interpolation.BILINEAR), int(Interpolation.BICUBIC)
_BOX, _HAMMING, _LANCZOS = int(Interpolation.BOX), int(Interpolation.HAMMING), int(Interpolation.LANCZOS)
# Pillow has these in single precision.
_HAMMING_MEAN, _HAMMING_SWING = float(np.float32(0.54)), float(np.float32(0.46))


@inlined
def filter_radius(kind: Any) -> float:
    """Reach of a filter at scale 1, in source pixels."""
    if kind == _BICUBIC:
        return 2.0
    return 3.0 if kind == _LANCZOS else 0.5 if kind == _BOX else 1.0


@inlined
def _sinc(x: Any) -> float:
    return 1.0 if x == 0.0 else math.sin(x * math.pi) / (x * math.pi)


@inner_kernel()
def _filter(x: Any, kind: Any) -> float:
    if kind == _BOX:
        return 1.0 if -0.5 < x <= 0.5 else 0.0
    x = abs(x)
    if kind == _BILINEAR:
        return 1.0 - x if x < 1.0 else 0.0
    if kind == _HAMMING:
        return _sinc(x) * (_HAMMING_MEAN + _HAMMING_SWING * math.cos(x * math.pi)) if x < 1.0 else 0.0
    if kind == _LANCZOS:
        return _sinc(x) * _sinc(x / 3.0) if x < 3.0 else 0.0
    a = -0.5
    if x < 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    if x < 2.0:
        return (((x - 5.0) * x + 8.0) * x - 4.0) * a
    return 0.0


@inlined
def axis_of_box(in_size: Any, start: Any, extent: Any, out_size: Any) -> Any:
    """A box along one axis, float32 as in Pillow -> (pixels skipped, the size without them, the box's first place, its
    scale, the filter's). ``start`` -1 - s: whole pixels from s on, cropped first; the filter does not see beyond them.
    """
    skipped = np.int64(0)
    if start < 0.0:
        skipped, in_size, start = np.int64(-1.0 - start), np.int64(extent), 0.0
    first = np.float32(start)
    scale = np.float64(np.float32(np.float32(start + extent) - first)) / out_size
    return skipped, in_size, np.float64(first), scale, max(scale, 1.0)


@inner_kernel()
def coefficients(
    in_size: Any, start: Any, extent: Any, out_size: Any, kind: Any, bounds: Any, weights: Any, real: Any
) -> int:
    """Per output i its first source index and number of weights, ``bounds[i]``, and weight j, ``weights[j * padded +
    i]``.

    Weights have 22 fraction bits, and are normalised in double; ``padded`` is ``out_size`` rounded up to whole vectors.
    Returns the greatest number of weights. The box is that of ``axis_of_box``.
    """
    skipped, in_size, first, scale, filter_scale = axis_of_box(in_size, start, extent, out_size)
    support, inverse = filter_radius(kind) * filter_scale, 1.0 / filter_scale
    stride = pad_to_vector(out_size)
    taps = int(np.ceil(support)) * 2 + 1
    weights[: taps * stride] = 0
    most = 0
    for i in range(out_size):
        low, count = weigh_output(first + (i + 0.5) * scale, support, inverse, in_size, kind, real)
        for j in range(count):
            weights[j * stride + i] = fixed_weight(real[j])
        bounds[i, 0], bounds[i, 1] = skipped + low, count
        most = max(most, count)
    return most


@inner_kernel()
def weigh_output(centre: Any, support: Any, inverse: Any, in_size: Any, kind: Any, real: Any) -> Any:
    """Weights of the output whose centre in the source this is, into ``real`` -> (first source index, their number)."""
    low = max(int(centre - support + 0.5), 0)
    high = min(int(centre + support + 0.5), in_size)
    total = 0.0
    for j in range(high - low):
        real[j] = _filter((j + low - centre + 0.5) * inverse, kind)
        total += real[j]
    for j in range(high - low):
        real[j] = real[j] / total if total != 0.0 else real[j]
    return low, high - low


@inlined
def fixed_weight(w: Any) -> Any:
    return np.int32(w * (1 << PRECISION) + (0.5 if w >= 0 else -0.5))


@inlined
def pad_to_vector(n: Any) -> Any:
    return (n + LANES - 1) // LANES * LANES


@inner_kernel()
def pick_tables(bounds: Any, weights: Any, taps: Any, out_width: Any, picks: Any, digits: Any) -> bool:
    """Fill the tables of ``resize_block``; False where a block of outputs spans more than its window."""
    stride = pad_to_vector(out_width)
    groups = (taps + 3) // 4
    for block in range(stride // LANES):
        base = bounds[block * LANES, 0]
        for lane in range(LANES):
            x = block * LANES + lane
            for j in range(4 * groups):
                at = ((block * groups + j // 4) * 3) * 64 + 4 * lane + j % 4
                is_used = x < out_width and j < bounds[x, 1]
                w = np.int64(weights[j * stride + x]) if is_used else 0
                first = 3 * (bounds[x, 0] + j - base) if is_used else 0
                if first + 2 >= WINDOW:
                    return False
                picks[at], picks[at + 64], picks[at + 128] = first, first + 1, first + 2
                digits[at], digits[at + 64], digits[at + 128] = split_weight(w)
    return True


@inner_kernel()
def pair_weights(weights: Any, taps: Any, out_width: Any, halves: Any) -> None:
    """Fill the weights of ``resize_pixels``: per block of outputs and pair of weights, low parts, then the
    high ones of every fourth output, for each channel both weights."""
    stride, pairs = pad_to_vector(out_width), (taps + 1) // 2
    for x in range(stride):
        block, lane = x // PIXELS, x % PIXELS
        for j in range(2 * pairs):
            low, high = split_in_two(np.int64(weights[j * stride + x]) if j < taps and x < out_width else 0)
            # Both parts of 16 bytes for every output.
            at = ((block * pairs + j // 2) * 8 + lane % 4 * 2) * (2 * PIXELS) + lane // 4 * 8 + j % 2
            for c in range(4):
                halves[at + 2 * c], halves[at + 2 * PIXELS + 2 * c] = low, high


DIGITS = 3
# Bytes of a source row that one block of 16 outputs may span: two registers, between which bytes are picked.
WINDOW = 128


def _zero(builder: Any, element: str, count: int) -> Value:
    return Value(builder, ir.Constant(kind_of(element, count), [0] * count))


def _dot(total: Value, levels: Value, digits: Value) -> Value:
    """i32[16] ``total`` plus, per lane, four unsigned ``levels`` times four signed ``digits``."""
    # The instruction's operands are words of four bytes in LLVM up to 21, and bytes from 22 on.
    if llvmlite.binding.llvm_version_info[0] < 22:
        levels, digits = levels.bits("i32", 16), digits.bits("i32", 16)
    return total.call("llvm.x86.avx512.vpdpbusd.512", total.value.type, levels, digits)


def _joined_digits(totals: list[Value]) -> Value:
    """The three digits' sums as one, rounded and shifted to a level that may still lie outside 0..255."""
    value = totals[0] + (1 << (PRECISION - 1))
    for digit in (1, 2):
        value = value + (totals[digit] << 8 * digit)
    return value.ashr(PRECISION)


@vector_block(I64, I64, I64, I64, I64, needs=HAS_BYTE_DOT)
def resize_block(source: Value, picks: Value, digits: Value, groups: Value, target: Value) -> None:
    """16 output pixels of a horizontal pass -> 16 RGBX pixels at ``target``.

    ``source``: WINDOW readable bytes. Per group of four weights: ``picks`` holds 3 x 64 byte positions (per channel,
    output and weight), ``digits`` holds 3 x 64 signed bytes (per digit, output and weight).
    """
    packed = _zero(source.builder, "i32", 16)
    low, high = source.load("i8", 64), (source + 64).load("i8", 64)
    totals = [[packed.variable() for _ in range(DIGITS)] for _ in range(3)]
    with repeat(groups) as group:
        at = group * 192
        weights = [(digits + at + 64 * d).load("i8", 64) for d in range(DIGITS)]
        for channel in range(3):
            pick = (picks + at + 64 * channel).load("i8", 64)
            levels = low.call("llvm.x86.avx512.vpermi2var.qi.512", low.value.type, pick, high)
            for total, weight in zip(totals[channel], weights, strict=True):
                total.set(_dot(total.get(), levels, weight))
    for channel in range(3):
        value = _joined_digits([total.get() for total in totals[channel]])
        packed = packed | value.within(0, 255) << 8 * channel
    packed.store(target)


def _interleave(a: Value, b: Value, unit: int, high: bool) -> Value:
    """The low or high halves of each 16 bytes of ``a`` and ``b``, interleaved by units of bytes (vpunpck)."""
    lanes = []
    for lane in range(4):
        for i in range(8 // unit):
            first = 16 * lane + (8 if high else 0) + unit * i
            lanes += [first + j for j in range(unit)] + [64 + first + j for j in range(unit)]
    return a.shuffled(b, lanes)


@vector_block(I64, I64, I64, I64, I64, I64, needs=HAS_BYTE_DOT)
def weigh_rows_block(source: Value, stride: Value, digits: Value, groups: Value, count: Value, target: Value) -> None:
    """64 bytes of a vertical pass: ``count`` rows, ``stride`` bytes apart, weighed into one.

    ``digits``: int32[groups][3], four signed bytes each; those past ``count`` are zero, and row ``count - 1`` is read
    for them.
    """
    zero, last = _zero(source.builder, "i32", 16), count - 1
    totals = [[zero.variable() for _ in range(DIGITS)] for _ in range(4)]
    with repeat(groups) as group:
        rows = []
        for j in range(4):
            row = group * 4 + j
            rows.append((source + (row < last).choose(row, last) * stride).load("i8", 64))
        pairs = [_interleave(rows[2 * i], rows[2 * i + 1], 1, high) for i in (0, 1) for high in (False, True)]
        quads = [_interleave(pairs[half], pairs[2 + half], 2, high) for half in (0, 1) for high in (False, True)]
        at = digits + group * 12
        for d in range(DIGITS):
            weight = (at + 4 * d).load("i32").splat(16).bits("i8", 64)
            for total, quad in zip(totals, quads, strict=True):
                total[d].set(_dot(total[d].get(), quad, weight))
    values = [_joined_digits([total.get() for total in of]) for of in totals]
    # Packing saturates, which is the clipping, and undoes the interleaving's order.
    first, second = (values[i].call("llvm.x86.avx512.packusdw.512", kind_of("i16", 32), values[i + 1]) for i in (0, 2))
    first.call("llvm.x86.avx512.packuswb.512", kind_of("i8", 64), second).store(target)


@inlined
def split_weight(weight: Any) -> Any:
    """Three signed bytes with ``weight = d0 + 256 d1 + 65536 d2``."""
    d0 = ((weight + 128) & 255) - 128
    rest = (weight - d0) >> 8
    d1 = ((rest + 128) & 255) - 128
    return d0, d1, (rest - d1) >> 8


# Outputs of a horizontal pass that are made at a time: each 16 bytes of four registers are one's R, G, B and nothing.
PIXELS = REGISTER // 4
# Bytes that are read of each pair of source pixels, which takes six.
READ = 16
_SPLIT_BITS = 12


@inlined
def split_in_two(weight: Any) -> Any:
    """Two signed numbers of at most 12 bits, and 12 less than the weight's, with ``weight = low + 4096 high``."""
    low = ((weight + 2048) & 4095) - 2048
    return low, (weight - low) >> 12


def _sum_pairs(pairs: Value, read: Callable[[Value], tuple[list[Value], list[list[Value]]]]) -> Value:
    """Over ``pairs`` pairs of weights, ``read(pair)`` giving four registers of levels, and of weights low and high ->
    a register of the sums' bytes."""
    zero = _zero(pairs.builder, "i32", REGISTER // 4)
    totals = [[zero.constant(1 << (PRECISION - 1)).variable(), zero.variable()] for _ in range(4)]
    with repeat(pairs) as pair:
        for part, levels, weights in zip(totals, *read(pair), strict=True):
            for total, weight in zip(part, weights, strict=True):
                total.set(total.get() + multiplied(levels, weight))
    values = [(low.get() + (high.get() << _SPLIT_BITS)).ashr(PRECISION) for low, high in totals]
    return bytes_of(halves_of(*values[:2]), halves_of(*values[2:]))


@vector_block(I64, I64, I64, I64, I64)
def resize_pixels(source: Value, offsets: Value, weights: Value, pairs: Value, target: Value) -> None:
    """PIXELS outputs of a horizontal pass -> as many RGBX pixels at ``target``.

    ``offsets``: int32, of each output's first source pixel; pairs are six bytes apart, and READ bytes of each are read.
    ``weights``: see ``pair_weights``.
    """
    firsts = [source + (offsets + 4 * x).load("i32").signed("i64") for x in range(PIXELS)]
    # Of each 16 bytes: red of both pixels, green, blue, and nothing, as 16 bits each.
    lanes = []
    for span in range(0, REGISTER, 16):
        lanes += [lane for i in (0, 3, 1, 4, 2, 5) for lane in (span + i, REGISTER)] + [REGISTER] * 4

    def read(pair: Value) -> tuple[list[Value], list[list[Value]]]:
        on, at = pair * 6, weights + pair * (8 * REGISTER)
        levels, halves = [], []
        for i in range(4):
            # In the order that packing undoes.
            spans = [(first + on).load("i8", READ) for first in firsts[i::4]]
            while len(spans) > 1:
                spans = [spans[s].joined(spans[s + 1]) for s in range(0, len(spans), 2)]
            levels.append(spans[0].shuffled(spans[0].constant(0), lanes).bits("i16", REGISTER // 2))
            halves.append([(at + (2 * i + half) * REGISTER).load("i16", REGISTER // 2) for half in (0, 1)])
        return levels, halves

    _sum_pairs(pairs, read).store(target)


@vector_block(I64, I64, I64, I64, I64, I64)
def weigh_row_pairs(source: Value, stride: Value, weights: Value, pairs: Value, count: Value, target: Value) -> None:
    """REGISTER bytes of a vertical pass: ``count`` rows, ``stride`` bytes apart, weighed into one.

    ``weights``: int16[pairs][2][2], low and high, of both rows each; the weight of a row past ``count`` is zero, and
    row ``count - 1`` is read for it.
    """
    last, zero = count - 1, _zero(source.builder, "i8", REGISTER)

    def read(pair: Value) -> tuple[list[Value], list[list[Value]]]:
        first, behind = pair << 1, (pair << 1) + 1
        second = (behind < last).choose(behind, last)
        rows = [(source + row * stride).load("i8", REGISTER) for row in (first, second)]
        at = weights + (pair << 3)
        halves = [(at + 4 * half).load("i32").splat(REGISTER // 4).bits("i16", REGISTER // 2) for half in (0, 1)]
        wide = [part for both in interleaved(*rows) for part in interleaved(both, zero)]
        return [part.bits("i16", REGISTER // 2) for part in wide], [halves] * 4

    _sum_pairs(pairs, read).store(target)
