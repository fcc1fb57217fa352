"""Parquet files with objects or masks beside their images, in columns by name, such as Hugging Face's ``objects``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variegate.formats.annotated.fields import (
    BOX_NAMES,
    FIELD_OPTIONS,
    OBJECT_LABEL_NAMES,
    POINT_NAMES,
    ObjectFields,
    form_of_type,
)
from variegate.formats.annotated.folders import mask_beside, size_of
from variegate.formats.annotated.objects import RecordReader, SourceOver
from variegate.formats.annotated.values import AnnotationOption, GivenOptions, is_name
from variegate.formats.base import Item, SourceError, check_index, describe, digest_of
from variegate.formats.labels import NO_LABEL, check_classes, names_of
from variegate.formats.parquet.columns import (
    features_of,
    find_columns,
    is_image_column,
    is_list_column,
    schema_in_words,
)
from variegate.formats.parquet.file import ParquetFile, open_file
from variegate.formats.parquet.read import ParquetSource, open_parquet
from variegate.io.location import Location

_NAME = AnnotationOption(None, "the name of a column", lambda value: value is None or is_name(value))
COLUMN_OPTIONS = {"image": _NAME, "objects": _NAME, "mask": _NAME, **FIELD_OPTIONS}
_OBJECTS, _MASK = "objects", "mask"


class AnnotatedRows(SourceOver):
    """``images`` and ``masks`` have the same rows; ``table``: the columns of the objects, all in memory. ``about``:
    what files with the same columns need to have, as JSON has it: their names, and ``RecordForm`` of the objects."""

    def __init__(
        self,
        images: ParquetSource,
        masks: ParquetSource | None,
        table: pa.Table | None,
        objects: str | None,
        reader: RecordReader,
        about: Mapping[str, Any],
    ) -> None:
        super().__init__(images, reader)
        self.about, self._masks, self._table, self._objects = about, masks, table, objects
        known = f"{images.fingerprint}\0{masks and masks.fingerprint}\0{objects}\0{reader.fields!r}"
        self.fingerprint = digest_of(known)

    def __repr__(self) -> str:
        return describe(self, self.stored_files()[0].location.address())

    def read(self, index: int) -> Item:
        """Raises DecodeError naming the file and the row, and the object that is wrong."""
        check_index(index, len(self))
        item, name = self._images.read(index), str(self.name(index))
        size = size_of(item.data, name)
        targets: dict[str, Any] = {}
        if self._table is not None:
            record: Any = self._table.slice(index, 1).to_pylist()[0]
            targets |= self._reader.targets(index, record[self._objects] if self._objects else record, size, name)
        if self._masks is not None:
            targets["mask"] = mask_beside(bytes(self._masks.read(index).data), f"{name}: its mask", size)
        return Item(item.data, NO_LABEL, targets)

    def notes(self) -> list[str]:
        notes = [*self._images.notes(), *([] if self._masks is None else self._masks.notes())]
        return [*dict.fromkeys(notes), *self._reader.notes()]


def open_columns(files: Sequence[Location], options: GivenOptions, opening: Mapping[str, Any]) -> AnnotatedRows:
    """Raises SourceError naming the file and the column that is not as it should be."""
    opened = [open_file(file) for file in files]
    image, objects, mask = (options.of(name) for name in ("image", _OBJECTS, _MASK))
    schema, columns = opened[0].schema, opened[0].schema.names
    flat = [name for name in (options.of("boxes"), options.of("keypoints")) if name is not None]
    is_flat_told = any(name in columns for name in flat)
    if objects is None and not is_flat_told and _OBJECTS in columns and _is_nested(schema.field(_OBJECTS).type):
        objects = _OBJECTS
    if mask is None and _MASK in columns and is_image_column(schema.field(_MASK).type):
        mask = _MASK
    fields = ObjectFields.of(options, check_classes(opening["classes"]))
    wanted = [objects] if objects else _flat_columns(opened[0], fields)
    if not wanted and mask is None:
        usual = ", ".join((_OBJECTS, *BOX_NAMES, *POINT_NAMES, _MASK))
        held = f"its columns: {schema_in_words(schema)}"
        raise SourceError(f"{files[0]}: no column of objects or masks ({usual}); {held}; accepted: their names")
    for file in opened:
        _check_types(opened[0], file, [*wanted, *([mask] if mask else [])], objects, mask)
    if image is None and mask is not None:  # where one more column is all that there is; else names decide
        typed = [field.name for field in schema if is_image_column(field.type) and field.name != mask]
        image = typed[0] if len(typed) == 1 else find_columns(opened[0]).image
    table = None
    if wanted:
        parts = [file.read(wanted, f"columns {', '.join(wanted)}").select(wanted) for file in opened]
        table = pa.concat_tables([part.replace_schema_metadata(None) for part in parts])
    if table is not None and not fields.classes:
        feature = features_of(schema).get(objects) if objects else None
        fields = _with_classes(fields, table, objects, feature, features_of(schema))
    more = {name: opening[name] for name in ("cache_dir", "image_root")}
    images = open_parquet(files, None, image, None, has_labels=False, **more)
    masks = None if mask is None else open_parquet(files, None, mask, None, has_labels=False, **more)
    form = form_of_type(fields, None if table is None else table.schema, objects)
    about = {
        **{"format": "columns", "image": image or find_columns(opened[0]).image, "objects": objects, "mask": mask},
        "record": form.told(),
    }
    return AnnotatedRows(images, masks, table, objects, RecordReader(fields, opening["on_error"]), about)


def _flat_columns(file: ParquetFile, fields: ObjectFields) -> list[str]:
    """Columns of boxes and what belongs to them, by the names given, or the usual ones of lists."""
    schema = file.schema
    lists = [field.name for field in schema if is_list_column(field.type)]
    found = []
    for given, usual in ((fields.boxes, BOX_NAMES), (fields.keypoints, POINT_NAMES)):
        found += [given] if given else [name for name in usual if name in lists][:1]
    if not found:
        return []
    labels = [fields.labels] if fields.labels else [name for name in OBJECT_LABEL_NAMES if name in lists][:1]
    more = [name for name in ("iscrowd", "is_crowd", "difficult") if name in lists]
    return [*found, *labels, *fields.per_box, *more]


def _check_types(
    first: ParquetFile, file: ParquetFile, wanted: Sequence[str], objects: str | None, mask: str | None
) -> None:
    for name in wanted:
        if name not in file.schema.names:
            raise SourceError(f"{file.location}: no column {name!r}; its columns: {schema_in_words(file.schema)}")
        kind = file.schema.field(name).type
        is_fit = (
            is_image_column(kind) if name == mask else _is_nested(kind) if name == objects else is_list_column(kind)
        )
        if not is_fit:
            accepted = "a struct of lists or a list of structs" if name == objects else "lists"
            accepted = "image files: struct<bytes, path> or binary" if name == mask else accepted
            raise SourceError(f"{file.location}: column {name!r} is {kind}; accepted: {accepted}")
        if not kind.equals(first.schema.field(name).type):
            other = f"{first.schema.field(name).type} in {first.location}"
            raise SourceError(f"{file.location}: column {name!r} is {kind}, and {other}; accepted: the same in all")


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) or (is_list_column(kind) and pa.types.is_struct(kind.value_type)))


def _with_classes(
    fields: ObjectFields, table: pa.Table, objects: str | None, feature: Any, features: Mapping[Any, Any]
) -> ObjectFields:
    """With the names that Hugging Face's metadata has, or, of labels that are text, the sorted ones."""
    array = table.column(objects or 0)
    kind = array.type
    inner = kind.value_type if objects and is_list_column(kind) else kind
    names = [field.name for field in inner] if objects else table.column_names
    label = fields.labels or next((name for name in OBJECT_LABEL_NAMES if name in names), None)
    if label is None or label not in names:
        return fields
    known = names_of(_inner(_inner(feature).get(label) if objects else features.get(label)).get("names"))
    if not known:
        values = _leaves(array if objects else table.column(label), label)
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            known = tuple(sorted(pc.unique(values).drop_null().to_pylist()))
    return ObjectFields(**{**vars(fields), "classes": known})


def _leaves(column: pa.ChunkedArray, label: str) -> pa.ChunkedArray:
    """All labels, one after another."""
    while not (kind := column.type).equals(pa.null()):
        if is_list_column(kind):
            column = pc.list_flatten(column)
        elif pa.types.is_struct(kind):
            column = pc.struct_field(column, [label])
        elif pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
        else:
            break
    return column


def _inner(feature: Any) -> Mapping[str, Any]:
    """The feature that a list holds, in any of the ways that Hugging Face has written lists."""
    while isinstance(feature, list) or (isinstance(feature, Mapping) and "feature" in feature):
        feature = (feature[0] if feature else None) if isinstance(feature, list) else feature["feature"]
    return feature if isinstance(feature, Mapping) else {}
