"""COCO's instances and key points: one JSON file for a folder of images, read, and written for a run's outputs.

The file may be large: it is parsed value by value, and objects become rows of arrays at once.
"""

from __future__ import annotations

import codecs
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from variegate.data.annotated.folders import annotated_folder, names_below
from variegate.data.annotated.manifest_targets import DIGITS, Content, Row, Rows, targets_in
from variegate.data.annotated.objects import (
    ROW_ERRORS,
    AnnotationErrors,
    ObjectRow,
    Objects,
    objects_from_rows,
    reason_of,
    skip_missing,
)
from variegate.data.annotated.options import check_options
from variegate.data.annotated.outlines import Shape, ShapeColumns, masks_of, rings_of, runs_in
from variegate.data.annotated.values import (
    MOST_POINTS,
    MOST_SIDE,
    flag_of,
    numbers_of,
    refusal,
    shown_value,
    whole_of,
)
from variegate.data.base import SourceError, summarize_names
from variegate.data.kinds import is_image_name
from variegate.data.labels import checked_names
from variegate.data.reading import ByteStream, is_file, open_stream, parse_file
from variegate.data.samples import Samples
from variegate.errors import DecodeError
from variegate.io.amounts import format_limit, pluralize
from variegate.io.files import MOST_BYTES
from variegate.io.location import Location

Entry = dict[str, Any]
ACCEPTED = 'an object with the lists "images", "annotations" and "categories"'
LISTS = ("images", "annotations", "categories")
# Key points are pixels by their indices; in the frame of the boxes pixel i covers [i, i + 1): half a pixel further.
_CENTER = 0.5
_PIECE_BYTES = 4 << 20
_SPACES = " \t\n\r"


class _Image(NamedTuple):
    number: int
    path: str
    size: tuple[int, int]


class _Category(NamedTuple):
    label: int
    num_points: int


class _JsonText:
    """Parse a JSON file value by value, with a piece of it in memory. Raises SourceError naming the file."""

    def __init__(self, file: Location, stream: ByteStream) -> None:
        self._file = file
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._scan = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0
        self._is_complete = False

    def peek(self) -> str:
        """Return the next character after spaces; "" at the end."""
        while True:
            character = self._text[self._at : self._at + 1]
            if character and character not in _SPACES:
                return character
            if character:
                self._at += 1
            elif not self._read_on():
                return ""

    def value(self) -> Any:
        """Take the next value."""
        self.peek()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except RecursionError:
                raise SourceError(f"{self._file}: nested too deeply; accepted: {ACCEPTED}") from None
            except ValueError as error:  # a JSONDecodeError, or a number of 5,000 digits
                if self._read_on():
                    continue
                raise SourceError(f"{self._file}: no JSON: {error}") from None
            # A number at the end of the piece may have more digits.
            if end < len(self._text) or not self._read_on():
                self._at = end
                return value

    def list_entries(self) -> Iterator[Any]:
        """Take the entries of a list."""
        return (self.value() for _ in self._until("]"))

    def object_names(self) -> Iterator[str]:
        """Take the names in an object; the caller takes the value after each."""
        for _ in self._until("}"):
            name = self.value()
            self._take(":")
            yield str(name)

    def expect_end(self) -> None:
        if self.peek():
            raise SourceError(f"{self._file}: no JSON: Extra data, {self._text[self._at :][:20]!r}")

    def _until(self, end: str) -> Iterator[None]:
        self._at += 1
        if self.peek() != end:
            yield
            while self.peek() == ",":
                self._at += 1
                yield
        self._take(end)

    def _take(self, character: str) -> None:
        if self.peek() != character:
            raise SourceError(f"{self._file}: no JSON: Expecting {character!r}, got {self._text[self._at :][:20]!r}")
        self._at += 1

    def _read_on(self) -> bool:
        """Drop the consumed text and read more of the file. Returns False at its end."""
        if self._is_complete:
            return False
        rest = self._text[self._at :]
        try:
            data = self._stream.read(max(_PIECE_BYTES, len(rest)))
            self._text = rest + self._decode(data, final=not data)
        except UnicodeDecodeError:
            raise SourceError(f"{self._file}: not UTF-8; accepted: a text file") from None
        except DecodeError as error:
            raise SourceError(str(error)) from None
        if self._stream.count > MOST_BYTES:
            raise SourceError(
                f"{self._file}: more than {format_limit(MOST_BYTES)}, the most that is read of such a file"
            )
        self._at = 0
        self._is_complete = not data
        return True


def open_coco(
    folder: Location, annotations: Mapping[str, Any], on_error: str, classes: Sequence[str] | None
) -> Samples:
    """Images in the file's order. ``ignored``: objects with ``iscrowd`` are kept. Raises SourceError for other files,
    for images that are missing, and for invalid objects, unless ``on_error`` is "skip"."""
    options = check_options("coco", annotations)
    if classes is not None:
        raise SourceError("classes: COCO's files name their classes; leave it out")
    file = _find(folder, options["file"])
    errors = AnnotationErrors(on_error)
    contents = _read(file, options["ignored"], errors)
    objects = contents.objects
    paths = [image.path for image in contents.images.values()]
    notes = []
    # Web servers list no folders; an image that is missing is then a bad sample.
    if not folder.is_web:
        existing = names_below(folder) or set()
        missing = [path for path in paths if path not in existing]
        notes += skip_missing(missing, len(paths), f"missing from {folder}", on_error, str(file))
        if more := sorted(path for path in existing.difference(paths) if is_image_name(path)):
            notes.append(f"skipped {pluralize(len(more), 'image')} without annotations: {summarize_names(more)}")
        objects = objects.of_images(np.array([path in existing for path in paths], np.bool_))
        paths = [path for path in paths if path in existing]
    names = [str(entry["name"]) for entry in contents.categories]
    metadata = {"format": "coco", "categories": contents.categories}
    return annotated_folder(
        folder, names, paths, objects, errors, metadata, options, remarks=notes, ignored="crowd (iscrowd)"
    )


def _find(folder: Location, name: str) -> Location:
    """The file at ``name``, or else from the folder on. Raises SourceError."""
    file = parse_file("annotations", name)
    if file.is_url:
        return file
    found = next(filter(is_file, (file, folder.below(file.address()))), None)
    if found is None:
        raise SourceError(f"annotations: no file {file}, neither here nor in {folder}")
    return found


class _Contents(NamedTuple):
    images: dict[Any, _Image]
    categories: list[Entry]
    objects: Objects


def _read(file: Location, keeps_ignored: bool, errors: AnnotationErrors) -> _Contents:
    """Read the three lists. Raises SourceError. If images come after the annotations, the file is read twice."""
    images: dict[Any, _Image] = {}
    category_entries: list[Entry] = []
    objects: Objects | None = None
    while objects is None:
        known: set[str] = set()
        for name, entries in _each_list(file):
            known.add(name)
            if name == "images" and not images:
                images = _by_id(file, name, entries, _read_image)
            elif name == "categories":
                category_entries = list(entries)
            elif name == "annotations" and images:
                reader = _ObjectReader(file, images, keeps_ignored, errors)
                objects = reader.read(entries)
        if missing := [name for name in LISTS if name not in known]:
            raise SourceError(f"{file}: no {missing[0]!r} in it; accepted: {ACCEPTED}")
    categories = _by_id(file, "categories", category_entries, _read_category)
    return _Contents(images, category_entries, reader.with_categories(objects, categories))


def _each_list(file: Location) -> Iterator[tuple[str, Iterator[Any]]]:
    """Yield each list named in ``LISTS`` with its entries; entries that the caller does not consume are skipped."""
    with open_stream(file) as stream:
        text = _JsonText(file, stream)
        if text.peek() != "{":
            text.value()
            raise SourceError(f"{file}: not COCO's; accepted: JSON, {ACCEPTED}")
        for name in text.object_names():
            if name not in LISTS:
                text.value()
                continue
            if text.peek() != "[":
                raise SourceError(f"{file}: {name!r} is no list; accepted: {ACCEPTED}")
            entries = text.list_entries()
            yield name, entries
            for _ in entries:
                pass
        text.expect_end()


class _ObjectReader:
    """Makes rows of annotations. Categories may come after them in the file: until these are known, labels are numbers
    of category ids, in the order of their first use."""

    def __init__(
        self, file: Location, images: dict[Any, _Image], keeps_ignored: bool, errors: AnnotationErrors
    ) -> None:
        self._file = file
        self._images = images
        self._keeps_ignored = keeps_ignored
        self._errors = errors
        self._paths = [image.path for image in images.values()]
        self._categories: dict[Any, int] = {}
        # Of the entries so far.
        self._ids: list[Any] = []
        self._image_of = array("q")
        self._point_numbers = array("q")

    def read(self, entries: Iterator[Any]) -> Objects:
        return objects_from_rows(
            enumerate(entries),
            self._row,
            np.array([image.size for image in self._images.values()], np.int32),
            self._errors,
            name_of=self._name,
            box_format="xywh",
            has_keys=True,
        )

    def with_categories(self, objects: Objects, categories: dict[Any, _Category]) -> Objects:
        """Replace numbers of categories by labels. Objects of unknown categories, and with other key points than their
        category has, are invalid."""
        assert objects.keys is not None
        known = [categories.get(id) for id in self._categories]
        label_of = np.array([-1 if one is None else one.label for one in known], np.int64)
        wanted = np.array([0 if one is None else 3 * one.num_points for one in known], np.int64)
        most = max((category.num_points for category in categories.values()), default=0)
        labels = label_of[objects.labels]
        numbers = np.frombuffer(self._point_numbers, np.int64)[objects.keys]
        is_other = (numbers > 0) & (numbers != wanted[objects.labels]) & (most > 0)
        for k in np.flatnonzero((labels < 0) | is_other).tolist():
            category_id = next(id for id, number in self._categories.items() if number == objects.labels[k])
            what = f"category_id {shown_value(category_id)}, which no category has"
            if labels[k] >= 0:
                has = f"its category has {wanted[objects.labels[k]] // 3} points of 3"
                what = f"{numbers[k]} numbers of key points; {has}"
            self._errors.add(self._name(int(objects.keys[k])), what)
        points = None
        if most:
            points = np.zeros((len(labels), most, 3), np.float32)
            if objects.keypoints is not None:
                shared = min(most, objects.keypoints.shape[1])
                points[:, :shared] = objects.keypoints[:, :shared]
        objects = replace(objects, labels=labels, keypoints=points, keys=None)
        return objects.where((labels >= 0) & ~is_other)

    def _name(self, key: int) -> str:
        number = self._image_of[key]
        image = f" of {self._paths[number]}" if number >= 0 else ""
        return f"{self._file}: annotation {shown_value(self._ids[key])}{image}"

    def _row(self, key: int, entry: Any) -> ObjectRow | None:
        is_object = isinstance(entry, dict)
        image_id = entry.get("image_id") if is_object else None
        image = self._images.get(image_id) if isinstance(image_id, (int, str)) else None
        self._ids.append(entry.get("id") if is_object else entry)
        self._image_of.append(-1 if image is None else image.number)
        self._point_numbers.append(0)
        _check_entry(entry)
        is_crowd = flag_of("iscrowd", entry.get("iscrowd"))
        if is_crowd and not self._keeps_ignored:
            return None
        if image is None:
            raise ValueError(f"image_id {shown_value(entry['image_id'])}, which no image has")
        label = self._categories.setdefault(entry["category_id"], len(self._categories))
        box = numbers_of("bbox", entry["bbox"], 4)
        numbers = numbers_of("keypoints", entry.get("keypoints") or ())
        points = None
        if any(numbers):  # some programs write zeros for missing key points
            self._point_numbers[key] = len(numbers)
            if len(numbers) % 3 == 0 and len(numbers) <= 3 * MOST_POINTS:
                points = np.array(numbers, np.float32).reshape(-1, 3)
                points[:, :2] += np.where(points[:, 2:] > 0, _CENTER, 0)
        return ObjectRow(image.number, label, box, points, _shape_of(entry.get("segmentation")), is_crowd)


def _by_id(file: Location, member: str, entries: Iterable[Any], read: Callable[[int, Entry], Any]) -> dict[Any, Any]:
    """Map the id of each entry of a list to what ``read`` makes of its index and the entry. Raises SourceError."""
    found: dict[Any, Any] = {}
    for index, entry in enumerate(entries):
        try:
            _check_entry(entry)
            if entry["id"] in found:
                raise ValueError("an id that another entry has")
            found[entry["id"]] = read(index, entry)
        except ROW_ERRORS as error:
            shown_id = shown_value(entry.get("id") if isinstance(entry, dict) else entry)
            raise SourceError(f"{file}: {member}, the entry with id {shown_id}: {reason_of(error)}") from None
    if member == "images" and not found:
        raise SourceError(f"{file}: names no images")
    return found


def _check_entry(entry: Any) -> None:
    if not isinstance(entry, dict):
        raise TypeError(f"is {shown_value(entry)}; accepted: an object")


def _read_image(number: int, entry: Entry) -> _Image:
    path = str(entry["file_name"])
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or not parts[-1]:
        raise refusal("file_name", path, "the path of a file below the folder")
    height, width = (whole_of(side, entry.get(side) or 0, MOST_SIDE) for side in ("height", "width"))
    return _Image(number, "/".join(part for part in parts if part != "."), (height, width))


def _read_category(label: int, entry: Entry) -> _Category:
    checked_names([str(entry["name"])])
    num_points = len(entry.get("keypoints") or ())
    if num_points > MOST_POINTS:
        raise ValueError(f"{num_points:,} key points; accepted: up to {MOST_POINTS:,}")
    return _Category(label, num_points)


def _shape_of(segmentation: Any) -> Shape:
    return runs_in(segmentation) if isinstance(segmentation, dict) else rings_of(segmentation or ())


_compact = json.JSONEncoder(separators=(",", ":")).encode
# For the user's categories: the settings of a resumed run do not keep the order of keys.
_sorted = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def coco_files(metadata: Mapping[str, Any], classes: Sequence[str], rows: Rows) -> Iterator[tuple[str, Content]]:
    """``annotations.json``, with an entry per line, next to the folder ``images``. ``metadata``: that of Samples, with
    ``categories``."""
    yield "annotations.json", _pieces(metadata["categories"], rows)


def _pieces(categories: list[dict[str, Any]], rows: Rows) -> Iterator[bytes]:
    yield b'{"info":{"description":"written by variegate augment"},\n"licenses":[],\n"categories":'
    yield _sorted(categories).encode()
    yield b',\n"images":['
    yield from _listed(
        {"id": id, "file_name": row["file"].removeprefix("images/"), "width": row["width"], "height": row["height"]}
        for id, row in rows()
    )
    yield b'],\n"annotations":['
    yield from _listed(entry for id, row in rows() for entry in _objects(id, row, categories))
    yield b"]}\n"


def _listed(entries: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    """Entries without an id are numbered from 1."""
    for number, entry in enumerate(entries, 1):
        entry.setdefault("id", number)
        yield (",\n" if number > 1 else "\n").encode() + _compact(entry).encode()


def _objects(id: int, row: Row, categories: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    found = targets_in(row)
    size = row["height"], row["width"]
    for k, (box, label, ignored) in enumerate(zip(found["boxes"], found["labels"], found["ignored"], strict=True)):
        category, (left, top, right, bottom) = categories[label], box
        sides = round(right - left, DIGITS), round(bottom - top, DIGITS)
        entry = {
            "image_id": id,
            "category_id": category["id"],
            "bbox": [left, top, *sides],
            "area": round(sides[0] * sides[1], DIGITS),
            "iscrowd": ignored,
        }
        if "outlines" in found:
            entry["segmentation"], area = _segmentation(found["outlines"][k], size)
            entry["area"] = area or entry["area"]
        if (count := len(category.get("keypoints") or ())) and "keypoints" in found:
            points = np.reshape(found["keypoints"][k][: 3 * count], (-1, 3))
            is_there = points[:, 2:] > 0
            points[:, :2] = np.where(is_there, np.round(points[:, :2] - _CENTER, DIGITS), 0.0)
            entry["keypoints"] = [number for x, y, seen in points.tolist() for number in (x, y, int(seen))]
            entry["num_keypoints"] = int(is_there.sum())
        yield entry


def _segmentation(outline: Any, size: tuple[int, int]) -> tuple[Any, int]:
    """An outline as COCO has it, and the number of its pixels."""
    segmentation = {"size": list(size), "counts": outline} if isinstance(outline, str) else outline or []
    shapes = ShapeColumns()
    shapes.append(_shape_of(segmentation))
    masks, _ = masks_of(shapes.packed(), range(1), size, (1.0, 1.0))
    return segmentation, int(masks.sum())
