"""YOLO's text files: ``images/`` and ``labels/`` with the same names below them, and the classes in ``data.yaml``.

A row is ``class x y width height`` (the center; fractions of the image's width and height), or ``class x1 y1 x2 y2
...`` with three points or more of an outline. If ``data.yaml`` has ``kpt_shape``, it is a box followed by its key
points.

``train``, ``val`` and ``test`` in ``data.yaml`` are each a folder of images, a text file with an image per line, or a
list of such entries. They are relative to ``path``, which is itself relative to the file. The path of a label file
replaces the last ``images`` in the image's path by ``labels``; without ``images`` it is next to the image. These are
Ultralytics' rules. Roboflow's files name ``../train/images`` for folders next to the file, which are read.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import yaml

from variegate.data.annotated import folders
from variegate.data.annotated.manifest_targets import Content, Row, Rows, targets_in
from variegate.data.annotated.objects import (
    AnnotationErrors,
    ObjectRow,
    Objects,
    number_entries,
    objects_from_rows,
    skip_missing,
    split_key,
)
from variegate.data.annotated.options import POINTS, check_options, is_name
from variegate.data.annotated.outlines import rings_of
from variegate.data.annotated.values import FINITE, numbers_of, shown_value, whole_of
from variegate.data.base import SourceError
from variegate.data.labels import check_classes
from variegate.data.reading import is_file, read_file
from variegate.data.samples import Samples
from variegate.errors import DecodeError, one_line, short_repr
from variegate.io.amounts import pluralize
from variegate.io.location import Location
from variegate.io.yaml_text import read_yaml
from variegate.targets.box_formats import from_edges

FILE = "data.yaml"
_SPLITS = ("train", "val", "test")
_MOST_BYTES = 1 << 20
_VISIBLE = 2.0
# Of a class without a name: names are made for all classes up to the highest.
_MOST_CLASS = 99_999
# Objects may reach beyond their image, but not this far: such numbers are pixels.
_MOST_FRACTION = 2.0
_FRACTIONS = "fractions of the image's width and height, 0 to 1"


def open_yolo(
    folder: Location, annotations: Mapping[str, Any], on_error: str, classes: Sequence[str] | None
) -> Samples:
    """Images in the order of their names, or of the files that list them. ``split``: by ``data.yaml``, or the folder
    below ``images`` and ``labels``, such as "train"; None: all. ``keypoints``, ``classes``: override data.yaml. Raises
    SourceError."""
    options = check_options("yolo", annotations)
    split = options["split"]
    data = _read_data_yaml(folder)
    notes: list[str] = []
    listed, above = _list_images(folder, data, split, on_error, notes)
    images = {label_file(image): image for image in listed}
    files = list(images)
    texts = folders.read_each(folder, files, lambda place: folders.text_of(read_file(place), str(place)))
    without = texts.count(None)
    if without == len(files):
        labels = [posixpath.dirname(label_file(f"{path}/0")) for path in above]
        if all(folders.names_below(folder.below(path)) is None for path in labels):
            raise SourceError(f"{folder}: no folder {labels[0]} in it")

    def name_of(key: int) -> str:
        image, line = split_key(key)
        return str(folder.child(files[image])) + (f", line {line}" if line else "")

    errors = AnnotationErrors(on_error)
    names = check_classes(classes) or data.classes
    points = options["keypoints"] or data.keypoints
    objects = objects_of_texts(texts, names, points, errors, name_of)
    if without:
        notes.append(f"{pluralize(without, 'image')} without a file in labels, and so without objects")
    names = names or tuple(map(str, range(objects.labels.max(initial=-1) + 1)))
    metadata: dict[str, Any] = {"format": "yolo", "folders": above, "kpt_shape": points and list(points)}
    if split is None and (splits := _folders_of_splits(folder, data, images.values())):
        metadata["splits"] = splits
    paths = list(images.values())
    return folders.annotated_folder(
        folder, names, paths, objects, errors, metadata, options, remarks=notes, noted=without
    )


def objects_of_texts(
    texts: Sequence[str | ValueError | None],
    names: Sequence[str],
    points: Sequence[int] | None,
    errors: AnnotationErrors,
    name_of: Callable[[int], str],
) -> Objects:
    """The objects of images by the rows of their label files, None for no file. ``points``: as ``kpt_shape``;
    ``name_of``: a line in words, by its key (``split_key``: the number is 0 for the file)."""
    return objects_from_rows(
        number_entries(list(map(str.strip, text.splitlines())) if isinstance(text, str) else text for text in texts),
        partial(_read_row, names, points),
        np.zeros((len(texts), 2), np.int32),
        errors,
        name_of=name_of,
        num_points=points[0] if points else 0,
        is_normalized=True,
    )


def _read_row(names: Sequence[str], points: Sequence[int] | None, key: int, line: str) -> ObjectRow | None:
    image, _ = split_key(key)
    words = line.split()
    try:
        numbers = numbers_of("the row", words[1:])
    except ValueError:
        raise ValueError(f"got {shown_value(line)}; accepted: {FINITE}") from None
    label = whole_of("the class", words[0], len(names) - 1 if names else _MOST_CLASS)
    count, columns = points or (0, 2)
    rest = np.reshape(numbers[4:], (count, columns)) if len(numbers) == 4 + count * columns else None
    if points is None and len(numbers) >= 6 and len(numbers) % 2 == 0:
        xs = numbers[0::2]
        ys = numbers[1::2]
        _check_fractions(line, numbers)
        return ObjectRow(image, label, (min(xs), min(ys), max(xs), max(ys)), shape=rings_of([numbers]))
    if rest is None:
        wanted = "4 for a box, or an even count from 6 on for an outline"
        if points is not None:
            wanted = f"{4 + count * columns}, for a box and {count} key points of {columns}"
        raise ValueError(f"{len(numbers)} numbers behind the class; accepted: {wanted}")
    x, y, width, height = numbers[:4]
    _check_fractions(line, [x, y, width, height, *rest[:, :2].ravel().tolist()])
    box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    if points is None:
        return ObjectRow(image, label, box)
    found = np.full((count, 3), _VISIBLE, np.float32)
    found[:, :columns] = rest
    if columns == 2:  # (0, 0) stands for a point that is not there
        found[(found[:, :2] == 0).all(1), 2] = 0
    return ObjectRow(image, label, box, found)


def _check_fractions(line: str, coordinates: Sequence[float]) -> None:
    if pixels := next((number for number in coordinates if abs(number) > _MOST_FRACTION), None):
        raise ValueError(f"got {shown_value(line)}, and {pixels:g} is no fraction; accepted: {_FRACTIONS}")


class _Data(NamedTuple):
    """``data.yaml``. ``splits``: the entries of each split, unchanged; ``path``: the prefix of all entries."""

    classes: tuple[str, ...] = ()
    keypoints: tuple[int, int] | None = None
    path: str = ""
    splits: Mapping[str, Sequence[str]] = {}


def _read_data_yaml(root: Location) -> _Data:
    """Returns an empty mapping without such a file. Raises SourceError for an invalid one."""
    place = root.child(FILE)
    if not is_file(place):
        return _Data()
    try:
        found = read_yaml(read_file(place, _MOST_BYTES).decode("utf-8-sig"))
    except DecodeError as error:
        raise SourceError(str(error)) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"{place}: no YAML: {one_line(error)}") from None
    found = found if isinstance(found, dict) else {}
    names, points, path = (found.get(name) for name in ("names", "kpt_shape", "path"))
    if isinstance(names, dict) and sorted(names, key=str) == sorted(range(len(names)), key=str):
        names = [names[label] for label in range(len(names))]
    splits = {name: value if isinstance(value, list) else [value] for name in _SPLITS if (value := found.get(name))}
    a_folder = "a folder, a .txt file with an image a line, or a list of such"
    checks = [
        ("names", isinstance(names, list) and bool(names), "a list of the classes, or a dict from 0 on"),
        ("kpt_shape", POINTS.fits(points), POINTS.accepted),
        ("path", path is None or isinstance(path, str), "a folder"),
        *((name, all(map(is_name, entries)), a_folder) for name, entries in splits.items()),
    ]
    for name, is_fit, accepted in checks:
        if not is_fit:
            raise SourceError(f"{place}: {name}: got {short_repr(found.get(name))}; accepted: {accepted}")
    return _Data(tuple(map(str, names or ())), points and tuple(points), path or "", splits)


def _list_images(
    root: Location, data: _Data, split: str | None, on_error: str, notes: list[str]
) -> tuple[list[str], list[str]]:
    """Images below the root, and their folders: a split's images by ``data.yaml`` or else in ``images/SPLIT``. None:
    all images in ``images`` or, without such a folder, in all splits. Raises SourceError for missing files and
    folders."""
    if split not in data.splits:
        folder = "images" if split is None else f"images/{split}"
        if folders.names_below(root.child(folder)) is not None or not data.splits:
            return list(folders.images_by_stem(root, folder).values()), [folder]
        if split is not None:
            known = ", ".join(data.splits)
            raise SourceError(f"{root}: no folder {folder} in it, and {FILE} has no {split!r}; it has {known}")
    images: list[str] = []
    above: list[str] = []
    for name in data.splits if split is None else [split]:
        for entry in data.splits[name]:
            path = _find(root, data, name, entry)
            if path.endswith(".txt"):
                listed = _read_list(root, path, on_error, notes)
                above += sorted(set(map(posixpath.dirname, listed)))
            else:
                listed = list(folders.images_by_stem(root, path).values())
                above.append(path)
            images += listed
    return images, list(dict.fromkeys(above))


def _folders_of_splits(root: Location, data: _Data, images: Iterable[str]) -> dict[str, list[str]]:
    """Folders of each split that consists of folders with images of the data set."""
    with_images = {posixpath.dirname(image) for image in images}
    found = {}
    for name, entries in data.splits.items():
        try:
            paths = [_find(root, data, name, entry) for entry in entries]
        except SourceError:
            continue
        if all(any(f"{folder}/".startswith(f"{path}/") for folder in with_images) for path in paths):
            found[name] = paths
    return found


def label_file(image: str) -> str:
    """The label file of the image with this path."""
    above, found, below = f"/{posixpath.splitext(image)[0]}.txt".rpartition("/images/")
    return f"{above}/labels/{below}".lstrip("/") if found else below.lstrip("/")


def _find(root: Location, data: _Data, name: str, entry: str) -> str:
    """Path below the root. Data sets are moved about and their files are not: a ``path`` that leads elsewhere is
    ignored, as are leading dots."""
    without_dots = posixpath.normpath(entry.replace("\\", "/"))
    while without_dots.startswith("../"):
        without_dots = without_dots[3:]
    tries = (_below(root, entry, _below(root, data.path) or ""), _below(root, entry), _below(root, without_dots))
    tried = list(dict.fromkeys(filter(None, tries)))
    for path in tried:
        place = root.below(path)
        if is_file(place) if path.endswith(".txt") else folders.names_below(place) is not None:
            return path
    what = f"and there is no {' nor '.join(tried)} in {root}" if tried else f"which leads out of {root}"
    raise SourceError(f"{root.child(FILE)}: {name}: got {entry!r}, {what}")


def _below(root: Location, text: str, base: str = "") -> str | None:
    """Path from the root, or None for a path that leads out of it."""
    path = text.replace("\\", "/")
    if os.path.isabs(path):
        if root.is_url:
            return None
        path = os.path.relpath(path, os.path.abspath(root.address())).replace(os.sep, "/")
    else:
        path = posixpath.join(base, path)
    path = posixpath.normpath(path)
    return None if path == ".." or path.startswith("../") else path


def _read_list(root: Location, path: str, on_error: str, notes: list[str]) -> list[str]:
    """The images that a text file names, relative to its folder or to the root."""
    file = root.child(path)
    existing = folders.names_below(root) or set()
    lines = [line.strip() for line in folders.read_text(file).splitlines() if line.strip()]
    if not lines:
        raise SourceError(f"{file}: names no images")
    images = []
    missing = []
    for line in lines:
        tried = [image for base in (posixpath.dirname(path), "") if (image := _below(root, line, base)) is not None]
        image = next((image for image in tried if image in existing), None)
        if image is None:
            missing.append(tried[0] if tried else line)
        else:
            images.append(image)
    more = skip_missing(missing, len(lines), "that are missing", on_error, str(file))
    notes += [f"{file}: {note}" for note in more]
    return images


# Ultralytics refuses a file without ``val``. It takes the file's own folder where there is no ``path``.
_NO_VAL = "# val: no validation images were written, so these are the training images; name a folder of others here\n"


def yolo_file(metadata: Mapping[str, Any], classes: Sequence[str], row: Row) -> tuple[str, bytes]:
    """Name and content of an output's annotations. ``metadata``: with ``kpt_shape``."""
    shape = metadata["kpt_shape"]
    return label_file(row["file"]), yolo_rows(row, targets_in(row), shape[1] if shape else 0).encode()


def yolo_files(metadata: Mapping[str, Any], classes: Sequence[str], rows: Rows) -> Iterator[tuple[str, Content]]:
    """``data.yaml``. ``metadata``: with ``folders`` of images, ``kpt_shape``, and perhaps the folders of ``splits``."""
    shape = metadata["kpt_shape"]
    splits = metadata.get("splits") or {}
    train = splits.get("train", metadata["folders"])
    folders_of = {"train": train, "val": splits.get("val", train), "test": splits.get("test", [])}
    known: dict[str, Any] = {name: of[0] if len(of) == 1 else of for name, of in folders_of.items() if of}
    known["names"] = dict(enumerate(classes))
    known |= {"kpt_shape": shape} if shape else {}
    text = yaml.safe_dump(known, sort_keys=False, allow_unicode=True)
    yield FILE, (text + _NO_VAL * ("val" not in splits)).encode()


def yolo_rows(row: Row, found: Mapping[str, Any], columns: int) -> str:
    """A line for each object. ``row``: with the image's ``height`` and ``width``; ``columns``: numbers per key point; 0
    without key points."""
    scale = np.array([row["width"], row["height"]], np.float64)
    boxes = from_edges(np.reshape(found["boxes"], (-1, 4)) / np.tile(scale, 2), "cxcywh")
    lines = []
    for k, (numbers, label) in enumerate(zip(boxes.tolist(), found["labels"], strict=True)):
        outline = found["outlines"][k] if "outlines" in found and not columns else None
        if outline:
            numbers = (np.reshape(outline[0], (-1, 2)) / scale).ravel().tolist()
        words = [str(label), *(f"{number:.6f}" for number in numbers)]
        if columns:
            points = np.reshape(found["keypoints"][k], (-1, 3))
            # (0, 0) is all that says that a point is not there if there is no visibility.
            places = np.where(points[:, 2:] > 0, points[:, :2] / scale, 0.0)
            for (x, y), visibility in zip(places.tolist(), points[:, 2].tolist(), strict=True):
                words += [f"{x:.6f}", f"{y:.6f}", str(int(visibility))][:columns]
        lines.append(" ".join(words) + "\n")
    return "".join(lines)
