"""The manifest: every column comes back, the same rows are the same bytes, and what is none is told so."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from variegate.data.base import SourceError
from variegate.data.storage import DiskFullError, Storage, open_storage
from variegate.jobs.output.manifest import MANIFEST_NAME, read_manifest, write_manifest

SETTINGS = {"seed": 3, "transform": {"op": "Rotate", "angles": [-3.0, 3.0]}, "source": "caf\udce9"}
ROW = {
    "file": "cat/a_0.jpg",
    "member": None,
    "status": "written",
    "reason": None,
    "source": "cat/a.jpg",
    "index": 7,
    "id": 2**64 - 1,
    "copy": 0,
    "label": 3,
    "class": "cat",
    "seed": 2**63,
    "epoch": 2,
    "height": 224,
    "width": 320,
    "operations": [{"op": "Rotate", "angle": -9.5}],
    "sha256": "ab" * 32,
    "bytes": 12_345,
    "shard_bytes": None,
    "shard_sha256": None,
}
QUARANTINED = {"status": "quarantined", "reason": "not an image", "source": "cat/b.jpg", "index": 8, "id": 1, "copy": 0}


def test_rows_come_back(storage: Storage) -> None:
    shard = {"file": "shard-000000.tar", "shard_bytes": 2**40, "shard_sha256": "cd" * 32}
    inside = ROW | shard | {"member": "00000007_1.jpg", "copy": 1, "operations": []}
    assert write_manifest(storage, iter([ROW, inside, QUARANTINED]), SETTINGS) == 3
    for path in (storage.root, f"{storage.root}/{MANIFEST_NAME}"):
        manifest = read_manifest(path)
        assert len(manifest) == 3
        assert manifest.settings == SETTINGS
        assert manifest.row(2) == dict.fromkeys(ROW) | QUARANTINED
        assert [manifest.row(0), manifest.row(1)] == [ROW, inside]
        assert list(manifest.row(0)) == list(ROW)
    assert storage.list(".variegate/tmp") == []


def test_columns_and_types_are_as_documented(tmp_path: Path) -> None:
    write_manifest(open_storage(tmp_path), [ROW], SETTINGS)
    schema = pq.read_schema(tmp_path / MANIFEST_NAME)
    text, whole = "string", "int64"
    kinds = [text, text, text, text, text, whole, "uint64", "int32", whole, text, "uint64", whole, "int32", "int32"]
    assert schema.names == list(ROW)
    assert [str(kind) for kind in schema.types] == [*kinds, text, text, whole, whole, text]
    row = pq.read_table(tmp_path / MANIFEST_NAME).to_pylist()[0]
    assert row["operations"] == '[{"op":"Rotate","angle":-9.5}]'
    column = pq.ParquetFile(tmp_path / MANIFEST_NAME).metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"


@pytest.mark.parametrize("label", [-1, None, 0.5, [1, 2], True])
def test_labels_that_are_no_classes_are_null(tmp_path: Path, label: Any) -> None:
    write_manifest(open_storage(tmp_path), [ROW | {"label": label}], {})
    assert read_manifest(tmp_path).row(0)["label"] is None


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    odd = {"file": "caf\udce9/é.jpg", "operations": [{"font": "\udcff"}]}
    write_manifest(open_storage(tmp_path), [ROW | odd], {})
    row = read_manifest(tmp_path).row(0)
    assert (row["file"], row["operations"]) == ("caf\\udce9/é.jpg", [{"font": "\udcff"}])


def test_equal_rows_are_equal_bytes_in_row_groups_of_one_size(tmp_path: Path) -> None:
    rows = [ROW | {"index": index} for index in range(20_000)]
    storage = open_storage(tmp_path)
    write_manifest(storage, rows, SETTINGS)
    first = storage.read(MANIFEST_NAME)
    backwards = [dict(reversed(row.items())) for row in rows]
    write_manifest(storage, (row for row in backwards), dict(reversed(SETTINGS.items())))
    assert storage.read(MANIFEST_NAME) == first
    manifest = read_manifest(tmp_path)
    metadata = pq.read_metadata(tmp_path / MANIFEST_NAME)
    assert [metadata.row_group(group).num_rows for group in range(3)] == [8192, 8192, 3616]
    assert [manifest.row(index)["index"] for index in (0, 8191, 8192, 19_999, 3)] == [0, 8191, 8192, 19_999, 3]


@pytest.mark.parametrize("count", [0, 2])
def test_rows_that_are_not_there(tmp_path: Path, count: int) -> None:
    write_manifest(open_storage(tmp_path), [ROW] * count, {})
    manifest = read_manifest(tmp_path)
    assert len(manifest) == count
    accepted = "0 to 1" if count else "none: there are no samples"
    for index in (-1, count, 10**9):
        with pytest.raises(IndexError, match=rf"^index: got {index}; accepted: {accepted}$"):
            manifest.row(index)


def test_what_is_no_manifest_is_told_so(tmp_path: Path) -> None:
    accepted = r"accepted: the manifest\.parquet that a run of variegate augment or pack wrote$"
    with pytest.raises(SourceError, match=rf"/manifest\.parquet: no such file; {accepted}"):
        read_manifest(tmp_path)
    (tmp_path / "text.parquet").write_text("hello, this is no Parquet file")
    with pytest.raises(SourceError, match=rf"/text\.parquet: not a Parquet file, or cut short.*; {accepted}"):
        read_manifest(tmp_path / "text.parquet")
    (tmp_path / "empty.parquet").touch()
    with pytest.raises(SourceError, match=rf"/empty\.parquet: zero bytes: the file is empty; {accepted}"):
        read_manifest(tmp_path / "empty.parquet")
    pq.write_table(pa.table({"file": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(SourceError, match=rf"/other\.parquet: a Parquet file, but no manifest; {accepted}"):
        read_manifest(tmp_path / "other.parquet")


def test_a_manifest_that_was_damaged_or_replaced(tmp_path: Path) -> None:
    write_manifest(open_storage(tmp_path), [ROW], {})
    manifest, path = read_manifest(tmp_path), tmp_path / MANIFEST_NAME
    data = path.read_bytes()
    stamp = path.stat()
    path.write_bytes(data[:4] + bytes(100) + data[104:])
    with pytest.raises(SourceError, match=r"manifest\.parquet: rows from 0 on cannot be read: the file has changed"):
        manifest.row(0)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(SourceError, match=r"manifest\.parquet: rows from 0 on cannot be read: "):
        manifest.row(0)


@pytest.mark.parametrize("at", range(3))
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(tmp_path)
    write_manifest(storage, [ROW], {})
    before = storage.read(MANIFEST_NAME)
    real, count = os.write, 0

    def write(descriptor: int, data: Any) -> int:
        nonlocal count
        count += 1
        if count > at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    rows = [{"file": os.urandom(100).hex(), "operations": json.loads("[]")} for _ in range(30_000)]
    with pytest.raises(DiskFullError, match=r"/manifest\.parquet: the disk is full \(No space left on device\)$"):
        write_manifest(storage, rows, {})
    monkeypatch.undo()
    assert storage.read(MANIFEST_NAME) == before
    assert storage.list(".variegate/tmp") == []
