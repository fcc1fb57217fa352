"""Runs of ``variegate augment`` or ``pack`` that are killed, and what is left when the command is given again."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

TARGETS = ("parent", "worker")
_LONGEST_RUN = 300.0


@dataclass
class Kills:
    """Kills the command at random moments, again and again, and checks every destination that gets complete.

    ``arguments``: of ``variegate augment SRC DST``, after these. ``reference``: what a run that nobody kills makes;
    None makes it. Counts what happened.
    """

    source: Path
    work: Path
    arguments: Sequence[str]
    seed: int = 0
    reference: Path | None = None
    command: str = "augment"
    killed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TARGETS, 0))
    compared: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._destination = 0
        self.seconds = 0.0  # of a run after its start; 0: not known
        if self.reference is None:
            self.reference = self.work / "reference"
            process, began = self._start(self.reference)
            self._end(process)
            self.seconds = time.monotonic() - began
        self.expected = digest(self.reference)
        assert "manifest.parquet" in self.expected

    def kill(self, target: str) -> None:
        """Start or resume a run, and kill it, or a worker of it, at a random moment; then perhaps complete it."""
        out = self.work / f"out{self._destination}"
        process, began = self._start(out)
        self._wait(process, out, began)
        victims = [process.pid] if target == "parent" else workers_of(process.pid)
        if process.poll() is None and victims:
            os.kill(self._random.choice(victims), signal.SIGKILL)
            self.killed[target] += 1
        if target == "worker" or process.poll() is not None:
            self._end(process)  # the others do its work
        else:
            process.communicate(timeout=_LONGEST_RUN)
        if (out / "manifest.parquet").exists():
            self._compare(out)
        elif self._random.random() < 0.5:
            self.complete()

    def complete(self) -> None:
        """Give the same command again, and compare with the run that nobody killed."""
        out = self.work / f"out{self._destination}"
        process, _ = self._start(out)
        self._end(process)
        self._compare(out)

    def _compare(self, out: Path) -> None:
        found = digest(out)
        different = sorted(name for name in {*found, *self.expected} if found.get(name) != self.expected.get(name))
        assert different == [], f"{out}: differs from the run without kills in {different[:5]}"
        self.compared += 1
        self._destination += 1

    def _wait(self, process: subprocess.Popen[str], out: Path, began: float) -> None:
        """Until a moment of the run's time, its beginning and its end included, or of its work."""
        moment, files = float("inf"), float("inf")
        if self.seconds and self._random.random() < 0.5:
            moment = began + self._random.uniform(0, 1.1 * self.seconds)
        else:
            files = self._random.uniform(0.05, 0.9) * len(self.expected)
        while process.poll() is None and time.monotonic() < moment and _count(out) < files:
            time.sleep(0.002)

    def _start(self, out: Path) -> tuple[subprocess.Popen[str], float]:
        """-> the process, and the time when it had claimed its destination."""
        command = [sys.executable, "-m", "variegate", self.command, str(self.source), str(out), *self.arguments]
        is_new = not out.exists()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while is_new and not out.exists() and process.poll() is None:
            time.sleep(0.002)
        return process, time.monotonic()

    def _end(self, process: subprocess.Popen[str]) -> None:
        try:
            _, said = process.communicate(timeout=_LONGEST_RUN)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert process.returncode == 0, said


def _count(root: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(root))


def workers_of(pid: int) -> list[int]:
    """The worker processes of a run (Linux)."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(child) for child in children if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def digest(root: Path) -> dict[str, str]:
    """Checksums of all files, hidden ones too."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
