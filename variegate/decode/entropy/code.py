"""Huffman code of a JPEG read block by block, for where it leads; and the key by which files are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from variegate.decode.entropy.layout import BLOCKS, END_OF_BLOCK, FIRST_BLOCK, LOOK, entry_of
from variegate.decode.memory import bits_at, byte_at, has_ff, put_byte, put_word, swapped, value_at, word_at
from variegate.program.compiled import pixel_kernel

_P1, _P2, _P3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_P4, _P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)
_half = value_at(types.uint32)


@pixel_kernel(inline="always")
def _turned(value: Any, by: Any) -> Any:
    return (value << np.uint64(by)) | (value >> np.uint64(64 - by))


@pixel_kernel(inline="always")
def _round(lane: Any, word: Any) -> Any:
    return _turned(lane + word * _P2, 31) * _P1


@pixel_kernel(inline="always")
def _joined(key: Any, lane: Any) -> Any:
    return (key ^ _round(np.uint64(0), lane)) * _P1 + _P4


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def key_of(data: Any, size: Any) -> Any:
    """uint64 of the ``size`` bytes at address ``data``."""
    at, end = data, data + size
    if size >= 32:
        a, b, c, d = _P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1
        while at + 32 <= end:
            a, b = _round(a, word_at(at)), _round(b, word_at(at + 8))
            c, d = _round(c, word_at(at + 16)), _round(d, word_at(at + 24))
            at += 32
        key = _turned(a, 1) + _turned(b, 7) + _turned(c, 12) + _turned(d, 18)
        key = _joined(_joined(_joined(_joined(key, a), b), c), d)
    else:
        key = _P5
    key += np.uint64(size)
    while at + 8 <= end:
        key = _turned(key ^ _round(np.uint64(0), word_at(at)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        key = _turned(key ^ (np.uint64(_half(at, 0)) * _P1), 23) * _P2 + _P3
        at += 4
    while at < end:
        key = _turned(key ^ (np.uint64(byte_at(at, 0)) * _P5), 11) * _P1
        at += 1
    key = (key ^ (key >> np.uint64(33))) * _P2
    key = (key ^ (key >> np.uint64(29))) * _P3
    return key ^ (key >> np.uint64(32))


BROKEN = -1
SLACK = 512
"""Bytes that buffers of code have behind what they hold: a block may be read as far beyond before that is noticed."""


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def unstuff(source: Any, end: Any, target: Any) -> Any:
    """From addresses ``source`` up to ``end``, or a marker -> (how many bytes came to ``target``, where it stopped).
    ``target`` has ``SLACK`` bytes of room more."""
    at, to = source, target
    while at < end:
        if at + 8 <= end:
            word = word_at(at)
            if not has_ff(word):
                put_word(to, word)
                at += 8
                to += 8
                continue
        stop = min(at + 8, end)
        while at < stop:
            value = np.int64(byte_at(at, 0))
            if value == 0xFF:
                if at + 1 >= end or byte_at(at, 1) != 0:
                    return to - target, at
                at += 1
            put_byte(to, value)
            at += 1
            to += 1
    return to - target, at


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def count_ff(source: Any, end: Any) -> Any:
    count = np.int64(0)
    for i in range(end - source):
        count += np.int64(byte_at(source, i) == 0xFF)
    return count


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def put_stuffed(to: Any, word: Any) -> Any:
    """Eight bytes, first bits first -> the address behind them."""
    if not has_ff(word):
        put_word(to, swapped(word))
        return to + 8
    for i in range(8):
        value = np.int64((word >> np.uint64(56 - 8 * i)) & np.uint64(0xFF))
        put_byte(to, value)
        to += 1
        if value == 0xFF:
            put_byte(to, np.int64(0))
            to += 1
    return to


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def dc_at(buffer: Any, bit: Any, table: Any, tables: Any) -> Any:
    """-> (bit after the difference, the difference); the first ``BROKEN`` for no code."""
    word = bits_at(buffer, bit)
    entry = np.int64(tables.look[table, word >> np.uint64(64 - LOOK)])
    if entry == 0:
        entry = long_code(word, table, tables)
        if entry == 0:
            return np.int64(BROKEN), np.int64(0)
    length, category = entry & 31, entry >> 5
    value = np.int64((word << np.uint64(length)) >> np.uint64(1) >> np.uint64(63 - category))
    if category and value < np.int64(1) << (category - 1):
        value -= (np.int64(1) << category) - 1
    return bit + length + category, value


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def skip_ac(buffer: Any, bit: Any, table: Any, tables: Any) -> Any:
    """-> the bit after the 63 others of a block; ``BROKEN`` for what no block is."""
    look, place = tables.look[table], np.int64(1)
    while place < 64:
        word, used = bits_at(buffer, bit), np.int64(0)
        # As long as the longest code, of 16 bits, is in what was read.
        while used <= 41 and place < 64:
            entry = np.int64(look[word >> np.uint64(64 - LOOK)])
            if entry == 0:
                entry = long_code(word, table, tables)
                if entry == 0:
                    return np.int64(BROKEN)
            word <<= np.uint64(entry & 31)
            used += entry & 31
            place += entry >> 5
        bit += used
    return bit if place == 64 or place >= END_OF_BLOCK else np.int64(BROKEN)


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def long_code(word: Any, table: Any, tables: Any) -> Any:
    """The entry of a code that is longer than what is looked up at once; 0 for none."""
    for length in range(LOOK + 1, 17):
        code = np.int64(word >> np.uint64(64 - length))
        if code <= tables.longest[table, length]:
            symbol = np.int64(tables.symbols[table, code + tables.first[table, length]])
            return np.int64(entry_of(table >= 4, symbol, length))
    return np.int64(0)


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def skip_units(buffer: Any, bit: Any, end: Any, units: Any, dc: Any, layout: Any, tables: Any) -> Any:
    """Read so many units of what is coded together, from ``bit`` -> the bit behind them; ``dc`` int64[3] follows.
    ``BROKEN`` for what is no code, or goes beyond bit ``end``."""
    blocks = layout[BLOCKS]
    for _ in range(units):
        for block in range(blocks):
            about = FIRST_BLOCK + 3 * block
            bit, difference = dc_at(buffer, bit, layout[about + 1], tables)
            if bit < 0:
                return np.int64(BROKEN)
            dc[layout[about]] += difference
            bit = skip_ac(buffer, bit, layout[about + 2], tables)
            if bit < 0 or bit > end:
                return np.int64(BROKEN)
    return bit
