"""Where files are put, whole or not at all: a folder of this machine, or an address that fsspec writes to."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Any

# What a run keeps to itself while it goes on, below the root; it begins with a dot, which listings pass over.
PRIVATE = ".variegate"
TEMPORARY = f"{PRIVATE}/tmp"

_FULL = (errno.ENOSPC, errno.EDQUOT)


class WriteError(OSError):
    """A file that cannot be written (or read, or removed); ``filename`` is its place as the user knows it."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class DiskFullError(WriteError):
    """There is no room left; every further write would fail as well."""


def write_error(error: OSError, shown: str) -> WriteError:
    """What the system said of a temporary name or a descriptor, about the file that was meant."""
    if isinstance(error, WriteError):
        return error
    reason = error.strerror or str(error) or type(error).__name__
    if error.errno in _FULL:
        return DiskFullError(error.errno, f"the disk is full ({reason})", shown)
    return WriteError(error.errno or errno.EIO, f"cannot be written ({reason})", shown)


class FileWriter(ABC):
    """A large file in the making. Until ``commit`` nothing of it is to be seen under its name.

    As a context manager it is discarded at the end, unless it was committed. ``file`` is a binary file to write to;
    OSErrors of ``write`` name the file that is being made.
    """

    file: IO[bytes]

    @abstractmethod
    def write(self, data: Any) -> int:
        """Append bytes (or any buffer). Raises WriteError, DiskFullError."""

    @abstractmethod
    def commit(self) -> None:
        """The file is whole, and replaces what had its name. Raises WriteError; it is then discarded."""

    @abstractmethod
    def discard(self) -> None:
        """Nothing is left of it. Does nothing after ``commit``."""

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


class Storage(ABC):
    """Files below a root, by relative names with forward slashes. Pickled copies write to the same place; any thread
    may call any method.

    Names that lead out of the root raise ValueError. Everything else that goes wrong is a WriteError (an OSError), or
    for a file that is not there to be read, a FileNotFoundError.
    """

    root: str  # as given, may hold a password
    shown: str  # for messages
    is_remote: bool

    @abstractmethod
    def prepare(self) -> None:
        """Make the root and the folder of temporary names, so that copies in other processes need not."""

    @abstractmethod
    def write(self, relative: str, data: bytes) -> None:
        """Put a file there, whole or not at all. It lasts (a power failure) once ``sync`` has returned."""

    @abstractmethod
    def sync(self) -> None:
        """Everything written so far through this object lasts when this returns."""

    @abstractmethod
    def writer(self, relative: str) -> FileWriter:
        """For a file made piece by piece."""

    @abstractmethod
    def read(self, relative: str) -> bytes:
        """Raises FileNotFoundError where it is missing."""

    @abstractmethod
    def exists(self, relative: str) -> bool: ...

    @abstractmethod
    def list(self, relative: str = "") -> Sequence[str]:
        """The names right in that folder, sorted, folders with a slash at the end; none where it is missing."""

    @abstractmethod
    def remove(self, relative: str) -> None:
        """A file that is missing is removed already."""

    @abstractmethod
    def remove_tree(self, relative: str) -> None:
        """The folder with all that is in it."""


def open_storage(spec: str | os.PathLike[str]) -> Storage:
    """A folder (by path or ``file://``), or an address such as ``s3://bucket/folder``. Touches nothing yet.

    Raises SourceError for addresses that cannot be written to.
    """
    raise NotImplementedError
