"""A cleaned copy holds what stays, byte for byte, whatever it is stored in; and the list says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variegate as vg
from tests.apps.curate.cleaning.tables import Findings, rows_of, table_of, write_table
from tests.formats.contract import CLASSES, Picture, folder, parquet, pictures, pixels_of, raw, shards
from tests.formats.tars import tar_bytes
from variegate.formats.base import SourceError
from variegate.formats.filtered import sample_keys
from variegate.formats.opening import open_source
from variegate.jobs.output.verify import verify

GONE: Findings = {0: [("corrupt", None)], 3: [("duplicates", 0)], 4: [("duplicates", 0)], 5: [("dark", None)]}
LARGER = {3: (9, 9)}
LAYOUTS = {"folder": (folder, ""), "tar": (shards, "*.tar"), "parquet": (parquet, "*.parquet"), "raw": (raw, "*.vgraw")}


def place_in(tmp_path: Path, layout: str, shown: list[Picture] | None = None) -> str:
    write, pattern = LAYOUTS[layout]
    write(tmp_path / "src", pictures() if shown is None else shown)
    if layout == "tar":
        (tmp_path / "src" / "classnames.txt").write_text("".join(f"{name}\n" for name in CLASSES))
    return str(tmp_path / "src" / pattern) if pattern else str(tmp_path / "src")


def content(source: Any) -> list[tuple[bytes, int]]:
    return [(pixels_of(item).tobytes(), item.label) for item in (source.read(index) for index in range(len(source)))]


def files_below(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_copy_and_a_list_leave_the_same(tmp_path, layout):
    place = place_in(tmp_path, layout)
    before = files_below(tmp_path / "src")
    found = table_of(tmp_path / "f.parquet", place, GONE, sizes=LARGER)
    options: Any = {"findings": found, "drop": "corrupt,duplicates"}

    copied = vg.clean(place, tmp_path / "dst", **options)
    listed = vg.clean(place, exclude_list=tmp_path / "list.txt", **options)

    assert [one.index for one in copied.left_out] == [one.index for one in listed.left_out] == [0, 4]
    assert copied.counts == {"corrupt": 1, "duplicates": 1}
    whole, some = open_source(place), open_source(place, exclude=tmp_path / "list.txt")
    copy: Any = open_source(tmp_path / "dst")
    assert content(copy) == content(some) == [one for index, one in enumerate(content(whole)) if index not in (0, 4)]
    assert copy.classes == whole.classes
    after = files_below(tmp_path / "src")
    assert {name: data for name, data in after.items() if name in before} == before
    checked = verify(tmp_path / "dst")
    assert checked.problems == []
    assert checked.good == checked.outputs > 0


def test_files_are_copied_byte_for_byte_and_classes_stay(tmp_path):
    place = place_in(tmp_path, "folder")
    ants = [index for index, key in enumerate(sample_keys(open_source(place))) if key.startswith("ant/")]
    found = table_of(tmp_path / "f.parquet", place, {index: [("blank", None)] for index in ants})

    vg.clean(place, tmp_path / "dst", findings=found, drop="blank")

    was, now = files_below(tmp_path / "src"), files_below(tmp_path / "dst")
    assert {name: now[name] for name in now if "/" in name} == {name: was[name] for name in was if "ant/" not in name}
    assert open_source(tmp_path / "dst").classes == CLASSES


def test_it_writes_down_what_is_not_there_and_why(tmp_path):
    place = place_in(tmp_path, "folder")
    found = table_of(tmp_path / "f.parquet", place, GONE, sizes=LARGER)
    vg.clean(place, tmp_path / "dst", findings=found, drop=["duplicates"])

    (line,) = (tmp_path / "dst" / "left_out.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "file": "bee/004.png",
        "index": 4,
        "findings": {"duplicates": "duplicates of bee/004.png"},
        "kept": "bee/003.png",
    }


def test_a_tar_keeps_all_members_of_what_stays(tmp_path):
    data = pictures()[0].data
    long = "x" * 120
    members = [("readme", b"hello"), ("1.jpg", data), ("1.txt", b"one"), ("1.cls", b"0"), (f"{long}/2.jpg", data)]
    members += [(f"{long}/2.cls", b"1"), ("3.jpg", data), ("3.cls", b"0")]
    (tmp_path / "a.tar").write_bytes(tar_bytes(members))
    found = table_of(tmp_path / "f.parquet", tmp_path / "a.tar", {1: [("dark", None)]})

    vg.clean(tmp_path / "a.tar", tmp_path / "dst", findings=found, drop="dark")

    # But for how many zeros are at the end.
    copy = (tmp_path / "dst" / "a.tar").read_bytes()
    assert copy.rstrip(b"\0") == tar_bytes(members[:4] + members[6:]).rstrip(b"\0")
    assert copy.endswith(bytes(1024))


def test_a_check_of_a_stream_is_of_its_shards(tmp_path):
    place = place_in(tmp_path, "tar")
    rows = rows_of(open_source(place), {1: [("dark", None)], 5: [("dark", None)]})
    for number, row in enumerate(rows):
        row["index"] = (number + 3) % 7  # as they came
    stream = open_source(place, stream=True)
    rows[0]["file"], keys = "a.tar: 000.jpg", sample_keys(open_source(place))
    found = write_table(tmp_path / "f.parquet", rows, train=stream)

    cleaned = vg.clean(place, tmp_path / "dst", findings=found, drop="dark")

    assert [one.index for one in cleaned.left_out] == [1, 5]
    assert sample_keys(open_source(tmp_path / "dst")) == [*keys[:1], *keys[2:5], *keys[6:]]
    rows[0]["file"] = "a.tar: 009.jpg"
    with pytest.raises(SourceError, match=r"is of a stream of .*, and names 'a.tar: 009.jpg', which is not there"):
        vg.clean(place, tmp_path / "no", findings=write_table(found, rows, train=stream), drop="dark")


def test_parquet_keeps_columns_metadata_and_row_groups(tmp_path):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [{"bytes": picture.data, "path": f"{i}"} for i, picture in enumerate(pictures())]
    columns = [pa.array(rows, kind), pa.array(range(7)), pa.array([f"said {i}" for i in range(7)])]
    schema = pa.schema([("image", kind), ("label", pa.int64()), ("caption", pa.string())], {"about": "me"})
    table = pa.table(columns, schema=schema)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3, compression="zstd")
    found = table_of(tmp_path / "f.parquet", tmp_path / "a.parquet", {1: [("dark", None)], 6: [("dark", None)]})

    vg.clean(tmp_path / "a.parquet", tmp_path / "dst", findings=found, drop="dark")

    copy = pq.ParquetFile(tmp_path / "dst" / "a.parquet")
    assert copy.read().equals(table.take([0, 2, 3, 4, 5]), check_metadata=True)
    assert [copy.metadata.row_group(i).num_rows for i in range(copy.num_row_groups)] == [2, 3]
    assert copy.metadata.row_group(0).column(0).compression == "ZSTD"


def test_raw_shards_keep_ids_and_names(tmp_path):
    place = place_in(tmp_path, "raw")
    found = table_of(tmp_path / "f.parquet", place, GONE, sizes=LARGER)
    vg.clean(place, tmp_path / "dst", findings=found, drop="corrupt")

    was, now = open_source(place), open_source(str(tmp_path / "dst" / "*.vgraw"))
    np.testing.assert_array_equal(now.ids(np.arange(6)), was.ids(np.arange(1, 7)))
    assert [now.name(i).member for i in range(6)] == [was.name(i).member for i in range(1, 7)]


@pytest.mark.parametrize("layout", ["tar", "parquet", "raw"])
def test_a_shard_that_loses_all_is_not_there_and_one_that_loses_nothing_is_the_same(tmp_path, layout):
    place = place_in(tmp_path, layout)
    found = table_of(tmp_path / "f.parquet", place, {index: [("dark", None)] for index in range(3)})
    vg.clean(place, tmp_path / "dst", findings=found, drop="dark")

    was, now = files_below(tmp_path / "src"), files_below(tmp_path / "dst")
    ending = LAYOUTS[layout][1][1:]
    left = sorted(name for name in was if name.endswith(ending))[-1:]
    assert [name for name in now if name.endswith(ending) and name != "manifest.parquet"] == left
    assert all(now[name] == was[name] for name in left)
    assert verify(tmp_path / "dst").problems == []


@pytest.mark.parametrize("layout", ["folder", "tar"])
def test_what_was_left_out_of_the_check_is_not_in_the_copy(tmp_path, layout):
    place = place_in(tmp_path, layout)
    keys = sample_keys(open_source(place))
    source = open_source(place, exclude=[keys[1]])
    found = table_of(tmp_path / "f.parquet", source, {0: [("dark", None)]})

    vg.clean(source, tmp_path / "dst", findings=found, drop="dark")

    copy = open_source(tmp_path / "dst")
    assert sample_keys(copy) == keys[2:]


def test_an_image_in_memory_can_only_be_listed(tmp_path):
    source = open_source(np.zeros((3, 8, 8, 3), np.uint8))
    found = table_of(tmp_path / "f.parquet", source, {1: [("blank", None)]})

    with pytest.raises(SourceError, match="is not in files, and cannot be copied"):
        vg.clean(source, tmp_path / "dst", findings=found, drop="blank")
    vg.clean(source, findings=found, drop="blank", exclude_list=tmp_path / "list.txt")
    assert len(open_source(source, exclude=tmp_path / "list.txt")) == 2
    assert not (tmp_path / "dst").exists()


def test_a_list_does_not_leave_out_what_stays(tmp_path):
    for name in ("one", "two"):
        shards(tmp_path / name, pictures())
    both = [str(tmp_path / name / "a.tar") for name in ("one", "two")]
    source = open_source(both, classes=CLASSES)
    found = table_of(tmp_path / "f.parquet", source, {0: [("dark", None)]})

    with pytest.raises(SourceError, match="is the name of several images, some of which stay"):
        vg.clean(source, findings=found, drop="dark", exclude_list=tmp_path / "list.txt")
    vg.clean(source, tmp_path / "dst", findings=found, drop="dark")
    copy = open_source([str(tmp_path / "dst" / name / "a.tar") for name in ("one", "two")], classes=CLASSES)
    assert len(copy) == 5
