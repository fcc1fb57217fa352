"""Parquet files with objects or masks beside their images, in columns by name, such as Hugging Face's ``objects``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variegate.data.annotated.frames import Size, StoredImage, TargetStore
from variegate.data.annotated.options import check_options
from variegate.data.annotated.records import (
    IGNORED_NAMES,
    USUAL_NAMES,
    ObjectFields,
    RecordReader,
    form_of_schema,
    targets_of,
)
from variegate.data.base import SourceError, digest_of
from variegate.data.labels import check_classes, names_of
from variegate.data.parquet import columns as parquet
from variegate.data.parquet.read import ParquetFile, open_file, open_parquet
from variegate.data.samples import Samples
from variegate.errors import DecodeError
from variegate.io.location import Location


class RowStore(TargetStore):
    """``images`` and ``masks`` have the same rows; ``table``: the columns of the objects, all in memory.
    ``objects``: the column that holds all of an image's, if it is one."""

    def __init__(
        self,
        images: Samples,
        masks: Samples | None,
        table: pa.Table | None,
        reader: RecordReader,
        objects: str | None,
    ) -> None:
        super().__init__(reader.fields.exif)
        self._images = images
        self._masks = masks
        self._table = table
        self._reader = reader
        self._objects = objects

    def stored_image(self, samples: Samples, row: int) -> StoredImage:
        data = self._images.read(row).data
        name = str(samples.row_name(row))

        def targets(size: Size) -> dict[str, Any]:
            assert self._table is not None
            try:
                record: Any = self._table.slice(row, 1).to_pylist()[0]
            except (ValueError, OverflowError, NotImplementedError) as error:  # no UTF-8, or times too far off
                raise DecodeError(name, f"its annotations: {error}") from None
            return self._reader.targets(row, record[self._objects] if self._objects else record, size, name)

        mask = None if self._masks is None else (bytes(self._masks.read(row).data), f"{name}: its mask")
        place = name.rpartition(":")[0] or name
        return StoredImage(data, name, place, targets=None if self._table is None else targets, mask=mask)

    def digest(self, samples: Samples) -> str:
        masks = self._masks and self._masks.fingerprint
        fields = self._reader.fields.digest_text
        return digest_of(f"{self._images.fingerprint}\0{masks}\0{self._objects}\0{fields}")

    def notes(self) -> list[str]:
        masks = [] if self._masks is None else self._masks.notes()
        return [*dict.fromkeys([*self._images.notes(), *masks]), *self._reader.notes()]


def open_columns(
    files: Sequence[Location],
    annotations: Mapping[str, Any],
    on_error: str,
    classes: Sequence[str] | None,
    **places: Any,
) -> Samples:
    """``places``: as of ``open_parquet``. Raises SourceError naming the file and the column that is wrong."""
    options = check_options("columns", annotations)
    opened = [open_file(file) for file in files]
    image, objects, mask = (options[name] for name in ("image", "objects", "mask"))
    schema = opened[0].schema
    types = dict(zip(schema.names, schema.types, strict=True))
    has_flat = any(options[name] in types for name in ("boxes", "keypoints"))
    if objects is None and not has_flat and "objects" in types and _is_nested(types["objects"]):
        objects = "objects"
    if mask is None and "mask" in types and parquet.is_image_column(types["mask"]):
        mask = "mask"
    fields = ObjectFields.of(options, check_classes(classes))
    wanted = [objects] if objects else _flat_columns(types, fields)
    if not wanted and mask is None:
        usual = ", ".join(("objects", *USUAL_NAMES["boxes"], *USUAL_NAMES["keypoints"], "mask"))
        found = f"its columns: {parquet.schema_in_words(schema)}"
        raise SourceError(f"{files[0]}: no column of objects or masks ({usual}); {found}; accepted: their names")
    for file in opened:
        _check_types(opened[0], file, [*wanted, *([mask] if mask else [])], objects, mask)
    if image is None and mask is not None:  # where one more column is all that there is; else names decide
        typed = [name for name, kind in types.items() if parquet.is_image_column(kind) and name != mask]
        image = typed[0] if len(typed) == 1 else parquet.find_columns(opened[0]).image
    table = None
    if objects:
        _check_fields(opened[0], objects, fields)
    if wanted:
        parts = [file.read(wanted, f"columns {', '.join(wanted)}").select(wanted) for file in opened]
        table = pa.concat_tables([part.replace_schema_metadata(None) for part in parts])
        if not fields.classes:
            fields = replace(fields, classes=_classes_of(files[0], fields, table, objects, parquet.features_of(schema)))
    images = open_parquet(files, None, image, has_labels=False, **places)
    masks = None if mask is None else open_parquet(files, None, mask, has_labels=False, **places)
    form = form_of_schema(fields, None if table is None else table.schema, objects)
    names = {"image": image or parquet.find_columns(opened[0]).image, "objects": objects, "mask": mask}
    about = {"format": "columns", **names, "record": asdict(form)}
    store = RowStore(images, masks, table, RecordReader(fields, on_error), objects)
    return replace(images, store=store, layout="parquet", layout_record=about, **targets_of(fields))


def _flat_columns(types: Mapping[str, pa.DataType], fields: ObjectFields) -> list[str]:
    """Columns of boxes and what belongs to them, by their options, or the usual ones of lists."""
    lists = [name for name, kind in types.items() if parquet.is_list_column(kind)]
    boxes, labels, points = fields.names(lists).values()
    if not boxes and not points:
        return []
    more = [name for name in IGNORED_NAMES if name in lists]
    return [name for name in (boxes, points, labels, *fields.per_box, *more) if name]


def _check_types(
    first: ParquetFile, file: ParquetFile, wanted: Sequence[str], objects: str | None, mask: str | None
) -> None:
    for name in wanted:
        if name not in file.schema.names:
            columns = parquet.schema_in_words(file.schema)
            raise SourceError(f"{file.location}: no column {name!r}; its columns: {columns}")
        kind = file.schema.field(name).type
        is_fit = parquet.is_list_column(kind)
        accepted = "lists"
        if name == objects:
            is_fit = _is_nested(kind)
            accepted = "a struct of lists or a list of structs"
        if name == mask:
            is_fit = parquet.is_image_column(kind)
            accepted = "image files: struct<bytes, path> or binary"
        if is_fit and not kind.equals(first.schema.field(name).type):
            is_fit = False
            kind = f"{kind}, and {first.schema.field(name).type} in {first.location}"
            accepted = "the same in all"
        if not is_fit:
            raise SourceError(f"{file.location}: column {name!r} is {kind}; accepted: {accepted}")


def _fields_of(kind: pa.DataType) -> list[str]:
    """Names within a nested column."""
    return [field.name for field in (kind.value_type if parquet.is_list_column(kind) else kind)]


def _check_fields(file: ParquetFile, objects: str, fields: ObjectFields) -> None:
    """Raises SourceError for names that occur twice in the column ``objects``, and for requested names it lacks."""
    names = _fields_of(file.schema.field(objects).type)
    where = f"{file.location}: column {objects!r}"
    if twice := [name for name in names if names.count(name) > 1]:
        raise SourceError(f"{where} has the field {twice[0]!r} twice; accepted: fields with different names")
    try:
        fields.read({name: [] for name in names}, (1, 1))
    except ValueError as error:
        raise SourceError(f"{where}: {error}") from None


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) or (parquet.is_list_column(kind) and pa.types.is_struct(kind.value_type)))


def _classes_of(
    file: Location, fields: ObjectFields, table: pa.Table, objects: str | None, features: Mapping[str, Any]
) -> tuple[str, ...]:
    """Those that Hugging Face's metadata has, or, of labels that are text, the sorted ones."""
    names = table.column_names
    if objects:
        names = _fields_of(table.schema.field(objects).type)
        features = _inner(features.get(objects))
    label = fields.names(names)["labels"]
    if label is None or label not in names:
        return ()
    values = _flattened(table.column(objects or label))
    if objects:
        values = _flattened(pc.struct_field(values, [label]))
    kind = values.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        where = f"{file}: column {objects or label!r}" + f", field {label!r}" * bool(objects)
        raise SourceError(f"{where}: labels are {kind}; accepted: whole numbers or names")
    known = names_of(_inner(features.get(label)).get("names"))
    if is_text and not known:
        try:
            known = tuple(sorted(pc.unique(values).drop_null().to_pylist()))
        except UnicodeDecodeError:
            raise SourceError(f"{file}: labels in column {objects or label!r} are not UTF-8") from None
    return known


def _flattened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values in lists of any depth, one after another, without dictionaries."""
    while parquet.is_list_column(column.type) or pa.types.is_dictionary(column.type):
        is_list = parquet.is_list_column(column.type)
        column = pc.list_flatten(column) if is_list else column.cast(column.type.value_type)
    return column


def _inner(feature: Any) -> Mapping[str, Any]:
    """The feature that a list holds, in any of the ways that Hugging Face has written lists."""
    while isinstance(feature, list) or (isinstance(feature, Mapping) and "feature" in feature):
        feature = (feature[0] if feature else None) if isinstance(feature, list) else feature["feature"]
    return feature if isinstance(feature, Mapping) else {}
