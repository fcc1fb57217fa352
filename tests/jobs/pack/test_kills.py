"""kill -9 of a packing and of its workers, then the same command again; ``test_packing.py`` shows it quicker, without
processes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.jobs.bounded import fail_after
from tests.soak.kills import Kills

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="finds workers in /proc")]


@pytest.mark.parametrize("format", ["webdataset", "raw"])
def test_what_is_killed_goes_on_to_the_same_bytes(tmp_path: Path, format: str) -> None:
    photos, rng = tmp_path / "photos", np.random.default_rng(0)
    (photos / "a").mkdir(parents=True)
    for number in range(300):
        Image.fromarray(rng.integers(0, 256, (120, 160, 3)).astype(np.uint8)).save(photos / "a" / f"{number}.jpg")
    arguments = ["--size", "100", "--format", format, "--shard-size", "20"]
    with fail_after(300):
        kills = Kills(photos, tmp_path, [*arguments, "--devices", "cpu:0,cpu:1", "--threads", "1"], command="pack")
        for target in ("parent", "worker", "parent"):
            kills.kill(target)
        if kills.compared == 0:
            kills.complete()
    assert kills.killed["parent"] > 0
