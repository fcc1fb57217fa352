"""Open and read regular files of this machine, without blocking on pipes or devices."""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO
from threading import Lock
from typing import TypeAlias

from variegate.io.amounts import format_limit

StrPath: TypeAlias = str | os.PathLike[str]
"""A path of this machine; where the function says so, an address."""

# Largest file that is read into memory at once. Pixels that ``max_pixels`` lets through, stored raw with 16 bits and
# four channels, are less.
MOST_BYTES = 2 << 30
# Of text that people or small programs write: policies, settings, names of classes.
MOST_TEXT_BYTES = 64 << 20

BINARY = getattr(os, "O_BINARY", 0)  # Windows then changes no line ends
# A pipe without a writer is then opened at once, and a terminal does not become ours.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | BINARY
_MOVING = Lock()
_PIECE = 1 << 20
_LITTLE = 4096
_KINDS = (
    (stat.S_ISFIFO, "a named pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NotRegularError(OSError):
    """A FIFO, socket or device, also at the end of a symbolic link; ``strerror`` and ``kind`` say which."""

    kind = "no regular file"


class TooLargeError(OSError):
    """A file of more bytes than a reader takes; ``strerror`` names the limit."""


def check_regular(path: StrPath) -> os.stat_result:
    """Status of a regular file. Raises NotRegularError, IsADirectoryError or another OSError."""
    found = os.stat(path)
    _check_kind(found.st_mode, path)
    return found


def open_regular(path: StrPath) -> FileIO:
    """A file opened for reading, unbuffered. Raises as ``check_regular``."""
    descriptor, _ = _open(path)
    try:
        return FileIO(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_at(descriptor: int, into: memoryview, offset: int) -> int:
    """Read into a buffer at an offset, from any thread. Returns the number of bytes read. Raises OSError."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [into], offset)
    with _MOVING:  # on Windows, where threads share the position in a file
        os.lseek(descriptor, offset, os.SEEK_SET)
        data = os.read(descriptor, len(into))
    into[: len(data)] = data
    return len(data)


def write_at(descriptor: int, data: memoryview, offset: int) -> int:
    """Write bytes at an offset, from any thread. Returns the number of bytes written. Raises OSError."""
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, offset)
    with _MOVING:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.write(descriptor, data)


def read_regular(path: StrPath, most: int = MOST_BYTES) -> bytes:
    """All bytes. Raises as ``check_regular``, and TooLargeError for more than ``most``, also if they come meanwhile."""
    descriptor, size = _open(path)
    try:
        return _read_to_end(descriptor, size, path, most)
    finally:
        os.close(descriptor)


def _open(path: StrPath) -> tuple[int, int]:
    """A descriptor and the size. Checked before, as opening a device may do something, and after."""
    check_regular(path)
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        _check_kind(status.st_mode, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status.st_size


def _read_to_end(descriptor: int, size: int, path: StrPath, most: int) -> bytes:
    if size > most:
        raise _too_large(path, most)
    parts: list[bytes] = []
    count = 0
    # Ask for one byte more than the size, so that a single call shows the end of nearly every file. Files in /proc
    # report no size.
    wanted = size + 1 if size else _PIECE
    while count <= most:
        asked = min(wanted, most + 1 - count)
        part = os.read(descriptor, asked)
        if not part:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        if not parts and len(part) == size:
            return part
        parts.append(part)
        count += len(part)
        # Fewer than asked for are nearly always the last; memory for many more would cost as much as reading did.
        wanted = _PIECE if len(part) == asked else _LITTLE
    raise _too_large(path, most)


def _check_kind(mode: int, path: StrPath) -> None:
    if stat.S_ISREG(mode):
        return
    place = os.fspath(path)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "a folder, not a file", place)
    kind = next((name for test, name in _KINDS if test(mode)), NotRegularError.kind)
    error = NotRegularError(errno.EINVAL, f"{kind}; accepted: regular files, and links to them", place)
    error.kind = kind
    raise error


def _too_large(path: StrPath, most: int) -> TooLargeError:
    return TooLargeError(
        errno.EFBIG, f"more than {format_limit(most)}, the most that is read of such a file", os.fspath(path)
    )
