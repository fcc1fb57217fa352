"""Raw shards of any numbers and any bytes: read, or refused in one line."""

from __future__ import annotations

import json
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


def rewritten(path: Path, changes: dict[str, Any], classes: Any = None, compression: str | None = None) -> None:
    """Write a shard again with other columns or classes."""
    with pa.ipc.open_file(pa.py_buffer(path.read_bytes())) as file:
        table = file.read_all()
    for name, values in changes.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), pa.array(values, table.schema.types[place]))
    if classes is not None:
        table = table.replace_schema_metadata({**table.schema.metadata, b"classes": json.dumps(classes)})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"height": [1 << 31] * 3}, "pixels beyond their end"),
        ({"width": [(1 << 32) - 1] * 3, "height": [(1 << 32) - 1] * 3}, "pixels beyond their end"),
        ({"channels": [2] * 3}, "neither 1 nor 3 channels"),
        ({"channels": [3] * 3, "shown": [1] * 3}, "fewer channels"),
        ({"id": [None] * 3}, "missing values"),
    ],
)
def test_columns_are_checked(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    contract.raw(tmp_path, contract.pictures())
    rewritten(tmp_path / "shard-000000.arrow", changes)
    with pytest.raises(SourceError, match=rf"shard-000000\.arrow: no shard of raw pixels, or damaged: .*{reason}"):
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
