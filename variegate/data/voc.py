"""Pascal VOC: ``JPEGImages/``, an XML file for each image in ``Annotations/``, and lists of names in ``ImageSets/``.

Its corners are the first and the last pixel of an object, counted from 1: the edges of a box are (xmin - 1, ymin - 1,
xmax, ymax).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser
from xml.sax.saxutils import escape

import numpy as np

from variegate.data.annotated import folders
from variegate.data.annotated.manifest_targets import Content, Row, Rows, targets_in
from variegate.data.annotated.objects import (
    AnnotationErrors,
    ObjectRow,
    number_entries,
    objects_from_rows,
    skip_missing,
    split_key,
)
from variegate.data.annotated.options import check_options
from variegate.data.annotated.values import MOST_SIDE, numbers_of, refusal, shown_value, whole_of
from variegate.data.base import SourceError, summarize_names
from variegate.data.labels import check_classes
from variegate.data.reading import is_file, read_file
from variegate.data.samples import Samples
from variegate.io.location import Location

_IMAGES = "JPEGImages"
_ANNOTATIONS = "Annotations"
_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_DEEPEST = 64  # of XML


class _Object(NamedTuple):
    name: str
    box: tuple[float, float, float, float]
    is_difficult: bool


class _File(NamedTuple):
    """Height and width of the image, and its objects; an invalid object is a ValueError."""

    size: tuple[int, int]
    objects: tuple[_Object | ValueError, ...]


def open_voc(folder: Location, annotations: Mapping[str, Any], on_error: str, classes: Sequence[str] | None) -> Samples:
    """Images in the order of their names, or in that of a split's list (``ImageSets/Main/train.txt`` for "train").
    ``ignored``: objects marked as difficult are kept. ``classes``: their names; None: the names that occur, sorted."""
    options = check_options("voc", annotations)
    split = options["split"]
    images = folders.images_by_stem(folder, _IMAGES)
    stems, notes = (sorted(images), []) if split is None else _read_split(folder, split, images, on_error)
    below = folder.child(_ANNOTATIONS)
    files = folders.read_each(below, [f"{stem}.xml" for stem in stems], _read_file)
    every = [file.objects if isinstance(file, _File) else file for file in files]
    found = {one.name for objects in every if isinstance(objects, tuple) for one in objects if isinstance(one, _Object)}
    names = check_classes(classes) or tuple(sorted(found))
    labels = {name: label for label, name in enumerate(names)}

    def read_object(key: int, one: _Object) -> ObjectRow | None:
        if one.name not in labels:
            raise ValueError(f"of the class {shown_value(one.name)}; accepted: {summarize_names(names, 20)}")
        if one.is_difficult and not options["ignored"]:
            return None
        box = numbers_of("its box", one.box)
        image, _ = split_key(key)
        return ObjectRow(image, labels[one.name], box, is_ignored=one.is_difficult)

    def name_of(key: int) -> str:
        image, number = split_key(key)
        return str(below.child(f"{stems[image]}.xml")) + (f": object {number}" if number else "")

    sizes = np.array([file.size if isinstance(file, _File) else (0, 0) for file in files], np.int32)
    errors = AnnotationErrors(on_error)
    objects = objects_from_rows(number_entries(every), read_object, sizes, errors, name_of=name_of)
    paths = [images[stem] for stem in stems]
    metadata = {"format": "voc", "split": split}
    return folders.annotated_folder(
        folder, names, paths, objects, errors, metadata, options, remarks=notes, ignored="difficult"
    )


def _read_split(root: Location, split: str, images: dict[str, str], on_error: str) -> tuple[list[str], list[str]]:
    """The images of a split, by their names without extension, and notes."""
    lists = [root.below(f"ImageSets/Main/{split}.txt"), root.below(split)]
    file = next(filter(is_file, lists), None)
    if file is None:
        raise SourceError(f"annotations: split: no file {lists[0]}, nor {lists[1]}")
    stems = []
    for number, line in enumerate(folders.read_text(file).splitlines(), 1):
        words = line.split()
        # Lists of one class have 1, 0 or -1 behind the name.
        if len(words) > 2:
            raise SourceError(f"{file}, line {number}: got {shown_value(line.strip())}; accepted: the name of an image")
        if words and words[1:] != ["-1"]:
            stems.append(words[0])
    if not stems:
        raise SourceError(f"{file}: names no images")
    missing = [stem for stem in stems if stem not in images]
    notes = skip_missing(missing, len(stems), "missing from JPEGImages", on_error, str(file))
    return [stem for stem in dict.fromkeys(stems) if stem in images], [f"{file}: {note}" for note in notes]


def _read_file(place: Location) -> _File:
    """Raises ValueError."""
    root = parse_xml(read_file(place))
    height, width = (whole_of(side, root.findtext(f"size/{side}") or 0, MOST_SIDE) for side in ("height", "width"))
    return _File((height, width), tuple(map(_read_object, root.iterfind("object"))))


def _read_object(found: Element) -> _Object | ValueError:
    name = (found.findtext("name") or "").strip()
    texts = [(found.findtext(f"bndbox/{corner}") or "").strip() for corner in _CORNERS]
    try:
        left, top, right, bottom = map(float, texts)
    except ValueError:
        return refusal("its bndbox", texts, "numbers")
    if not name:
        return ValueError("has no name; accepted: the name of its class")
    is_difficult = (found.findtext("difficult") or "0").strip() == "1"
    return _Object(name, (left - 1, top - 1, right, bottom), is_difficult)


class _SafeBuilder(TreeBuilder):
    """Refuses a document type, so that no entity is defined, expanded or fetched, and deep nesting."""

    _depth = 0

    def doctype(self, *_: Any) -> None:
        raise ValueError("a document type (<!DOCTYPE ...>), which is not read")

    def start(self, tag: Any, attrs: Any) -> Element:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(f"nested more than {_DEEPEST} deep")
        return super().start(tag, attrs)

    def end(self, tag: str) -> Element:
        self._depth -= 1
        return super().end(tag)


def parse_xml(data: bytes) -> Element:
    """The root of foreign XML. Raises ValueError with a reason for anything else, and for XML that is refused."""
    parser = XMLParser(target=_SafeBuilder())
    try:
        parser.feed(data)
        return parser.close()
    except ParseError as error:
        raise ValueError(f"no XML: {error}") from None


def voc_file(metadata: Mapping[str, Any], classes: Sequence[str], row: Row) -> tuple[str, bytes]:
    """Name and content of an output's annotations."""
    return f"{_ANNOTATIONS}/{_stem(row)}.xml", _xml(row, classes).encode()


def voc_files(metadata: Mapping[str, Any], classes: Sequence[str], rows: Rows) -> Iterator[tuple[str, Content]]:
    """The list of images. ``metadata``: with ``split``; the list is ``trainval.txt`` if it has none."""
    split = posixpath.splitext(posixpath.basename(metadata["split"] or "trainval"))[0]
    yield f"ImageSets/Main/{split}.txt", (f"{_stem(row)}\n".encode() for _, row in rows())


def _stem(row: Row) -> str:
    return posixpath.splitext(row["file"].removeprefix(f"{_IMAGES}/"))[0]


def _xml(row: Row, classes: Sequence[str]) -> str:
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
