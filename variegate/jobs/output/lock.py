"""One run at a time in a folder: a lock that its holder's death releases."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from variegate.formats.base import SourceError
from variegate.io.durable import write_error

# What file systems without locks say, some network disks among them.
_WITHOUT = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)
# So often somebody may remove the folder that is made.
_TURNS = 100


def acquire(path: str, shown: str, kind: str = "folder") -> int | None:
    """Lock the file, which is made with its folder -> a descriptor, to be closed; None where there are no locks (on
    Windows, on some network disks). The file may be removed while it is locked. ``kind``: what ``shown`` is.

    Raises SourceError where another process, or this one, holds it.
    """
    try:
        import fcntl
    except ImportError:
        return None
    turns = 0
    while True:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError as error:
            # Whoever held the lock has removed the folder just now; or nothing can be made there, as below /proc.
            turns += 1
            if turns == _TURNS:
                raise write_error(error, shown) from error
            continue
        except OSError as error:
            raise write_error(error, shown) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same(descriptor, path):
                _sign(descriptor)
                return descriptor
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip()
            who = f"another run (process {holder})" if holder else "another run"
            os.close(descriptor)
            raise SourceError(
                f"{shown}: {who} is writing there; wait until it has ended, or choose another {kind}"
            ) from None
        except OSError as error:
            os.close(descriptor)
            if error.errno in _WITHOUT:
                return None
            raise write_error(error, shown) from error
        os.close(descriptor)


@contextmanager
def locked(path: str | os.PathLike[str], shown: str, kind: str = "folder") -> Iterator[None]:
    """``acquire`` for as long as the context lasts; then the file is removed. Of a holder that was killed the file
    stays, and is taken over by the next."""
    path = os.fspath(path)
    descriptor = acquire(path, shown, kind)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)  # still locked: whoever waits for it now would find another file under the name
        if descriptor is not None:
            os.close(descriptor)


def _is_same(descriptor: int, path: str) -> bool:
    """False where the holder before us removed the file after we had opened it: its lock keeps nobody out."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _sign(descriptor: int) -> None:
    with suppress(OSError):  # on a full disk the lock holds without a name
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
