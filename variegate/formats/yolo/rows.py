"""YOLO's text files: ``images/`` and ``labels/`` with the same names below them, and the classes in ``data.yaml``
(yolo_data.py).

A row is ``class x y width height`` (the centre; parts of the image's width and height), ``class x1 y1 x2 y2 ...`` with
three points or more of an outline, or, where ``data.yaml`` has ``kpt_shape``, a box with its key points behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from variegate.errors import DecodeError
from variegate.formats.annotated.folders import AnnotatedFolder, names_below, place_in, read_each
from variegate.formats.annotated.objects import Complaints, ObjectsBuilder
from variegate.formats.annotated.values import (
    FINITE,
    MASK,
    POINTS,
    SPLIT,
    GivenOptions,
    numbers_of,
    shown_value,
    whole_of,
)
from variegate.formats.annotated.written import Content, Row, Rows, targets_in
from variegate.formats.base import SourceError
from variegate.formats.labels import check_classes
from variegate.formats.reading import read_file
from variegate.formats.yolo.data import label_file, label_folder, list_images, read_data_yaml
from variegate.io.location import Location

YOLO_OPTIONS = {"split": SPLIT, "mask": MASK, "keypoints": POINTS}
_VISIBLE = 2.0
# Where nothing names them: all from 0 to the highest are made.
_MOST_CLASS = 99_999


def open_yolo(folder: Location, options: GivenOptions, opening: Mapping[str, Any]) -> AnnotatedFolder:
    """Images in the order of their names, or of the files that list them. ``split``: by ``data.yaml``, or the folder
    below ``images`` and ``labels``, such as "train"; None: all. ``keypoints``, ``classes``: before what data.yaml says.
    Raises SourceError."""
    split, mask, keypoints = (options.of(name) for name in ("split", "mask", "keypoints"))
    on_error = opening["on_error"]
    data = read_data_yaml(folder)
    names = check_classes(opening["classes"]) or data.classes
    points = data.keypoints if keypoints is None else (keypoints[0], keypoints[1])
    listed = list_images(folder, data, split, on_error)
    files = list(listed.images)
    every = read_each(folder, files, _read)
    without = every.count(None)
    if without == len(files):
        labels = [label_folder(one) for one in listed.folders]
        if all(names_below(place_in(folder, one)) is None for one in labels):
            raise SourceError(f"{folder}: no folder {labels[0]} in it")
    complaints, wheres = Complaints(on_error), []
    builder = ObjectsBuilder(points=points[0] if points else 0)
    for index, (name, text) in enumerate(zip(files, every, strict=True)):
        file = str(folder.child(name))
        if isinstance(text, DecodeError):
            complaints.add(file, text.reason)
        else:
            wheres += add_rows(builder, text or "", names, points, index, f"{file}, ", complaints.add)
    sizes = np.zeros((len(files), 2), np.int32)
    objects = builder.done(sizes, complaints, wheres.__getitem__, is_normalised=True)
    notes = [*listed.notes, *complaints.notes("")]
    if without:
        notes.append(f"{without:,} images have no file in labels, and so no objects")
    names = names or tuple(map(str, range(max(builder.labels, default=-1) + 1)))
    shape = None if points is None else list(points)
    about = {"format": "yolo", "folders": list(listed.folders), "kpt_shape": shape}
    paths = tuple(listed.images.values())
    return AnnotatedFolder(folder, names, paths, objects, mask, tuple(notes), about, without)


def add_rows(
    builder: ObjectsBuilder,
    text: str,
    names: Sequence[str],
    points: tuple[int, int] | None,
    image: int,
    where: str,
    complain: Callable[[str, str], object],
) -> list[str]:
    """Rows of an image's text -> where those that are right stand, ``where`` and the line. ``complain``: is called with
    where the others stand, and what is wrong with them."""
    added = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                add_row(builder, line, names, points)
            except ValueError as error:
                complain(f"{where}line {number}", str(error))
                continue
            builder.images.append(image)
            added.append(f"{where}line {number}")
    return added


def add_row(builder: ObjectsBuilder, line: str, names: Sequence[str], points: tuple[int, int] | None) -> None:
    """Raises ValueError, with nothing added."""
    words = line.split()
    try:
        numbers = numbers_of("the row", words[1:])
    except ValueError:
        raise ValueError(f"got {shown_value(line)}; accepted: {FINITE}") from None
    label = whole_of("the class", words[0], len(names) - 1 if names else _MOST_CLASS)
    rings: list[list[float]] = []
    rest: list[float] = []
    if points is not None and len(numbers) == 4 + points[0] * points[1]:
        box, rest = _edges(numbers[:4]), numbers[4:]
    elif points is None and len(numbers) == 4:
        box = _edges(numbers)
    elif points is None and len(numbers) >= 6 and len(numbers) % 2 == 0:
        xs, ys = numbers[0::2], numbers[1::2]
        box, rings = (min(xs), min(ys), max(xs), max(ys)), [numbers]
    else:
        wanted = "4 for a box, or an even count from 6 on for an outline"
        if points is not None:
            wanted = f"{4 + points[0] * points[1]}, for a box and {points[0]} key points of {points[1]}"
        raise ValueError(f"{len(numbers)} numbers behind the class; accepted: {wanted}")
    builder.shapes.add_rings(rings)
    builder.boxes.extend(box)
    builder.labels.append(label)
    if points is not None:
        found = np.full((points[0], 3), _VISIBLE, np.float32)
        found[:, : points[1]] = np.reshape(rest, points)
        if points[1] == 2:  # (0, 0) stands for a point that is not there
            found[(found[:, :2] == 0).all(1), 2] = 0
        builder.keypoints.frombytes(found.tobytes())


def _edges(numbers: Sequence[float]) -> tuple[float, float, float, float]:
    x, y, width, height = numbers
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _read(place: Location) -> str | DecodeError:
    try:
        return read_file(place).decode("utf-8-sig")
    except DecodeError as error:
        return error
    except UnicodeDecodeError:
        return DecodeError(str(place), "not UTF-8; accepted: a text file")


_VAL = "# val: the folder of the images to validate with, which are best left as they are\n"


def yolo_files(about: Mapping[str, Any], classes: list[str], rows: Rows) -> Iterator[tuple[str, Content]]:
    """``about``: with ``folders`` of images and ``kpt_shape``."""
    folders, shape = about["folders"], about["kpt_shape"]
    known: dict[str, Any] = {"train": folders[0] if len(folders) == 1 else folders, "names": dict(enumerate(classes))}
    known |= {"kpt_shape": shape} if shape else {}
    text = yaml.safe_dump(known, sort_keys=False, allow_unicode=True)
    yield "data.yaml", (text + _VAL).encode()
    for _, row in rows():
        yield label_file(row["file"]), yolo_rows(row, targets_in(row), shape[1] if shape else 0).encode()


def yolo_rows(row: Row, found: Mapping[str, Any], columns: int) -> str:
    """A line for each object. ``row``: with the image's ``height`` and ``width``; ``columns``: of a key point; 0 where
    there are none."""
    scale = np.array([row["width"], row["height"]], np.float64)
    lines = []
    for k, (box, label) in enumerate(zip(found["boxes"], found["labels"], strict=True)):
        outline = found["outlines"][k] if "outlines" in found and not columns else None
        if outline:
            numbers = (np.reshape(outline[0], (-1, 2)) / scale).ravel().tolist()
        else:
            first, last = np.array(box[:2]) / scale, np.array(box[2:]) / scale
            numbers = [*((first + last) / 2).tolist(), *(last - first).tolist()]
        words = [f"{number:.6f}" for number in numbers]
        if columns:
            words += _points(np.reshape(found["keypoints"][k], (-1, 3)), scale, columns)
        lines.append(" ".join([str(label), *words]) + "\n")
    return "".join(lines)


def _points(points: Any, scale: Any, columns: int) -> list[str]:
    """Points that are not there are at (0, 0), which is all that says so where there is no visibility."""
    words = []
    for x, y, visibility in points.tolist():
        place = np.array([x, y]) / scale if visibility > 0 else np.zeros(2)
        words += [f"{place[0]:.6f}", f"{place[1]:.6f}"]
        words += [str(int(visibility))] if columns == 3 else []
    return words
