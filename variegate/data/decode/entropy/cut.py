"""From a file that an index knows, and a box of its picture, to a smaller file with the same pixels."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.data.decode.entropy.entries import find_entries
from variegate.data.decode.entropy.key import key_of
from variegate.data.decode.entropy.layout import (
    FITS,
    LAYOUT_SIZE,
    MCU_COLUMNS,
    Tables,
    empty_tables,
)
from variegate.data.decode.entropy.packing import pack_entries, unpack_entries
from variegate.data.decode.entropy.splice import splice
from variegate.data.decode.entropy.stuffing import SLACK
from variegate.program.compiled import pixel_kernel

_ENTRIES = 1 << 12


class Cut(NamedTuple):
    """``file``: uint8 bytes of a JPEG, overwritten by the thread's next; its picture begins at ``top``, ``left``."""

    file: npt.NDArray[np.uint8]
    top: int
    left: int
    height: int
    width: int


class Known(NamedTuple):
    """Files that are indexed, by ``key_of``: uint64[N], ascending; uint64[N + 1] where the packed entries of each begin
    in uint8 ``packed``."""

    keys: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.uint64]
    packed: npt.NDArray[np.uint8]


class _Room(NamedTuple):
    """A thread's memory."""

    layout: npt.NDArray[np.int64]
    tables: Tables
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


def index_file(data: bytes) -> bytes | int:
    """The packed entries of a file, or the reason (a key of ``REASONS``) why it has none."""
    # An entry takes a few bytes, of a share of the file's.
    room, view = _room(len(data), len(data) // 64 + 64), np.frombuffer(data, np.uint8)
    address = view.__array_interface__["data"][0]
    found, step, number = find_entries(address, len(data), room.layout, room.tables, room.code, room.bits, room.dc)
    if found != FITS:
        return int(found)
    in_row = -(-int(room.layout[MCU_COLUMNS]) // step)
    size = pack_entries(step, in_row, number, room.bits, room.dc, room.out)
    return room.out[:size].tobytes()


def cut_out(data: bytes, known: Known, top: int, left: int, bottom: int, right: int) -> Cut | None:
    """A file that holds at least rows ``top`` to ``bottom`` and columns ``left`` to ``right`` of the picture; None
    where the file is not known, or no such file can be made of it."""
    size = len(data)
    room, view = _room(size), np.frombuffer(data, np.uint8)
    address, work = view.__array_interface__["data"][0], room.work
    work[3, 0], work[3, 1], work[3, 2], work[3, 3] = top, left, bottom, right
    length = _cut_out(address, size, known, room)
    if length < 0:  # more entries than there was room for
        room = _room(size, -length)
        room.work[3] = work[3]
        length = _cut_out(address, size, known, room)
    if length <= 0:
        return None
    return Cut(room.out[:length], *room.work[3].tolist())


@pixel_kernel
def _cut_out(data: Any, size: Any, known: Any, room: Any) -> Any:
    """-> bytes of ``room.out``; 0 for none, less for entries that there is no room for."""
    key = key_of(data, size)
    low, high = np.int64(0), np.int64(len(known.keys))
    while low < high:
        middle = (low + high) >> 1
        if known.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low == len(known.keys) or known.keys[low] != key:
        return np.int64(0)
    begin, end = np.int64(known.offsets[low]), np.int64(known.offsets[low + 1])
    if not 0 <= begin <= end <= len(known.packed) or end - begin + SLACK > len(room.code):
        return np.int64(0)
    entries = unpack_entries(known.packed.ctypes.data + begin, end - begin, room.bits, room.dc, room.code.ctypes.data)
    if entries[2] <= 0:
        return entries[2]
    return splice(data, size, room, entries)
