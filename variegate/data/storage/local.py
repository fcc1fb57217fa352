"""A folder of this machine, or one that is mounted there."""

from __future__ import annotations

import errno
import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from variegate.data.base import SourceError
from variegate.data.storage.base import TEMPORARY, FileWriter, Storage, check_relative
from variegate.io.durable import make_folder, sync_files, sync_folder, sync_folders, write_all, write_error
from variegate.io.files import open_regular, read_regular

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class LocalStorage(Storage):
    """Files are written under temporary names in one folder below the root, fsynced and renamed; ``sync`` fsyncs the
    folders of those names. A copy that was pickled after ``prepare`` does not make the folder of temporary names again:
    should a run have ended without its workers, they fail instead of leaving files behind."""

    is_remote = False

    def __init__(self, root: str) -> None:
        if not root:
            raise SourceError("an empty path; accepted: a folder to write to, or an address")
        self.shown = root
        self.root = os.path.abspath(root)
        self._is_prepared = False
        self._set_up()

    def _set_up(self) -> None:
        self._lock = threading.Lock()
        self._syncing = threading.Lock()
        self._touched: set[str] = set()
        self._known: set[str] = set()

    def prepare(self) -> None:
        with self._named("", "written" if os.path.isdir(self.root) else "made"):
            make_folder(Path(self._path(TEMPORARY)))
        self._is_prepared = True

    def write(self, relative: str, data: bytes) -> None:
        self.write_many([(relative, data)])

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        # Syncing many files at once costs a fraction of syncing each; starting all writes before waiting for any saves
        # half of that.
        paths = [self._path(relative) for relative, _ in files]
        opened: list[tuple[int, str]] = []
        renamed = 0
        try:
            for relative, data in files:
                with self._named(relative):
                    opened.append(self._new_file())
                    write_all(opened[-1][0], data)
            if not sync_files([descriptor for descriptor, _ in opened]):
                for descriptor, _ in opened:
                    _begin_writing(descriptor)
                for (relative, _), (descriptor, _) in zip(files, opened, strict=True):
                    with self._named(relative):
                        os.fsync(descriptor)
            for (relative, _), path, (_, temporary) in zip(files, paths, opened, strict=True):
                with self._named(relative):
                    self._put(temporary, path)
                renamed += 1
        finally:
            for descriptor, _ in opened:
                os.close(descriptor)
            for _, temporary in opened[renamed:]:
                with suppress(OSError):
                    os.unlink(temporary)
            for folder in {os.path.dirname(path) for path in paths[:renamed]}:
                self._touch(folder)

    def writer(self, relative: str) -> FileWriter:
        path = self._path(relative)
        with self._named(relative):
            descriptor, temporary = self._new_file()

        def put(temporary: str) -> None:
            self._put(temporary, path)
            self._touch(os.path.dirname(path))

        return FileWriter(descriptor, temporary, self.place_of(relative), put, is_synced=True)

    def sync(self) -> None:
        # One thread at a time: a thread that finds nothing to do has waited for the others.
        with self._syncing:
            with self._lock:
                touched = self._touched
                self._touched = set()
            try:
                innermost_first = sorted(touched, key=len, reverse=True)
                for folder in [] if sync_folders(innermost_first) else innermost_first:
                    with self._named(os.path.relpath(folder, self.root) if folder != self.root else ""):
                        sync_folder(folder)
            except BaseException:
                with self._lock:
                    self._touched |= touched
                raise

    def read(self, relative: str) -> bytes:
        with self._named(relative, "read"):
            return read_regular(self._path(relative))

    def open(self, relative: str) -> BinaryIO:
        with self._named(relative, "read"):
            return cast(BinaryIO, open_regular(self._path(relative)))

    def exists(self, relative: str) -> bool:
        return os.path.exists(self._path(relative))

    def list(self, relative: str = "") -> Sequence[str]:
        path = self._path(relative) if relative else self.root
        try:
            with self._named(relative, "listed"), os.scandir(path) as entries:
                return sorted(entry.name + "/" * entry.is_dir() for entry in entries)
        except FileNotFoundError:
            return []

    def sizes(self, relative: str = "") -> dict[str, int]:
        path = self._path(relative) if relative else self.root
        found: dict[str, int] = {}
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(path) as entries:
            for entry in entries:
                with suppress(OSError):  # gone by now, or a link to nothing
                    if entry.is_file():
                        found[entry.name] = entry.stat().st_size
        return found

    def remove(self, relative: str) -> None:
        path = self._path(relative)
        with suppress(FileNotFoundError), self._named(relative, "removed"):
            os.unlink(path)
            self._touch(os.path.dirname(path))

    def remove_tree(self, relative: str) -> None:
        path = self._path(relative)
        with self._named(relative, "removed"):
            if os.path.lexists(path):
                _remove_tree(path)
                self._touch(os.path.dirname(path))
        with self._lock:
            for folders in (self._touched, self._known):
                folders -= {folder for folder in folders if folder == path or folder.startswith(path + os.sep)}

    def _path(self, relative: str) -> str:
        return os.path.join(self.root, check_relative(relative))

    @contextmanager
    def _named(self, relative: str, verb: str = "written") -> Iterator[None]:
        """Errors say which file was meant. Of a missing file, only one to be written is an error of writing."""
        try:
            yield
        except FileNotFoundError as error:
            if verb in ("written", "made"):
                raise write_error(error, self.place_of(relative), verb) from error
            raise FileNotFoundError(errno.ENOENT, "no such file", self.place_of(relative)) from None
        except OSError as error:
            raise write_error(error, self.place_of(relative), verb) from error

    def _new_file(self) -> tuple[int, str]:
        folder = self._path(TEMPORARY)
        if not self._is_prepared:
            os.makedirs(folder, exist_ok=True)
        temporary = os.path.join(folder, uuid.uuid4().hex)
        return os.open(temporary, _NEW_FILE, 0o666), temporary

    def _put(self, temporary: str, path: str) -> None:
        try:
            os.replace(temporary, path)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.replace(temporary, path)

    def _touch(self, folder: str) -> None:
        """A name in ``folder`` has changed. The folders around it may be new, so the first time they count as well."""
        with self._lock:
            self._touched.add(folder)
            while folder not in self._known and len(folder) >= len(self.root):
                self._known.add(folder)
                self._touched.add(folder)
                folder = os.path.dirname(folder)

    def __getstate__(self) -> dict[str, Any]:
        return {"root": self.root, "shown": self.shown, "_is_prepared": self._is_prepared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()


def _begin_writing(descriptor: int) -> None:
    """Let the disk begin, and do not wait for it."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _remove_tree(path: str) -> None:
    with suppress(FileNotFoundError):  # somebody else removes it too
        if os.path.isdir(path) and not os.path.islink(path):
            for name in os.listdir(path):
                _remove_tree(os.path.join(path, name))
            os.rmdir(path)
        else:
            os.unlink(path)
