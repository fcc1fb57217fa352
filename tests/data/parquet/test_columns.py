"""Which columns are images and labels, what labels become, and the words for files that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.contract import huggingface_table, pictures
from variegate.data.base import SourceError
from variegate.data.parquet.read import open_parquet
from variegate.data.samples import Samples

IMAGES = pa.array([b"a", b"b", b"c"], pa.binary())


def write(path: Path, **columns: Any) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


def labels_of(source: Samples) -> list[Any]:
    return [source.read(i).label for i in range(len(source))]


def test_metadata_names_the_columns(tmp_path: Path) -> None:
    table = huggingface_table(pictures())
    renamed = table.rename_columns(["photo", "species"]).append_column("label", table.column("label"))
    text = table.schema.metadata[b"huggingface"].replace(b'"image"', b'"photo"').replace(b'"label"', b'"species"')
    pq.write_table(renamed.replace_schema_metadata({"huggingface": text}), tmp_path / "a.parquet")
    source = open_parquet([str(tmp_path / "a.parquet")])
    assert source.classes == ("ant", "bee", "cat")
    assert labels_of(source) == [picture.label for picture in pictures()]
    assert source.notes() == ["labels are read from column 'species', not from label"]
    renamed_classes = open_parquet([str(tmp_path / "a.parquet")], classes=["x", "y", "z"])
    assert renamed_classes.classes == ("x", "y", "z")


def test_usual_names_and_the_users_choice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", other=IMAGES, img=IMAGES, coarse_label=[1, 1, 2], fine_label=[7, 8, 9])
    source = open_parquet([path])
    assert labels_of(source) == [7, 8, 9]
    assert source.notes() == [
        "images are read from column 'img', not from other",
        "labels are read from column 'fine_label', not from coarse_label",
    ]
    assert open_parquet([path], image="other").fingerprint != source.fingerprint


def test_metadata_that_is_none_is_passed_over(tmp_path: Path) -> None:
    for text in (b"{not json", b'{"info": null}', b"[]", b'{"info": {"features": [1]}}'):
        table = pa.table({"image": IMAGES, "label": [1, 0, 1]}).replace_schema_metadata({b"huggingface": text})
        pq.write_table(table, tmp_path / "a.parquet")
        assert labels_of(open_parquet([str(tmp_path / "a.parquet")])) == [1, 0, 1]


def test_no_labels(tmp_path: Path) -> None:
    source = open_parquet([write(tmp_path / "a.parquet", only_column=IMAGES)])
    assert labels_of(source) == [-1, -1, -1]
    assert source.notes() == ["no column of labels in a.parquet: every label is -1"]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([2, 0, 1], pa.uint8()), [2, 0, 1]),
        (pa.array([True, False, True]), [1, 0, 1]),
        (pa.array([0.5, 1.5, 2.5], pa.float32()), [0.5, 1.5, 2.5]),
        (pa.array([4, None, 1]), [4, -1, 1]),
        (pa.array(["b", "a", None]), [1, 0, -1]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), [1, 0, 1]),
    ],
)
def test_labels_of_many_kinds(column: pa.Array, expected: list[Any], tmp_path: Path) -> None:
    source = open_parquet([write(tmp_path / "a.parquet", image=IMAGES, label=column)])
    assert labels_of(source) == expected
    assert [type(label) for label in labels_of(source)] == [type(label) for label in expected]
    is_missing = ["1 rows have no label in column 'label'; theirs is -1"] if column.null_count else []
    assert source.notes() == is_missing


def test_labels_may_be_rows_of_numbers(tmp_path: Path) -> None:
    rows = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    path = write(tmp_path / "a.parquet", image=IMAGES, label=pa.array(rows, pa.list_(pa.float32(), 2)))
    np.testing.assert_array_equal(np.stack(labels_of(open_parquet([path]))), rows)
    missing = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))
    with pytest.raises(SourceError, match=r"a\.parquet: column 'label' has rows without labels"):
        open_parquet([write(tmp_path / "a.parquet", image=IMAGES, label=missing)])


def test_strings_are_numbered_over_all_files(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "a.parquet", image=IMAGES, label=["cat", "ant", "cat"]),
        write(tmp_path / "b.parquet", image=IMAGES, label=["bee", "bee", "ant"]),
    ]
    source = open_parquet(paths)
    assert source.classes == ("ant", "bee", "cat")
    assert labels_of(source) == [2, 0, 2, 1, 1, 0]
    assert labels_of(open_parquet(paths, classes=["cat", "bee", "ant"])) == [0, 2, 0, 1, 1, 2]
    with pytest.raises(SourceError, match=r"b\.parquet: row 0: label 'bee'; accepted: ant, cat"):
        open_parquet(paths, classes=["ant", "cat"])


def test_ints_are_within_the_classes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", image=IMAGES, label=[0, 1, 2])
    with pytest.raises(SourceError, match=r"a\.parquet: row 2: label 2; accepted: 0 to 1 for 2 classes"):
        open_parquet([path], classes=["a", "b"])


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {"text": ["x"], "label": [1]},
            {},
            r"a\.parquet: no column of images; its columns: text \(string\), label \(int64\); accepted: .*struct<bytes",
        ),
        ({"image": ["x.jpg"]}, {}, r"no column of images; its columns: image \(string\)"),
        ({"one": [b"x"], "two": [b"x"]}, {}, "images may be in any of one, two; accepted: one such column"),
        ({"image": [b"x"]}, {"image": "img"}, "image='img': no such column; its columns: image"),
        ({"image": [b"x"], "n": [1]}, {"image": "n"}, "image='n': int64; its columns"),
        ({"image": pa.array([], pa.binary())}, {}, r"a\.parquet: no rows"),
    ],
)
def test_columns_that_do_not_fit(columns: Any, options: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=message):
        open_parquet([write(tmp_path / "a.parquet", **columns)], **options)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"img": IMAGES}, r"b\.parquet: no images in a column 'image', where .*a\.parquet has them; its columns: img"),
        ({"image": IMAGES}, r"b\.parquet: no column 'label', where .*a\.parquet has its labels"),
        ({"image": IMAGES, "label": ["x"] * 3}, r"b\.parquet: column 'label' is string, and int64 in .*a\.parquet"),
    ],
)
def test_files_that_do_not_agree(second: Any, message: str, tmp_path: Path) -> None:
    first = write(tmp_path / "a.parquet", image=IMAGES, label=[1, 2, 3])
    with pytest.raises(SourceError, match=message):
        open_parquet([first, write(tmp_path / "b.parquet", **second)])


def test_files_agree_in_having_labels_and_in_their_names(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "a.parquet", image=IMAGES),
        write(tmp_path / "b.parquet", image=IMAGES, label=[1, 2, 3], other=[1, 2, 3]),
    ]
    with pytest.raises(SourceError, match=r"b\.parquet: has labels \(column 'label'\), and .*a\.parquet has none"):
        open_parquet(paths)
    table = huggingface_table(pictures())
    pq.write_table(table, tmp_path / "c.parquet")
    text = table.schema.metadata[b"huggingface"].replace(b"bee", b"eel")
    pq.write_table(table.replace_schema_metadata({"huggingface": text}), tmp_path / "d.parquet")
    with pytest.raises(SourceError, match=r"d\.parquet: column 'label' has other class names than in .*c\.parquet"):
        open_parquet([str(tmp_path / "c.parquet"), str(tmp_path / "d.parquet")])


def test_columns_of_other_widths_agree(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "a.parquet", image=IMAGES, label=pa.array([1, 2, 3], pa.int8())),
        write(tmp_path / "b.parquet", extra=[1, 2, 3], image=pa.array(IMAGES, pa.large_binary()), label=[4, 5, 6]),
    ]
    assert labels_of(open_parquet(paths)) == [1, 2, 3, 4, 5, 6]


def test_files_that_are_not_parquet(tmp_path: Path) -> None:
    whole = Path(write(tmp_path / "a.parquet", image=IMAGES)).read_bytes()
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "text.parquet").write_text("image,label\n" * 20)
    (tmp_path / "cut.parquet").write_bytes(whole[:-20])
    (tmp_path / "footer.parquet").write_bytes(whole[:-60] + b"\xff" * 40 + whole[-20:])
    accepted = "accepted: a Parquet file with a column of images"
    for name, message in {
        "empty": "zero bytes: the file is empty",
        "text": "not a Parquet file, or cut short",
        "cut": "not a Parquet file, or cut short",
        "footer": "",
        "gone": "no such file",
    }.items():
        with pytest.raises(SourceError, match=rf"{name}\.parquet: {message}.*; {accepted}"):
            open_parquet([str(tmp_path / f"{name}.parquet")])
    with pytest.raises(SourceError, match=f"a folder, not a file; {accepted}"):
        open_parquet([str(tmp_path)])


def test_arguments(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", image=IMAGES, label=[0, 0, 1])
    with pytest.raises(SourceError, match=r"paths: got .*a\.parquet'; accepted: a sequence of paths"):
        open_parquet(path)
    with pytest.raises(SourceError, match=r"paths: got \[\]"):
        open_parquet([])
    with pytest.raises(TypeError, match="classes: got 'ab'"):
        open_parquet([path], classes="ab")
