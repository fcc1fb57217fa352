"""``bbox_params``, ``keypoint_params`` and ``additional_targets`` of a composition, which are ``vg.Targets`` here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from variegate.checks import number
from variegate.interop.convert.albumentations_arguments import Arguments
from variegate.interop.convert.report import Place
from variegate.targets.settings import KEYS, Targets

# Format of boxes here, and whether they are shares of the image's sides.
_FORMATS = {
    "coco": ("xywh", False),
    "pascal_voc": ("xyxy", False),
    "albumentations": ("xyxy", True),
    "yolo": ("cxcywh", True),
    "cxcywh": ("cxcywh", False),
}


def kinds_of_targets(described: Any) -> frozenset[str]:
    """Targets that a composition describes. ``format`` is the name of ``coord_format`` in version 2.0."""
    kinds: set[str] = set()
    if not isinstance(described, Mapping):
        return frozenset()
    if described.get("bbox_params"):
        kinds.add("boxes")
    if points := described.get("keypoint_params"):
        kinds.add("keypoints")
        if isinstance(points, Mapping) and "format" in points:
            kinds.add("keypoints-2.0")
    return frozenset(kinds)


def targets_of(place: Place, described: Mapping[str, Any]) -> Targets | None:
    """None if the composition describes images only. Raises ConversionError for options without a counterpart."""
    boxes = described.get("bbox_params")
    points = described.get("keypoint_params")
    others = described.get("additional_targets") or {}
    if not (boxes or points or others):
        return None
    options: dict[str, Any] = {}
    if boxes:
        options |= _read_boxes(_entry(place, "bbox_params", boxes))
    if points:
        _check_points(_entry(place, "keypoint_params", points))
        if options.get("normalized"):
            shares = "vg.Targets(normalized=True) is of key points as well: shares of the image's sides, not pixels"
            place.differs("keypoint_params", None, shares)
        options["point_origin"] = "centre"
    if not isinstance(others, Mapping):
        place.refuse("additional_targets", others, "an object, as to_dict() gives it")
    for name, kind in others.items():
        if kind != "mask":
            place.refuse(f"additional_targets.{name}", kind, "'mask': one image, with its boxes and key points")
        place.differs(f"additional_targets.{name}", kind, f"here the entry {name!r} of a dict under 'mask'")
    return Targets(**options)


def _entry(place: Place, name: str, described: Any) -> Arguments:
    if not isinstance(described, Mapping):
        place.refuse(name, described, "an object, as to_dict() gives it")
    return Arguments(place, {key: value for key, value in described.items() if value is not None}, name)


def _read_boxes(params: Arguments) -> dict[str, Any]:
    described_format = params.take("coord_format format")
    if described_format not in _FORMATS:
        params.refuse("coord_format", described_format, "one of " + ", ".join(map(repr, _FORMATS)))
    box_format, normalized = _FORMATS[described_format]
    params.require("bbox_type", "hbb", why="boxes with angles are of another kind there")
    params.require("max_accept_ratio", None, why="no box is dropped for its shape here")
    min_sides = _number(params, "min_width"), _number(params, "min_height")
    if min_sides[0] != min_sides[1] or 0 < min_sides[0] < 1:
        accepted = "the same number of pixels as min_height, which vg.Targets(min_size=) is"
        params.refuse("min_width", min_sides, accepted)
    if params.take("filter_invalid_bboxes", False):
        params.note("inverted boxes are errors here", "filter_invalid_bboxes", True)
    if not params.take("clip_after_transform", True):
        params.note("boxes are always cut off at their image's edges here", "clip_after_transform", False)
    params.take("check_each_transform")
    options = {
        "box_format": box_format,
        "normalized": normalized,
        "min_area": _number(params, "min_area"),
        "min_size": min_sides[0],
        "min_visibility": _number(params, "min_visibility", 1.0),
        "clip": bool(params.take("clip_bboxes_on_input clip", False)),
        "per_box": _read_label_fields(params),
    }
    params.finish()
    return options


def _number(params: Arguments, name: str, high: float = np.inf) -> float:
    return float(number(name, params.take(name, 0.0), 0.0, high, error=params.error))


def _read_label_fields(params: Arguments) -> tuple[str, ...]:
    """Fields with an entry per box besides "labels"; a field "label" is "labels" here."""
    names: Any = params.take("label_fields", ())
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        params.refuse("label_fields", names, "a list of names")
    fields = {"labels" if name == "label" else name for name in names}
    if len(fields) < len(names) or fields & set(KEYS) - {"labels"}:
        accepted = f"different names, none of {', '.join(map(repr, KEYS))} but 'labels'"
        params.refuse("label_fields", names, accepted)
    if "label" in names:
        params.note("labels of boxes are under 'labels' here; 'label' is that of the image", "label_fields", names)
    return tuple(name for name in names if name not in ("label", "labels"))


def _check_points(params: Arguments) -> None:
    described_format = params.take("coord_format format")
    if described_format != "xy":
        params.refuse("coord_format", described_format, "'xy'")
    if params.take("label_fields", ()):
        params.refuse("label_fields", "some", "None: key points that are dropped keep no list of their own here")
    if params.take("remove_invisible", True):
        dropped = "points that leave the image stay in their place of the list; those [P, 3] get visibility 0"
        params.note(dropped, "remove_invisible", True)
    params.take("angle_in_degrees")
    params.take("check_each_transform")
    if params.take("label_mapping", {}):
        params.refuse("label_mapping", "some", "none: points keep their numbers when images are flipped")
    params.finish()
