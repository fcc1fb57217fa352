"""Boxes, key points and masks of an Albumentations ``Compose``, as ``vg.Targets``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from variegate.checks import number
from variegate.integrations.converters.albumentations_arguments import Arguments
from variegate.integrations.converters.report import Place
from variegate.targets.settings import KEYS, Targets

# Of boxes: our format, and whether they are shares of the image's sides.
_FORMATS = {
    "coco": ("xywh", False),
    "pascal_voc": ("xyxy", False),
    "albumentations": ("xyxy", True),
    "yolo": ("cxcywh", True),
    "cxcywh": ("cxcywh", False),
}
_OF_COMPOSE = ("bbox_params", "keypoint_params", "additional_targets")


def targets_of(place: Place, described: Mapping[str, Any]) -> Targets | None:
    """None where the composition speaks of images alone. Raises ConversionError for what nothing here means."""
    if not any(described.get(name) for name in _OF_COMPOSE):
        return None
    options: dict[str, Any] = {}
    if boxes := described.get("bbox_params"):
        options |= _of_boxes(_arguments(place, "bbox_params", boxes))
    if points := described.get("keypoint_params"):
        _check_points(_arguments(place, "keypoint_params", points))
        if options.get("normalized"):
            how = "vg.Targets(normalized=True) is of key points as well: shares of the image's sides, not pixels"
            place.differs("keypoint_params", None, how)
        options["point_origin"] = "centre"
    others = described.get("additional_targets") or {}
    if not isinstance(others, Mapping):
        place.refuse("additional_targets", others, "an object, as to_dict() gives it")
    for name, kind in others.items():
        if kind != "mask":
            place.refuse(f"additional_targets.{name}", kind, "'mask': one image, with its boxes and key points")
        place.differs(f"additional_targets.{name}", kind, f"here the entry {name!r} of a dict under 'mask'")
    return Targets(**options)


def _arguments(place: Place, name: str, described: Any) -> Arguments:
    if not isinstance(described, Mapping):
        place.refuse(name, described, "an object, as to_dict() gives it")
    return Arguments(place, described, name)


def _of_boxes(params: Arguments) -> dict[str, Any]:
    written = params.take("coord_format format")
    if written not in _FORMATS:
        params.refuse("coord_format", written, "one of " + ", ".join(map(repr, _FORMATS)))
    box_format, normalized = _FORMATS[written]
    params.require("bbox_type", "hbb", why="boxes with angles are of another kind there")
    params.require("max_accept_ratio", None, why="no box is dropped for its shape here")
    least = _number(params, "min_width"), _number(params, "min_height")
    if least[0] != least[1] or 0 < least[0] < 1:
        params.refuse("min_width", least, "the same number of pixels as min_height, which vg.Targets(min_size=) is")
    if params.take("filter_invalid_bboxes", False):
        params.differs("inverted boxes are errors here", "filter_invalid_bboxes", True)
    if not params.take("clip_after_transform", True):
        params.differs("boxes are always cut off at their image's edges here", "clip_after_transform", False)
    params.take("check_each_transform")
    options = {
        "box_format": box_format,
        "normalized": normalized,
        "min_area": _number(params, "min_area"),
        "min_size": least[0],
        "min_visibility": _number(params, "min_visibility", 1.0),
        "clip": bool(params.take("clip_bboxes_on_input clip", False)),
        "per_box": tuple(name for name in _names(params, "label_fields") if name != "labels"),
    }
    params.check_all_taken()
    return options


def _number(params: Arguments, name: str, high: float = np.inf) -> float:
    return float(number(name, params.take(name, 0.0), 0.0, high, error=params.error))


def _names(params: Arguments, name: str) -> tuple[str, ...]:
    """Keys of entries that samples may hold besides their own."""
    found: Any = params.take(name, ())
    if not isinstance(found, tuple) or not all(isinstance(key, str) for key in found):
        params.refuse(name, found, "a list of names")
    if set(found) & set(KEYS) - {"labels"} or len(set(found)) < len(found):
        params.refuse(name, found, f"different names, none of {', '.join(map(repr, KEYS))} but 'labels'")
    return found


def _check_points(params: Arguments) -> None:
    written = params.take("coord_format format")
    if written != "xy":
        params.refuse("coord_format", written, "'xy'")
    if params.take("label_fields", ()):
        params.refuse("label_fields", "some", "None: key points that are dropped keep no list of their own here")
    if params.take("remove_invisible", True):
        how = "points that leave the image stay in their place of the list; those [P, 3] get visibility 0"
        params.differs(how, "remove_invisible", True)
    for name in ("angle_in_degrees", "check_each_transform"):
        params.take(name)
    if params.take("label_mapping", {}):
        params.refuse("label_mapping", "some", "none: points keep their numbers when images are flipped")
    params.check_all_taken()
