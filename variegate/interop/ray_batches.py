"""Batches of Ray Data, dicts of NumPy arrays or Arrow tables: their columns, their ids, and their rows augmented."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from variegate.arrays import AnyArray, UInt64Array
from variegate.augmenter.augmenter import Augmenter
from variegate.checks import as_integer
from variegate.data.objects.samples import image_of
from variegate.errors import DecodeError, refused_by_transform, try_each
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.executors.runners.images import Tensors

# One array, or a list where shapes differ.
Pixels = AnyArray | list[AnyArray]

# Hugging Face's struct for the file of an image.
FILES = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


class ArrayBatch:
    """``batch_format="numpy"``: a dict from column to array; images and structs of several shapes as objects."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = dict(columns)
        self.names = list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def values(self, name: str) -> AnyArray:
        """A value per row."""
        return np.asarray(self._columns[name])

    def first(self, name: str, rows: int) -> list[Any]:
        """Values of the first rows, one by one."""
        return list(self._columns[name][:rows])

    def images(self, name: str) -> Any:
        """An array [N, H, W, C], or a list of the rows' values."""
        column = self._columns[name]
        return column if isinstance(column, np.ndarray) and column.ndim == 4 else list(column)

    def put(self, rows: Sequence[int] | None, new: Mapping[str, Any]) -> dict[str, Any]:
        """The batch with these rows (None: all rows, unchanged) and ``new`` columns, built by ``column``"""
        columns = {**self._columns, **new}
        if rows is None:
            return columns
        index = np.array(rows, np.int64)
        return {name: column if name in new else np.asarray(column)[index] for name, column in columns.items()}

    def column(self, values: Any, kind: Any = None) -> AnyArray:
        """A new column: pixels, or values of an Arrow ``kind``."""
        return _objects(values) if isinstance(values, list) else values


class TableBatch:
    """``batch_format="pyarrow"``, used as ``ArrayBatch`` is; integers stay integers where some are null."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.names: list[str] = table.column_names

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def values(self, name: str) -> AnyArray:
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

    def column(self, values: Any, kind: Any = None) -> Any:
        if kind is not None:
            return pa.array(values, kind)
        if len(values) == 0:
            return pa.nulls(0)
        from ray.data.extensions import ArrowTensorArray

        return ArrowTensorArray.from_numpy(_objects(values) if isinstance(values, list) else values)


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


def _objects(values: Sequence[Any]) -> AnyArray:
    """One object per row, although NumPy might build an array of more dimensions."""
    objects = np.empty(len(values), object)
    for row, value in enumerate(values):
        objects[row] = value
    return objects


class ImageRows:
    """Rows with images [N, H, W, C], or images that ``image_of`` accepts; ``bad``: rows invalid before drawing.

    ``given``: values for ``Cond``, one per row; ``name_of``: what errors call a row.
    """

    def __init__(
        self,
        images: Any,
        ids: UInt64Array,
        given: Mapping[str, AnyArray],
        name_of: Callable[[int], str],
    ) -> None:
        self.bad: dict[int, DecodeError] = {}
        self._ids = ids
        self._given = given
        self._name_of = name_of
        # A whole that can be handed to an Augmenter without looking at each row.
        is_array = isinstance(images, np.ndarray) and images.dtype == np.uint8 and images.ndim == 4
        if is_array and images.shape[3] in (1, 3) and 0 not in images.shape:
            self._data: Any = images
            self._shapes = [images.shape[1:]] * len(images)
            return
        self._data = [None] * len(images)
        self._shapes = [(1, 1, 3)] * len(images)
        for row, image in enumerate(images):
            try:
                self._data[row], self._shapes[row] = _opened(image, name_of(row))
            except DecodeError as error:
                self.bad[row] = error

    def augment(self, augmenter: Augmenter, epoch: int, copy: int) -> tuple[list[int], Pixels, dict[int, DecodeError]]:
        """Augment rows independently -> augmented rows, their outputs, and failed rows beyond ``bad``."""
        rows = [row for row in range(len(self._ids)) if row not in self.bad]
        bad: dict[int, DecodeError] = {}
        try:
            outputs = self._run(augmenter, rows, epoch, copy, bad)
        except ValueError:
            alone = try_each(rows, lambda row: self._plan(augmenter, row, epoch, copy))
            refused = {
                row: refused_by_transform(self._name_of(row), error)
                for row, error in alone
                if isinstance(error, Exception)
            }
            if not refused:
                raise  # a matter of the batch
            bad.update(refused)
            rows = [row for row in rows if row not in bad]
            outputs = self._run(augmenter, rows, epoch, copy, bad)
        if bad:
            outputs = [output for row, output in zip(rows, outputs, strict=True) if row not in bad]
            rows = [row for row in rows if row not in bad]
        return rows, outputs, bad

    def _run(
        self, augmenter: Augmenter, rows: Sequence[int], epoch: int, copy: int, bad: dict[int, DecodeError]
    ) -> Pixels:
        """Pixels by index in ``rows``; undefined for rows that are added to ``bad``."""
        if not rows:
            return []
        data = self._data if len(rows) == len(self._ids) else [self._data[row] for row in rows]
        conditions = {name: values[rows] for name, values in self._given.items()}
        if isinstance(data, np.ndarray) or all(isinstance(piece, np.ndarray) for piece in data):
            return _as_arrays(augmenter(data, self._ids[rows], epoch, copy, conditions))
        failures: dict[int, DecodeError] = {}
        encoded = EncodedBatch(data, lambda place: self._name_of(rows[place]), failures)
        outputs = _as_arrays(augmenter.decode_and_run(encoded, self._ids[rows], epoch, copy, conditions))
        bad.update({rows[place]: error for place, error in failures.items()})
        return outputs

    def _plan(self, augmenter: Augmenter, row: int, epoch: int, copy: int) -> None:
        """Raises ValueError for a row that the transform does not take."""
        given = {name: values[row : row + 1] for name, values in self._given.items()}
        augmenter.program([self._shapes[row]], ids=self._ids[row : row + 1], epoch=epoch, copy=copy, conditions=given)


def _opened(image: Any, name: str) -> tuple[Any, tuple[int, ...]]:
    if image is None:
        raise DecodeError(name, "no image: null")
    data = image_of(image, name, reads_files=False)
    # Formats other than JPEG are decoded here; of a JPEG only the header is read.
    encoded = EncodedBatch([data], lambda _: name)
    if encoded.shapes[0, 2] not in (1, 3):
        raise DecodeError(name, f"got shape {tuple(encoded.shapes[0].tolist())}; accepted: 1 or 3 channels")
    return encoded.decoded.get(0, data), tuple(encoded.shapes[0].tolist())


def _as_arrays(outputs: Tensors) -> Pixels:
    if isinstance(outputs, torch.Tensor):
        return outputs.cpu().numpy()
    return [output.cpu().numpy() for output in outputs]


ACCEPTED_IDS = "integers from 0 to 2**64 - 1, or strings"


def id_of(text: str) -> int:
    """Return the id of a string: 64 bits of its BLAKE2b hash, the same on every machine and in every version.

    Two of a million different strings share an id, and so their random numbers, with probability one in forty million.
    """
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")


def ids_of(values: AnyArray, column: str) -> UInt64Array:
    """Integers unchanged, strings by ``id_of``. Raises ValueError naming the column, the row and its value."""
    if values.ndim != 1:
        raise ValueError(f"id: column {column!r} holds arrays {list(values.shape[1:])}; accepted: {ACCEPTED_IDS}")
    if values.dtype.kind in "iu":
        if not (values < 0).any():
            return values.astype(np.uint64)
        values = values.astype(object)
    if values.dtype.kind == "f":
        why = ", as integers become where some are missing (null)" if np.isnan(values).any() else ""
        raise ValueError(f"id: column {column!r} holds {values.dtype}{why}; accepted: {ACCEPTED_IDS}")
    return np.array([_number(value, column, row) for row, value in enumerate(values)], np.uint64)


def _number(value: Any, column: str, row: int) -> int:
    if isinstance(value, str):
        return id_of(value)
    number = as_integer(value)
    if number is None or not 0 <= number < 1 << 64:
        raise ValueError(f"id: column {column!r} holds {value!r} in row {row} of the batch; accepted: {ACCEPTED_IDS}")
    return number
