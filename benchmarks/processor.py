"""Processor time of a process and of all that it started, from Linux's /proc."""

from __future__ import annotations

import os
import time
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def process_tree(root: int) -> list[int]:
    """``root`` and its descendants."""
    children: dict[int, list[int]] = {}
    for folder in PROC.iterdir():
        fields = _stat(folder.name) if folder.name.isdigit() else None
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [root]
    for process in found:  # grows while it is traversed
        found += children.get(process, [])
    return found


def cpu_seconds(root: int) -> float:
    """Processor time of the tree's living processes, and of ended children that were waited for."""
    stats = [_stat(str(process)) for process in process_tree(root)]
    return sum(sum(map(int, fields[11:15])) for fields in stats if fields is not None) / TICKS


def wait_until_idle(root: int) -> None:
    """Wait until the tree uses almost no processor time: prefetched batches must not take cores from the next
    library."""
    end = time.perf_counter() + 15.0
    while time.perf_counter() < end:
        before = cpu_seconds(root)
        time.sleep(0.2)
        if cpu_seconds(root) - before <= 0.01:
            return


def _stat(process: str) -> list[str] | None:
    """The fields of /proc/N/stat after the name, which may have spaces; None if the process has ended."""
    try:
        return (PROC / process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
