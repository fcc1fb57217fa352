"""Parquet files with boxes, key points and masks in columns beside their images."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from variegate.formats.annotated.forms import RecordForm
from variegate.formats.shards.annotated import BesideImage, as_objects, has_objects, named_lists
from variegate.formats.shards.base import Labels, Record
from variegate.formats.shards.parquet import IMAGE, OTHERS, ParquetShard
from variegate.formats.storage import Storage

_BOX = pa.list_(pa.float32())
_POINTS = pa.list_(pa.list_(pa.float32()))
# Arrow's names -> Hugging Face's.
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


class AnnotatedParquetShard(ParquetShard):
    """Columns of images, of objects and of masks under the names of the source's, then id, copy and source; classes are
    numbers, with their names in Hugging Face's metadata."""

    def __init__(self, storage: Storage, name: str, labels: Labels, about: Mapping[str, Any]) -> None:
        self._about, self._form = about, RecordForm(**about["record"])
        super().__init__(storage, name, labels)

    def _schema_of(self, labels: Labels) -> pa.Schema:
        return _schema(self._about, self._form, labels.classes)

    def _compressed(self, schema: pa.Schema) -> list[str]:
        """All but image files."""
        sink = pa.BufferOutputStream()
        pq.write_metadata(schema, sink)
        leaves = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
        paths = [leaves.column(n).path for n in range(len(leaves))]
        return [path for path in paths if not path.endswith(".bytes")]

    def _values(self, record: Record, label: Any) -> tuple[Any, ...]:
        beside: BesideImage = record.beside
        found: list[Any] = []
        if has_objects(self._about):
            lists = named_lists(beside.objects or {}, self._form, beside.size)
            whole: Any = as_objects(lists) if self._form.is_list else lists
            found += [whole] if self._about["objects"] else list(lists.values())
        if self._about["mask"]:
            found.append({"bytes": beside.mask, "path": f"{record.key}.png"})
        return tuple(found)


def _schema(about: Mapping[str, Any], form: RecordForm, classes: tuple[str, ...]) -> pa.Schema:
    """With what the library ``datasets`` wants to know of the columns."""
    types, features = _object_types(form, classes)
    if not has_objects(about):
        types, features = {}, {}
    if (name := about["objects"]) is not None:
        one = pa.struct(list(types.items()))
        lists = pa.struct([(field, pa.list_(kind)) for field, kind in types.items()])
        columns = {name: pa.list_(one) if form.is_list else lists}
        told: dict[str, Any] = {name: [features] if form.is_list else _each(features)}
    else:
        columns, told = {field: pa.list_(kind) for field, kind in types.items()}, _each(features)
    if (name := about["mask"]) is not None:
        columns[name], told[name] = IMAGE, {"_type": "Image"}
    told |= {name: {"dtype": str(kind), "_type": "Value"} for name, kind in OTHERS.items()}
    metadata = {"huggingface": json.dumps({"info": {"features": {about["image"]: {"_type": "Image"}, **told}}})}
    return pa.schema([(about["image"], IMAGE), *columns.items(), *OTHERS.items()], metadata)


def _object_types(form: RecordForm, classes: tuple[str, ...]) -> tuple[dict[str, pa.DataType], dict[str, Any]]:
    """Of what there is of an object, by name: Arrow's types, and Hugging Face's features."""
    number = {"dtype": "float32", "_type": "Value"}
    types: dict[str, pa.DataType] = {}
    features: dict[str, Any] = {}
    if form.boxes is not None:
        types[form.boxes], features[form.boxes] = _BOX, _list(number)
    if form.labels is not None:
        label = {"names": list(classes), "_type": "ClassLabel"} if classes else {"dtype": "int64", "_type": "Value"}
        types[form.labels], features[form.labels] = pa.int64(), label
    if form.keypoints is not None:
        is_of_image = form.boxes is None
        types[form.keypoints] = _BOX if is_of_image else _POINTS
        features[form.keypoints] = _list(number) if is_of_image else _list(_list(number))
    for name, kind in form.per_box.items():
        types[name] = pa.type_for_alias(str(kind))
        features[name] = {"dtype": _FLOATS.get(str(kind), str(kind)), "_type": "Value"}
    return types, features


def _each(features: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _list(feature) for name, feature in features.items()}


def _list(feature: Any) -> dict[str, Any]:
    return {"feature": feature, "_type": "Sequence"}
