"""Vector blocks of interpolating maps, 16 pixels at a time: where they read, what the taps weigh, and their sums.

What is computed is defined in ``executors/reference/places.py`` and ``gather.py``. A place is an int32. The taps of a
pixel are read by one load per line, of 8 bytes (bilinear) or 16 (bicubic), which begins at the first tap. Where that
load would leave the image, or a tap the window, the lane's bit is set in what ``split_*`` returns, and another place is
read.
"""

from __future__ import annotations

from llvmlite import ir

from variegate.compiling.levels import HAS_AVX2, HAS_BYTE_SHUFFLE
from variegate.executors.cpu.simd import F32, I32, I64, Value, kind_of, multiplied, planes_from, vector_block
from variegate.program.places import NUMERATOR_SHIFT

LANES = 16


def _along(start: Value, step: Value, shift: Value) -> Value:
    """``(start + i step) >> shift`` for i = 0..15 as int32; ``shift`` is at most 32."""
    ramp = step.splat(LANES)
    value = start.splat(LANES) + ramp * ramp.constant(range(LANES))
    return (value >> shift.splat(LANES)).narrow("i32")


@vector_block(I64, I64, I64, I64, I64, I32, I64, I64)
def affine_places(
    u: Value, step_u: Value, v: Value, step_v: Value, shift: Value, half: Value, columns: Value, lines: Value
) -> None:
    """16 places of an affine map, less half a pixel -> int32[16] at ``columns`` and ``lines``."""
    halves = half.splat(LANES)
    (_along(u, step_u, shift) - halves).store(columns)
    (_along(v, step_v, shift) - halves).store(lines)


@vector_block(I64, I64, F32, I64, I64)
def perspective_places(terms: Value, x: Value, factor: Value, columns: Value, lines: Value) -> None:
    """16 places from column ``x`` on, as ``affine_places``. ``terms``: int64 of u: its value at x = 0, what a column
    adds, the greatest place, and the place at u = 0 less half a pixel; the same of v; and of the depth its value, what
    a column adds, and by how much it is shifted right. ``factor`` makes a place of a quotient."""
    numbers = [(terms + 8 * i).load("i64") for i in range(11)]
    depth = _along(numbers[8] + numbers[9] * x, numbers[9], numbers[10])
    divisor, factors = depth.equals(0).choose(depth.constant(1), depth).floats(), factor.splat(LANES)
    for (start, step, end, origin), target in ((numbers[:4], columns), (numbers[4:8], lines)):
        value = _along(start + step * x, step, start.constant(NUMERATOR_SHIFT)).floats() / divisor * factors
        value = value.most(0.0).least(end.floats().splat(LANES))
        (value.truncated() + origin.narrow("i32").splat(LANES)).store(target)


def _offsets(column: Value, line: Value, frame: list[Value], target: Value) -> Value:
    """Byte offsets of first taps to ``target`` -> which would be too great. ``frame``: bytes of a line and of a pixel,
    and the greatest offset."""
    row_bytes, pixel_bytes, last = frame
    offset = line * row_bytes + column * pixel_bytes
    is_beyond = offset > last
    is_beyond.choose(last, offset).store(target)
    return is_beyond


def _frame(address: Value) -> tuple[list[tuple[Value, Value]], list[Value]]:
    """int32[7]: left, top, right and bottom of where places or first taps may lie -> (left, right), (top, bottom); and
    what ``_offsets`` takes."""
    left, top, right, bottom, *rest = ((address + 4 * i).load("i32").splat(LANES) for i in range(7))
    return [(left, right), (top, bottom)], rest


@vector_block(I64, I64, I64, I64, I64, result=I32)
def split_bilinear(columns: Value, lines: Value, frame: Value, offsets: Value, weights: Value) -> Value:
    """16 places -> int32 byte offsets of the first of each two by two taps, and 15-bit weights of the others: int16[16]
    along x, then along y. The place is clamped to the centres of the window's outermost pixels, of which ``frame`` says
    where they are, which has the effect that clamping the taps has.
    """
    limits, bytes_of = _frame(frame)
    found = []
    for i, (address, (low, high)) in enumerate(zip((columns, lines), limits, strict=True)):
        place = address.load("i32", LANES).clipped(low, high)
        (place & ((1 << 15) - 1)).narrow("i16").store(weights + 2 * LANES * i)
        found.append(place.ashr(15))
    return _offsets(found[0], found[1], bytes_of, offsets).as_word()


@vector_block(I64, I64, I64, I64, I64, result=I32)
def split_bicubic(columns: Value, lines: Value, frame: Value, offsets: Value, weights: Value) -> Value:
    """16 places -> int32 byte offsets of the first of each four by four taps, which lies where ``frame`` says;
    and 14-bit weights in pairs: int32[16] of the first two along x, the last two, and the same along y.
    """
    limits, bytes_of = _frame(frame)
    found, is_outside = [], Value(frame.builder, ir.Constant(kind_of("i1", LANES), [0] * LANES))
    for i, (address, (low, high)) in enumerate(zip((columns, lines), limits, strict=True)):
        place = address.load("i32", LANES)
        t = place & ((1 << 14) - 1)
        u = (1 << 14) - t
        product = _times(t, u)
        first, last = -_times(product, u), -_times(product, t)
        for n, (even, odd) in enumerate(((first, u - first), (t - last, last))):
            (even & 0xFFFF | odd << 16).store(weights + 4 * LANES * (2 * i + n))
        at = place.ashr(14) - 1
        inside = at.clipped(low, high)
        is_outside = is_outside | at.differs(inside)
        found.append(inside)
    is_beyond = _offsets(found[0], found[1], bytes_of, offsets)
    return (is_outside | is_beyond).as_word()


def _times(a: Value, b: Value) -> Value:
    """A product of numbers with 14 fraction bits."""
    return (a * b + (1 << 13)).ashr(14)


# Bytes of a vector register, which a group of pixels is made to fill.
_REGISTER = 32 if HAS_AVX2 else 16


def _pixel_addresses(image: Value, offsets: Value, first: int, count: int) -> list[Value]:
    return [image + (offsets + 4 * (first + i)).load("i32").signed("i64") for i in range(count)]


def _load_each(addresses: list[Value], element: str) -> Value:
    builder = addresses[0].builder
    value = ir.Constant(kind_of(element, len(addresses)), ir.Undefined)
    for i, address in enumerate(addresses):
        value = builder.insert_element(value, address.load(element).value, ir.Constant(kind_of("i32"), i))
    return Value(builder, value)


def _spread(value: Value, lanes: list[int | None]) -> Value:
    """Bytes of ``value`` picked by number, 0 for None, as int16."""
    count = (value.count or 1) * value.element.width // 8
    taken = value.bits("i8", count)
    return taken.shuffled(taken.constant(0), [count if n is None else n for n in lanes]).bits("i16", len(lanes) // 2)


def _mix(a: Value, b: Value, t: Value) -> Value:
    """``a + ((b - a) * t + 2**14 >> 15)`` of int16, as x86's pmulhrsw has it in one instruction."""
    difference = b - a
    if a.count == 16 and HAS_AVX2:
        return a + difference.call("llvm.x86.avx2.pmul.hr.sw", a.value.type, t)
    if a.count == 8 and HAS_BYTE_SHUFFLE:
        return a + difference.call("llvm.x86.ssse3.pmul.hr.sw.128", a.value.type, t)
    return a + (difference.signed("i32") * t.signed("i32") + (1 << 14)).ashr(15).narrow("i16")


def _store_pixels(groups: list[Value], planes: Value, stride: Value) -> None:
    """16 pixels R, G, B, 0 in vectors of bytes -> three planes."""
    while len(groups) > LANES * 4 // 16:
        groups = [groups[i].joined(groups[i + 1]) for i in range(0, len(groups), 2)]
    if len(groups) < LANES * 4 // 16:
        groups = [g.picked(range(i, i + 16)) for g in groups for i in range(0, g.count or 1, 16)]
    quads = [g.picked([4 * (i % 4) + i // 4 for i in range(16)]).bits("i32", 4) for g in groups]
    for channel, plane in enumerate(planes_from(planes, stride)):
        upper, lower = (a.shuffled(b, [channel, 4 + channel]) for a, b in (quads[:2], quads[2:]))
        upper.joined(lower).store(plane)


@vector_block(I64, I64, I64, I64, I64, I64)
def bilinear_rgb(image: Value, row_bytes: Value, offsets: Value, weights: Value, planes: Value, stride: Value) -> None:
    """16 pixels at what ``split_bilinear`` wrote -> three planes."""
    pixels = _REGISTER // 8
    taps = [[8 * p + at + c if c < 3 else None for p in range(pixels) for c in range(4)] for at in (0, 3)]
    groups = []
    for first in range(0, LANES, pixels):
        addresses = _pixel_addresses(image, offsets, first, pixels)
        weight_x, weight_y = (
            (weights + 2 * (first + at)).load("i16", pixels).picked([i // 4 for i in range(4 * pixels)])
            for at in (0, LANES)
        )
        mixed = []
        for line in (addresses, [address + row_bytes for address in addresses]):
            both = _load_each(line, "i64")
            # As int16 with 7 fraction bits.
            left, right = (_spread(both, [part for n in lanes for part in (None, n)]) >> 1 for lanes in taps)
            mixed.append(_mix(left, right, weight_x))
        groups.append((_mix(mixed[0], mixed[1], weight_y) >> 7).narrow("i8"))
    _store_pixels(groups, planes, stride)


@vector_block(I64, I64, I64, I64, I64)
def bilinear_gray(image: Value, row_bytes: Value, offsets: Value, weights: Value, plane: Value) -> None:
    """16 pixels of an image of one channel at what ``split_bilinear`` wrote -> one plane."""
    weight_x, weight_y = ((weights + 2 * at).load("i16", LANES) for at in (0, LANES))
    addresses = _pixel_addresses(image, offsets, 0, LANES)
    mixed = []
    for line in (addresses, [address + row_bytes for address in addresses]):
        taps = _load_each(line, "i16")
        mixed.append(_mix((taps & 255) << 7, (taps >> 8) << 7, weight_x))
    (_mix(mixed[0], mixed[1], weight_y) >> 7).narrow("i8").store(plane)


@vector_block(I64, I64, I64, I64, I64, I64)
def bicubic_rgb(image: Value, row_bytes: Value, offsets: Value, weights: Value, planes: Value, stride: Value) -> None:
    """16 pixels at what ``split_bicubic`` wrote -> three planes."""
    pixels = _REGISTER // 16
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
            (weights + 4 * (LANES * n + first))
            .load("i32", pixels)
            .picked([i // 4 for i in range(4 * pixels)])
            .bits("i16", 8 * pixels)
            for n in range(4)
        )
        addresses = _pixel_addresses(image, offsets, first, pixels)
        lines = []
        for _ in range(4):
            parts = [address.load("i8", 16) for address in addresses]
            taps = parts[0] if pixels == 1 else parts[0].joined(parts[1])
            left, right = (_spread(taps, half) for half in halves)
            lines.append((multiplied(left, x01) + multiplied(right, x23) + (1 << 7)).ashr(8))
            addresses = [address + row_bytes for address in addresses]
        upper, lower = ((a & 0xFFFF | b << 16).bits("i16", 8 * pixels) for a, b in (lines[:2], lines[2:]))
        total = multiplied(upper, y01) + multiplied(lower, y23)
        groups.append(total.ashr(20).clipped(0, 255).narrow("i8"))
    _store_pixels(groups, planes, stride)
