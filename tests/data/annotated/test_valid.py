"""Objects of every layout as ``read`` returns them, by the table ``valid.txt``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.annotated.made import SIZES, coco_entries, put_coco, put_yolo
from tests.data.tars import encoded, write_tar
from variegate.data.opening import open_source


def put_annotations(root: Path, content: str, options: dict[str, Any]) -> Path:
    entries = coco_entries()
    base = {"image_id": 100, "category_id": 18, "iscrowd": 0, "bbox": [5, 10, 20, 20]}
    entries["annotations"] = [{"id": id, **base, **given} for id, given in enumerate(json.loads(content))]
    if "keypoints" in content:
        entries["categories"][2]["keypoints"] = ["nose", "tail"]
    options["file"] = str(put_coco(root, entries))
    return root / "images"


def put_rows(root: Path, content: str, options: dict[str, Any]) -> Path:
    put_yolo(root)
    for name, text in (("a", content), ("b", ""), ("c", "")):
        (root / f"labels/{name}.txt").write_text(text)
    with open(root / "data.yaml", "a") as file:
        file.write(options.pop("data", "") + "\n")
    options["format"] = "yolo"
    return root


def put_column(root: Path, content: str, options: dict[str, Any]) -> Path:
    pq.write_table(pa.table({"image": [{"bytes": encoded(0)}], "objects": [json.loads(content)]}), root / "a.parquet")
    options["format"] = "columns"
    return root / "a.parquet"


def put_member(root: Path, content: str, options: dict[str, Any]) -> Path:
    options["format"] = "members"
    return Path(write_tar(root / "a.tar", [("0.jpg", encoded(0)), ("0.json", content.encode())]))


PUTS = {"coco": [put_annotations], "yolo": [put_rows], "record": [put_column, put_member]}


def cases() -> Iterator[Any]:
    for line in Path(__file__).with_name("valid.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            layout, *row = map(str.strip, line.split("|"))
            for put in PUTS[layout]:
                yield pytest.param(put, *row, id=f"{put.__name__} {line[:80]}")


def painted(rectangles: list[list[int]], size: tuple[int, int]) -> Any:
    mask = np.zeros(size, np.uint8)
    for top, bottom, left, right, value in rectangles:
        mask[top:bottom, left:right] = value
    return mask


@pytest.mark.parametrize(("put", "content", "options", "targets", "notes"), cases())
def test_objects_are_read(tmp_path: Path, put: Any, content: str, options: str, targets: str, notes: str) -> None:
    given = json.loads(options)
    place = put(tmp_path, content, given)
    arguments = {name: given.pop(name) for name in ("on_error", "classes") if name in given}
    source: Any = open_source(place, annotations=given, **arguments)
    expected = json.loads(targets)
    found = source.read(0).targets
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        wanted: Any = np.reshape(values, found[name].shape) if name in ("boxes", "keypoints") else values
        if name == "mask":
            wanted = painted(values, SIZES[0])
        elif name == "masks":
            wanted = np.reshape([painted(one, SIZES[0]) for one in values], (len(values), *SIZES[0]))
        if name == "word":
            assert found[name] == values
        else:
            np.testing.assert_allclose(found[name], wanted, atol=1e-4)
    assert found["boxes"].dtype == np.float32
    beginnings = notes.split(" ; ") if notes else []
    for note, beginning in zip(source.notes(), beginnings, strict=True):
        assert note.startswith(beginning.strip())
