"""Listing folders: ImageFolder's order, and clear words when there is nothing to list."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from variegate.data.base import SourceError
from variegate.data.folder import WalkedFolder, list_images, open_folder
from variegate.data.samples import name_column
from variegate.io.location import Location


def lay(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_class_folders_in_the_order_of_image_folder(tmp_path: Path) -> None:
    lay(tmp_path, "dog/b.PNG", "dog/a.jpeg", "cat/z.jpg", "cat/deep/er/1.webp", "cat/Z.jpg", "Ant/x.gif")
    source = open_folder(tmp_path)
    assert source.classes == ("Ant", "cat", "dog")
    assert list(zip(source.paths(), source.labels(np.arange(len(source))).tolist(), strict=True)) == [
        ("Ant/x.gif", 0),
        ("cat/Z.jpg", 1),
        ("cat/z.jpg", 1),
        ("cat/deep/er/1.webp", 1),
        ("dog/a.jpeg", 2),
        ("dog/b.PNG", 2),
    ]
    assert len(source) == 6
    assert source.name(3).file == str(tmp_path / "cat/deep/er/1.webp")
    assert source.classes[source.read(4).label] == "dog"


def test_empty_classes_keep_their_index_and_are_reported(tmp_path: Path) -> None:
    lay(tmp_path, "b/1.jpg", "c/notes.txt")
    (tmp_path / "a").mkdir()
    source = open_folder(tmp_path)
    assert source.classes == ("a", "b", "c")
    assert source.read(0).label == 1
    assert source.empty_classes == ("a", "c")
    assert source.notes() == [
        "class folders without images: a, c",
        "1 files that are not taken for images: c/notes.txt",
    ]


def test_flat_folder_is_one_class(tmp_path: Path) -> None:
    source = open_folder(lay(tmp_path, "b.jpg", "a.png", "sub/notes.txt"))
    assert source.classes == (".",)
    assert list(zip(source.paths(), source.labels(np.arange(len(source))).tolist(), strict=True)) == [
        ("a.png", 0),
        ("b.jpg", 0),
    ]


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    lay(tmp_path / "elsewhere", "1.jpg")
    lay(tmp_path / "root", "a/2.jpg")
    (tmp_path / "root/a/loop").symlink_to(tmp_path / "root/a")
    (tmp_path / "root/b").symlink_to(tmp_path / "elsewhere")
    assert open_folder(tmp_path / "root").paths() == ["a/2.jpg", "b/1.jpg"]


def test_errors_name_the_folder_and_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"gone: no such folder; expected a folder of images"):
        open_folder(tmp_path / "gone")
    lay(tmp_path, "file.jpg", "empty/x.txt")
    with pytest.raises(SourceError, match=r"file\.jpg: is a file, not a folder"):
        open_folder(tmp_path / "file.jpg")
    with pytest.raises(SourceError, match=r"empty: no images \(1 other files\); accepted extensions: \.jpg"):
        open_folder(tmp_path / "empty")


def test_images_next_to_class_folders_are_distinguished_from_other_files(tmp_path: Path) -> None:
    for file in ("cat/a.jpg", "b.jpg", "notes.txt"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(b"")
    first, second = open_folder(tmp_path).notes()
    assert "images next to the class folders have no class; variegate check reads them" in first
    assert "loaders do not: b.jpg;" in first
    assert second == "1 files that are not taken for images: notes.txt"
    (tmp_path / "cat" / "a.jpg").unlink()
    assert len(open_folder(tmp_path)) == 1  # a flat folder now, whose images are its own


def test_a_name_takes_its_bytes_and_a_label(tmp_path: Path) -> None:
    """A pickled copy goes to each worker."""
    files = {f"n{label:08}": [f"n{label:08}_{number}.JPEG" for number in range(1000)] for label in range(20)}
    walked = WalkedFolder({"": name_column([]), **{folder: name_column(names) for folder, names in files.items()}})
    source = list_images(Location.of(str(tmp_path)), walked)
    characters = sum(map(len, source.paths()))
    assert len(source) == 20_000
    assert len(pickle.dumps(source)) < characters + 17 * len(source)
