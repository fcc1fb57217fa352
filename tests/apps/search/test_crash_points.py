"""A search that is killed at any moment, or has no room, and is started again: its files are those of a whole one."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.apps.search.runs import small_run
from tests.children import run_python
from variegate.apps.search.driver import LocalSearch

CRASHING = """
import sys
from pathlib import Path
from tests.apps.search.crashing import main
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


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="asks the system what a descriptor is of")
def test_what_is_said_to_be_over_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power may fail at any moment: data before its name, the log before the checkpoint, both before it is said."""
    found: list[str] = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        real_fsync(descriptor)
        found.append("sync " + Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)

    def replace(old: Any, new: Any) -> None:
        real_replace(old, new)
        found.append("name " + Path(new).name)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    run = small_run(interval=1, epochs=2)
    LocalSearch(run, tmp_path / "new" / "out", ["cpu"]).run(
        lambda p: found.append("over" if p.rows else f"done {p.members_done}")
    )

    def put(name: str, folder: str = "out") -> list[str]:
        return [f"sync .{name}.tmp", f"name {name}", f"sync {folder}"]

    assert found == [
        *("sync new", f"sync {tmp_path.name}", *put("search.json"), *put("images.jsonl")),
        *("sync population.jsonl", "sync out", "sync out"),
        *(line for member in range(4) for line in (*put(f"1-{member}.pt", "checkpoint"), f"done {member + 1}")),
        *("sync population.jsonl", "over"),
        *(line for member in range(4) for line in (*put(f"2-{member}.pt", "checkpoint"), f"done {member + 1}")),
        *("sync population.jsonl", "over", *put("schedule.json")),
    ]
