"""Checks of Arrow IPC messages from foreign files, before pyarrow reads their data.

Compressed buffers declare their own uncompressed size, so a small file could claim any amount of memory, and pyarrow
cannot tell whether a message is compressed. Its metadata is a flatbuffer (``Message.fbs`` of the Arrow format): each
table has a vtable with the offsets of its fields.
"""

from __future__ import annotations

import struct

# Field numbers: of ``header`` in ``Message``, and of ``compression`` in ``RecordBatch``.
_HEADER = 2
_COMPRESSION = 3


def check_uncompressed(metadata: bytes) -> None:
    """Raise ValueError if a record batch has compressed buffers, or its metadata are damaged."""
    try:
        message = _number("<I", metadata, 0)
        header = _field(metadata, message, _HEADER)
        if header is None:
            raise ValueError("damaged metadata")
        batch = header + _number("<I", metadata, header)
        is_compressed = _field(metadata, batch, _COMPRESSION) is not None
    except struct.error:
        raise ValueError("damaged metadata") from None
    if is_compressed:
        raise ValueError("compressed data; accepted: Arrow without compression")


def _field(data: bytes, table: int, number: int) -> int | None:
    """Return the position of a field; None if the table does not store it."""
    vtable = table - _number("<i", data, table)
    entry = 4 + 2 * number
    if entry >= _number("<H", data, vtable):
        return None
    offset = _number("<H", data, vtable + entry)
    return table + offset if offset else None


def _number(kind: str, data: bytes, position: int) -> int:
    if position < 0:
        raise ValueError("damaged metadata")
    (number,) = struct.unpack_from(kind, data, position)
    return int(number)
