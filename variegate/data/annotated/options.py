"""Options of ``annotations=``: one table with the options of every layout, and their check."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from variegate.checks import did_you_mean
from variegate.data.annotated.values import DISPLAYED, MOST_POINTS, STORED
from variegate.data.base import SourceError
from variegate.errors import short_repr

_TYPED = re.compile(r"\s*([a-z_]+)\s*=(.*)", re.DOTALL)
_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False, "yes": True, "no": False}
_SIDES = re.compile(r"(\d+)\s*x\s*(\d+)")
BOX_FORMATS = ("xyxy", "xywh", "cxcywh")
RECORD_NAMES = ("boxes", "labels", "keypoints")


class Option(NamedTuple):
    """The accepted values in words, the test for them, and the default."""

    accepted: str
    fits: Callable[[Any], bool]
    default: Any = None


def _one_of(*choices: Any) -> Option:
    """The first choice is the default."""
    return Option(", ".join(map(repr, choices)), lambda value: value in choices, choices[0])


def _optional(accepted: str, fits: Callable[[Any], bool]) -> Option:
    return Option(accepted, lambda value: value is None or fits(value))


def is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and bool(os.fspath(value))


def is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_extension(value: Any) -> bool:
    return is_name(value) and bool(value.strip(".")) and "/" not in value and os.sep not in value


def _are_names(value: Any) -> bool:
    return is_name(value) or (isinstance(value, (list, tuple)) and all(map(is_name, value)))


def _is_points(value: Any) -> bool:
    """[number of key points, their columns], as YOLO's ``kpt_shape``."""
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2 and all(type(one) is int for one in value)
    return is_pair and 1 <= value[0] <= MOST_POINTS and value[1] in (2, 3)


POINTS = _optional(f"[number of points, 2 or 3], up to {MOST_POINTS:,} points", _is_points)
_FLAG = Option("True, False", lambda value: isinstance(value, bool), False)
_PATH = _optional("a path", is_path)
_COLUMN = _optional("the name of a column", is_name)
_EXTENSION = _optional("what follows the key, as 'json', 'mask.png'", _is_extension)
_MASKS = {
    "mask": Option(
        "'instances', 'classes', 'each', None for no mask",
        lambda value: value in (None, "instances", "classes", "each"),
    ),
    # In masks, objects without an outline are the filled box, the ignored value in it, or nothing.
    "unoutlined": _one_of("fill", "ignore", "background"),
}
_EXIF = {
    "exif": Option(
        "'pixels' for the photo as displayed, 'stored' for its pixels before EXIF turns them",
        lambda value: value in (None, DISPLAYED, STORED),
    )
}
# How a record of objects is read (``records.ObjectFields``).
FIELDS = {
    **dict.fromkeys(RECORD_NAMES, _optional("a name, or None for the usual ones", is_name)),
    "per_box": Option("a list of names", _are_names, ()),
    "box_format": _one_of(None, *BOX_FORMATS),
    "normalized": _FLAG,
    "point_origin": _one_of("corner", "center"),
    "ignored": _FLAG,
    **_EXIF,
}
OPTIONS: dict[str, dict[str, Option]] = {
    "coco": {"file": Option("a path", is_path), **_MASKS, "ignored": _FLAG, **_EXIF},
    "voc": {"split": _PATH, "ignored": _FLAG, **_EXIF},
    "yolo": {"split": _PATH, **_MASKS, "keypoints": POINTS, **_EXIF},
    "masks": {"images": Option("a path", is_path, "images"), "masks": Option("a path", is_path, "masks"), **_EXIF},
    "columns": {**dict.fromkeys(("image", "objects", "mask"), _COLUMN), **FIELDS},
    "members": {**dict.fromkeys(("objects", "rows", "mask"), _EXTENSION), "points": POINTS, **FIELDS},
}


def check_options(layout: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a layout, defaults for those not given; paths as text. Raises SourceError."""
    known = OPTIONS[layout]
    if unknown := [name for name in given if name not in known and name != "format"]:
        accepted = f"{', '.join(known)}{did_you_mean(unknown[0], known)}"
        raise SourceError(f"annotations: got the option {unknown[0]!r}; accepted: {accepted}")
    values = {}
    for name, option in known.items():
        value = given.get(name, option.default)
        if not option.fits(value):
            raise SourceError(f"annotations: {name}: got {short_repr(value)}; accepted: {option.accepted}")
        values[name] = os.fspath(value) if isinstance(value, os.PathLike) else value
    if values.get("unoutlined") == "ignore" and values["mask"] != "classes":
        got = f"got 'ignore' with mask={values['mask']!r}"
        raise SourceError(f"annotations: unoutlined: {got}; accepted: 'fill', 'background', or mask='classes'")
    return values


def split_typed(text: str) -> tuple[str, dict[str, Any]]:
    """Parse ``yolo,split=train,mask=each`` -> the layout or file, and the options: text, except ``none``, ``true``,
    ``false`` (``yes``, ``no``), and two numbers ``17x3``, a list. A comma that no option follows belongs to the text
    before it, because names of files may hold some."""
    first, *rest = text.split(",")
    options: dict[str, Any] = {}
    last = None
    for part in rest:
        if found := _TYPED.fullmatch(part):
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
