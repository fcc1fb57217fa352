"""YOLO's text files, and data.yaml: folders, lists, files that list images, and paths where the data set once was."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.data.annotated.made import check_objects, put_yolo
from variegate.data.base import SourceError
from variegate.data.opening import open_source
from variegate.data.yolo import label_file

_NAMES = "names: [ant, bee, cat]\n"


def read_row(root: Path, line: str, annotations: str = "yolo") -> Any:
    """Targets of the first image, 40 x 60, with this label file."""
    (root / "labels" / "a.txt").write_text(line)
    return open_source(root, annotations=annotations).read(0).targets


def test_boxes_in_pixels(tmp_path: Path) -> None:
    check_objects(open_source(put_yolo(tmp_path)))
    (tmp_path / "labels" / "b.txt").unlink()
    source = open_source(tmp_path, annotations="yolo")
    check_objects(source)
    assert "1 image without a file in labels, and so without objects" in source.notes()


def test_a_class_without_a_name_is_bounded(tmp_path: Path) -> None:
    """All names up to the highest are made: 10**12 of them took all memory."""
    (put_yolo(tmp_path) / "data.yaml").unlink()
    assert open_source(tmp_path, annotations="yolo").classes == ("0", "1", "2")
    with pytest.raises(SourceError, match=r"a\.txt, line 1: the class is '1000000000000'; accepted: whole numbers"):
        read_row(tmp_path, "1000000000000 0.5 0.5 0.5 0.5\n")


def put(root: Path, said: str, above: str = "") -> Path:
    """data.yaml, and images and labels in folders ``above``."""
    put_yolo(root / above)
    (root / "data.yaml").write_text(f"{said}\n{_NAMES}")
    return root


def opened(root: Path, split: str | None = "train", **more: Any) -> Any:
    return open_source(root, annotations={"format": "yolo", "split": split}, **more)


@pytest.mark.parametrize(
    "said",
    [
        "train: images",
        "path: .\ntrain: images\nval:",
        "path: /content/datasets/coco8\ntrain: images/\n",
        "path: ../datasets/coco8\ntrain: [images]",
        "train: ../images\nval: ../valid/images",
    ],
)
def test_a_folder_by_its_split(tmp_path: Path, said: str) -> None:
    root = put(tmp_path / "here", said)
    check_objects(opened(root))
    assert opened(root).metadata["folders"] == ["images"]
    check_objects(opened(root, None))


def test_splits_without_data_yaml_are_folders(tmp_path: Path) -> None:
    put_yolo(tmp_path / "data")
    for kind in ("images", "labels"):
        (tmp_path / kind).mkdir()
        (tmp_path / "data" / kind).rename(tmp_path / kind / "train")
    check_objects(opened(tmp_path, classes=["ant", "bee", "cat"]))
    with pytest.raises(SourceError, match="no folder images/val in it"):
        opened(tmp_path, "val")


def test_folders_that_have_splits_outside(tmp_path: Path) -> None:
    root = put(tmp_path / "roboflow", "train: ../train/images\nval: ../valid/images", "train")
    check_objects(opened(root))
    assert opened(root).paths()[0] == "train/images/a.png"
    with pytest.raises(SourceError, match=re.escape("data.yaml: val: got '../valid/images', and there is no valid/im")):
        opened(root, "val")
    with pytest.raises(
        SourceError, match=r"no folder images/test in it, and data\.yaml has no 'test'; it has train, v"
    ):
        opened(root, "test")
    (root / "data.yaml").write_text(f"path: {root}\ntrain: train/images\n{_NAMES}")
    check_objects(opened(root))
    check_objects(opened(root, None))  # there is no folder "images": all splits


def test_several_folders_and_files_that_list_images(tmp_path: Path) -> None:
    root = put(tmp_path / "a", "train: [images, images/two]\nval: list.txt")
    for kind, name in (("images", "b.png"), ("labels", "b.txt")):
        (root / kind / "two").mkdir()
        (root / kind / name).rename(root / kind / "two" / name)
    check_objects(opened(root), (0, 2, 1))
    lines = ["./images/two/b.png", "", "images/a.png", str(root.resolve() / "images/c.png")]
    (root / "list.txt").write_text("\n".join(lines))
    check_objects(opened(root, "val"), (1, 0, 2))
    assert opened(root, "val").metadata["folders"] == ["images", "images/two"]
    (root / "list.txt").write_text("./images/a.png\n../other/x.png\nimages/gone.png\n")
    with pytest.raises(
        SourceError, match=r"list\.txt: 2 of 3 images that are missing: \.\./other/x\.png, images/gone\.p"
    ):
        opened(root, "val")
    skipped = opened(root, "val", on_error="skip")
    assert skipped.paths() == ["images/a.png"]
    assert any("2 of 3 images" in note and "skipped" in note for note in skipped.notes())
    (root / "list.txt").write_text("\n\n")
    with pytest.raises(SourceError, match=r"list\.txt: names no images"):
        opened(root, "val")


def test_where_labels_are() -> None:
    assert label_file("images/train/a.b.jpg") == "labels/train/a.b.txt"
    assert label_file("images/x/images/a.jpg") == "images/x/labels/a.txt"
    assert label_file("train/images/a.jpg") == "train/labels/a.txt"
    assert label_file("pictures/a.jpg") == "pictures/a.txt"
    assert label_file("a.jpg") == "a.txt"
