"""A file system of some hundred kilobytes, where this machine lets us mount one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class TinyDisk:
    def __init__(self, root: Path) -> None:
        self.root = root

    def grow(self) -> None:
        subprocess.run(["mount", "-o", "remount,size=32m", str(self.root)], check=True, timeout=10)


@contextmanager
def tiny_disk(root: Path, kilobytes: int) -> Iterator[TinyDisk]:
    """Skips the test where mounting is not allowed."""
    if shutil.which("mount") is None:
        pytest.skip("there is no mount command")
    root.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(root)]
    mounted = subprocess.run(mounting, capture_output=True, text=True, check=False, timeout=10)
    if mounted.returncode != 0:
        pytest.skip(f"mounting a tmpfs is not allowed here: {mounted.stderr.strip()}")
    try:
        yield TinyDisk(root)
    finally:
        subprocess.run(["umount", "-l", str(root)], check=True, timeout=10)
