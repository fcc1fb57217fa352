"""The contract of resumable jobs: a job that fails at any system call ends, run again, in the same bytes."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.children import run_python
from tests.jobs.resuming import JOBS

pytestmark = pytest.mark.process
_FAILING = """
import sys
from pathlib import Path
from tests.jobs.resuming import main
main(Path(sys.argv[1]), sys.argv[2])
"""
# Every so many calls: a prime number, so that calls that alternate are all among them.
_STEP = 83
# Jobs of few calls fail at each.
_STEPS = {"index": 1, "image": 7, "check": 11}
_FRESH = [(name, "fresh") for name in JOBS]
_OTHERS = [("folder", "lost"), ("folder", "full"), ("webdataset", "again"), ("webdataset", "lost")]


@pytest.mark.parametrize("states", [_FRESH[:4], _FRESH[4:], _OTHERS], ids=["augment", "others", "found"])
@pytest.mark.parametrize("every", [_STEP, pytest.param(1, marks=pytest.mark.slow)])
def test_a_job_that_fails_at_any_system_call_resumes(tmp_path: Path, states: list[Any], every: int) -> None:
    runs = [(name, state, min(every, _STEPS.get(name, every))) for name, state in states]
    # In memory if possible: thousands of fsyncs take their time on a disk.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path) as folder:
        done = run_python(_FAILING, folder, json.dumps(runs))
    assert done.returncode == 0, done.stderr
    for (name, state), found in zip(states, json.loads(done.stdout), strict=True):
        assert found["wrong"] == [], (name, state, done.stderr)
        assert found["steps"] > (3 if name == "index" else 30), (name, state)
