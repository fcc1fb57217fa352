"""YOLO's text files: ``images/`` and ``labels/`` with the same names below them, and the classes in ``data.yaml``.

A row is ``class x y width height`` (the centre; parts of the image's width and height), ``class x1 y1 x2 y2 ...`` with
three points or more of an outline, or, where ``data.yaml`` has ``kpt_shape``, a box with its key points behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from variegate.data.decode import read_bytes
from variegate.data.sources.annotated.listing import images_by_stem
from variegate.data.sources.annotated.objects import Complaints, ObjectsBuilder
from variegate.data.sources.annotated.source import AnnotatedFolder
from variegate.data.sources.base import SourceError
from variegate.data.sources.labels import check_classes
from variegate.errors import DecodeError
from variegate.outside.location import Location

_THREADS = 8
_VISIBLE = 2.0


class About(NamedTuple):
    """What data.yaml says."""

    classes: tuple[str, ...] = ()
    keypoints: tuple[int, int] | None = None


def open_yolo(
    folder: Location,
    split: str | None,
    mask: str | None,
    keypoints: Sequence[int] | None,
    on_error: str,
    classes: Sequence[str] | None,
) -> AnnotatedFolder:
    """Images in the order of their names. ``split``: the folder below ``images`` and ``labels``, such as "train"; None:
    all. ``keypoints``, ``classes``: before what data.yaml says."""
    root = Path(folder.address())
    said = _about(root / "data.yaml")
    names = check_classes(classes) or said.classes
    points = said.keypoints if keypoints is None else (keypoints[0], keypoints[1])
    images = images_by_stem(root, f"images/{split}" if split else "images")
    labels = root / "labels" / (split or "")
    if not labels.is_dir():
        raise SourceError(f"{root}: no folder labels{f'/{split}' if split else ''} in it")
    texts = [labels / f"{stem}.txt" for stem in images]
    with ThreadPoolExecutor(_THREADS, "variegate-annotations") as pool:
        every = list(pool.map(_read, texts))
    complaints, wheres = Complaints(on_error), []
    builder = ObjectsBuilder(points=points[0] if points else 0)
    most = -1
    for index, (file, text) in enumerate(zip(texts, every, strict=True)):
        if isinstance(text, DecodeError):
            complaints.add(str(file), text.reason)
            continue
        for number, line in enumerate(text.splitlines(), 1):
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
    sizes = np.zeros((len(images), 2), np.int32)
    objects = builder.done(sizes, complaints, wheres.__getitem__, is_normalised=True)
    without = sum(text == "" and not file.exists() for file, text in zip(texts, every, strict=True))
    notes = complaints.notes("")
    if without:
        notes.append(f"{without:,} images have no file in labels, and so no objects")
    names = names or tuple(map(str, range(most + 1)))
    about = {"format": "yolo", "split": split, "kpt_shape": None if points is None else list(points)}
    return AnnotatedFolder(folder, names, tuple(images.values()), objects, mask, tuple(notes), about)


def add_row(builder: ObjectsBuilder, line: str, names: Sequence[str], points: tuple[int, int] | None) -> int:
    """A row -> its class. Raises ValueError, with nothing added."""
    words = line.split()
    try:
        numbers = [float(word) for word in words[1:]]
        label = float(words[0])
    except ValueError:
        raise ValueError(f"got {_shown(line)!r}; accepted: numbers") from None
    if not (label.is_integer() and label >= 0) or (names and label >= len(names)):
        most = f"0 to {len(names) - 1}" if names else "whole numbers from 0 on"
        raise ValueError(f"got the class {words[0]}; accepted: {most}")
    rings: list[list[float]] = []
    rest: list[float] = []
    if points is not None and len(numbers) == 4 + points[0] * points[1]:
        box, rest = _edges(numbers[:4]), numbers[4:]
    elif points is None and len(numbers) == 4:
        box = _edges(numbers)
    elif points is None and len(numbers) >= 6 and len(numbers) % 2 == 0:
        xs, ys = numbers[0::2], numbers[1::2]
        box, rings = (min(xs), min(ys), max(xs), max(ys)), [numbers]
        if not np.isfinite(numbers).all():
            raise ValueError(f"got {_shown(line)!r}; accepted: finite numbers")
    else:
        wanted = "4 for a box, or an even count from 6 on for an outline"
        if points is not None:
            wanted = f"{4 + points[0] * points[1]}, for a box and {points[0]} key points of {points[1]}"
        raise ValueError(f"{len(numbers)} numbers behind the class; accepted: {wanted}")
    builder.boxes.extend(box)
    builder.labels.append(int(label))
    builder.shapes.add_rings(rings)
    if points is not None:
        found = np.full((points[0], 3), _VISIBLE, np.float32)
        found[:, : points[1]] = np.reshape(rest, points)
        if points[1] == 2:  # (0, 0) stands for a point that is not there
            found[(found[:, :2] == 0).all(1), 2] = 0
        builder.keypoints.frombytes(found.tobytes())
    return int(label)


def check_points(points: Any, option: str) -> tuple[int, int] | None:
    """What a user says of the key points of rows. Raises SourceError."""
    if points is None:
        return None
    is_pair = isinstance(points, (list, tuple)) and len(points) == 2 and all(type(one) is int for one in points)
    if not is_pair or points[0] < 1 or points[1] not in (2, 3):
        raise SourceError(f"annotations: {option}: got {points!r}; accepted: [number of points, 2 or 3], as kpt_shape")
    return points[0], points[1]


def _edges(numbers: Sequence[float]) -> tuple[float, float, float, float]:
    x, y, width, height = numbers
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _shown(line: str) -> str:
    return line if len(line) <= 60 else line[:57] + "..."


def _read(path: Path) -> str | DecodeError:
    """Images without a file have no objects."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except DecodeError as error:
        return "" if not path.exists() else error
    except UnicodeDecodeError:
        return DecodeError(str(path), "not UTF-8; accepted: a text file")


def _about(path: Path) -> About:
    """Nothing where there is no such file. Raises SourceError for what is none."""
    if not path.exists():
        return About()
    try:
        found: Any = yaml.safe_load(read_bytes(path))
    except DecodeError as error:
        raise SourceError(str(error)) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"{path}: no YAML: {' '.join(str(error).split())}") from None
    names = found.get("names") if isinstance(found, dict) else None
    if isinstance(names, dict) and sorted(names, key=str) == sorted(range(len(names)), key=str):
        names = [names[label] for label in range(len(names))]
    if not isinstance(names, list) or not names:
        raise SourceError(f"{path}: names: got {names!r}; accepted: a list of the classes, or a dict from 0 on")
    shape = found.get("kpt_shape")
    if shape is None:
        return About(tuple(map(str, names)))
    is_shape = isinstance(shape, list) and len(shape) == 2 and all(type(one) is int for one in shape)
    if not is_shape or shape[0] < 1 or shape[1] not in (2, 3):
        raise SourceError(f"{path}: kpt_shape: got {shape!r}; accepted: [number of points, 2 or 3]")
    return About(tuple(map(str, names)), (shape[0], shape[1]))
