"""Indexes of shards: kept, made anew where they do not fit, and believed no further than the shard."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from tests.children import start_python
from tests.data.tars import encoded, labelled, read_all, write_shards, write_tar
from variegate.data.reading import version_of
from variegate.data.tar import index as listing
from variegate.data.tar.copies import ShardCopies
from variegate.data.tar.index import ShardIndex, _pack, index_shard, load_index, save_index
from variegate.data.tar.walk import ShardCounts, ShardFailure
from variegate.io.location import Location


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The shards that were walked over, instead of found in an index."""
    walked: list[str] = []

    def walk(shard: Location, *arguments: Any) -> ShardIndex:
        walked.append(shard.address())
        return index_shard(shard, *arguments)

    monkeypatch.setattr(listing, "index_shard", walk)
    return walked


def test_the_index_is_kept_beside_the_shard_or_in_the_folder_asked_for(
    tmp_path: Path, walks: list[str], cache: Path
) -> None:
    shards = write_shards(tmp_path, 2)
    first = vg.open_source(shards)
    assert sorted(os.listdir(tmp_path)) == sorted(f"train-0{i}.tar{s}" for i in (0, 1) for s in ("", ".index"))
    assert sorted(walks) == shards
    second = vg.open_source(shards)
    assert len(walks) == 2
    assert second.fingerprint == first.fingerprint
    assert read_all(second) == read_all(first)
    assert not any(cache.iterdir())
    vg.open_source(shards, cache_dir=tmp_path / "elsewhere")
    assert len(walks) == 4
    assert len(list((tmp_path / "elsewhere").rglob("*.index"))) == 2


def test_an_index_that_is_old_or_damaged_is_made_anew(tmp_path: Path, walks: list[str]) -> None:
    (shard,) = write_shards(tmp_path, 1)
    good = read_all(vg.open_source(shard))
    index = Path(shard + ".index")
    whole = index.read_bytes()
    flipped = [bytes([*whole[:i], whole[i] ^ 16, *whole[i + 1 :]]) for i in range(0, len(whole), 31)]
    damaged = [b"", whole[:10], whole[:-1], whole + b"x", whole.replace(b"index 5", b"index 4"), *flipped]
    for data in damaged:
        index.write_bytes(data)
        assert read_all(vg.open_source(shard)) == good
        assert index.read_bytes() == whole
    assert len(walks) == 1 + len(damaged)
    walks.clear()
    write_tar(Path(shard), labelled(6))
    assert len(vg.open_source(shard)) == 6
    os.utime(shard, ns=(1, 1))
    vg.open_source(shard)
    assert len(walks) == 2


def test_where_nothing_can_be_written_beside_the_shard_the_cache_is_used(
    tmp_path: Path, walks: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shard,) = write_shards(tmp_path, 1)
    # A folder in its place refuses the file to anybody, where permissions do not hold for an administrator.
    (tmp_path / "train-00.tar.index").mkdir()
    assert [vg.open_source(shard).notes() for _ in range(2)] == [[], []]
    assert len(walks) == 1
    assert len(list(cache.rglob("*-train-00.tar.index"))) == 1
    assert not list(tmp_path.glob(".*"))
    (tmp_path / "file").touch()
    monkeypatch.setenv("VARIEGATE_CACHE", str(tmp_path / "file"))
    (note,) = vg.open_source(shard).notes()
    assert note.startswith("the index could not be written, and is made at every start: ")


@pytest.mark.process
def test_two_processes_index_the_same_shards_at_once(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, 6, samples=20)
    script = (
        "import sys, variegate as vg\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(vg.open_source(sys.argv[1:]).fingerprint)"
    )
    running = [start_python(script, *shards, stdin=PIPE, stdout=PIPE, text=True) for _ in range(2)]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert {process.communicate()[0].strip() for process in running} == {vg.open_source(shards).fingerprint}
    assert len(os.listdir(tmp_path)) == 12


# A field of an index, and a value that does not fit a shard of three samples; numbers fill its array.
WRONG: list[tuple[str, Any]] = [
    ("offsets", -1),
    ("offsets", 1 << 40),
    ("sizes", 1 << 62),
    ("sizes", -1),
    ("begins", 1 << 40),
    ("ends", 0),
    ("kinds", 9),
    ("kinds", 2),
    ("texts", [("x" * (2 << 20), "cls")]),
    ("texts", [(1, 2)]),
    ("texts", ["abc"]),
    ("counts", ShardCounts(samples="many")),  # type: ignore[arg-type]
    ("failure", ShardFailure(None, None)),  # type: ignore[arg-type]
    ("copy_size", "-1"),
    ("names", pa.nulls(3, pa.binary())),
    ("compressed", None),
    ("nested", None),
]


def _compressed(index: ShardIndex) -> bytes:
    """Of an index whose batch unpacks to 400 times its size."""
    with pa.ipc.open_stream(_pack(index)) as stream:
        batch = stream.read_all().to_batches()[0]
    names = pa.array([b"x" * (8 << 20), *index.names.to_pylist()[1:]], pa.binary())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(pa.record_batch([*batch.columns[:-1], names], schema=batch.schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data + zlib.crc32(data).to_bytes(4, "little")


@pytest.mark.parametrize(("field", "value"), WRONG, ids=[f"{field} {value}"[:30] for field, value in WRONG])
def test_an_index_is_not_believed_whatever_it_says(
    tmp_path: Path, field: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = write_tar(tmp_path / "a.tar", labelled(3))
    location = Location.parse(shard)
    version = version_of(location)
    index = index_shard(location, version, ShardCopies())
    assert save_index(location, index, None)
    assert load_index(location, version, None) is not None
    with monkeypatch.context() as patch:
        if field == "nested":
            patch.setattr(json, "dumps", lambda head: '{"texts":' + "[" * 40_000)
        elif field != "compressed":
            filled = np.full_like(getattr(index, field), value) if isinstance(value, int) else value
            index = replace(index, **{field: filled})
        assert save_index(location, index, None)
    if field == "compressed":
        (tmp_path / "a.tar.index").write_bytes(_compressed(index))
    begin = perf_counter()
    assert load_index(location, version, None) is None
    assert perf_counter() - begin < 2
    assert read_all(vg.open_source(shard)) == [(encoded(i), i) for i in range(3)]
    assert load_index(location, version, None) is not None


def test_an_index_of_any_bytes_is_read_or_made_anew(tmp_path: Path) -> None:
    shard = Location.parse(write_tar(tmp_path / "a.tar", labelled(3)))
    version = version_of(shard)
    whole = np.frombuffer(_pack(index_shard(shard, version, ShardCopies()))[:-4], np.uint8)
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
