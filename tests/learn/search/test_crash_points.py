"""A search that is killed at any moment, or has no room, and is started again: its files are those of a whole one."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from tests.children import run_python

CRASHING = """
import sys
from pathlib import Path
from tests.learn.search.crashing import main
main(Path(sys.argv[1]), int(sys.argv[2]))
"""


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of itself")
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_every_system_call(tmp_path: Path, every: int) -> None:
    # In memory, where there is such a place: thousands of fsyncs take their time on a disk.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path) as place:
        done = run_python(CRASHING, place, every)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == [], done.stderr
    assert found["steps"] > 40 - every
