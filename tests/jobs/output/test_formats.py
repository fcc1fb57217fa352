"""The contract of class folders, WebDataset shards and Parquet shards; and what each accepts for labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.tars import indices_of
from tests.jobs.output.contract import CLASSES, FORMATS, as_read, records
from tests.jobs.output.runs import tree
from variegate.data.base import SourceError
from variegate.data.labels import CLASS_NAMES, class_names_bytes
from variegate.data.opening import open_source
from variegate.data.shards import Labels, Record, describe_labels, open_shard
from variegate.data.storage import Storage, open_storage
from variegate.jobs.output.manifest import write_manifest

SHARDS = ("webdataset", "parquet")


def read_back(place: str) -> list[tuple[Any, Any]]:
    source = open_source(place)
    items = [source.read(index) for index in indices_of(source)]
    return [(item.data, source.classes[item.label] if source.classes else item.label) for item in items]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("classes", [CLASSES, ()], ids=["named", "numbered"])
def test_everything_is_read_back(storage: Storage, format: str, classes: tuple[str, ...]) -> None:
    """Bytes, classes and order, wherever it was written to, with the manifest of the run beside it."""
    made = records(classes)
    storage.prepare()
    FORMATS[format](storage, made, classes)
    if format == "webdataset" and classes:
        storage.write(CLASS_NAMES, class_names_bytes(classes))
    write_manifest(storage, [{"index": record.index} for record in made], {})
    storage.write("variegate.json", b"{}")
    storage.remove_tree(".variegate")
    assert read_back(storage.root) == as_read(format, made, classes)


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_records_are_the_same_bytes(tmp_path: Path, format: str) -> None:
    for name in "ab":
        for _ in range(2):  # and once more over it
            FORMATS[format](open_storage(tmp_path / name), records(), CLASSES)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


@pytest.mark.parametrize("format", SHARDS)
def test_a_shard_that_is_discarded_empty_or_fails_leaves_nothing_of_itself(
    storage: Storage, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = describe_labels(format, 0, CLASSES)

    def fill(number: int, record: Record) -> Any:
        shard = open_shard(storage, format, number, labels)
        shard.add(record)
        return shard

    with fill(3, records()[0]) as shard:
        assert [name for name in storage.list() if not name.startswith(".")] == []
    shard.discard()
    assert shard.name not in storage.list()
    with fill(3, records()[0]) as shard:
        shard.commit()
    before = storage.read(shard.name)
    with fill(3, records()[1]) as shard:
        monkeypatch.setattr(shard._writer, "commit", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            shard.commit()
    assert storage.read(shard.name) == before
    with open_shard(storage, format, 3, labels) as shard:
        shard.commit()
    assert shard.name not in storage.list()
    assert storage.list(".variegate/tmp") == []


@pytest.mark.parametrize("format", SHARDS)
def test_members_are_named_by_sample_and_copy(tmp_path: Path, format: str) -> None:
    with open_shard(open_storage(tmp_path), format, 12, Labels()) as shard:
        assert shard.name.startswith("shard-000012.")
        record = Record(7, 3, b"x", "png", 0, None, "in", 0)
        assert shard.add(record) == "00000007_3.png"
        assert shard.count == 1
    assert Record(123456789, 11, b"", "jpg", 0, None, "in", 0).member == "123456789_11.jpg"


KINDS: list[tuple[tuple[str, ...], list[Any], list[Any]]] = [
    (SHARDS, [1, -1, 3], [1, -1, 3]),
    (SHARDS, [True, np.int32(5), np.uint8(7), np.array(9)], [1, 5, 7, 9]),
    (("parquet",), [0.5, 2], [0.5, 2]),
    (("parquet",), [np.float32(0.5), np.float32(1)], [0.5, 1]),
    (("parquet",), [np.array([1, 2]), np.array([3, 4])], [[1, 2], [3, 4]]),
    (("parquet",), [[0.5, 1], [2.0, 3.5]], [[0.5, 1], [2.0, 3.5]]),
]


@pytest.mark.parametrize(
    ("format", "labels", "expected"),
    [(format, labels, expected) for formats, labels, expected in KINDS for format in formats],
)
def test_numbers_of_any_kind_are_labels(tmp_path: Path, format: str, labels: list[Any], expected: list[Any]) -> None:
    with open_shard(open_storage(tmp_path), format, 0, describe_labels(format, labels[0])) as shard:
        for index, label in enumerate(labels):
            shard.add(Record(index, 0, records()[0].data, "jpg", label, None, "in", index))
        shard.commit()
    source: Any = open_source(tmp_path)
    np.testing.assert_array_equal([source.read(index).label for index in range(len(labels))], expected)


@pytest.mark.parametrize(
    ("format", "label", "classes", "message"),
    [
        ("folder", 0.5, (), r"labels such as 0\.5 do not go into class folders; accepted with them: parquet"),
        ("webdataset", np.array([1, 2]), (), r"labels such as array\(\[1, 2\]\) do not go into WebDataset's"),
        ("parquet", np.zeros((2, 2)), (), r"labels such as array\(\[\[0\., 0\.\], \[0\., 0\.\]\]\) cannot be written"),
        ("parquet", "cat", (), r"labels such as 'cat' cannot be written; accepted: numbers, or rows of numbers"),
        ("webdataset", 0, ("a", "b\nc"), r"class 'b\\nc': a list with a class a line cannot hold it; accepted: folder"),
        ("webdataset", 0, ("a", ""), "class '': a list with a class a line cannot hold it; accepted: folder, parquet"),
    ],
)
def test_labels_that_a_format_cannot_hold_are_refused_at_the_start(
    format: str, label: Any, classes: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SourceError, match=f"^{message}"):
        describe_labels(format, label, classes)


def test_unknown_formats(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="format: got 'zip'; accepted: one of 'folder', 'webdataset', 'parquet'"):
        describe_labels("zip", 0)
    with pytest.raises(ValueError, match="format: got 'folder'; accepted: webdataset, parquet"):
        open_shard(open_storage(tmp_path), "folder", 0, Labels())


@pytest.mark.parametrize(
    ("first", "later", "accepted"),
    [
        (0, 0.5, "a whole number"),
        (0, 1 << 64, "a whole number"),
        (0.5, [1.0], "a number"),
        ([1, 2], [1, 2, 3], "2 whole numbers"),
        ([0.5, 1.0], [1, 2], "2 numbers"),
    ],
)
def test_a_label_unlike_the_first_is_refused(tmp_path: Path, first: Any, later: Any, accepted: str) -> None:
    with (
        open_shard(open_storage(tmp_path), "parquet", 0, describe_labels("parquet", first)) as shard,
        pytest.raises(ValueError, match=rf"^in/3: got the label .*; accepted: {accepted}, as the first sample has$"),
    ):
        shard.add(Record(3, 0, b"", "jpg", later, None, "in/3", 3))
