"""Schedules with operations of one's own, in commands: ``--import`` names the module; files import nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.searches import SMALL, run

MODULE = """
import numpy as np
from variegate import transforms as T


class ImportedDim(T.CustomOp):
    magnitude = T.Magnitude(0, 100)

    def lut(self, m):
        return np.clip(np.arange(256) - m, 0, 255).astype(np.uint8)
"""


@pytest.mark.process
def test_every_command_takes_a_schedule_with_operations_of_ones_own(
    stripes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "imported_operations.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    operations = ["imported_operations:ImportedDim:0..50", "RandomRotate90", "GaussianBlur:0.5..2"]
    policy = [["ImportedDim", 1.0, 9], ["RandomRotate90", 0.5, 0], ["Crop", 1.0, 5], ["Flip", 1, 0]]
    described = {"base": "pba-relative", "operations": operations, "crop": 0.25, "flip": True}
    path = tmp_path / "schedule.json"
    schedule = {"format": "variegate-schedule/1", "space": described, "segments": [{"epochs": 2, "policy": policy}]}
    path.write_text(json.dumps(schedule))
    assert run("augment", stripes, "out", "--policy", path) == 2
    said = "space.operations[0]: got 'imported_operations:ImportedDim'"
    assert f"{said}; accepted: operations of imported modules" in (told := capsys.readouterr().err)
    assert "import imported_operations first (commands: --import)" in told
    named = ("--policy", path, "--import", "imported_operations")
    assert run("augment", stripes, "out", *named, "--size", 8) == 0
    assert "schedule.json: has crop, flip and cutout of its own; none are added, and --size" in capsys.readouterr().err
    assert run("replay", "out", 3, "--import", "imported_operations", "--out", "again.png") == 0
    assert "the same" in capsys.readouterr().out
    assert run("preview", stripes, *named, "--out", "preview.png") == 0
    training = (*SMALL, "--epochs", 2, "--repeats", 1, "--devices", "cpu", "--out", "e.png", "--import")
    assert run("evaluate", stripes, "--policies", f"none,{path}", *training, "imported_operations") == 0
    capsys.readouterr()
    assert run("train", stripes, "--model", "wrn-10-1", "--epochs", 1, *named, "--devices", "cpu", "--out", "run") == 0
    assert "schedule.json: has crop, flip and cutout of its own; none are added" in capsys.readouterr().err
