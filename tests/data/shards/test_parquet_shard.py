"""Parquet shards: what is in the columns, how large row groups are, what writing them costs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.children import run_python
from tests.jobs.output.contract import CLASSES, records
from variegate.data.shards import Labels, Record, describe_labels, open_shard
from variegate.data.storage import open_storage

MIB = 1 << 20

# In a process of its own: Arrow tells the most that it ever had.
MEASURED = """
import json, sys, tracemalloc
import pyarrow as pa
from variegate.data.shards import Labels, Record, open_shard
from variegate.data.storage import open_storage

image = bytes(1 << 20)
for count in (1, 130):  # once before, for what is loaded when first needed
    with open_shard(open_storage(sys.argv[1]), "parquet", 0, Labels()) as shard:
        for index in range(count):
            shard.add(Record(index, 0, image, "jpg", 0, None, "in", index))
        shard.commit()
    if count == 1:
        tracemalloc.start()
print(json.dumps([tracemalloc.get_traced_memory()[1], pa.default_memory_pool().max_memory()]))
"""


def write(root: Path, made: list[Record], labels: Labels) -> Path:
    with open_shard(open_storage(root), "parquet", 0, labels) as shard:
        for record in made:
            shard.add(record)
        shard.commit()
    return root / "shard-000000.parquet"


def test_columns_are_hugging_faces(tmp_path: Path) -> None:
    made = records()
    path = write(tmp_path, made, describe_labels("parquet", 0, CLASSES))
    table = pq.read_table(path)
    assert table.schema.names == ["image", "label", "id", "copy", "source"]
    assert table.column("image").to_pylist() == [{"bytes": r.data, "path": r.member} for r in made]
    for name in ("label", "id", "copy", "source"):
        assert table.column(name).to_pylist() == [getattr(record, name) for record in made]
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features["image"] == {"_type": "Image"}
    assert features["label"] == {"names": list(CLASSES), "_type": "ClassLabel"}
    assert features["id"] == {"dtype": "uint64", "_type": "Value"}
    column = pq.read_metadata(path).row_group(0).column(0)
    assert (column.path_in_schema, column.compression) == ("image.bytes", "UNCOMPRESSED")


def test_features_of_other_labels(tmp_path: Path) -> None:
    for label, feature in (
        (3, {"dtype": "int64", "_type": "Value"}),
        (0.5, {"dtype": "float64", "_type": "Value"}),
        ([1, 2], {"feature": {"dtype": "int64", "_type": "Value"}, "length": 2, "_type": "Sequence"}),
    ):
        record = Record(0, 0, b"x", "jpg", label, None, "caf\udce9", 0)
        table = pq.read_table(write(tmp_path, [record], describe_labels("parquet", label)))
        assert json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]["label"] == feature
        assert table.to_pylist()[0]["label"] == label
        assert table.to_pylist()[0]["source"] == "caf\\udce9"


def rows_a_group(path: Path) -> list[int]:
    metadata = pq.read_metadata(path)
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


def test_row_groups_are_of_one_size(tmp_path: Path) -> None:
    made = [Record(index, 0, b"%d" % index, "jpg", 0, None, "in", index) for index in range(600)]
    assert rows_a_group(write(tmp_path, made, Labels())) == [256, 256, 88]


def test_row_groups_of_large_images_are_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.data.parquet._BYTES_A_GROUP", 100)
    sizes = (50, 50, 1, 99, 100, 300, 2, 3)
    made = [Record(index, 0, b"x" * size, "jpg", 0, None, "in", index) for index, size in enumerate(sizes)]
    path = write(tmp_path, made, Labels())
    assert rows_a_group(path) == [2, 2, 1, 1, 2]
    assert [len(row["bytes"]) for row in pq.read_table(path).column("image").to_pylist()] == list(sizes)


@pytest.mark.process
def test_images_are_held_once(tmp_path: Path) -> None:
    """Those of a row group, and not a second time while they are written."""
    measured = run_python(MEASURED, tmp_path)
    by_python, by_arrow = json.loads(measured.stdout)
    assert rows_a_group(tmp_path / "shard-000000.parquet") == [64, 64, 2]
    assert 64 * MIB <= by_python < 80 * MIB
    assert by_arrow < 8 * MIB
