"""Pascal VOC: ``JPEGImages/``, an XML file for each image in ``Annotations/``, and lists of names in ``ImageSets/``.

Its corners are the first and the last pixel of an object, counted from 1: the edges of a box are (xmin - 1, ymin - 1,
xmax, ymax).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np

from variegate.errors import DecodeError
from variegate.formats.annotated import folders
from variegate.formats.annotated import values as check
from variegate.formats.annotated.frames import EXIF
from variegate.formats.annotated.objects import Faults, ObjectsBuilder, leave_out
from variegate.formats.annotated.values import shown_value
from variegate.formats.annotated.written import Content, Row, Rows, targets_in
from variegate.formats.base import SourceError, first_names
from variegate.formats.labels import check_classes
from variegate.formats.reading import is_file, read_file
from variegate.io.location import Location

VOC_OPTIONS = {"split": check.SPLIT, "ignored": check.FLAG, "exif": EXIF}
_IMAGES = "JPEGImages"
_ANNOTATIONS = "Annotations"
_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_DEEPEST = 64  # of XML


class _Found(NamedTuple):
    """The class of an object, its edges and its mark."""

    name: str
    box: tuple[float, float, float, float]
    is_difficult: bool


class _Read(NamedTuple):
    """An XML file; a str is what is wrong with it, or with an object."""

    size: tuple[int, int] = (0, 0)
    objects: tuple[_Found | str, ...] = ()
    problem: str = ""


def open_voc(
    folder: Location, annotations: Mapping[str, Any], on_error: str, classes: Sequence[str] | None
) -> folders.AnnotatedFolder:
    """Images in the order of their names, or in that of a split's list (``ImageSets/Main/train.txt`` for "train").
    ``ignored``: objects marked as difficult are kept. ``classes``: their names; None: those that occur, sorted."""
    options = check.Options(VOC_OPTIONS, annotations)
    split = options.of("split")
    ignored = options.of("ignored")
    images = folders.images_by_stem(folder, _IMAGES)
    stems, notes = (sorted(images), []) if split is None else _listed(folder, split, images, on_error)
    faults = Faults(on_error)
    below = folder.child(_ANNOTATIONS)
    # An image without a file has no objects.
    every = [read or _Read() for read in folders.read_each(below, [f"{stem}.xml" for stem in stems], _read)]
    found = {one.name for read in every for one in read.objects if not isinstance(one, str)}
    names = check_classes(classes) or tuple(sorted(found))
    labels = {name: label for label, name in enumerate(names)}
    builder = ObjectsBuilder()
    wheres = []
    for index, (stem, read) in enumerate(zip(stems, every, strict=True)):
        file = str(below.child(f"{stem}.xml"))
        if read.problem:
            faults.add(file, read.problem)
        for k, one in enumerate(read.objects, 1):
            where = f"{file}: object {k}"
            if isinstance(one, str):
                faults.add(where, one)
            elif one.name not in labels:
                faults.add(where, f"of the class {shown_value(one.name)}; accepted: {first_names(names, 20)}")
            elif one.is_difficult and not ignored:
                faults.ignored += 1
            else:
                builder.images.append(index)
                builder.boxes.extend(one.box)
                builder.labels.append(labels[one.name])
                builder.shapes.add_rings(())
                builder.ignored.append(one.is_difficult)
                wheres.append(where)
    sizes = np.array([read.size for read in every], np.int32).reshape(-1, 2)
    objects = builder.done(sizes, faults, wheres.__getitem__)
    paths = tuple(images[stem] for stem in stems)
    remarks = (*notes, *faults.notes("difficult"))
    about = {"format": "voc", "split": split}
    return folders.AnnotatedFolder(folder, names, paths, remarks, about, options.of("exif"), objects=objects)


def _listed(root: Location, split: str, images: dict[str, str], on_error: str) -> tuple[list[str], list[str]]:
    """The images of a split, by their names without extension, and notes."""
    lists = [root.below(f"ImageSets/Main/{split}.txt"), root.below(split)]
    file = next(filter(is_file, lists), None)
    if file is None:
        raise SourceError(f"annotations: split: no file {lists[0]}, nor {lists[1]}")
    listed = []
    for number, line in enumerate(folders.read_lines(file), 1):
        words = line.split()
        # Lists of one class have 1, 0 or -1 behind the name.
        if len(words) > 2:
            raise SourceError(f"{file}, line {number}: got {shown_value(line.strip())}; accepted: the name of an image")
        listed += [] if not words or words[1:] == ["-1"] else [words[0]]
    if not listed:
        raise SourceError(f"{file}: names no images")
    missing = [stem for stem in listed if stem not in images]
    notes = leave_out(missing, len(listed), "are not in JPEGImages", on_error, str(file))
    return [stem for stem in dict.fromkeys(listed) if stem in images], [f"{file}: {note}" for note in notes]


def _read(place: Location) -> _Read:
    try:
        root = parse_xml(read_file(place))
        sides = (root.findtext(f"size/{side}") or 0 for side in ("height", "width"))
        height, width = map(check.whole_of, ("height", "width"), sides, (check.MOST_SIDE,) * 2)
    except ValueError as error:
        return _Read(problem=error.reason if isinstance(error, DecodeError) else str(error))
    return _Read((height, width), tuple(map(_object, root.iterfind("object"))))


def _object(found: Element) -> _Found | str:
    name = (found.findtext("name") or "").strip()
    texts = [(found.findtext(f"bndbox/{corner}") or "").strip() for corner in _CORNERS]
    try:
        left, top, right, bottom = map(float, texts)
    except ValueError:
        shown = " ".join(shown_value(text) if len(text) > 20 else text or "?" for text in texts)
        return f"its bndbox is {shown}; accepted: xmin, ymin, xmax and ymax as numbers"
    if not name:
        return "has no name; accepted: the name of its class"
    is_difficult = (found.findtext("difficult") or "0").strip() == "1"
    return _Found(name, (left - 1, top - 1, right, bottom), is_difficult)


def parse_xml(data: bytes) -> Element:
    """The root of a stranger's XML. Raises ValueError with a reason for what is no XML, is nested deeply, or has a
    document type: no entity is defined, expanded or fetched."""
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    depth = 0

    def refuse(*_: Any) -> None:
        raise ValueError("a document type (<!DOCTYPE ...>), which is not read")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise ValueError(f"nested more than {_DEEPEST} deep")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ValueError(f"no XML: {error}") from None
    return builder.close()


def voc_files(about: Mapping[str, Any], classes: list[str], rows: Rows) -> Iterator[tuple[str, Content]]:
    """``about``: with ``split``; the list is ``trainval.txt`` where there is none."""
    for _, row in rows():
        yield f"{_ANNOTATIONS}/{_stem(row)}.xml", _xml(row, classes).encode()
    split = posixpath.splitext(posixpath.basename(about["split"] or "trainval"))[0]
    yield f"ImageSets/Main/{split}.txt", (f"{_stem(row)}\n".encode() for _, row in rows())


def _stem(row: Row) -> str:
    return posixpath.splitext(row["file"].removeprefix(f"{_IMAGES}/"))[0]


def _xml(row: Row, classes: list[str]) -> str:
    found = targets_in(row)
    folder, name = posixpath.split(row["file"])
    sides = {"width": row["width"], "height": row["height"], "depth": found["channels"]}
    parts: list[tuple[str, Any]] = [("folder", folder), ("filename", name), ("size", sides), ("segmented", 0)]
    for box, label, ignored in zip(found["boxes"], found["labels"], found["ignored"], strict=True):
        corners = dict(zip(_CORNERS, _pixels(box, row["width"], row["height"]), strict=True))
        known = {"name": classes[label], "pose": "Unspecified", "truncated": 0, "difficult": ignored}
        parts.append(("object", {**known, "bndbox": corners}))
    return "".join(["<annotation>\n", *(_element(tag, value, "\t") for tag, value in parts), "</annotation>\n"])


def _element(tag: str, value: Any, indent: str) -> str:
    """Lines of an element of text, or of elements."""
    if not isinstance(value, dict):
        return f"{indent}<{tag}>{escape(str(value))}</{tag}>\n"
    inner = "".join(_element(name, one, f"{indent}\t") for name, one in value.items())
    return f"{indent}<{tag}>\n{inner}{indent}</{tag}>\n"


def _pixels(box: list[float], width: int, height: int) -> tuple[int, int, int, int]:
    """The first and the last pixel of edges, counted from 1: whole numbers, which all readers take."""
    first = [min(round(edge), side - 1) for edge, side in zip(box[:2], (width, height), strict=True)]
    last = [max(round(edge), start + 1) for edge, start in zip(box[2:], first, strict=True)]
    return first[0] + 1, first[1] + 1, last[0], last[1]
