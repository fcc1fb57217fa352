"""Objects and masks in columns of Parquet files, in every shape that they are written in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variegate as vg
from tests.data.tars import encoded, png
from variegate.data.base import SourceError
from variegate.errors import DecodeError

# The photos of ``encoded(n)`` are 24 + n high and 32 wide.
XYXY = [[[2.0, 3.0, 12.0, 9.0], [20.0, 1.0, 32.0, 24.0]], [], [[0.0, 0.0, 8.0, 26.0]]]
NAMES = [["dog", "ant"], [], ["cat"]]
LABELS = [[2, 0], [], [1]]


def xywh(boxes: list[list[float]]) -> list[list[float]]:
    return [[x1, y1, x2 - x1, y2 - y1] for x1, y1, x2, y2 in boxes]


def write(path: Path, columns: dict[str, Any], metadata: Any = None, **options: Any) -> str:
    images = pa.array([{"bytes": encoded(n), "path": None} for n in range(3)])
    table = pa.table({"image": images, **columns})
    if metadata is not None:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": metadata}})})
    pq.write_table(table, path, **options)
    return str(path)


def check(source: Any) -> None:
    for index, (boxes, labels) in enumerate(zip(XYXY, LABELS, strict=True)):
        targets = source.read(index).targets
        assert targets["boxes"].dtype == np.float32
        np.testing.assert_allclose(targets["boxes"], np.reshape(boxes, (-1, 4)), atol=1e-4)
        assert targets["labels"].dtype == np.int64
        assert targets["labels"].tolist() == labels


STRUCT: list[dict[str, Any]] = [
    {"bbox": xywh(boxes), "category": names} for boxes, names in zip(XYXY, NAMES, strict=True)
]


@pytest.mark.parametrize(
    "feature",
    [
        None,
        {"feature": {"category": {"names": ["x", "y", "z"], "_type": "ClassLabel"}}, "_type": "Sequence"},
        [{"category": {"names": ["x", "y", "z"], "_type": "ClassLabel"}}],
        {"category": {"feature": {"names": ["x", "y", "z"], "_type": "ClassLabel"}, "_type": "List"}},
    ],
)
def test_class_names_come_from_the_metadata_or_from_labels_that_are_names(tmp_path: Path, feature: Any) -> None:
    objects = [{"bbox": xywh(boxes), "category": labels} for boxes, labels in zip(XYXY, LABELS, strict=True)]
    metadata = {"image": {"_type": "Image"}, "objects": feature}
    file = write(tmp_path / "a.parquet", {"objects": objects if feature else STRUCT}, metadata if feature else None)
    source = vg.open_source(file, annotations="columns")
    assert source.classes == (("x", "y", "z") if feature else ("ant", "cat", "dog"))
    check(source)


@pytest.mark.parametrize("as_struct", [True, False])
def test_masks_in_small_row_groups_of_several_files(tmp_path: Path, as_struct: bool) -> None:
    masks = [np.random.default_rng(n).integers(0, 5, (24 + n, 32), np.uint8) for n in range(3)]
    stored = [{"bytes": png(mask), "path": None} if as_struct else png(mask) for mask in masks]
    for name in "ab":
        write(tmp_path / f"{name}.parquet", {"annotation": stored}, row_group_size=1)
    source = vg.open_source(str(tmp_path / "*.parquet"), annotations={"mask": "annotation"})
    for index in (5, 0, 4, 1):
        np.testing.assert_array_equal(source.read(index).targets["mask"], masks[index % 3])


def test_rows_that_cannot_be_read_are_bad_samples(tmp_path: Path) -> None:
    odd = {"bbox": [[1.0, 2.0, 3.0, 4.0]], "category": ["dog", "dog"]}
    masks = [png(np.zeros((24, 32), np.uint8)), encoded(1, "png"), png(np.zeros((9, 9), np.uint8))]
    file = write(tmp_path / "a.parquet", {"objects": [odd, STRUCT[0], None], "mask": masks})
    source = vg.open_source(file, annotations="columns")
    for index, said in enumerate(
        ("category: 2 for 1 of bbox", "a mask of RGB pixels", r"is 9 x 9 .*, and its image 26")
    ):
        with pytest.raises(DecodeError, match=f"row {index}.*{said}"):
            source.read(index)
    loader = vg.Loader(source, None, 3, device="cpu", on_error="skip")
    with pytest.raises(DecodeError):
        list(loader)  # none is left


# Values of a field for three images, which have one, no and one object, or something else altogether.
SHAPES: dict[str, Any] = {
    name: pa.array(values)
    for name, values in json.loads("""{
        "boxes": [[[1, 2, 9, 9]], [], [[2, 3, 4, 4]]],
        "names": [["a"], [], ["b"]],
        "numbers": [[1], [], [0]],
        "one name per image": ["a", "b", "a"],
        "structs": [[{"id": 1}], [], [{"id": 2}]],
        "deeper lists": [[[[1, 2, 9, 9]]], [], [[]]],
        "other lengths": [[[1, 2], [1, 2, 3, 4]], [[]], [[1, 2, 3]]],
        "null lists": [null, null, [[1, 2, 9, 9]]],
        "null values": [[null, 1], [], [null]],
        "nulls": [[null], [], [null]],
        "null numbers in boxes": [[[1, null, 9, 9]], [], [null]]
    }""").items()
}
SHAPES |= {
    "dictionary": pa.ListArray.from_arrays([0, 1, 1, 2], pa.array(["a", "b"]).dictionary_encode()),
    "bytes": pa.array([[b"a"], [], [b"b"]]),
    "times": pa.array([[2**62], [], [1]], pa.list_(pa.timestamp("ms"))),
    "large numbers": pa.array([[2**63 + 1], [], [2**64 - 1]], pa.list_(pa.uint64())),
    "a map": pa.array([[("a", 1)], [], [("b", 2)]], pa.map_(pa.string(), pa.int64())),
    "no text": pa.ListArray.from_arrays([0, 1, 1, 2], pa.array([b"\xff", b"b"]).view(pa.string())),
}
FIELDS = {"bbox": SHAPES["boxes"], "category": SHAPES["names"]}


def columns_with(form: str, fields: dict[str, Any]) -> dict[str, Any]:
    """``fields`` as columns, as a struct of lists, or as a list of structs with each value as it is."""
    if form == "columns":
        return fields
    struct = pa.StructArray.from_arrays(list(fields.values()), list(fields))
    lists = pa.ListArray.from_arrays([0, 1, 2, 3], struct)
    return {"objects": struct if form == "struct" else lists}


def error_of(source: Any, index: int) -> DecodeError | None:
    try:
        source.read(index)
    except DecodeError as error:
        return error
    return None


@pytest.mark.parametrize("form", ["columns", "struct", "list"])
@pytest.mark.parametrize("field", ["bbox", "category", "keypoints", "iscrowd", "area"])
def test_a_field_of_any_type_is_read_or_refused_in_one_line(tmp_path: Path, form: str, field: str) -> None:
    options = {"per_box": ["area"]} if field == "area" else {}
    shapes: dict[str, Any] = {"is missing": None, **SHAPES}
    for name, values in shapes.items():
        fields = {**FIELDS, field: values}
        file = write(tmp_path / "a.parquet", columns_with(form, {k: v for k, v in fields.items() if v is not None}))
        errors: list[Any] = []
        try:
            source = vg.open_source(file, annotations={"format": "columns", **options})
            errors += list(map(error_of, [source] * 3, range(3)))
        except SourceError as error:
            errors.append(error)
        for caught in filter(None, errors):
            assert "a.parquet" in str(caught), name
            assert "\n" not in str(caught), name


def _twice() -> pa.Array:
    return pa.StructArray.from_arrays([FIELDS["bbox"], FIELDS["category"], FIELDS["category"]], ["bbox", "x", "x"])


@pytest.mark.parametrize(
    ("objects", "options", "message"),
    [
        (FIELDS, {"labels": "name"}, "no 'name'; it has 'bbox', 'category'"),
        (FIELDS, {"per_box": ["area"]}, "no 'area'; it has 'bbox', 'category'"),
        ({"category": SHAPES["names"]}, {}, "neither boxes nor key points; it has 'category'; accepted: 'boxes'"),
        ({**FIELDS, "category": SHAPES["structs"]}, {}, "field 'category': labels are struct<id: int64>; accepted:"),
        (_twice(), {}, "has the field 'x' twice"),
        ([{"bbox": ["1"]}] * 3, {}, "a.parquet; accepted: the same in all"),
    ],
)
def test_objects_that_do_not_fit_are_named_on_opening(tmp_path: Path, objects: Any, options: Any, message: str) -> None:
    objects = columns_with("struct", objects)["objects"] if isinstance(objects, dict) else objects
    files = [write(tmp_path / "b.parquet", {"objects": objects})]
    if "same in all" in message:
        files.insert(0, write(tmp_path / "a.parquet", {"objects": STRUCT}))
    with pytest.raises(SourceError, match=r"b\.parquet: column 'objects'") as error:
        vg.open_source(files, annotations={"format": "columns", **options})
    assert message in str(error.value)
