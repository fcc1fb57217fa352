"""Vector blocks of a JPEG's arithmetic: libjpeg's accurate integer DCT, quantisation, and colours with chroma in 4:2:0.

As in libjpeg-turbo's jfdctint.c, jidctint.c, jccolor.c, jdcolor.c, jcsample.c and jdsample.c (fancy upsampling), with
the same bits: all of it is integers. Quotients are made in float32, far enough from whole numbers to be exact.
"""

from __future__ import annotations

from variegate.compiling.levels import HAS_AVX512
from variegate.executors.cpu.simd import I64, Value, planes_from, vector_block

# Columns of samples that are coded at a time, of one or two blocks; and pixels, or samples of chroma, of other steps.
COLUMNS = 16 if HAS_AVX512 else 8
STEP = 16
# Of a table of quantisation: int32 steps, then float32 factors and summands, each 8 lines of as many columns.
TABLE_COLUMNS = 16

# Fraction bits of cosines, and of what is between the two passes of a transform.
_BITS, _MORE = 13, 2


@vector_block(I64, I64, I64)
def code_blocks(address: Value, stride: Value, table: Value) -> None:
    """8 lines of COLUMNS samples to coefficients, which are quantised, and back, in place."""
    lines = [address]
    for _ in range(7):
        lines.append(lines[-1] + stride)
    rows = [line.load("i8", COLUMNS).wide("i32") - 128 for line in lines]
    rows = _forward(_transposed(rows), is_first=True)
    rows = _forward(_transposed(rows), is_first=False)
    for k, row in enumerate(rows):
        parts = [table + 4 * TABLE_COLUMNS * (8 * part + k) for part in range(3)]
        kinds = ("i32", "f32", "f32")
        step, factor, summand = (part.load(kind, COLUMNS) for part, kind in zip(parts, kinds, strict=True))
        sign = row.ashr(31)
        level = (((row ^ sign) - sign).floats() * factor + summand).truncated()
        rows[k] = ((level ^ sign) - sign) * step
    rows = _inverse(rows, _BITS - _MORE)
    rows = _transposed(_inverse(_transposed(rows), _BITS + _MORE + 3))
    for line, row in zip(lines, rows, strict=True):
        (row + 128).clipped(0, 255).narrow("i8").store(line)


def _transposed(rows: list[Value]) -> list[Value]:
    """Each 8 x 8 of them: by bits of the place, along and across, that change places."""
    for bit in (1, 2, 4):
        orders = [[j & ~bit | i & bit | (COLUMNS if j & bit else 0) for j in range(COLUMNS)] for i in range(8)]
        rows = [rows[i & ~bit].shuffled(rows[i | bit], orders[i]) for i in range(8)]
    return rows


def _forward(d: list[Value], is_first: bool) -> list[Value]:
    sums = [d[i] + d[7 - i] for i in range(4)]
    outer, inner = sums[0] + sums[3], sums[1] + sums[2]
    outer_odd, inner_odd = sums[0] - sums[3], sums[1] - sums[2]
    even = [outer + inner, outer - inner]
    even = [each << _MORE for each in even] if is_first else [_shifted(each, _MORE) for each in even]
    both = (inner_odd + outer_odd) * 4433
    odd = _odd(*(d[i] - d[7 - i] for i in (3, 2, 1, 0)))
    bits = _BITS - _MORE if is_first else _BITS + _MORE
    second, sixth = _shifted(both + outer_odd * 6270, bits), _shifted(both + inner_odd * -15137, bits)
    seventh, fifth, third, first = (_shifted(each, bits) for each in odd)
    return [even[0], first, second, third, even[1], fifth, sixth, seventh]


def _inverse(c: list[Value], bits: int) -> list[Value]:
    both = (c[2] + c[6]) * 4433
    low, high = both + c[6] * -15137, both + c[2] * 6270
    total, difference = (c[0] + c[4]) << _BITS, (c[0] - c[4]) << _BITS
    even = [total + high, difference + low, difference - low, total - high]
    odd = _odd(c[7], c[5], c[3], c[1])[::-1]
    made = [_shifted(even[i] + odd[i], bits) for i in range(4)]
    return made + [_shifted(even[i] - odd[i], bits) for i in (3, 2, 1, 0)]


def _odd(a: Value, b: Value, c: Value, d: Value) -> list[Value]:
    """The part that the transform has in common with its inverse."""
    z1, z2, z3, z4 = a + d, b + c, a + c, b + d
    z5 = (z3 + z4) * 9633
    z1, z2, z3, z4 = z1 * -7373, z2 * -20995, z3 * -16069 + z5, z4 * -3196 + z5
    return [a * 2446 + z1 + z3, b * 16819 + z2 + z4, c * 25172 + z2 + z3, d * 12299 + z1 + z4]


@vector_block(I64, I64, I64, I64, I64)
def to_ycc(planes: Value, stride: Value, luma: Value, blue: Value, red: Value) -> None:
    """STEP pixels of three planes to luma and both chromas."""
    r, g, b = (address.load("i8", STEP).wide("i32") for address in planes_from(planes, stride))
    centre = (128 << 16) + (1 << 15) - 1
    y = r * 19595 + g * 38470 + b * 7471 + (1 << 15)
    cb = b * (1 << 15) - r * 11059 - g * 21709 + centre
    cr = r * (1 << 15) - g * 27439 - b * 5329 + centre
    for value, address in ((y, luma), (cb, blue), (cr, red)):
        (value >> 16).narrow("i8").store(address)


@vector_block(I64, I64, I64, I64, I64)
def to_rgb(luma: Value, blue: Value, red: Value, planes: Value, stride: Value) -> None:
    """STEP pixels back to three planes."""
    y, cb, cr = (address.load("i8", STEP).wide("i32") for address in (luma, blue, red))
    cb, cr = cb - 128, cr - 128
    added = (_shifted(cr * 91881, 16), _shifted(cb * -22554 - cr * 46802, 16), _shifted(cb * 116130, 16))
    for value, address in zip(added, planes_from(planes, stride), strict=True):
        (y + value).clipped(0, 255).narrow("i8").store(address)


@vector_block(I64, I64, I64)
def halve(first: Value, second: Value, target: Value) -> None:
    """Two lines of samples as one of half as many, STEP of them; halves are rounded down and up in turn."""
    a, b = (address.load("i16", STEP) for address in (first, second))
    total = (a & 255) + (a >> 8) + (b & 255) + (b >> 8) + a.constant([1, 2] * (STEP // 2))
    (total >> 2).narrow("i8").store(target)


@vector_block(I64, I64, I64)
def sum_lines(near: Value, far: Value, target: Value) -> None:
    """STEP samples of two lines, 3 to 1, as int16."""
    a, b = (address.load("i8", STEP).wide("i16") for address in (near, far))
    (a * 3 + b).store(target)


@vector_block(I64, I64)
def widen(sums: Value, target: Value) -> None:
    """STEP such sums, each as two samples: 3 to 1 with the sum before it, and with the one behind."""
    before, here, behind = ((sums + by).load("i16", STEP) for by in (-2, 0, 2))
    left, right = (here * 3 + before + 8) >> 4, (here * 3 + behind + 7) >> 4
    (left | (right << 8)).store(target)


def _shifted(value: Value, bits: int) -> Value:
    """To the right, with the sign kept, rounded half up."""
    return (value + (1 << (bits - 1))).ashr(bits)
