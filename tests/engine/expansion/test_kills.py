"""kill -9 of the parent and of workers, then the same command again. ``tests/soak`` does many more of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.engine.expansion.samples import lay_photos
from tests.soak.kills import Kills


@pytest.mark.skipif(sys.platform != "linux", reason="finds workers in /proc")
def test_what_is_killed_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    photos = lay_photos(tmp_path / "photos")
    arguments = ["--copies", "200", "--size", "32", "--devices", "cpu:0,cpu:1", "--threads", "1"]
    kills = Kills(photos, tmp_path, arguments, seed=1)
    for target in ("parent", "worker"):
        kills.kill(target)
    kills.complete()
    assert sum(kills.killed.values()) > 0
