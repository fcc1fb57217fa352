"""A batch as Ray Data hands it over, a dict of NumPy arrays or an Arrow table, taken apart and put together again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variegate.checks import one_of
from variegate.integrations.image_rows import Pixels
from variegate.jobs.output.encode import FORMATS, check_format, encode_image
from variegate.jobs.output.naming import output_path

# Hugging Face's struct for the file of an image.
_FILES = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


class ArrayBatch:
    """``batch_format="numpy"``: a dict from column to array; images and structs of several shapes as objects."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = dict(columns)
        self.names = list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def values(self, name: str) -> npt.NDArray[Any]:
        """One value per row."""
        return np.asarray(self._columns[name])

    def first(self, name: str, rows: int) -> list[Any]:
        """What the first rows hold, one by one."""
        return list(self._columns[name][:rows])

    def images(self, name: str) -> Any:
        """One array [N, H, W, C], or whatever the rows hold one by one."""
        column = self._columns[name]
        return column if isinstance(column, np.ndarray) and column.ndim == 4 else list(column)

    def put(self, rows: Sequence[int] | None, new: Mapping[str, Any]) -> dict[str, Any]:
        """The batch with these rows (None: all of them, untouched) and ``new`` columns, made by ``pixels``, ..."""
        columns = {**self._columns, **new}
        if rows is None:
            return columns
        index = np.array(rows, np.int64)
        return {name: column if name in new else np.asarray(column)[index] for name, column in columns.items()}

    def pixels(self, images: Pixels) -> npt.NDArray[Any]:
        return _objects(images) if isinstance(images, list) else images

    def files(self, files: Sequence[dict[str, Any]]) -> npt.NDArray[Any]:
        return _objects(files)

    def numbers(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return numbers


class TableBatch:
    """``batch_format="pyarrow"``, used as ``ArrayBatch`` is. Columns keep their types, and integers stay integers where
    some are null."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.names: list[str] = table.column_names

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def values(self, name: str) -> npt.NDArray[Any]:
        return np.asarray(self._table.column(name).to_numpy())

    def first(self, name: str, rows: int) -> list[Any]:
        column = self._table.column(name).slice(0, rows)
        if not isinstance(column.type, pa.BaseExtensionType):
            return list(column.to_pylist())
        return [value for chunk in column.chunks if len(chunk) for value in _tensors(chunk)]

    def images(self, name: str) -> Any:
        column = self._table.column(name)
        if not isinstance(column.type, pa.BaseExtensionType):
            return column.to_pylist()
        parts = [_tensors(chunk) for chunk in column.chunks if len(chunk)]
        return parts[0] if len(parts) == 1 else [image for part in parts for image in part]

    def put(self, rows: Sequence[int] | None, new: Mapping[str, Any]) -> pa.Table:
        kept = self._table.drop_columns([name for name in new if name in self.names])
        if rows is not None:
            kept = kept.take(pa.array(rows, pa.int64()))
        names = list(dict.fromkeys([*self.names, *new]))
        return pa.table({name: new[name] if name in new else kept.column(name) for name in names})

    def pixels(self, images: Pixels) -> Any:
        if len(images) == 0:
            return pa.nulls(0)
        from ray.data.extensions import ArrowTensorArray

        return ArrowTensorArray.from_numpy(_objects(images) if isinstance(images, list) else images)

    def files(self, files: Sequence[dict[str, Any]]) -> pa.Array:
        return pa.array(files, _FILES)

    def numbers(self, numbers: npt.NDArray[np.int64]) -> pa.Array:
        return pa.array(numbers)


@dataclass(frozen=True)
class ImageFiles:
    """Augmented pixels as image files in a table, the way Hugging Face's data sets hold them.

    ``format``: "jpg", "png" or "webp"; ``numbered``: whether names end in the copy's number.

    Raises ValueError for other formats, and for a quality outside 1..100.
    """

    format: str
    quality: int
    numbered: bool

    def __post_init__(self) -> None:
        one_of("encode", self.format, [*FORMATS])
        check_format(self.format, self.quality)

    def make(self, img_HWC: npt.NDArray[Any], path: str, copy: int) -> dict[str, Any]:
        """{"bytes": ..., "path": ...}; the path is that of the original, by the new format's extension.

        Raises ValueError for pixels that are not uint8, and for a picture larger than the format can hold.
        """
        if img_HWC.dtype != np.uint8:
            got = f"got {img_HWC.dtype} pixels, as the transform ends in Normalize"
            raise ValueError(f"encode: {got}; accepted: one without it, since image files hold bytes")
        stem = os.path.splitext(path)[0]
        name = output_path(stem, copy, self.format) if self.numbered else f"{stem}.{self.format}"
        return {"bytes": encode_image(img_HWC, self.format, self.quality), "path": name}


def open_batch(batch: Any) -> ArrayBatch | TableBatch:
    """Raises TypeError for other forms than ``batch_format`` "numpy" and "pyarrow"."""
    if isinstance(batch, Mapping):
        return ArrayBatch(batch)
    if isinstance(batch, pa.Table):
        return TableBatch(batch)
    accepted = "a dict of arrays or an Arrow table, as map_batches(batch_format='numpy') and 'pyarrow' give"
    raise TypeError(f"batch: got a {type(batch).__name__}; accepted: {accepted}")


def _tensors(chunk: Any) -> Any:
    """A chunk of Ray's or Arrow's own tensors: one array, or an array of arrays where shapes differ."""
    if hasattr(chunk, "to_numpy_ndarray"):
        return chunk.to_numpy_ndarray()
    return chunk.to_numpy(zero_copy_only=False)


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """One object per row, also where NumPy would see one array of more dimensions."""
    objects = np.empty(len(values), object)
    for row, value in enumerate(values):
        objects[row] = value
    return objects
