"""Single files on a disk of this machine, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Write under a temporary name beside ``path``, then rename: a reader sees the old file, or the whole new one.

    The temporary name begins with a dot, which listings pass over, and is always the same, so that a killed run
    leaves at most one per thread, which the next run replaces.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
