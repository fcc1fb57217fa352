"""Entry points of a JPEG's Huffman code: found in one pass, packed into a few bytes, and read again."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.decode.entropy.code import SLACK, count_ff, key_of, skip_units, unstuff
from variegate.decode.entropy.layout import CODE, DAMAGED, FITS, MCU_COLUMNS, MCU_ROWS, read_layout
from variegate.decode.memory import address_of, bits_at, byte_at, put_byte
from variegate.program.compiled import pixel_kernel

# Of the file, for all that is noted; an entry takes about so many bytes.
_SHARE, _ENTRY_BYTES = 0.0185, 4.0


@pixel_kernel
def find_entries(data: Any, size: Any, layout: Any, tables: Any, code: Any, bits: Any, dc: Any) -> Any:
    """-> (``FITS`` or why not, columns from entry to entry, how many), at the beginning of each row of MCUs and
    every so many columns. ``code``: room for the file's bytes and ``SLACK``; ``bits`` int64[M] in the file's code,
    ``dc`` int64[M, 3]."""
    found = read_layout(data, size, layout, tables)
    if found != FITS:
        return found, np.int64(0), np.int64(0)
    begin, buffer = data + layout[CODE], address_of(code)
    length, stop = unstuff(begin, data + size, buffer)
    # What ends the code is to end the file.
    if stop + 2 > data + size or byte_at(stop, 0) != 0xFF or byte_at(stop, 1) != 0xD9:
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


# Little-endian uint16: columns from entry to entry, entries of a row, rows; then four parameters, and a checksum.
HEAD = 14
_CHECKED = 10
_ESCAPE, _RAW = 20, 34  # so many ones, and the value in so many bits
_MOST_K, _MOST_DC = 24, 1 << _RAW
# ``find_entries`` notes one for more bytes than these, besides one for each row, of which there are half as many.
_LEAST_BYTES, _ROWS = 64, 1 << 14


@pixel_kernel(inline="always")
def _folded(value: Any) -> Any:
    """0, -1, 1, -2, ... as 0, 1, 2, 3, ..."""
    return (value << 1) ^ (value >> 63)


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _field(field: Any, n: Any, in_row: Any, bits: Any, dc: Any) -> Any:
    """The number that is written of entry ``n``, of field 0, the bits to it from the one before, or of a DC: as a
    difference from the row above, in the first row from the entry before."""
    above = n - in_row if n >= in_row else n - 1
    if field == 0:
        own = bits[n] - bits[n - 1] if n > 0 else bits[0]
        other = bits[above] - bits[above - 1] if above > 0 else np.int64(0)
        return _folded(own - other)
    return _folded(dc[n, field - 1] - (dc[above, field - 1] if above >= 0 else 0))


@pixel_kernel
def pack_entries(key: Any, step: Any, in_row: Any, number: Any, bits: Any, dc: Any, out: Any) -> Any:
    """-> bytes written to the uint8 ``out``; 0 where they have no room. ``key``: of the file, ``key_of``."""
    to = address_of(out)
    end = to + len(out) - SLACK
    begin = to
    for i, value in enumerate((step, in_row, number // in_row)):
        if value > 0xFFFF:
            return np.int64(0)
        put_byte(to + 2 * i, value & 255)
        put_byte(to + 2 * i + 1, value >> 8)
    to += HEAD
    acc, pending = np.uint64(0), np.int64(0)
    for field in range(4):
        total = np.int64(0)
        for n in range(number):
            total += _field(field, n, in_row, bits, dc)
        # About the logarithm of the mean.
        k = np.int64(0)
        while (number << (k + 1)) <= total and k < _MOST_K:
            k += 1
        put_byte(begin + 6 + field, k)
        for n in range(number):
            if to > end:
                return np.int64(0)
            value = _field(field, n, in_row, bits, dc)
            ones = value >> k
            if ones < _ESCAPE:
                word, width = ((np.int64(1) << ones) - 1) << (k + 1) | (value & ((np.int64(1) << k) - 1)), ones + 1 + k
            else:
                word, width = ((np.int64(1) << _ESCAPE) - 1) << _RAW | value, np.int64(_ESCAPE + _RAW)
            # Never more than 54 bits, and fewer than 8 pending.
            acc |= np.uint64(word) << np.uint64(64 - width) >> np.uint64(pending)
            pending += width
            while pending >= 8:
                put_byte(to, np.int64(acc >> np.uint64(56)))
                to += 1
                acc <<= np.uint64(8)
                pending -= 8
    if pending:
        put_byte(to, np.int64(acc >> np.uint64(56)))
        to += 1
    check = np.int64(_check(begin, to - begin, key))
    for i in range(4):
        put_byte(begin + _CHECKED + i, (check >> (8 * i)) & 255)
    return to - begin


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _check(packed: Any, size: Any, key: Any) -> Any:
    """uint32 of all but the checksum itself, and of the file's key: entries of another file are none of this one's."""
    key += key_of(packed, np.int64(_CHECKED)) + key_of(packed + HEAD, size - HEAD)
    return (key ^ (key >> np.uint64(32))) & np.uint64(0xFFFFFFFF)


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def unpack_entries(packed: Any, size: Any, key: Any, of_file: Any, bits: Any, dc: Any, buffer: Any) -> Any:
    """-> (columns from entry to entry, entries of a row, how many entries); zeros for what ``pack_entries`` has not
    written, or not of a file of ``of_file`` bytes; the last less than 0 where ``bits`` has no room for so many.
    ``buffer``: an address with room for the bytes and ``SLACK``.

    Anybody can compute the checksum. Of what is returned, ``bits`` ascend within the file's, and no sum runs over."""
    none = np.int64(0), np.int64(0), np.int64(0)
    if size < HEAD:
        return none
    check = np.int64(0)
    for i in range(4):
        check |= np.int64(byte_at(packed, _CHECKED + i)) << (8 * i)
    if np.int64(_check(packed, size, key)) != check:
        return none
    step = np.int64(byte_at(packed, 0)) | np.int64(byte_at(packed, 1)) << 8
    in_row = np.int64(byte_at(packed, 2)) | np.int64(byte_at(packed, 3)) << 8
    number = in_row * (np.int64(byte_at(packed, 4)) | np.int64(byte_at(packed, 5)) << 8)
    # An entry has a bit of each field at least.
    if step == 0 or number == 0 or number > min(of_file // _LEAST_BYTES + _ROWS, 2 * (size - HEAD)):
        return none
    if number > len(bits):
        return np.int64(0), np.int64(0), -number
    for i in range(size - HEAD):
        put_byte(buffer + i, np.int64(byte_at(packed, HEAD + i)))
    bit, last = np.int64(0), 8 * (size - HEAD)
    for field in range(4):
        k = np.int64(byte_at(packed, 6 + field))
        if k > _MOST_K:
            return none
        for n in range(number):
            word = bits_at(buffer, bit)
            ones = np.int64(0)
            while ones < _ESCAPE and (word >> np.uint64(63)) != np.uint64(0):
                word <<= np.uint64(1)
                ones += 1
            if ones < _ESCAPE:
                value = ones << k | np.int64((word << np.uint64(1)) >> np.uint64(1) >> np.uint64(63 - k))
                bit += ones + 1 + k
            else:
                value = np.int64(word >> np.uint64(64 - _RAW))
                bit += _ESCAPE + _RAW
            if bit > last:
                return none
            value = (value >> 1) ^ -(value & 1)
            above = n - in_row if n >= in_row else n - 1
            if field == 0:
                other = bits[above] - bits[above - 1] if above > 0 else np.int64(0)
                before = bits[n - 1] if n > 0 else np.int64(0)
                bits[n] = value + other + before
                if not before <= bits[n] < 8 * of_file:
                    return none
            else:
                dc[n, field - 1] = value + (dc[above, field - 1] if above >= 0 else 0)
                if abs(dc[n, field - 1]) > _MOST_DC:
                    return none
    return step, in_row, number
