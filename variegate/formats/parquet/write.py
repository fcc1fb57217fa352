"""Parquet files in Hugging Face's layout, with the names of the classes in their metadata.

There may be boxes, key points and masks in columns beside the images.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from variegate.formats.annotated.fields import RecordForm
from variegate.formats.shards import Labels, Record, Shard
from variegate.formats.storage import Storage
from variegate.formats.tar.write import BesideImage, as_objects, has_objects, named_lists

# Readers decode whole row groups, so that large ones cost memory; Arrow's columns hold less than 2 GiB.
_RECORDS_A_GROUP = 256
_BYTES_A_GROUP = 64 << 20

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
OTHERS = {"id": pa.uint64(), "copy": pa.int32(), "source": pa.string()}


class ParquetShard(Shard):
    """Columns image (bytes, path), label, id, copy and source; a row group has 256 rows, or fewer of large images.

    Images are gathered in the memory that Arrow writes from. Their column is not compressed: they are already.
    """

    def __init__(self, storage: Storage, name: str, labels: Labels) -> None:
        super().__init__(storage, name, labels)
        self._schema = self._schema_of(labels)
        self._parquet = pq.ParquetWriter(
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
        return _schema(labels)

    def _compressed(self, schema: pa.Schema) -> list[str]:
        small = ["label", "image.path", *OTHERS]
        return [name for name in small if name != "label" or not self.labels.width]

    def _values(self, record: Record, label: Any) -> tuple[Any, ...]:
        """Of the columns between that of images and ``OTHERS``."""
        return (label,)

    def _begin_group(self) -> None:
        self._data, self._ends = bytearray(), [0]
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
        self._parquet.write_table(pa.Table.from_arrays([images, *columns], schema=self._schema))
        self._begin_group()

    def _finish(self) -> None:
        if self._rows:
            self._write_group()
        self._parquet.close()

    def _abandon(self) -> None:
        self._begin_group()
        with suppress(OSError):  # it writes the end of the file, which may be why it is abandoned
            self._parquet.close()


def _schema(labels: Labels) -> pa.Schema:
    """With what the library ``datasets`` wants to know of the columns."""
    number = pa.int64() if labels.kind in ("int", "ints") else pa.float64()
    label: dict[str, Any] = {"dtype": str(number).replace("double", "float64"), "_type": "Value"}
    if labels.classes:
        label = {"names": list(labels.classes), "_type": "ClassLabel"}
    elif labels.width:
        label = {"feature": label, "length": labels.width, "_type": "Sequence"}
    features = {"image": {"_type": "Image"}, "label": label}
    features |= {name: {"dtype": str(kind), "_type": "Value"} for name, kind in OTHERS.items()}
    kind = pa.list_(number, labels.width) if labels.width else number
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.schema([("image", IMAGE), ("label", kind), *OTHERS.items()], metadata)


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
        return _annotated_schema(self._about, self._form, labels.classes)

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


def _annotated_schema(about: Mapping[str, Any], form: RecordForm, classes: tuple[str, ...]) -> pa.Schema:
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
