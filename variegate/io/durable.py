"""Files of this machine that are whole whenever they are there, and last: written at once, or a log that grows."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from io import FileIO
from pathlib import Path
from typing import Any

from variegate.io.addresses import redact_text
from variegate.io.files import StrPath, check_regular

_FULL = (errno.ENOSPC, errno.EDQUOT)


class WriteError(OSError):
    """A file that cannot be written, read or removed; ``filename`` is its place as the user knows it."""

    def __str__(self) -> str:
        return redact_text(f"{self.filename}: {self.strerror}")


class DiskFullError(WriteError):
    """The disk is full, so every further write would fail."""


def write_error(error: OSError, shown: str, verb: str = "written") -> WriteError:
    """The system's error about a descriptor or a temporary name, as one about the file that was meant."""
    if isinstance(error, WriteError):
        return error
    reason = error.strerror or str(error) or type(error).__name__
    if error.errno in _FULL:
        return DiskFullError(error.errno, f"the disk is full ({reason})", shown)
    return WriteError(error.errno or errno.EIO, f"cannot be {verb} ({reason})", shown)


@contextmanager
def named_write_errors(shown: str, verb: str = "written") -> Iterator[None]:
    """Errors of the system become WriteError or DiskFullError, and name the file that was meant."""
    try:
        yield
    except OSError as error:
        raise write_error(error, shown, verb) from error


def write_atomically(
    path: Path, data: bytes | Iterable[bytes], durable: bool = False, several_writers: bool = False
) -> None:
    """Write to a temporary file next to ``path``, then rename it: a reader sees the old file or the complete new one.

    Args:
        path: a file; its folder is made.
        data: the content, or pieces of it.
        durable: it outlasts a power failure when this returns, and so do the folders that were made for it.
        several_writers: threads or processes may write the file at the same time. Otherwise the temporary name is
            always the same, so that a killed run leaves at most one such file, which the next run replaces. It begins
            with a dot, so that listings skip it.

    Raises WriteError naming ``path``, and errors of the iterator ``pieces``.
    """
    unique = f".{os.getpid()}-{secrets.token_hex(4)}" if several_writers else ""
    temporary = path.with_name(f".{path.name}{unique}.tmp")
    place = str(path)
    with named_write_errors(place):
        # Renaming would replace a pipe, or a device such as /dev/null, by a file.
        with suppress(FileNotFoundError):
            check_regular(path)
        if durable:
            make_folder(path.parent)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
        file = open(temporary, "wb", buffering=0)  # noqa: SIM115
    try:
        with file:
            for piece in [data] if isinstance(data, bytes) else data:
                with named_write_errors(place):
                    write_all(file.fileno(), piece)
        with named_write_errors(place):
            if durable:
                publish(temporary, path)
            else:
                os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def publish(temporary: Path, path: Path) -> None:
    """Rename a finished file or folder to its final name, replacing any existing one. Both outlast a power failure
    then; of a folder, its files must have been synced. Raises OSError."""
    if temporary.is_dir():
        sync_folder(temporary)
    else:
        with open(temporary, "r+b", buffering=0) as file:  # Windows syncs no file that is opened to be read
            os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_folder(path.parent)


class AppendOnlyFile:
    """An append-only log that survives crashes: appended bytes last, and nothing else is found before ``end``.

    ``path``: is made if missing, without making its name last (``sync_folder`` does). ``end``: length of the valid
    content; bytes behind it, from a killed process, are cut off. ``first``: the log's first bytes, written together
    with its name. ``is_synced``: False if a power failure may lose appended bytes. For one thread. Raises
    WriteError naming ``shown``.
    """

    def __init__(self, path: StrPath, shown: str, end: int, first: bytes = b"", is_synced: bool = True) -> None:
        self._shown = shown
        self._is_synced = is_synced
        self.end = end
        with named_write_errors(shown):
            # Unbuffered, so that closing the file does not retry a failed write.
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file = FileIO(os.open(path, flags, 0o666), "r+b")
        try:
            self._is_torn = os.fstat(self._file.fileno()).st_size > end
            if self._is_torn or (first and not end):
                self.append(b"" if end else first)
            if first:
                with named_write_errors(shown):
                    sync_folder(os.path.dirname(path) or ".")
        except BaseException:
            self.close()
            raise

    def append(self, data: bytes) -> None:
        """Append durably. After a WriteError it may be called again: nothing is left of the first try."""
        descriptor = self._file.fileno()
        with named_write_errors(self._shown):
            if self._is_torn:
                os.ftruncate(descriptor, self.end)
            self._is_torn = True
            os.lseek(descriptor, self.end, os.SEEK_SET)
            write_all(descriptor, data)
            if self._is_synced:
                os.fsync(descriptor)
        self._is_torn = False
        self.end += len(data)

    def read(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(length)

    def close(self) -> None:
        self._file.close()


def write_all(descriptor: int, data: bytes) -> None:
    """A system call may write less than all, the last one before the disk is full for one. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(path: StrPath) -> None:
    """The names in the folder outlast a power failure when this returns. Raises OSError."""
    if os.name == "nt":  # where folders cannot be opened, and renaming is durable without
        return
    descriptor = os.open(os.fspath(path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # File systems without such a thing say so in these words.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, durably: they survive a power failure. Raises OSError."""
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    path.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync_folder(made.parent)


# Local ones, whose syncfs waits for data and journal and empties the disk's cache: ext2 to ext4, XFS, btrfs.
_KINDS = {0xEF53, 0x58465342, 0x9123683E}
# Earlier versions of syncfs did not report failed writes.
_TELLS_ERRORS = (5, 8)
# Of the whole machine: with more, there is somebody else whose writing would be waited for.
_MOST_WAITING_KB = 32 << 10
_MANY = 4
_ROOM_FOR_STATFS = 256


def sync_files(descriptors: Sequence[int]) -> bool:
    """Sync the data of these files of one file system. Returns True if the system could. False where that is not known:
    ``fsync`` each."""
    return len(descriptors) >= _MANY and _sync(descriptors[0])


def sync_folders(paths: Sequence[str]) -> bool:
    """The same of the names in folders."""
    if len(paths) < _MANY:
        return False
    try:
        if len({os.stat(path).st_dev for path in paths}) > 1:
            return False
        descriptor = os.open(paths[0], os.O_RDONLY)
        try:
            return _sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        return False


def _sync(descriptor: int) -> bool:
    library = _library()
    if library is None or not _is_suitable(library, descriptor) or not _little_waits():
        return False
    return bool(library.syncfs(descriptor) == 0)


@cache
def _library() -> Any:
    """The C library; None without the two functions, or with a kernel on which they do less."""
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    if platform.system() != "Linux" or release is None or tuple(map(int, release.groups())) < _TELLS_ERRORS:
        return None
    try:
        library = ctypes.CDLL(None)
        library.syncfs.argtypes = (ctypes.c_int,)
        library.fstatfs.argtypes = (ctypes.c_int, ctypes.c_void_p)
    except (OSError, AttributeError):
        return None
    return library


def _is_suitable(library: Any, descriptor: int) -> bool:
    status = ctypes.create_string_buffer(_ROOM_FOR_STATFS)
    if library.fstatfs(descriptor, status) != 0:
        return False
    return ctypes.c_long.from_buffer(status).value in _KINDS  # its first field


def _little_waits() -> bool:
    try:
        with open("/proc/meminfo", "rb", buffering=0) as file:
            text = file.read(1 << 14)
    except OSError:
        return False
    waiting = re.findall(rb"^(?:Dirty|Writeback):\s*(\d+) kB", text, re.MULTILINE)
    return len(waiting) == 2 and sum(map(int, waiting)) <= _MOST_WAITING_KB
