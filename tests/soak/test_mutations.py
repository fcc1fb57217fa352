"""The soak itself, in small; and the kernels once with every index checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.process
def test_kernels_with_every_index_checked(tmp_path: Path) -> None:
    """Compiled anew, with checks, in a process and a folder of its own."""
    surroundings = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    names = ("outlines", "yolo", "index", "jpeg")
    command = [sys.executable, "-m", "tests.soak.mutations", *names, "--count", "200", "--seconds", "60"]
    run = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("faults: none") == len(names)
