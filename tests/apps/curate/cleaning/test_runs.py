"""Runs that are stopped or killed go on to the same bytes; those that are given the wrong thing say so in a line."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow.parquet as pq
import pytest

import variegate as vg
from tests.apps.curate.cleaning.tables import rows_of, table_of, write_table
from tests.apps.curate.cleaning.test_copies import GONE, files_below, place_in
from tests.children import run_python
from variegate.apps.curate.cleaning import copying
from variegate.formats.base import SourceError
from variegate.formats.opening import open_source
from variegate.formats.storage.local import LocalStorage
from variegate.io.durable import DiskFullError
from variegate.jobs.output.verify import verify

DROP = "corrupt,duplicates"


@pytest.fixture
def folder_of(tmp_path, monkeypatch):
    """A place and its table; every file is an item of its own."""
    monkeypatch.setattr(copying.FileCopies, "at_once", 1)

    def make(layout: str = "folder") -> tuple[str, Any]:
        place = place_in(tmp_path, layout)
        return place, table_of(tmp_path / "f.parquet", place, GONE)

    return make


def whole(tmp_path: Path, place: str, found: Path) -> dict[str, bytes]:
    """What a run that nothing disturbs writes."""
    vg.clean(place, tmp_path / "undisturbed", findings=found, drop=DROP)
    return files_below(tmp_path / "undisturbed")


# Dies as by kill -9 at a call of os.replace or os.fsync: none of the library's cleaning up is done.
_KILLED = """
    import os, signal, sys
    import variegate as vg
    from variegate.apps.curate.cleaning import copying
    from variegate.jobs.output import journal
    copying.FileCopies.at_once = 1
    journal._FLUSH_SECONDS = 0
    place, dst, found, name, count = *sys.argv[1:5], int(sys.argv[5])
    inner = getattr(os, name)

    def call(*arguments):
        global count
        count -= 1
        if count < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*arguments)

    setattr(os, name, call)
    vg.clean(place, dst, findings=found, drop="corrupt,duplicates", threads=1)
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
@pytest.mark.parametrize(("layout", "name", "count"), [("folder", "replace", 5), ("tar", "fsync", 12)])
def test_what_is_killed_goes_on_to_the_same_bytes(tmp_path, folder_of, layout, name, count):
    place, found = folder_of(layout)
    expected = whole(tmp_path, place, found)

    killed = run_python(textwrap.dedent(_KILLED), place, tmp_path / "dst", found, name, count)
    assert killed.returncode == -9
    assert not (tmp_path / "dst" / "manifest.parquet").exists()
    vg.clean(place, tmp_path / "dst", findings=found, drop=DROP)

    assert files_below(tmp_path / "dst") == expected


def test_what_is_stopped_goes_on_and_copies_nothing_twice(tmp_path, folder_of):
    place, found = folder_of()
    expected = whole(tmp_path, place, found)
    stop = Event()

    def stop_at_two(done: int, total: int) -> None:
        if done == 2:
            stop.set()

    with pytest.raises(KeyboardInterrupt):
        vg.clean(place, tmp_path / "dst", findings=found, drop=DROP, threads=1, stop=stop, on_progress=stop_at_two)
    there = len([name for name in files_below(tmp_path / "dst") if name.endswith((".jpg", ".png"))])
    assert 2 <= there < 5
    done = vg.clean(place, tmp_path / "dst", findings=found, drop=DROP)

    assert (done.resumed, done.files) == (there, 5 - there)
    assert files_below(tmp_path / "dst") == expected


@pytest.mark.parametrize("layout", ["folder", "parquet"])
def test_a_full_disk_is_said_and_nothing_half_is_left(tmp_path, folder_of, monkeypatch, layout):
    place, found = folder_of(layout)
    expected = whole(tmp_path, place, found)
    put, count = LocalStorage._put, [0]

    def full(self, temporary: str, path: str) -> None:
        if not path.endswith(("json", "source", "journal")):
            count[0] += 1
            if count[0] == 2:
                raise OSError(28, os.strerror(28))
        put(self, temporary, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "_put", full)
        with pytest.raises(DiskFullError, match="the disk is full"):
            vg.clean(place, tmp_path / "dst", findings=found, drop=DROP, threads=1)
    vg.clean(place, tmp_path / "dst", findings=found, drop=DROP)

    assert files_below(tmp_path / "dst") == expected


def test_a_copy_is_repaired_by_the_same_command(tmp_path, folder_of):
    place, found = folder_of()
    expected = whole(tmp_path, place, found)
    shutil.copytree(tmp_path / "undisturbed", tmp_path / "dst")
    (tmp_path / "dst" / "left_out.jsonl").unlink()
    (tmp_path / "dst" / "bee" / "004.png").unlink()
    assert {problem.file for problem in verify(tmp_path / "dst").problems} == {"left_out.jsonl", "bee/004.png"}

    done = vg.clean(place, tmp_path / "dst", findings=found, drop=DROP)

    assert done.files == 1
    assert files_below(tmp_path / "dst") == expected


def test_another_choice_is_another_copy(tmp_path, folder_of):
    place, found = folder_of()
    vg.clean(place, tmp_path / "dst", findings=found, drop=DROP)

    with pytest.raises(SourceError, match=r"dst: holds a run with .*; choose another folder"):
        vg.clean(place, tmp_path / "dst", findings=found, drop="corrupt")


def test_destinations_that_are_not_ours_are_left_alone(tmp_path, folder_of):
    place, found = folder_of()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")

    with pytest.raises(SourceError, match="holds files that no run of variegate wrote"):
        vg.clean(place, tmp_path / "full", findings=found, drop=DROP)
    with pytest.raises(SourceError, match="lies inside the source"):
        vg.clean(place, Path(place) / "dst", findings=found, drop=DROP)
    with pytest.raises(SourceError, match="is the source itself"):
        vg.clean(place, place, findings=found, drop=DROP)
    assert files_below(tmp_path / "full") == {"mine.txt": b"mine"}


def test_findings_of_another_source_are_refused(tmp_path, folder_of):
    place, found = folder_of()
    shutil.move(Path(place) / "bee" / "004.png", Path(place) / "bee" / "other.png")

    with pytest.raises(SourceError, match=r"holds other images than those that .*f.parquet is of"):
        vg.clean(place, tmp_path / "dst", findings=found, drop=DROP)
    assert not (tmp_path / "dst").exists()


def test_findings_of_a_source_that_has_changed_are_refused(tmp_path, folder_of):
    place, found = folder_of()
    with open(Path(place) / "bee" / "004.png", "ab") as file:
        file.write(b"more")

    with pytest.raises(SourceError, match=r"004.png: has changed since it was checked: was .* bytes, is .* bytes"):
        vg.clean(place, exclude_list=tmp_path / "list.txt", findings=found, drop=DROP)


def test_a_list_replaces_nothing_but_a_list(tmp_path, folder_of):
    place, found = folder_of()
    mine = tmp_path / "mine.txt"
    mine.write_text("a list by hand\n")
    image = next(file for file in Path(place).rglob("*") if file.is_file())
    for path in (found, mine, image):
        before = path.read_bytes()
        with pytest.raises(SourceError, match=r"exclude_list: .* is no list of variegate clean"):
            vg.clean(place, exclude_list=path, findings=found, drop=DROP)
        assert path.read_bytes() == before
    with pytest.raises(SourceError, match=r"exclude_list: .* accepted: a new file"):
        vg.clean(place, exclude_list=tmp_path, findings=found, drop=DROP)
    for _ in range(2):
        vg.clean(place, exclude_list=tmp_path / "list.txt", findings=found, drop=DROP)


def test_tables_that_are_none_are_refused(tmp_path, folder_of):
    place, found = folder_of()
    pq.write_table(pq.read_table(found).replace_schema_metadata({}), tmp_path / "bare.parquet")
    pq.write_table(pq.read_table(found).drop_columns(["findings"]), tmp_path / "less.parquet")
    (tmp_path / "text.parquet").write_text("text")
    expected = {"no": "no such file", "bare": "does not say of which images it is", "text": "cannot be read"}

    for name, message in {**expected, "less": "has no column 'findings'"}.items():
        with pytest.raises(SourceError, match=rf"{name}.parquet: {message}.*; accepted: the findings.parquet"):
            vg.clean(place, tmp_path / "dst", findings=tmp_path / f"{name}.parquet", drop=DROP)
    with pytest.raises(SourceError, match="has no test images; accepted: --split train"):
        vg.clean(place, tmp_path / "dst", findings=found, drop=DROP, split="test")


def test_the_test_images_can_be_cleaned_instead(tmp_path, folder_of):
    place, _ = folder_of()
    test: Any = open_source(place)
    rows = [*rows_of(test, {1: [("leaks", 0)]}), *rows_of(test, {2: [("leaks", 0)]}, "test")]
    both = write_table(tmp_path / "both.parquet", rows, train=test, test=test)

    for split, index in (("train", 1), ("test", 2)):
        cleaned = vg.clean(place, tmp_path / split, findings=both, drop="leaks", split=split)
        assert [one.index for one in cleaned.left_out] == [index]


def test_an_empty_choice_of_places_and_of_images_is_refused(tmp_path, folder_of):
    place, found = folder_of()
    everything = table_of(tmp_path / "all.parquet", place, {index: [("dark", None)] for index in range(7)})

    with pytest.raises(ValueError, match="destination: got None"):
        vg.clean(place, findings=found, drop=DROP)
    with pytest.raises(ValueError, match=r"exclude_list: got .* beside a folder"):
        vg.clean(place, tmp_path / "dst", findings=found, drop=DROP, exclude_list=tmp_path / "list.txt")
    with pytest.raises(SourceError, match="nothing would be left of its 7 images"):
        vg.clean(place, tmp_path / "dst", findings=everything, drop="all")
