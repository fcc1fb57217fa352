"""``variegate check`` as it is typed: what it prints, in words and as JSON, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import variegate as vg
from variegate.apps.check.checking import Checking
from variegate.cli import main


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for number in range(12):
        path = tmp_path / "photos" / ("cat", "dog")[number % 2] / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (24, 30, 3), dtype=np.uint8)).save(path)
    return tmp_path / "photos"


def run(*words: Any) -> int:
    return main(["check", *map(str, words), "--threads", "1"])


def test_a_sound_data_set(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found.parquet"
    assert run(photos, "--out", out) == 0
    facts = {line.split("  ")[0].strip(): line for line in capsys.readouterr().out.splitlines()}
    assert facts["images"].split()[-1] == "12"
    assert "2, of 6 images each" in facts["classes"]
    assert {"mean", "std", "images/s", "where"} <= facts.keys()
    assert len(pq.read_table(out)) == 12


def test_something_serious_is_exit_code_1(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "cat" / "00.png").write_bytes(b"not found")
    assert run(photos, "--out", tmp_path / "found.parquet") == 1
    shown = capsys.readouterr().out
    assert any(line.split()[:3] == ["corrupt", "1", "serious"] and "cat/00.png" in line for line in shown.splitlines())
    assert "variegate clean" in shown


def test_json_writes_no_table_unless_out_names_it(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert run(photos, "--json") == 0
    assert json.loads(capsys.readouterr().out)["out"] is None
    assert sorted(tmp_path.iterdir()) == before
    assert run(photos) == 0
    assert (tmp_path / "findings.parquet").is_file()


def test_json_is_one_object(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "cat" / "00.png").write_bytes(b"not found")
    out = tmp_path / "found.parquet"
    assert run(photos, "--out", out, "--test", photos, "--json") == 1
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert found["images"] == 24
    assert found["splits"] == {"train": 12, "test": 12}
    assert found["out"] == str(out)
    corrupt = [one for one in found["findings"] if one["finding"] == "corrupt"]
    assert [(one["file"], one["split"]) for one in corrupt] == [("cat/00.png", "train"), ("cat/00.png", "test")]
    assert set(corrupt[0]) == {"file", "finding", "measure", "group", "why", "split"}
    assert found["counts"]["corrupt"] == 2
    assert len(found["mean"]) == len(found["std"]) == 3
    assert found["images_per_second"] > 0


def test_a_report_replaces_nothing_but_a_report(photos: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><title>My page</title>")
    with pytest.raises(ValueError, match="is no report of variegate check"):
        vg.check(photos, report=page)
    assert "My page" in page.read_text()
    with pytest.raises(ValueError, match="where the findings go"):
        vg.check(photos, out=tmp_path / "new.html", report=tmp_path / "new.html")
    for _ in range(2):
        vg.check(photos, report=tmp_path / "new.html")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--out", "photos"], "photos: a folder, not a file"),
        (["--out", "photos/cat/00.png"], "is no table of variegate check"),
        (["--test", "nowhere"], "nowhere"),
        (["--threads", "0"], "--threads"),
        (["--near-distance", "16"], "--near-distance"),
        (["--report", "report.txt"], "report: got 'report.txt'; accepted: the name of an .html file"),
    ],
)
def test_bad_input_is_one_line(
    photos: Path,
    tmp_path: Path,
    more: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check", "photos", *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert Image.open(photos / "cat" / "00.png", formats=["PNG"]).size == (30, 24)


def test_an_interrupted_check_says_how_to_go_on(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Checking.run

    def interrupted(self: Checking, on_event: Any, stop: Any) -> Any:
        stop.set()
        return before(self, on_event, stop)

    monkeypatch.setattr(Checking, "run", interrupted)
    assert run(photos, "--out", tmp_path / "found.parquet") == 130
    assert "to resume, run the same command again" in capsys.readouterr().err
    monkeypatch.undo()
    assert run(photos, "--out", tmp_path / "found.parquet") == 0
    assert "by an earlier run" in capsys.readouterr().out
