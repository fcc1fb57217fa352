"""The objects of one image as a record of named lists: a row of a table, a JSON text, a sample of a data set.

A record is either ``{"bbox": [[...], ...], "category": [...]}``, a list for each name with an entry for each object, or
``[{"bbox": [...], "category": ...}, ...]``, an object after another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from variegate.arrays import AnyArray, Float32Array, Float64Array, Int64Array, UInt64Array
from variegate.errors import DecodeError
from variegate.formats.annotated import values as check
from variegate.formats.annotated.frames import EXIF, STORED, Frame, Frames
from variegate.formats.annotated.objects import Faults, check_boxes
from variegate.formats.annotated.written import RecordForm
from variegate.formats.base import IndexedSource, SampleName, StoredFile
from variegate.formats.labels import MOST_LABEL, NO_LABEL
from variegate.targets.box_formats import edges_of

if TYPE_CHECKING:
    import pyarrow as pa

    from variegate.formats.parquet.read import ParquetSource
    from variegate.formats.tar.read import WebDatasetSource

# Names in a record by use, where no option says otherwise: the first that the record has.
USUAL_NAMES = {
    "boxes": ("boxes", "bbox", "bboxes"),
    "labels": ("labels", "category", "categories", "category_id", "label"),
    "keypoints": ("keypoints",),
}
IGNORED_NAMES = ("iscrowd", "is_crowd", "difficult")
_BOX_FORMATS = ("xyxy", "xywh", "cxcywh")
_VISIBLE = 2.0
_UNDER = ("objects", "annotations")
_NAME = check.optional("a name, or None for the usual ones", check.is_name)
# Options of annotations= that say how a record is read.
FIELD_OPTIONS = {
    **dict.fromkeys(USUAL_NAMES, _NAME),
    "per_box": check.AnnotationOption(
        (),
        "a list of names",
        lambda value: check.is_name(value) or (isinstance(value, (list, tuple)) and all(map(check.is_name, value))),
    ),
    "box_format": check.AnnotationOption.one_of(None, *_BOX_FORMATS),
    "normalized": check.FLAG,
    "point_origin": check.AnnotationOption.one_of("corner", "centre"),
    "ignored": check.FLAG,
    "exif": EXIF,
}


class RecordTargets(NamedTuple):
    """``targets`` of the good objects; ``wrong``: a line for each wrong one; ``flat``: the number of those without
    area; ``box_format`` of the record."""

    targets: dict[str, Any]
    wrong: list[str]
    flat: int
    box_format: str = "xyxy"


@dataclass(frozen=True)
class ObjectFields:
    """Names in a record, None for the usual ones where the record has them. ``box_format``: None for "xywh" of a name
    "bbox", as COCO's, and "xyxy" of others. ``per_box``: further lists that come along. ``ignored``: objects that do
    not count are kept. ``classes``: of labels that are names, and the limit of those that are numbers. ``exif``: the
    frame of the records (``frames.EXIF``)."""

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
        """All that changes targets, for fingerprints: a source of the displayed frame keeps the one it had."""
        return repr(self) + (f"\0{STORED}" if self.exif == STORED else "")

    @classmethod
    def of(cls, options: check.Options, classes: tuple[str, ...]) -> ObjectFields:
        values = {name: options.of(name) for name in FIELD_OPTIONS}
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
        """Of records with these names; ``types``: Arrow's, by name."""
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
        columns = self._columns(record)
        _check_names(filter(None, (self.boxes, self.labels, self.keypoints)), columns)
        boxes, labels, points = self.names(columns).values()
        if boxes is None:
            if points is None:
                accepted = _listed(USUAL_NAMES["boxes"])
                raise ValueError(f"neither boxes nor key points; {_contents(columns)}; accepted: {accepted}")
            return RecordTargets({"keypoints": self._points(columns[points], size)}, [], 0)
        _check_names(self.per_box, columns)
        ignored = None if self.ignored else next((name for name in IGNORED_NAMES if name in columns), None)
        names = [name for name in (boxes, labels, points, ignored, *self.per_box) if name is not None]
        lists = {name: check.as_list(name, columns[name]) for name in names}
        count = len(lists[boxes])
        if odd := next((name for name in names if len(lists[name]) != count), None):
            raise ValueError(f"{odd}: {len(lists[odd])} for {count} of {boxes}; accepted: one for each")
        read: list[tuple[int, list[float], int, Any]] = []
        wrong = []
        for k in range(count):
            try:
                if ignored is not None and check.flag_of(ignored, lists[ignored][k]):
                    continue
                box = check.numbers_of(boxes, lists[boxes][k], 4)
                label = 0 if labels is None else self._label(lists[labels][k], labels)
                own = None if points is None else self._points(lists[points][k], size)
                if own is not None and read and len(own) != len(first := read[0][3]):
                    raise ValueError(f"{points}: {len(own)} points, and {len(first)} of the object before it")
                for name in self.per_box:
                    if type(one := lists[name][k]) is int and not -MOST_LABEL <= one <= MOST_LABEL:
                        raise check.refusal(name, one, "whole numbers of int64")
            except (TypeError, ValueError, OverflowError) as error:
                wrong.append(f"object {k}: {error}")
                continue
            read.append((k, box, label, own))
        faults = Faults("skip")
        box_format = self._format_of(boxes)
        edges, is_good = check_boxes(
            self._edges(np.array([one[1] for one in read]).reshape(-1, 4), box_format, size),
            np.tile(np.array(size, np.float64), (len(read), 1)),
            faults,
            lambda k: f"object {read[k][0]}: {boxes}, read as {box_format}",
        )
        wrong += [faults.first] * faults.bad
        good = [one for one, fits in zip(read, is_good.tolist(), strict=True) if fits]
        targets: dict[str, Any] = {"boxes": edges[is_good]}
        if labels is not None:
            targets["labels"] = np.array([one[2] for one in good], np.int64)
        if points is not None:
            targets["keypoints"] = np.stack([one[3] for one in good]) if good else np.zeros((0, 0, 3), np.float32)
        for name in self.per_box:
            values = [lists[name][one[0]] for one in good]
            are_numbers = all(isinstance(value, (int, float, np.number)) for value in values)
            targets[name] = np.array(values) if are_numbers else values
        return RecordTargets(targets, wrong, faults.flat, box_format)

    def _columns(self, record: Any) -> Mapping[str, Any]:
        if isinstance(record, Mapping):
            return record
        record = [] if record is None else record
        if not isinstance(record, (list, tuple)) or not all(isinstance(one, Mapping) for one in record):
            shown = check.shown_value(record)
            raise ValueError(f"objects are {shown}; accepted: a dict of lists, or a list of dicts")
        names = dict.fromkeys(name for one in record for name in one)
        if not record:
            usual = (self.boxes or "boxes", self.labels or "labels", self.keypoints, *self.per_box)
            names = dict.fromkeys(filter(None, usual))
        return {name: [one.get(name) for one in record] for name in names}

    def _format_of(self, name: str | None) -> str:
        return self.box_format or ("xywh" if name == "bbox" else "xyxy")

    def _scale(self, size: tuple[int, int]) -> tuple[float, float]:
        return (float(size[1]), float(size[0])) if self.normalized else (1.0, 1.0)

    def _edges(self, boxes: Float64Array, box_format: str, size: tuple[int, int]) -> Float64Array:
        """Boxes [M, 4] as they are written -> edges in pixels."""
        return edges_of(boxes, box_format) * np.tile(self._scale(size), 2)

    def _label(self, label: Any, name: str) -> int:
        most = len(self.classes)
        if isinstance(label, str):
            if label in self.classes:
                return self.classes.index(label)
            known = ", ".join(self.classes[:8]) + ", ..." * (most > 8)
            raise check.refusal(name, label, known or "whole numbers from 0 on, or names with classes=[...]")
        is_number = isinstance(label, (int, float, np.number)) and not isinstance(label, bool)
        if not (is_number and 0 <= label < (most or 1 << 62) and float(label).is_integer()):
            accepted = f"0 to {most - 1}, or the name of a class" if most else "whole numbers from 0 on"
            raise check.refusal(name, label, accepted)
        return int(label)

    def _points(self, points: Any, size: tuple[int, int]) -> Float32Array:
        """float32 [K, 3] of an object, or of an image."""
        if points is None:
            raise ValueError("no key points")
        rows = check.as_list("key points", points)
        scale = self._scale(size)
        is_flat = bool(rows) and not isinstance(rows[0], (list, tuple, np.ndarray))
        rows = [rows[i : i + 3] for i in range(0, len(rows), 3)] if is_flat else rows
        found = np.zeros((len(rows), 3), np.float32)
        for k, row in enumerate(rows):
            numbers = check.numbers_of("key point", row)
            if len(numbers) not in (2, 3) or (is_flat and len(numbers) == 2):
                raise check.refusal(f"key point {k}", row, "x, y and perhaps visibility")
            visibility = numbers[2] if len(numbers) == 3 else _VISIBLE
            shift = 0.5 if self.point_origin == "centre" and visibility > 0 else 0.0
            found[k] = numbers[0] * scale[0] + shift, numbers[1] * scale[1] + shift, visibility
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
    """``on_error``: "skip" leaves wrong objects out, counted once for each sample; else they are DecodeErrors."""

    def __init__(self, fields: ObjectFields, on_error: str) -> None:
        self.fields = fields
        self._is_skipping = on_error == "skip"
        self._frames = Frames(fields.exif)
        self._wrong: dict[int, int] = {}
        self._flat: dict[int, int] = {}
        self._first = ""

    def frame(self, data: Any, name: str) -> Frame:
        return self._frames.of(data, name, name.rpartition(":")[0] or name)

    def displayed(self, targets: dict[str, Any], frame: Frame) -> dict[str, Any]:
        return self._frames.displayed(targets, frame)

    def targets(self, sample: int, record: Any, size: tuple[int, int], name: str) -> dict[str, Any]:
        """``sample``: its number; ``size``: of its image, height and width. Raises DecodeError with ``name``."""
        try:
            found = self.fields.read(record, size)
        except (TypeError, ValueError, OverflowError) as error:
            raise DecodeError(name, f"its annotations: {error}") from None
        self.count(sample, found.wrong, found.flat, name)
        return found.targets

    def count(self, sample: int, wrong: list[str], flat: int, name: str) -> None:
        """Raises DecodeError for the first that is wrong, unless these are left out."""
        if wrong and not self._is_skipping:
            raise DecodeError(name, f'its annotations: {wrong[0]}; on_error="skip" of open_source leaves such out')
        if wrong:
            self._first = self._first or f"{name}: {wrong[0]}"
            self._wrong[sample] = len(wrong)
        if flat:
            self._flat[sample] = flat

    def notes(self) -> list[str]:
        """Of the samples that were read so far."""
        wrong = sum(list(self._wrong.values()))
        flat = sum(list(self._flat.values()))
        return Faults("skip", bad=wrong, first=self._first, flat=flat).notes("", "were")


class SourceOver(IndexedSource):
    """The samples of another source, ``_images``, with targets instead of labels. ``_reader``: of their records."""

    has_targets: ClassVar[bool] = True
    has_edges: ClassVar[bool] = True
    has_image_labels: ClassVar[bool] = False
    _images: ParquetSource | WebDatasetSource

    def __init__(self, images: ParquetSource | WebDatasetSource, reader: RecordReader) -> None:
        self._images = images
        self._reader = reader
        self.classes = reader.fields.classes
        self.is_remote = images.is_remote

    def __len__(self) -> int:
        return len(self._images)

    def name(self, index: int) -> SampleName:
        return self._images.name(index)

    def ids(self, indices: Int64Array) -> UInt64Array:
        return self._images.ids(indices)

    def labels(self, indices: Int64Array) -> AnyArray:
        return np.full(len(indices), NO_LABEL)

    def stored_files(self) -> list[StoredFile]:
        return self._images.stored_files()


def unwrapped(text: Any) -> tuple[Any, str | None]:
    """The record in a JSON text, and the name that it has there, such as "objects"."""
    under = next((name for name in _UNDER if name in text), None) if isinstance(text, Mapping) else None
    return (text if under is None else text[under]), under


def form_of_texts(fields: ObjectFields, texts: Iterable[Any]) -> RecordForm:
    """Of the first of these JSON texts with an object, or the last of them; of none, the usual names."""
    form = fields.form(("boxes", "labels"), False)
    for text in texts:
        record, under = unwrapped(text)
        is_list = not isinstance(record, Mapping)
        objects = [record] if isinstance(record, Mapping) else record if isinstance(record, (list, tuple)) else ()
        names = list(dict.fromkeys(name for one in objects if isinstance(one, Mapping) for name in one))
        form = fields.form(names or ("boxes", "labels"), is_list, under)
        if names and (is_list or record.get(form.boxes or form.keypoints)):
            break
    return form


def form_of_schema(fields: ObjectFields, schema: pa.Schema | None, objects: str | None) -> RecordForm:
    """Of columns, or of the fields in the column ``objects``."""
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
