"""YOLO's text files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.formats.annotated.made import check_objects, put_yolo
from variegate.formats.base import SourceError
from variegate.formats.opening import open_source


def rows(root: Path, text: str, **options: Any) -> Any:
    put_yolo(root)
    (root / "labels" / "a.txt").write_text(text)
    return open_source(root, annotations={"format": "yolo", **options})


def test_boxes_in_pixels(tmp_path: Path) -> None:
    check_objects(open_source(put_yolo(tmp_path)))
    (tmp_path / "labels" / "b.txt").unlink()
    source = open_source(tmp_path, annotations="yolo")
    check_objects(source)
    assert "1 images have no file in labels, and so no objects" in source.notes()


def test_splits_are_folders(tmp_path: Path) -> None:
    put_yolo(tmp_path / "data")
    for kind in ("images", "labels"):
        (tmp_path / kind).mkdir()
        (tmp_path / "data" / kind).rename(tmp_path / kind / "train")
    check_objects(
        open_source(tmp_path, annotations={"format": "yolo", "split": "train"}, classes=["ant", "bee", "cat"])
    )
    with pytest.raises(SourceError, match="no folder images/val in it"):
        open_source(tmp_path, annotations={"format": "yolo", "split": "val"})


def test_outlines(tmp_path: Path) -> None:
    targets = rows(tmp_path, "1 0.5 0.5 1 0.5 1 1 0.5 1\n", mask="classes").read(0).targets
    np.testing.assert_allclose(targets["boxes"], [[30, 20, 60, 40]])
    wanted = np.zeros((40, 60), np.uint8)
    wanted[20:, 30:] = 2
    np.testing.assert_array_equal(targets["mask"], wanted)


def test_key_points(tmp_path: Path) -> None:
    put_yolo(tmp_path)
    (tmp_path / "data.yaml").write_text("names: {0: ant, 1: bee, 2: cat}\nkpt_shape: [2, 3]\n")
    for name in "abc":
        (tmp_path / "labels" / f"{name}.txt").write_text("1 0.5 0.5 0.5 0.5 0.25 0.5 2 0 0 0\n")
    points = open_source(tmp_path).read(0).targets["keypoints"]  # type: ignore[union-attr]
    np.testing.assert_allclose(points, [[[15, 20, 2], [0, 0, 0]]])
    (tmp_path / "data.yaml").write_text("names: [ant, bee, cat]\nkpt_shape: [3, 2]\n")
    points = open_source(tmp_path).read(0).targets["keypoints"]  # type: ignore[union-attr]
    np.testing.assert_allclose(points, [[[15, 20, 2], [120, 0, 2], [0, 0, 0]]])


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("1 0.5 0.5 0.5 0.5 0.", "5 numbers behind the class; accepted: 4 for a box, or an even count from 6 on"),
        ("1 0.5 0.5 half 0.5", "got '1 0.5 0.5 half 0.5'; accepted: finite numbers"),
        ("3 0.5 0.5 0.5 0.5", "the class is '3'; accepted: whole numbers from 0 to 2"),
        ("0.5 0.5 0.5 0.5 0.5", "the class is '0.5'; accepted: whole numbers from 0 to 2"),
        ("1 0.5 0.5 -0.5 0.5", "the box with the edges (0.75, 0.25, 0.25, 0.75) has its edges in the wrong order"),
        ("1 3e38 0.5 0.5 0.5", "got '1 3e38 0.5 0.5 0.5'; accepted: finite numbers, up to 1e9"),
        ("1" * 5000 + " 0.5 0.5 0.5 0.5", "the class is '1111"),
        ("1 1.5 0.5 0.2 0.2", "lies outside of its image; accepted: fractions of the image's width and height, 0 to 1"),
        ("1 300 200 50 50", "got '1 300 200 50 50', and 300 is no fraction; accepted: fractions of the image's width"),
        ("1 0.1 0.1 40 0.1 40 40", "and 40 is no fraction; accepted: fractions of the image's width and height"),
    ],
)  # fmt: skip
def test_wrong_rows_are_named_or_left_out(tmp_path: Path, line: str, what: str) -> None:
    text = f"0 0.5 0.5 0.5 0.5\n\n{line}\n"
    with pytest.raises(SourceError, match=re.escape(what)) as caught:
        rows(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'labels' / 'a.txt'}, line 3: ")
    source: Any = open_source(tmp_path, on_error="skip")
    assert source.read(0).targets["labels"].tolist() == [0]
    assert any(note.startswith("1 invalid objects are skipped") for note in source.notes())


@pytest.mark.parametrize(
    "text",
    [
        *("names: 3", "names: {1: a}", "[", "names: [a]\nkpt_shape: [2, 5]"),
        *("names: [a]\nkpt_shape: [1000000000000, 3]", "names: !!timestamp 1", "names: !!bool 1", "names: !!int ''"),
        *('names: ["\\UFFFFFFFF"]', "a: &a {x: 1}\nnames: {<<: *a}"),
    ],
)
def test_a_wrong_data_yaml_is_named(tmp_path: Path, text: str) -> None:
    put_yolo(tmp_path)
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(SourceError, match=r"data\.yaml: (names|no YAML|kpt_shape)"):
        open_source(tmp_path)


def test_a_class_without_a_name_is_bounded(tmp_path: Path) -> None:
    """All names up to the highest are made: 10**12 of them took all memory."""
    put_yolo(tmp_path)
    (tmp_path / "data.yaml").unlink()
    (tmp_path / "labels" / "a.txt").write_text("1000000000000 0.5 0.5 0.5 0.5\n")
    with pytest.raises(
        SourceError, match=r"a\.txt, line 1: the class is '1000000000000'; accepted: whole numbers from 0"
    ):
        open_source(tmp_path, annotations="yolo")


def test_key_points_are_finite(tmp_path: Path) -> None:
    put_yolo(tmp_path)
    (tmp_path / "data.yaml").write_text("names: [ant, bee, cat]\nkpt_shape: [1, 2]\n")
    for name, row in (("a", "1 0.5 0.5 0.5 0.5 0.5 nan"), ("b", ""), ("c", "")):
        (tmp_path / "labels" / f"{name}.txt").write_text(row)
    with pytest.raises(SourceError, match=r"a\.txt, line 1: got '1 0.5 .* nan'; accepted: finite numbers, up to 1e9"):
        open_source(tmp_path)


def test_box_rows_are_filled_in_masks(tmp_path: Path) -> None:
    rows(tmp_path, "2 0.5 0.5 0.5 0.5\n")
    source: Any = open_source(tmp_path, annotations="yolo,mask=classes")
    mask = source.read(0).targets["mask"]
    assert mask[10:30, 15:45].min() == mask.max() == 3
    assert (mask != 0).sum() == 20 * 30
    ignored: Any = open_source(tmp_path, annotations="yolo,mask=classes,unoutlined=ignore")
    assert ignored.read(0).targets["mask"].max() == 255
