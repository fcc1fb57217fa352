"""``open_source(..., annotations=...)``: the layout and its options."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from variegate.checks import meant
from variegate.formats.annotated.columns import COLUMN_OPTIONS, open_columns
from variegate.formats.annotated.folders import MASKS_OPTIONS, open_masks
from variegate.formats.annotated.members import MEMBER_OPTIONS, open_members
from variegate.formats.annotated.values import AnnotationOption, Options
from variegate.formats.base import SourceError
from variegate.formats.coco import COCO_OPTIONS, open_coco
from variegate.formats.voc import VOC_OPTIONS, open_voc
from variegate.formats.yolo import YOLO_OPTIONS, open_yolo
from variegate.io.location import Location

ACCEPTED = (
    'a COCO .json file, "voc", "yolo", "masks", each with options after commas ("yolo,split=train"), or a dict with '
    '"format" ("coco", "voc", "yolo", "masks") and options of that; "columns" for .parquet files, "members" for .tar '
    "shards (docs/targets.md)"
)
_OPTION = re.compile(r"\s*([a-z_]+)\s*=(.*)", re.DOTALL)
_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False, "yes": True, "no": False}
_SIDES = re.compile(r"(\d+)\s*x\s*(\d+)")


# By the name of a layout: the function that gets the folder or the files, the options and the arguments of
# ``open_source``, and the options that the dict may hold beside "format".
_FOLDERS: dict[str, tuple[Callable[..., Any], Mapping[str, AnnotationOption]]] = {
    "coco": (open_coco, COCO_OPTIONS),
    "voc": (open_voc, VOC_OPTIONS),
    "yolo": (open_yolo, YOLO_OPTIONS),
    "masks": (open_masks, MASKS_OPTIONS),
}
_FILES: dict[str, tuple[Callable[..., Any], Mapping[str, AnnotationOption]]] = {
    "columns": (open_columns, COLUMN_OPTIONS),
    "members": (open_members, MEMBER_OPTIONS),
}
_OF_SUFFIX = {".parquet": "columns", ".tar": "members"}


def open_annotated(files: Sequence[Location], suffix: str, annotations: Any, opening: Mapping[str, Any]) -> Any:
    """``suffix``: ".parquet" or ".tar", or "" for one folder of images. ``opening``: the arguments of ``open_source``.

    Raises SourceError for what is not there or not accepted, TypeError for annotations of other types.
    """
    place: Any = files
    if suffix:
        name, values = _OF_SUFFIX[suffix], annotations
        if isinstance(annotations, str):
            first, options = split_typed(annotations)
            values = {**options, "format": first}
        if not isinstance(values, Mapping) or values.get("format", name) != name:
            accepted = f"{name!r}, or a dict with options of that (docs/targets.md)"
            raise SourceError(f"annotations: got {annotations!r} with {suffix} files; accepted: {accepted}")
        open_layout, known = _FILES[name]
    else:
        (place,) = files
        if not place.is_url and not os.path.isdir(place.address()):
            raise SourceError(f"{place}: annotations= is for a folder of images, and there is no such folder")
        values = _of_folder(annotations)
        open_layout, known = _FOLDERS[values["format"]]
    if unknown := [name for name in values if name not in known and name != "format"]:
        accepted = f"{', '.join(known)}{meant(unknown[0], known)}"
        raise SourceError(f"annotations: got the option {unknown[0]!r}; accepted: {accepted}")
    return open_layout(place, Options(known, values), opening)


def _of_folder(annotations: Any) -> dict[str, Any]:
    """As a dict, with a "format" that is known."""
    if isinstance(annotations, Mapping):
        values = {"format": "coco" if "file" in annotations else None, **annotations}
    elif isinstance(annotations, (str, os.PathLike)):
        first, options = (annotations, {}) if isinstance(annotations, os.PathLike) else split_typed(annotations)
        if first in _FOLDERS:
            values = {"format": first}
        elif any(name.lower().endswith(".json") for name in Location.parse(first).names):
            values = {"format": "coco", "file": first}
        else:
            raise SourceError(f"annotations: got {os.fspath(annotations)!r}; accepted: {ACCEPTED}")
        if twice := values.keys() & options.keys():
            raise SourceError(f"annotations: got {min(twice)}= after {first!r}, which says it; leave one out")
        values |= options
    else:
        raise TypeError(f"annotations: got {annotations!r}; accepted: {ACCEPTED}")
    if not isinstance(values["format"], str) or values["format"] not in _FOLDERS:
        raise SourceError(f"annotations: got {annotations!r}; accepted: {ACCEPTED}")
    return values


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
