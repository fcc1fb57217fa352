"""Copies of the repository, in each of which one defect at a time is planted and tests are run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.strength import first_failure

LIBRARY = Path("variegate/_native.so")


@dataclass(frozen=True)
class Outcome:
    """Of a run of pytest: its exit code (None: it took too long), and what the plugin noted."""

    code: int | None
    failed: str | None
    uncollected: str | None
    last_begun: str | None


def copy_clean(root: Path, clean: Path) -> None:
    """Copy every file that git tracks, as it stands in the working tree, and the compiled library."""
    _compile(root)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    for path in [*(root / name for name in listed.split("\0") if name), root / LIBRARY]:
        if path.is_file():  # a tracked file may be gone from the working tree
            target = clean / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)


def _compile(root: Path) -> None:
    subprocess.run([sys.executable, "native/build.py"], cwd=root, check=True, stdout=subprocess.DEVNULL)


class Slot:
    """A folder that is made anew, of links to the clean files, for each defect."""

    def __init__(self, clean: Path, folder: Path) -> None:
        self.clean, self.folder = clean, folder
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def restore(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.clean, self.folder, copy_function=os.link)

    def plant(self, path: Path, text: str) -> None:
        """Let the file at ``path``, seen from the root, hold ``text``; C++ is compiled."""
        place = self.folder / path
        place.unlink()  # a link: writing into it would change the clean file
        place.write_text(text, encoding="utf-8")
        if path.suffix == ".cpp":
            _compile(self.folder)

    def run_tests(self, arguments: list[str], seconds: float) -> Outcome:
        """Run pytest with ``arguments``; kill it, with all that it has started, after ``seconds``."""
        if self._is_closed:
            raise RuntimeError(f"{self.folder} was given up while its tests ran")
        notes = self.folder.with_suffix(".notes")
        notes.write_text("")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        process = self._process = subprocess.Popen(
            [*command, "-p", first_failure.__name__, *arguments],
            cwd=self.folder,
            env={**_environment(self.folder), first_failure.NOTES: str(notes)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        code: int | None = None
        try:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(seconds)
        finally:
            self._stop()
        lines = notes.read_text(encoding="utf-8").splitlines()
        return Outcome(code, _first("failed", lines), _first("uncollected", lines), _first("began", lines[::-1]))

    def close(self) -> None:
        """Give the slot up, from another thread: what runs in it ends, and nothing more begins."""
        self._is_closed = True
        self._stop()

    def _stop(self) -> None:
        """End the run, with everything that it has started and left."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}


def _first(word: str, lines: list[str]) -> str | None:
    return next((line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")), None)
