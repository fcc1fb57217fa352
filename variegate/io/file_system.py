"""Everything that waits to be written to a file system, written at once: ``syncfs`` of Linux.

``fsync`` of a small new file costs a commit of the file system's journal or a flush of the disk's cache, for each file.
One ``syncfs`` costs as much as one of them, however many files wait. But it waits for what others have written to the
same file system, too, and not every kind of file system means by it what ``fsync`` means.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

# Local ones, whose syncfs waits for data and journal and empties the disk's cache: ext2 to ext4, XFS, btrfs.
_KINDS = {0xEF53, 0x58465342, 0x9123683E}
# Before, syncfs did not tell of what could not be written.
_TELLS_ERRORS = (5, 8)
# Of the whole machine: with more, there is somebody else whose writing would be waited for.
_MOST_WAITING_KB = 32 << 10
_MANY = 4
_ROOM_FOR_STATFS = 256


def sync_files(descriptors: Sequence[int]) -> bool:
    """True: what was written to these files, of one file system, outlasts a power failure. False where that is not
    known, as they are few, or it would take long, or failed for any file there: ``fsync`` is the way then."""
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
    """The C library; None without the two functions, or with a kernel of which they are not what is wanted."""
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
