"""Only regular files are read, and only so much of them; nothing is waited for."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.jobs.bounded import fail_after
from variegate.io.files import (
    NotRegularError,
    TooLargeError,
    check_regular,
    open_regular,
    read_at,
    read_regular,
    write_at,
)
from variegate.io.lock import FileLock

ACCEPTED = "accepted: regular files, and links to them"


def test_nothing_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "to-fifo").symlink_to("fifo")
    (tmp_path / "to-zero").symlink_to("/dev/zero")
    (tmp_path / "to-tty").symlink_to("/dev/tty")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    expected = {
        "fifo": f"NotRegularError: a named pipe (FIFO); {ACCEPTED}",
        "to-fifo": f"NotRegularError: a named pipe (FIFO); {ACCEPTED}",
        "to-zero": f"NotRegularError: a device; {ACCEPTED}",
        "to-tty": f"NotRegularError: a device; {ACCEPTED}",
        "loop": f"OSError: {os.strerror(40)}",
        "folder": "IsADirectoryError: a folder, not a file",
    }
    with fail_after(60):
        for name, said in expected.items():
            for read in (check_regular, open_regular, read_regular):
                with pytest.raises(OSError) as raised:  # noqa: PT011
                    read(tmp_path / name)
                assert f"{type(raised.value).__name__}: {raised.value.strerror}" == said, (name, read)


def test_sockets_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # their names must be short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("s.jpg")
        with pytest.raises(NotRegularError, match="a socket; accepted"):
            read_regular("s.jpg")


def test_what_took_the_place_of_a_file_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at a name and its opening anything can come there."""
    path = tmp_path / "a.jpg"
    path.write_bytes(b"abc")

    def replace(path: str, flags: int) -> int:
        os.unlink(path)
        os.mkfifo(path)
        return opened(path, flags)

    opened = os.open
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", replace)
        with pytest.raises(NotRegularError):
            read_regular(str(path))
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, (1 << 20) + 1])
def test_all_bytes_of_a_file(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    path = tmp_path / "a"
    path.write_bytes(data)
    assert read_regular(path) == data
    assert read_regular(path, size) == data
    with open_regular(path) as file:
        assert file.read() == data
    assert check_regular(path).st_size == size
    if size:
        with pytest.raises(TooLargeError, match="the most that is read of such a file"):
            read_regular(path, size - 1)


def test_files_that_do_not_tell_their_size() -> None:
    assert b"Linux" in read_regular("/proc/version")


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1000)
    read = os.read

    def grow(descriptor: int, count: int) -> bytes:
        with open(path, "ab") as file:
            file.write(b"y" * 1000)
        return read(descriptor, count)

    monkeypatch.setattr(os, "read", grow)
    with pytest.raises(TooLargeError, match=r"more than 64 KiB, the most"):
        read_regular(path, 64 << 10)


def test_a_hole_of_many_bytes_is_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "a", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TooLargeError, match="more than 2 GiB, the most"):
        read_regular(tmp_path / "a")


@pytest.mark.parametrize("has_positions", [True, False])
def test_reading_and_writing_at_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_positions: bool) -> None:
    """Also as on Windows, which has neither call."""
    if not has_positions:
        monkeypatch.delattr(os, "preadv", raising=False)
        monkeypatch.delattr(os, "pwrite", raising=False)
    with open(tmp_path / "file", "w+b", buffering=0) as file:
        assert write_at(file.fileno(), memoryview(b"abcdef"), 0) == 6
        assert write_at(file.fileno(), memoryview(b"XY"), 2) == 2
        found = bytearray(8)
        assert read_at(file.fileno(), memoryview(found), 1) == 5
        assert found == b"bXYef\0\0\0"
        assert read_at(file.fileno(), memoryview(found), 9) == 0


def test_a_lock_in_the_working_folder_needs_no_folder_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lock = FileLock("run.lock")
    lock.acquire()
    with pytest.raises(BlockingIOError):
        FileLock(tmp_path / "run.lock").acquire()
    lock.release(remove=True)
    assert list(tmp_path.iterdir()) == []
