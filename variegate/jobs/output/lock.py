"""One run at a time in a folder: a lock that its holder's death releases."""

# Not filelock's, which truncates the file whose content, the holder's number, the message shows.

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
        except OSError as error:
            # Whoever held the lock has removed the folder just now; or nothing can be made there, as below /proc.
            turns += 1
            if isinstance(error, FileNotFoundError) and turns < _TURNS:
                continue
            raise write_error(error, shown) from error
        is_ours = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Otherwise the holder before us removed the file after we had opened it: its lock keeps nobody out.
            with suppress(FileNotFoundError):
                is_ours = os.path.samestat(os.fstat(descriptor), os.stat(path))
            if is_ours:
                with suppress(OSError):  # on a full disk the lock holds without a name
                    os.ftruncate(descriptor, 0)
                    os.write(descriptor, f"{os.getpid()}\n".encode())
                return descriptor
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip()
            who = f"another run (process {holder})" if holder else "another run"
            raise SourceError(
                f"{shown}: {who} is writing there; wait until it has ended, or choose another {kind}"
            ) from None
        except OSError as error:
            if error.errno in _WITHOUT:
                return None
            raise write_error(error, shown) from error
        finally:
            if not is_ours:
                os.close(descriptor)


@contextmanager
def locked(path: str | os.PathLike[str], shown: str, kind: str = "folder") -> Iterator[None]:
    """``acquire`` for as long as the context lasts; then the file is removed. That of a killed holder is taken over."""
    path = os.fspath(path)
    descriptor = acquire(path, shown, kind)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)  # still locked: whoever waits for it now would find another file under the name
        if descriptor is not None:
            os.close(descriptor)
