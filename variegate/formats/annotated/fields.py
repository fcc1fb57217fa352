"""The objects of one image as a record of named lists: a row of a table, a JSON text, a sample of a data set.

A record is either ``{"bbox": [[...], ...], "category": [...]}``, a list for each name with an entry for each object, or
``[{"bbox": [...], "category": ...}, ...]``, an object after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.formats.annotated.values import as_list, flag_of, numbers_of, shown_value
from variegate.formats.base import SourceError
from variegate.formats.labels import MOST_LABEL

BOX_NAMES = ("boxes", "bbox", "bboxes")
OBJECT_LABEL_NAMES = ("labels", "category", "categories", "category_id", "label")
POINT_NAMES = ("keypoints",)
_IGNORED_NAMES = ("iscrowd", "is_crowd", "difficult")
_BOX_FORMATS = ("xyxy", "xywh", "cxcywh")
_SEEN = 2.0
# Options of annotations= that say how a record is read, and what they are where they are not given.
FIELD_OPTIONS: dict[str, Any] = {
    **{"boxes": None, "labels": None, "keypoints": None, "per_box": ()},
    **{"box_format": None, "normalized": False, "point_origin": "corner", "ignored": False},
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
    def check(cls, options: Mapping[str, Any], classes: tuple[str, ...]) -> ObjectFields:
        """Raises SourceError for options that are not accepted."""
        accepted: dict[str, tuple[Any, ...]] = {
            **{"box_format": (None, *_BOX_FORMATS), "point_origin": ("corner", "centre")},
            **{"normalized": (True, False), "ignored": (True, False)},
        }
        for name, some in accepted.items():
            if not any(options[name] is one or (isinstance(one, str) and options[name] == one) for one in some):
                raise _refused(name, options[name], ", ".join(map(repr, some)))
        for name in ("boxes", "labels", "keypoints"):
            if options[name] is not None and (not isinstance(options[name], str) or not options[name]):
                raise _refused(name, options[name], "a name, or None for the usual ones")
        more = options["per_box"]
        more = (more,) if isinstance(more, str) else more
        if not isinstance(more, (list, tuple)) or not all(isinstance(name, str) and name for name in more):
            raise _refused("per_box", more, "a list of names")
        given = {name: options[name] for name in FIELD_OPTIONS if name != "per_box"}
        return cls(**given, per_box=tuple(more), classes=classes)

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
        made = _KeptObjects()
        for k in range(count):
            try:
                if ignored is not None and flag_of(ignored, lists[ignored][k]):
                    continue
                edges = self._edges(lists[boxes][k], boxes, size)
                label = 0 if labels is None else self._label(lists[labels][k], labels)
                own = None if points is None else self._points(lists[points][k], self._scale(size))
                if own is not None and made.points and own.shape != made.points[0].shape:
                    raise ValueError(f"{points}: {len(own)} points, and {len(made.points[0])} of the object before it")
                for name in self.per_box:
                    if type(one := lists[name][k]) is int and not -MOST_LABEL <= one <= MOST_LABEL:
                        raise ValueError(f"{name} is {shown_value(one)}; accepted: whole numbers of int64")
            except (TypeError, ValueError, OverflowError) as error:
                made.wrong.append(f"object {k}: {error}")
                continue
            if edges is None:
                made.flat += 1
                continue
            made.add(k, edges, label, own)
        targets = made.targets(labels, points, {name: lists[name] for name in self.per_box})
        return RecordTargets(targets, made.wrong, made.flat, self._format_of(boxes))

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


class _KeptObjects:
    def __init__(self) -> None:
        self.kept: list[int] = []
        self.boxes: list[tuple[float, ...]] = []
        self.labels: list[int] = []
        self.points: list[npt.NDArray[np.float32]] = []
        self.wrong: list[str] = []
        self.flat = 0

    def add(self, k: int, edges: tuple[float, ...], label: int, points: npt.NDArray[np.float32] | None) -> None:
        self.kept.append(k)
        self.boxes.append(edges)
        self.labels.append(label)
        if points is not None:
            self.points.append(points)

    def targets(self, labels: str | None, points: str | None, more: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {"boxes": np.array(self.boxes, np.float32).reshape(-1, 4)}
        if labels is not None:
            found["labels"] = np.array(self.labels, np.int64)
        if points is not None:
            found["keypoints"] = np.stack(self.points) if self.points else np.zeros((0, 0, 3), np.float32)
        for name, values in more.items():
            own = [values[k] for k in self.kept]
            are_numbers = all(isinstance(value, (int, float, np.number)) for value in own)
            found[name] = np.array(own) if are_numbers else own
        return found


_FORMATS = f"box_format= one of {', '.join(map(repr, _BOX_FORMATS))}"


def _chosen(columns: Mapping[str, Any], name: str | None, usual: Sequence[str]) -> str | None:
    if name is None:
        return next((one for one in usual if one in columns), None)
    if name not in columns:
        raise ValueError(f"no {name!r}; {_held(columns)}")
    return name


def _refused(name: str, got: Any, accepted: str) -> SourceError:
    return SourceError(f"annotations: {name}: got {got!r}; accepted: {accepted}")


def _held(columns: Mapping[str, Any]) -> str:
    return f"it has {_listed(columns) or 'nothing'}"


def _listed(names: Any) -> str:
    return ", ".join(map(repr, list(names)[:12]))
