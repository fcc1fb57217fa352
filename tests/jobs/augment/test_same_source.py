"""A run that goes on, or is given again, has the source that it was begun with; where not, the files are named."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.jobs.augment.samples import digest, expansion, lay_photos, run_until, threads
from variegate import open_source
from variegate.data.base import SourceError
from variegate.errors import DecodeError
from variegate.jobs.arguments import build_transform
from variegate.jobs.augment import Expansion, Plan, Report

LAYOUTS = ("folder", "webdataset", "parquet")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return lay_photos(tmp_path / "photos")


def begun(photos: Path, out: Path, at_least: int = 6, **settings: Any) -> Report:
    """A run that is stopped early: samples in their order, and the first ones done."""
    run = expansion(photos, out, threads(1, ordered=True), copies=20, **settings)
    return run_until(run, at_least)


def touch(path: Path, seconds: int = 5) -> None:
    later = path.stat().st_mtime_ns + seconds * 1_000_000_000
    os.utime(path, ns=(later, later))


def repaint(path: Path) -> None:
    """Other pixels and another size."""
    Image.fromarray(np.full((20, 30, 3), 99, np.uint8)).save(path)


@pytest.mark.parametrize("is_complete", [False, True])
@pytest.mark.parametrize("change", [touch, repaint])
def test_a_run_is_refused_once_a_picture_has_changed(
    photos: Path, tmp_path: Path, change: Any, is_complete: bool
) -> None:
    out = tmp_path / "out"
    begun(photos, out)
    if is_complete:
        expansion(photos, out, copies=20).run()
    before = digest(out)
    size = (photos / "a/1.png").stat().st_size
    change(photos / "a/1.png")
    restore = (
        "changed since outputs were made; restore the source, choose another folder, or start over with --no-resume"
    )
    now = (photos / "a/1.png").stat().st_size
    with pytest.raises(SourceError) as raised:
        expansion(photos, out, copies=20).run()
    assert re.fullmatch(
        rf"{photos}/a/1\.png: was {size:,} bytes of 2.*, is {now:,} bytes of 2.*: {restore}",
        str(raised.value),
    )
    assert {name: one for name, one in digest(out).items() if not name.startswith(".variegate")} == {
        name: one for name, one in before.items() if not name.startswith(".variegate")
    }
    if is_complete:
        for path in photos.rglob("*.*"):
            touch(path)
        with pytest.raises(
            SourceError, match=r"^\S+a/1\.jpg: was .*; \S+a/1\.png: .*; \S+a/2\.jpg: .*; and 4 more: ch"
        ):
            expansion(photos, out, copies=20).run()


@pytest.mark.parametrize("is_complete", [False, True])
def test_a_source_that_was_moved_or_copied_with_its_times_is_the_same(
    photos: Path, tmp_path: Path, is_complete: bool
) -> None:
    out = tmp_path / "out"
    begun(photos, out)
    if is_complete:
        expansion(photos, out, copies=20).run()
    settings = (out / "variegate.json").read_bytes()
    shutil.copytree(photos, tmp_path / "elsewhere" / "copy")
    report = expansion(tmp_path / "elsewhere" / "copy", out, copies=20).run()
    assert report.written + report.resumed == 140
    assert report.resumed > 0
    expansion(photos, tmp_path / "reference", copies=20).run()
    assert digest(out) == digest(tmp_path / "reference")
    assert (out / "variegate.json").read_bytes() == settings


def test_files_that_came_or_went_are_named(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out).run()
    before = digest(out)
    (photos / "b/y.webp").rename(photos / "b/yy.webp")
    repaint(photos / "a/3.jpg")
    with pytest.raises(SourceError) as raised:
        expansion(photos, out).run()
    listed = "a/3.jpg, b/yy.webp are new and b/y.webp is gone"
    assert str(raised.value) == (
        f"{out}: holds a run of other files than {photos} has now: {listed}; choose another folder"
    )
    assert digest(out) == before


def test_shards_of_a_source_are_compared(photos: Path, tmp_path: Path) -> None:
    expansion(photos, tmp_path / "shards", layout="webdataset", shard_size=6).run()

    def again(**settings: Any) -> Expansion:
        source: Any = open_source(str(tmp_path / "shards" / "*.tar"))
        plan = Plan(source, build_transform("none", None), place=str(tmp_path / "shards"))
        return Expansion(plan, tmp_path / "out", threads(), **settings)

    assert again().run().written == 21
    shard = tmp_path / "shards" / "shard-000001.tar"
    touch(shard)
    with pytest.raises(SourceError, match=rf"^{shard}: was .*: changed since outputs were made"):
        again().run()
    assert again(resume=False).run().written == 21
    # Members of other names and sizes: the shard is named, not only a fingerprint.
    expansion(photos, tmp_path / "others", layout="webdataset", shard_size=6, copies=2).run()
    shutil.copy(tmp_path / "others" / shard.name, shard)
    with pytest.raises(SourceError, match=rf"holds a run of other files than .* has now: {shard}: was .* bytes"):
        again().run()


@pytest.mark.parametrize("is_complete", [False, True])
def test_a_destination_without_the_record_goes_on_with_a_note(photos: Path, tmp_path: Path, is_complete: bool) -> None:
    out = tmp_path / "out"
    begun(photos, out)
    if is_complete:
        expansion(photos, out, copies=20).run()
    (out / "variegate.source").write_bytes(b"PAR1 no more")
    with pytest.raises(SourceError, match=r"out/variegate\.source: damaged \(.*\); delete it to resume"):
        expansion(photos, out, copies=20).run()
    (out / "variegate.source").unlink()
    note = "this run has no record of what its source was"
    with pytest.warns(UserWarning, match=note):
        expansion(photos, out, copies=20).run()
    assert (out / "variegate.source").exists() != is_complete
    # Without the record, the place is all that tells one source from another.
    (out / "variegate.source").unlink(missing_ok=True)
    shutil.copytree(photos, tmp_path / "copy")
    with pytest.raises(
        SourceError, match=r"holds a run with source \.\.\..*photos\", this one has source \.\.\..*copy\";"
    ):
        expansion(tmp_path / "copy", out, copies=20).run()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_file_that_changes_during_the_run_is_an_error_by_name(
    photos: Path, tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Expansion._make

    def late(self: Expansion, *arguments: Any) -> None:
        touch(photos / "b/x.jpg")
        repaint(photos / "a/2.jpg")
        real(self, *arguments)

    monkeypatch.setattr(Expansion, "_make", late)
    report = expansion(photos, tmp_path / "out", layout=layout).run()
    assert [(name, reason.partition(":")[0]) for name, reason in sorted(report.skipped)] == [
        ("a/2.jpg", "has changed since the run began"),
        ("b/x.jpg", "has changed since the run began"),
    ]
    assert report.skipped[0][1].startswith("has changed since the run began: was ")
    with pytest.raises(
        DecodeError, match=r"a/2\.jpg: has changed since the run began: was \d+ bytes of .*, is \d+ bytes"
    ):
        expansion(photos, tmp_path / "raised", threads(1, ordered=True), layout=layout, on_error="raise").run()


def test_a_shard_that_changes_during_the_run_is_an_error_by_name(photos: Path, tmp_path: Path) -> None:
    expansion(photos, tmp_path / "shards", layout="webdataset", copies=1).run()
    source: Any = open_source(str(tmp_path / "shards"))
    shard = tmp_path / "shards" / "shard-000000.tar"
    shard.write_bytes(shard.read_bytes().replace(b"\xff", b"\xfe"))
    touch(shard)
    report = Expansion(Plan(source, build_transform("none", None)), tmp_path / "out", threads()).run()
    assert len(report.skipped) == 7
    assert "has changed since the run began" in report.skipped[0][1]
