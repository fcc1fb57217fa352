"""Shards, and indexes beside them, that somebody made who means no good."""

from __future__ import annotations

import io
import json
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pytest

from tests.data.tars import encoded, labelled, read_all, write_tar
from variegate.data.opening import open_source
from variegate.data.reading import version_of
from variegate.data.tar import walk as samples
from variegate.data.tar.copies import ShardCopies
from variegate.data.tar.index import ShardIndex, _pack, index_shard, load_index, save_index
from variegate.data.tar.walk import ShardCounts, ShardFailure
from variegate.data.tar.webdataset import open_tar as open_webdataset
from variegate.errors import DecodeError
from variegate.io.location import Location


def _compressed(index: ShardIndex) -> bytes:
    """Of an index whose texts take a hundredth of their size, with a batch that unpacks to 400 times its size."""
    with pa.ipc.open_stream(_pack(index)) as stream:
        batch = stream.read_all().to_batches()[0]
    names = pa.array([b"x" * (8 << 20), *index.names.to_pylist()[1:]], pa.binary())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(pa.record_batch([*batch.columns[:-1], names], schema=batch.schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data + zlib.crc32(data).to_bytes(4, "little")


WRONG: dict[str, Callable[[ShardIndex], ShardIndex]] = {
    "before the shard": lambda index: replace(index, offsets=index.offsets - (1 << 20)),
    "behind the shard": lambda index: replace(index, offsets=index.offsets + index.version.size),
    "sizes that overflow": lambda index: replace(index, sizes=index.sizes + (1 << 62)),
    "negative sizes": lambda index: replace(index, sizes=-index.sizes),
    "ends before they begin": lambda index: replace(index, begins=index.ends, ends=index.begins),
    "unknown kinds": lambda index: replace(index, kinds=index.kinds + 7),
    "texts that are not there": lambda index: replace(
        index, kinds=np.full_like(index.kinds, 2), values=index.values + 5
    ),
    "larger than the shard": lambda index: replace(index, texts=[("x" * (2 << 20), "cls")]),
    "texts that are numbers": lambda index: replace(index, texts=[(1, 2)]),  # type: ignore[list-item]
    "a text alone": lambda index: replace(index, texts=["abc"]),  # type: ignore[list-item]
    "counts that are texts": lambda index: replace(index, counts=ShardCounts(samples="many")),  # type: ignore[arg-type]
    "a failure without reason": lambda index: replace(index, failure=ShardFailure(None, None)),  # type: ignore[arg-type]
    "a copy of a negative size": lambda index: replace(index, copy_size=-1),
    "missing values": lambda index: replace(index, names=pa.array([None] * 3, pa.binary())),
}


@pytest.mark.parametrize("what", [*WRONG, "compressed", "nested"])
def test_an_index_is_not_believed_whatever_it_says(
    tmp_path: Path, cache: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = write_tar(tmp_path / "a.tar", labelled(3))
    location = Location.parse(shard)
    index = index_shard(location, version_of(location), ShardCopies())
    assert save_index(location, index, None)
    assert load_index(location, index.version, None) is not None
    place = tmp_path / "a.tar.index"
    if what == "compressed":
        place.write_bytes(_compressed(index))
        assert place.stat().st_size < index.version.size
    elif what == "nested":
        with monkeypatch.context() as patch:
            patch.setattr(json, "dumps", lambda head: '{"texts":' + "[" * 40_000)
            assert save_index(location, index, None)
    else:
        assert save_index(location, WRONG[what](index), None)
    begin = perf_counter()
    assert load_index(location, index.version, None) is None
    assert perf_counter() - begin < 2
    assert [open_webdataset([shard]).read(i).data for i in range(3)] == [encoded(i) for i in range(3)]
    assert load_index(location, index.version, None) is not None


def test_an_index_of_any_bytes_is_read_or_made_anew(tmp_path: Path) -> None:
    shard = Location.parse(write_tar(tmp_path / "a.tar", labelled(3)))
    version = version_of(shard)
    index = index_shard(shard, version, ShardCopies())
    whole = np.frombuffer(_pack(index)[:-4], np.uint8)
    rng = np.random.default_rng(0)
    read = 0
    for _ in range(300):
        data = whole.copy()
        data[rng.integers(0, len(data))] = rng.choice([0, 1, 127, 128, 255])
        (tmp_path / "a.tar.index").write_bytes(data.tobytes() + zlib.crc32(data).to_bytes(4, "little"))
        found = load_index(shard, version, None)
        read += found is not None
        assert found is None or (found.ends <= version.size).all()
    assert 20 < read < 280


def test_members_of_any_size_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = write_tar(tmp_path / "a.tar", [("1.jpg", b"x" * 5000), ("1.cls", b"1"), *labelled(1, 2)])
    monkeypatch.setattr(samples, "MOST_BYTES", 4096)
    message = "5,000 bytes; at most 4 KiB are read"
    for stream in (False, True):
        first, second = read_all(open_source(shard, stream=stream))
        assert isinstance(first, DecodeError)
        assert str(first) == f"{shard}: 1.jpg: {message}"
        assert second == (encoded(2), 2)


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
        assert read_all(source) == [(encoded(), -1)] * 2
        assert "2 links in archives are not followed" in source.notes()
