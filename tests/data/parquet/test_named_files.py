"""Parquet rows that name a file: one below the Parquet file's folder, or below the folder that the user says."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variegate as vg
from variegate.data.base import Source, SourceError
from variegate.data.opening import open_source
from variegate.errors import DecodeError

STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
REFUSED = r"no image: its bytes are null, and it names .*, which is outside of .*; accepted: files below it, or below"


def table(*paths: str) -> pa.Table:
    return pa.table({"image": pa.array([{"bytes": None, "path": path} for path in paths], STRUCT)})


def rows(root: Path, *paths: str, image_root: str | Path | None = None) -> Source:
    pq.write_table(table(*paths), root / "a.parquet")
    source = open_source(root / "a.parquet", image_root=image_root)
    assert isinstance(source, Source)
    return source


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with an image in it, and a secret beside it."""
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "data/images").mkdir(parents=True)
    (tmp_path / "data/images/1.jpg").write_bytes(b"one")
    return tmp_path / "data"


def test_files_below_the_folder_are_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "link.jpg").symlink_to("images/1.jpg")
    inside = ("images/1.jpg", str(root / "images/1.jpg"), "images/../images/1.jpg", "link.jpg")
    source = rows(root, *inside)
    assert [source.read(i).data for i in range(len(inside))] == [b"one"] * len(inside)
    monkeypatch.chdir(root)  # a path without a folder
    assert open_source("a.parquet").read(0).data == b"one"  # type: ignore[union-attr]


def test_others_are_refused_by_name(root: Path) -> None:
    (root / "out.jpg").symlink_to("../secret")
    (root / "up").symlink_to("..")
    outside = (
        *("/etc/passwd", "../secret", str(root.parent / "secret"), "images/../../secret", "out.jpg", "up/secret"),
        *("~/.bashrc/../../../etc/passwd", "../data2", "//etc/passwd", str(root) + "2/x.jpg"),
    )
    source = rows(root, *outside)
    for index, path in enumerate(outside):
        with pytest.raises(DecodeError, match=rf"a\.parquet: row {index}: {REFUSED}") as caught:
            source.read(index)
        assert repr(path) in str(caught.value)


def test_a_folder_that_is_asked_for(root: Path) -> None:
    elsewhere = root.parent / "elsewhere"
    (elsewhere / "cat").mkdir(parents=True)
    (elsewhere / "cat/2.jpg").write_bytes(b"two")
    source = rows(root, "cat/2.jpg", str(elsewhere / "cat/2.jpg"), "../secret", "images/1.jpg", image_root=elsewhere)
    for opened in (source, pickle.loads(pickle.dumps(source))):
        assert [opened.read(i).data for i in (0, 1)] == [b"two", b"two"]
        with pytest.raises(DecodeError, match=rf"row 2: {REFUSED}"):
            opened.read(2)
        with pytest.raises(DecodeError, match=rf"row 3: .*there is no file 'images/1\.jpg' in {elsewhere}"):
            opened.read(3)
    assert rows(root, "/proc/version", "../secret", image_root="/").read(0).data.startswith(b"Linux")  # type: ignore[union-attr]


def test_names_that_are_none(root: Path) -> None:
    os.mkfifo(root / "fifo.jpg")
    source = rows(root, "a\0b", "images", "x" * 300, "fifo.jpg", ".")
    for index, message in enumerate(
        (r"'a\\x00b' is no name of a file", "a folder, not a file", r"there is no file 'x+\.\.\.'", "FIFO", "a folder")
    ):
        with pytest.raises(DecodeError, match=message):
            source.read(index)


def test_rows_at_an_address_name_no_files_of_this_machine(root: Path, memory: object) -> None:
    with fsspec.filesystem("memory").open("/d/a.parquet", "wb") as file:
        pq.write_table(table(str(root / "images/1.jpg"), "images/1.jpg"), file)
    source = open_source("memory://d/a.parquet")
    assert isinstance(source, Source)
    for index in (0, 1):
        with pytest.raises(DecodeError, match="is on another machine; accepted: image_root="):
            source.read(index)
    local = open_source("memory://d/a.parquet", image_root=root)
    assert isinstance(local, Source)
    assert [local.read(index).data for index in (0, 1)] == [b"one", b"one"]


def test_what_the_folder_may_be(root: Path) -> None:
    for folder, what in (
        (root / "gone", "no such folder"),
        ("s3://bucket/x", "an address"),
        (root / "images/1.jpg", "no such"),
    ):
        with pytest.raises(SourceError, match=f"image_root: got .*, {what}.*; accepted: a folder of this machine"):
            rows(root, "images/1.jpg", image_root=folder)
    for spec in (root / "images", root / "images/1.jpg", np.zeros((2, 4, 4, 3), np.uint8)):
        with pytest.raises(SourceError, match=r"image_root= is for \.parquet files; leave it out"):
            open_source(spec, image_root=root)


def test_a_table_that_ray_hands_over_names_no_files(root: Path) -> None:
    from variegate.interop.ray import MapBatches

    batch = {"image": np.array([{"bytes": None, "path": str(root / "images/1.jpg")}], object), "id": np.array([7])}
    from variegate import transforms as T

    with pytest.raises(vg.DecodeError, match=r"the file that it names is not read here, but by vg\.open_source"):
        MapBatches(T.Resize((4, 4)), device="cpu")(batch)
