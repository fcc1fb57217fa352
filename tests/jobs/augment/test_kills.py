"""kill -9 of the parent and of workers, then the same command again, as a user would do it.

Quicker tests: ``tests/jobs/test_resume.py`` (files, records, manifest) and ``tests/workers/test_process.py``
(workers that are gone, or whose parent is). ``tests/soak`` is the same as a command.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.jobs.augment.samples import expansion, lay_photos
from tests.jobs.bounded import fail_after
from tests.soak import kill_augment
from tests.soak.kills import Kills

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="finds workers in /proc")]


def test_what_is_killed_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    photos = lay_photos(tmp_path / "photos")
    expansion(photos, tmp_path / "reference", copies=60, seed=0).run()
    arguments = ["--copies", "60", "--size", "32", "--devices", "cpu:0,cpu:1", "--threads", "1"]
    kills = Kills(photos, tmp_path, arguments, seed=3, reference=tmp_path / "reference")
    with fail_after(240):  # three runs, each of which starts three processes
        kills.kill("parent")
        kills.kill("worker")
        if kills.compared == 0:
            kills.complete()
    assert kills.killed == {"parent": 1, "worker": 1}


@pytest.mark.parametrize("layout", ["folder", "webdataset", "parquet"])
def test_of_many_kills_none_changes_a_byte(layout: str) -> None:
    with fail_after(600):  # some ten runs, each of which starts three processes
        kill_augment.main(["--kills", "6", "--copies", "20", "--layout", layout])
