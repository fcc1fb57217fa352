"""YOLO's text files: ``images/`` and ``labels/`` with the same names below them, and the classes in ``data.yaml``
(yolo_data.py).

A row is ``class x y width height`` (the centre; parts of the image's width and height), ``class x1 y1 x2 y2 ...`` with
three points or more of an outline, or, where ``data.yaml`` has ``kpt_shape``, a box with its key points behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from variegate.errors import DecodeError
from variegate.formats.annotated.listing import names_below, place_in, read_each
from variegate.formats.annotated.objects import Complaints, ObjectsBuilder
from variegate.formats.annotated.source import AnnotatedFolder
from variegate.formats.annotated.values import FINITE, numbers_of, shown_value, whole_of
from variegate.formats.annotated.yolo_data import label_folder, list_images, read_data_yaml
from variegate.formats.base import SourceError
from variegate.formats.labels import check_classes
from variegate.formats.reading import read_file
from variegate.io.location import Location

_VISIBLE = 2.0
# Where nothing names them: all from 0 to the highest are made.
_MOST_CLASS = 99_999


def open_yolo(
    folder: Location,
    split: str | None,
    mask: str | None,
    keypoints: Sequence[int] | None,
    on_error: str,
    classes: Sequence[str] | None,
) -> AnnotatedFolder:
    """Images in the order of their names, or of the files that list them. ``split``: by ``data.yaml``, or the folder
    below ``images`` and ``labels``, such as "train"; None: all. ``keypoints``, ``classes``: before what data.yaml says.
    Raises SourceError."""
    said = read_data_yaml(folder)
    names = check_classes(classes) or said.classes
    points = said.keypoints if keypoints is None else (keypoints[0], keypoints[1])
    listed = list_images(folder, said, split, on_error)
    files = list(listed.images)
    every = read_each(folder, files, _read)
    without = every.count(None)
    if without == len(files):
        labels = [label_folder(one) for one in listed.folders]
        if all(names_below(place_in(folder, one)) is None for one in labels):
            raise SourceError(f"{folder}: no folder {labels[0]} in it")
    complaints, wheres = Complaints(on_error), []
    builder = ObjectsBuilder(points=points[0] if points else 0)
    most = -1
    for index, (name, text) in enumerate(zip(files, every, strict=True)):
        file = folder.child(name)
        if isinstance(text, DecodeError):
            complaints.add(str(file), text.reason)
            continue
        for number, line in enumerate((text or "").splitlines(), 1):
            if not line.strip():
                continue
            where = f"{file}, line {number}"
            try:
                label = add_row(builder, line, names, points)
            except ValueError as error:
                complaints.add(where, str(error))
                continue
            builder.images.append(index)
            wheres.append(where)
            most = max(most, label)
    sizes = np.zeros((len(files), 2), np.int32)
    objects = builder.done(sizes, complaints, wheres.__getitem__, is_normalised=True)
    notes = [*listed.notes, *complaints.notes("")]
    if without:
        notes.append(f"{without:,} images have no file in labels, and so no objects")
    names = names or tuple(map(str, range(most + 1)))
    shape = None if points is None else list(points)
    about = {"format": "yolo", "folders": list(listed.folders), "kpt_shape": shape}
    return AnnotatedFolder(folder, names, tuple(listed.images.values()), objects, mask, tuple(notes), about)


def add_row(builder: ObjectsBuilder, line: str, names: Sequence[str], points: tuple[int, int] | None) -> int:
    """A row -> its class. Raises ValueError, with nothing added."""
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
    return label


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
