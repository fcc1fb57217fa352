"""Shards, and indexes beside them, that somebody made who means no good."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.formats.tars import encoded, labelled, write_tar
from variegate.errors import DecodeError
from variegate.formats.opening import open_source
from variegate.formats.reading import version_of
from variegate.formats.tar import samples
from variegate.formats.tar.index import index_shard, load_index, save_index
from variegate.formats.tar.read import TarStream, open_webdataset
from variegate.io.location import Location


def test_an_index_is_not_believed_whatever_it_says(tmp_path: Path, cache: Path) -> None:
    shard = write_tar(tmp_path / "a.tar", labelled(3))
    location = Location.parse(shard)
    index = index_shard(location, version_of(location))
    assert save_index(location, index, None)
    assert load_index(location, index.version, None) is not None
    for wrong in (
        replace(index, offsets=index.offsets - (1 << 20)),
        replace(index, offsets=index.offsets + index.version.size),
        replace(index, sizes=index.sizes + (1 << 62)),
        replace(index, sizes=-index.sizes),
        replace(index, kinds=index.kinds + 7),
        replace(index, kinds=np.full_like(index.kinds, 2), values=index.values + 5),
        replace(index, texts=[("x" * (80 << 20), "cls")]),  # which takes 80 kB as it is stored
    ):
        assert save_index(location, wrong, None)
        assert load_index(location, index.version, None) is None
        assert [open_webdataset([shard]).read(i).data for i in range(3)] == [encoded(i) for i in range(3)]


def test_members_of_any_size_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = write_tar(tmp_path / "a.tar", [("1.jpg", b"x" * 5000), ("1.cls", b"1"), *labelled(1, 2)])
    monkeypatch.setattr(samples, "MOST_BYTES", 4096)
    message = "5,000 bytes; at most 4 KiB are read"
    first, second = TarStream([shard]).read_shard(0)
    assert isinstance(first.item, DecodeError)
    assert str(first.item) == f"{shard}: 1.jpg: {message}"
    assert not isinstance(second.item, DecodeError)
    source = open_webdataset([shard])
    with pytest.raises(DecodeError, match=message):
        source.read(0)
    assert source.read(1) == second.item


def test_links_and_names_that_lead_out_are_names_alone(tmp_path: Path) -> None:
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, kind in (("sym.jpg", tarfile.SYMTYPE), ("hard.jpg", tarfile.LNKTYPE), ("fifo.jpg", tarfile.FIFOTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, str(tmp_path / "secret.jpg")
            tar.addfile(info)
        for name in ("/etc/passwd.jpg", "../secret.jpg"):
            info = tarfile.TarInfo(name)
            info.size = len(encoded())
            tar.addfile(info, io.BytesIO(encoded()))
    (tmp_path / "a.tar").write_bytes(file.getvalue())
    for stream in (False, True):
        source = open_source(tmp_path / "a.tar", stream=stream)
        items = [one.item for one in source.read_shard(0)] if stream else [source.read(i) for i in range(2)]  # type: ignore[union-attr]
        assert [item.data for item in items] == [encoded()] * 2  # type: ignore[union-attr]
        assert "2 links in archives are not followed" in source.notes()
