"""COCO's instances and key points: one JSON file for a folder of images, read, and written for a run's outputs.

The file is walked over entry by entry, so that only its text and the arrays made of it are in memory at once: Python
objects for all of it would take five times as much.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from variegate.errors import DecodeError, one_line
from variegate.formats.annotated import values as check
from variegate.formats.annotated.folders import AnnotatedFolder, names_below
from variegate.formats.annotated.frames import EXIF
from variegate.formats.annotated.objects import Faults, ObjectsBuilder, leave_out
from variegate.formats.annotated.outlines import fill_rings
from variegate.formats.annotated.shapes import Runs, decode_runs
from variegate.formats.annotated.values import shown_value
from variegate.formats.annotated.written import DIGITS, Content, Row, Rows, targets_in
from variegate.formats.base import SourceError, first_names
from variegate.formats.kinds import is_image_name
from variegate.formats.labels import checked_names
from variegate.formats.reading import is_file, parse_file, read_file
from variegate.io.location import Location

_FILE = check.AnnotationOption(None, "a path", check.is_path)
COCO_OPTIONS = {
    "file": _FILE,
    "mask": check.MASK,
    "unoutlined": check.UNOUTLINED,
    "ignored": check.FLAG,
    "exif": EXIF,
}
ACCEPTED = 'an object with the lists "images", "annotations" and "categories"'
LISTS = ("images", "annotations", "categories")
_SPACE = re.compile(r"[ \t\n\r]*")
_NEXT = re.compile(r"[ \t\n\r]*([,\]])[ \t\n\r]*")
# Key points are pixels by their indices; places in the frame, in which pixel i covers [i, i + 1), are half a pixel on.
_CENTRE = 0.5


def _read_text(file: Location) -> str:
    """Read a JSON file. Raises SourceError."""
    try:
        return str(read_file(file), "utf-8-sig")
    except DecodeError as error:
        raise SourceError(str(error)) from None
    except UnicodeDecodeError:
        raise SourceError(f"{file}: not UTF-8; accepted: JSON, {ACCEPTED}") from None


def entries_of(text: str, file: str) -> Iterator[tuple[str, Any]]:
    """(member, entry) of the three lists, in the file's order; (member, None) once for each list that is there. Raises
    SourceError for what is none of COCO's, JSONDecodeError for what is no JSON."""
    decode = json.JSONDecoder().raw_decode

    def skip(at: int) -> int:
        found = _SPACE.match(text, at)
        return found.end() if found else at

    def expect(at: int, accepted: str) -> str:
        if text[at : at + 1] not in tuple(accepted):
            raise json.JSONDecodeError(f"expected {' or '.join(accepted)}", text, at)
        return text[at]

    try:
        at = skip(0)
        if text[at : at + 1] != "{":
            raise SourceError(f"{file}: not COCO's; accepted: JSON, {ACCEPTED}")
        at = skip(at + 1)
        while text[at : at + 1] != "}":
            name, at = decode(text, at)
            expect(at := skip(at), ":")
            at = skip(at + 1)
            if name not in LISTS:
                _, at = decode(text, at)
            elif text[at : at + 1] != "[":
                raise SourceError(f"{file}: {name!r} is no list; accepted: {ACCEPTED}")
            else:
                yield name, None
                at = skip(at + 1)
                while text[at : at + 1] != "]":
                    entry, at = decode(text, at)
                    yield name, entry
                    if (found := _NEXT.match(text, at)) is None:
                        expect(skip(at), ",]")
                    else:
                        at = found.end() if found[1] == "," else found.start(1)
                at += 1
            at = skip(at)
            at = skip(at + 1) if expect(at, ",}") == "," else at
    except RecursionError:
        raise SourceError(f"{file}: nested too deeply; accepted: {ACCEPTED}") from None
    except ValueError as error:
        if isinstance(error, (json.JSONDecodeError, SourceError)):
            raise
        raise SourceError(f"{file}: no JSON: {error}") from None  # such as a number of 5,000 digits


def open_coco(
    folder: Location, annotations: Mapping[str, Any], on_error: str, classes: Sequence[str] | None
) -> AnnotatedFolder:
    """Images in the file's order. ``ignored``: objects with ``iscrowd`` are kept. Raises SourceError for what is no
    such file, for images that are missing, and for objects that are wrong, unless ``on_error`` is "skip"."""
    options = check.Options(COCO_OPTIONS, annotations)
    if classes is not None:
        raise SourceError("classes: COCO's files name their classes; leave it out")
    file = parse_file("annotations", options.of("file"))
    if not file.is_url:
        # As it is, or else from the folder on.
        found = next(filter(is_file, (file, folder.below(file.address()))), None)
        if found is None:
            raise SourceError(f"annotations: no file {file}, neither here nor in {folder}")
        file = found
    masks = check.MaskOptions.of(options)
    parsed = _Parsed(str(file), options.of("ignored"), Faults(on_error))
    try:
        for member, entry in entries_of(_read_text(file), str(file)):
            parsed.add(member, entry)
    except json.JSONDecodeError as error:
        raise SourceError(f"{file}: no JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    return parsed.source(folder, masks, options.of("exif"))


class _Category(NamedTuple):
    label: int
    points: int


class _Parsed:
    """The images, categories and objects that have been read so far."""

    def __init__(self, file: str, ignored: bool, faults: Faults) -> None:
        self._file = file
        self._ignored = ignored
        self._faults = faults
        self._members: set[str] = set()
        self._paths: list[str] = []
        self._sizes: list[tuple[int, int]] = []
        self._image_ids: dict[Any, int] = {}
        self._categories: dict[Any, _Category] = {}
        self._entries: list[dict[str, Any]] = []
        # Of each object, as images and categories may come later. (In lists: tuples keep the collector of cycles busy.)
        self._ids: list[Any] = []
        self._images_of: list[Any] = []
        self._categories_of: list[Any] = []
        self._points_of: list[list[float]] = []
        self._builder = ObjectsBuilder()
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
            what = f"no {error}" if isinstance(error, KeyError) else one_line(error)
            id = shown_value(entry.get("id") if isinstance(entry, dict) else entry)
            where = f"{self._file}: {member}, the entry with id {id}"
            if member != "annotations":
                raise SourceError(f"{where}: {what}") from None
            self._faults.add(where, what)

    def _add_image(self, entry: dict[str, Any]) -> None:
        path = str(entry["file_name"])
        parts = path.split("/")
        if path.startswith("/") or ".." in parts or not parts[-1]:
            raise check.refusal("file_name", path, "the path of a file below the folder")
        if entry["id"] in self._image_ids:
            raise ValueError("an id that another image has")
        height, width = (check.whole_of(side, entry.get(side) or 0, check.MOST_SIDE) for side in ("height", "width"))
        self._image_ids[entry["id"]] = len(self._paths)
        self._paths.append("/".join(part for part in parts if part != "."))
        self._sizes.append((height, width))

    def _add_category(self, entry: dict[str, Any]) -> None:
        if entry["id"] in self._categories:
            raise ValueError("an id that another category has")
        checked_names([str(entry["name"])])
        points = len(entry.get("keypoints") or ())
        if points > check.MOST_POINTS:
            raise ValueError(f"{points:,} key points; accepted: up to {check.MOST_POINTS:,}")
        self._categories[entry["id"]] = _Category(len(self._entries), points)
        self._entries.append(entry)

    def _add_object(self, entry: dict[str, Any]) -> None:
        is_crowd = check.flag_of("iscrowd", entry.get("iscrowd"))
        if is_crowd and not self._ignored:
            self._faults.ignored += 1
            return
        image = entry["image_id"]
        category = entry["category_id"]
        hash(image), hash(category)
        left, top, width, height = check.numbers_of("bbox", entry["bbox"], 4)
        points = check.numbers_of("keypoints", entry.get("keypoints") or ())
        shape = entry.get("segmentation")
        shapes = self._builder.shapes
        if isinstance(shape, dict):
            rows, columns = shape["size"]
            shapes.add_runs(rows, columns, shape["counts"])
        else:
            shapes.add_rings(shape or ())
        self._builder.boxes.extend((left, top, left + width, top + height))
        self._builder.ignored.append(is_crowd)
        self._ids.append(entry.get("id"))
        self._images_of.append(image)
        self._categories_of.append(category)
        self._points_of.append(points)

    def source(self, folder: Location, masks: check.MaskOptions, exif: str | None) -> AnnotatedFolder:
        """Without the images that are not in the folder. Raises SourceError as ``open_coco`` says."""
        if missing := [name for name in LISTS if name not in self._members]:
            raise SourceError(f"{self._file}: no {missing[0]!r} in it; accepted: {ACCEPTED}")
        if not self._paths:
            raise SourceError(f"{self._file}: names no images")
        self._resolve()
        # Web servers list no folders; an image that is missing is then a bad sample.
        there = None if folder.is_web else names_below(folder) or set()
        sizes = np.array(self._sizes, np.int32).reshape(-1, 2)
        paths = self._paths
        objects = self._builder.done(sizes, self._faults, self._where)
        notes = self._faults.notes("crowd (iscrowd)")
        if there is not None:
            gone = [path for path in paths if path not in there]
            notes += leave_out(gone, len(paths), f"are not in {folder}", self._faults.on_error, self._file)
            if more := sorted(path for path in there.difference(paths) if is_image_name(path)):
                notes.append(f"{len(more):,} images that the annotations do not name are skipped: {first_names(more)}")
            if gone:
                objects = objects.of_images(np.array([path in there for path in paths], np.bool_))
                paths = [path for path in paths if path in there]
        names = tuple(str(entry["name"]) for entry in self._entries)
        notes += objects.notes_on_masks(masks, len(names))
        about = {"format": "coco", "categories": self._entries}
        return AnnotatedFolder(
            folder, names, tuple(paths), tuple(notes), about, exif, objects=objects, **masks._asdict()
        )

    def _where(self, k: int) -> str:
        name = self._paths[self._image_ids[self._images_of[k]]]
        return f"{self._file}: annotation {shown_value(self._ids[k])} of {name}"

    def _resolve(self) -> None:
        """Ids to places; objects of unknown images and categories become objects of no area, which are left out."""
        builder = self._builder
        builder.points = max((category.points for category in self._categories.values()), default=0)
        for k, (image, id) in enumerate(zip(self._images_of, self._categories_of, strict=True)):
            index = self._image_ids.get(image)
            category = self._categories.get(id)
            if index is None:
                self._leave_out(k, f"image_id {shown_value(image)}, which no image has")
            elif category is None:
                self._leave_out(k, f"category_id {shown_value(id)}, which no category has")
            builder.images.append(index or 0)
            builder.labels.append(category.label if category else 0)
            if not builder.points:
                continue
            numbers = self._points_of[k]
            points = np.zeros((builder.points, 3), np.float32)
            if any(numbers) and category and index is not None:  # zeros alone are how some write that there are none
                if len(numbers) == 3 * category.points:
                    points[: category.points] = np.asarray(numbers, np.float32).reshape(-1, 3)
                    points[:, :2] += np.where(points[:, 2:] > 0, _CENTRE, 0)
                else:
                    wanted = f"its category has {category.points} points of 3"
                    self._leave_out(k, f"{len(numbers)} numbers of key points; {wanted}")
            builder.keypoints.frombytes(points.tobytes())

    def _leave_out(self, k: int, what: str) -> None:
        self._faults.add(f"{self._file}: annotation {shown_value(self._ids[k])}", what)
        self._faults.flat -= 1  # it is counted as wrong
        self._builder.boxes[4 * k : 4 * k + 4] = type(self._builder.boxes)("d", (0.0,) * 4)


_compact = json.JSONEncoder(separators=(",", ":")).encode
# Of the user's categories: the settings of a run, of which this is made again, keep no order of keys.
_sorted = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def coco_files(about: Mapping[str, Any], classes: list[str], rows: Rows) -> Iterator[tuple[str, Content]]:
    """``annotations.json``, an entry a line, beside the folder ``images``. ``about``: an ``AnnotatedFolder``'s, with
    ``categories``."""
    yield "annotations.json", _pieces(about["categories"], rows)


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
    """Ids of entries without one count from 1."""
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
            points[:, :2] = np.where(is_there, np.round(points[:, :2] - _CENTRE, DIGITS), 0.0)
            entry["keypoints"] = [number for x, y, seen in points.tolist() for number in (x, y, int(seen))]
            entry["num_keypoints"] = int(is_there.sum())
        yield entry


def _segmentation(outline: Any, size: tuple[int, int]) -> tuple[Any, int]:
    """With the number of its pixels."""
    if isinstance(outline, str):
        mask = decode_runs(Runs(*size, outline.encode()), *size)
        return {"size": list(size), "counts": outline}, int(mask.sum())
    mask = np.zeros(size, np.bool_)
    if rings := [np.reshape(ring, (-1, 2)) for ring in outline or ()]:
        fill_rings(mask, np.concatenate(rings), np.cumsum([len(ring) for ring in rings]))
    return outline or [], int(mask.sum())
