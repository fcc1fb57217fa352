"""COCO's instances and key points: one JSON file for a folder of images.

The file is walked over entry by entry, so that what is in memory at once is its text and the arrays that come of it:
Python objects for all of it would take five times as much.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from variegate.formats.annotated.coco_json import ACCEPTED, LISTS, entries_of, read_text
from variegate.formats.annotated.listing import names_below
from variegate.formats.annotated.objects import Complaints, ObjectsBuilder
from variegate.formats.annotated.source import AnnotatedFolder
from variegate.formats.annotated.values import MOST_POINTS, MOST_SIDE, flag_of, numbers_of, shown_value, whole_of
from variegate.formats.base import SourceError, first_names
from variegate.formats.file_kinds import is_image_name
from variegate.formats.labels import checked_names
from variegate.io.location import Location

if TYPE_CHECKING:
    from variegate.formats.annotated.polygons import Polygons

# Key points are pixels by their indices; places in the frame, in which pixel i covers [i, i + 1), are half a pixel on.
_CENTRE = 0.5


class Category(NamedTuple):
    label: int
    points: int


def open_coco(folder: Location, file: Location, mask: str | None, ignored: bool, on_error: str) -> AnnotatedFolder:
    """Images in the file's order. ``ignored``: objects with ``iscrowd`` are kept. Raises SourceError for what is no
    such file, for images that are missing, and for objects that are wrong, unless ``on_error`` is "skip"."""
    try:
        return _parsed(file, ignored, on_error).source(folder, mask)
    except json.JSONDecodeError:
        pass
    try:  # Again, as lines and columns are those of the whole text.
        return _parsed(file, ignored, on_error, is_whole=True).source(folder, mask)
    except json.JSONDecodeError as error:
        raise SourceError(f"{file}: no JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None


def _parsed(file: Location, ignored: bool, on_error: str, is_whole: bool = False) -> _Parsed:
    text, polygons = read_text(file, is_whole)
    parsed = _Parsed(str(file), ignored, Complaints(on_error), polygons)
    for member, entry in entries_of(text, str(file)):
        parsed.add(member, entry)
    return parsed


class _Parsed:
    """What has been read so far."""

    def __init__(self, file: str, ignored: bool, complaints: Complaints, polygons: Polygons | None) -> None:
        self._file, self._ignored, self._complaints = file, ignored, complaints
        self._paths: list[str] = []
        self._sizes: list[tuple[int, int]] = []
        self._image_ids: dict[Any, int] = {}
        self._categories: dict[Any, Category] = {}
        self._names: list[str] = []
        self._entries: list[dict[str, Any]] = []
        # Images and categories may come after the objects: these are looked up at the end.
        self._builder = ObjectsBuilder()
        self._ends: list[int] | None = None
        self._shape = -1
        if polygons is not None:
            self._ends = polygons.ends.tolist()
            self._builder.shapes.begin_with(polygons.points, polygons.rings)
        self._images_of: list[Any] = []
        self._categories_of: list[Any] = []
        self._points_of: list[list[float]] = []
        self._ids: list[Any] = []
        self._members: set[str] = set()
        self._add = {"images": self._add_image, "annotations": self._add_object, "categories": self._add_category}

    def add(self, member: str, entry: Any) -> None:
        self._members.add(member)
        if entry is None:
            return
        try:
            if not isinstance(entry, dict):
                raise TypeError(f"is {shown_value(entry)}; accepted: an object")
            self._add[member](entry)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
            told = shown_value(entry.get("id") if isinstance(entry, dict) else entry)
            where = f"{self._file}: {member}, the entry with id {told}"
            if member != "annotations":
                raise SourceError(f"{where}: {what}") from None
            self._complaints.add(where, what)

    def _add_image(self, entry: dict[str, Any]) -> None:
        path = str(entry["file_name"])
        parts = path.split("/")
        if path.startswith("/") or ".." in parts or not parts[-1]:
            raise ValueError(f"file_name is {shown_value(path)}; accepted: the path of a file below the folder")
        if entry["id"] in self._image_ids:
            raise ValueError("an id that another image has")
        height, width = (whole_of(side, entry.get(side) or 0, MOST_SIDE) for side in ("height", "width"))
        self._image_ids[entry["id"]] = len(self._paths)
        self._paths.append("/".join(part for part in parts if part != "."))
        self._sizes.append((height, width))

    def _add_category(self, entry: dict[str, Any]) -> None:
        if entry["id"] in self._categories:
            raise ValueError("an id that another category has")
        name, points = checked_names([str(entry["name"])]), len(entry.get("keypoints") or ())
        if points > MOST_POINTS:
            raise ValueError(f"{points:,} key points; accepted: up to {MOST_POINTS:,}")
        self._categories[entry["id"]] = Category(len(self._names), points)
        self._names.extend(name)
        self._entries.append(entry)

    def _add_object(self, entry: dict[str, Any]) -> None:
        is_crowd = flag_of("iscrowd", entry.get("iscrowd"))
        if is_crowd and not self._ignored:
            self._complaints.ignored += 1
            return
        image, category = entry["image_id"], entry["category_id"]
        hash(image), hash(category)
        left, top, width, height = numbers_of("bbox", entry["bbox"], 4)
        points = numbers_of("keypoints", entry.get("keypoints") or ())
        self._add_shape(entry.get("segmentation"))
        self._builder.boxes.extend((left, top, left + width, top + height))
        self._builder.ignored.append(is_crowd)
        self._images_of.append(image)
        self._categories_of.append(category)
        self._points_of.append(points)
        self._ids.append(entry.get("id"))

    def _add_shape(self, shape: Any) -> None:
        shapes = self._builder.shapes
        if type(shape) is int and self._ends is not None:
            # Numbers that were put in ascend; any other was there before, behind a key in escapes.
            if not self._shape < shape < len(self._ends):
                raise ValueError(f"segmentation is {shape}; accepted: polygons or an RLE")
            self._shape = shape
            shapes.add_known(self._ends[shape - 1] if shape else 0, self._ends[shape])
        elif isinstance(shape, dict):
            height, width = shape["size"]
            shapes.add_runs(height, width, shape["counts"])
        else:
            shapes.add_rings(shape or ())

    def source(self, folder: Location, mask: str | None) -> AnnotatedFolder:
        """Raises SourceError as ``open_coco`` says."""
        if missing := [name for name in LISTS if name not in self._members]:
            raise SourceError(f"{self._file}: no {missing[0]!r} in it; accepted: {ACCEPTED}")
        if not self._paths:
            raise SourceError(f"{self._file}: names no images")
        self._resolve()
        sizes = np.array(self._sizes, np.int32).reshape(-1, 2)
        objects = self._builder.done(sizes, self._complaints, self._where)
        return with_images_there(
            AnnotatedFolder(folder, tuple(self._names), tuple(self._paths), objects, mask, (), self._about()),
            self._file,
            self._complaints,
            "crowd (iscrowd)",
        )

    def _about(self) -> dict[str, Any]:
        return {"format": "coco", "categories": self._entries}

    def _where(self, k: int) -> str:
        name = self._paths[self._image_ids[self._images_of[k]]]
        return f"{self._file}: annotation {shown_value(self._ids[k])} of {name}"

    def _resolve(self) -> None:
        """Ids to places; objects of unknown images and categories become objects of no area, which are left out."""
        builder = self._builder
        builder.points = max((category.points for category in self._categories.values()), default=0)
        for k, (image, category) in enumerate(zip(self._images_of, self._categories_of, strict=True)):
            index, known = self._image_ids.get(image), self._categories.get(category)
            if index is None or known is None:
                what = f"image_id {shown_value(image)}, which no image has"
                if index is not None:
                    what = f"category_id {shown_value(category)}, which no category has"
                self._leave_out(k, what)
            builder.images.append(index or 0)
            builder.labels.append(known.label if known else 0)
            if builder.points:
                self._add_points(k, known if index is not None else None)

    def _leave_out(self, k: int, what: str) -> None:
        self._complaints.add(f"{self._file}: annotation {shown_value(self._ids[k])}", what)
        self._complaints.flat -= 1  # it is counted as wrong
        self._builder.boxes[4 * k : 4 * k + 4] = type(self._builder.boxes)("d", (0.0,) * 4)

    def _add_points(self, k: int, category: Category | None) -> None:
        given, wanted = self._points_of[k], 3 * category.points if category else 0
        points = np.zeros((self._builder.points, 3), np.float32)
        if not any(given):
            given = []  # as some write that there are none
        if given and category and len(given) != wanted:
            self._leave_out(k, f"{len(given)} numbers of key points; its category has {category.points} points of 3")
        elif given and category:
            points[: category.points] = np.asarray(given, np.float32).reshape(-1, 3)
            points[:, :2] += np.where(points[:, 2:] > 0, _CENTRE, 0)
        self._builder.keypoints.frombytes(points.tobytes())


def with_images_there(source: AnnotatedFolder, file: str, complaints: Complaints, ignored: str) -> AnnotatedFolder:
    """The source with its notes, without the images that are not in its folder. Raises SourceError where there are
    such, unless they are skipped."""
    notes = complaints.notes(ignored)
    if source.folder.is_web:  # such servers list no folders; an image that is missing is a bad sample
        return source.without(frozenset(), tuple(notes))
    there = names_below(source.folder) or set()
    missing = [path for path in source.paths if path not in there]
    if missing:
        line = f"{len(missing):,} of {len(source.paths):,} images are not in {source.folder}: {first_names(missing)}"
        if complaints.on_error != "skip" or len(missing) == len(source.paths):
            raise SourceError(f"{file}: {line}")
        notes.append(f"{line}; they are left out")
    more = sorted(path for path in there.difference(source.paths) if is_image_name(path))
    if more:
        notes.append(f"{len(more):,} images that the annotations do not name are left out: {first_names(more)}")
    return source.without(frozenset(missing), tuple(notes))
