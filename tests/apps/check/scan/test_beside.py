"""Images beside class folders, which no loader reads, are checked, and change nothing for those that are read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from threading import Event

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import variegate as vg
from variegate.apps.check import scan
from variegate.apps.check.findings import CheckResult, DataFinding
from variegate.cli import main
from variegate.events import Progress


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Four in two classes, of which two are the same."""
    folder = tmp_path / "photos"
    for number, pixels in enumerate(vg.sample_images(3)):
        path = folder / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[:120, :160]).save(path)
    shutil.copy(folder / "dog" / "1.png", folder / "dog" / "3.png")
    return folder


@pytest.fixture
def strays(photos: Path) -> Path:
    shutil.copy(photos / "cat" / "0.png", photos / "again.png")
    shutil.copy(photos / "dog" / "1.png", photos / "third.png")
    (photos / "broken.jpg").write_bytes(b"nothing")
    with Image.open(photos / "cat" / "2.png", formats=["PNG"]) as image:
        image.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(photos / "mirrored.png")
    return photos


def of(result: CheckResult, split: str) -> list[tuple[str | None, str]]:
    return sorted((one.file, one.finding) for one in result.findings if one.split == split)


def without_groups(result: CheckResult) -> list[DataFinding]:
    return [DataFinding(**(vars(one) | {"group": None})) for one in result.findings if one.split in ("train", "test")]


def test_what_is_wrong_with_them_is_found(strays: Path) -> None:
    result = vg.check(strays)
    assert of(result, "beside") == [
        ("again.png", "duplicates"),
        ("broken.jpg", "corrupt"),
        ("mirrored.png", "near_duplicates"),
        ("third.png", "duplicates"),
    ]
    (again,) = (one for one in result.findings if one.file == "again.png")
    assert (again.why, again.group) == ("has the same pixels as train image cat/0.png", None)
    third = next(one for one in result.findings if one.file == "third.png")
    assert [one.file for one in result.findings if one.group == third.group and one.finding == "duplicates"] == [
        *("dog/1.png", "dog/3.png", "third.png")
    ]
    rows = result.table.filter(np.array(result.table["split"]) == "beside").to_pylist()
    assert {(row["label"], row["class"]) for row in rows} == {(-1, None)}
    assert result.splits == {"train": 4, "beside": 4}
    (note,) = result.notes
    assert note.startswith("ignored 4 images next to the class folders: again.png, ")
    assert "loaders do not read such images, variegate check does" in note


def test_nothing_else_is_found_because_of_them(photos: Path, tmp_path: Path) -> None:
    shutil.copytree(photos, tmp_path / "test")
    (tmp_path / "test" / "cat" / "2.png").unlink()
    with Image.open(photos / "cat" / "0.png", formats=["PNG"]) as image:
        image.crop((8, 6, 150, 120)).save(photos / "cat" / "cut.png")
    Image.fromarray(vg.sample_images(6)[5][:120, :160]).save(tmp_path / "test" / "cat" / "new.png")
    without = vg.check(photos, tmp_path / "test")
    assert without.counts["near_duplicates"] == 2
    # A copy of what is only in the other data set leaks nothing, and 30 night scenes are no reason to call none dark.
    shutil.copy(tmp_path / "test" / "cat" / "new.png", photos)
    shutil.copy(photos / "cat" / "0.png", tmp_path / "test" / "train.png")
    shutil.copy(photos / "cat" / "0.png", photos / "again.png")
    # Of what is in the test alone, in both (and nearer than the train's own), and in the train alone.
    for path, to in (("test/cat/new", "photos/a"), ("photos/cat/0", "photos/b"), ("photos/cat/2", "test/c")):
        with Image.open(tmp_path / f"{path}.png", formats=["PNG"]) as image:
            image.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(tmp_path / f"{to}.png")
    for level in range(30):
        Image.fromarray(np.random.default_rng(level).integers(0, 9, (40, 50), np.uint8)).save(photos / f"{level}.png")
    result = vg.check(photos, tmp_path / "test")
    assert result.splits == {"train": 5, "test": 4, "beside": 34, "beside_test": 2}
    assert without_groups(result) == without_groups(without)
    assert (result.thresholds, result.mean, result.class_sizes) == (
        *(without.thresholds, without.mean, without.class_sizes),
    )
    assert of(result, "beside_test") == [("train.png", "duplicates")]  # of the test image cat/0.png


def test_a_cleaning_leaves_them_alone(strays: Path, tmp_path: Path) -> None:
    vg.check(strays, out=tmp_path / "f.parquet")
    cleaned = vg.clean(strays, findings=tmp_path / "f.parquet", drop="all", out=tmp_path / "list.txt")
    assert [(image.file, image.kept) for image in cleaned.left_out] == [("dog/3.png", "dog/1.png")]
    assert len(vg.open_source(strays, exclude=tmp_path / "list.txt")) == 3
    # What is left of the folder is checked with what lies beside it.
    assert vg.check(vg.open_source(strays, exclude=tmp_path / "list.txt")).splits == {"train": 3, "beside": 4}


@pytest.mark.parametrize("after", [4, 8])
def test_an_interrupted_check_goes_on_with_them(
    strays: Path, tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "SAMPLES_A_PART", 4)
    vg.check(strays, out=tmp_path / "whole.parquet")
    stop = Event()

    def stopping(event: Progress) -> None:
        if event.done >= after:
            stop.set()

    with pytest.raises(KeyboardInterrupt):
        vg.check(strays, out=tmp_path / "f.parquet", on_event=stopping, stop=stop)
    result = vg.check(strays, out=tmp_path / "f.parquet")
    assert result.resumed == after
    assert (tmp_path / "f.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_the_summary_the_object_and_the_report_name_them(
    strays: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report = tmp_path / "f.parquet", tmp_path / "report.html"
    words = ["check", str(strays), "--out", str(out), "--report", str(report)]
    assert main(words) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "4 (train), 4 (outside the class folders, not read by loaders)" in shown
    assert "broken.jpg (beside)" in shown
    assert "--drop duplicates" in shown  # of dog/1.png and dog/3.png; a clean leaves what is corrupt beside them
    page = report.read_text()
    assert "4 images (outside the class folders, not read by loaders)" in page
    assert f"<h1>{strays}</h1>" in page
    assert main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["splits"] == {"train": 4, "beside": 4}
    assert ("broken.jpg", "beside") in [(one["file"], one["split"]) for one in found["findings"]]
    assert set(pq.read_table(out)["split"].to_pylist()) == {"train", "beside"}
