"""The labels of Parquet files, read whole: ints, floats or rows of numbers; strings become ints by their class."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate.data.sources.base import SourceError
from variegate.data.sources.labels import MOST_LABEL, NO_LABEL, WHOLE_LABELS, Labels, check_int64, first_outside
from variegate.data.sources.parquet.columns import ACCEPTED_LABELS, label_kind
from variegate.data.sources.parquet.file import ParquetFile, reason_for


def read_labels(
    files: Sequence[ParquetFile], column: str, classes: tuple[str, ...]
) -> tuple[Labels, tuple[str, ...], list[str]]:
    """The labels of all rows, the classes (of strings: ``classes``, else the sorted values) and notes.

    Raises SourceError naming the file and the row of a label that is none of the classes.
    """
    with ThreadPoolExecutor(min(16, len(files))) as pool:
        columns = list(pool.map(lambda file: _read(file, column), files))
    missing = sum(values.null_count for values in columns)
    notes = [f"{missing:,} rows have no label in column {column!r}; theirs is {{}}"] if missing else []
    kind = label_kind(files[0].schema.field(column).type) or ""
    if kind == "string":
        columns = [values.cast(pa.large_string()) for values in columns]
        classes = classes or tuple(
            sorted({name for values in columns for name in values.unique().drop_null().to_pylist()})
        )
        parts = [_class_of(file, values, classes) for file, values in zip(files, columns, strict=True)]
    elif kind == "int":
        parts = [_whole_numbers(file, column, values) for file, values in zip(files, columns, strict=True)]
    elif kind == "float":
        parts = [np.asarray(values.cast(pa.float64()).to_numpy()) for values in columns]
    else:
        parts = [_rows_of_numbers(file, column, values) for file, values in zip(files, columns, strict=True)]
        widths = [(file, part.shape[1]) for file, part in zip(files, parts, strict=True) if len(part)]
        for file, width in widths:
            if width != widths[0][1]:
                raise SourceError(
                    f"{file.location}: labels of {width} numbers, but {widths[0][1]} in {widths[0][0].location}; "
                    "accepted: lists of one length"
                )
        parts = [part for part in parts if len(part)] or parts[:1]
    for file, part in zip(files, parts, strict=False):
        row = first_outside(part, classes)
        if row is not None:
            raise SourceError(
                f"{file.location}: row {row}: label {part[row]}; accepted: 0 to {len(classes) - 1} for {len(classes)} "
                "classes, or -1 for none"
            )
    return np.concatenate(parts), classes, [note.format("NaN" if kind == "float" else NO_LABEL) for note in notes]


def _read(file: ParquetFile, column: str) -> pa.ChunkedArray:
    try:
        with file.opened() as opened:
            return opened.read(columns=[column]).column(column)
    except Exception as error:
        raise SourceError(
            f"{file.location}: column {column!r} cannot be read: {reason_for(error, file.location)}"
        ) from None


def _whole_numbers(file: ParquetFile, column: str, values: pa.ChunkedArray) -> Labels:
    if pa.types.is_unsigned_integer(values.type):
        beyond = pc.greater(values.cast(pa.uint64()), pa.scalar(MOST_LABEL, pa.uint64()))
        if pc.any(beyond).as_py():
            row = pc.index(beyond, True).as_py()
            label = f"row {row}: label {values[row].as_py()} in column {column!r}"
            raise SourceError(f"{file.location}: {label}; accepted: {WHOLE_LABELS}")
    return np.asarray(values.cast(pa.int64()).fill_null(NO_LABEL).to_numpy())


def _class_of(file: ParquetFile, values: pa.ChunkedArray, classes: tuple[str, ...]) -> Labels:
    found = pc.index_in(values, value_set=pa.array(classes, pa.large_string()))
    unknown = pc.and_(pc.is_null(found), pc.is_valid(values))
    if pc.any(unknown).as_py():
        row = pc.index(unknown, True).as_py()
        raise SourceError(f"{file.location}: row {row}: label {values[row].as_py()!r}; accepted: {', '.join(classes)}")
    return np.asarray(found.fill_null(NO_LABEL).to_numpy()).astype(np.int64)


def _rows_of_numbers(file: ParquetFile, column: str, values: pa.ChunkedArray) -> Labels:
    listed = values.to_pylist()
    try:
        rows = np.array(listed)
        if rows.dtype == np.float64 and pa.types.is_uint64(values.type.value_type):  # as some are too large for int64
            rows = np.array(listed, object)
    except ValueError:  # NumPy's word for rows of several lengths
        rows = np.empty(0, object)
    where = f"{file.location}: column {column!r}"
    check_int64(where, rows)
    if len(values) and (rows.ndim != 2 or rows.dtype.kind not in "biuf"):
        raise SourceError(f"{where} has rows of several lengths; accepted: {ACCEPTED_LABELS}")
    return rows.reshape(len(values), -1) if len(values) else np.empty((0, 0))
