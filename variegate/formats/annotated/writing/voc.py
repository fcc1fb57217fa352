"""Pascal VOC's XML files, ``Annotations/*.xml``, and the list of images in ``ImageSets/Main``."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any
from xml.sax.saxutils import escape

from variegate.formats.annotated.writing.records import targets_in
from variegate.formats.annotated.writing.rows import Content, Row, Rows

_IMAGES, _ANNOTATIONS = "JPEGImages/", "Annotations/"
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def voc_files(about: Mapping[str, Any], classes: list[str], rows: Rows) -> Iterator[tuple[str, Content]]:
    """``about``: with ``split``; the list is ``trainval.txt`` where there is none."""
    for _, row in rows():
        yield f"{_ANNOTATIONS}{_stem(row)}.xml", _xml(row, classes).encode()
    split = posixpath.splitext(posixpath.basename(about["split"] or "trainval"))[0]
    yield f"ImageSets/Main/{split}.txt", (f"{_stem(row)}\n".encode() for _, row in rows())


def _stem(row: Row) -> str:
    return posixpath.splitext(row["file"].removeprefix(_IMAGES))[0]


def _xml(row: Row, classes: list[str]) -> str:
    found = targets_in(row)
    folder, name = posixpath.split(row["file"])
    lines = ["<annotation>", f"\t<folder>{escape(folder)}</folder>", f"\t<filename>{escape(name)}</filename>"]
    sides = {"width": row["width"], "height": row["height"], "depth": found["channels"]}
    lines += ["\t<size>", *(f"\t\t<{side}>{value}</{side}>" for side, value in sides.items()), "\t</size>"]
    lines += ["\t<segmented>0</segmented>"]
    for box, label, ignored in zip(found["boxes"], found["labels"], found["ignored"], strict=True):
        corners = zip(_CORNERS, _pixels(box, row["width"], row["height"]), strict=True)
        lines += [
            "\t<object>",
            f"\t\t<name>{escape(classes[label])}</name>",
            "\t\t<pose>Unspecified</pose>",
            "\t\t<truncated>0</truncated>",
            f"\t\t<difficult>{ignored}</difficult>",
            "\t\t<bndbox>",
            *(f"\t\t\t<{corner}>{value}</{corner}>" for corner, value in corners),
            "\t\t</bndbox>",
            "\t</object>",
        ]
    return "\n".join([*lines, "</annotation>", ""])


def _pixels(box: list[float], width: int, height: int) -> tuple[int, int, int, int]:
    """The first and the last pixel of edges, counted from 1: whole numbers, which all readers take."""
    first = [min(round(edge), side - 1) for edge, side in zip(box[:2], (width, height), strict=True)]
    last = [max(round(edge), start + 1) for edge, start in zip(box[2:], first, strict=True)]
    return first[0] + 1, first[1] + 1, last[0], last[1]
