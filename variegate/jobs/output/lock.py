"""One run at a time in a folder: another is named by its process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from variegate.formats.base import SourceError
from variegate.io.durable import write_errors_name
from variegate.io.lock import FileLock


def acquire(path: str | os.PathLike[str], shown: str, kind: str = "folder") -> FileLock:
    """A lock, not held where there are none (on Windows, on some network disks). The file may be removed while it is
    locked. ``kind``: what ``shown`` is. Raises SourceError where another process, or this one, holds it."""
    lock = FileLock(path)
    if os.name == "nt":  # where a file that is locked could not be removed
        return lock
    with write_errors_name(shown):
        try:
            lock.acquire()
        except BlockingIOError as error:
            holder = str(error)
            who = f"another run (process {holder})" if holder else "another run"
            raise SourceError(
                f"{shown}: {who} is writing there; wait until it has ended, or choose another {kind}"
            ) from None
    lock.write_mark(str(os.getpid()))
    return lock


@contextmanager
def locked(path: str | os.PathLike[str], shown: str, kind: str = "folder") -> Iterator[None]:
    """``acquire`` for as long as the context lasts; then the file is removed. That of a killed holder is taken over."""
    lock = acquire(path, shown, kind)
    try:
        yield
    finally:
        lock.release(remove=True)
