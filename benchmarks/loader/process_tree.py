"""What a process and all that it started use, from Linux's /proc."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import TracebackType

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
SAMPLE_SECONDS = 0.1
IDLE_SHARE, IDLE_SECONDS, IDLE_TIMEOUT = 0.05, 0.2, 15.0


def available() -> bool:
    return (PROC / "self" / "smaps_rollup").exists()


def members(root: int) -> list[int]:
    """``root`` and its descendants."""
    children: dict[int, list[int]] = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            fields = _stat(int(folder.name))
            if fields is not None:
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [root]
    for process in found:  # grows while it is walked
        found += children.get(process, [])
    return found


def cpu_seconds(root: int) -> float:
    """Processor time of the tree's living processes and of those that ended and were waited for."""
    stats = [_stat(process) for process in members(root)]
    return sum(sum(map(int, fields[11:15])) for fields in stats if fields is not None) / TICKS


def memory_bytes(root: int) -> tuple[int, int]:
    """(PSS, RSS) summed over the tree. A page that several processes share counts once in PSS, in RSS for each."""
    pss = rss = 0
    for process in members(root):
        try:
            lines = (PROC / str(process) / "smaps_rollup").read_text().splitlines()
        except OSError:  # it has just ended
            continue
        sizes = {line.split(":")[0]: line.split() for line in lines}
        pss += int(sizes["Pss"][1]) * 1024 if "Pss" in sizes else 0
        rss += int(sizes["Rss"][1]) * 1024 if "Rss" in sizes else 0
    return pss, rss


def wait_until_idle(root: int) -> None:
    """Until the tree has used next to no processor time for a moment: what was asked for ahead has been made."""
    give_up = time.perf_counter() + IDLE_TIMEOUT
    while time.perf_counter() < give_up:
        before = cpu_seconds(root)
        time.sleep(IDLE_SECONDS)
        if cpu_seconds(root) - before <= IDLE_SHARE * IDLE_SECONDS:
            return


class PeakMemory:
    """The largest PSS and RSS of a tree while the block runs, looked at ten times a second from outside of it."""

    def __init__(self, root: int) -> None:
        self.root, self.pss, self.rss = root, 0, 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            pss, rss = memory_bytes(self.root)
            self.pss, self.rss = max(self.pss, pss), max(self.rss, rss)


def _stat(process: int) -> list[str] | None:
    """The fields of /proc/N/stat after the name, which may hold spaces; None where the process has ended."""
    try:
        return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
