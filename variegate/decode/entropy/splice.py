"""A crop of a JPEG cut out of the coded file: only the first DC coefficients of rows are coded anew."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.decode.entropy.code import SLACK, count_ff, dc_at, put_stuffed, skip_ac, skip_units, unstuff
from variegate.decode.entropy.layout import (
    BLOCKS,
    CATEGORIES,
    CODE,
    FIRST_BLOCK,
    FITS,
    FRAME,
    HEIGHT,
    MCU_COLUMNS,
    MCU_HEIGHT,
    MCU_ROWS,
    MCU_WIDTH,
    SCAN,
    WIDTH,
    number_of_codes,
    read_layout,
)
from variegate.decode.memory import address_of, bits_at, byte_at, put_byte
from variegate.program.compiled import pixel_kernel

TOP, LEFT, BOTTOM, RIGHT = range(4)
# The writer: where it is, the bits that are not written yet (the first of them the highest), and how many.
_TO, _PENDING = range(2)


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def splice(data: Any, size: Any, room: Any, entries: Any, divisor: Any) -> Any:
    """-> bytes of a file in ``room.out``; 0 where that cannot be. ``entries``: (columns from one to the next, how many
    in a row, how many). ``divisor``: of the scale that it will be decoded at.

    The last row of ``room.work`` int64[4, 4] is the box that is wanted (top, left, bottom, right), and becomes the one
    that there is (top, left, height, width).
    """
    layout, tables, code, out, bits, dc, work = room
    if read_layout(data, size, layout, tables) != FITS:
        return np.int64(0)
    step, in_row, number = entries
    rows, columns = layout[MCU_ROWS], layout[MCU_COLUMNS]
    now, behind, kept, cut = work[0], work[1], work[2], work[3]
    if not _round_out(cut, layout, divisor) or in_row != -(-columns // step) or number != rows * in_row:
        return np.int64(0)
    begin, end = address_of(out), address_of(out) + len(out)
    to = _write_head(data, layout, tables, cut, begin, end)
    if to == 0:
        return np.int64(0)
    source, buffer = data + layout[CODE], address_of(code)
    acc, pending = np.uint64(0), np.int64(0)
    for i in range(3):
        kept[i] = 0
    for row in range(cut[TOP], cut[BOTTOM]):
        first, last = row * in_row + cut[LEFT] // step, row * in_row + (cut[RIGHT] - 1) // step
        byte = bits[first] >> 3
        limit = data + size if last + 1 == number else min(source + (bits[last + 1] >> 3) + 2, data + size)
        if byte < 0 or source + byte >= limit or limit > data + size or limit - source - byte + SLACK > len(code):
            return np.int64(0)
        length, _ = unstuff(source + byte, limit, buffer)
        if to + 2 * length + 128 > end:
            return np.int64(0)
        for i in range(3):
            now[i] = dc[first, i]
        bit = skip_units(buffer, bits[first] & 7, 8 * length, cut[LEFT] % step, now, layout, tables)
        if bit < 0:
            return np.int64(0)
        # Where the cut ends, and what is counted from there.
        if first == last:
            after, units = bit, cut[RIGHT] - cut[LEFT]
            for i in range(3):
                behind[i] = now[i]
        else:
            place = bits[last] >> 3
            if source + place > limit:
                return np.int64(0)
            after = 8 * (place - byte - count_ff(source + byte, source + place)) + (bits[last] & 7)
            units = cut[RIGHT] - (cut[RIGHT] - 1) // step * step
            for i in range(3):
                behind[i] = dc[last, i]
        if after < bit or after > 8 * length:
            return np.int64(0)
        after = skip_units(buffer, after, 8 * length, units, behind, layout, tables)
        if after < 0:
            return np.int64(0)
        # The first unit, whose first block of each component has another predecessor.
        copied, seen = bit, np.int64(0)
        for block in range(layout[BLOCKS]):
            about = FIRST_BLOCK + 3 * block
            component, table = layout[about], layout[about + 1]
            from_bit = bit
            bit, difference = dc_at(buffer, bit, table, tables)
            if bit < 0:
                return np.int64(0)
            if not (seen >> component) & 1:
                seen |= np.int64(1) << component
                to, acc, pending = _copy(buffer, copied, from_bit, to, acc, pending)
                difference += now[component] - kept[component]
                category = np.int64(0)
                while category < CATEGORIES and (abs(difference) >> category) != 0:
                    category += 1
                if category == CATEGORIES or tables.dc_codes[table, category, 1] == 0:
                    return np.int64(0)
                word = tables.dc_codes[table, category, 0] << category
                if difference < 0:
                    difference += (np.int64(1) << category) - 1
                used = tables.dc_codes[table, category, 1] + category
                to, acc, pending = _put(np.uint64(word | difference) << np.uint64(64 - used), used, to, acc, pending)
                copied = bit
            bit = skip_ac(buffer, bit, layout[about + 2], tables)
            if bit < 0 or bit > after:
                return np.int64(0)
        to, acc, pending = _copy(buffer, copied, after, to, acc, pending)
        for i in range(3):
            kept[i] = behind[i]
    _as_pixels(cut, layout)
    return _write_end(to, acc, pending) - begin


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _round_out(cut: Any, layout: Any, divisor: Any) -> Any:
    """From pixels to units that are coded together -> whether the box is one.

    Where chroma has fewer pixels, fancy upsampling of a unit's outermost pixels, ``divisor`` of the picture's, looks at
    the unit beside it, which is then taken as well. It does not happen at all where there are no three chroma pixels
    beside each other.
    """
    tall, wide = layout[MCU_HEIGHT], layout[MCU_WIDTH]
    if not (0 <= cut[TOP] < cut[BOTTOM] <= layout[HEIGHT] and 0 <= cut[LEFT] < cut[RIGHT] <= layout[WIDTH]):
        return False
    outer_down = divisor if tall > 8 else np.int64(0)
    outer_across = divisor if wide > 8 else np.int64(0)
    cut[TOP] = max(np.int64(0), (cut[TOP] - outer_down) // tall)
    cut[LEFT] = max(np.int64(0), (cut[LEFT] - outer_across) // wide)
    cut[BOTTOM] = min(layout[MCU_ROWS], -(-(cut[BOTTOM] + outer_down) // tall))
    cut[RIGHT] = min(layout[MCU_COLUMNS], -(-(cut[RIGHT] + outer_across) // wide))
    if min(cut[RIGHT] * wide, layout[WIDTH]) - cut[LEFT] * wide <= 4 * outer_across:
        cut[LEFT] = max(np.int64(0), cut[LEFT] - 1)
        cut[RIGHT] = min(layout[MCU_COLUMNS], cut[RIGHT] + 1)
    return True


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _as_pixels(cut: Any, layout: Any) -> None:
    """From units to top, left, height and width in pixels."""
    tall, wide = layout[MCU_HEIGHT], layout[MCU_WIDTH]
    height, width = (cut[BOTTOM] - cut[TOP]) * tall, (cut[RIGHT] - cut[LEFT]) * wide
    cut[TOP] *= tall
    cut[LEFT] *= wide
    cut[BOTTOM] = min(height, layout[HEIGHT] - cut[TOP])
    cut[RIGHT] = min(width, layout[WIDTH] - cut[LEFT])


@pixel_kernel(inline="always")
def _put(word: Any, number: Any, to: Any, acc: Any, pending: Any) -> Any:
    """The upper ``number`` bits of ``word``, the others of which are 0; at most 64."""
    acc |= word >> np.uint64(pending)
    if pending + number < 64:
        return to, acc, pending + number
    to = put_stuffed(to, acc)
    return to, (word << np.uint64(63 - pending)) << np.uint64(1), pending + number - 64


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _copy(buffer: Any, start: Any, end: Any, to: Any, acc: Any, pending: Any) -> Any:
    """Bits ``start`` to ``end`` of the memory at ``buffer``."""
    while end - start >= 56:
        to, acc, pending = _put(bits_at(buffer, start) >> np.uint64(8) << np.uint64(8), 56, to, acc, pending)
        start += 56
    rest = end - start
    if rest > 0:
        shift = np.uint64(64 - rest)
        to, acc, pending = _put(bits_at(buffer, start) >> shift << shift, rest, to, acc, pending)
    return to, acc, pending


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _write_end(to: Any, acc: Any, pending: Any) -> Any:
    while pending > 0:
        if pending < 8:  # filled up with ones
            acc |= np.uint64(0xFF) << np.uint64(56) >> np.uint64(pending)
        value = np.int64(acc >> np.uint64(56))
        put_byte(to, value)
        to += 1
        if value == 0xFF:
            put_byte(to, np.int64(0))
            to += 1
        acc <<= np.uint64(8)
        pending -= 8
    put_byte(to, np.int64(0xFF))
    put_byte(to + 1, np.int64(0xD9))
    return to + 2


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _write_head(data: Any, layout: Any, tables: Any, cut: Any, to: Any, end: Any) -> Any:
    """Write all before the code, with the size of the cut -> the address behind it; 0 where there is no room."""
    height, width = (cut[BOTTOM] - cut[TOP]) * layout[MCU_HEIGHT], (cut[RIGHT] - cut[LEFT]) * layout[MCU_WIDTH]
    height = min(height, layout[HEIGHT] - cut[TOP] * layout[MCU_HEIGHT])
    width = min(width, layout[WIDTH] - cut[LEFT] * layout[MCU_WIDTH])
    put_byte(to, np.int64(0xFF))
    put_byte(to + 1, np.int64(0xD8))
    at, to = np.int64(2), to + 2
    while at < layout[CODE]:
        marker = np.int64(byte_at(data, at + 1))
        length = 2 + (np.int64(byte_at(data, at + 2)) << 8 | np.int64(byte_at(data, at + 3)))
        if to + length + 1024 > end:
            return np.int64(0)
        if at == layout[SCAN]:
            for table in range(4):
                if number_of_codes(table, tables) and tables.dc_codes[table, CATEGORIES, 0]:
                    to = _write_table(table, tables, to)
        # Notes, thumbnails and profiles decide nothing; JFIF's and Adobe's segments say what the colours are.
        if not (0xE1 <= marker <= 0xED or marker == 0xEF or marker == 0xFE):
            for i in range(length):
                put_byte(to + i, np.int64(byte_at(data, at + i)))
            if at == layout[FRAME]:
                put_byte(to + 5, height >> 8)
                put_byte(to + 6, height & 255)
                put_byte(to + 7, width >> 8)
                put_byte(to + 8, width & 255)
            to += length
        at += length
    return to


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _write_table(table: Any, tables: Any, to: Any) -> Any:
    """A DC table with the categories that the file's lacks -> the address behind it."""
    added, number = tables.dc_codes[table, CATEGORIES, 0], number_of_codes(table, tables)
    length = 19 + number + added
    for i, value in enumerate((0xFF, 0xC4, length >> 8, length & 255, table)):
        put_byte(to + i, np.int64(value))
    for i in range(1, 17):
        put_byte(to + 4 + i, tables.counts[table, i] + (added if i == 16 else 0))
    for i in range(number):
        put_byte(to + 21 + i, np.int64(tables.symbols[table, i]))
    to += 21 + number
    # In the order of their codes.
    for category in range(CATEGORIES):
        has = False
        for i in range(number):
            has = has or tables.symbols[table, i] == category
        if not has and tables.dc_codes[table, category, 1]:
            put_byte(to, np.int64(category))
            to += 1
    return to
