"""``open_source(..., annotations=...)``: which layout is meant, and with which of its options."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from variegate.checks import meant
from variegate.formats.annotated.columns import COLUMN_OPTIONS, open_columns
from variegate.formats.annotated.folders import MASKS_OPTIONS, open_masks
from variegate.formats.annotated.members import MEMBER_OPTIONS, open_members
from variegate.formats.annotated.values import AnnotationOption, GivenOptions
from variegate.formats.base import SourceError
from variegate.formats.coco.read import COCO_OPTIONS, open_coco
from variegate.formats.voc import VOC_OPTIONS, open_voc
from variegate.formats.yolo.rows import YOLO_OPTIONS, open_yolo
from variegate.io.location import Location

ACCEPTED = (
    'a COCO .json file, "voc", "yolo", "masks", each with options after commas ("yolo,split=train"), or a dict with '
    '"format" ("coco", "voc", "yolo", "masks") and options of that; "columns" for .parquet files, "members" for .tar '
    "shards (docs/targets.md)"
)
_OPTION = re.compile(r"\s*([a-z_]+)\s*=(.*)", re.DOTALL)
_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False, "yes": True, "no": False}
_SIDES = re.compile(r"(\d+)\s*x\s*(\d+)")


class Layout(NamedTuple):
    """``open``: gets the folder or the files, the options and the arguments of ``open_source``. ``options``: names that
    the dict may hold beside "format"."""

    open: Callable[..., Any]
    options: Mapping[str, AnnotationOption]


_OF_FOLDERS = {
    "coco": Layout(open_coco, COCO_OPTIONS),
    "voc": Layout(open_voc, VOC_OPTIONS),
    "yolo": Layout(open_yolo, YOLO_OPTIONS),
    "masks": Layout(open_masks, MASKS_OPTIONS),
}
# By the suffix of the files.
_OF_FILES = {
    ".parquet": ("columns", Layout(open_columns, COLUMN_OPTIONS)),
    ".tar": ("members", Layout(open_members, MEMBER_OPTIONS)),
}


def open_annotated(files: Sequence[Location], suffix: str, annotations: Any, opening: Mapping[str, Any]) -> Any:
    """``suffix``: ".parquet" or ".tar", or "" for one folder of images. ``opening``: the arguments of ``open_source``.

    Raises SourceError for what is not there or not accepted, TypeError for annotations of other types.
    """
    place: Any = files
    if suffix:
        name, layout = _OF_FILES[suffix]
        given = annotations
        if isinstance(annotations, str):
            first, options = split_typed(annotations)
            given = {**options, "format": first}
        if not isinstance(given, Mapping) or given.get("format", name) != name:
            accepted = f"{name!r}, or a dict with options of that (docs/targets.md)"
            raise SourceError(f"annotations: got {annotations!r} with {suffix} files; accepted: {accepted}")
    else:
        (place,) = files
        if not place.is_url and not os.path.isdir(place.address()):
            raise SourceError(f"{place}: annotations= is for a folder of images, and there is no such folder")
        given = _of_folder(annotations)
        layout = _OF_FOLDERS[given["format"]]
    known = layout.options
    if unknown := [name for name in given if name not in known and name != "format"]:
        accepted = f"{', '.join(known)}{meant(unknown[0], known)}"
        raise SourceError(f"annotations: got the option {unknown[0]!r}; accepted: {accepted}")
    return layout.open(place, GivenOptions(known, given), opening)


def _of_folder(annotations: Any) -> dict[str, Any]:
    """As a dict, with a "format" that is known."""
    if isinstance(annotations, Mapping):
        given = {"format": "coco" if "file" in annotations else None, **annotations}
    elif isinstance(annotations, (str, os.PathLike)):
        first, options = (annotations, {}) if isinstance(annotations, os.PathLike) else split_typed(annotations)
        if first in _OF_FOLDERS:
            given = {"format": first}
        elif any(name.lower().endswith(".json") for name in Location.parse(first).names):
            given = {"format": "coco", "file": first}
        else:
            raise SourceError(f"annotations: got {os.fspath(annotations)!r}; accepted: {ACCEPTED}")
        if twice := given.keys() & options.keys():
            raise SourceError(f"annotations: got {min(twice)}= after {first!r}, which says it; leave one out")
        given |= options
    else:
        raise TypeError(f"annotations: got {annotations!r}; accepted: {ACCEPTED}")
    if not isinstance(given["format"], str) or given["format"] not in _OF_FOLDERS:
        raise SourceError(f"annotations: got {annotations!r}; accepted: {ACCEPTED}")
    return given


def split_typed(text: str) -> tuple[str, dict[str, Any]]:
    """Annotations as they are typed, ``yolo,split=train,mask=each`` -> the layout or file that comes first, and the
    options. Commas that no option follows belong to what stands before them, as names of files may hold some.

    Values are text, but for ``none``, ``true``, ``false`` (``yes``, ``no``), and two numbers ``17x3``, a list.
    """
    first, *rest = text.split(",")
    options: dict[str, Any] = {}
    last = None
    for part in rest:
        if found := _OPTION.fullmatch(part):
            last = found[1]
            options[last] = found[2]
        elif last is None:
            first += f",{part}"
        else:
            options[last] += f",{part}"
    for name, value in options.items():
        word = value.strip()
        sides = _SIDES.fullmatch(word)
        options[name] = _WORDS.get(word.lower(), word) if sides is None else [int(sides[1]), int(sides[2])]
    return first, options
