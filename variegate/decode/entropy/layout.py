"""The layout of a baseline JPEG: what is needed to read its code from the middle.

After ITU-T T.81, annex B. What libjpeg would warn of, and everything but one sequential scan of 8 bits
without restart markers, is refused: such files are decoded whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.decode.entropy.huffman import NUM_TABLES, number_of_codes, read_tables
from variegate.decode.memory_words import byte_at, short_at
from variegate.program.compiled import pixel_kernel

HEIGHT, WIDTH, COMPONENTS, FRAME, SCAN, CODE, MCU_HEIGHT, MCU_WIDTH, MCU_ROWS, MCU_COLUMNS, BLOCKS = range(11)
"""Of the layout: offsets in the file of the frame's and the scan's marker and of the Huffman code; in pixels and in
numbers what is coded together; its blocks, which are described from ``FIRST_BLOCK``: component, DC table, AC table."""
FIRST_BLOCK, MAX_BLOCKS = 11, 10
LAYOUT_SIZE = FIRST_BLOCK + 3 * MAX_BLOCKS

(
    FITS,
    NOT_BASELINE,
    SEVERAL_SCANS,
    RESTARTS,
    NOT_EIGHT_BITS,
    OTHER_COLOURS,
    NO_CODE,
    DAMAGED,
) = range(8)
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
