"""The key that a file is known by: XXH64 of its bytes (Yann Collet, https://xxhash.com), some 4 bytes a clock."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from variegate.decode.memory_words import byte_at, value_at, word_at
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


@pixel_kernel
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
