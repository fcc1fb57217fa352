"""The zero that follows every 0xFF of Huffman code in a file, taken out and put in again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from variegate.decode.entropy.words import has_ff, put_byte, put_word, swapped, word_at
from variegate.decode.memory_words import value_at
from variegate.program.compiled import pixel_kernel

SLACK = 512
"""Bytes that buffers of code have behind what they hold: a block may be read as far beyond before that is noticed."""
_byte = value_at(types.uint8)


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
            value = np.int64(_byte(at, 0))
            if value == 0xFF:
                if at + 1 >= end or _byte(at, 1) != 0:
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
        count += np.int64(_byte(source, i) == 0xFF)
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
