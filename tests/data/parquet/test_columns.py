"""Which columns are images and labels, what labels become, and the words for files that do not fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.contract import huggingface_table, pictures
from variegate.data.base import SourceError
from variegate.data.parquet import open_parquet
from variegate.data.samples import Samples

IMAGES = pa.array([b"a", b"b", b"c"], pa.binary())
IMAGE_COLUMNS = ("image", "img", "other", "one", "two", "only")


def write(path: Path, **columns: Any) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


def labels_of(source: Samples) -> list[Any]:
    return [source.read(i).label for i in range(len(source))]


def cases() -> Iterator[Any]:
    for line in Path(__file__).with_name("columns.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            columns, options, labels, notes = map(str.strip, line.split("|"))
            yield pytest.param(columns, options, labels, notes, id=line[:80])


@pytest.mark.parametrize(("columns", "options", "labels", "notes"), cases())
def test_columns_of_images_and_labels(tmp_path: Path, columns: str, options: str, labels: str, notes: str) -> None:
    tables = json.loads(columns)
    paths = []
    for name, table in zip("ab", tables if isinstance(tables, list) else [tables], strict=False):
        for column in table:
            if column in IMAGE_COLUMNS and all(isinstance(one, str) for one in table[column]):
                table[column] = pa.array([one.encode() for one in table[column]], pa.binary())
        paths.append(write(tmp_path / f"{name}.parquet", **table))
    given = json.loads(options or "{}")
    if labels.startswith("!"):
        with pytest.raises(SourceError) as error:
            open_parquet(paths, **given)
        assert labels[1:] in str(error.value)
        return
    source = open_parquet(paths, **given)
    expected = json.loads(labels)
    assert labels_of(source) == expected
    assert [type(label) for label in labels_of(source)] == [type(label) for label in expected]
    assert source.notes() == (notes.split(" ; ") if notes else [])


def test_metadata_names_the_columns(tmp_path: Path) -> None:
    table = huggingface_table(pictures())
    renamed = table.rename_columns(["photo", "species"]).append_column("label", table.column("label"))
    text = table.schema.metadata[b"huggingface"].replace(b'"image"', b'"photo"').replace(b'"label"', b'"species"')
    pq.write_table(renamed.replace_schema_metadata({"huggingface": text}), tmp_path / "a.parquet")
    source = open_parquet([str(tmp_path / "a.parquet")])
    assert source.classes == ("ant", "bee", "cat")
    assert labels_of(source) == [picture.label for picture in pictures()]
    assert source.notes() == ["labels are read from column 'species', not from label"]
    assert open_parquet([str(tmp_path / "a.parquet")], classes=["x", "y", "z"]).classes == ("x", "y", "z")


def test_metadata_that_is_none_is_skipped_and_names_must_agree(tmp_path: Path) -> None:
    for text in (b"{not json", b'{"info": null}', b"[]", b'{"info": {"features": [1]}}'):
        table = pa.table({"image": IMAGES, "label": [1, 0, 1]}).replace_schema_metadata({b"huggingface": text})
        pq.write_table(table, tmp_path / "a.parquet")
        assert labels_of(open_parquet([str(tmp_path / "a.parquet")])) == [1, 0, 1]
    table = huggingface_table(pictures())
    pq.write_table(table, tmp_path / "c.parquet")
    text = table.schema.metadata[b"huggingface"].replace(b"bee", b"eel")
    pq.write_table(table.replace_schema_metadata({"huggingface": text}), tmp_path / "d.parquet")
    with pytest.raises(SourceError, match=r"d\.parquet: column 'label' has other class names than in .*c\.parquet"):
        open_parquet([str(tmp_path / "c.parquet"), str(tmp_path / "d.parquet")])


def test_labels_may_be_rows_of_numbers_and_dictionaries(tmp_path: Path) -> None:
    rows = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    path = write(tmp_path / "a.parquet", image=IMAGES, label=pa.array(rows, pa.list_(pa.float32(), 2)))
    np.testing.assert_array_equal(np.stack(labels_of(open_parquet([path]))), rows)
    missing: list[Any] = [[[1, 2], [None, 2], [3, 4]]]
    if int(pa.__version__.split(".")[0]) >= 26:  # older versions write no null of lists, or do not read it
        missing.append([[1, 2], None, [3, 4]])
    for numbers in missing:
        labels = pa.array(numbers, pa.list_(pa.int64(), 2))
        with pytest.raises(SourceError, match=r"a\.parquet: column 'label' has rows without labels"):
            open_parquet([write(tmp_path / "a.parquet", image=IMAGES, label=labels)])
    names = pa.array(["b", "a", "b"]).dictionary_encode()
    assert labels_of(open_parquet([write(tmp_path / "a.parquet", image=IMAGES, label=names)])) == [1, 0, 1]
    narrow = write(tmp_path / "a.parquet", image=IMAGES, label=pa.array([1, 2, 3], pa.int8()))
    wide = write(tmp_path / "b.parquet", image=IMAGES.cast(pa.large_binary()), label=[4, 5, 6])
    assert labels_of(open_parquet([narrow, wide])) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("empty", "zero bytes: the file is empty"),
        ("text", "not a Parquet file, or cut short"),
        ("cut", "not a Parquet file, or cut short"),
        ("footer", ""),
        ("gone", "no such file"),
    ],
)
def test_files_that_are_not_parquet(tmp_path: Path, name: str, message: str) -> None:
    whole = Path(write(tmp_path / "a.parquet", image=IMAGES)).read_bytes()
    contents = {"empty": b"", "text": b"image,label\n" * 20, "cut": whole[:-20]}
    contents["footer"] = whole[:-60] + b"\xff" * 40 + whole[-20:]
    if name in contents:
        (tmp_path / f"{name}.parquet").write_bytes(contents[name])
    with pytest.raises(SourceError, match=rf"{name}\.parquet: {message}.*; accepted: a Parquet file with a column of"):
        open_parquet([str(tmp_path / f"{name}.parquet")])
