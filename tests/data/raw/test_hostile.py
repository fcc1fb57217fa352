"""Raw shards of any numbers and any bytes: read, or refused in one line."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.data import contract
from tests.soak.mutating import check
from tests.soak.parsers.packs import PARSERS
from variegate import open_source
from variegate.data.base import SourceError


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    assert check(PARSERS[0], 0, range(400), tmp_path) > 20


def rewritten(
    path: Path,
    changes: dict[str, Any],
    classes: Any = None,
    compression: str | None = None,
    metadata: dict[bytes, bytes] | None = None,
) -> None:
    """Write a shard again with other columns, classes or metadata."""
    with pa.ipc.open_file(pa.py_buffer(path.read_bytes())) as file:
        table = file.read_all()
    for name, values in changes.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), pa.array(values, table.schema.types[place]))
    if classes is not None:
        table = table.replace_schema_metadata({**table.schema.metadata, b"classes": json.dumps(classes)})
    table = table.replace_schema_metadata({**table.schema.metadata, **(metadata or {})})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"height": [1 << 31] * 3}, "pixels beyond their end"),
        ({"width": [(1 << 32) - 1] * 3, "height": [(1 << 32) - 1] * 3}, "pixels beyond their end"),
        ({"channels": [33] * 3, "shown": [33] * 3}, "images of 33 to 33 channels; accepted: 1 to 32"),
        ({"channels": [0] * 3, "shown": [0] * 3}, "images of 0 to 0 channels; accepted: 1 to 32"),
        ({"channels": [1] * 3, "shown": [33] * 3}, "another number of channels is shown"),
        ({"channels": [1] * 3, "shown": [0] * 3}, "another number of channels is shown"),
        ({"channels": [32] * 3, "shown": [32] * 3}, "pixels beyond their end"),
        ({"channels": [2] * 3}, "another number of channels is shown"),
        ({"width": [0] * 3}, "images without pixels"),
        ({"channels": [3] * 3, "shown": [1] * 3}, "another number of channels is shown"),
        ({"id": [None] * 3}, "missing values"),
    ],
)
def test_columns_are_checked(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    contract.raw(tmp_path, contract.pictures())
    rewritten(tmp_path / "shard-000000.arrow", changes)
    with pytest.raises(SourceError, match=rf"shard-000000\.arrow: no shard of raw pixels, or damaged: .*{reason}"):
        open_source(tmp_path)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({b"dtype": b">u2"}, "its pixels have dtype '>u2'; accepted: uint8, uint16 or float32"),
        ({b"dtype": b"float64"}, "its pixels have dtype 'float64'; accepted: uint8, uint16 or float32"),
        ({b"dtype": b""}, "its pixels have dtype ''; accepted: uint8, uint16 or float32"),
        ({b"dtype": b"uint16"}, "pixels beyond their end"),
        ({b"format": b"variegate raw pixels 4"}, "an Arrow file of another kind"),
    ],
)
def test_dtypes_are_checked(tmp_path: Path, metadata: dict[bytes, bytes], reason: str) -> None:
    contract.raw(tmp_path, contract.pictures())
    rewritten(tmp_path / "shard-000000.arrow", {}, metadata=metadata)
    with pytest.raises(SourceError, match=rf"shard-000000\.arrow: no shard of raw pixels, or damaged: .*{reason}"):
        open_source(tmp_path)


def test_big_endian_and_unaligned_pixels_are_refused(tmp_path: Path) -> None:
    """Views of such pixels would hold other numbers, or make a processor fail that loads aligned numbers alone."""
    contract.raw(tmp_path, contract.pictures())
    path = tmp_path / "shard-000000.arrow"
    rewritten(path, {"height": [1] * 3, "width": [1] * 3, "channels": [1] * 3}, metadata={b"dtype": b"uint16"})
    data = path.read_bytes()
    length = int.from_bytes(data[-10:-6], "little")
    footer = data[-10 - length : -10]

    def number(kind: str, at: int) -> int:
        return int(struct.unpack_from(kind, footer, at)[0])

    def field(table: int, place: int) -> int:
        return table + number("<H", table - number("<i", table) + 4 + 2 * place)

    def changed(at: int, old: bytes, new: bytes) -> bytes:
        start = len(data) - 10 - length + at
        assert data[start : start + len(old)] == old
        return data[:start] + new + data[start + len(old) :]

    root = number("<I", 0)
    schema = field(root, 1)
    schema += number("<I", schema)
    # The field that is absent for little-endian data gets the position of another, whose bytes are not 0.
    fields = field(schema, 1) - schema
    path.write_bytes(changed(schema - number("<i", schema) + 4, b"\0\0", struct.pack("<H", fields)))
    with pytest.raises(SourceError, match="big-endian data; accepted: little-endian Arrow"):
        open_source(tmp_path)

    with pa.ipc.open_file(pa.py_buffer(data)) as file:
        pixels = file.get_batch(0).column("pixels").buffers()[2]
    blocks = field(root, 3)
    blocks += number("<I", blocks)
    batch = number("<q", blocks + 4)
    buffer = data.index(struct.pack("<q", pixels.size), batch)
    (offset,) = struct.unpack_from("<q", data, buffer - 8)
    path.write_bytes(data[: buffer - 8] + struct.pack("<q", offset + 1) + data[buffer:])
    with pytest.raises(SourceError, match=r"pixels of uint16 at [\d,]+; accepted: a multiple of 2"):
        open_source(tmp_path)


@pytest.mark.parametrize("classes", [[1, 2], "ab", 7, ["\ud800"], [["a"]]])
def test_classes_are_text(tmp_path: Path, classes: Any) -> None:
    contract.raw(tmp_path, contract.pictures())
    rewritten(tmp_path / "shard-000000.arrow", {}, classes)
    with pytest.raises(SourceError, match=r"classes: got .*; accepted: a sequence of names"):
        open_source(tmp_path)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_data_are_refused(tmp_path: Path, compression: str) -> None:
    """They say themselves how large they become."""
    contract.raw(tmp_path, contract.pictures())
    rewritten(tmp_path / "shard-000000.arrow", {"name": [b"x" * 100_000] * 3}, compression=compression)
    with pytest.raises(SourceError, match="compressed data; accepted: Arrow without compression"):
        open_source(tmp_path)
