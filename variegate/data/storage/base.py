"""The interface of places for outputs, whether a folder of this machine or an address that fsspec writes to."""

from __future__ import annotations

import hashlib
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import BinaryIO

from variegate.io.durable import named_write_errors

# A run's private files, below the root; the name begins with a dot, so that listings skip it.
PRIVATE = ".variegate"
TEMPORARY = f"{PRIVATE}/tmp"
_BUFFER_BYTES = 1 << 20


class Descriptor(io.RawIOBase):
    """A written file whose errors name it; ``size`` and ``digest`` are of the written bytes."""

    def __init__(self, descriptor: int, shown: str) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._shown = shown
        self.size = 0
        self.digest = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]
        with named_write_errors(self._shown):
            written = os.write(self._descriptor, view)
        self.digest.update(view.cast("B")[:written])
        self.size += written
        return written

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self._descriptor)


class FileWriter(AbstractContextManager["FileWriter"]):
    """A large file in the making: write to ``file``, then commit; until then nothing is to be seen under its name. As a
    context manager it is discarded at the end, unless it was committed. ``descriptor``: of a new file, ``temporary``,
    which ``put`` brings to its place, whole and closed, and with ``is_synced`` fsynced. Raises WriteError naming
    ``shown``."""

    def __init__(
        self, descriptor: int, temporary: str, shown: str, put: Callable[[str], None], is_synced: bool = False
    ) -> None:
        self.descriptor = Descriptor(descriptor, shown)
        self.file = io.BufferedWriter(self.descriptor, _BUFFER_BYTES)
        self._temporary, self._shown, self._put, self._is_synced = temporary, shown, put, is_synced

    def commit(self) -> None:
        """Publish the complete file; it replaces an existing file of its name. Raises WriteError; it is then
        discarded."""
        try:
            with named_write_errors(self._shown):
                self.file.flush()
                if self._is_synced:
                    os.fsync(self.descriptor.fileno())
                self.file.close()
                self._put(self._temporary)
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove everything written. Does nothing after ``commit``."""
        if not self._temporary:
            return
        with suppress(OSError):  # closing flushes the buffer, for which there may be no room
            self.file.close()
        with suppress(OSError):
            os.unlink(self._temporary)
        self._temporary = ""

    def __exit__(self, *_: object) -> None:
        self.discard()


class Storage(ABC):
    """Files below a root, by relative names with forward slashes. Pickled copies write to the same place; any thread
    may call any method.

    Names that lead out of the root raise ValueError. Everything else that goes wrong is a WriteError (an OSError), or
    for a file that is not there to be read, a FileNotFoundError.
    """

    root: str  # an address may hold a password
    shown: str  # for messages
    is_remote: bool

    @abstractmethod
    def prepare(self) -> None:
        """Make the root and the folder of temporary names; copies pickled afterwards expect them to be there."""

    @abstractmethod
    def write(self, relative: str, data: bytes) -> None:
        """Put a file there, whole or not at all. It outlasts a power failure once ``sync`` has returned."""

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        """``write`` for each (name, data), all at once where that is faster. After an error, every file may or may not
        exist."""
        for relative, data in files:
            self.write(relative, data)

    @abstractmethod
    def sync(self) -> None:
        """Return when all writes and removals through this object are durable."""

    @abstractmethod
    def writer(self, relative: str) -> FileWriter:
        """Open a file for writing in pieces."""

    @abstractmethod
    def read(self, relative: str) -> bytes:
        """Raises FileNotFoundError where it is missing."""

    @abstractmethod
    def open(self, relative: str) -> BinaryIO:
        """Open a large file for reading in pieces or at random. Raises FileNotFoundError where it is missing."""

    def sha256(self, relative: str) -> str:
        """SHA-256 of a file's bytes, in hex. Raises errors of opening and reading."""
        digest = hashlib.sha256()
        with self.open(relative) as file:
            while data := file.read(_BUFFER_BYTES):
                digest.update(data)
        return digest.hexdigest()

    @abstractmethod
    def exists(self, relative: str) -> bool: ...

    @abstractmethod
    def list(self, relative: str = "") -> Sequence[str]:
        """The names right in that folder, sorted, folders with a slash at the end; none where it is missing."""

    @abstractmethod
    def sizes(self, relative: str = "") -> dict[str, int]:
        """Bytes of the files right in that folder, links followed; none where it is missing."""

    @abstractmethod
    def remove(self, relative: str) -> None:
        """Does nothing where it is missing."""

    @abstractmethod
    def remove_tree(self, relative: str) -> None:
        """A folder with all that is in it. Does nothing where it is missing."""

    def place_of(self, relative: str) -> str:
        """The address for messages."""
        return f"{self.shown.rstrip('/')}/{relative}" if relative else self.shown


def check_relative(relative: str) -> str:
    """Raises ValueError for a name that is not one below a folder."""
    parts = relative.replace(os.sep, "/").split("/")
    if os.path.isabs(relative) or os.path.splitdrive(relative)[0] or not {"", ".", ".."}.isdisjoint(parts):
        raise ValueError(f"relative: got {relative!r}; accepted: a name below the root, such as cat/a_0.jpg")
    if "\0" in relative:
        raise ValueError(f"relative: got {relative!r}; accepted: a name without NUL")
    return relative
