"""Entry points of a JPEG's Huffman code: found in one pass, packed into a few bytes, and read again.

An entry is noted at the beginning of each row of what is coded together (MCUs), and again every so many columns: the
bit of the file's code, and what the DC coefficients of each component are counted from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from variegate.decode.entropy.code import skip_units
from variegate.decode.entropy.layout import CODE, DAMAGED, FITS, MCU_COLUMNS, MCU_ROWS, read_layout
from variegate.decode.entropy.stuffing import count_ff, unstuff
from variegate.decode.entropy.words import address_of
from variegate.decode.memory_words import value_at
from variegate.program.compiled import pixel_kernel

# Of the file, for all that is noted; an entry takes about so many bytes.
_SHARE, _ENTRY_BYTES = 0.0185, 4.0
_byte = value_at(types.uint8)


@pixel_kernel
def find_entries(data: Any, size: Any, layout: Any, tables: Any, code: Any, bits: Any, dc: Any) -> Any:
    """-> (``FITS`` or why not, columns from entry to entry, how many). ``code``: room for the file's bytes and
    ``SLACK``; ``bits`` int64[M], counted from the code's beginning in the file, and ``dc`` int64[M, 3] take the
    entries."""
    found = read_layout(data, size, layout, tables)
    if found != FITS:
        return found, np.int64(0), np.int64(0)
    begin, buffer = data + layout[CODE], address_of(code)
    length, stop = unstuff(begin, data + size, buffer)
    # What ends the code is to end the file.
    if stop + 2 > data + size or _byte(stop, 0) != 0xFF or _byte(stop, 1) != 0xD9:
        return np.int64(DAMAGED), np.int64(0), np.int64(0)
    rows, columns = layout[MCU_ROWS], layout[MCU_COLUMNS]
    wanted = max(1.0, _SHARE * size / _ENTRY_BYTES)
    step = min(np.int64(np.ceil(rows * columns / wanted)), columns)
    number, bit = np.int64(0), np.int64(0)
    looked, stuffed = np.int64(0), np.int64(0)
    for i in range(3):
        dc[0, i] = 0
    for _ in range(rows):
        column = np.int64(0)
        while column < columns:
            place = bit >> 3
            stuffed += count_ff(buffer + looked, buffer + place)
            looked = place
            if number + 1 == len(bits):
                return np.int64(DAMAGED), np.int64(0), np.int64(0)
            bits[number] = bit + 8 * stuffed
            number += 1
            for i in range(3):
                dc[number, i] = dc[number - 1, i]
            units = min(step, columns - column)
            bit = skip_units(buffer, bit, 8 * length, units, dc[number], layout, tables)
            if bit < 0:
                return np.int64(DAMAGED), np.int64(0), np.int64(0)
            column += units
    # Nothing but what fills the last byte.
    if 8 * length - bit >= 8:
        return np.int64(DAMAGED), np.int64(0), np.int64(0)
    return np.int64(FITS), step, number
