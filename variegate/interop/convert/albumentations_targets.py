"""``bbox_params``, ``keypoint_params`` and ``additional_targets`` of a composition, which are ``vg.Targets`` here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from variegate.checks import number
from variegate.interop.convert.albumentations_arguments import Arguments
from variegate.interop.convert.report import Node
from variegate.targets.settings import KEYS, Targets

# Format of boxes here, and whether they are shares of the image's sides.
_FORMATS = {
    "coco": ("xywh", False),
    "pascal_voc": ("xyxy", False),
    "albumentations": ("xyxy", True),
    "yolo": ("cxcywh", True),
    "cxcywh": ("cxcywh", False),
}
# Default options of BboxParams and KeypointParams, with the names of both versions.
_SHARED: dict[str, Any] = {"coord_format": None, "format": None, "label_fields": (), "check_each_transform": True}
_BOX_OPTIONS: dict[str, Any] = _SHARED | {
    "bbox_type": "hbb",
    "min_area": 0.0,
    "min_visibility": 0.0,
    "min_width": 0.0,
    "min_height": 0.0,
    "clip_bboxes_on_input": False,
    "clip": False,
    "filter_invalid_bboxes": False,
    "max_accept_ratio": None,
    "clip_after_transform": True,
}
_POINT_OPTIONS: dict[str, Any] = _SHARED | {"remove_invisible": True, "angle_in_degrees": True, "label_mapping": {}}
_IGNORED = "check_each_transform angle_in_degrees"


def target_kinds(described: Any) -> frozenset[str]:
    """Targets that a composition describes. ``format`` is the name of ``coord_format`` in version 2.0."""
    kinds: set[str] = set()
    if isinstance(described, Mapping):
        if described.get("bbox_params"):
            kinds.add("boxes")
        if points := described.get("keypoint_params"):
            kinds.add("keypoints")
            if isinstance(points, Mapping) and "format" in points:
                kinds.add("keypoints-2.0")
    return frozenset(kinds)


def targets_of(node: Node, described: Mapping[str, Any]) -> Targets | None:
    """None if the composition describes images only. Raises ConversionError for options without a counterpart."""
    boxes, points, others = (described.get(name) for name in ("bbox_params", "keypoint_params", "additional_targets"))
    if not (boxes or points or others):
        return None
    options = _read_boxes(_options(node, "bbox_params", boxes, _BOX_OPTIONS)) if boxes else {}
    if points:
        _check_points(_options(node, "keypoint_params", points, _POINT_OPTIONS))
        if options.get("normalized"):
            node.add_difference(
                "keypoint_params: vg.Targets(normalized=True) is of key points too: shares of the sides"
            )
        options["point_origin"] = "center"
    if not isinstance(others or {}, Mapping):
        node.refuse("additional_targets", others, "an object, as to_dict() gives it")
    for name, kind in (others or {}).items():
        if kind != "mask":
            node.refuse(f"additional_targets.{name}", kind, "'mask': one image, with its boxes and key points")
        node.add_difference(f"additional_targets.{name}: here the entry {name!r} of a dict under 'mask'")
    return Targets(**options)


def _options(node: Node, name: str, described: Any, defaults: Mapping[str, Any]) -> Arguments:
    if not isinstance(described, Mapping):
        node.refuse(name, described, "an object, as to_dict() gives it")
    stated = {key: value for key, value in described.items() if value is not None}
    return Arguments(node, stated, defaults, defaults, f"{name}.")


def _read_boxes(params: Arguments) -> dict[str, Any]:
    described_format = params.value("format") or params.value("coord_format")
    if described_format not in _FORMATS:
        params.refuse("coord_format", described_format, "one of " + ", ".join(map(repr, _FORMATS)))
    box_format, normalized = _FORMATS[described_format]
    min_sides = _number(params, "min_width"), _number(params, "min_height")
    if min_sides[0] != min_sides[1] or 0 < min_sides[0] < 1:
        accepted = "the same number of pixels as min_height, which vg.Targets(min_size=) is"
        params.refuse("min_width", min_sides, accepted)
    if params.value("filter_invalid_bboxes"):
        params.add_difference("bbox_params.filter_invalid_bboxes=True: inverted boxes are errors here")
    if not params.value("clip_after_transform"):
        params.add_difference(
            "bbox_params.clip_after_transform=False: boxes are always cut off at their image's edges here"
        )
    clips = [params.value(name) for name in ("clip_bboxes_on_input", "clip")]
    options = {
        "box_format": box_format,
        "normalized": normalized,
        "min_area": _number(params, "min_area"),
        "min_size": min_sides[0],
        "min_visibility": _number(params, "min_visibility", 1.0),
        "clip": any(clips),
        "per_box": _read_label_fields(params),
    }
    params.finish(_IGNORED)
    return options


def _number(params: Arguments, name: str, high: float = np.inf) -> float:
    return float(number(name, params.value(name), 0.0, high, error=params.error))


def _read_label_fields(params: Arguments) -> tuple[str, ...]:
    """Fields with an entry per box besides "labels"; a field "label" is "labels" here."""
    names: Any = params.value("label_fields")
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        params.refuse("label_fields", names, "a list of names")
    fields = {"labels" if name == "label" else name for name in names}
    if len(fields) < len(names) or fields & set(KEYS) - {"labels"}:
        accepted = f"different names, none of {', '.join(map(repr, KEYS))} but 'labels'"
        params.refuse("label_fields", names, accepted)
    if "label" in names:
        params.add_difference(f"bbox_params.label_fields={names}: labels of boxes are under 'labels' here")
    return tuple(name for name in names if name not in ("label", "labels"))


def _check_points(params: Arguments) -> None:
    described_format = params.value("format") or params.value("coord_format")
    if described_format != "xy":
        params.refuse("coord_format", described_format, "'xy'")
    if params.value("label_fields"):
        params.refuse("label_fields", "some", "None: key points that are dropped keep no list of their own here")
    if params.value("remove_invisible"):
        params.add_difference(
            "keypoint_params.remove_invisible=True: points outside keep their place, and visibility 0"
        )
    if params.value("label_mapping"):
        params.refuse("label_mapping", "some", "none: points keep their numbers when images are flipped")
    params.finish(_IGNORED)
