"""Huffman tables of a JPEG (ITU-T T.81, annexes C and F): where a code leads, by its first bits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.decode.memory_words import byte_at
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
