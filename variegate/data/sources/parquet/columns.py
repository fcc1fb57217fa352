"""Which column of a Parquet file holds the images and which the labels, by Hugging Face's metadata or by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from variegate.data.sources.base import SourceError
from variegate.data.sources.labels import IMAGE_NAMES, LABEL_NAMES

ACCEPTED_IMAGES = "a column of image files: struct<bytes: binary, path: string> (Hugging Face's) or binary"
ACCEPTED_LABELS = "a column of int, bool, float, string, or lists of numbers of one length"


@dataclass(frozen=True)
class Columns:
    """``label`` is None where there is none; ``class_names`` are those that the file itself gives its ints."""

    image: str
    label: str | None
    class_names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def find_columns(path: str, schema: pa.Schema, image: str | None = None, label: str | None = None) -> Columns:
    """Raises SourceError naming the file, the columns it has and what is accepted."""
    features = _features(schema)
    notes: list[str] = []
    named = [name for name, feature in features.items() if feature.get("_type") == "Image"]
    image = _chosen(path, schema, image, "image_column", is_image, ACCEPTED_IMAGES) or _only(
        path, _holding(schema, named, is_image), _holding(schema, schema.names, is_image), notes
    )
    if image is None:
        raise SourceError(
            f"{path}: no column of images; its columns: {_described(schema)}; accepted: {ACCEPTED_IMAGES}"
        )
    label = _chosen(path, schema, label, "label_column", is_label, ACCEPTED_LABELS)
    if label is None:
        named = [name for name, feature in features.items() if feature.get("_type") == "ClassLabel"]
        found = _holding(schema, _by_preference(named, LABEL_NAMES), _is_plain_label)
        known = [name for name in LABEL_NAMES if name in schema.names and name not in found]
        found += _holding(schema, known, _is_plain_label)
        label = found[0] if found else None
        if len(found) > 1:
            notes.append(f"labels are read from column {label!r}; label_column may also be: {', '.join(found[1:])}")
    names = features.get(label, {}).get("names") if label is not None else None
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return Columns(image, label, tuple(names) if names and is_list else (), tuple(notes))


def check_alike(first: str, first_schema: pa.Schema, columns: Columns, path: str, schema: pa.Schema) -> None:
    """Raises SourceError naming both files where a further one does not hold what the first does; columns that are
    neither images nor labels may differ."""
    accepted = "accepted: files with the same columns"
    if not _holding(schema, [columns.image], is_image):
        raise SourceError(
            f"{path}: no images in a column {columns.image!r}, where {first} has them; its columns: "
            f"{_described(schema)}; {accepted}"
        )
    if columns.label is None:
        found = find_columns(path, schema, columns.image).label
        if found is not None:
            raise SourceError(f"{path}: has labels (column {found!r}), and {first} has none; {accepted}")
        return
    if columns.label not in schema.names:
        raise SourceError(
            f"{path}: no column {columns.label!r}, where {first} has its labels; its columns: {_described(schema)}; "
            f"{accepted}"
        )
    kinds = [each.field(columns.label).type for each in (schema, first_schema)]
    if label_kind(kinds[0]) != label_kind(kinds[1]):
        raise SourceError(f"{path}: column {columns.label!r} is {kinds[0]}, and {kinds[1]} in {first}; {accepted}")
    names = find_columns(path, schema, columns.image, columns.label).class_names
    if names and columns.class_names and names != columns.class_names:
        raise SourceError(f"{path}: column {columns.label!r} has other class names than in {first}; {accepted}")


def is_image(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        at = kind.get_field_index("bytes")
        return at >= 0 and is_binary(kind.field(at).type)
    return is_binary(kind)


def is_binary(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)


def is_string(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def label_kind(kind: pa.DataType) -> str | None:
    """What the labels are, whatever the width they are stored in; None for what cannot be a label."""
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "int"
    if pa.types.is_floating(kind):
        return "float"
    if is_string(kind):
        return "string"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"list of {inner}" if (inner := label_kind(kind.value_type)) in ("int", "float") else None
    return None


def is_label(kind: pa.DataType) -> bool:
    return label_kind(kind) is not None


def _is_plain_label(kind: pa.DataType) -> bool:
    # Lists that may differ in length are taken for labels only where the user says so.
    return is_label(kind) and not (pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _features(schema: pa.Schema) -> dict[Any, dict[str, Any]]:
    """What the library ``datasets`` wrote about the columns; nothing where that is not to be understood."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {name: feature for name, feature in features.items() if isinstance(feature, dict)}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def _chosen(
    path: str, schema: pa.Schema, name: str | None, argument: str, test: Callable[[Any], bool], accepted: str
) -> str | None:
    """The column that the user names, if any."""
    if name is None:
        return None
    if name not in schema.names or not test(schema.field(name).type):
        what = f"{schema.field(name).type}" if name in schema.names else "no such column"
        raise SourceError(
            f"{path}: {argument}={name!r}: {what}; its columns: {_described(schema)}; accepted: {accepted}"
        )
    return name


def _only(path: str, named: list[str], typed: list[str], notes: list[str]) -> str | None:
    """The column of images: one that the metadata names, else one of a usual name, else the only one of its type."""
    found = _by_preference(named, IMAGE_NAMES) or [name for name in IMAGE_NAMES if name in typed]
    if found:
        others = [name for name in (*found[1:], *typed) if name != found[0]]
        if others:
            notes.append(
                f"images are read from column {found[0]!r}; image_column may also be: "
                f"{', '.join(dict.fromkeys(others))}"
            )
        return found[0]
    if len(typed) > 1:
        raise SourceError(f"{path}: images may be in any of {', '.join(typed)}; accepted: image_column=one of them")
    return typed[0] if typed else None


def _holding(schema: pa.Schema, names: Iterable[str], test: Callable[[Any], bool]) -> list[str]:
    return [name for name in names if name in schema.names and test(schema.field(name).type)]


def _by_preference(names: list[str], preferred: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: preferred.index(name) if name in preferred else len(preferred))


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema) or "none"
