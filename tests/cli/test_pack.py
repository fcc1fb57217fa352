"""``variegate pack`` as it is typed: what it prints, in words and as JSON, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs.pack.samples import lay_kinds
from variegate.cli import main

pytestmark = pytest.mark.filterwarnings("ignore:.*16 bits")
QUICK = ["--workers", "thread", "--devices", "cpu:0", "--threads", "1"]


def test_it_says_what_came_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos, out = lay_kinds(tmp_path / "photos", bad=True), tmp_path / "out"
    command = ["pack", str(photos), str(out), "--size", "32", *QUICK]
    assert main(command) == 0
    shown = capsys.readouterr()
    facts = {line.split("  ")[0].strip(): line for line in shown.out.splitlines()}
    assert "8 in 1 shard" in facts["images"]
    assert facts["skipped"].split()[-1] == "1"
    assert "saved)" in facts["bytes"] or "more)" in facts["bytes"]
    assert {"mean", "std", "where", "index"} <= facts.keys()
    assert "skipped a/oops.jpg: not an image" in shown.err
    assert main([*command, "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    done = events[-1]
    assert [event["event"] for event in events if event["event"] != "progress"] == ["start", "done"]
    assert (done["images"], done["skipped"], done["resumed"], done["files"]) == (8, 1, 8, 9)
    assert done["bytes_after"] == (out / "shard-000000.tar").stat().st_size
    assert done["mean"] == json.loads((out / "statistics.json").read_text())["mean"]
    assert main(["verify", str(out)]) == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--keep-jpeg", "--size", "32"], "--size: got 32; accepted: without --keep-jpeg"),
        (["--format", "raw", "--quality", "80"], "--quality: got 80; accepted: with --format webdataset"),
        (["--shard-size", "256MB"], "--shard-size: got '256MB'; accepted: an integer from 1 on"),
        (["--changed", "same"], "command pack --changed was removed: changed files are refused; restore them"),
        (["--no-measure"], "command pack --no-measure was removed: "),
        (["--format", "zip"], "--format"),
        (["--depth", "uint16"], "--format: got 'webdataset', which holds no images of uint16; accepted: 'raw'"),
    ],
)
def test_what_is_typed_wrongly_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert main(["pack", str(lay_kinds(tmp_path / "photos")), str(tmp_path / "out"), *more]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_empty_source_and_one_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["pack", str(tmp_path / "empty"), str(tmp_path / "out"), *QUICK]) == 2
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.jpg").write_bytes(b"no")
    capsys.readouterr()
    assert main(["pack", str(tmp_path / "bad"), str(tmp_path / "out"), *QUICK]) == 1
    said = "could read 0 of 1 image: not an image: no known format begins with b'no'; no image was written"
    assert said in capsys.readouterr().err
