"""Addresses: names, patterns, reading and failing, with fsspec's memory and a web server on this machine."""

from __future__ import annotations

import pickle
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.data.tars import encoded, indices_of, labelled, read_all, tar_bytes, write_shards
from tests.data.web import serving
from variegate.data.base import SourceError
from variegate.data.reading import open_stream, read_file, read_range, reason_for, version_of
from variegate.data.resolving import expand, expand_braces
from variegate.data.tar.webdataset import open_tar
from variegate.errors import DecodeError
from variegate.io.addresses import is_url
from variegate.io.location import Location, relative_names

at = Location.parse


def expanded(pattern: str) -> list[str]:
    return [location.address() for location in expand(at(pattern))]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a.tar", ["a.tar"]),
        ("x-{000..002}.tar", ["x-000.tar", "x-001.tar", "x-002.tar"]),
        ("{8..11}", ["8", "9", "10", "11"]),
        ("{08..10}", ["08", "09", "10"]),
        ("{2..0}", ["2", "1", "0"]),
        ("{a,b}-{1..2}", ["a-1", "a-2", "b-1", "b-2"]),
        ("{train,val-{0..1}}.tar", ["train.tar", "val-0.tar", "val-1.tar"]),
        ("{,x}y", ["y", "xy"]),
        ("{one}", ["{one}"]),
        ("{a{1,2}}", ["{a1}", "{a2}"]),
        ("open{", ["open{"]),
        ("}{1..2}", ["}1", "}2"]),
    ],
)
def test_braces(pattern: str, names: list[str]) -> None:
    assert [location.address() for location in expand_braces(at(pattern))] == names


def test_too_many_names() -> None:
    with pytest.raises(SourceError, match=r"x-\{0\.\.9999999999\}: \{0\.\.9999999999\} is more than 1,000,000 names"):
        expand_braces(at("x-{0..9999999999}"))


def test_what_is_an_address(tmp_path: Path) -> None:
    assert all(map(is_url, ("memory://a", "s3://b/c", "https://h/x", "zip://a::https://h/b.zip", "HTTP://h")))
    assert not any(map(is_url, ("a.tar", "/a/b", "C:\\data", "c://x", "a:b", "./s3:/x", "")))
    assert at("file:///data/a%20b.tar").address() == "/data/a b.tar"
    assert at(tmp_path).address() == str(tmp_path)
    assert at("~/x").address() == str(Path.home() / "x")
    assert relative_names([at("/d/a/1.tar"), at("/d/b/1.tar")]) == ["a/1.tar", "b/1.tar"]
    assert relative_names([at("/d/a/1.tar")]) == ["1.tar"]


def test_globs_of_files(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, 3)
    assert expanded(str(tmp_path / "train-*.tar")) == shards
    assert expanded(str(tmp_path / "{train,t*}-0[12].tar")) == sorted(shards[1:] * 2)
    assert expanded(str(tmp_path / "train-{00..01}.tar")) == shards[:2]
    odd = tmp_path / "odd[1]{2}.tar"
    odd.touch()
    assert expanded(str(odd)) == [str(odd)]
    with pytest.raises(SourceError) as raised:
        expanded(str(tmp_path / "val-*.tar"))
    assert str(raised.value) == f"{tmp_path}/val-*.tar: matches nothing"


def test_globs_of_addresses(memory: Any) -> None:
    for number in range(3):
        memory.pipe(f"/data/t-{number}.tar", b"x")
    assert expanded("memory://data/t-*.tar") == [f"memory://data/t-{number}.tar" for number in range(3)]
    assert expanded("memory:///data/t-?.tar")[0] == "memory:///data/t-0.tar"
    assert expanded("memory://data/t-{0..1}.tar") == ["memory://data/t-0.tar", "memory://data/t-1.tar"]
    with pytest.raises(SourceError, match=r"memory://data/v-\*\.tar: matches nothing"):
        expanded("memory://data/v-*.tar")
    with pytest.raises(
        SourceError, match=r"https://host/t-\*\.tar: http servers cannot list their files; name them, w"
    ):
        expanded("https://user:secret@host/t-*.tar")
    assert expanded("https://host/t.tar?x=1") == ["https://host/t.tar?x=1"]


def test_missing_packages_and_protocols_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match=r"^nope://a/b: unknown protocol nope://; fsspec knows memory, http"):
        version_of(at("nope://a/b"))

    def without(name: str) -> type:
        raise ImportError(f"Install {name} to access it")

    monkeypatch.setattr("fsspec.core.get_filesystem_class", without)
    with pytest.raises(SourceError, match=r"^s3://b/c: reading s3:// needs the package s3fs: pip install s3fs$"):
        version_of(at("s3://b/c"))
    with pytest.raises(SourceError, match=r"^https://h/c: reading https:// needs the package aiohttp: pip install aio"):
        open_stream(at("https://user:secret@h/c"))


def test_reading_files_and_ranges(tmp_path: Path, memory: Any) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    memory.pipe("/d/a", b"0123456789")
    for path in (at(tmp_path / "a"), at("memory://d/a")):
        assert version_of(path).size == 10
        assert version_of(path) == version_of(path)
        assert read_file(path) == b"0123456789"
        assert read_range(path, 2, 3, 10, "x") == b"234"
        assert read_range(path, 4, 0, 10, "x") == b""
        with pytest.raises(DecodeError, match=r"^x: only 2 of its 5 bytes could be read"):
            read_range(path, 8, 5, 10, "x")
        with open_stream(path) as stream:
            assert [stream.read(7), stream.read(7), stream.read(7)] == [b"0123456", b"789", b""]
    for path in (at(tmp_path / "b"), at("memory://d/b")):
        for call in (version_of, open_stream):
            with pytest.raises(SourceError, match=r"b: no such file$"):
                call(path)
        with pytest.raises(DecodeError, match=r"b: no such file$"):
            read_file(path)
        with pytest.raises(DecodeError, match=r"^x: no such file$"):
            read_range(path, 0, 1, 1, "x")
    for path in (at(tmp_path), at("memory://d")):
        with pytest.raises(SourceError, match="a folder, not a file"):
            version_of(path)
    assert reason_for(PermissionError(13, "Permission denied"), at("a")) == "permission denied"
    assert reason_for(OSError(5, "Input/output error"), at("a")) == "cannot be read (Input/output error)"


def test_shards_over_http(tmp_path: Path) -> None:
    data = tar_bytes(labelled(30))
    expected = [(encoded(i % 8), i % 10) for i in range(30)]
    with serving({"a.tar": data}) as (address, requests):
        url = f"{address.replace('://', '://user:secret@')}/a.tar?token=secret"
        source = open_tar([url], stream=False)
        assert len(requests) <= 6  # one of them for all of the shard
        requests.clear()
        assert read_all(source) == expected
        assert requests == []
        assert source.name(0) == (f"{address}/a.tar", "0000.jpg")
        assert "secret" not in f"{source.notes()} {source.fingerprint} {source!r}"
        with ThreadPoolExecutor(8) as pool:
            copy = pickle.loads(pickle.dumps(source))
            assert list(pool.map(copy.read, range(30))) == expected
        sharded = vg.open_source(url)
        assert read_all(sharded) == expected
        assert sharded.ids(np.array(indices_of(sharded))).tolist() == source.ids(np.arange(30)).tolist()


def test_without_a_local_copy_samples_are_read_by_ranges(cache: Path) -> None:
    with serving({"a.tar": tar_bytes(labelled(30))}) as (address, requests):
        source = open_tar([f"{address}/a.tar"], stream=False)
        other = open_tar([f"{address}/whole/a.tar"], stream=False)
        for copy in (cache / "shards").iterdir():
            copy.unlink()
        requests.clear()
        assert read_all(source) == [(encoded(i % 8), i % 10) for i in range(30)]
        assert len(requests) == 30
        assert all("bytes=" in request for request in requests)
        with pytest.raises(DecodeError, match="the server ignores byte ranges"):
            other.read(0)
    with pytest.raises(DecodeError, match=r"a\.tar: 0000\.jpg: connection refused"):
        source.read(0)


# Larger than what the client holds ready, all of which is lost when a connection breaks off.
LARGE = [(f"{i:02}.jpg", bytes([i]) * 100_000) for i in range(60)]


def test_failures_over_http() -> None:
    data = tar_bytes(labelled(30))
    with serving({"a.tar": data, "large.tar": tar_bytes(LARGE)}) as (address, _):
        wrong = {
            "403": r"the server answers HTTP 403 \(forbidden\)",
            "404": r"(the server answers HTTP 404 \(no such file\)|no such file)",
            "500": "the server answers HTTP 500",
        }
        for status, reason in wrong.items():
            url = f"{address}/{status}/a.tar".replace("://", "://user:secret@")
            with pytest.raises(SourceError, match=rf"^{address}/{status}/a\.tar: {reason}$") as raised:
                open_tar([url], stream=False)
            assert raised.value.__suppress_context__  # the chain of causes would print the whole address
            (item,) = read_all(vg.open_source(url, on_error="skip"))
            assert isinstance(item, DecodeError)
            assert str(item) == str(raised.value)
        with pytest.raises(SourceError, match=r"cut/large\.tar: the connection broke off$"):
            open_tar([f"{address}/cut/large.tar"], stream=False)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(SourceError, match=r"a\.tar: connection refused$"):
            open_tar([f"http://127.0.0.1:{port}/a.tar"], stream=False)


def test_a_shard_that_the_network_broke_off_leaves_nothing(cache: Path) -> None:
    with serving({"a.tar": tar_bytes(LARGE), "b.tar": tar_bytes(labelled(2))}) as (address, _):
        source = open_tar([f"{address}/b.tar", f"{address}/cut/a.tar"], stream=False, on_error="skip")
        assert len(source) == 3
        with pytest.raises(DecodeError, match="the connection broke off"):
            source.read(2)
    assert len(list(cache.rglob("*.index"))) == len(list((cache / "shards").glob("*.tar"))) == 1
    assert not list(cache.rglob("*.part"))
