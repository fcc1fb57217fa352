"""File locks that the system releases when their holder dies.

Not filelock's: before 4.3 it truncates the file whose content, the holder's mark, is shown; since then it requires
Python 3.11, and its locks do not tell their holder either.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from variegate.io.files import StrPath

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    # Windows does not let others read a locked region.
    _MARK_AT = 1
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    _MARK_AT = 0

_MARK_LENGTH = 64
# What file systems without locks say, some network disks among them.
_WITHOUT = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)
# Attempts, because another process may remove the folder just after it was made.
_TURNS = 100


class FileLock:
    """Held by one process at a time, by whichever of its threads; the caller keeps its threads apart."""

    def __init__(self, path: StrPath) -> None:
        self.path = os.fspath(path)
        self._descriptor: int | None = None

    def acquire(self, while_waiting: Callable[[float], object] | None = None) -> None:
        """Make the file and its folder, and wait until it is ours, calling ``while_waiting`` with the seconds so far.

        Without that function, raises BlockingIOError with the holder's mark where another process holds it. Returns
        without the lock on file systems without locks, such as some network disks. Raises OSError.
        """
        turns = 0
        began = time.monotonic()
        pause = 0.01
        while self._descriptor is None:
            try:
                os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            except FileNotFoundError:
                # Whoever held the lock has removed the folder just now; or nothing can be made there, as below /proc.
                turns += 1
                if turns == _TURNS:
                    raise
                continue
            try:
                while not _is_ours(descriptor):
                    if while_waiting is None:
                        raise BlockingIOError(_mark_in(descriptor))
                    while_waiting(time.monotonic() - began)
                    time.sleep(pause)
                    pause = min(2 * pause, 0.2)
                # Otherwise the holder before us removed the file after we had opened it: its lock keeps nobody out.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), os.stat(self.path)):
                        self._descriptor = descriptor
            except OSError as error:
                if error.errno in _WITHOUT:
                    return
                raise
            finally:
                if self._descriptor is None:
                    os.close(descriptor)

    def release(self, remove: bool = False) -> None:
        """Let the next one have it, as the end of the process does; ``remove``: with the file, held or not."""
        if remove:
            with suppress(OSError):
                os.unlink(self.path)  # still locked: whoever waits for it now would find another file under the name
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def write_mark(self, text: str) -> None:
        """Leave a line of ASCII to the next holders."""
        if self._descriptor is not None:
            with suppress(OSError):  # on a full disk the lock holds without a mark
                os.lseek(self._descriptor, _MARK_AT, os.SEEK_SET)
                os.write(self._descriptor, text.ljust(_MARK_LENGTH).encode("ascii"))


@contextmanager
def exclusive_lock(path: StrPath) -> Iterator[None]:
    """Wait for the others, where there are locks. Raises OSError where the file cannot be made."""
    lock = FileLock(path)
    lock.acquire(lambda _: None)
    try:
        yield
    finally:
        lock.release()


def _mark_in(descriptor: int) -> str:
    with suppress(OSError):
        os.lseek(descriptor, _MARK_AT, os.SEEK_SET)
        return os.read(descriptor, _MARK_LENGTH).decode("ascii", "replace").strip()
    return ""


def _is_ours(descriptor: int) -> bool:
    """Raises OSError where files cannot be locked."""
    try:
        _try_lock(descriptor)
    except (BlockingIOError, PermissionError):  # what Unix says, and Windows
        return False
    return True
