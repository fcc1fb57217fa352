"""Killed at any moment, or on a full disk, and started again: the files are those of an uninterrupted run."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.children import run_python
from tests.jobs.output.runs import run, tree
from tests.jobs.output.tiny_disk import tiny_disk
from variegate.formats.storage import DiskFullError, WriteError

pytestmark = pytest.mark.process

CRASHING = """
import sys
from pathlib import Path
from tests.jobs.output.crashing import main
main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
"""


@pytest.mark.parametrize(("kind", "least"), [("fresh", 80), ("again", 80), ("lost", 50), ("begun", 30)])
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_every_system_call(tmp_path: Path, kind: str, least: int, every: int) -> None:
    # In memory, where there is such a place: thousands of fsyncs take their time on a disk.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path) as place:
        done = run_python(CRASHING, place, kind, every)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == [], done.stderr
    assert found["steps"] > least - every


@pytest.mark.parametrize(
    ("call", "number", "kind"),
    [("write", errno.ENOSPC, DiskFullError), ("fsync", errno.EIO, WriteError), ("replace", errno.EACCES, WriteError)],
)
def test_refused_from_some_call_on(
    tmp_path: Path, call: str, number: int, kind: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "whole")
    whole = tree(tmp_path / "whole")
    real = getattr(os, call)
    for step in range(1, 200):
        count = 0

        def refuse(*arguments: Any, step: int = step) -> Any:
            nonlocal count
            count += 1
            if count >= step:
                raise OSError(number, os.strerror(number))
            return real(*arguments)

        place = tmp_path / str(step)
        with monkeypatch.context() as patch:
            patch.setattr(os, call, refuse)
            failure = None
            try:
                run(place)
            except kind as error:
                failure = error
            if failure is None:
                break
            assert str(failure).startswith(str(place))
        left = place / ".variegate/tmp"
        assert not left.exists() or os.listdir(left) == []
        run(place)
        assert tree(place) == whole, step
    assert step > 10
    assert tree(place) == whole


def test_a_disk_that_is_full_until_there_is_room(tmp_path: Path) -> None:
    size = 8000
    run(tmp_path / "whole", size=size)
    with tiny_disk(tmp_path / "disk", 192) as disk:
        place = disk.root / "out"
        for _ in range(3):
            with pytest.raises(DiskFullError, match=r"the disk is full \(No space left on device\)"):
                run(place, size=size)
        assert any(place.rglob("*.jpg"))
        disk.grow()
        run(place, size=size)
        assert tree(place) == tree(tmp_path / "whole")
