"""From a file that an index knows, and a box of its picture, to a smaller file with the same pixels."""

from __future__ import annotations

import threading
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.decode.entropy.code import SLACK, key_of
from variegate.decode.entropy.entries import find_entries, pack_entries, unpack_entries
from variegate.decode.entropy.layout import FITS, LAYOUT_SIZE, MCU_COLUMNS, NO_CODE, HuffmanTables, empty_tables
from variegate.decode.entropy.splice import splice
from variegate.decode.memory import address_of
from variegate.program.compiled import pixel_kernel

_ENTRIES = 1 << 12
_UNKNOWN = -1


class Cut(NamedTuple):
    """``file``: uint8 bytes of a JPEG, overwritten by the thread's next; its picture begins at ``top``, ``left``."""

    file: npt.NDArray[np.uint8]
    top: int
    left: int
    height: int
    width: int


class Known(NamedTuple):
    """Files that are indexed, by ``key_of``: uint64[N], ascending; uint64[N + 1] where the packed entries of each begin
    in uint8 ``packed``; nothing for a file that has none."""

    keys: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.uint64]
    packed: npt.NDArray[np.uint8]


class _Room(NamedTuple):
    """A thread's memory."""

    layout: npt.NDArray[np.int64]
    tables: HuffmanTables
    code: npt.NDArray[np.uint8]
    out: npt.NDArray[np.uint8]
    bits: npt.NDArray[np.int64]
    dc: npt.NDArray[np.int64]
    work: npt.NDArray[np.int64]


_local = threading.local()


def _room(size: int, entries: int = _ENTRIES) -> _Room:
    room: _Room | None = getattr(_local, "room", None)
    if room is None or len(room.code) < size + SLACK or len(room.bits) < entries:
        size = 1 << max(18, (size + SLACK).bit_length())
        entries = max(entries, _ENTRIES if room is None else len(room.bits))
        room = _local.room = _Room(
            np.zeros(LAYOUT_SIZE, np.int64),
            empty_tables(),
            np.zeros(size, np.uint8),
            np.zeros(2 * size + (1 << 16), np.uint8),
            np.zeros(entries, np.int64),
            np.zeros((entries, 3), np.int64),
            np.zeros((4, 4), np.int64),
        )
    return room


def key_of_file(data: bytes) -> int:
    """The key that an index knows it by."""
    return int(_key(_address(data), len(data)))


def pack_file(data: bytes) -> bytes | int:
    """The packed entries of a file, or the reason (a key of ``REASONS``) why it has none."""
    # An entry takes a few bytes, of a share of the file's.
    room, address = _room(len(data), len(data) // 64 + 64), _address(data)
    found, step, number = find_entries(address, len(data), room.layout, room.tables, room.code, room.bits, room.dc)
    if found != FITS:
        return int(found)
    in_row = -(-int(room.layout[MCU_COLUMNS]) // step)
    size = pack_entries(np.uint64(_key(address, len(data))), step, in_row, number, room.bits, room.dc, room.out)
    return room.out[:size].tobytes() if size else NO_CODE


def cut_out(
    data: bytes, known: Known, box: tuple[int, int, int, int], divisor: int = 1
) -> Cut | Literal["unknown"] | None:
    """A file that holds at least ``box`` (top, left, bottom, right) of the picture, to be decoded at a scale of 1 by
    ``divisor``. None where no such file can be made of it, "unknown" where the file is not among those that are
    ``known``."""
    size, address = len(data), _address(data)
    room = _room(size)
    room.work[3] = box
    length = _cut_out(address, size, known, room, divisor)
    if length < _UNKNOWN:  # more entries than there was room for
        room = _room(size, _UNKNOWN - length)
        room.work[3] = box
        length = _cut_out(address, size, known, room, divisor)
    if length == _UNKNOWN:
        return "unknown"
    return Cut(room.out[:length], *room.work[3].tolist()) if length > 0 else None


def _address(data: bytes) -> int:
    return int(np.frombuffer(data, np.uint8).__array_interface__["data"][0]) if data else 0


@pixel_kernel
def _key(data: Any, size: Any) -> Any:
    """Called by Python alone, as code that is shipped cannot become part of other kernels."""
    return key_of(data, size)


@pixel_kernel
def _cut_out(data: Any, size: Any, known: Any, room: Any, divisor: Any) -> Any:
    """-> bytes of ``room.out``; 0 for none; ``_UNKNOWN``, and so much less for entries that there is no room for."""
    key = key_of(data, size)
    low, high = np.int64(0), np.int64(len(known.keys))
    while low < high:
        middle = (low + high) >> 1
        if known.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low == len(known.keys) or known.keys[low] != key:
        return np.int64(_UNKNOWN)
    begin, end = np.int64(known.offsets[low]), np.int64(known.offsets[low + 1])
    if not 0 <= begin <= end <= len(known.packed) or end - begin + SLACK > len(room.code):
        return np.int64(0)
    packed = address_of(known.packed) + begin
    entries = unpack_entries(packed, end - begin, key, size, room.bits, room.dc, address_of(room.code))
    if entries[2] < 0:
        return _UNKNOWN + entries[2]
    return splice(data, size, room, entries, divisor) if entries[2] else np.int64(0)
