"""The objects of one image as a record of named lists: a row of a table, a JSON text, a sample of a data set.

A record is either ``{"bbox": [[...], ...], "category": [...]}``, a list for each name with an entry for each object, or
``[{"bbox": [...], "category": ...}, ...]``, an object after another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from variegate.arrays import Float32Array
from variegate.data.annotated.manifest_targets import DIGITS
from variegate.data.annotated.objects import AnnotationErrors, ObjectRow, objects_from_rows
from variegate.data.annotated.values import STORED, as_list, flag_of, numbers_of, refusal, shown_value
from variegate.data.labels import MOST_LABEL
from variegate.errors import DecodeError
from variegate.targets.box_formats import from_edges

if TYPE_CHECKING:
    import pyarrow as pa

# Names in a record by use, unless an option says otherwise: the first that the record has.
USUAL_NAMES = {
    "boxes": ("boxes", "bbox", "bboxes"),
    "labels": ("labels", "category", "categories", "category_id", "label"),
    "keypoints": ("keypoints",),
}
IGNORED_NAMES = ("iscrowd", "is_crowd", "difficult")
_VISIBLE = 2.0
_UNDER = ("objects", "annotations")
_NO_NAMES = ("boxes", "labels")
# Digits behind the point, of fractions of a side: a thousandth of a pixel of any image.
_DIGITS_OF_FRACTIONS = 8


class RecordTargets(NamedTuple):
    """Targets of the valid objects, the others by number, and the format of the record's boxes."""

    targets: dict[str, Any]
    errors: AnnotationErrors
    box_format: str = "xyxy"


@dataclass(frozen=True)
class RecordForm:
    """``boxes``, ``labels``, ``keypoints``: names in a record, None for missing fields. ``is_list``: it is a list of
    objects, not a dict of lists. ``under``: the name that it has itself in a JSON text. ``box_format``: "xyxy", "xywh"
    or "cxcywh". ``per_box``: further names, with Arrow's names of their types where these are known.

    Settings of runs have it as a dict, ``dataclasses.asdict``.
    """

    boxes: str | None = None
    labels: str | None = None
    keypoints: str | None = None
    is_list: bool = False
    under: str | None = None
    box_format: str = "xyxy"
    normalized: bool = False
    point_origin: str = "corner"
    per_box: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class ObjectFields:
    """Names in a record, None for the usual ones that the record has. ``box_format``: None for "xywh" of a name "bbox",
    as COCO's, and "xyxy" of others. ``per_box``: further lists to read. ``ignored``: objects that do not count are
    kept. ``classes``: names for labels that are text, and the limit of labels that are numbers. ``exif``: the frame of
    the records."""

    # The repr is a part of fingerprints, see ``digest_text``.
    boxes: str | None = None
    labels: str | None = None
    keypoints: str | None = None
    per_box: tuple[str, ...] = ()
    box_format: str | None = None
    normalized: bool = False
    point_origin: str = "corner"
    ignored: bool = False
    classes: tuple[str, ...] = ()
    exif: str | None = field(default=None, repr=False)

    @property
    def digest_text(self) -> str:
        """Everything that changes targets, for fingerprints; sources of the displayed frame keep their earlier
        digest."""
        return repr(self) + (f"\0{STORED}" if self.exif == STORED else "")

    @classmethod
    def of(cls, options: Mapping[str, Any], classes: tuple[str, ...]) -> ObjectFields:
        """``options``: as ``check_options`` returns them."""
        values = {one.name: options[one.name] for one in fields(cls) if one.name in options}
        more = values.pop("per_box")
        return cls(**values, per_box=(more,) if isinstance(more, str) else tuple(more), classes=classes)

    def names(self, columns: Collection[str]) -> dict[str, str | None]:
        """The name for boxes, labels and key points each: by the options, or the usual one among ``columns``."""
        return {
            use: getattr(self, use) or next((name for name in usual if name in columns), None)
            for use, usual in USUAL_NAMES.items()
        }

    def form(
        self, names: Collection[str], is_list: bool, under: str | None = None, types: Mapping[str, str] | None = None
    ) -> RecordForm:
        """The form of records with these names; ``types``: Arrow's, by name."""
        boxes, labels, points = self.names(names).values()
        per_box = {name: (types or {}).get(name) for name in self.per_box}
        labels = labels if boxes else None
        box_format = self._format_of(boxes)
        return RecordForm(
            boxes, labels, points, is_list, under, box_format, self.normalized, self.point_origin, per_box
        )

    def read(self, record: Any, size: tuple[int, int]) -> RecordTargets:
        """``size``: height and width of the image, to which boxes are clipped. Raises ValueError for a record that
        cannot be read at all, such as one with lists of several lengths."""
        columns = self.columns_of(record)
        _check_names(filter(None, (self.boxes, self.labels, self.keypoints)), columns)
        boxes, labels, points = self.names(columns).values()
        errors = AnnotationErrors("skip")
        scale = (float(size[1]), float(size[0])) if self.normalized else None
        if boxes is None:
            if points is None:
                accepted = _listed(USUAL_NAMES["boxes"])
                raise ValueError(f"neither boxes nor key points; {_contents(columns)}; accepted: {accepted}")
            return RecordTargets({"keypoints": self._points(columns[points], scale)}, errors)
        _check_names(self.per_box, columns)
        ignored = None if self.ignored else next((name for name in IGNORED_NAMES if name in columns), None)
        names = [name for name in (boxes, labels, points, ignored, *self.per_box) if name is not None]
        lists = {name: as_list(name, columns[name]) for name in names}
        count = len(lists[boxes])
        if odd := next((name for name in names if len(lists[name]) != count), None):
            raise ValueError(f"{odd}: {len(lists[odd])} for {count} of {boxes}; accepted: one for each")
        num_points: int | None = None

        def read_object(k: int, _: None) -> ObjectRow | None:
            nonlocal num_points
            if ignored is not None and flag_of(ignored, lists[ignored][k]):
                return None
            box = numbers_of(boxes, lists[boxes][k], 4)
            label = 0 if labels is None else self._label(lists[labels][k], labels)
            own = None if points is None else self._points(lists[points][k], scale)
            if own is not None and num_points not in (None, len(own)):
                raise ValueError(f"{points}: {len(own)} points, and {num_points} of the object before it")
            for name in self.per_box:
                if type(value := lists[name][k]) is int and not -MOST_LABEL <= value <= MOST_LABEL:
                    raise refusal(name, value, "whole numbers of int64")
            num_points = None if own is None else len(own)
            return ObjectRow(0, label, box, own)

        box_format = self._format_of(boxes)
        objects = objects_from_rows(
            ((k, None) for k in range(count)),
            read_object,
            np.array([size], np.int32),
            errors,
            name_of=lambda k: f"object {k}",
            box_format=box_format,
            box_name=f"{boxes}, read as {box_format}: the box",
            scale=scale,
            has_keys=True,
        )
        targets = objects.targets(0, None, None)
        number = len(objects.labels)
        if labels is None:
            del targets["labels"]
        if points is not None and not (number and num_points):
            targets["keypoints"] = np.zeros((number, 0, 3), np.float32)
        kept = [] if objects.keys is None else objects.keys.tolist()
        for name in self.per_box:
            values = [lists[name][k] for k in kept]
            are_numbers = all(isinstance(value, (int, float, np.number)) for value in values)
            targets[name] = np.array(values) if are_numbers else values
        return RecordTargets(targets, errors, box_format)

    def columns_of(self, record: Any) -> Mapping[Any, Any]:
        """Lists by name. Raises ValueError for an invalid record."""
        if isinstance(record, Mapping):
            return record
        record = [] if record is None else record
        if not isinstance(record, (list, tuple)) or not all(isinstance(one, Mapping) for one in record):
            raise ValueError(f"objects are {shown_value(record)}; accepted: a dict of lists, or a list of dicts")
        names = dict.fromkeys(name for one in record for name in one)
        if not record:
            usual = (self.boxes or "boxes", self.labels or "labels", self.keypoints, *self.per_box)
            names = dict.fromkeys(filter(None, usual))
        return {name: [one.get(name) for one in record] for name in names}

    def _format_of(self, name: str | None) -> str:
        return self.box_format or ("xywh" if name == "bbox" else "xyxy")

    def _label(self, label: Any, name: str) -> int:
        most = len(self.classes)
        if isinstance(label, str):
            if label in self.classes:
                return self.classes.index(label)
            known = ", ".join(self.classes[:8]) + ", ..." * (most > 8)
            raise refusal(name, label, known or "whole numbers from 0 on, or names with classes=[...]")
        is_number = isinstance(label, (int, float, np.number)) and not isinstance(label, bool)
        if not (is_number and 0 <= label < (most or 1 << 62) and float(label).is_integer()):
            accepted = f"0 to {most - 1}, or the name of a class" if most else "whole numbers from 0 on"
            raise refusal(name, label, accepted)
        return int(label)

    def _points(self, points: Any, scale: tuple[float, float] | None) -> Float32Array:
        """float32 [K, 3] of an object, or of an image."""
        if points is None:
            raise ValueError("no key points")
        rows = as_list("key points", points)
        accepted: tuple[int, ...] = (2, 3)
        if rows and not isinstance(rows[0], (list, tuple, np.ndarray)):
            rows = [rows[i : i + 3] for i in range(0, len(rows), 3)]
            accepted = (3,)
        found = np.zeros((len(rows), 3), np.float32)
        x_scale, y_scale = scale or (1.0, 1.0)
        for k, row in enumerate(rows):
            numbers = numbers_of("key point", row)
            if len(numbers) not in accepted:
                raise refusal(f"key point {k}", row, "x, y and perhaps visibility")
            x, y, visibility = (*numbers, _VISIBLE)[:3]
            shift = 0.5 if self.point_origin == "center" and visibility > 0 else 0.0
            found[k] = x * x_scale + shift, y * y_scale + shift, visibility
        return found


def _check_names(names: Iterable[str], columns: Mapping[str, Any]) -> None:
    for name in names:
        if name not in columns:
            raise ValueError(f"no {name!r}; {_contents(columns)}")


def _contents(columns: Mapping[str, Any]) -> str:
    return f"it has {_listed(columns) or 'nothing'}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, list(names)[:12]))


class RecordReader:
    """Records of a source. ``on_error``: "skip" skips invalid objects, counted once for each sample; else they are
    DecodeErrors."""

    def __init__(self, fields: ObjectFields, on_error: str) -> None:
        self.fields = fields
        self._is_skipping = on_error == "skip"
        self._counted: dict[int, AnnotationErrors] = {}

    def targets(self, sample: int, record: Any, size: tuple[int, int], name: str) -> dict[str, Any]:
        """``sample``: its number; ``size``: of its image, height and width. Raises DecodeError with ``name``."""
        try:
            found = self.fields.read(record, size)
        except (TypeError, ValueError, OverflowError) as error:
            raise DecodeError(name, f"its annotations: {error}") from None
        self.count(sample, found.errors, name)
        return found.targets

    def count(self, sample: int, errors: AnnotationErrors, name: str) -> None:
        """Raises DecodeError for an invalid object, unless these are skipped."""
        if errors.invalid and not self._is_skipping:
            raise DecodeError(name, f'its annotations: {errors.first}; on_error="skip" of open_source leaves such out')
        if errors.invalid or errors.zero_area:
            first = errors.first and f"{name}: {errors.first}"
            self._counted[sample] = AnnotationErrors("skip", errors.invalid, first, zero_area=errors.zero_area)

    def notes(self) -> list[str]:
        """Notes on the samples read so far."""
        total = AnnotationErrors("skip")
        for errors in list(self._counted.values()):
            total.invalid += errors.invalid
            total.zero_area += errors.zero_area
            total.first = total.first or errors.first
        return total.notes("")


def targets_of(fields: ObjectFields) -> dict[str, Any]:
    """Fields of Samples whose images have targets instead of labels."""
    flags = {"has_targets": True, "has_edges": True, "has_image_labels": False}
    return {"classes": fields.classes, "label": None, "remarks": (), **flags}


def unwrapped(text: Any) -> tuple[Any, str | None]:
    """The record in a JSON text, and the name that it has there, such as "objects"."""
    under = next((name for name in _UNDER if name in text), None) if isinstance(text, Mapping) else None
    return (text if under is None else text[under]), under


def form_of_texts(fields: ObjectFields, texts: Iterable[Any]) -> RecordForm:
    """The form of the first of these JSON texts with an object, or of the last text; without texts, the usual names."""
    form = fields.form(_NO_NAMES, False)
    for text in texts:
        record, under = unwrapped(text)
        with suppress(ValueError):  # it is named when it is read
            columns = fields.columns_of(record)
            form = fields.form(columns or _NO_NAMES, not isinstance(record, Mapping), under)
            if columns.get(form.boxes or form.keypoints):
                break
    return form


def form_of_schema(fields: ObjectFields, schema: pa.Schema | None, objects: str | None) -> RecordForm:
    """The form of a table's columns, or of the fields in the column ``objects``."""
    import pyarrow as pa

    if schema is None:
        return RecordForm()
    is_list = False
    holder = schema
    if objects is not None:
        kind = schema.field(objects).type
        is_list = not pa.types.is_struct(kind)
        holder = kind.value_type if is_list else kind
    types = {one.name: one.type if is_list else getattr(one.type, "value_type", one.type) for one in holder}
    return fields.form(list(types), is_list, types={name: str(kind) for name, kind in types.items()})


class ImageAnnotations(NamedTuple):
    """Targets of an output: ``size``, its height and width; ``objects``, of ``records.objects_of``; ``mask``, the bytes
    of a PNG. A field is None if the data set does not have it."""

    size: tuple[int, int]
    objects: Mapping[str, Any] | None
    mask: bytes | None


def has_objects(metadata: Mapping[str, Any]) -> bool:
    """True if there are boxes or key points."""
    if metadata["format"] == "members":
        return metadata["objects"] is not None or metadata["rows"] is not None
    return (metadata["record"]["boxes"] or metadata["record"]["keypoints"]) is not None


def named_lists(objects: Mapping[str, Any], form: RecordForm, size: tuple[int, int]) -> dict[str, list[Any]]:
    """A list under each name that the form has, with an entry for each object; of key points without boxes, for each
    point. An image without objects has no names: a missing list is empty."""
    found: dict[str, list[Any]] = {}
    digits = _DIGITS_OF_FRACTIONS if form.normalized else DIGITS
    scale = np.array([size[1], size[0]], np.float64) if form.normalized else np.ones(2)
    if form.boxes is not None:
        boxes = np.reshape(objects.get("boxes", []), (-1, 4)) / np.tile(scale, 2)
        found[form.boxes] = np.round(from_edges(boxes, form.box_format), digits).tolist()
    if form.labels is not None:
        found[form.labels] = objects.get("labels", [])
    if form.keypoints is not None:
        found[form.keypoints] = _point_lists(objects.get("keypoints", []), form, scale, digits)
    return found | objects.get("per_box", {})


def as_objects(lists: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Lists with an entry for each object -> the objects."""
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _point_lists(points: list[Any], form: RecordForm, scale: Any, digits: int) -> list[Any]:
    """Nested lists of [x, y, visibility]."""
    if not points:
        return []
    array = np.array(points, np.float64)
    shift = np.where(array[..., 2:] > 0, 0.5, 0.0) if form.point_origin == "center" else 0.0
    array[..., :2] = np.round((array[..., :2] - shift) / scale, digits)
    nested: list[Any] = array.tolist()
    return nested
