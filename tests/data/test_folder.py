"""Listing folders, of this machine and at addresses: ImageFolder's order, and clear words if there is nothing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from variegate.data.base import SourceError
from variegate.data.folder import WalkedFolder, list_images, open_folder
from variegate.data.opening import open_source
from variegate.data.samples import name_column
from variegate.io.location import Location


def lay(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            (root / name).mkdir()
        else:
            (root / name).touch()
    return root


def cases() -> Iterator[Any]:
    for line in Path(__file__).with_name("folders.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield pytest.param(*map(str.strip, line.split("|")), id=line[:60])


@pytest.mark.parametrize("is_remote", [False, True])
@pytest.mark.parametrize(("names", "classes", "images", "notes"), cases())
def test_folders(
    tmp_path: Path, memory: Any, names: str, classes: str, images: str, notes: str, is_remote: bool
) -> None:
    place = str(lay(tmp_path / "data", *names.split()))
    if is_remote:
        memory.put(place, "/data", recursive=True)
        place = "memory://data"
    if images.startswith("!"):
        with pytest.raises(SourceError) as error:
            open_source(place)
        assert str(error.value).startswith(f"{place}: {images[1:]}")
        return
    source = pickle.loads(pickle.dumps(open_source(place)))
    assert source.is_remote == is_remote
    assert source.classes == tuple(classes.split())
    labels = source.labels(np.arange(len(source))).tolist()
    assert [f"{path} {label}" for path, label in zip(source.paths(), labels, strict=True)] == images.split(", ")
    assert source.name(0).file == f"{place}/{source.paths()[0]}"
    assert source.empty_classes == tuple(one for number, one in enumerate(source.classes) if number not in labels)
    beginnings = notes.split(" ; ") if notes else []
    for note, beginning in zip(source.notes(), beginnings, strict=True):
        assert note.startswith(beginning)


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    lay(tmp_path / "elsewhere", "1.jpg")
    lay(tmp_path / "root", "a/2.jpg")
    (tmp_path / "root/a/loop").symlink_to(tmp_path / "root/a")
    (tmp_path / "root/b").symlink_to(tmp_path / "elsewhere")
    assert open_folder(tmp_path / "root").paths() == ["a/2.jpg", "b/1.jpg"]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("{root}/gone", r"gone: no such folder; expected a folder of images"),
        ("{root}/file.jpg", r"file\.jpg: is a file, not a folder"),
        ("https://user:secret@host/data", "^https://host/data: http servers cannot list a folder; put the images into"),
    ],
)
def test_places_that_are_no_folders(tmp_path: Path, place: str, message: str) -> None:
    lay(tmp_path, "file.jpg")
    with pytest.raises(SourceError, match=message):
        open_folder(place.format(root=tmp_path))


def test_a_name_takes_its_bytes_and_a_label(tmp_path: Path) -> None:
    """A pickled copy goes to each worker."""
    files = {f"n{label:08}": [f"n{label:08}_{number}.JPEG" for number in range(1000)] for label in range(20)}
    walked = WalkedFolder({"": name_column([]), **{folder: name_column(names) for folder, names in files.items()}})
    source = list_images(Location.of(str(tmp_path)), walked)
    characters = sum(map(len, source.paths()))
    assert len(source) == 20_000
    assert len(pickle.dumps(source)) < characters + 17 * len(source)
