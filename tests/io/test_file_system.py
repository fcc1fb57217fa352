"""Many files synced at once: only where that means as much as ``fsync``, and is as quick."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from variegate.io import durable
from variegate.io.durable import sync_files, sync_folders


class Library:
    """A C library whose file system is of some kind, and which can fail."""

    def __init__(self, kind: int = 0xEF53, fails: bool = False) -> None:
        self.kind, self.fails = kind, fails
        self.synced: list[int] = []

    def fstatfs(self, descriptor: int, status: Any) -> int:
        status[:8] = self.kind.to_bytes(8, sys.byteorder)
        return 0

    def syncfs(self, descriptor: int) -> int:
        self.synced.append(os.fstat(descriptor).st_ino)
        return -1 if self.fails else 0


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[int]]:
    opened = [os.open(tmp_path / str(number), os.O_RDWR | os.O_CREAT) for number in range(4)]
    yield opened
    for descriptor in opened:
        os.close(descriptor)


def use(monkeypatch: pytest.MonkeyPatch, library: Library | None, waiting_kb: int = 0) -> None:
    monkeypatch.setattr(durable, "_library", lambda: library)
    monkeypatch.setattr(durable, "_little_waits", lambda: waiting_kb <= durable._MOST_WAITING_KB)


def test_many_files_are_synced_by_one_call(monkeypatch: pytest.MonkeyPatch, files: list[int], tmp_path: Path) -> None:
    library = Library()
    use(monkeypatch, library)
    assert sync_files(files)
    folders = [str(tmp_path / name) for name in "abcd"]
    for folder in folders:
        os.mkdir(folder)
    assert sync_folders(folders)
    assert library.synced == [os.fstat(files[0]).st_ino, os.stat(folders[0]).st_ino]


@pytest.mark.parametrize("library", [None, Library(kind=0x6969), Library(kind=0x65735546), Library(fails=True)])
def test_fsync_is_the_way_elsewhere(monkeypatch: pytest.MonkeyPatch, files: list[int], library: Any) -> None:
    use(monkeypatch, library)
    assert not sync_files(files)


def test_fsync_is_the_way_for_few_and_while_others_write(
    monkeypatch: pytest.MonkeyPatch, files: list[int], tmp_path: Path
) -> None:
    library = Library()
    use(monkeypatch, library)
    assert not sync_files(files[:3])
    assert not sync_folders([str(tmp_path)] * 3)
    assert not sync_folders([str(tmp_path / "missing")] * 5)
    use(monkeypatch, library, waiting_kb=1 << 20)
    assert not sync_files(files)
    assert library.synced == []


@pytest.mark.parametrize(
    ("release", "is_taken"), [("5.7.19", False), ("4.19.0-6", False), ("5.8.0", True), ("x", False)]
)
def test_kernels_that_tell_no_errors_are_not_asked(
    monkeypatch: pytest.MonkeyPatch, release: str, is_taken: bool
) -> None:
    if durable._library() is None and is_taken:
        pytest.skip("no syncfs here")
    durable._library.cache_clear()
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.release", lambda: release)
    try:
        assert (durable._library() is not None) == is_taken
    finally:
        durable._library.cache_clear()
