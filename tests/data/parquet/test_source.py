"""Reading Parquet files: every way they may be written gives the same bytes, and damage is named by its row."""

from __future__ import annotations

import os
import pickle
import re
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from variegate.data.base import SourceError
from variegate.data.parquet import open_parquet
from variegate.data.row_groups import GroupReader
from variegate.data.samples import Samples
from variegate.errors import DecodeError

ROWS = [b"\xff\xd8" + bytes([i % 256]) * (1 + i % 37) for i in range(90)]
STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def structs(rows: list[bytes | None], paths: list[str | None] | None = None) -> pa.Array:
    paths = paths or [None] * len(rows)
    return pa.array([{"bytes": row, "path": path} for row, path in zip(rows, paths, strict=True)], STRUCT)


def write(path: Path, image: Any = None, label: Any = None, **options: Any) -> str:
    image = structs(list(ROWS)) if image is None else image
    pq.write_table(pa.table({"image": image, **({} if label is None else {"label": label})}), path, **options)
    return str(path)


def read_all(source: Samples) -> list[bytes]:
    order = np.random.default_rng(1).permutation(len(source)).tolist()
    by_index = {index: source.read(index).data for index in order}
    return [bytes(by_index[index]) for index in range(len(source))]


# Every size of row groups with enough memory and with too little, and every compression with a dictionary and without.
@pytest.mark.parametrize(
    ("row_group_size", "memory", "compression", "use_dictionary"),
    [
        (1, 1 << 20, "none", True),
        (7, 1 << 20, "snappy", False),
        (1000, 1 << 20, "zstd", True),
        (1, 300, "zstd", False),
        (7, 300, "none", False),
        (1000, 300, "snappy", True),
    ],
)
def test_however_written_the_bytes_are_the_same(
    row_group_size: int, memory: int, compression: str, use_dictionary: bool, tmp_path: Path
) -> None:
    options = {"row_group_size": row_group_size, "compression": compression, "use_dictionary": use_dictionary}
    halves = (ROWS[:50], ROWS[50:])
    paths = [write(tmp_path / f"{i}.parquet", structs(list(half)), **options) for i, half in enumerate(halves)]
    source = open_parquet(paths, memory=memory, cache_dir=tmp_path / "cache")
    assert read_all(source) == ROWS
    assert str(source.name(53)) == f"{paths[1]}: row 3"


@pytest.mark.parametrize(
    "column",
    [
        pa.array(ROWS, pa.binary()),
        pa.array(ROWS, pa.large_binary()),
        pa.array(ROWS, pa.binary()).dictionary_encode(),
        pa.array(
            [{"path": "x", "bytes": row} for row in ROWS],
            pa.struct([("path", pa.string()), ("bytes", pa.large_binary())]),
        ),
        pa.array([{"bytes": row} for row in ROWS], pa.struct([("bytes", pa.binary())])),
    ],
    ids=["binary", "large", "dictionary", "struct-reversed", "struct-of-bytes"],
)
def test_columns_of_images(column: pa.Array, tmp_path: Path) -> None:
    assert read_all(open_parquet([write(tmp_path / "a.parquet", column, row_group_size=40)])) == ROWS


def test_memory_is_bounded_and_each_group_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [os.urandom(1000) for _ in range(100)]
    path = write(tmp_path / "a.parquet", structs(list(rows)), row_group_size=10, use_dictionary=False)
    loads: Counter[int] = Counter()
    load = GroupReader.load

    def counted(self: GroupReader, group: int) -> Any:
        loads[group] += 1
        return load(self, group)

    monkeypatch.setattr(GroupReader, "load", counted)
    with monkeypatch.context() as patch:  # no room to unpack row groups
        patch.setattr("shutil.disk_usage", lambda place: type("Usage", (), {"free": 10}))
        tight = open_parquet([path], memory=35_000)
    store: Any = tight.store
    for index in np.random.default_rng(0).integers(0, 100, 300).tolist():
        assert tight.read(index).data == rows[index]
        assert 10_000 <= store._cache.nbytes <= 35_000
    loads.clear()
    ample = open_parquet([path])
    together = threading.Barrier(8)

    def read(seed: int) -> None:
        together.wait(10)
        for index in np.random.default_rng(seed // 2).permutation(100).tolist():
            assert ample.read(index).data == rows[index]

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(read, seed) for seed in range(8)]:
            done.result(30)
    assert loads == dict.fromkeys(range(10), 1)


def test_unpacked_rows_outlive_the_run_and_are_made_anew_for_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = write(tmp_path / "a.parquet", row_group_size=30), tmp_path / "cache"
    options: dict[str, Any] = {"memory": 100, "cache_dir": cache}
    source = open_parquet([path], **options)
    assert re.search(r"KiB of images do not fit in memory=100 bytes: unpacked into .*cache", source.notes()[-1])
    assert not cache.exists()
    source.read(45)

    def groups() -> list[str]:
        return sorted(found.name for found in cache.rglob("*") if found.is_file())

    assert groups() == ["group-000001"]
    assert read_all(source) == ROWS

    def not_again(self: GroupReader, group: int) -> Any:
        raise AssertionError("decoded again")

    with monkeypatch.context() as patch:
        patch.setattr(GroupReader, "_pieces", not_again)
        assert read_all(open_parquet([path], **options)) == ROWS
        assert read_all(pickle.loads(pickle.dumps(source))) == ROWS
    other = [row + b"other" for row in ROWS]
    write(tmp_path / "a.parquet", structs(list(other)), row_group_size=45)
    assert read_all(open_parquet([path], **options)) == other
    assert groups() == ["group-000000", "group-000001"]


def test_damaged_and_lost_unpacked_rows_are_made_again(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "a.parquet", row_group_size=30), tmp_path / "cache"
    options: dict[str, Any] = {"memory": 100, "cache_dir": cache}
    source = open_parquet([path], **options)
    assert read_all(source) == ROWS
    for found in sorted(cache.rglob("group-*")):
        found.write_bytes(found.read_bytes()[:-9])
    assert read_all(open_parquet([path], **options)) == ROWS
    for found in sorted(cache.rglob("group-*")):
        found.unlink()
    assert read_all(source) == ROWS


def test_a_disk_that_cannot_be_written_to_only_costs_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet", row_group_size=30)
    (tmp_path / "cache").write_text("a file where a folder should be")
    source = open_parquet([path], memory=100, cache_dir=tmp_path / "cache")
    assert read_all(source) == ROWS
    assert "rows cannot be unpacked, and reading in random order will be slow: " in source.notes()[-1]
    monkeypatch.setattr("shutil.disk_usage", lambda place: type("Usage", (), {"free": 10}))
    full = open_parquet([path], memory=100, cache_dir=tmp_path / "elsewhere")
    assert re.search(r"needs .* KiB in .*elsewhere, where 10 bytes are free: .* slow", full.notes()[-1])
    assert read_all(full) == ROWS
    assert not (tmp_path / "elsewhere").exists()


def test_rows_without_an_image_are_named(tmp_path: Path) -> None:
    (tmp_path / "beside.jpg").write_bytes(b"beside")
    rows: list[bytes | None] = [b"a", None, None, None]
    path = write(tmp_path / "f.parquet", structs(rows, [None, None, "gone.jpg", "beside.jpg"]))
    for memory in (1 << 20, 1):
        source = open_parquet([path], memory=memory, cache_dir=tmp_path / "cache")
        assert [source.read(0).data, source.read(3).data] == [b"a", b"beside"]
        with pytest.raises(DecodeError, match=r"f\.parquet: row 1: no image: its bytes are null$"):
            source.read(1)
        with pytest.raises(DecodeError, match=r"f\.parquet: row 2: no image: .* there is no file 'gone\.jpg'"):
            source.read(2)
    whole = pa.array([{"bytes": b"a", "path": ""}, None], STRUCT)
    with pytest.raises(DecodeError, match=r"g\.parquet: row 1: no image: its bytes are null$"):
        open_parquet([write(tmp_path / "g.parquet", whole)]).read(1)


def test_a_damaged_row_group_is_an_error_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, row_group_size=45, compression="zstd", use_dictionary=False)
    at = pq.read_metadata(path).row_group(1).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[at : at + 60] = b"\xff" * 60
    path.write_bytes(data)
    for memory in (1 << 20, 1):
        source = open_parquet([str(path)], memory=memory, cache_dir=tmp_path / "cache")
        assert source.read(44).data == ROWS[44]
        with pytest.raises(DecodeError, match=r"a\.parquet: row 45: its row group 1 cannot be read: "):
            source.read(45)
        assert not any("cannot be unpacked" in note for note in source.notes())


def test_a_file_replaced_while_it_is_open_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", row_group_size=45)
    source = open_parquet([path])
    source.read(0)
    write(tmp_path / "a.parquet", structs(list(ROWS[::-1])), row_group_size=10)
    with pytest.raises(DecodeError, match=r"row 45: .* the file has changed since it was opened"):
        source.read(45)


def test_addresses_that_are_none(tmp_path: Path) -> None:
    local = open_parquet([f"file://{write(tmp_path / 'a.parquet')}"])
    assert not local.is_remote
    assert read_all(local) == ROWS
    with pytest.raises(SourceError, match=r"memory://shards/b\.parquet: no such file"):
        open_parquet(["memory://shards/b.parquet"])
    with pytest.raises(SourceError, match=r"nowhere://a\.parquet: unknown protocol nowhere://"):
        open_parquet(["nowhere://a.parquet"])
