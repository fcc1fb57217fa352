"""Files that are whole whenever they are there, and logs of which everything that was appended lasts."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from variegate.io.durable import AppendOnlyFile, DiskFullError, WriteError, publish, write_atomically


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(b"old")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(DiskFullError, match=r"a\.jpg: the disk is full \(No space left\)"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.jpg"]


@pytest.mark.parametrize("several_writers", [False, True])
def test_pieces_are_one_file_or_none(tmp_path: Path, several_writers: bool) -> None:
    path = tmp_path / "new" / "rows"

    def pieces(failing: bool) -> Iterator[bytes]:
        yield b"one "
        assert not path.exists()
        if failing:
            raise OSError(errno.EIO, "cannot be read")
        yield b"two"

    with pytest.raises(OSError, match="cannot be read") as caught:
        write_atomically(path, pieces(True), durable=True, several_writers=several_writers)
    assert not isinstance(caught.value, WriteError)  # it was not the file that failed
    assert list(path.parent.iterdir()) == []
    write_atomically(path, pieces(False), durable=True, several_writers=several_writers)
    assert path.read_bytes() == b"one two"


def test_several_writers_have_names_of_their_own(tmp_path: Path) -> None:
    seen: set[str] = set()

    def noting() -> Iterator[bytes]:
        seen.update(entry.name for entry in tmp_path.iterdir() if entry.name != "index")
        yield b"x"

    for _ in range(3):
        write_atomically(tmp_path / "index", noting(), several_writers=True)
    assert len(seen) == 3
    assert all(name.startswith(".index.") and name.endswith(".tmp") for name in seen)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_finished_file_or_folder_takes_its_name(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    temporary, path = tmp_path / "temporary", tmp_path / "final"
    if kind == "folder":
        temporary.mkdir()
    else:
        temporary.write_bytes(b"new")
        path.write_bytes(b"old")
    inode = temporary.stat().st_ino
    publish(temporary, path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["final"]
    assert path.stat().st_ino == inode
    assert synced == [inode, tmp_path.stat().st_ino]


def test_what_a_killed_process_left_behind_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\nthr")
    log = AppendOnlyFile(path, "the log", 8)
    assert path.read_bytes() == b"one\ntwo\n"
    log.append(b"three\n")
    assert (log.end, log.read(4, 4)) == (14, b"two\n")
    log.append(b"four\n")  # reading has moved nothing
    log.close()
    assert path.read_bytes() == b"one\ntwo\nthree\nfour\n"


def test_an_append_that_failed_can_be_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    log = AppendOnlyFile(path, "DST/log", 0)
    log.append(b"one\n")
    real_write = os.write

    def half(descriptor: int, data: Any) -> int:
        if len(data) == 1:
            raise OSError(errno.ENOSPC, "No space left")
        return real_write(descriptor, data[: len(data) // 2])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(DiskFullError, match=r"^DST/log: the disk is full \(No space left\)$"):
            log.append(b"longer\n")
    assert log.end == 4
    log.append(b"two\n")
    log.close()
    assert path.read_bytes() == b"one\ntwo\n"
