"""Single files on a disk of this machine, whole or not at all."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from variegate.outside.files import check_regular
from variegate.sinks.storage import write_error


def write_atomically(path: Path, data: bytes, durable: bool = False) -> None:
    """Write under a temporary name beside ``path``, then rename: a reader sees the old file, or the whole new one.

    ``durable``: it outlasts a power failure when this returns, and so do the folders that were made for it.

    The temporary name begins with a dot, which listings pass over, and is always the same, so that a killed run
    leaves at most one per thread, which the next run replaces. Raises WriteError, which names ``path``.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        # Renaming would put a file in the place of a pipe, or of a device such as /dev/null.
        with suppress(FileNotFoundError):
            check_regular(path)
        if durable:
            make_folder(path.parent)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb", buffering=0) as file:
                write_all(file.fileno(), data)
                if durable:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        raise write_error(error, str(path)) from error


def write_all(descriptor: int, data: bytes) -> None:
    """A system call may write less than all, the last one before the disk is full for one."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(path: str | os.PathLike[str]) -> None:
    """The names in the folder outlast a power failure when this returns. Raises OSError."""
    if os.name == "nt":  # where folders cannot be opened, and renaming is durable without
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # File systems without such a thing say so in these words.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """With those around it; what was made outlasts a power failure. Raises WriteError."""
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        for made in missing:
            sync_folder(made.parent)
    except OSError as error:
        raise write_error(error, str(path)) from error
