"""What every storage promises: files whole or not at all, errors that name the file, nothing left behind."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.jobs.output.file_server import FileServer
from variegate.data.storage import TEMPORARY, Storage, WriteError, open_storage


def leftovers(storage: Storage) -> list[str]:
    return list(storage.list(TEMPORARY))


def test_files_are_put_listed_and_removed(storage: Storage) -> None:
    assert storage.list() == []
    storage.prepare()
    for name in ("b/c/1.jpg", "b/0.jpg", "a.json"):
        storage.write(name, name.encode())
    storage.write("a.json", b"")
    storage.sync()
    assert storage.read("b/c/1.jpg") == b"b/c/1.jpg"
    assert storage.read("a.json") == b""
    assert [name for name in storage.list() if not name.startswith(".")] == ["a.json", "b/"]
    assert storage.list("b") == ["0.jpg", "c/"]
    assert storage.exists("b/0.jpg")
    assert not storage.exists("b/1.jpg")
    storage.remove("b/0.jpg")
    storage.remove("b/0.jpg")
    storage.remove("no/such/folder")
    assert storage.list("b") == ["c/"]
    storage.remove_tree("b")
    storage.remove_tree("b")
    assert storage.list("b") == []
    storage.sync()
    assert leftovers(storage) == []


def test_a_missing_file_is_named(storage: Storage) -> None:
    storage.prepare()
    with pytest.raises(FileNotFoundError) as raised:
        storage.read("cat/a.jpg")
    assert raised.value.filename == f"{storage.shown}/cat/a.jpg"


def test_nothing_is_touched_before_it_is_asked_for(storage: Storage) -> None:
    assert not storage.exists("x")
    assert storage.list() == []
    assert not os.path.exists(storage.root)


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/../../x", "/x", "a//x", "a/./x", "a/", "a\0b"])
def test_no_name_leads_out(storage: Storage, name: str) -> None:
    for act in (storage.read, storage.exists, storage.remove, storage.remove_tree, storage.writer):
        with pytest.raises(ValueError, match="relative: got"):
            act(name)
    with pytest.raises(ValueError, match="relative: got"):
        storage.write(name, b"")


def test_copies_write_to_the_same_place(storage: Storage) -> None:
    storage.prepare()
    storage.write("a", b"0")
    copy = pickle.loads(pickle.dumps(storage))
    assert (copy.shown, copy.root, copy.is_remote) == (storage.shown, storage.root, storage.is_remote)
    copy.write("b/c", b"1")
    copy.sync()
    assert (copy.read("a"), storage.read("b/c")) == (b"0", b"1")


def test_many_files_at_once(storage: Storage) -> None:
    storage.prepare()
    storage.write_many([])
    files = [(f"class{n % 3}/{n}.jpg", bytes([n]) * 1000 * n) for n in range(20)]
    storage.write_many(files)
    storage.sync()
    assert {name: storage.read(name) for name, _ in files} == dict(files)
    with pytest.raises(ValueError, match="below the root"):
        storage.write_many([("new/1.jpg", b"1"), ("../2.jpg", b"2")])
    assert leftovers(storage) == []


def test_many_threads(storage: Storage) -> None:
    def put(number: int) -> None:
        storage.write(f"f{number % 3}/g/{number % 20}", b"%d" % (number % 20) * 1000)
        storage.sync()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(100)))
    for number in range(20):
        found = [storage.read(f"f{f}/g/{number}") for f in range(3)]
        assert found == [b"%d" % number * 1000] * 3
    assert leftovers(storage) == []


def test_a_large_file_is_seen_when_it_is_whole(storage: Storage) -> None:
    storage.prepare()
    storage.write("s/1.tar", b"old")
    part = bytes(range(256)) * 4096
    with storage.writer("s/1.tar") as out:
        for _ in range(3):
            out.file.write(part)
        assert storage.read("s/1.tar") == b"old"
        out.commit()
        assert storage.read("s/1.tar") == part * 3
    out.discard()
    assert storage.read("s/1.tar") == part * 3
    with contextlib.suppress(KeyError), storage.writer("s/2.tar") as out:
        out.file.write(part)
        raise KeyError
    with storage.writer("s/2.tar") as out:
        out.file.write(b"x")
    assert storage.list("s") == ["1.tar"]
    assert leftovers(storage) == []


def refuse(*_: Any, **__: Any) -> None:
    raise OSError(errno.EACCES, "Permission denied", "a temporary name")


@pytest.mark.parametrize("step", range(2))
def test_a_write_that_fails_leaves_the_old_file(storage: Storage, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.prepare()
    storage.write("cat/a.jpg", b"old")
    if not storage.is_remote:
        monkeypatch.setattr(os, ("fsync", "replace")[step], refuse)
    elif "shelf" in storage.root:
        monkeypatch.setattr(FileServer, ("pipe_file", "mv")[step], refuse)
        monkeypatch.setattr(FileServer, ("put_file", "mv")[step], refuse)
    else:
        for name in ("pipe_file", "put_file"):
            monkeypatch.setattr(MemoryFileSystem, name, refuse)

    with pytest.raises(WriteError) as raised:
        storage.write("cat/a.jpg", b"new")
    assert raised.value.filename == f"{storage.shown}/cat/a.jpg"
    assert str(raised.value).startswith(f"{storage.shown}/cat/a.jpg: ")
    assert "ermission denied" in str(raised.value)
    assert pickle.loads(pickle.dumps(raised.value)).args == raised.value.args
    with storage.writer("cat/a.jpg") as out:
        out.file.write(b"new")
        with pytest.raises(WriteError, match=r"cat/a\.jpg: .*ermission denied"):
            out.commit()
    monkeypatch.undo()
    if "shelf" not in storage.root or step == 0:  # see RemoteStorage: there, the old one is removed to make room
        assert storage.read("cat/a.jpg") == b"old"
    assert leftovers(storage) == []


def test_file_addresses_are_folders(tmp_path: Path) -> None:
    for spec in (f"file://{tmp_path}/x", f"local://{tmp_path}/x", tmp_path / "x"):
        storage = open_storage(spec)
        assert not storage.is_remote
        assert storage.root == f"{tmp_path}/x"


def test_sizes_are_those_of_the_files_right_in_a_folder(storage: Storage) -> None:
    assert storage.sizes() == storage.sizes("gone/deep") == {}
    for name, data in (("a", b"12"), ("deep/b", b""), ("deep/c", b"345"), ("deep/er/d", b"6")):
        storage.write(name, data)
    assert storage.sizes() == {"a": 2}
    assert storage.sizes("deep") == {"b": 0, "c": 3}
    storage.write("deep/c", b"3")
    assert storage.sizes("deep")["c"] == 1
    assert storage.sizes("a") in ({}, {"a": 2})  # a file: some storages list it as itself


def test_files_are_opened_to_be_read_here_and_there(storage: Storage) -> None:
    storage.write("deep/a", b"0123456789")
    with storage.open("deep/a") as file:
        assert file.read(3) == b"012"
        file.seek(7)
        assert file.read() == b"789"
    with pytest.raises(FileNotFoundError):
        storage.open("deep/b")
    with pytest.raises(ValueError, match="accepted: a name below the root"):
        storage.open("../a")


def test_what_was_written_is_counted_and_hashed(storage: Storage) -> None:
    data = os.urandom(3_000_000)
    with storage.writer("a") as out:
        for at in range(0, len(data), 700_001):
            out.file.write(data[at : at + 700_001])
        out.commit()
        written = out.descriptor
    assert (written.size, written.digest.hexdigest()) == (len(data), hashlib.sha256(data).hexdigest())
