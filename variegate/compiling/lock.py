"""One process at a time: a lock on a file, which the death of its holder releases. The file itself stays."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    # Windows keeps others from reading what is locked.
    _MARK_AT = 1
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    _MARK_AT = 0

_MARK_LENGTH = 64


class ProcessLock:
    """Held by one process at a time, by whichever of its threads; the caller keeps its threads apart."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """True if this process holds the lock."""
        return self._descriptor is not None

    def acquire(self, while_waiting: Callable[[float], None]) -> None:
        """Wait until it is ours, telling ``while_waiting`` the seconds so far, again and again.

        Where a file cannot be made or locked (a folder that is read-only, a full disk, a network disk without locks),
        return without it: nobody is kept out.
        """
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return
        began, pause = time.monotonic(), 0.01
        try:
            while not _is_ours(descriptor):
                while_waiting(time.monotonic() - began)
                time.sleep(pause)
                pause = min(2 * pause, 0.2)
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, OSError):
                return
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Let the next one have it. Closing the file does that, and so does the end of the process."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def read_mark(self) -> str:
        """The mark of the last holder that left one, or ""."""
        if self._descriptor is None:
            return ""
        with suppress(OSError):
            os.lseek(self._descriptor, _MARK_AT, os.SEEK_SET)
            return os.read(self._descriptor, _MARK_LENGTH).decode("ascii", "replace").strip()
        return ""

    def write_mark(self, text: str) -> None:
        """Leave a line of ASCII to the next holders."""
        if self._descriptor is None:
            return
        with suppress(OSError):  # on a full disk the lock holds without a mark
            os.lseek(self._descriptor, _MARK_AT, os.SEEK_SET)
            os.write(self._descriptor, text.ljust(_MARK_LENGTH).encode("ascii"))


def _is_ours(descriptor: int) -> bool:
    """Raises OSError where files cannot be locked."""
    try:
        _try_lock(descriptor)
    except (BlockingIOError, PermissionError):  # what Unix says, and Windows
        return False
    return True
