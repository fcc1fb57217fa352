"""Check Arrow IPC messages of foreign files before pyarrow reads their data, and locate values in a file.

Compressed buffers declare their own uncompressed size. A small file could therefore claim any amount of memory, and
pyarrow does not report whether a message is compressed. Its metadata is a flatbuffer (``Message.fbs`` of the Arrow
format): each table has a vtable with the offsets of its fields.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

import pyarrow as pa

# Field numbers: of ``header`` in ``Message``, of ``buffers`` and ``compression`` in ``RecordBatch``, of ``schema`` and
# ``recordBatches`` in ``Footer``, and of ``endianness`` in ``Schema``.
_HEADER = 2
_BUFFERS = 2
_COMPRESSION = 3
_SCHEMA = 1
_RECORD_BATCHES = 3
_ENDIANNESS = 0
_BUFFER = struct.Struct("<qq")
_BLOCK = struct.Struct("<qi4xq")
_MAGIC = b"ARROW1"
_TAIL = struct.Struct("<i6s")
_PREFIX = 8


class Span(NamedTuple):
    """Bytes of a file."""

    start: int
    size: int


def check_uncompressed(metadata: bytes) -> None:
    """Raise ValueError if a record batch has compressed buffers, or its metadata are damaged."""
    try:
        _uncompressed_batch(metadata)
    except struct.error:
        raise ValueError("damaged metadata") from None


class IpcFile(NamedTuple):
    """The record batches of a file without their last column, and where the values of that are, batch by batch."""

    schema: pa.Schema
    batches: list[pa.RecordBatch]
    spans: list[Span]


def read_but_last_column(file: BinaryIO, size: int, check: Callable[[pa.Schema], None]) -> IpcFile:
    """Read an IPC file of ``size`` bytes, whose last of several columns is too large to be read as a whole.

    ``check``: raises ValueError for the schemas of other files, whose data are not read.

    Raises ValueError, TypeError, RecursionError, OSError or ArrowException for all but such files.
    """

    def read(start: int, length: int) -> bytes:
        file.seek(start)
        return file.read(length)

    spans = value_spans(read, size)
    file.seek(0)
    schema = pa.ipc.open_file(file).schema
    check(schema)
    file.seek(0)
    options = pa.ipc.IpcReadOptions(included_fields=list(range(len(schema) - 1)))
    reader = pa.ipc.open_file(file, options=options)
    batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    for batch in batches:
        batch.validate(full=True)
    return IpcFile(schema, batches, spans)


def value_spans(read: Callable[[int, int], bytes], size: int) -> list[Span]:
    """Return where the values of the last column are, for each batch of an IPC file of ``size`` bytes.

    ``read(start, size)`` returns bytes of the file. Raises ValueError for other files and for compressed ones."""
    if size < len(_MAGIC) + _TAIL.size or read(0, len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin as an Arrow file")
    length, magic = _TAIL.unpack(read(size - _TAIL.size, _TAIL.size))
    end = size - _TAIL.size - length
    if magic != _MAGIC or not 0 <= end < size:
        raise ValueError("cut off: it does not end as an Arrow file")
    try:
        footer = read(end, length)
        root = _number("<I", footer, 0)
        if _is_big_endian(footer, root):
            raise ValueError("big-endian data; accepted: little-endian Arrow")
        return [_last_buffer(read, block, end) for block in _structs(footer, root, _RECORD_BATCHES, _BLOCK)]
    except struct.error:
        raise ValueError("damaged metadata") from None


def _is_big_endian(footer: bytes, root: int) -> bool:
    """True for a file whose values pyarrow would convert. It does not read the last column."""
    schema = _field(footer, root, _SCHEMA)
    if schema is None:
        raise ValueError("damaged metadata")
    endianness = _field(footer, schema + _number("<I", footer, schema), _ENDIANNESS)
    return endianness is not None and _number("<h", footer, endianness) != 0


def _last_buffer(read: Callable[[int, int], bytes], block: tuple[int, ...], end: int) -> Span:
    start, metadata_size, body_size = block
    if min(block) < 0 or start + metadata_size + body_size > end:
        raise ValueError("a record batch beyond the end")
    metadata = read(start, metadata_size)[_PREFIX:]
    buffers = _structs(metadata, _uncompressed_batch(metadata), _BUFFERS, _BUFFER)
    if not buffers:
        raise ValueError("a record batch without columns")
    offset, size = buffers[-1]
    if min(offset, size) < 0 or offset + size > body_size:
        raise ValueError("values beyond the end")
    return Span(start + metadata_size + offset, size)


def _uncompressed_batch(metadata: bytes) -> int:
    """Return the position of the RecordBatch in a message."""
    header = _field(metadata, _number("<I", metadata, 0), _HEADER)
    if header is None:
        raise ValueError("damaged metadata")
    batch = header + _number("<I", metadata, header)
    if _field(metadata, batch, _COMPRESSION) is not None:
        raise ValueError("compressed data; accepted: Arrow without compression")
    return batch


def _structs(data: bytes, table: int, number: int, kind: struct.Struct) -> list[tuple[int, ...]]:
    field = _field(data, table, number)
    if field is None:
        return []
    begin = field + _number("<I", data, field)
    count = _number("<I", data, begin)
    begin += 4
    end = begin + count * kind.size
    if end > len(data):
        raise ValueError("damaged metadata")
    return list(kind.iter_unpack(data[begin:end]))


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
