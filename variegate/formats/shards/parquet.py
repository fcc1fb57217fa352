"""Parquet files in Hugging Face's layout, with the names of the classes in their metadata."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from variegate.formats.shards.base import Labels, Record, Shard
from variegate.formats.storage import Storage

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
