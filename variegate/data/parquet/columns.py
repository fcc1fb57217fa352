"""The columns of Parquet files that hold images and labels, by Hugging Face's metadata or by name; all labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate.data.base import SourceError
from variegate.data.labels import (
    IMAGE_NAMES,
    LABEL_NAMES,
    MOST_LABEL,
    NO_LABEL,
    WHOLE_LABELS,
    Labels,
    accepted_classes,
    check_int64,
    first_outside,
    names_of,
)

if TYPE_CHECKING:
    from variegate.data.parquet.read import ParquetFile

_ACCEPTED_IMAGES = "a column of image files: struct<bytes: binary, path: string> (Hugging Face's) or binary"


class Columns(NamedTuple):
    """``label`` is None where there is none; ``class_names`` are those that the file itself gives its ints."""

    image: str
    label: str | None
    class_names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def find_columns(file: ParquetFile, image: str | None = None) -> Columns:
    """``image``: the column of images that the user names, if any. Raises SourceError naming the file, the columns it
    has and what is accepted."""
    schema = file.schema
    features = features_of(file.schema)
    notes: list[str] = []

    def of_type(kind: str) -> list[str]:
        return [name for name, feature in features.items() if feature.get("_type") == kind]

    if image is None:
        image = _only_image(file, _holding(schema, of_type("Image"), is_image_column), notes)
    elif not _holding(schema, [image], is_image_column):
        what = str(schema.field(image).type) if image in schema.names else "no such column"
        columns = f"its columns: {schema_in_words(schema)}; accepted: {_ACCEPTED_IMAGES}"
        raise SourceError(f"{file.location}: image={image!r}: {what}; {columns}")
    named = _by_preference(of_type("ClassLabel"), LABEL_NAMES)
    found = _holding(schema, dict.fromkeys([*named, *LABEL_NAMES]), _is_label)
    if not found:
        return Columns(image, None, (), tuple(notes))
    if len(found) > 1:
        notes.append(f"labels are read from column {found[0]!r}, not from {', '.join(found[1:])}")
    return Columns(image, found[0], names_of(features.get(found[0], {}).get("names")), tuple(notes))


def check_alike(first: ParquetFile, columns: Columns, file: ParquetFile, has_labels: bool = True) -> None:
    """Raises SourceError naming both files where a further one has not the images and labels that the first has."""

    def error(what: str) -> SourceError:
        return SourceError(f"{file.location}: {what}; accepted: files with the same columns")

    its_columns = f"its columns: {schema_in_words(file.schema)}"
    if not _holding(file.schema, [columns.image], is_image_column):
        raise error(f"no images in a column {columns.image!r}, where {first.location} has them; {its_columns}")
    if columns.label is None:
        found = find_columns(file, columns.image).label if has_labels else None
        if found is not None:
            raise error(f"has labels (column {found!r}), and {first.location} has none")
        return
    if columns.label not in file.schema.names:
        raise error(f"no column {columns.label!r}, where {first.location} has its labels; {its_columns}")
    kinds = [each.schema.field(columns.label).type for each in (file, first)]
    if _label_kind(kinds[0]) != _label_kind(kinds[1]):
        raise error(f"column {columns.label!r} is {kinds[0]}, and {kinds[1]} in {first.location}")
    names = names_of(features_of(file.schema).get(columns.label, {}).get("names"))
    if names and columns.class_names and names != columns.class_names:
        raise error(f"column {columns.label!r} has other class names than in {first.location}")


def is_image_column(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        at = kind.get_field_index("bytes")
        return at >= 0 and _is_binary(kind.field(at).type)
    return _is_binary(kind)


def _is_binary(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)


def _label_kind(kind: pa.DataType) -> str | None:
    """The kind of labels, whatever the width they are stored in; None for what cannot be a label."""
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "int"
    if pa.types.is_floating(kind):
        return "float"
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(values) or pa.types.is_large_string(values):
        return "string"
    if pa.types.is_fixed_size_list(kind) and (inner := _label_kind(kind.value_type)) in ("int", "float"):
        return f"{kind.list_size} of {inner}"
    return None


def is_list_column(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_label(kind: pa.DataType) -> bool:
    return _label_kind(kind) is not None


def features_of(schema: pa.Schema) -> dict[Any, dict[str, Any]]:
    """Remarks of the library ``datasets`` on the columns; nothing where that is not to be understood."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        # A list around a feature is how older files have a list of it.
        features = {
            name: {"feature": one[0]} if isinstance(one, list) and one else one for name, one in features.items()
        }
        return {name: feature for name, feature in features.items() if isinstance(feature, dict)}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def _only_image(file: ParquetFile, named: list[str], notes: list[str]) -> str:
    """One that the metadata names (``named``), else one of a usual name, else the only one of its type."""
    typed = _holding(file.schema, file.schema.names, is_image_column)
    found = _by_preference(named, IMAGE_NAMES) or [name for name in IMAGE_NAMES if name in typed]
    if not found and len(typed) > 1:
        what = f"images may be in any of {', '.join(typed)}; accepted: one such column, or one called 'image'"
        raise SourceError(f"{file.location}: {what}")
    if not typed:
        what = f"no column of images; its columns: {schema_in_words(file.schema)}; accepted: {_ACCEPTED_IMAGES}"
        raise SourceError(f"{file.location}: {what}")
    first, *others = dict.fromkeys((*found, *typed))
    if others:
        notes.append(f"images are read from column {first!r}, not from {', '.join(others)}")
    return first


def _holding(schema: pa.Schema, names: Iterable[str], test: Callable[[Any], bool]) -> list[str]:
    return [name for name in names if name in schema.names and test(schema.field(name).type)]


def _by_preference(names: list[str], preferred: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: preferred.index(name) if name in preferred else len(preferred))


def schema_in_words(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema) or "none"


def read_labels(
    files: Sequence[ParquetFile], column: str, classes: tuple[str, ...]
) -> tuple[Labels, tuple[str, ...], list[str]]:
    """The labels of all rows, the classes (``classes``, else sorted values) and notes. Raises SourceError."""
    with ThreadPoolExecutor(min(16, len(files))) as pool:
        columns = list(pool.map(lambda file: file.read([column], f"column {column!r}").column(column), files))
    kind = _label_kind(files[0].schema.field(column).type) or ""
    missing = sum(values.null_count for values in columns)
    theirs = "NaN" if kind == "float" else NO_LABEL
    notes = [f"{missing:,} rows have no label in column {column!r}; theirs is {theirs}"] if missing else []
    if kind == "string":
        columns = [values.cast(pa.large_string()) for values in columns]
        names = {name for values in columns for name in values.unique().drop_null().to_pylist()}
        classes = classes or tuple(sorted(names))
        parts = [_class_of(file, values, classes) for file, values in zip(files, columns, strict=True)]
    elif kind == "int":
        parts = [_whole_numbers(file, column, values) for file, values in zip(files, columns, strict=True)]
    elif kind == "float":
        parts = [np.asarray(values.cast(pa.float64()).to_numpy()) for values in columns]
    else:
        parts = [_rows_of_numbers(file, column, values) for file, values in zip(files, columns, strict=True)]
    for file, part in zip(files, parts, strict=False):
        row = first_outside(part, classes)
        if row is not None:
            accepted = f"accepted: {accepted_classes(classes)}"
            raise SourceError(f"{file.location}: row {row}: label {part[row]}; {accepted}")
    return np.concatenate(parts), classes, notes


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
    where = f"{file.location}: column {column!r}"
    numbers = pc.list_flatten(values)
    if values.null_count or numbers.null_count:
        raise SourceError(f"{where} has rows without labels; accepted: a number in every place")
    rows = np.asarray(numbers.to_numpy()).reshape(-1, values.type.list_size)
    check_int64(where, rows)
    return rows
