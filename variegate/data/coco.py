"""COCO's instances and key points: one JSON file for a folder of images, read, and written for a run's outputs."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from variegate.data.annotated.folders import annotated_folder, names_below, read_text
from variegate.data.annotated.objects import (
    ROW_ERRORS,
    AnnotationErrors,
    ObjectRow,
    objects_from_rows,
    reason_of,
    skip_missing,
)
from variegate.data.annotated.options import check_options
from variegate.data.annotated.outlines import masks_of
from variegate.data.annotated.shapes import Rings, Shape, pack_shapes, rings_of, runs_in
from variegate.data.annotated.values import (
    MOST_POINTS,
    MOST_SIDE,
    flag_of,
    numbers_of,
    refusal,
    shown_value,
    whole_of,
)
from variegate.data.annotated.written import DIGITS, Content, Row, Rows, targets_in
from variegate.data.base import SourceError, first_names
from variegate.data.kinds import is_image_name
from variegate.data.labels import checked_names
from variegate.data.reading import is_file, parse_file
from variegate.data.samples import Samples
from variegate.io.location import Location

Entry = dict[str, Any]
ACCEPTED = 'an object with the lists "images", "annotations" and "categories"'
LISTS = ("images", "annotations", "categories")
# Key points are pixels by their indices; in the frame of the boxes pixel i covers [i, i + 1): half a pixel further.
_CENTER = 0.5


class _Image(NamedTuple):
    number: int
    path: str
    size: tuple[int, int]


class _Category(NamedTuple):
    label: int
    num_points: int


@contextmanager
def _paused_collector() -> Iterator[None]:
    """Do not look for cycles among the millions of lists of a JSON file: that takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_paused_collector()
def open_coco(
    folder: Location, annotations: Mapping[str, Any], on_error: str, classes: Sequence[str] | None
) -> Samples:
    """Images in the file's order. ``ignored``: objects with ``iscrowd`` are kept. Raises SourceError for other files,
    for images that are missing, and for invalid objects, unless ``on_error`` is "skip"."""
    options = check_options("coco", annotations)
    if classes is not None:
        raise SourceError("classes: COCO's files name their classes; leave it out")
    file = _find(folder, options["file"])
    entries = _read_lists(file)
    images = _by_id(file, entries, "images", _read_image)
    categories = _by_id(file, entries, "categories", _read_category)
    if not images:
        raise SourceError(f"{file}: names no images")

    def name_of(entry: Any) -> str:
        image_id = entry.get("image_id") if isinstance(entry, dict) else None
        image = images.get(image_id) if isinstance(image_id, Hashable) else None
        return f"{file}: annotation {_id_of(entry)}" + (f" of {image.path}" if image else "")

    num_points = max((category.num_points for category in categories.values()), default=0)
    errors = AnnotationErrors(on_error)
    objects = objects_from_rows(
        ((entry, entry) for entry in entries["annotations"]),
        partial(_read_object, images, categories, num_points, options["ignored"]),
        np.array([image.size for image in images.values()], np.int32),
        errors,
        name_of=name_of,
        box_format="xywh",
        num_points=num_points,
    )
    paths = [image.path for image in images.values()]
    notes = []
    # Web servers list no folders; an image that is missing is then a bad sample.
    if not folder.is_web:
        existing = names_below(folder) or set()
        missing = [path for path in paths if path not in existing]
        notes += skip_missing(missing, len(paths), f"are not in {folder}", on_error, str(file))
        if more := sorted(path for path in existing.difference(paths) if is_image_name(path)):
            notes.append(f"{len(more):,} images that the annotations do not name are skipped: {first_names(more)}")
        objects = objects.of_images(np.array([path in existing for path in paths], np.bool_))
        paths = [path for path in paths if path in existing]
    names = [str(entry["name"]) for entry in entries["categories"]]
    about = {"format": "coco", "categories": entries["categories"]}
    return annotated_folder(
        folder, names, paths, objects, errors, about, options, remarks=notes, ignored="crowd (iscrowd)"
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


def _read_lists(file: Location) -> dict[str, list[Any]]:
    """The three lists of a JSON file. Raises SourceError."""
    text = read_text(file)
    try:
        found = json.loads(text, object_hook=_pack_outline)
    except RecursionError:
        raise SourceError(f"{file}: nested too deeply; accepted: {ACCEPTED}") from None
    except ValueError as error:  # a JSONDecodeError, or a number of 5,000 digits
        raise SourceError(f"{file}: no JSON: {error}") from None
    if not isinstance(found, dict):
        raise SourceError(f"{file}: not COCO's; accepted: JSON, {ACCEPTED}")
    for name in LISTS:
        if name not in found:
            raise SourceError(f"{file}: no {name!r} in it; accepted: {ACCEPTED}")
        if not isinstance(found[name], list):
            raise SourceError(f"{file}: {name!r} is no list; accepted: {ACCEPTED}")
    return {name: found[name] for name in LISTS}


def _pack_outline(entry: Entry) -> Entry:
    """Pack the polygons of an object as soon as it is parsed: as lists of numbers they take eight times as much
    memory. Invalid ones stay, and are an error when their row is made."""
    if "image_id" in entry and isinstance(entry.get("segmentation"), list):
        with suppress(TypeError, ValueError, OverflowError):
            entry["segmentation"] = rings_of(entry["segmentation"])
    return entry


def _by_id(
    file: Location, entries: dict[str, list[Any]], member: str, read: Callable[[int, Entry], Any]
) -> dict[Any, Any]:
    """Map the id of each entry of a list to what ``read`` makes of its index and the entry. Raises SourceError."""
    found: dict[Any, Any] = {}
    for index, entry in enumerate(entries[member]):
        try:
            _check_entry(entry)
            if entry["id"] in found:
                raise ValueError("an id that another entry has")
            found[entry["id"]] = read(index, entry)
        except ROW_ERRORS as error:
            where = f"{file}: {member}, the entry with id {_id_of(entry)}"
            raise SourceError(f"{where}: {reason_of(error)}") from None
    return found


def _check_entry(entry: Any) -> None:
    if not isinstance(entry, dict):
        raise TypeError(f"is {shown_value(entry)}; accepted: an object")


def _id_of(entry: Any) -> str:
    return shown_value(entry.get("id") if isinstance(entry, dict) else entry)


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


def _read_object(
    images: dict[Any, _Image],
    categories: dict[Any, _Category],
    num_points: int,
    keeps_ignored: bool,
    _: Any,
    entry: Any,
) -> ObjectRow | None:
    _check_entry(entry)
    is_crowd = flag_of("iscrowd", entry.get("iscrowd"))
    if is_crowd and not keeps_ignored:
        return None
    image = images.get(entry["image_id"])
    if image is None:
        raise ValueError(f"image_id {shown_value(entry['image_id'])}, which no image has")
    category = categories.get(entry["category_id"])
    if category is None:
        raise ValueError(f"category_id {shown_value(entry['category_id'])}, which no category has")
    box = numbers_of("bbox", entry["bbox"], 4)
    numbers = numbers_of("keypoints", entry.get("keypoints") or ())
    points = None
    if num_points and any(numbers):  # zeros alone are how some write that there are none
        if len(numbers) != 3 * category.num_points:
            wanted = f"its category has {category.num_points} points of 3"
            raise ValueError(f"{len(numbers)} numbers of key points; {wanted}")
        points = np.array(numbers, np.float32).reshape(-1, 3)
        points[:, :2] += np.where(points[:, 2:] > 0, _CENTER, 0)
    shape = _shape_of(entry.pop("segmentation", None))  # taken out of the entry, to free it
    return ObjectRow(image.number, category.label, box, points, shape, is_crowd)


def _shape_of(segmentation: Any) -> Shape:
    if isinstance(segmentation, Rings):
        return segmentation
    return runs_in(segmentation) if isinstance(segmentation, dict) else rings_of(segmentation or ())


_compact = json.JSONEncoder(separators=(",", ":")).encode
# Of the user's categories: the settings of a run, of which this is made again, keep no order of keys.
_sorted = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def coco_files(about: Mapping[str, Any], classes: Sequence[str], rows: Rows) -> Iterator[tuple[str, Content]]:
    """``annotations.json``, an entry a line, beside the folder ``images``. ``about``: that of Samples, with
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
            points[:, :2] = np.where(is_there, np.round(points[:, :2] - _CENTER, DIGITS), 0.0)
            entry["keypoints"] = [number for x, y, seen in points.tolist() for number in (x, y, int(seen))]
            entry["num_keypoints"] = int(is_there.sum())
        yield entry


def _segmentation(outline: Any, size: tuple[int, int]) -> tuple[Any, int]:
    """An outline as COCO has it, and the number of its pixels."""
    segmentation = {"size": list(size), "counts": outline} if isinstance(outline, str) else outline or []
    masks, _ = masks_of(pack_shapes([_shape_of(segmentation)]), range(1), size, (1.0, 1.0))
    return segmentation, int(masks.sum())
