"""Parquet files in Hugging Face's layout: images, labels, boxes, key points and masks, classes in their metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from variegate.data.annotated.records import ImageAnnotations, RecordForm, as_objects, has_objects, named_lists
from variegate.data.shards import GroupedShard, Labels, Record
from variegate.data.storage import Storage

# Readers decode whole row groups, so that large ones cost memory; Arrow's columns hold less than 2 GiB.
_RECORDS_A_GROUP = 256
_BYTES_A_GROUP = 64 << 20

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
# A column's type, and what the library ``datasets`` wants to know of it.
Column = tuple[pa.DataType, Any]
_IMAGE_COLUMN: Column = (IMAGE, {"_type": "Image"})
# Arrow's names -> Hugging Face's.
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}
OTHERS = {"id": pa.uint64(), "copy": pa.int32(), "source": pa.string()}


class ParquetShard(GroupedShard):
    """Columns image (bytes, path), label, id, copy and source; a row group has 256 rows, or fewer of large images."""

    def __init__(self, storage: Storage, name: str, labels: Labels) -> None:
        super().__init__(storage, name, labels)
        self._schema = self._schema_of(labels)
        self._file = pq.ParquetWriter(
            self._writer.file,
            self._schema,
            compression=dict.fromkeys(self._compressed(self._schema), "zstd"),
            use_dictionary=["source"],
            write_statistics=["id", "copy"],
            # A page is cut after so many values at the soonest; with the default, one would hold all images.
            write_batch_size=1,
        )
        self._begin_group()

    def _schema_of(self, labels: Labels) -> pa.Schema:
        number = pa.int64() if labels.kind in ("int", "ints") else pa.float64()
        kind, feature = _class_label(number, labels.classes)
        if labels.width:
            kind = pa.list_(number, labels.width)
            feature = feature if labels.classes else {"feature": feature, "length": labels.width, "_type": "Sequence"}
        return _schema("image", {"label": (kind, feature)})

    def _compressed(self, schema: pa.Schema) -> list[str]:
        small = ["label", "image.path", *OTHERS]
        return [name for name in small if name != "label" or not self.labels.width]

    def _values(self, record: Record, label: Any) -> tuple[Any, ...]:
        """Of the columns between that of images and ``OTHERS``."""
        return (label,)

    def _begin_group(self) -> None:
        self._data = bytearray()
        self._ends = [0]
        self._rows: list[tuple[Any, ...]] = []

    def _add(self, record: Record, label: Any) -> None:
        if self._rows and len(self._data) + len(record.data) > _BYTES_A_GROUP:
            self._write_group()
        self._data += record.data
        self._ends.append(len(self._data))
        source = record.source.encode("utf-8", "backslashreplace").decode()
        self._rows.append((record.member, *self._values(record, label), record.id, record.copy or 0, source))
        if len(self._rows) == _RECORDS_A_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        paths, *others = zip(*self._rows, strict=True)
        ends = pa.py_buffer(np.array(self._ends, np.int32))
        data = pa.Array.from_buffers(pa.binary(), len(paths), [None, ends, pa.py_buffer(self._data)])
        images = pa.StructArray.from_arrays([data, pa.array(paths, pa.string())], fields=list(IMAGE))
        columns = [pa.array(values, kind) for values, kind in zip(others, self._schema.types[1:], strict=True)]
        self._file.write_table(pa.Table.from_arrays([images, *columns], schema=self._schema))
        self._begin_group()


class AnnotatedParquetShard(ParquetShard):
    """Columns of images, objects and masks under the names of the source's, then id, copy and source."""

    def __init__(self, storage: Storage, name: str, labels: Labels, about: Mapping[str, Any]) -> None:
        self._about = about
        self._form = RecordForm(**about["record"])
        super().__init__(storage, name, labels)

    def _schema_of(self, labels: Labels) -> pa.Schema:
        about = self._about
        is_list = self._form.is_list
        columns = _object_columns(self._form, labels.classes) if has_objects(about) else {}
        lists = {name: _list(column) for name, column in columns.items()}
        if (name := about["objects"]) is not None:
            parts = columns if is_list else lists
            kind = pa.struct([(part, column[0]) for part, column in parts.items()])
            features = {part: column[1] for part, column in parts.items()}
            lists = {name: (pa.list_(kind), [features]) if is_list else (kind, features)}
        if (name := about["mask"]) is not None:
            lists[name] = _IMAGE_COLUMN
        return _schema(about["image"], lists)

    def _compressed(self, schema: pa.Schema) -> list[str]:
        """All but image files."""
        sink = pa.BufferOutputStream()
        pq.write_metadata(schema, sink)
        leaves = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
        paths = [leaves.column(n).path for n in range(len(leaves))]
        return [path for path in paths if not path.endswith(".bytes")]

    def _values(self, record: Record, label: Any) -> tuple[Any, ...]:
        beside: ImageAnnotations = record.beside
        found: list[Any] = []
        if has_objects(self._about):
            lists = named_lists(beside.objects or {}, self._form, beside.size)
            whole: Any = as_objects(lists) if self._form.is_list else lists
            found += [whole] if self._about["objects"] else list(lists.values())
        if self._about["mask"]:
            found.append({"bytes": beside.mask, "path": f"{record.key}.png"})
        return tuple(found)


def _object_columns(form: RecordForm, classes: tuple[str, ...]) -> dict[str, Column]:
    """The columns of one object, by name."""
    found: dict[str, Column] = {}
    if form.boxes is not None:
        found[form.boxes] = _list(_value(pa.float32()))
    if form.labels is not None:
        found[form.labels] = _class_label(pa.int64(), classes)
    if form.keypoints is not None:
        point = _list(_value(pa.float32()))
        found[form.keypoints] = point if form.boxes is None else _list(point)
    return found | {name: _value(pa.type_for_alias(str(kind))) for name, kind in form.per_box.items()}


def _schema(image: str, columns: Mapping[str, Column]) -> pa.Schema:
    others = {name: _value(kind) for name, kind in OTHERS.items()}
    every = {image: _IMAGE_COLUMN, **columns, **others}
    features = {name: feature for name, (_, feature) in every.items()}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.schema([(name, kind) for name, (kind, _) in every.items()], metadata)


def _value(kind: pa.DataType) -> Column:
    return kind, {"dtype": _FLOATS.get(str(kind), str(kind)), "_type": "Value"}


def _class_label(kind: pa.DataType, classes: tuple[str, ...]) -> Column:
    return (kind, {"names": list(classes), "_type": "ClassLabel"}) if classes else _value(kind)


def _list(column: Column) -> Column:
    return pa.list_(column[0]), {"feature": column[1], "_type": "Sequence"}
