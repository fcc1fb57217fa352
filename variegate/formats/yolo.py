"""YOLO's text files: ``images/`` and ``labels/`` with the same names below them, and the classes in ``data.yaml``.

A row is ``class x y width height`` (the centre; parts of the image's width and height), ``class x1 y1 x2 y2 ...`` with
three points or more of an outline, or, where ``data.yaml`` has ``kpt_shape``, a box with its key points behind it.

``train``, ``val`` and ``test`` in ``data.yaml`` are each a folder of images, a text file with an image a line, or a
list of such, from ``path`` on, which is itself from the file on. Labels lie where ``images`` in an image's path is
``labels``, the last one if there are several; beside the image if there is none. These are Ultralytics' rules.
Roboflow's files say ``../train/images`` of folders beside the file, and are read as these.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import yaml

from variegate.errors import DecodeError, one_line, shown
from variegate.formats.annotated import folders
from variegate.formats.annotated import values as check
from variegate.formats.annotated.frames import EXIF
from variegate.formats.annotated.objects import Faults, ObjectsBuilder, leave_out
from variegate.formats.annotated.written import Content, Row, Rows, targets_in
from variegate.formats.base import SourceError
from variegate.formats.labels import check_classes
from variegate.formats.reading import is_file, read_file
from variegate.io.location import Location
from variegate.io.yaml_text import read_yaml

YOLO_OPTIONS = {
    "split": check.SPLIT,
    "mask": check.MASK,
    "unoutlined": check.UNOUTLINED,
    "keypoints": check.POINTS,
    "exif": EXIF,
}
FILE = "data.yaml"
_MOST_BYTES = 1 << 20
_VISIBLE = 2.0
# Where nothing names them: all from 0 to the highest are made.
_MOST_CLASS = 99_999
# Objects may reach beyond their image, but not this far: such numbers are pixels.
_MOST_FRACTION = 2.0
_FRACTIONS = "fractions of the image's width and height, 0 to 1"


def open_yolo(
    folder: Location, annotations: Mapping[str, Any], on_error: str, classes: Sequence[str] | None
) -> folders.AnnotatedFolder:
    """Images in the order of their names, or of the files that list them. ``split``: by ``data.yaml``, or the folder
    below ``images`` and ``labels``, such as "train"; None: all. ``keypoints``, ``classes``: before what data.yaml says.
    Raises SourceError."""
    options = check.Options(YOLO_OPTIONS, annotations)
    split = options.of("split")
    keypoints = options.of("keypoints")
    masks = check.MaskOptions.of(options)
    data = _read_data_yaml(folder)
    names = check_classes(classes) or data.classes
    shape = keypoints or data.keypoints
    points = shape and (shape[0], shape[1])
    faults = Faults(on_error)
    wheres = []
    notes: list[str] = []
    images, above = _list_images(folder, data, split, faults.on_error, notes)
    files = list(images)
    every = folders.read_each(folder, files, _read)
    without = every.count(None)
    if without == len(files):
        labels = [label_folder(one) for one in above]
        if all(folders.names_below(folder.below(one)) is None for one in labels):
            raise SourceError(f"{folder}: no folder {labels[0]} in it")
    builder = ObjectsBuilder(points=points[0] if points else 0)
    for index, (name, text) in enumerate(zip(files, every, strict=True)):
        file = str(folder.child(name))
        if isinstance(text, DecodeError):
            faults.add(file, text.reason)
        else:
            wheres += add_rows(builder, text or "", names, points, index, f"{file}, ", faults.add)
    sizes = np.zeros((len(files), 2), np.int32)
    objects = builder.done(sizes, faults, wheres.__getitem__, is_normalised=True)
    notes += faults.notes("")
    if without:
        notes.append(f"{without:,} images have no file in labels, and so no objects")
    names = names or tuple(map(str, range(max(builder.labels, default=-1) + 1)))
    notes += objects.notes_on_masks(masks, len(names))
    about: dict[str, Any] = {"format": "yolo", "folders": above, "kpt_shape": points and list(points)}
    if split is None and (splits := _folders_of_splits(folder, data, images.values())):
        about["splits"] = splits
    paths = tuple(images.values())
    exif = options.of("exif")
    return folders.AnnotatedFolder(
        folder, names, paths, tuple(notes), about, exif, objects=objects, noted=without, **masks._asdict()
    )


def _read(place: Location) -> str | DecodeError:
    try:
        return folders.text_of(read_file(place), str(place))
    except DecodeError as error:
        return error


def add_rows(
    builder: ObjectsBuilder,
    text: str,
    names: Sequence[str],
    points: tuple[int, int] | None,
    image: int,
    where: str,
    complain: Callable[[str, str], object],
) -> list[str]:
    """Rows of an image's text -> the places of those that are right, ``where`` and the line. ``complain``: is called
    with the place and the fault of each other."""
    added = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                _add_row(builder, line, names, points)
            except ValueError as error:
                complain(f"{where}line {number}", str(error))
                continue
            builder.images.append(image)
            added.append(f"{where}line {number}")
    return added


def _add_row(builder: ObjectsBuilder, line: str, names: Sequence[str], points: tuple[int, int] | None) -> None:
    """Raises ValueError, with nothing added."""
    words = line.split()
    try:
        numbers = check.numbers_of("the row", words[1:])
    except ValueError:
        raise ValueError(f"got {check.shown_value(line)}; accepted: {check.FINITE}") from None
    label = check.whole_of("the class", words[0], len(names) - 1 if names else _MOST_CLASS)
    rings: list[list[float]] = []
    of_points = points[0] * points[1] if points else 0
    if len(numbers) == 4 + of_points:
        x, y, width, height = numbers[:4]
        box = x - width / 2, y - height / 2, x + width / 2, y + height / 2
    elif points is None and len(numbers) >= 6 and len(numbers) % 2 == 0:
        xs = numbers[0::2]
        ys = numbers[1::2]
        box = (min(xs), min(ys), max(xs), max(ys))
        rings = [numbers]
    else:
        wanted = "4 for a box, or an even count from 6 on for an outline"
        if points is not None:
            wanted = f"{4 + of_points}, for a box and {points[0]} key points of {points[1]}"
        raise ValueError(f"{len(numbers)} numbers behind the class; accepted: {wanted}")
    coordinates = numbers
    if points is not None:
        coordinates = [*numbers[:4], *np.reshape(numbers[4:], points)[:, :2].ravel().tolist()]
    if pixels := next((one for one in coordinates if abs(one) > _MOST_FRACTION), None):
        raise ValueError(f"got {check.shown_value(line)}, and {pixels:g} is no fraction; accepted: {_FRACTIONS}")
    builder.shapes.add_rings(rings)
    builder.boxes.extend(box)
    builder.labels.append(label)
    if points is not None:
        found = np.full((points[0], 3), _VISIBLE, np.float32)
        found[:, : points[1]] = np.reshape(numbers[4:], points)
        if points[1] == 2:  # (0, 0) stands for a point that is not there
            found[(found[:, :2] == 0).all(1), 2] = 0
        builder.keypoints.frombytes(found.tobytes())


class _Data(NamedTuple):
    """Of ``data.yaml``. ``splits``: the entries of each, as they are written; ``path``: the start of all of them."""

    classes: tuple[str, ...] = ()
    keypoints: tuple[int, int] | None = None
    path: str = ""
    splits: Mapping[str, tuple[str, ...]] = {}


def _read_data_yaml(root: Location) -> _Data:
    """Nothing where there is no such file. Raises SourceError for what is none."""
    place = root.child(FILE)
    if not is_file(place):
        return _Data()
    try:
        found = read_yaml(read_file(place, _MOST_BYTES).decode("utf-8-sig"))
    except DecodeError as error:
        raise SourceError(str(error)) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"{place}: no YAML: {one_line(error)}") from None

    def wanted(name: str, value: Any, is_fit: bool, accepted: str) -> None:
        if not is_fit:
            raise SourceError(f"{place}: {name}: got {shown(value)}; accepted: {accepted}")

    found = found if isinstance(found, dict) else {}
    names, points, path = (found.get(name) for name in ("names", "kpt_shape", "path"))
    if isinstance(names, dict) and sorted(names, key=str) == sorted(range(len(names)), key=str):
        names = [names[label] for label in range(len(names))]
    wanted("names", names, isinstance(names, list) and bool(names), "a list of the classes, or a dict from 0 on")
    wanted("kpt_shape", points, check.POINTS.fits(points), check.POINTS.accepted)
    wanted("path", path, path is None or isinstance(path, str), "a folder")
    splits: dict[str, tuple[str, ...]] = {}
    for name in ("train", "val", "test"):
        if value := found.get(name):
            splits[name] = tuple(value if isinstance(value, list) else [value])
            accepted = "a folder, a .txt file with an image a line, or a list of such"
            wanted(name, value, all(map(check.is_name, splits[name])), accepted)
    return _Data(tuple(map(str, names or ())), points and (points[0], points[1]), path or "", splits)


def _list_images(
    root: Location, data: _Data, split: str | None, on_error: str, notes: list[str]
) -> tuple[dict[str, str], list[str]]:
    """File of labels -> image, below the root, and the folders of the images: those of a split, by ``data.yaml`` or
    else in ``images/SPLIT``; None: all in ``images``, or, where there is no such folder, in all splits. Raises
    SourceError for what is not there."""
    wanted = list(data.splits) if split is None else [split]
    folder = "images" if split is None else f"images/{split}"
    if split not in data.splits:
        if folders.names_below(root.child(folder)) is not None or not data.splits:
            return {label_file(image): image for image in folders.images_by_stem(root, folder).values()}, [folder]
        if split is not None:
            known = ", ".join(data.splits)
            raise SourceError(f"{root}: no folder {folder} in it, and {FILE} has no {split!r}; it has {known}")
    found: dict[str, str] = {}
    above: list[str] = []
    for name in wanted:
        for entry in data.splits[name]:
            path = _find(root, data, name, entry)
            if path.endswith(".txt"):
                images = _in_list(root, path, on_error, notes)
                above += sorted({posixpath.dirname(image) for image in images})
            else:
                images = list(folders.images_by_stem(root, path).values())
                above.append(path)
            found |= {label_file(image): image for image in images}
    return found, list(dict.fromkeys(above))


def _folders_of_splits(root: Location, data: _Data, images: Iterable[str]) -> dict[str, list[str]]:
    """Folders of each split that consists of folders with some of these images."""
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
    """Of the image with this path."""
    above, found, below = f"/{posixpath.splitext(image)[0]}.txt".rpartition("/images/")
    return f"{above}/labels/{below}".lstrip("/") if found else below.lstrip("/")


def label_folder(images: str) -> str:
    """Of the images in this folder."""
    return posixpath.dirname(label_file(f"{images}/0"))


def _find(root: Location, data: _Data, name: str, entry: str) -> str:
    """Below the root. Data sets are moved about and their files are not: where ``path`` leads elsewhere, it is passed
    over, as are leading dots."""
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
    """From the root, or None for what leads out of it."""
    path = text.replace("\\", "/")
    if os.path.isabs(path):
        if root.is_url:
            return None
        path = os.path.relpath(path, os.path.abspath(root.address())).replace(os.sep, "/")
    else:
        path = posixpath.join(base, path)
    path = posixpath.normpath(path)
    return None if path == ".." or path.startswith("../") else path


def _in_list(root: Location, path: str, on_error: str, notes: list[str]) -> list[str]:
    """The images that a text file names, from the root or, with ``./``, from the file's own folder on."""
    file = root.child(path)
    there = folders.names_below(root) or set()
    found = []
    missing = []
    for line in filter(None, map(str.strip, folders.read_lines(file))):
        starts = (posixpath.dirname(path), "")
        tried = [place for start in starts if (place := _below(root, line, start)) is not None]
        image = next((one for one in tried if one in there), None)
        found.append(image) if image is not None else missing.append(tried[0] if tried else line)
    if not found and not missing:
        raise SourceError(f"{file}: names no images")
    more = leave_out(missing, len(found) + len(missing), "are not there", on_error, str(file))
    notes += [f"{file}: {note}" for note in more]
    return found


# Ultralytics refuses a file without ``val``. It takes the file's own folder where there is no ``path``.
_NO_VAL = "# val: no validation images were written, so these are the training images; name a folder of others here\n"


def yolo_files(about: Mapping[str, Any], classes: list[str], rows: Rows) -> Iterator[tuple[str, Content]]:
    """``about``: with ``folders`` of images, ``kpt_shape``, and perhaps the folders of ``splits``."""
    shape = about["kpt_shape"]
    splits = about.get("splits") or {}
    train = splits.get("train", about["folders"])
    folders_of = {"train": train, "val": splits.get("val", train), "test": splits.get("test", [])}
    known: dict[str, Any] = {name: of[0] if len(of) == 1 else of for name, of in folders_of.items() if of}
    known["names"] = dict(enumerate(classes))
    known |= {"kpt_shape": shape} if shape else {}
    text = yaml.safe_dump(known, sort_keys=False, allow_unicode=True)
    yield FILE, (text + _NO_VAL * ("val" not in splits)).encode()
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
            first = np.array(box[:2]) / scale
            last = np.array(box[2:]) / scale
            numbers = [*((first + last) / 2).tolist(), *(last - first).tolist()]
        words = [f"{number:.6f}" for number in numbers]
        if columns:
            for x, y, visibility in np.reshape(found["keypoints"][k], (-1, 3)).tolist():
                # (0, 0) is all that says that a point is not there where there is no visibility.
                place = np.array([x, y]) / scale if visibility > 0 else np.zeros(2)
                words += [f"{place[0]:.6f}", f"{place[1]:.6f}", str(int(visibility))][:columns]
        lines.append(" ".join([str(label), *words]) + "\n")
    return "".join(lines)
