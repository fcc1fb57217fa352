"""Vector blocks for where the pixels of a row are read, and for reading them: maps of 16.16 walked back, and fills.

Coordinates are worked out in vectors of the target's own width, a row rounded up to whole blocks of 16. A pixel is read
by one 4-byte load, of which three bytes count.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from variegate.compiling.levels import HAS_AVX2, HAS_AVX512
from variegate.executors.cpu.simd import I32, I64, Value, kind_of, planes_from, prefetch_line, steps, vector_block

_LANES = 16 if HAS_AVX512 else 8 if HAS_AVX2 else 4
_BLOCK = 16


def _row(count: Value) -> AbstractContextManager[Value]:
    """A loop over ``count`` coordinates -> where 4-byte items of the next _LANES lie from an array's start."""
    return steps(((count + (_BLOCK - 1)) & -_BLOCK) << 2, 4 * _LANES)


class _Stepping:
    """A coordinate along a row: ``start + i step``, vector by vector."""

    def __init__(self, start: Value, step: Value) -> None:
        ramp = start.splat(_LANES) + step.splat(_LANES) * step.splat(_LANES).constant(range(_LANES))
        self._at, self._step = ramp.variable(), (step * _LANES).splat(_LANES)

    def next(self) -> Value:
        value = self._at.get()
        self._at.set(value + self._step)
        return value


class _Offsets:
    """Coordinates as byte offsets of RGB pixels at which four bytes can be read, and whether that moved any."""

    def __init__(self, width: Value, last: Value) -> None:
        # A side has at most 15 bits. LLVM multiplies such numbers faster, if it can see that they are.
        self._width, self._last = width.narrow("i16").signed("i32").splat(_LANES), last.splat(_LANES)
        self._moved = self._last.constant(0).variable()

    def store(self, column: Value, line: Value, out: Value) -> None:
        pixel = line * self._width + column
        offset = pixel + pixel + pixel
        offset = (offset > 0).choose(offset, 0)
        beyond = offset > self._last
        self._moved.set(self._moved.get() | beyond.signed("i32"))
        beyond.choose(self._last, offset).store(out)

    def any_moved(self) -> Value:
        return self._moved.get().call(f"llvm.vector.reduce.or.v{_LANES}i32", kind_of("i32")).wide("i64")


@vector_block(I32, I32, I32, I32, I32, I32, I64, I64, result=I64)
def affine_offsets(
    x: Value, y: Value, dx: Value, dy: Value, width: Value, last: Value, count: Value, out: Value
) -> Value:
    """The int32 byte offsets of ``count`` pixels at 16.16 coordinates ``(x + i dx, y + i dy)``, but at most ``last``,
    image bytes - 4 -> 0 if the last pixel of the image, which lies at ``last + 1``, is surely not among them.
    """
    xs, ys, offsets = _Stepping(x, dx), _Stepping(y, dy), _Offsets(width, last)
    with _row(count) as at:
        column, line = (along.next().ashr(16) for along in (xs, ys))
        offsets.store(column, line, out + at)
    return offsets.any_moved()


@vector_block(I64, I64, I32, I32, I64, I64, result=I64)
def walked_offsets(columns: Value, lines: Value, width: Value, last: Value, count: Value, out: Value) -> Value:
    """As ``affine_offsets``, of the int32 coordinates that a walk has led to."""
    offsets = _Offsets(width, last)
    with _row(count) as at:
        column, line = ((array + at).load("i32", _LANES) for array in (columns, lines))
        offsets.store(column, line, out + at)
    return offsets.any_moved()


class _WindowedMap:
    """A map and its window, int32[11] at an address: a, b, c, d, e, f, top, left, bottom, right, slot."""

    def __init__(self, address: Value) -> None:
        self.numbers = [(address + 4 * i).load("i32") for i in range(11)]
        self.vectors = [number.splat(_LANES) for number in self.numbers]

    def store(self, u: Value, v: Value, left_at: Value, places: list[Value]) -> None:
        """16.16 coordinates in the source of the map, and where they left so far, as columns, lines and stages."""
        top, left, bottom, right, slot = self.vectors[6:]
        u, v = u.ashr(16), v.ashr(16)
        inside = ((u >= left) & (u < right)) & ((v >= top) & (v < bottom))
        stays = inside | (left_at >= 0)
        found = inside.choose(u, 0), inside.choose(v, 0), stays.choose(left_at, slot)
        for value, place in zip(found, places, strict=True):
            value.store(place)


@vector_block(I32, I64, I64, I64, I64, I64)
def begin_walk(y: Value, mapping: Value, count: Value, columns: Value, lines: Value, stages: Value) -> None:
    """Row ``y`` of the output, ``count`` pixels, through the last map of a chain: see ``step_back``."""
    by = _WindowedMap(mapping)
    a, b, c, d, e, f = by.numbers[:6]
    us, vs = _Stepping(b * y + c, a), _Stepping(e * y + f, d)
    with _row(count) as at:
        u, v = us.next(), vs.next()
        by.store(u, v, u.constant(-1), [array + at for array in (columns, lines, stages)])


@vector_block(I64, I64, I64, I64, I64)
def step_back(mapping: Value, count: Value, columns: Value, lines: Value, stages: Value) -> None:
    """``count`` int32 coordinates, at ``columns`` and ``lines``, through one map, in place.

    A pixel that is outside for the first time gets the map's slot at ``stages``, which hold -1 for what is inside;
    whatever is outside goes on from (0, 0).
    """
    by = _WindowedMap(mapping)
    a, b, c, d, e, f = by.vectors[:6]
    with _row(count) as at:
        places = [array + at for array in (columns, lines, stages)]
        x, y, left_at = (place.load("i32", _LANES) for place in places)
        by.store(a * x + b * y + c, d * x + e * y + f, left_at, places)


@vector_block(I64, I64, I64, I64, I64)
def load_pixels(image: Value, offsets: Value, count: Value, ahead: Value, out: Value) -> None:
    """The four bytes at each of ``count`` int32 byte offsets, rounded up to a multiple of 8 -> words at ``out``.

    By scalar loads: gather instructions took longer wherever they were measured, and take far longer where microcode
    keeps them from leaking data. What lies ``ahead`` bytes further is brought into the cache.
    """
    with steps(count << 2, 32) as at:
        for pair in range(0, 32, 8):
            place = at + pair
            # Two offsets by one load.
            both = (offsets + place).load("i64")
            low, high = both & 0xFFFFFFFF, both >> 32
            if pair == 0:
                prefetch_line(image + low + ahead)
            pixels = [(image + offset).load("i32") for offset in (low, high)]
            for pixel, offset in zip(pixels, (0, 4), strict=True):
                pixel.store(out + place + offset)


@vector_block(I64, I64, I32, I32, I64, I64)
def fill_row(stages: Value, count: Value, slot: Value, colour: Value, planes: Value, stride: Value) -> None:
    """Give a packed colour to pixels whose ``stages``, int32[count] rounded up to a multiple of 16, hold ``slot``."""
    lanes = 16
    levels = [(colour >> 8 * c).narrow("i8").splat(lanes) for c in range(3)]
    slots, addresses = slot.splat(lanes), planes_from(planes, stride)
    with steps(count, lanes) as x:
        left_here = (stages + (x << 2)).load("i32", lanes).equals(slots)
        builder = left_here.builder
        with builder.if_then(left_here.as_word().differs(0).value):
            for level, address in zip(levels, addresses, strict=True):
                place = address + x
                left_here.choose(level, place.load("i8", lanes)).store(place)
