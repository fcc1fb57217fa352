"""The objects of one image as a record of named lists: a row of a table, a JSON text, a sample of a data set.

A record is either ``{"bbox": [[...], ...], "category": [...]}``, a list for each name with an entry for each object, or
``[{"bbox": [...], "category": ...}, ...]``, an object after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.formats.annotated.values import (
    FLAG,
    AnnotationOption,
    GivenOptions,
    as_list,
    flag_of,
    is_name,
    numbers_of,
    shown_value,
)
from variegate.formats.labels import MOST_LABEL

if TYPE_CHECKING:
    import pyarrow as pa


BOX_NAMES = ("boxes", "bbox", "bboxes")
OBJECT_LABEL_NAMES = ("labels", "category", "categories", "category_id", "label")
POINT_NAMES = ("keypoints",)
_IGNORED_NAMES = ("iscrowd", "is_crowd", "difficult")
_BOX_FORMATS = ("xyxy", "xywh", "cxcywh")
_SEEN = 2.0
_NAME = AnnotationOption(None, "a name, or None for the usual ones", lambda value: value is None or is_name(value))


_NAMES = AnnotationOption(
    *((), "a list of names"),
    lambda value: is_name(value) or (isinstance(value, (list, tuple)) and all(map(is_name, value))),
)
# Options of annotations= that say how a record is read.
FIELD_OPTIONS = {
    **{"boxes": _NAME, "labels": _NAME, "keypoints": _NAME, "per_box": _NAMES},
    **{"box_format": AnnotationOption.one_of(None, *_BOX_FORMATS), "normalized": FLAG},
    **{"point_origin": AnnotationOption.one_of("corner", "centre"), "ignored": FLAG},
}


class RecordTargets(NamedTuple):
    """``targets``: of the objects that are right; ``wrong``: what is wrong with others, a line each; ``flat``: how many
    have no area; ``box_format``: that in which boxes were written."""

    targets: dict[str, Any]
    wrong: list[str]
    flat: int
    box_format: str = "xyxy"


@dataclass(frozen=True)
class ObjectFields:
    """Names in a record, None for the usual ones where the record has them. ``box_format``: None for "xywh" of a name
    "bbox", as COCO's, and "xyxy" of others. ``per_box``: further lists that come along. ``ignored``: objects that do
    not count are kept. ``classes``: of labels that are names, and the limit of those that are numbers."""

    boxes: str | None = None
    labels: str | None = None
    keypoints: str | None = None
    per_box: tuple[str, ...] = ()
    box_format: str | None = None
    normalized: bool = False
    point_origin: str = "corner"
    ignored: bool = False
    classes: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: GivenOptions, classes: tuple[str, ...]) -> ObjectFields:
        """``options``: those of ``FIELD_OPTIONS``, and perhaps others."""
        more = options.of("per_box")
        values = {name: options.of(name) for name in FIELD_OPTIONS if name != "per_box"}
        return cls(**values, per_box=(more,) if isinstance(more, str) else tuple(more), classes=classes)

    def read(self, record: Any, size: tuple[int, int]) -> RecordTargets:
        """``size``: height and width of the image, to which boxes are clipped. Raises ValueError for a record that
        cannot be read at all, such as one with lists of several lengths."""
        columns = self._columns(record)
        boxes = _chosen(columns, self.boxes, BOX_NAMES)
        labels = _chosen(columns, self.labels, OBJECT_LABEL_NAMES)
        points = _chosen(columns, self.keypoints, POINT_NAMES)
        if boxes is None:
            if points is None:
                raise ValueError(f"neither boxes nor key points; {_held(columns)}; accepted: {_listed(BOX_NAMES)}")
            scale = self._scale(size)
            return RecordTargets({"keypoints": self._points(columns[points], scale)}, [], 0)
        ignored = next((name for name in _IGNORED_NAMES if name in columns), None) if not self.ignored else None
        names = [name for name in (boxes, labels, points, ignored) if name is not None]
        names += [_chosen(columns, name, ()) or "" for name in self.per_box]
        lists = {name: as_list(name, columns[name]) for name in names}
        count = len(lists[boxes])
        if odd := next((name for name in names if len(lists[name]) != count), None):
            raise ValueError(f"{odd}: {len(lists[odd])} for {count} of {boxes}; accepted: one for each")
        kept: list[tuple[int, tuple[float, ...], int, npt.NDArray[np.float32] | None]] = []
        wrong, flat = [], 0
        for k in range(count):
            try:
                if ignored is not None and flag_of(ignored, lists[ignored][k]):
                    continue
                edges = self._edges(lists[boxes][k], boxes, size)
                label = 0 if labels is None else self._label(lists[labels][k], labels)
                own = None if points is None else self._points(lists[points][k], self._scale(size))
                before = kept[0][3] if kept else None
                if own is not None and before is not None and own.shape != before.shape:
                    raise ValueError(f"{points}: {len(own)} points, and {len(before)} of the object before it")
                for name in self.per_box:
                    if type(one := lists[name][k]) is int and not -MOST_LABEL <= one <= MOST_LABEL:
                        raise ValueError(f"{name} is {shown_value(one)}; accepted: whole numbers of int64")
            except (TypeError, ValueError, OverflowError) as error:
                wrong.append(f"object {k}: {error}")
                continue
            if edges is None:
                flat += 1
            else:
                kept.append((k, edges, label, own))
        targets: dict[str, Any] = {"boxes": np.array([one[1] for one in kept], np.float32).reshape(-1, 4)}
        if labels is not None:
            targets["labels"] = np.array([one[2] for one in kept], np.int64)
        if points is not None:
            every = [one[3] for one in kept if one[3] is not None]
            targets["keypoints"] = np.stack(every) if every else np.zeros((0, 0, 3), np.float32)
        for name in self.per_box:
            values = [lists[name][one[0]] for one in kept]
            are_numbers = all(isinstance(value, (int, float, np.number)) for value in values)
            targets[name] = np.array(values) if are_numbers else values
        return RecordTargets(targets, wrong, flat, self._format_of(boxes))

    def _columns(self, record: Any) -> Mapping[str, Any]:
        if record is None:
            record = []
        if isinstance(record, Mapping):
            return record
        if not isinstance(record, (list, tuple)) or not all(isinstance(one, Mapping) for one in record):
            raise ValueError(f"objects are {shown_value(record)}; accepted: a dict of lists, or a list of dicts")
        if not record:
            given = (self.boxes or BOX_NAMES[0], self.labels or OBJECT_LABEL_NAMES[0], *self.per_box)
            return {name: [] for name in (*given, *([self.keypoints] if self.keypoints else []))}
        names = dict.fromkeys(name for one in record for name in one)
        return {name: [one.get(name) for one in record] for name in names}

    def _format_of(self, name: str) -> str:
        return self.box_format or ("xywh" if name == "bbox" else "xyxy")

    def _scale(self, size: tuple[int, int]) -> tuple[float, float]:
        return (float(size[1]), float(size[0])) if self.normalized else (1.0, 1.0)

    def _edges(self, box: Any, name: str, size: tuple[int, int]) -> tuple[float, ...] | None:
        """Within the image; None for a box without area."""
        x1, y1, x2, y2 = numbers_of(name, box, 4)
        box_format = self._format_of(name)
        if box_format == "xywh":
            x2, y2 = x1 + x2, y1 + y2
        elif box_format == "cxcywh":
            x1, y1, x2, y2 = x1 - x2 / 2, y1 - y2 / 2, x1 + x2 / 2, y1 + y2 / 2
        (width, height), limits = self._scale(size), (float(size[1]), float(size[0]))
        x1, y1, x2, y2 = x1 * width, y1 * height, x2 * width, y2 * height
        if x2 < x1 or y2 < y1:
            raise ValueError(
                f"{name} is {shown_value(box)}, of a negative size, read as {box_format}; accepted: {_FORMATS}"
            )
        if x1 == x2 or y1 == y2:
            return None
        clipped = tuple(
            min(max(value, 0.0), most) for value, most in zip((x1, y1, x2, y2), (*limits, *limits), strict=True)
        )
        if clipped[2] <= clipped[0] or clipped[3] <= clipped[1]:
            where = f"outside of its image, {size[0]} x {size[1]} (height x width)"
            raise ValueError(f"{name} is {shown_value(box)}, which, read as {box_format}, lies {where}")
        return clipped

    def _label(self, label: Any, name: str) -> int:
        if isinstance(label, str):
            if label in self.classes:
                return self.classes.index(label)
            known = ", ".join(self.classes[:8]) + ", ..." * (len(self.classes) > 8)
            accepted = known or "whole numbers from 0 on, or names with classes=[...]"
            raise ValueError(f"{name} is {shown_value(label)}; accepted: {accepted}")
        most = len(self.classes)
        is_number = isinstance(label, (int, float, np.number)) and not isinstance(label, bool)
        if not (is_number and 0 <= label < (most or 1 << 62) and float(label).is_integer()):
            accepted = f"0 to {most - 1}, or the name of a class" if most else "whole numbers from 0 on"
            raise ValueError(f"{name} is {shown_value(label)}; accepted: {accepted}")
        return int(label)

    def _points(self, given: Any, scale: tuple[float, float]) -> npt.NDArray[np.float32]:
        """float32 [K, 3] of an object, or of an image."""
        if given is None:
            raise ValueError("no key points")
        given = as_list("key points", given)
        is_flat = bool(given) and not isinstance(given[0], (list, tuple, np.ndarray))
        rows = [given[i : i + 3] for i in range(0, len(given), 3)] if is_flat else given
        found = np.zeros((len(rows), 3), np.float32)
        for k, row in enumerate(rows):
            numbers = numbers_of("key point", row)
            if len(numbers) not in (2, 3) or (is_flat and len(numbers) == 2):
                raise ValueError(f"key point {k} is {shown_value(row)}; accepted: x, y and perhaps visibility")
            visibility = numbers[2] if len(numbers) == 3 else _SEEN
            shift = 0.5 if self.point_origin == "centre" and visibility > 0 else 0.0
            found[k] = numbers[0] * scale[0] + shift, numbers[1] * scale[1] + shift, visibility
        return found


_FORMATS = f"box_format= one of {', '.join(map(repr, _BOX_FORMATS))}"


def _chosen(columns: Mapping[str, Any], name: str | None, usual: Sequence[str]) -> str | None:
    if name is None:
        return next((one for one in usual if one in columns), None)
    if name not in columns:
        raise ValueError(f"no {name!r}; {_held(columns)}")
    return name


def _held(columns: Mapping[str, Any]) -> str:
    return f"it has {_listed(columns) or 'nothing'}"


def _listed(names: Any) -> str:
    return ", ".join(map(repr, list(names)[:12]))


# Of how many samples at most the records are looked at.
FIRST_RECORDS = 100
_UNDER = ("objects", "annotations")


@dataclass(frozen=True)
class RecordForm:
    """``boxes``, ``labels``, ``keypoints``: names in a record, None for what it has not. ``is_list``: it is a list of
    objects, not a dict of lists. ``under``: the name that it has itself in a JSON text. ``box_format``: "xyxy", "xywh"
    or "cxcywh". ``per_box``: further names, with Arrow's names of their types where these are known."""

    boxes: str | None = None
    labels: str | None = None
    keypoints: str | None = None
    is_list: bool = False
    under: str | None = None
    box_format: str = "xyxy"
    normalized: bool = False
    point_origin: str = "corner"
    per_box: Mapping[str, str | None] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """As JSON has it; ``RecordForm(**told)`` is the same."""
        return asdict(self)


def under_name(record: Any) -> str | None:
    """The name under which a JSON text has its objects; None where it is itself what says them."""
    return next((name for name in _UNDER if name in record), None) if isinstance(record, Mapping) else None


def form_of(fields: ObjectFields, records: Iterable[Any]) -> RecordForm:
    """Of the first of these JSON texts with an object, or the last of them; of none, the usual names."""
    form = _named(fields, ("boxes", "labels"), False, None)
    for text in records:
        under = under_name(text)
        record = text if under is None else text[under]
        is_list = not isinstance(record, Mapping)
        objects = [record] if isinstance(record, Mapping) else record if isinstance(record, (list, tuple)) else ()
        names = list(dict.fromkeys(name for one in objects if isinstance(one, Mapping) for name in one))
        form = _named(fields, names or ("boxes", "labels"), is_list, under)
        if names and (is_list or record.get(form.boxes or form.keypoints)):
            break
    return form


def form_of_type(fields: ObjectFields, schema: pa.Schema | None, objects: str | None) -> RecordForm:
    """Of columns, or of what is nested in the column ``objects``."""
    import pyarrow as pa

    if schema is None:
        return RecordForm()
    is_list, holder = False, schema
    if objects is not None:
        kind = schema.field(objects).type
        is_list = not pa.types.is_struct(kind)
        holder = kind.value_type if is_list else kind
    types = {one.name: one.type if is_list else getattr(one.type, "value_type", one.type) for one in holder}
    return _named(fields, list(types), is_list, None, {name: str(kind) for name, kind in types.items()})


def _named(
    fields: ObjectFields, names: Iterable[str], is_list: bool, under: str | None, types: Mapping[str, str] | None = None
) -> RecordForm:
    def name(given: str | None, usual: tuple[str, ...]) -> str | None:
        return given or next((one for one in usual if one in names), None)

    boxes = name(fields.boxes, BOX_NAMES)
    return RecordForm(
        boxes,
        name(fields.labels, OBJECT_LABEL_NAMES) if boxes else None,
        name(fields.keypoints, POINT_NAMES),
        is_list,
        under,
        fields.box_format or ("xywh" if boxes == "bbox" else "xyxy"),
        fields.normalized,
        fields.point_origin,
        {one: (types or {}).get(one) for one in fields.per_box},
    )
