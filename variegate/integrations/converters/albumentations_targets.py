"""What an Albumentations ``Compose`` says of boxes, key points and masks, as ``vg.Targets``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from variegate.checks import number
from variegate.integrations.converters.report import ConversionError, Place, plain
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


class _Params:
    """The entries of ``bbox_params`` or ``keypoint_params``, taken one by one."""

    def __init__(self, place: Place, name: str, given: Any) -> None:
        if not isinstance(given, Mapping):
            place.refuse(name, given, "an object, as to_dict() gives it")
        self._place, self._name = place, name
        self._given = {key: plain(value) for key, value in given.items() if value is not None}

    def take(self, names: str, default: Any = None) -> Any:
        found = [self._given.pop(name) for name in names.split() if name in self._given]
        return found[0] if found else default

    def require(self, names: str, accepted: Any, why: str) -> None:
        value = self.take(names, accepted)
        if value != accepted:
            self.refuse(names.split()[0], value, f"{accepted!r}: {why}")

    def refuse(self, entry: str, got: Any, accepted: str) -> NoReturn:
        self._place.refuse(f"{self._name}.{entry}", got, accepted)

    def differs(self, entry: str, got: Any, how: str) -> None:
        self._place.differs(f"{self._name}.{entry}", got, how)

    def number(self, name: str, high: float = np.inf) -> float:
        def refused(name: str, got: object, accepted: str) -> Exception:
            return ConversionError(self._place.argument(f"{self._name}.{name}"), got, accepted)

        return float(number(name, self.take(name, 0.0), 0.0, high, error=refused))

    def names(self, name: str) -> tuple[str, ...]:
        """Those of keys that samples may hold beside their own."""
        found = self.take(name, ())
        if not isinstance(found, tuple) or not all(isinstance(key, str) for key in found):
            self.refuse(name, found, "a list of names")
        own = set(found) & set(KEYS) - {"labels"}
        if own or len(set(found)) < len(found):
            self.refuse(name, found, f"different names, none of {', '.join(map(repr, KEYS))} but 'labels'")
        return found

    def check_all_taken(self) -> None:
        for entry, value in self._given.items():
            self.refuse(entry, value, "a description without it: nothing here means the same")


def targets_of(place: Place, described: Mapping[str, Any]) -> Targets | None:
    """None where the composition speaks of images alone. Raises ConversionError for what nothing here means."""
    if not any(described.get(name) for name in _OF_COMPOSE):
        return None
    options: dict[str, Any] = {}
    if boxes := described.get("bbox_params"):
        options |= _of_boxes(_Params(place, "bbox_params", boxes))
    if points := described.get("keypoint_params"):
        _check_points(_Params(place, "keypoint_params", points))
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


def _of_boxes(params: _Params) -> dict[str, Any]:
    written = params.take("coord_format format")
    if written not in _FORMATS:
        params.refuse("coord_format", written, "one of " + ", ".join(map(repr, _FORMATS)))
    box_format, normalized = _FORMATS[written]
    params.require("bbox_type", "hbb", "boxes with angles are of another kind there")
    params.require("max_accept_ratio", None, "no box is dropped for its shape here")
    least = params.number("min_width"), params.number("min_height")
    if least[0] != least[1] or 0 < least[0] < 1:
        params.refuse("min_width", least, "the same number of pixels as min_height, which vg.Targets(min_size=) is")
    if params.take("filter_invalid_bboxes", False):
        params.differs("filter_invalid_bboxes", True, "inverted boxes are errors here")
    if not params.take("clip_after_transform", True):
        params.differs("clip_after_transform", False, "boxes are always cut off at their image's edges here")
    params.take("check_each_transform")
    options = {
        "box_format": box_format,
        "normalized": normalized,
        "min_area": params.number("min_area"),
        "min_size": least[0],
        "min_visibility": params.number("min_visibility", 1.0),
        "clip": bool(params.take("clip_bboxes_on_input clip", False)),
        "per_box": tuple(name for name in params.names("label_fields") if name != "labels"),
    }
    params.check_all_taken()
    return options


def _check_points(params: _Params) -> None:
    written = params.take("coord_format format")
    if written != "xy":
        params.refuse("coord_format", written, "'xy'")
    if params.take("label_fields", ()):
        params.refuse("label_fields", "some", "None: key points that are dropped keep no list of their own here")
    if params.take("remove_invisible", True):
        how = "points that leave the image stay in their place of the list; those [P, 3] get visibility 0"
        params.differs("remove_invisible", True, how)
    for name in ("angle_in_degrees", "check_each_transform"):
        params.take(name)
    if params.take("label_mapping", {}):
        params.refuse("label_mapping", "some", "none: points keep their numbers when images are flipped")
    params.check_all_taken()
