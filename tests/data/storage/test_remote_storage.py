"""Addresses: which are refused, and what a reader of a file server may see."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.jobs.output.file_server import FileServer
from variegate.data.base import SourceError
from variegate.data.storage import DiskFullError, WriteError, open_storage


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("https://user:secret@host/out", "https://host/out: http servers take no files; accepted: a folder, or an add"),
        ("zip://out::memory://a.zip", "zip://out::memory://a.zip: an address within another; accepted: a folder"),
        ("nope://a/b", "nope://a/b: unknown protocol nope://; fsspec knows memory"),
    ],
)
def test_addresses_that_cannot_be_written_to(address: str, message: str) -> None:
    with pytest.raises(SourceError) as raised:
        open_storage(address)
    assert str(raised.value).startswith(message)


@pytest.mark.usefixtures("remote")
def test_a_file_server_shows_no_half_files() -> None:
    storage = open_storage("shelf://host/out")
    FileServer.written.clear()
    for data in (b"1", b"2"):
        storage.write("a/b.jpg", data)
        with storage.writer("a/c.tar") as out:
            out.file.write(data)
            out.commit()
    assert len(FileServer.written) == 4
    assert all(path.startswith("/host/out/.variegate/tmp/") for path in FileServer.written)
    assert (storage.read("a/b.jpg"), storage.read("a/c.tar")) == (b"2", b"2")
    assert storage.list(".variegate/tmp") == []


@pytest.mark.usefixtures("remote")
def test_failures_are_told_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage("memory://user:secret@host/out")
    assert storage.shown == "memory://host/out"

    class Forbidden(Exception):
        status = 403

    def fail(error: Exception) -> Any:
        def act(*_: Any, **__: Any) -> None:
            raise error

        return act

    for error, kind, message in (
        (Forbidden(), WriteError, "the server answers HTTP 403 (forbidden)"),
        (ValueError("no s3://user:secret@host"), WriteError, "cannot be written (ValueError: no s3://host)"),
        (FileNotFoundError("bucket"), WriteError, "cannot be written (no such bucket or folder)"),
        (OSError(errno.ENOSPC, "No space left"), DiskFullError, "the disk is full (No space left)"),
    ):
        monkeypatch.setattr(MemoryFileSystem, "pipe_file", fail(error))
        with pytest.raises(WriteError) as raised:
            storage.write("a.jpg", b"")
        assert (type(raised.value), str(raised.value)) == (kind, f"memory://host/out/a.jpg: {message}")
    monkeypatch.setattr(MemoryFileSystem, "cat_file", fail(TimeoutError()))
    with pytest.raises(WriteError, match=r"^memory://host/out/a\.jpg: the connection timed out$"):
        storage.read("a.jpg")


@pytest.mark.usefixtures("remote")
def test_no_room_for_a_large_file_in_the_making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    real_write, storage = __import__("os").write, open_storage("memory://host/out")

    def full(descriptor: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    out = storage.writer("s.tar")
    out.file.write(b"x")
    monkeypatch.setattr("os.write", full)
    with pytest.raises(DiskFullError, match=rf"^{tmp_path}/variegate-\w+ \(for s\.tar\): the disk is full"):
        out.commit()
    monkeypatch.setattr("os.write", real_write)
    assert list(tmp_path.iterdir()) == []
    assert not storage.exists("s.tar")
