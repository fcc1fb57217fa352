"""JPEG compression of an image's pixels without the file: coding coefficients loses nothing, so it is left out.

To the bit what libjpeg-turbo, and so Pillow and torchvision, make of a file that was written and read: baseline, chroma
in 4:2:0, the accurate integer DCT and fancy upsampling.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.compiling.levels import HAS_AVX512
from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.kernel import address_of, bytes_at, floats_at, image_of_sweep, ints_at, part_kernel
from variegate.executors.cpu.layout import JPEG_TABLE, TABLE_COLUMNS
from variegate.executors.cpu.simd import BLOCK, I64, Value, planes_from, vector_block
from variegate.executors.cpu.simd_pixels import join_rgb, split_rgb
from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.program.passes import QUALITY

# Steps of quality 50, of luma and of chroma (ITU-T T.81, annex K).
_STEPS = np.array(
    [
        [
            [16, 11, 10, 16, 24, 40, 51, 61],
            [12, 12, 14, 19, 26, 58, 60, 55],
            [14, 13, 16, 24, 40, 57, 69, 56],
            [14, 17, 22, 29, 51, 87, 80, 62],
            [18, 22, 37, 56, 68, 109, 103, 77],
            [24, 35, 55, 64, 81, 104, 113, 92],
            [49, 64, 78, 87, 103, 121, 120, 101],
            [72, 92, 95, 98, 112, 100, 103, 99],
        ],
        [
            [17, 18, 24, 47, 99, 99, 99, 99],
            [18, 21, 26, 66, 99, 99, 99, 99],
            [24, 26, 56, 99, 99, 99, 99, 99],
            [47, 66, 99, 99, 99, 99, 99, 99],
            [99, 99, 99, 99, 99, 99, 99, 99],
            [99, 99, 99, 99, 99, 99, 99, 99],
            [99, 99, 99, 99, 99, 99, 99, 99],
            [99, 99, 99, 99, 99, 99, 99, 99],
        ],
    ]
)
# Columns of samples that are coded at a time, of one or two blocks; and pixels, or samples of chroma, of other steps.
COLUMNS = 16 if HAS_AVX512 else 8
STEP = 16


@part_kernel
def code_jpeg(batch: Any, scratch: Any, r: Any, p: Any, _: Any) -> Any:
    """``scratch.coded``: the image that pass ``p`` reads, after a JPEG of the pass's quality."""
    held, own = batch_at(batch), scratch_at(scratch)
    image, coded = image_of_sweep(own.sweep), address_of(own.coded)
    size = (image.height * image.width * image.channels + BLOCK - 1) // BLOCK * BLOCK
    quality = nb.int64(held.program.passes[r, p, QUALITY])
    source = address_of(image.levels)
    code_image(source, coded, image.height, image.width, image.channels, quality, coded + size)
    return nb.int64(0)


@inner_kernel()
def _write_tables(quality: Any, address: Any) -> None:
    """int32[2, 3, 8, TABLE_COLUMNS], for ``code_blocks``, whose coefficients are 8 times as large as T.81 has them.

    A level is their magnitude, divided by a step and rounded half up. Half a unit more in the numerator changes no
    quotient, and keeps it away from whole numbers, so that a product with the reciprocal is cut off to the same.
    """
    steps, numbers = ints_at(address, 2 * JPEG_TABLE), floats_at(address, 2 * JPEG_TABLE)
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    for plane in range(2):
        for line in range(8):
            for column in range(TABLE_COLUMNS):
                step = min(max((_STEPS[plane, line, column % 8] * scale + 50) // 100, 1), 255)
                at = plane * JPEG_TABLE + line * TABLE_COLUMNS + column
                steps[at] = step
                numbers[at + 8 * TABLE_COLUMNS] = np.float32(1.0 / (8 * step))
                numbers[at + 16 * TABLE_COLUMNS] = np.float32((4 * step + 0.5) / (8 * step))


@pixel_kernel
def code_image(source: Any, target: Any, height: Any, width: Any, channels: Any, quality: Any, memory: Any) -> None:
    """Write what a JPEG of this quality (1 to 100) keeps of an image of 1 or 3 channels.

    ``source``, ``target``: addresses of contiguous images, uint8[H, W, C]; ``memory``: of ``jpeg_memory`` bytes.
    """
    tables = memory
    _write_tables(quality, tables)
    memory += 4 * 2 * JPEG_TABLE
    stride = (width + BLOCK - 1) // BLOCK * BLOCK
    lines = (height + 7) // 8 * 8
    chroma_height = (height + 1) // 2
    chroma_lines = (chroma_height + 7) // 8 * 8
    blue = memory + lines * stride
    red = blue + chroma_lines * (stride // 2)
    rows = red + chroma_lines * (stride // 2)
    if channels == 1:
        for y in range(height):
            _copy(source + y * width, memory + y * stride, width)
            _repeat_last(memory + y * stride, width, stride)
    else:
        for y in range(height):
            _split(source + 3 * y * width, rows, stride, width)
            # Behind the three planes, two lines of each chroma; the last of an odd number of lines is its own pair.
            odd = y % 2
            first_blue, first_red = rows + 3 * stride, rows + 5 * stride
            for x in range(0, stride, STEP):
                to_ycc(
                    rows + x, stride, memory + y * stride + x,
                    first_blue + odd * stride + x, first_red + odd * stride + x,
                )  # fmt: skip
            if odd or y == height - 1:
                at = y // 2 * (stride // 2)
                for x in range(0, stride // 2, STEP):
                    halve(first_blue + 2 * x, first_blue + odd * stride + 2 * x, blue + at + x)
                    halve(first_red + 2 * x, first_red + odd * stride + 2 * x, red + at + x)
        _code_plane(blue, stride // 2, chroma_height, chroma_lines, tables + 4 * 3 * 8 * TABLE_COLUMNS)
        _code_plane(red, stride // 2, chroma_height, chroma_lines, tables + 4 * 3 * 8 * TABLE_COLUMNS)
    _code_plane(memory, stride, height, lines, tables)
    for y in range(height):
        if channels == 1:
            _copy(memory + y * stride, target + y * width, width)
            continue
        _upsample(blue, y, chroma_height, stride // 2, (width + 1) // 2, rows + 3 * stride, rows + 5 * stride)
        _upsample(red, y, chroma_height, stride // 2, (width + 1) // 2, rows + 4 * stride, rows + 5 * stride)
        for x in range(0, stride, STEP):
            to_rgb(memory + y * stride + x, rows + 3 * stride + x, rows + 4 * stride + x, rows + x, stride)
        _join(rows, stride, target + 3 * y * width, width)


@inner_kernel()
def _code_plane(plane: Any, stride: Any, height: Any, lines: Any, table: Any) -> None:
    for y in range(height, lines):
        _copy(plane + (height - 1) * stride, plane + y * stride, stride)
    for y in range(0, lines, 8):
        for x in range(0, stride, COLUMNS):
            code_blocks(plane + y * stride + x, stride, table)


@inner_kernel()
def _upsample(plane: Any, y: Any, height: Any, stride: Any, width: Any, target: Any, sums: Any) -> None:
    """Line ``y`` of the image, of the chroma line that it is in and the one that it is next to."""
    near = y // 2
    far = min(max(near + (1 if y % 2 else -1), 0), height - 1)
    if width <= 2:  # libjpeg's rule
        line, wide = bytes_at(plane + near * stride, width), bytes_at(target, 2 * width)
        for x in range(2 * width):
            wide[x] = line[x // 2]
        return
    # Room for a sum before the first: those at the ends are repeated.
    sums += 2 * STEP
    for x in range(0, stride, STEP):
        sum_lines(plane + near * stride + x, plane + far * stride + x, sums + 2 * x)
    _copy(sums, sums - 2, 2)
    _copy(sums + 2 * (width - 1), sums + 2 * width, 2)
    for x in range(0, stride, STEP):
        widen(sums + 2 * x, target + 2 * x)


@inner_kernel()
def _split(source: Any, rows: Any, stride: Any, width: Any) -> None:
    """A line of pixels to three planes, of which the last pixel is repeated to the end."""
    if width < BLOCK:
        pixels, planes = bytes_at(source, 3 * width), bytes_at(rows, 3 * stride)
        for x in range(width):
            for c in range(3):
                planes[c * stride + x] = pixels[3 * x + c]
    else:
        for block in range((width + BLOCK - 1) // BLOCK):
            x = min(block * BLOCK, width - BLOCK)
            split_rgb(source + 3 * x, rows + x, stride)
    for c in range(3):
        _repeat_last(rows + c * stride, width, stride)


@inner_kernel()
def _join(rows: Any, stride: Any, target: Any, width: Any) -> None:
    if width < BLOCK:
        pixels, planes = bytes_at(target, 3 * width), bytes_at(rows, 3 * stride)
        for x in range(width):
            for c in range(3):
                pixels[3 * x + c] = planes[c * stride + x]
    else:
        for block in range((width + BLOCK - 1) // BLOCK):
            x = min(block * BLOCK, width - BLOCK)
            join_rgb(rows + x, stride, target + 3 * x)


@inner_kernel()
def _repeat_last(line: Any, width: Any, stride: Any) -> None:
    levels = bytes_at(line, stride)
    for x in range(width, stride):
        levels[x] = levels[width - 1]


@inner_kernel()
def _copy(source: Any, target: Any, size: Any) -> None:
    levels, copied = bytes_at(source, size), bytes_at(target, size)
    for x in range(size):
        copied[x] = levels[x]


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
