"""Names of outputs: readable, never the same for two, never outside of the root."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate.data.folder import WalkedFolder, list_images, open_folder
from variegate.data.objects.arrays import open_arrays
from variegate.data.samples import Samples, name_column
from variegate.data.storage import open_storage
from variegate.data.storage.base import check_relative
from variegate.io.location import Location
from variegate.jobs.output.files import OutputNames, class_folders, output_path, output_stems, safe_name


def test_plain_names_lose_their_extension() -> None:
    assert output_stems(["cat/a.jpg", "dog/a.jpg", "cat/deep/a.png"]) == ["cat/a", "dog/a", "cat/deep/a"]
    assert output_path("cat/a", 3, "jpg") == "cat/a_3.jpg"


def test_same_stem_keeps_the_extension() -> None:
    assert output_stems(["c/a.jpg", "c/a.png", "c/b.jpg"]) == ["c/a.jpg", "c/a.png", "c/b"]


def test_names_that_differ_in_case_alone_do_not_meet() -> None:
    assert output_stems(["c/a.jpg", "c/A.jpg", "c/a.png"]) == ["c/a.jpg~0", "c/A.jpg~1", "c/a.png"]


NAMES = st.lists(
    st.tuples(st.sampled_from("ab"), st.text("aA.~_0", min_size=1, max_size=5), st.sampled_from(["jpg", "png", "JPG"]))
    .map(lambda t: f"{t[0]}/{t[1]}.{t[2]}")
    .filter(lambda p: not p.split("/")[1].startswith(".")),
    unique=True,
    max_size=12,
)


@given(NAMES)
def test_outputs_never_meet_on_any_file_system(paths: list[str]) -> None:
    outputs = [output_path(stem, copy, "jpg").casefold() for stem in output_stems(paths) for copy in (0, 1, 10)]
    assert len(set(outputs)) == len(outputs)


def array_source(labels: Any, classes: tuple[str, ...] = ()) -> Samples:
    return open_arrays(np.zeros((len(labels), 2, 2, 3), np.uint8), labels, classes)


def test_folders_keep_their_names(tmp_path: Path) -> None:
    for name in ("cat/a.jpg", "cat/a.png", "dog/deep/b: c?.jpg", "dog/caf\udce9.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    source = open_folder(tmp_path)
    names = pickle.loads(pickle.dumps(OutputNames(source)))
    stems = [names.stem(index, source.read(index).label) for index in range(4)]
    assert stems == output_stems(source.paths())
    assert sorted(stems) == ["cat/a.jpg", "cat/a.png", "dog/caf\udce9", "dog/deep/b: c?"]


def test_keys_of_a_bucket_cannot_lead_out() -> None:
    """Their listing is a folder's, but they may hold what no folder on a disk can."""
    files = {"": [], "..": ["x.jpg"], "a/../..": ["x.jpg"], "a//b": ["x.jpg"], "Manifest.parquet": ["y.jpg"]}
    folders = {folder: name_column(names) for folder, names in files.items()}
    listing = list_images(Location.parse("s3://bucket"), WalkedFolder(folders))
    stems = [OutputNames(listing).stem(index, 0) for index in range(len(listing))]  # type: ignore[arg-type]
    assert stems == ["__/x", "Manifest.parquet_/y", "a/__/__/x", "a/_/b/x"]


def test_long_names_leave_room_for_the_number(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    for letter in "ab":
        (tmp_path / "cat" / ("é" * 120 + letter + ".jpg")).touch()
    names = OutputNames(open_folder(tmp_path))
    stems = [names.stem(index, 0) for index in (0, 1)]
    assert len(set(stems)) == 2
    storage = open_storage(tmp_path / "out")
    for stem in stems:
        storage.write(output_path(stem, 123456, "webp"), b"")
    assert len(os.listdir(tmp_path / "out" / "cat")) == 2


def test_numbers_stand_in_the_folder_of_their_class() -> None:
    source = array_source([1, 0, -1, 1], ("tench, Tinca tinca", "a/b"))
    names = pickle.loads(pickle.dumps(OutputNames(source)))
    stems = [names.stem(index, source.read(index).label) for index in range(4)]
    assert stems == ["a_b/00000000", "tench, Tinca tinca/00000001", "00000002", "a_b/00000003"]
    assert names.stem(123456789, 5) == "123456789"  # of no class that is known


def test_classes_without_names_are_numbers() -> None:
    names = OutputNames(array_source([7, -1]))
    assert [names.stem(0, 7), names.stem(1, -1)] == ["7/00000000", "00000001"]
    for label in (0.5, np.array([1.0, 2.0])):
        assert OutputNames(array_source([label])).stem(0, label) == "00000000"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("n01440764", "n01440764"),
        ("..", "__"),
        ("", "_"),
        (".hidden", "_hidden"),
        ("a/../b", "a_.._b"),
        ("/etc/passwd", "_etc_passwd"),
        ("C:\\x", "C__x"),
        ("a\0b\n", "a_b_"),
        ("a.", "a_"),
        ("con", "con_"),
        ("NUL.txt", "NUL.txt_"),
        ("variegate.json", "variegate.json_"),
        ("Manifest.Parquet", "Manifest.Parquet_"),
        ("caf\udce9", "caf_"),
        ("é" * 200, "é" * 115),
    ],
)
def test_safe_names(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_classes_that_would_meet_stay_apart() -> None:
    assert class_folders(["a/b", "a_b", "A_B", "c", "a:b"]) == ["a_b~0", "a_b~1", "A_B~2", "c", "a_b~4"]
    assert class_folders(["a", "A", "a~0"]) == ["a~0~", "A~1", "a~0"]
    assert class_folders(["e\u0301", "\u00e9"]) == ["e\u0301~0", "\u00e9~1"]  # the same to some file systems


@given(st.lists(st.text(max_size=6) | st.text("aA/.~_01", max_size=5), unique=True, max_size=12))
def test_folders_of_any_classes(classes: list[str]) -> None:
    folders = class_folders(classes)
    assert len({folder.casefold() for folder in folders}) == len(classes)
    for folder in folders:
        assert check_relative(folder) == folder
        assert "/" not in folder
        assert not folder.startswith(".")
        assert len(os.fsencode(folder)) < 250
