"""What data.yaml says of splits: folders, lists, files that list images, and paths of where the data set once was."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.formats.annotated.made import check_objects, put_yolo
from variegate.formats.base import SourceError
from variegate.formats.opening import open_source
from variegate.formats.yolo import label_file

_NAMES = "names: [ant, bee, cat]\n"


def put(root: Path, said: str, images: str = "images", labels: str = "labels", extra: str = "") -> Path:
    """Images and labels in these folders, and data.yaml."""
    put_yolo(root)
    for kind, wanted in (("images", images), ("labels", labels)):
        if wanted != kind:
            (root / wanted).parent.mkdir(parents=True, exist_ok=True)
            (root / kind).rename(root / f"{kind}.moved")
            (root / wanted).parent.mkdir(parents=True, exist_ok=True)
            (root / f"{kind}.moved").rename(root / wanted)
    (root / "data.yaml").write_text(f"{said}\n{_NAMES}")
    if extra:
        (root / "list.txt").write_text(extra)
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
    source = opened(root)
    check_objects(source)
    assert source.about["folders"] == ["images"]
    check_objects(opened(root, None))


def test_folders_that_have_splits_outside(tmp_path: Path) -> None:
    said = "train: ../train/images\nval: ../valid/images"
    root = put(tmp_path / "roboflow", said, "train/images", "train/labels")
    check_objects(opened(root))
    assert opened(root).paths()[0] == "train/images/a.png"
    with pytest.raises(SourceError, match=re.escape("data.yaml: val: got '../valid/images', and there is no valid/im")):
        opened(root, "val")
    with pytest.raises(
        SourceError, match=r"no folder images/test in it, and data\.yaml has no 'test'; it has train, va"
    ):
        opened(root, "test")
    (root / "data.yaml").write_text(f"path: {root}\ntrain: train/images\n{_NAMES}")
    check_objects(opened(root))
    check_objects(opened(root, None))  # there is no folder "images": all splits


def test_several_folders_and_files_that_list_images(tmp_path: Path) -> None:
    root = put(tmp_path / "a", "train: [images/one, images/two]", "images/one", "labels/one")
    for kind, name in (("images", "b.png"), ("labels", "b.txt")):
        (root / kind / "two").mkdir()
        (root / kind / "one" / name).rename(root / kind / "two" / name)
    source = opened(root)
    assert source.paths() == ["images/one/a.png", "images/one/c.png", "images/two/b.png"]
    check_objects(source, (0, 2, 1))
    lines = ["./images/two/b.png", "", "images/one/a.png", str(root.resolve() / "images/one/c.png")]
    (root / "list.txt").write_text("\n".join(lines))
    (root / "data.yaml").write_text(f"train: list.txt\nval: [images/two]\n{_NAMES}")
    check_objects(opened(root), (1, 0, 2))
    assert opened(root).about["folders"] == ["images/one", "images/two"]
    assert len(opened(root, "val")) == 1
    (root / "list.txt").write_text("./images/one/a.png\n../other/x.png\nimages/gone.png\n")
    with pytest.raises(SourceError, match=r"list\.txt: 2 of 3 images are not there: \.\./other/x\.png, images/gone\.p"):
        opened(root)
    skipped = opened(root, on_error="skip")
    assert skipped.paths() == ["images/one/a.png"]
    assert any("2 of 3 images" in note and "skipped" in note for note in skipped.notes())


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ("train: 7", r"data\.yaml: train: got 7; accepted: a folder, a \.txt file"),
        ("train: [images, {a: 1}]", r"data\.yaml: train: got \['images', \{'a': 1\}\]; accepted"),
        ("path: [1]\ntrain: images", r"data\.yaml: path: got \[1\]; accepted: a folder"),
        ("train: /elsewhere/images", r"data\.yaml: train: got '/elsewhere/images', which leads out of"),
        ("train: ../../..", r"data\.yaml: train: got '\.\./\.\./\.\.', which leads out of"),
        ("train: no.txt", r"data\.yaml: train: got 'no\.txt', and there is no no\.txt in"),
        ("train: empty.txt", r"empty\.txt: names no images"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, said: str, match: str) -> None:
    root = put(tmp_path / "data", said)
    (root / "empty.txt").write_text("\n\n")
    with pytest.raises(SourceError, match=match):
        opened(root)


def test_where_labels_are() -> None:
    assert label_file("images/train/a.b.jpg") == "labels/train/a.b.txt"
    assert label_file("images/x/images/a.jpg") == "images/x/labels/a.txt"
    assert label_file("train/images/a.jpg") == "train/labels/a.txt"
    assert label_file("pictures/a.jpg") == "pictures/a.txt"
    assert label_file("a.jpg") == "a.txt"
