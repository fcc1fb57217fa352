"""The layout of a baseline JPEG and its Huffman tables: what is needed to read its code from the middle."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.decode.memory import byte_at, short_at
from variegate.program.compiled import pixel_kernel

LOOK = 10
"""Bits that a code is looked up by at once; longer codes are few."""
CATEGORIES = 12
"""Of differences of DC coefficients of 8-bit pictures: 0 to 11 bits."""
END_OF_BLOCK = 128

NUM_TABLES = 8
"""DC 0 to 3, AC 0 to 3."""


class HuffmanTables(NamedTuple):
    """Of one file; a thread uses them for one after another.

    ``look`` int32[8, 1 << LOOK]: by the next bits, for DC ``length | category << 5``, for AC ``bits of code and value |
    (zeros + 1) << 5``, ``END_OF_BLOCK`` ending it; 0: longer. ``longest`` int64[8, 17]: largest code of each length,
    ``first``: what gives the place of its symbol; ``symbols``. ``counts`` int64[8, 17]: codes of each length.
    ``dc_codes`` int64[4, CATEGORIES + 1, 2]: code and length by category, also of those that the file's table lacks,
    which are added behind its longest (their length is 0 where it has no room); in the last row how many these are.
    """

    look: npt.NDArray[np.int32]
    longest: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    symbols: npt.NDArray[np.uint8]
    counts: npt.NDArray[np.int64]
    dc_codes: npt.NDArray[np.int64]


def empty_tables() -> HuffmanTables:
    return HuffmanTables(
        np.zeros((NUM_TABLES, 1 << LOOK), np.int32),
        np.zeros((NUM_TABLES, 17), np.int64),
        np.zeros((NUM_TABLES, 17), np.int64),
        np.zeros((NUM_TABLES, 256), np.uint8),
        np.zeros((NUM_TABLES, 17), np.int64),
        np.zeros((NUM_TABLES // 2, CATEGORIES + 1, 2), np.int64),
    )


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def number_of_codes(table: Any, tables: Any) -> Any:
    number = np.int64(0)
    for length in range(1, 17):
        number += tables.counts[table, length]
    return number


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def read_tables(segment: Any, size: Any, tables: Any) -> Any:
    """One segment's tables -> whether they are sound."""
    at = np.int64(0)
    while at < size:
        which = np.int64(byte_at(segment, at))
        table = (which & 15) + 4 * (which >> 4)
        if at + 17 > size or (which & 15) > 3 or (which >> 4) > 1:
            return False
        number = np.int64(0)
        for length in range(1, 17):
            tables.counts[table, length] = np.int64(byte_at(segment, at + length))
            number += tables.counts[table, length]
        at += 17
        if number == 0 or number > 256 or at + number > size:
            return False
        for i in range(number):
            tables.symbols[table, i] = byte_at(segment, at + i)
        at += number
        if not _derive(table, tables):
            return False
    return at == size


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _derive(table: Any, tables: Any) -> Any:
    """Codes of a table from the numbers of each length (annex C) -> whether there are as many."""
    look = tables.look[table]
    for i in range(np.int64(1) << LOOK):
        look[i] = 0
    code = place = np.int64(0)
    if table < 4:
        for category in range(CATEGORIES + 1):
            tables.dc_codes[table, category, 0] = tables.dc_codes[table, category, 1] = 0
    for length in range(1, 17):
        tables.first[table, length] = place - code
        if code + tables.counts[table, length] > np.int64(1) << length:
            return False  # before these are looked up by
        for _ in range(tables.counts[table, length]):
            symbol = np.int64(tables.symbols[table, place])
            if table < 4 and symbol >= CATEGORIES:
                return False
            if table >= 4 and (symbol & 15) > 10 and symbol & 15:
                return False
            if length <= LOOK:
                value = entry_of(table >= 4, symbol, length)
                begin = code << (LOOK - length)
                for i in range(begin, begin + (np.int64(1) << (LOOK - length))):
                    look[i] = value
            if table < 4:
                tables.dc_codes[table, symbol, 0], tables.dc_codes[table, symbol, 1] = code, length
            code += 1
            place += 1
        tables.longest[table, length] = code - 1 if tables.counts[table, length] else -1
        code <<= 1
    if table < 4:
        _add_categories(tables.dc_codes[table], code >> 1)
    return True


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _add_categories(codes: Any, free: Any) -> Any:
    """Give those that a table lacks the codes of 16 bits from ``free`` on; all ones is none."""
    for category in range(CATEGORIES):
        if codes[category, 1] == 0 and free < 0xFFFF:
            codes[category, 0], codes[category, 1] = free, 16
            codes[CATEGORIES, 0] += 1
            free += 1


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def entry_of(is_ac: Any, symbol: Any, length: Any) -> Any:
    """As ``HuffmanTables.look`` has it."""
    if not is_ac:
        return np.int32(length | symbol << 5)
    if symbol == 0:
        return np.int32(length | END_OF_BLOCK << 5)
    return np.int32((length + (symbol & 15)) | ((symbol >> 4) + 1) << 5)


HEIGHT, WIDTH, COMPONENTS, FRAME, SCAN, CODE, MCU_HEIGHT, MCU_WIDTH, MCU_ROWS, MCU_COLUMNS, BLOCKS = range(11)
"""Of the layout: offsets in the file of the frame's and the scan's marker and of the Huffman code; in pixels and in
numbers what is coded together; its blocks, which are described from ``FIRST_BLOCK``: component, DC table, AC table."""
FIRST_BLOCK, MAX_BLOCKS = 11, 10
LAYOUT_SIZE = FIRST_BLOCK + 3 * MAX_BLOCKS

FITS, NOT_BASELINE, SEVERAL_SCANS, RESTARTS, NOT_EIGHT_BITS, OTHER_COLOURS, NO_CODE, DAMAGED = range(8)
REASONS = {
    NOT_BASELINE: "progressive or arithmetic",
    SEVERAL_SCANS: "several scans",
    RESTARTS: "restart markers",
    NOT_EIGHT_BITS: "not 8 bits",
    OTHER_COLOURS: "neither gray nor YCbCr",
    NO_CODE: "no JPEG",
    DAMAGED: "damaged",
}

_EOI, _SOS, _DHT, _DRI, _SOF0, _SOF1, _SOF15 = 0xD9, 0xDA, 0xC4, 0xDD, 0xC0, 0xC1, 0xCF


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def read_layout(data: Any, size: Any, layout: Any, tables: Any) -> Any:
    """Fill ``layout`` and ``tables`` from the file of ``size`` bytes at address ``data`` -> ``FITS``, or why not."""
    if size < 4 or short_at(data, 0) != 0xFFD8:
        return NO_CODE
    for table in range(NUM_TABLES):
        for length in range(17):
            tables.counts[table, length] = 0
    for i in range(LAYOUT_SIZE):
        layout[i] = 0
    at = np.int64(2)
    while at + 4 <= size:
        marker = np.int64(byte_at(data, at + 1))
        length = short_at(data, at + 2)
        if byte_at(data, at) != 0xFF or marker < _SOF0 or 0xD0 <= marker <= _EOI or marker == 0xFF:
            return DAMAGED
        if length < 2 or at + 2 + length > size:
            return DAMAGED
        if marker == _SOS:
            return _read_scan(data, at, length, layout, tables)
        if marker == _DHT:
            if not read_tables(data + at + 4, length - 2, tables):
                return DAMAGED
        elif marker == _DRI:
            if length < 4:
                return DAMAGED
            if short_at(data, at + 4) != 0:
                return RESTARTS
        elif _SOF0 <= marker <= _SOF1:
            found = _read_frame(data, at, length, layout)
            if found != FITS:
                return found
        elif _SOF0 <= marker <= _SOF15:
            return NOT_BASELINE
        at += 2 + length
    return DAMAGED


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _read_frame(data: Any, at: Any, length: Any, layout: Any) -> Any:
    if layout[FRAME] != 0 or length < 8:
        return DAMAGED
    components = np.int64(byte_at(data, at + 9))
    if length != 8 + 3 * components:
        return DAMAGED
    if byte_at(data, at + 4) != 8:
        return NOT_EIGHT_BITS
    if components != 1 and components != 3:
        return OTHER_COLOURS
    layout[FRAME], layout[COMPONENTS] = at, components
    layout[HEIGHT], layout[WIDTH] = short_at(data, at + 5), short_at(data, at + 7)
    return FITS if layout[HEIGHT] > 0 and layout[WIDTH] > 0 else DAMAGED


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _read_scan(data: Any, at: Any, length: Any, layout: Any, tables: Any) -> Any:
    """The scan's head, with the frame's: which blocks are coded together, and by which tables."""
    frame, components = layout[FRAME], layout[COMPONENTS]
    if frame == 0 or length < 6:
        return DAMAGED
    if np.int64(byte_at(data, at + 4)) != components or length != 6 + 2 * components:
        return SEVERAL_SCANS
    rest = at + 5 + 2 * components
    if byte_at(data, rest) != 0 or byte_at(data, rest + 1) != 63 or byte_at(data, rest + 2) != 0:
        return SEVERAL_SCANS
    most_across = most_down = np.int64(1)
    blocks = np.int64(0)
    for i in range(components):
        factors = np.int64(byte_at(data, frame + 11 + 3 * i))
        across, down = factors >> 4, factors & 15
        if components == 1:  # is not interleaved, whatever its factors
            across = down = np.int64(1)
        if not (1 <= across <= 4 and 1 <= down <= 4 and blocks + across * down <= MAX_BLOCKS):
            return DAMAGED
        if byte_at(data, frame + 10 + 3 * i) != byte_at(data, at + 5 + 2 * i):
            return SEVERAL_SCANS  # in another order
        most_across, most_down = max(most_across, across), max(most_down, down)
        which = np.int64(byte_at(data, at + 6 + 2 * i))
        dc, ac = which >> 4, 4 + (which & 15)
        if dc > 3 or ac > 7 or number_of_codes(dc, tables) == 0 or number_of_codes(ac, tables) == 0:
            return DAMAGED
        for _ in range(across * down):
            layout[FIRST_BLOCK + 3 * blocks] = i
            layout[FIRST_BLOCK + 3 * blocks + 1] = dc
            layout[FIRST_BLOCK + 3 * blocks + 2] = ac
            blocks += 1
    layout[BLOCKS], layout[SCAN], layout[CODE] = blocks, at, at + 2 + length
    layout[MCU_HEIGHT], layout[MCU_WIDTH] = 8 * most_down, 8 * most_across
    layout[MCU_ROWS] = -(-layout[HEIGHT] // layout[MCU_HEIGHT])
    layout[MCU_COLUMNS] = -(-layout[WIDTH] // layout[MCU_WIDTH])
    return FITS
