"""A folder of this machine: what is made durable when, and disks that are full."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.output.tiny_disk import tiny_disk
from variegate.data.base import SourceError
from variegate.data.storage import TEMPORARY, DiskFullError, WriteError, open_storage
from variegate.data.storage.local import LocalStorage
from variegate.io.durable import write_atomically


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """fsync and replace as they are called, with the path that is meant."""
    found: list[tuple[str, str]] = []
    paths: dict[int, str] = {}
    real_open, real_fsync, real_replace = os.open, os.fsync, os.replace

    def opened(path: str, *arguments: Any, **options: Any) -> int:
        descriptor = real_open(path, *arguments, **options)
        paths[descriptor] = path
        return descriptor

    def fsync(descriptor: int) -> None:
        found.append(("fsync", paths[descriptor]))
        real_fsync(descriptor)

    def replace(source: str, target: str) -> None:
        found.append(("replace", target))
        real_replace(source, target)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return found


def test_files_are_synced_before_they_get_their_names_and_folders_afterwards(
    tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    storage = LocalStorage(str(tmp_path / "new" / "out"))
    root = storage.root
    storage.prepare()
    made = {path for call, path in calls if call == "fsync"}
    assert made == {str(tmp_path), f"{tmp_path}/new", root, f"{root}/.variegate"}
    calls.clear()

    storage.write("a/b/1.jpg", b"1")
    assert [call for call, _ in calls] == ["fsync", "replace", "replace"]  # once more with the folders made
    assert calls[0][1].startswith(f"{root}/{TEMPORARY}/")
    assert calls[-1][1] == f"{root}/a/b/1.jpg"
    calls.clear()
    storage.sync()
    assert calls == [("fsync", f"{root}/a/b"), ("fsync", f"{root}/a"), ("fsync", root)]

    calls.clear()
    storage.sync()
    assert calls == []
    with storage.writer("a/b/2.jpg") as out:
        out.file.write(b"2")
        out.commit()
    storage.remove("a/b/1.jpg")
    assert [call for call, _ in calls] == ["fsync", "replace"]
    calls.clear()
    storage.sync()
    assert calls == [("fsync", f"{root}/a/b")]

    # A copy cannot know whether the folders that it finds were made durable by whoever made them.
    copy = pickle.loads(pickle.dumps(storage))
    copy.write("a/b/3.jpg", b"3")
    calls.clear()
    copy.sync()
    assert calls == [("fsync", f"{root}/a/b"), ("fsync", f"{root}/a"), ("fsync", root)]


@pytest.mark.parametrize("at_once", [True, False])
def test_many_files_are_synced_before_any_gets_its_name(
    tmp_path: Path, calls: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    def sync_files(descriptors: list[int]) -> bool:
        calls.append(("sync_files", str(len(descriptors))))
        return at_once

    def sync_folders(paths: list[str]) -> bool:
        calls.append(("sync_folders", str(len(paths))))
        return at_once

    monkeypatch.setattr("variegate.data.storage.local.sync_files", sync_files)
    monkeypatch.setattr("variegate.data.storage.local.sync_folders", sync_folders)
    storage = LocalStorage(str(tmp_path))
    storage.prepare()
    storage.write("a/0", b"")
    calls.clear()
    storage.write_many([(f"a/{number}", b"1") for number in range(5)])
    one_by_one = [] if at_once else ["fsync"] * 5
    assert [call for call, _ in calls] == ["sync_files", *one_by_one, *["replace"] * 5]
    assert calls[0] == ("sync_files", "5")
    calls.clear()
    storage.sync()
    folders = [] if at_once else [("fsync", f"{tmp_path}/a"), ("fsync", str(tmp_path))]
    assert calls == [("sync_folders", "2"), *folders]
    calls.clear()
    storage.sync()
    assert calls == [("sync_folders", "0")]


def test_what_could_not_be_synced_is_synced_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.write("a/1", b"")
    synced: list[str] = []

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(WriteError, match=rf"^{tmp_path}/a: cannot be written \(Input/output error\)$"):
        storage.sync()
    monkeypatch.setattr(os, "fsync", synced.append)
    storage.sync()
    assert len(synced) == 2


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.write("cat/a.jpg", b"old")
    real_write = os.write
    room = [5]

    def write(descriptor: int, data: Any) -> int:
        count = min(len(data), room[0])
        if not count:
            raise OSError(errno.ENOSPC, "No space left on device")
        room[0] -= count
        return real_write(descriptor, memoryview(data)[:count])

    monkeypatch.setattr(os, "write", write)
    message = rf"^{tmp_path}/cat/a\.jpg: the disk is full \(No space left on device\)$"
    with pytest.raises(DiskFullError, match=message) as raised:
        storage.write("cat/a.jpg", b"new and long")
    assert raised.value.errno == errno.ENOSPC
    out = storage.writer("cat/a.jpg")
    out.file.write(b"new")
    with pytest.raises(DiskFullError, match=message):
        out.commit()
    with storage.writer("cat/a.jpg") as out, pytest.raises(DiskFullError, match=message):
        out.file.write(bytes(3 << 20))
    assert storage.read("cat/a.jpg") == b"old"
    assert storage.list(TEMPORARY) == []


@pytest.mark.process
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", 256) as disk:
        storage = LocalStorage(str(disk.root / "out"))
        storage.prepare()
        for name in "abcdefgh":
            storage.write(name, bytes(20_000))
        with pytest.raises(DiskFullError, match=r"/out/large: the disk is full \(No space left on device\)$"):
            storage.write("large", bytes(300_000))
        with storage.writer("large") as out:
            out.file.write(bytes(300_000))
            with pytest.raises(DiskFullError, match="/out/large: the disk is full"):
                out.commit()
        assert storage.list(TEMPORARY) == []
        assert storage.list() == [".variegate/", *"abcdefgh"]
        disk.grow()
        storage.write("large", bytes(300_000))


def test_who_comes_after_the_end_leaves_nothing_behind(tmp_path: Path) -> None:
    """A worker whose run was killed may outlive the next one, which did its work again and is finished."""
    storage = open_storage(tmp_path)
    storage.prepare()
    worker = pickle.loads(pickle.dumps(storage))
    worker.write("1", b"")
    storage.remove_tree(".variegate")
    with pytest.raises(WriteError, match=r"/2: cannot be written \(No such file or directory\)$"):
        worker.write("2", b"")
    assert os.listdir(tmp_path) == ["1"]


def test_places_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match=r"/file: cannot be made \((File exists|Not a directory)\)$"):
        open_storage(tmp_path / "file").prepare()
    with pytest.raises(WriteError, match=r"/file/x: cannot be written \(Not a directory\)$"):
        open_storage(tmp_path).write("file/x", b"")
    open_storage(tmp_path).write("folder/x", b"")
    with pytest.raises(WriteError, match=r"/folder: cannot be written \(Is a directory\)$"):
        open_storage(tmp_path).write("folder", b"")
    with pytest.raises(SourceError, match=r"^an empty path; accepted: a folder to write to"):
        open_storage("")
    assert open_storage(tmp_path).list(TEMPORARY) == []


def test_of_many_files_those_before_an_error_are_whole_and_nothing_is_left_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.prepare()
    replace, done = os.replace, list[tuple[str, ...]]()

    def third_fails(*names: str) -> None:
        if len(done) == 2:
            raise OSError(errno.EACCES, "Permission denied", names[0])
        done.append(names)
        replace(*names)

    monkeypatch.setattr(os, "replace", third_fails)
    with pytest.raises(WriteError, match=r"c\.jpg: .*Permission denied"):
        storage.write_many([(f"{name}.jpg", name.encode() * 99) for name in "abcd"])
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.jpg")} == {"a.jpg": b"a" * 99, "b.jpg": b"b" * 99}
    assert list((tmp_path / ".variegate/tmp").iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_a_pipe_or_device_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    for name in ("pipe", "null"):
        with pytest.raises(WriteError, match=rf"{name}: .*accepted: regular files"):
            write_atomically(tmp_path / name, b"x")
        with pytest.raises(OSError, match="accepted: regular files"):
            LocalStorage(str(tmp_path)).open(name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["null", "pipe"]
    assert (tmp_path / "null").is_symlink()
