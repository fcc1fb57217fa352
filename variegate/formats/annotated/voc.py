"""Pascal VOC: ``JPEGImages/``, an XML file for each image in ``Annotations/``, and lists of names in ``ImageSets/``.

Its corners are the first and the last pixel of an object, counted from 1: the edges of a box are (xmin - 1, ymin - 1,
xmax, ymax).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from variegate.errors import DecodeError
from variegate.formats.annotated.listing import images_by_stem, is_file, place_in, read_each, read_lines
from variegate.formats.annotated.objects import Complaints, ObjectsBuilder
from variegate.formats.annotated.source import AnnotatedFolder
from variegate.formats.annotated.values import MOST_SIDE, shown_value, whole_of
from variegate.formats.annotated.xml import parse_xml
from variegate.formats.base import SourceError, first_names
from variegate.formats.labels import check_classes
from variegate.formats.reading import read_file
from variegate.io.location import Location


class _Found(NamedTuple):
    name: str
    box: tuple[float, float, float, float]
    is_difficult: bool


class _Read(NamedTuple):
    """Of an XML file: what is wrong with it, or with single objects."""

    size: tuple[int, int] = (0, 0)
    objects: tuple[_Found | str, ...] = ()
    problem: str = ""


def open_voc(
    folder: Location, split: str | None, ignored: bool, on_error: str, classes: Sequence[str] | None
) -> AnnotatedFolder:
    """Images in the order of their names, or in that of a split's list (``ImageSets/Main/train.txt`` for "train").
    ``ignored``: objects marked as difficult are kept. ``classes``: their names; None: those that occur, sorted."""
    images = images_by_stem(folder, "JPEGImages")
    stems, notes = _stems(folder, split, images, on_error)
    complaints = Complaints(on_error)
    below = folder.child("Annotations")
    # An image without a file has no objects.
    every = [read or _Read() for read in read_each(below, [f"{stem}.xml" for stem in stems], _read)]
    names = check_classes(classes) or tuple(sorted({one.name for read in every for one in _good(read)}))
    labels = {name: label for label, name in enumerate(names)}
    builder, sizes, wheres = ObjectsBuilder(), [], []
    for index, (stem, read) in enumerate(zip(stems, every, strict=True)):
        file = str(below.child(f"{stem}.xml"))
        if read.problem:
            complaints.add(file, read.problem)
        sizes.append(read.size)
        for k, one in enumerate(read.objects):
            where = f"{file}: object {k + 1}"
            if isinstance(one, str):
                complaints.add(where, one)
            elif one.name not in labels:
                complaints.add(where, f"of the class {shown_value(one.name)}; accepted: {first_names(names, 20)}")
            elif one.is_difficult and not ignored:
                complaints.ignored += 1
            else:
                builder.images.append(index)
                builder.boxes.extend(one.box)
                builder.labels.append(labels[one.name])
                builder.shapes.add_rings(())
                builder.ignored.append(one.is_difficult)
                wheres.append(where)
    objects = builder.done(np.array(sizes, np.int32).reshape(-1, 2), complaints, wheres.__getitem__)
    paths = tuple(images[stem] for stem in stems)
    told = (*notes, *complaints.notes("difficult"))
    return AnnotatedFolder(folder, names, paths, objects, None, told, {"format": "voc", "split": split})


def _stems(root: Location, split: str | None, images: dict[str, str], on_error: str) -> tuple[list[str], list[str]]:
    """Which images, and notes."""
    if split is None:
        return sorted(images), []
    lists = [place_in(root, f"ImageSets/Main/{split}.txt"), place_in(root, split)]
    file = next(filter(is_file, lists), None)
    if file is None:
        raise SourceError(f"annotations: split: no file {lists[0]}, nor {lists[1]}")
    listed = []
    for number, line in enumerate(read_lines(file), 1):
        words = line.split()
        # Lists of one class have 1, 0 or -1 behind the name.
        if len(words) > 2:
            raise SourceError(f"{file}, line {number}: got {shown_value(line.strip())}; accepted: the name of an image")
        listed += [] if not words or words[1:] == ["-1"] else [words[0]]
    stems = [stem for stem in dict.fromkeys(listed) if stem in images]
    missing = [stem for stem in listed if stem not in images]
    line = f"{file}: {len(missing):,} of {len(listed):,} images are not in JPEGImages: {first_names(missing)}"
    if not stems or (missing and on_error != "skip"):
        raise SourceError(line if missing else f"{file}: names no images")
    return stems, [f"{line}; they are left out"] if missing else []


def _good(read: _Read) -> list[_Found]:
    return [one for one in read.objects if not isinstance(one, str)]


def _read(place: Location) -> _Read:
    try:
        root = parse_xml(read_file(place))
        size = tuple(whole_of(side, root.findtext(f"size/{side}") or 0, MOST_SIDE) for side in ("height", "width"))
    except DecodeError as error:
        return _Read(problem=error.reason)
    except ValueError as error:
        return _Read(problem=str(error))
    return _Read((size[0], size[1]), tuple(map(_object, root.iterfind("object"))))


def _object(found: Element) -> _Found | str:
    name = (found.findtext("name") or "").strip()
    texts = [(found.findtext(f"bndbox/{corner}") or "").strip() for corner in ("xmin", "ymin", "xmax", "ymax")]
    try:
        left, top, right, bottom = map(float, texts)
    except ValueError:
        told = " ".join(shown_value(text) if len(text) > 20 else text or "?" for text in texts)
        return f"its bndbox is {told}; accepted: xmin, ymin, xmax and ymax as numbers"
    if not name:
        return "has no name; accepted: the name of its class"
    is_difficult = (found.findtext("difficult") or "0").strip() == "1"
    return _Found(name, (left - 1, top - 1, right, bottom), is_difficult)
