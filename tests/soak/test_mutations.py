"""The soak itself, in small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.process
def test_parsers_withstand_mutated_files() -> None:
    names = ("outlines", "yolo", "index", "jpeg")
    command = [sys.executable, "-m", "tests.soak.mutations", *names, "--count", "200", "--seconds", "60"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("faults: none") == len(names)
