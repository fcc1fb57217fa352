"""Arguments of an Albumentations transform, under AlbumentationsX's names, read into the values that rules use.

``defaults/`` has the default arguments of all classes, as ``to_dict()`` of each version describes them. An argument
that a rule does not use must have its default.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from variegate.interop.convert.report import ConversionError, Node, plain

Pair = tuple[float, float]
Values = Mapping[str, Any]

VERSIONS = ("albumentationsx-2.5.1", "albumentations-2.0.8")
# Arguments without an effect on images, masks, boxes and key points, or within the difference that resizes report.
_IGNORED = {
    "__class_fullname__",
    "p",
    "transpose_mask",
    "strict",
    "area_for_downscale",
    "keypoint_remapping_method",
    "fill_mask",  # of a transform that fills nothing
}
# AlbumentationsX's names of arguments where the rule "limit -> range" does not give them.
_CURRENT_NAMES = {
    "limit": "angle_range",
    "shift_limit": "shift_range_x shift_range_y",
    "shift_range": "shift_range_x shift_range_y",
    "ensure_safe_range": "ensure_safe_output",
}
# Arguments besides ``*_range`` that are a range if their default is a range.
_RANGES = ("multiplier", "scale", "ratio", "rotate")
# By cv2's codes.
_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "area", "lanczos", "bilinear", "nearest")
_BORDERS = ("constant", "edge", "symmetric", "wrap", "reflect")


@functools.cache
def library_defaults(version: str) -> Mapping[str, Values]:
    """Default arguments of the classes of a version, by their names."""
    path = Path(__file__).parent / "defaults" / f"{version}.json"
    described = json.loads(path.read_text(encoding="utf-8"))
    return {name: {key: plain(value) for key, value in defaults.items()} for name, defaults in described.items()}


class Arguments:
    """The arguments of a transform, completed by defaults, each under its name in AlbumentationsX.

    ``described_names``: the names in the description. ``is_older``: some are names of Albumentations 2.0.
    """

    def __init__(self, node: Node, described: Values, newer: Values, older: Values, prefix: str = "") -> None:
        self.node = node
        self.described_names = described.keys()
        self.is_older = not newer or bool(described.keys() - newer.keys() - _IGNORED)
        self._prefix = prefix
        names = _CURRENT_NAMES | {name: _current_name(name, newer) for name in older}
        self._defaults = _renamed(older if self.is_older else newer, names)
        values = _renamed({name: plain(value) for name, value in described.items()}, names)
        for name, value in values.items():
            if value is not None and name not in self._defaults.keys() | _IGNORED:
                self.refuse(name, value, "arguments of Albumentations 2.0 or later that have a counterpart here")
        self._values = {**self._defaults, **values}
        self._unused = self._values.keys() - _IGNORED

    def refuse(self, name: str, got: object, accepted: str) -> NoReturn:
        raise self.error(name, got, accepted)

    def error(self, name: str, got: object, accepted: str) -> ConversionError:
        return self.node.error(self._prefix + name, got, accepted)

    def add_difference(self, difference: str, targets: str = "") -> None:
        """Report a difference, or one of targets if the pipeline describes any of ``targets``."""
        if not targets or self.node.report.targets & set(targets.split()):
            self.node.add_difference(difference)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def read(self, name: str) -> Any:
        """The value of an argument, as rules use it."""
        reader = _READERS.get(name)
        return reader(self) if reader else self.value(name)

    def value(self, name: str) -> Any:
        value = self._values[name]
        self._unused = self._unused - {name}
        default = self._defaults.get(name)
        is_range = name.endswith("_range") or (name in _RANGES and isinstance(default, tuple))
        if is_range and value is not None and not (isinstance(value, tuple) and len(value) == 2):
            self.refuse(name, value, "a pair (low, high)")
        return value

    def read_warp(self) -> dict[str, Any]:
        """Interpolation and border of a map of coordinates."""
        return {
            "interpolation": self.read("interpolation"),
            "fill": self.read("fill"),
            "padding_mode": self.read("border_mode"),
        }

    def finish(self, ignored: str = "") -> None:
        """Refuse arguments that no rule used and that do not have their default."""
        for name in sorted(self._unused - set(ignored.split())):
            value, default = self._values[name], self._defaults.get(name)
            if value is None or value == default:
                continue
            if name == "mask_interpolation":
                self.add_difference("masks show the nearest pixel, as with mask_interpolation=0")
            elif name == "rotate_method":
                self.add_difference("boxes hold the corners of the rotated box: up to 1.41 times as wide", "boxes")
            else:
                self.refuse(name, value, repr(default))

    # -- readers -------------------------------------------------------------------------------------------------

    def filter_name(self, code: Any, name: str = "interpolation") -> str:
        if type(code) is not int or not 0 <= code < len(_INTERPOLATIONS):
            self.refuse(name, code, "a code of cv2 from 0 to 6")
        return _INTERPOLATIONS[code]

    def resize_filter(self, kind: str) -> str:
        """The filter that is nearest to cv2's."""
        differences = {
            "area": "2 levels on average: a triangle instead of the mean of its pixels",
            "nearest": "up to half of the reduction in pixels: another nearest pixel",
        }
        antialiased = "5 levels on average where a photo shrinks to a third: antialiased here"
        self.add_difference(differences.get(kind, antialiased))
        return "bilinear" if kind == "area" else kind

    def _read_interpolation(self) -> str:
        kind = self.filter_name(self.value("interpolation"))
        if self._values.get("keep_size") is False:
            return kind
        if "border_mode" in self._values and "percent" not in self._values:  # a map of coordinates
            if kind == "bicubic":
                self.add_difference("1.1 levels on average: cubic weights with a = -1 here, -0.75 there")
            return "bilinear" if kind == "area" else kind
        self.add_difference(
            "0.125 pixels of key points at a factor of 0.75: they are multiplied by it there", "keypoints-2.0"
        )
        self.add_difference("4 % of a mask's pixels where it shrinks to half: another nearest pixel")
        return self.resize_filter(kind)

    def _read_border(self) -> str:
        mode = self.value("border_mode")
        if type(mode) is not int or not 0 <= mode < len(_BORDERS):
            accepted = ", ".join(f"{code} ({name})" for code, name in enumerate(_BORDERS))
            self.refuse("border_mode", mode, accepted)
        if _BORDERS[mode] in ("symmetric", "reflect"):
            self.add_difference(
                "boxes and key points are not mirrored into the border: up to 9 for one", "boxes keypoints"
            )
        return _BORDERS[mode]

    def _read_fill(self) -> Any:
        """The fill of images. Notes that of masks, which is an option of ``vg.Targets``."""
        value = self._values.get("fill_mask")
        levels = set(value) if isinstance(value, tuple) else {value or 0}
        if len(levels) != 1 or not all(isinstance(level, (int, float)) and level == int(level) for level in levels):
            self.refuse("fill_mask", value, "a whole number, as masks have one channel")
        mask_fill = int(levels.pop())
        self.node.report.mask_fills[self.node.path] = mask_fill
        if mask_fill:
            targets = f"targets=vg.Targets(mask_fill={mask_fill}), which vg.targets_from_albumentations returns"
            self.add_difference(f"masks are filled with 0 instead of {mask_fill} without {targets}")
        return _rounded(self.value("fill"))

    def _read_erased(self) -> Any:
        """The fill of an erased area, or "random"."""
        if (mask_fill := self._values.get("fill_mask")) is not None:
            self.refuse("fill_mask", mask_fill, "None: masks are not erased here")
        self.add_difference("boxes do not change, and end where holes span them there; 80 % move by a pixel", "boxes")
        value = self.value("fill")
        if isinstance(value, str) and value != "random":
            self.refuse("fill", value, "a level, three of them, or 'random'")
        return value if value == "random" else _rounded(value)

    def _read_size(self) -> Any:
        return self.value("size") if "size" in self._values else (self.value("height"), self.value("width"))

    def _read_kernels(self) -> tuple[int, ...]:
        """Sides of kernels, the next odd ones; 0 stands for a side that follows from sigma."""
        return tuple(int(side) | 1 if side else 0 for side in self.value("blur_range"))

    def _read_hue(self, name: str) -> Pair:
        ends: Pair = self.value(name)
        if any(ends):
            self.add_difference("10 levels at most: hues have 256 steps here, 180 there")
        return ends


def _renamed(values: Values, names: Mapping[str, str]) -> dict[str, Any]:
    """Rename ``values`` by ``names``; one name may map to several."""
    return {current: value for name, value in values.items() for current in names.get(name, name).split()}


def _current_name(name: str, newer: Values) -> str:
    """AlbumentationsX's name of an argument of Albumentations 2.0."""
    candidates = (name, _CURRENT_NAMES.get(name, ""), name.replace("_limit", "_range"), f"{name}_range")
    return next((candidate for candidate in candidates if candidate in newer), name)


def _rounded(value: Any) -> Any:
    return tuple(map(round, value)) if isinstance(value, tuple) else round(value or 0)


_READERS: Mapping[str, Callable[[Arguments], Any]] = {
    "interpolation": Arguments._read_interpolation,
    "border_mode": Arguments._read_border,
    "fill": Arguments._read_fill,
    "erased": Arguments._read_erased,
    "drop_value": lambda arguments: _rounded(arguments.value("drop_value")),
    "size": Arguments._read_size,
    "warp": Arguments.read_warp,
    "blur_range": Arguments._read_kernels,
    "hue_range": lambda arguments: arguments._read_hue("hue_range"),
    "hue_shift_range": lambda arguments: arguments._read_hue("hue_shift_range"),
}
