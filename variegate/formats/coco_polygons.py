"""The polygons of a large COCO file, three quarters of its text, read apart from its other JSON.

One walk over the bytes turns ``"segmentation": [[...]]`` of every annotation into float32 and puts a number in its
place; what is left is JSON again, and short.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.program.compiled import inner_kernel, pixel_kernel

_QUOTE, _ESCAPE, _COLON, _COMMA, _MINUS, _PLUS, _POINT = (ord(letter) for letter in '"\\:,-+.')
_OPEN_LIST, _CLOSE_LIST, _OPEN_DICT, _CLOSE_DICT = (ord(letter) for letter in "[]{}")
_SPACE, _TAB, _LINE, _RETURN, _ZERO, _NINE = (ord(letter) for letter in " \t\n\r09")
_SMALL_E, _LARGE_E = (ord(letter) for letter in "eE")
_LIST_KEY = np.frombuffer(b"annotations", np.uint8)
_SHAPE_KEY = np.frombuffer(b"segmentation", np.uint8)
_POWERS = 10.0 ** np.arange(23)  # all exact
_MOST_DIGITS = 18
_SLACK = 2.0**-50


class Polygons(NamedTuple):
    """``text``: the rest, UTF-8, in which the number k stands for rings ``ends[k - 1]:ends[k]`` (from 0 for the first);
    ring r holds points ``rings[r]:rings[r + 1]`` of ``points``, float32 [P, 2]."""

    text: memoryview
    points: npt.NDArray[np.float32]
    rings: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


def take_polygons(text: bytes) -> Polygons | None:
    """None where a number stands already where polygons should. Polygons that are not lists of three points or more,
    and numbers whose float32 takes more than 18 digits to tell, stay in the text."""
    data = np.frombuffer(text, np.uint8)
    # Of these, only what is written to becomes memory.
    rest = np.empty(len(data), np.uint8)
    points = np.empty(len(data) // 2 + 1, np.float32)
    rings = np.empty(len(data) // 12 + 2, np.int64)
    ends = np.empty(len(data) // 24 + 1, np.int64)
    count, num_numbers, num_rings, num_shapes = _take(data, rest, points, rings, ends, _POWERS)
    if count < 0:
        return None
    points.resize(num_numbers, refcheck=False)  # in place, where slices would keep all of it
    rings.resize(num_rings + 1, refcheck=False)
    ends.resize(num_shapes, refcheck=False)
    return Polygons(rest.data[:count], points.reshape(-1, 2), rings, ends)


@pixel_kernel
def _take(data: Any, rest: Any, points: Any, rings: Any, ends: Any, powers: Any) -> Any:
    """-> how many bytes, numbers, rings and shapes were written; -1 bytes: see ``take_polygons``."""
    at = written = numbers = num_rings = shapes = depth = 0
    is_within = False
    rings[0] = 0
    while at < len(data):
        letter = data[at]
        start = at
        at += 1
        if letter in (_OPEN_LIST, _OPEN_DICT):
            depth += 1
        elif letter in (_CLOSE_LIST, _CLOSE_DICT):
            depth -= 1
        elif letter == _QUOTE:
            while at < len(data) and data[at] != _QUOTE:
                at += 2 if data[at] == _ESCAPE else 1
            at = min(at + 1, len(data))
        for k in range(start, at):
            rest[written] = data[k]
            written += 1
        if letter != _QUOTE or (depth != 1 and depth != 3):
            continue
        if depth == 1:
            # A text at this depth is a key of the file, or a value before the next one.
            is_within = _is_text(data, start + 1, at - 1, _LIST_KEY)
            continue
        if not is_within or not _is_text(data, start + 1, at - 1, _SHAPE_KEY):
            continue
        begin = _after_space(data, at)
        if begin >= len(data) or data[begin] != _COLON:
            continue
        begin = _after_space(data, begin + 1)
        if begin < len(data) and (data[begin] == _MINUS or _ZERO <= data[begin] <= _NINE):
            return -1, 0, 0, 0
        after, more, last = _rings(data, begin, points, numbers, rings, num_rings, powers)
        if after < 0:
            continue
        numbers, num_rings = more, last
        ends[shapes] = num_rings
        rest[written] = _COLON
        written += 1
        written = _write(rest, written, shapes)
        shapes += 1
        at = after
    return written, numbers, num_rings, shapes


@inner_kernel()
def _rings(data: Any, at: int, points: Any, numbers: int, rings: Any, count: int, powers: Any) -> Any:
    """-> what follows the lists (-1 where they are not such), and how many numbers and rings there are then."""
    if at >= len(data) or data[at] != _OPEN_LIST:
        return -1, 0, 0
    at = _after_space(data, at + 1)
    while True:
        if at >= len(data) or data[at] != _OPEN_LIST:
            return -1, 0, 0
        at = _after_space(data, at + 1)
        first = numbers
        while True:
            at, value = _number(data, at, powers)
            if at < 0:
                return -1, 0, 0
            points[numbers] = value
            numbers += 1
            at = _after_space(data, at)
            if at >= len(data) or (data[at] != _COMMA and data[at] != _CLOSE_LIST):
                return -1, 0, 0
            at += 1
            if data[at - 1] == _CLOSE_LIST:
                break
            at = _after_space(data, at)
        if numbers - first < 6 or (numbers - first) % 2:
            return -1, 0, 0
        count += 1
        rings[count] = numbers // 2
        at = _after_space(data, at)
        if at >= len(data) or (data[at] != _COMMA and data[at] != _CLOSE_LIST):
            return -1, 0, 0
        at += 1
        if data[at - 1] == _CLOSE_LIST:
            return at, numbers, count
        at = _after_space(data, at)


@inner_kernel()
def _number(data: Any, at: int, powers: Any) -> Any:
    """-> what follows a number of JSON, and the number; -1 where there is none, or it is not told for certain."""
    is_negative = at < len(data) and data[at] == _MINUS
    at += is_negative
    begin = at
    whole, digits, scale = 0, 0, 0
    while at < len(data) and _ZERO <= data[at] <= _NINE:
        if digits < _MOST_DIGITS:
            whole = whole * 10 + (int(data[at]) - _ZERO)
            digits += whole > 0
        else:
            scale += 1
        at += 1
    if at == begin or (data[begin] == _ZERO and at > begin + 1):
        return -1, 0.0
    if at < len(data) and data[at] == _POINT:
        at += 1
        begin = at
        while at < len(data) and _ZERO <= data[at] <= _NINE:
            if digits < _MOST_DIGITS:
                whole = whole * 10 + (int(data[at]) - _ZERO)
                digits += whole > 0
                scale -= 1
            at += 1
        if at == begin:
            return -1, 0.0
    if at < len(data) and (data[at] == _SMALL_E or data[at] == _LARGE_E):
        at += 1
        is_less = at < len(data) and data[at] == _MINUS
        at += at < len(data) and (data[at] == _MINUS or data[at] == _PLUS)
        begin, power = at, 0
        while at < len(data) and _ZERO <= data[at] <= _NINE:
            power = min(power * 10 + (int(data[at]) - _ZERO), 1000)
            at += 1
        if at == begin:
            return -1, 0.0
        scale += -power if is_less else power
    if scale < -22 or scale > 15:
        return -1, 0.0
    value = whole * powers[scale] if scale >= 0 else whole / powers[-scale]
    # The product is off by less than the slack; float32 decides only where both ends round to the same.
    if np.float32(value * (1 - _SLACK)) != np.float32(value * (1 + _SLACK)):
        return -1, 0.0
    return at, -value if is_negative else value


@inner_kernel()
def _after_space(data: Any, at: int) -> int:
    while at < len(data) and (data[at] == _SPACE or data[at] == _LINE or data[at] == _RETURN or data[at] == _TAB):
        at += 1
    return at


@inner_kernel()
def _is_text(data: Any, first: int, last: int, wanted: Any) -> bool:
    if last - first != len(wanted):
        return False
    equal = 0
    for k in range(len(wanted)):
        equal += data[first + k] == wanted[k]
    return equal == len(wanted)


@inner_kernel()
def _write(rest: Any, at: int, number: int) -> int:
    size = 1
    while number >= 10**size:
        size += 1
    for k in range(size):
        rest[at + size - 1 - k] = _ZERO + number % 10
        number //= 10
    return at + size
