"""``open_source(folder, annotations=...)``: which layout is meant, and with which of its options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from variegate.checks import meant
from variegate.formats.annotated.coco import open_coco
from variegate.formats.annotated.columns import COLUMN_OPTIONS, AnnotatedRows, open_columns
from variegate.formats.annotated.listing import is_file, place_in
from variegate.formats.annotated.masks import MaskedFolder, open_masks
from variegate.formats.annotated.members import MEMBER_OPTIONS, AnnotatedShards, AnnotatedStream, open_members
from variegate.formats.annotated.objects import MASKS
from variegate.formats.annotated.source import AnnotatedFolder
from variegate.formats.annotated.typed import split_typed
from variegate.formats.annotated.voc import open_voc
from variegate.formats.annotated.yolo import open_yolo
from variegate.formats.annotated.yolo_data import check_points
from variegate.formats.base import SourceError
from variegate.io.location import Location

Annotated = AnnotatedFolder | MaskedFolder
ACCEPTED = (
    'a COCO .json file, "voc", "yolo", "masks", each with options after commas ("yolo,split=train"), or a dict with '
    '"format" ("coco", "voc", "yolo", "masks") and options of that; "columns" for .parquet files, "members" for .tar '
    "shards (docs/targets.md)"
)


class Layout(NamedTuple):
    """``options``: names that the dict may hold beside "format", and what they are where it does not."""

    open: Callable[..., Annotated]
    options: dict[str, Any]


def open_annotated(
    folder: Location, annotations: Any, on_error: str = "raise", classes: Sequence[str] | None = None
) -> Annotated:
    """Raises SourceError for what is not there or not accepted, TypeError for annotations of other types."""
    if not folder.is_url and not os.path.isdir(folder.address()):
        raise SourceError(f"{folder}: annotations= is for a folder of images, and there is no such folder")
    given = _as_dict(annotations)
    layout = _LAYOUTS[given.pop("format")]
    _check_known(given, layout.options)
    return layout.open(folder, layout.options | given, on_error, classes)


def open_annotated_files(
    files: Sequence[Location], kind: str, annotations: Any, on_error: str, opening: Mapping[str, Any]
) -> AnnotatedRows | AnnotatedShards | AnnotatedStream:
    """Files of a ``kind``, ".parquet" or ".tar". ``annotations``: "columns" or "members", or a dict of options, which
    need not say the format. Raises as ``open_annotated``."""
    name, known = ("columns", COLUMN_OPTIONS) if kind == ".parquet" else ("members", MEMBER_OPTIONS)
    given: Any = dict(annotations) if isinstance(annotations, Mapping) else annotations
    if isinstance(given, str):
        first, given = split_typed(given)
        given["format"] = first
    if not isinstance(given, dict) or given.pop("format", name) != name:
        accepted = f"{name!r}, or a dict with options of that (docs/targets.md)"
        raise SourceError(f"annotations: got {annotations!r} with {kind} files; accepted: {accepted}")
    _check_known(given, known)
    opened = open_columns if kind == ".parquet" else open_members
    return opened(files, known | given, on_error, opening)


def _check_known(given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    if unknown := [name for name in given if name not in known]:
        raise SourceError(
            f"annotations: got the option {unknown[0]!r}; accepted: {', '.join(known)}{meant(unknown[0], known)}"
        )


def _as_dict(annotations: Any) -> dict[str, Any]:
    """With a "format" that is known."""
    if isinstance(annotations, Mapping):
        given = dict(annotations)
        given.setdefault("format", "coco" if "file" in given else None)
    elif isinstance(annotations, (str, os.PathLike)):
        first, options = (annotations, {}) if isinstance(annotations, os.PathLike) else split_typed(annotations)
        if first in _LAYOUTS:
            given = {"format": first}
        elif _is_json(first):
            given = {"format": "coco", "file": first}
        else:
            raise SourceError(f"annotations: got {os.fspath(annotations)!r}; accepted: {ACCEPTED}")
        if twice := given.keys() & options.keys():
            raise SourceError(f"annotations: got {min(twice)}= after {first!r}, which says it; leave one out")
        given |= options
    else:
        raise TypeError(f"annotations: got {annotations!r}; accepted: {ACCEPTED}")
    if not isinstance(given["format"], str) or given["format"] not in _LAYOUTS:
        raise SourceError(f"annotations: got {annotations!r}; accepted: {ACCEPTED}")
    return given


def _coco(folder: Location, options: dict[str, Any], on_error: str, classes: Sequence[str] | None) -> Annotated:
    _refuse_classes(classes, "COCO's files name")
    file = Location.parse(_path("file", options["file"]))
    if not file.is_url:
        # As it is given, or else from the folder on.
        found = next(filter(is_file, (file, place_in(folder, file.address()))), None)
        if found is None:
            raise SourceError(f"annotations: no file {file}, neither here nor in {folder}")
        file = found
    return open_coco(folder, file, _mask(options), _flag("ignored", options), on_error)


def _voc(folder: Location, options: dict[str, Any], on_error: str, classes: Sequence[str] | None) -> Annotated:
    split = None if options["split"] is None else _path("split", options["split"])
    return open_voc(folder, split, _flag("ignored", options), on_error, classes)


def _yolo(folder: Location, options: dict[str, Any], on_error: str, classes: Sequence[str] | None) -> Annotated:
    split = None if options["split"] is None else _path("split", options["split"])
    points = check_points(options["keypoints"], "annotations: keypoints")
    return open_yolo(folder, split, _mask(options), points, on_error, classes)


def _masks(folder: Location, options: dict[str, Any], on_error: str, classes: Sequence[str] | None) -> Annotated:
    images, masks = (_path(name, options[name]) for name in ("images", "masks"))
    return open_masks(folder, images, masks, on_error, classes)


def _mask(options: dict[str, Any]) -> str | None:
    mask = options["mask"]
    if mask not in MASKS:
        raise SourceError(
            f"annotations: mask: got {mask!r}; accepted: 'instances', 'classes', 'each', None for no mask"
        )
    return None if mask is None else str(mask)


def _flag(name: str, options: dict[str, Any]) -> bool:
    if not isinstance(options[name], bool):
        raise SourceError(f"annotations: {name}: got {options[name]!r}; accepted: True, False")
    return bool(options[name])


def _path(name: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise SourceError(f"annotations: {name}: got {value!r}; accepted: a path")
    return str(os.fspath(value))


def _is_json(text: str | os.PathLike[str]) -> bool:
    return any(name.lower().endswith(".json") for name in Location.parse(text).names)


def _refuse_classes(classes: Sequence[str] | None, who: str) -> None:
    if classes is not None:
        raise SourceError(f"classes: {who} their classes; leave it out")


_LAYOUTS = {
    "coco": Layout(_coco, {"file": None, "mask": None, "ignored": False}),
    "voc": Layout(_voc, {"split": None, "ignored": False}),
    "yolo": Layout(_yolo, {"split": None, "mask": None, "keypoints": None}),
    "masks": Layout(_masks, {"images": "images", "masks": "masks"}),
}
