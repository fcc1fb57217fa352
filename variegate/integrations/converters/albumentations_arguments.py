"""Arguments of Albumentations: of a transform, each of which a rule has to take, and of a ``Compose``, whose boxes, key
points and masks are ``vg.Targets``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from variegate.checks import number
from variegate.integrations.converters.report import ConversionError, Place, plain
from variegate.ops.base import Transform
from variegate.targets.settings import KEYS, Targets

# Arguments without an effect on images, masks, boxes and key points.
_WITHOUT_EFFECT = {"p", "always_apply", "transpose_mask", "mask_params", "__class_fullname__", "strict"}
# The effect of these is within what ``filter_for`` and the deformations report.
_WITHIN_REPORTED = {"area_for_downscale", "keypoint_remapping_method"}
_MASK_FILL = "fill_mask mask_value mask_fill_value"
# cv2's codes.
_INTERPOLATIONS = {0: "nearest", 1: "bilinear", 2: "bicubic", 3: "area", 4: "lanczos", 5: "bilinear", 6: "nearest"}
_BORDERS = {0: "constant", 1: "edge", 2: "symmetric", 3: "wrap", 4: "reflect"}
_MIRRORED = (2, 4)

Range = tuple[float, float]


class Arguments:
    """Entries of a description besides its class and its probability; or those of ``entry``, such as "bbox_params"."""

    def __init__(self, place: Place, described: Mapping[str, Any], entry: str = "") -> None:
        self.place, self._prefix = place, f"{entry}." if entry else ""
        self.build = place.build
        self._left = {
            name: plain(value)
            for name, value in described.items()
            if (value is not None if entry else name not in _WITHOUT_EFFECT | _WITHIN_REPORTED)
        }

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, names: str, default: Any = None) -> Any:
        """The value of the first of ``names`` (separated by blanks, today's first) that is there, else ``default``."""
        values = [self._left.pop(name) for name in names.split() if name in self._left]
        return values[0] if values else default

    def take_range(self, names: str, default: Range, centre: float = 0.0) -> Range:
        """A range, for which older versions also write a number: its ends' distance from ``centre``. Refused where the
        default is not as far on both sides, as there a number means something else."""
        value = self.take(names, default)
        if not isinstance(value, tuple) and default[0] + default[1] != 2 * centre:
            self.refuse(names.split()[0], value, "a pair (low, high)")
        return value if isinstance(value, tuple) else (centre - value, centre + value)

    def require(self, names: str, *accepted: Any, why: str = "") -> None:
        """Each of ``names`` that is there must be one of ``accepted``."""
        for name in names.split():
            if (value := self.take(name, accepted[0])) not in accepted:
                self.refuse(name, value, " or ".join(map(repr, accepted)) + (f": {why}" if why else ""))

    def refuse(self, name: str, got: object, accepted: str) -> NoReturn:
        raise self.error(name, got, accepted)

    def error(self, name: str, got: object, accepted: str) -> ConversionError:
        return ConversionError(self.place.argument(self._prefix + name), got, accepted)

    def differs(self, how: str, name: str = "", got: object = None) -> None:
        """The argument ``name``, or the transform as a whole, becomes something close."""
        self.place.differs(self._prefix + name, got, how)

    def differs_for(self, targets: str, how: str, name: str = "", got: object = None) -> None:
        """A difference of boxes or key points, reported if the pipeline describes any of ``targets``."""
        if self.place.report.targets & set(targets.split()):
            self.differs(how, name, got)

    def fill_masks(self) -> None:
        """Masks show the fill that ``vg.Targets`` has; ``targets_from_albumentations`` returns it."""
        value = self.take(_MASK_FILL)
        levels = set(value) if isinstance(value, tuple) else {value or 0}
        if len(levels) != 1 or not all(isinstance(level, (int, float)) and level == int(level) for level in levels):
            self.refuse("fill_mask", value, "a whole number, as masks have one channel")
        fill = int(levels.pop())
        self.place.report.mask_fills[self.place.path] = fill
        if fill:
            how = f"give targets=vg.Targets(mask_fill={fill}), which vg.targets_from_albumentations returns; without "
            self.differs(how + "it masks are filled with 0 here", "fill_mask", fill)

    def keep_masks(self) -> None:
        """Masks do not change where the image is erased."""
        value = self.take(_MASK_FILL)
        if value is not None:
            self.refuse("fill_mask", value, "None: masks are not erased here")

    def keep_boxes(self) -> None:
        how = "boxes do not change here; there they end where holes span them, and 80 % move by a pixel up and left"
        self.differs_for("boxes", how)

    def interpolation(self, name: str = "interpolation", code: Any = None) -> str:
        """cv2's of ``code``, or of the argument."""
        code = self.take(name, 1) if code is None else code
        if code not in _INTERPOLATIONS:
            self.refuse(name, code, "a code of cv2 from 0 to 6")
        return _INTERPOLATIONS[code]

    def warped(self) -> dict[str, Any]:
        """Interpolation, border and fill of a geometric operation."""
        kind = self.interpolation()
        if kind == "area":
            kind = "bilinear"  # of cv2's warps
        if kind == "bicubic":
            self.differs("cubic weights with a = -1 here (Pillow), -0.75 there (cv2)", "interpolation", 2)
        return {"interpolation": kind, **self.bordered()}

    def resampled(self) -> dict[str, Any]:
        """The filter that comes nearest to cv2's, with what differs."""
        self.resized_points()
        how = "masks show the pixel that holds a position here, its upper left neighbor there"
        self.differs(f"{how}: 4 % of a mask's pixels where it shrinks to half")
        return {"interpolation": self.filter_for("interpolation", self.interpolation())}

    def filter_for(self, argument: str, kind: str) -> str:
        how = (
            "images that shrink are antialiased here, as Pillow does, and not by cv2: 5 of 255 levels on average "
            "where a photo shrinks to a third"
        )
        if kind == "area":
            how = "a triangle of twice the reduction here, the mean of its pixels there: 2 levels on average"
        elif kind == "nearest":
            how = "Pillow's nearest pixel here, which is up to half of the reduction away from cv2's"
        self.differs(how, argument, kind)
        return "bilinear" if kind == "area" else kind

    def resized_points(self) -> None:
        how = "key points are multiplied by the factor in version 2.0, and move with their pixel here: by half of 1 - "
        self.differs_for("keypoints-2.0", how + "the factor, 0.125 pixels at a factor of 0.75")

    def filled(self) -> dict[str, Any]:
        """A fill, whole levels."""
        self.fill_masks()
        value = self.take("fill value fill_value", 0)
        return {"fill": tuple(map(round, value)) if isinstance(value, tuple) else round(value) if value else 0}

    def bordered(self) -> dict[str, Any]:
        """A border, unless it is a color, which is the default here."""
        mode = self.take("border_mode", 0)
        if mode not in _BORDERS:
            self.refuse("border_mode", mode, ", ".join(f"{code} ({name})" for code, name in _BORDERS.items()))
        if mode in _MIRRORED:
            how = "boxes and key points are those of the object itself here; there each also has its mirrored images, "
            self.differs_for("boxes keypoints", how + "up to 9 for one", "border_mode", mode)
        border = {"padding_mode": _BORDERS[mode]} if mode else {}
        return {**border, **self.filled()}

    def check_all_taken(self) -> None:
        """Refuse arguments that no rule took, and report those of masks and boxes that apply to every transform."""
        self.take(_MASK_FILL)  # of a transform without a border
        if self.take("mask_interpolation", 0) not in (0, 6, None):
            self.differs("masks show the nearest pixel here, which is mask_interpolation=0", "mask_interpolation")
        if self.take("rotate_method", "largest_box") != "largest_box":
            how = "boxes hold the corners of the rotated box here: up to 1.41 times as wide as around its ellipse"
            self.differs_for("boxes", how, "rotate_method", "ellipse")
        for name, value in self._left.items():
            if value is not None:
                self.refuse(name, value, "a description without it: nothing here means the same")


Rule = Callable[[Arguments], Transform | None]


class Argument(NamedTuple):
    """An argument's ``names`` there, older ones last, and what becomes of its value; of two "a, b" their pair."""

    names: str
    default: Any = None
    centre: float | None = None  # of a range (``take_range``)
    to: Callable[[Any], Any] | None = None
    is_optional: bool = False  # left out where it is None

    @property
    def called(self) -> str:
        return self.names if "," in self.names else self.names.split()[0]

    def value(self, arguments: Arguments) -> Any:
        if "," in self.names:
            return tuple(arguments.take(name) for name in self.names.split(", "))
        if self.centre is not None:
            value: Any = arguments.take_range(self.names, self.default, self.centre)
        else:
            value = arguments.take(self.names, self.default)
        return value if self.to is None or value is None else self.to(value)


def ranged(names: str, default: Range, centre: float = 0.0, to: Callable[[Any], Any] | None = None) -> Any:
    return Argument(names, default, centre, to)


def odd(sizes: Range) -> tuple[int, int]:
    """Sides of kernels, the next odd ones."""
    return int(sizes[0]) | 1, int(sizes[1]) | 1


def of(
    cls: type[Transform],
    constants: Mapping[str, Any] | None = None,
    *,
    require: Mapping[str, tuple[Any, ...]] | None = None,
    why: str = "",
    ignore: str = "",
    differs: str = "",
    at: str = "",
    also: tuple[Callable[[Arguments], dict[str, Any]], ...] = (),
    **arguments: str | Argument,
) -> Rule:
    """A rule: ``cls`` of ``constants``, of the ``arguments`` by their names there, and of what ``also`` takes.

    ``ignore``: arguments without a meaning here; ``differs``: what is close, of the argument ``at`` or of the whole.
    """
    taken = {name: Argument(one, is_optional=True) if isinstance(one, str) else one for name, one in arguments.items()}
    called = {name: one.called for name, one in taken.items()}

    def rule(given: Arguments) -> Transform:
        for name, accepted in (require or {}).items():
            given.require(name, *accepted, why=why)
        values = {name: one.value(given) for name, one in taken.items()}
        there = {name: value for name, value in values.items() if not (value is None and taken[name].is_optional)}
        for name in ignore.split():
            given.take(name)
        if differs:
            given.differs(differs, at, there.get(at))
        for take in also:
            there |= take(given)
        return given.build(cls, called, **{**(constants or {}), **there})

    return rule


# Of boxes: our format, and whether they are shares of the image's sides.
_FORMATS = {
    "coco": ("xywh", False),
    "pascal_voc": ("xyxy", False),
    "albumentations": ("xyxy", True),
    "yolo": ("cxcywh", True),
    "cxcywh": ("cxcywh", False),
}
_OF_COMPOSE = ("bbox_params", "keypoint_params", "additional_targets")


def kinds_of_targets(described: Any) -> frozenset[str]:
    """Targets that a composition describes. Of version 2.0, "format" is the name of ``coord_format``."""
    if not isinstance(described, Mapping):
        return frozenset()
    kinds = {"boxes"} if described.get("bbox_params") else set()
    points = described.get("keypoint_params")
    if points:
        kinds.add("keypoints")
        if isinstance(points, Mapping) and "format" in points:
            kinds.add("keypoints-2.0")
    return frozenset(kinds)


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
        "per_box": _per_box(params),
    }
    params.check_all_taken()
    return options


def _number(params: Arguments, name: str, high: float = np.inf) -> float:
    return float(number(name, params.take(name, 0.0), 0.0, high, error=params.error))


def _per_box(params: Arguments) -> tuple[str, ...]:
    """Fields with an entry per box besides "labels"; a field "label" is "labels" here."""
    names = _names(params, "label_fields")
    if "label" in names:
        params.differs("labels of boxes are under 'labels' here; 'label' is that of the image", "label_fields", names)
    return tuple(name for name in names if name not in ("label", "labels"))


def _names(params: Arguments, name: str) -> tuple[str, ...]:
    """Keys of entries that samples may hold besides their own."""
    found: Any = params.take(name, ())
    if not isinstance(found, tuple) or not all(isinstance(key, str) for key in found):
        params.refuse(name, found, "a list of names")
    is_ambiguous = "label" in found and "labels" in found
    if is_ambiguous or set(found) & set(KEYS) - {"label", "labels"} or len(set(found)) < len(found):
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
