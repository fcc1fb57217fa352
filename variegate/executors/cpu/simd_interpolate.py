"""Vector blocks that weigh taps: 16 interpolated pixels at a time, in 16-bit integers.

What is computed is defined in ``executors/reference/gather.py``; ``simd_places.py`` wrote where the taps are and what
they weigh. A load of 8 bytes (bilinear) or 16 (bicubic) has the taps of one line.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from variegate.compiling.levels import HAS_AVX2, HAS_BYTE_SHUFFLE
from variegate.executors.cpu import simd as S
from variegate.executors.cpu.simd import I64, planes_from, vector_block
from variegate.executors.cpu.simd_places import LANES

# Bytes of a vector register, which a group of pixels is made to fill.
_REGISTER = 32 if HAS_AVX2 else 16


def _pixel_addresses(builder: Any, image: Any, offsets: Any, first: int, count: int) -> list[Any]:
    return [
        builder.add(image, builder.sext(S.load(builder, S.after(builder, offsets, 4 * (first + i)), S.i32), S.i64))
        for i in range(count)
    ]


def _load_each(builder: Any, addresses: list[Any], element: ir.Type) -> Any:
    kind = S.vector(element, len(addresses))
    value = ir.Constant(kind, ir.Undefined)
    for i, address in enumerate(addresses):
        value = builder.insert_element(value, S.load(builder, address, element), ir.Constant(S.i32, i))
    return value


def _spread(builder: Any, value: Any, lanes: list[int | None], element: ir.Type) -> Any:
    """Bytes of ``value`` picked by number, 0 for None, as a vector of ``element``."""
    count = value.type.count * value.type.element.width // 8
    taken = builder.bitcast(value, S.vector(S.i8, count))
    picked = [count if lane is None else lane for lane in lanes]
    spread = S.shuffle(builder, taken, S.same(taken.type, 0), picked)
    return builder.bitcast(spread, S.vector(element, len(lanes) * 8 // element.width))


def _mix(builder: Any, a: Any, b: Any, t: Any) -> Any:
    """``a + ((b - a) * t + 2**14 >> 15)`` of int16, as x86's pmulhrsw has it in one instruction."""
    difference, lanes = builder.sub(b, a), a.type.count
    if lanes == 16 and HAS_AVX2:
        product = S.call_named(builder, "llvm.x86.avx2.pmul.hr.sw", a.type, difference, t)
    elif lanes == 8 and HAS_BYTE_SHUFFLE:
        product = S.call_named(builder, "llvm.x86.ssse3.pmul.hr.sw.128", a.type, difference, t)
    else:
        wide = S.vector(S.i32, lanes)
        product = builder.add(builder.mul(builder.sext(difference, wide), builder.sext(t, wide)), S.same(wide, 1 << 14))
        product = builder.trunc(builder.ashr(product, S.same(wide, 15)), a.type)
    return builder.add(a, product)


def _sum_pairs(builder: Any, a: Any, b: Any) -> Any:
    """Products of int16, added in pairs to int32: x86's pmaddwd."""
    lanes = a.type.count
    wide = S.vector(S.i32, lanes // 2)
    if lanes == 16 and HAS_AVX2:
        return S.call_named(builder, "llvm.x86.avx2.pmadd.wd", wide, a, b)
    if lanes == 8 and HAS_BYTE_SHUFFLE:
        return S.call_named(builder, "llvm.x86.sse2.pmadd.wd", wide, a, b)
    products = [
        builder.mul(*(builder.sext(S.shuffle(builder, v, v, list(range(odd, lanes, 2))), wide) for v in (a, b)))
        for odd in (0, 1)
    ]
    return builder.add(*products)


def _store_pixels(builder: Any, groups: list[Any], planes: Any, stride: Any) -> None:
    """16 pixels R, G, B, 0 in vectors of bytes -> three planes."""
    while len(groups) > LANES * 4 // 16:
        groups = [_joined(builder, *groups[i : i + 2]) for i in range(0, len(groups), 2)]
    if len(groups) < LANES * 4 // 16:
        groups = [S.shuffle(builder, g, g, list(range(i, i + 16))) for g in groups for i in range(0, g.type.count, 16)]
    quads = [
        builder.bitcast(S.shuffle(builder, g, g, [4 * (i % 4) + i // 4 for i in range(16)]), S.vector(S.i32, 4))
        for g in groups
    ]
    for channel, plane in enumerate(planes_from(builder, planes, stride)):
        halves = [S.shuffle(builder, a, b, [channel, 4 + channel]) for a, b in (quads[:2], quads[2:])]
        S.store(builder, _joined(builder, *halves), plane)


def _joined(builder: Any, a: Any, b: Any) -> Any:
    return S.shuffle(builder, a, b, list(range(2 * a.type.count)))


@vector_block(I64, I64, I64, I64, I64, I64)
def bilinear_rgb(builder: Any, image: Any, row_bytes: Any, offsets: Any, weights: Any, planes: Any, stride: Any) -> Any:
    """16 pixels at what ``split_bilinear`` wrote -> three planes."""
    pixels = _REGISTER // 8
    groups = []
    for first in range(0, LANES, pixels):
        addresses = _pixel_addresses(builder, image, offsets, first, pixels)
        weight_x, weight_y = (
            S.shuffle(builder, part, part, [i // 4 for i in range(4 * pixels)])
            for part in (
                S.load(builder, S.after(builder, weights, 2 * (first + at)), S.vector(S.i16, pixels))
                for at in (0, LANES)
            )
        )
        mixed = []
        for line in (addresses, [builder.add(address, row_bytes) for address in addresses]):
            taps = _load_each(builder, line, S.i64)
            left, right = (
                _levels(builder, taps, [8 * p + at + c if c < 3 else None for p in range(pixels) for c in range(4)])
                for at in (0, 3)
            )
            mixed.append(_mix(builder, left, right, weight_x))
        level = _mix(builder, mixed[0], mixed[1], weight_y)
        level = builder.lshr(level, S.same(level.type, 7))
        groups.append(builder.trunc(level, S.vector(S.i8, 4 * pixels)))
    _store_pixels(builder, groups, planes, stride)


def _levels(builder: Any, value: Any, lanes: list[int | None]) -> Any:
    """Bytes picked as int16 with 7 fraction bits."""
    words = _spread(builder, value, [part for lane in lanes for part in (None, lane)], S.i16)
    return builder.lshr(words, S.same(words.type, 1))


@vector_block(I64, I64, I64, I64, I64)
def bilinear_gray(builder: Any, image: Any, row_bytes: Any, offsets: Any, weights: Any, plane: Any) -> Any:
    """16 pixels of an image of one channel at what ``split_bilinear`` wrote -> one plane."""
    shorts = S.vector(S.i16, LANES)
    byte, seven = S.same(shorts, 255), S.same(shorts, 7)
    weight_x, weight_y = S.load(builder, weights, shorts), S.load(builder, S.after(builder, weights, 2 * LANES), shorts)
    addresses = _pixel_addresses(builder, image, offsets, 0, LANES)
    mixed = []
    for line in (addresses, [builder.add(address, row_bytes) for address in addresses]):
        taps = _load_each(builder, line, S.i16)
        left = builder.shl(builder.and_(taps, byte), seven)
        right = builder.shl(builder.lshr(taps, S.same(shorts, 8)), seven)
        mixed.append(_mix(builder, left, right, weight_x))
    level = builder.lshr(_mix(builder, mixed[0], mixed[1], weight_y), seven)
    S.store(builder, builder.trunc(level, S.vector(S.i8, LANES)), plane)


@vector_block(I64, I64, I64, I64, I64, I64)
def bicubic_rgb(builder: Any, image: Any, row_bytes: Any, offsets: Any, weights: Any, planes: Any, stride: Any) -> Any:
    """16 pixels at what ``split_bicubic`` wrote -> three planes."""
    pixels = _REGISTER // 16
    dwords = S.vector(S.i32, 4 * pixels)
    # Of each pixel's 16 bytes, two taps side by side, channel by channel.
    halves = [
        [
            part
            for p in range(pixels)
            for c in range(4)
            for at in (first, first + 3)
            for part in ((16 * p + at + c, None) if c < 3 else (None, None))
        ]
        for first in (0, 6)
    ]
    groups = []
    for first in range(0, LANES, pixels):
        x01, x23, y01, y23 = (
            builder.bitcast(
                S.shuffle(builder, pairs, pairs, [i // 4 for i in range(4 * pixels)]), S.vector(S.i16, 8 * pixels)
            )
            for pairs in (
                S.load(builder, S.after(builder, weights, 4 * (LANES * n + first)), S.vector(S.i32, pixels))
                for n in range(4)
            )
        )
        addresses = _pixel_addresses(builder, image, offsets, first, pixels)
        lines = []
        for _ in range(4):
            parts = [S.load(builder, address, S.vector(S.i8, 16)) for address in addresses]
            taps = parts[0] if pixels == 1 else _joined(builder, *parts)
            left, right = (_spread(builder, taps, half, S.i16) for half in halves)
            total = builder.add(_sum_pairs(builder, left, x01), _sum_pairs(builder, right, x23))
            lines.append(builder.ashr(builder.add(total, S.same(dwords, 1 << 7)), S.same(dwords, 8)))
            addresses = [builder.add(address, row_bytes) for address in addresses]
        upper, lower = (
            builder.bitcast(
                builder.or_(builder.and_(a, S.same(dwords, 0xFFFF)), builder.shl(b, S.same(dwords, 16))),
                S.vector(S.i16, 8 * pixels),
            )
            for a, b in (lines[:2], lines[2:])
        )
        total = builder.add(_sum_pairs(builder, upper, y01), _sum_pairs(builder, lower, y23))
        level = S.clamp(builder, builder.ashr(total, S.same(dwords, 20)), S.same(dwords, 0), S.same(dwords, 255))
        groups.append(builder.trunc(level, S.vector(S.i8, 4 * pixels)))
    _store_pixels(builder, groups, planes, stride)
