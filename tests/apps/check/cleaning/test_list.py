"""``clean`` writes a list of the images to leave out, whatever they are stored in, and refuses wrong input."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import variegate as vg
from tests.apps.check.cleaning.tables import Findings, rows_of, table_of, write_table
from tests.data.contract import CLASSES, folder, parquet, pictures, pixels_of, raw, shards
from variegate.data.base import SourceError
from variegate.data.filtered import sample_keys
from variegate.data.opening import open_source

EXCLUDED: Findings = {0: [("corrupt", None)], 3: [("duplicates", 0)], 4: [("duplicates", 0)], 5: [("dark", None)]}
LARGER = {3: (9, 9)}
LAYOUTS = {"folder": (folder, ""), "tar": (shards, "*.tar"), "parquet": (parquet, "*.parquet"), "raw": (raw, "*.arrow")}
DROP = "corrupt,duplicates"


def place_in(tmp_path: Path, layout: str = "folder") -> str:
    write, pattern = LAYOUTS[layout]
    write(tmp_path / "src", pictures())
    if layout == "tar":
        (tmp_path / "src" / "classnames.txt").write_text("".join(f"{name}\n" for name in CLASSES))
    return str(tmp_path / "src" / pattern) if pattern else str(tmp_path / "src")


def content(source: Any) -> list[tuple[bytes, int]]:
    return [(pixels_of(item).tobytes(), item.label) for item in (source.read(index) for index in range(len(source)))]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_list_excludes_the_chosen_images_of_every_layout(tmp_path, layout):
    place = place_in(tmp_path, layout)
    found = table_of(tmp_path / "f.parquet", place, EXCLUDED, sizes=LARGER)

    cleaned = vg.clean(place, findings=found, drop=DROP, out=tmp_path / "list.txt")

    assert [image.index for image in cleaned.left_out] == [0, 4]
    assert cleaned.counts == {"corrupt": 1, "duplicates": 1}
    full, remaining = open_source(place), open_source(place, exclude=tmp_path / "list.txt")
    expected = [image for index, image in enumerate(content(full)) if index not in (0, 4)]
    assert content(remaining) == expected
    assert remaining.classes == full.classes


def test_the_list_says_why(tmp_path):
    place = place_in(tmp_path)
    found = table_of(tmp_path / "f.parquet", place, EXCLUDED, sizes=LARGER)

    vg.clean(place, findings=found, drop=["duplicates"], out=tmp_path / "list.txt")

    header, line = (tmp_path / "list.txt").read_text().splitlines()
    assert header.endswith(f"{place} by variegate clean: 1 duplicates")
    assert line == "bee/004.png\tduplicates: duplicates of bee/004.png; bee/003.png is kept"


def test_pack_makes_the_copy(tmp_path):
    place = place_in(tmp_path)
    found = table_of(tmp_path / "f.parquet", place, EXCLUDED, sizes=LARGER)
    vg.clean(place, findings=found, drop=DROP, out=tmp_path / "list.txt")
    remaining = open_source(place, exclude=tmp_path / "list.txt")

    vg.pack(remaining, tmp_path / "dst", format="raw", devices=["cpu:0"], workers="thread", threads=1)

    assert content(open_source(tmp_path / "dst")) == content(remaining)


@pytest.mark.parametrize("layout", ["folder", "tar"])
def test_images_that_the_check_excluded_stay_excluded(tmp_path, layout):
    place = place_in(tmp_path, layout)
    keys = sample_keys(open_source(place))
    (tmp_path / "first.txt").write_text(f"{keys[1]}\tby hand\n")
    source = open_source(place, exclude=tmp_path / "first.txt")
    found = table_of(tmp_path / "f.parquet", source, {0: [("dark", None)]})

    vg.clean(source, findings=found, drop="dark", out=tmp_path / "list.txt")

    assert sample_keys(open_source(place, exclude=tmp_path / "list.txt")) == keys[2:]


def test_images_in_memory_can_be_listed(tmp_path):
    source = open_source(np.zeros((3, 8, 8, 3), np.uint8))
    found = table_of(tmp_path / "f.parquet", source, {1: [("blank", None)]})

    vg.clean(source, findings=found, drop="blank", out=tmp_path / "list.txt")

    assert len(open_source(source, exclude=tmp_path / "list.txt")) == 2


def test_a_name_that_an_image_to_keep_shares_is_refused(tmp_path):
    for name in ("one", "two"):
        shards(tmp_path / name, pictures())
    both = [str(tmp_path / name / "a.tar") for name in ("one", "two")]
    source = open_source(both, classes=CLASSES)
    found = table_of(tmp_path / "f.parquet", source, {0: [("dark", None)]})

    with pytest.raises(SourceError, match="is the name of several images, some of which stay"):
        vg.clean(source, findings=found, drop="dark", out=tmp_path / "list.txt")
    assert not (tmp_path / "list.txt").exists()


def test_findings_of_another_source_are_refused(tmp_path):
    place = place_in(tmp_path)
    found = table_of(tmp_path / "f.parquet", place, EXCLUDED)
    shutil.move(Path(place) / "bee" / "004.png", Path(place) / "bee" / "other.png")

    with pytest.raises(SourceError, match=r"holds other images than those that .*f.parquet is of"):
        vg.clean(place, findings=found, drop=DROP, out=tmp_path / "list.txt")
    assert not (tmp_path / "list.txt").exists()


def test_findings_of_a_source_that_has_changed_are_refused(tmp_path):
    place = place_in(tmp_path)
    found = table_of(tmp_path / "f.parquet", place, EXCLUDED)
    with open(Path(place) / "bee" / "004.png", "ab") as file:
        file.write(b"more")

    with pytest.raises(SourceError, match=r"004.png: has changed since it was checked: was .* bytes, is .* bytes"):
        vg.clean(place, findings=found, drop=DROP, out=tmp_path / "list.txt")


def test_a_list_replaces_only_a_list(tmp_path):
    place = place_in(tmp_path)
    found = table_of(tmp_path / "f.parquet", place, EXCLUDED)
    by_hand = tmp_path / "mine.txt"
    by_hand.write_text("a list by hand\n")
    image = next(file for file in Path(place).rglob("*") if file.is_file())
    for path in (found, by_hand, image):
        before = path.read_bytes()
        with pytest.raises(SourceError, match="is no list of variegate clean"):
            vg.clean(place, findings=found, drop=DROP, out=path)
        assert path.read_bytes() == before
    with pytest.raises(SourceError, match="accepted: a new file"):
        vg.clean(place, findings=found, drop=DROP, out=tmp_path)
    for _ in range(2):
        vg.clean(place, findings=found, drop=DROP, out=tmp_path / "list.txt")


def test_other_tables_are_refused(tmp_path):
    place = place_in(tmp_path)
    found = table_of(tmp_path / "f.parquet", place, EXCLUDED)
    pq.write_table(pq.read_table(found).replace_schema_metadata({}), tmp_path / "bare.parquet")
    pq.write_table(pq.read_table(found).drop_columns(["findings"]), tmp_path / "less.parquet")
    (tmp_path / "text.parquet").write_text("text")
    expected = {
        "no": "no such file",
        "bare": "does not say of which images it is",
        "text": "cannot be read",
        "less": "has no column 'findings'",
    }

    for name, message in expected.items():
        with pytest.raises(SourceError, match=rf"{name}.parquet: {message}.*; accepted: the findings.parquet"):
            vg.clean(place, findings=tmp_path / f"{name}.parquet", drop=DROP, out=tmp_path / "list.txt")
    with pytest.raises(SourceError, match="has no test images; accepted: --split train"):
        vg.clean(place, findings=found, drop=DROP, out=tmp_path / "list.txt", split="test")
    with pytest.raises(ValueError, match=r"split: got 'val'; accepted: one of 'train', 'test'"):
        vg.clean(place, findings=found, drop=DROP, out=tmp_path / "list.txt", split="val")


def test_the_test_images_can_be_cleaned(tmp_path):
    place = place_in(tmp_path)
    test: Any = open_source(place)
    rows = [*rows_of(test, {1: [("leaks", 0)]}), *rows_of(test, {2: [("leaks", 0)]}, "test")]
    both = write_table(tmp_path / "both.parquet", rows, train=test, test=test)

    for split, index in (("train", 1), ("test", 2)):
        cleaned = vg.clean(place, findings=both, drop="leaks", split=split, out=tmp_path / f"{split}.txt")
        assert [image.index for image in cleaned.left_out] == [index]


def test_a_choice_of_all_images_is_refused(tmp_path):
    place = place_in(tmp_path)
    everything = table_of(tmp_path / "all.parquet", place, {index: [("dark", None)] for index in range(7)})

    with pytest.raises(SourceError, match="this excludes all of its images"):
        vg.clean(place, findings=everything, drop="all", out=tmp_path / "list.txt")
