"""Cut a JPEG, by its entry points, to a smaller file with the same pixels in a box."""

from __future__ import annotations

import threading
from ctypes import c_int64, c_uint64, c_void_p
from typing import NamedTuple

import numpy as np

from variegate.arrays import UInt8Array
from variegate.native.library import data_ptr, entry
from variegate.native.structs import JpegRefusal

REASONS = {
    JpegRefusal.NOT_BASELINE: "progressive or arithmetic",
    JpegRefusal.SEVERAL_SCANS: "several scans",
    JpegRefusal.RESTARTS: "restart markers",
    JpegRefusal.NOT_EIGHT_BITS: "not 8 bits",
    JpegRefusal.OTHER_COLORS: "neither gray nor YCbCr",
    JpegRefusal.NO_CODE: "no JPEG",
    JpegRefusal.DAMAGED: "damaged",
}

_hash_bytes = entry("vg_hash_bytes", c_void_p, c_int64, result=c_uint64)
_pack_entries = entry("vg_jpeg_pack_entries", c_void_p, c_int64, c_void_p, c_int64)
_cut = entry(
    "vg_jpeg_cut",
    *(c_void_p, c_int64, c_uint64),  # the file, and its key
    *(c_void_p, c_int64),  # packed entries
    *(c_int64, c_void_p),  # divisor, box
    *(c_void_p, c_int64),  # the result
)

# Room for entries and a longer header; the code of a crop is at most twice as long as its file.
_MORE_ROOM = 1 << 18


class Cut(NamedTuple):
    """``file``: uint8 bytes of a JPEG, overwritten by the thread's next; its picture begins at ``top``, ``left``."""

    file: UInt8Array
    top: int
    left: int
    height: int
    width: int


_local = threading.local()


def _output_buffer(file_size: int) -> UInt8Array:
    """The thread's memory for results."""
    size = 2 * file_size + _MORE_ROOM
    buffer: UInt8Array | None = getattr(_local, "buffer", None)
    if buffer is None or len(buffer) < size:
        buffer = _local.buffer = np.empty(1 << size.bit_length(), np.uint8)
    return buffer


def _array_of(data: bytes | UInt8Array) -> UInt8Array:
    return np.frombuffer(data, np.uint8) if len(data) else np.zeros(0, np.uint8)


def key_of_file(data: bytes) -> int:
    """The key that an index knows a file by: the XXH64 of its bytes."""
    return int(_hash_bytes(data_ptr(_array_of(data)), len(data)))


def pack_file(data: bytes) -> bytes | JpegRefusal:
    """The packed entries of a file, or why it has none."""
    file = _array_of(data)
    buffer = _output_buffer(len(data))
    size = _pack_entries(data_ptr(file), len(file), data_ptr(buffer), len(buffer))
    if size == 0:
        raise MemoryError(f"no memory for the entry points of a JPEG of {len(file):,} bytes")
    return buffer[:size].tobytes() if size > 0 else JpegRefusal(-size)


def cut_out(
    data: bytes, key: int, packed: bytes | UInt8Array, box: tuple[int, int, int, int], divisor: int = 1
) -> Cut | None:
    """Cut a JPEG to a smaller file that holds at least ``box`` (top, left, bottom, right). ``key`` and ``packed`` are
    its entries in the index. The result is decoded at a scale of 1 by ``divisor``. None if no such file can be made."""
    file = _array_of(data)
    entries = _array_of(packed)
    buffer = _output_buffer(len(data))
    place = np.array(box, np.int64)
    pointers = data_ptr(place), data_ptr(buffer)
    size = _cut(data_ptr(file), len(file), key, data_ptr(entries), len(entries), divisor, *pointers, len(buffer))
    return Cut(buffer[:size], *place.tolist()) if size else None
