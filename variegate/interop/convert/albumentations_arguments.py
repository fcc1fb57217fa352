"""Arguments of an Albumentations transform: each is taken by the transform's rule, and what remains is refused.

Where AlbumentationsX 2.5 and Albumentations 2.0 have different names, both are given, the former first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from variegate.interop.convert.report import ConversionError, Place, plain
from variegate.ops.base import Transform

# Without an effect on images, masks, boxes and key points, or within the difference that ``resample`` reports.
_IGNORED = ("__class_fullname__", "p", "transpose_mask", "strict", "area_for_downscale", "keypoint_remapping_method")
# cv2's codes.
_INTERPOLATIONS = {0: "nearest", 1: "bilinear", 2: "bicubic", 3: "area", 4: "lanczos", 5: "bilinear", 6: "nearest"}
_BORDERS = {0: "constant", 1: "edge", 2: "symmetric", 3: "wrap", 4: "reflect"}
_MIRRORED = (2, 4)

Pair = tuple[float, float]


class Arguments:
    """The arguments in a description, or in its entry ``entry``, such as "bbox_params"."""

    def __init__(self, place: Place, described: Mapping[str, Any], entry: str = "") -> None:
        self.place = place
        self.build = place.build
        self._prefix = f"{entry}." if entry else ""
        self._remaining = {name: plain(value) for name, value in described.items() if name not in _IGNORED}

    def __contains__(self, name: str) -> bool:
        return name in self._remaining

    def take(self, names: str, default: Any = None) -> Any:
        """The value of the first of ``names`` (separated by spaces) that is described, else ``default``."""
        for name in names.split():
            if name in self._remaining:
                return self._remaining.pop(name)
        return default

    def pair(self, names: str, default: Pair) -> Pair:
        """A range (low, high). A number is refused: Albumentations makes different ranges of it per class."""
        value: Any = self.take(names, default)
        if not isinstance(value, tuple) or len(value) != 2:
            self.refuse(names.split()[0], value, "a pair (low, high)")
        return value[0], value[1]

    def constant(self, name: str, default: Pair) -> float:
        """The number of a range whose ends are equal."""
        low, high = self.pair(name, default)
        if low != high:
            self.refuse(name, (low, high), "equal ends, such as (0, 0)")
        return low

    def require(self, name: str, *accepted: Any, why: str = "") -> None:
        """Refuse values of ``name`` other than ``accepted``, the first of which is the default."""
        value = self.take(name, accepted[0])
        if value not in accepted:
            reason = f": {why}" if why else ""
            self.refuse(name, value, " or ".join(map(repr, accepted)) + reason)

    def refuse(self, name: str, got: object, accepted: str) -> NoReturn:
        raise self.error(name, got, accepted)

    def error(self, name: str, got: object, accepted: str) -> ConversionError:
        return ConversionError(self.place.argument(self._prefix + name), got, accepted)

    def note(self, difference: str, name: str = "", got: object = None) -> None:
        """Report a difference of the argument ``name``, or of the whole transform."""
        self.place.differs(self._prefix + name, got, difference)

    def note_for(self, targets: str, difference: str, name: str = "", got: object = None) -> None:
        """Report a difference of boxes or key points, if the pipeline describes any of ``targets``."""
        if self.place.report.targets & set(targets.split()):
            self.note(difference, name, got)

    def size(self) -> dict[str, Any]:
        return {"size": (self.take("height"), self.take("width"))}

    def interpolation(self, name: str = "interpolation", default: int = 1) -> str:
        code = self.take(name, default)
        if code not in _INTERPOLATIONS:
            self.refuse(name, code, "a code of cv2 from 0 to 6")
        return _INTERPOLATIONS[code]

    def warp(self) -> dict[str, Any]:
        """Interpolation and border of a geometric operation."""
        kind = self.interpolation()
        if kind == "bicubic":
            self.note("cubic weights with a = -1 here (Pillow), -0.75 there (cv2)", "interpolation", 2)
        if kind == "area":
            kind = "bilinear"  # cv2's warps do the same
        return {"interpolation": kind, **self.border()}

    def resample(self) -> dict[str, Any]:
        """Interpolation of a resize."""
        points = (
            "key points are multiplied by the factor in version 2.0, and move with their pixel here: by half of 1 - "
        )
        self.note_for("keypoints-2.0", points + "the factor, 0.125 pixels at a factor of 0.75")
        masks = "masks show the pixel that holds a position here, its upper left neighbor there"
        self.note(f"{masks}: 4 % of a mask's pixels where it shrinks to half")
        return {"interpolation": self.resize_filter("interpolation", self.interpolation())}

    def resize_filter(self, name: str, kind: str) -> str:
        """The filter that is nearest to cv2's."""
        differences = {
            "area": "a triangle of twice the reduction here, the mean of its pixels there: 2 levels on average",
            "nearest": "Pillow's nearest pixel here, which is up to half of the reduction away from cv2's",
        }
        antialiased = "images that shrink are antialiased here: 5 levels on average where a photo shrinks to a third"
        self.note(differences.get(kind, antialiased), name, kind)
        return "bilinear" if kind == "area" else kind

    def border(self) -> dict[str, Any]:
        """Border mode and fill. A constant border is the default here."""
        mode = self.take("border_mode", 0)
        if mode not in _BORDERS:
            self.refuse("border_mode", mode, ", ".join(f"{code} ({name})" for code, name in _BORDERS.items()))
        if mode in _MIRRORED:
            copies = (
                "boxes and key points are those of the object itself here; there each also has its mirrored images, "
            )
            self.note_for("boxes keypoints", copies + "up to 9 for one", "border_mode", mode)
        padding = {"padding_mode": _BORDERS[mode]} if mode else {}
        return {**padding, **self.fill()}

    def fill(self) -> dict[str, Any]:
        """Fill of images; that of masks is noted for ``vg.Targets``, as ``targets_from_albumentations`` returns it."""
        value = self.take("fill_mask")
        levels = set(value) if isinstance(value, tuple) else {value or 0}
        if len(levels) != 1 or not all(isinstance(level, (int, float)) and level == int(level) for level in levels):
            self.refuse("fill_mask", value, "a whole number, as masks have one channel")
        mask_fill = int(levels.pop())
        self.place.report.mask_fills[self.place.path] = mask_fill
        if mask_fill:
            advice = f"give targets=vg.Targets(mask_fill={mask_fill}), which vg.targets_from_albumentations returns; "
            self.note(advice + "without it masks are filled with 0 here", "fill_mask", mask_fill)
        return {"fill": _rounded(self.take("fill", 0))}

    def erased_fill(self) -> Any:
        """Fill of an erased area, or "random": masks and boxes do not change here."""
        self.require("fill_mask", None, why="masks are not erased here")
        boxes = "boxes do not change here; there they end where holes span them, and 80 % move by a pixel up and left"
        self.note_for("boxes", boxes)
        value = self.take("fill", 0)
        if isinstance(value, str) and value != "random":
            self.refuse("fill", value, "a level, three of them, or 'random'")
        return value if value == "random" else _rounded(value)

    def finish(self) -> None:
        """Refuse arguments that no rule took. Those of masks and boxes that all transforms have are read here."""
        self.take("fill_mask")  # of a transform without a border
        if self.take("mask_interpolation", 0) not in (0, 6, None):
            self.note("masks show the nearest pixel here, which is mask_interpolation=0", "mask_interpolation")
        if self.take("rotate_method", "largest_box") != "largest_box":
            boxes = "boxes hold the corners of the rotated box here: up to 1.41 times as wide as around its ellipse"
            self.note_for("boxes", boxes, "rotate_method", "ellipse")
        for name, value in self._remaining.items():
            if value is not None:
                accepted = "arguments of Albumentations 2.0 or later that have a counterpart here"
                self.refuse(name, value, accepted)


def _rounded(value: Any) -> Any:
    return tuple(map(round, value)) if isinstance(value, tuple) else round(value or 0)


@dataclass(frozen=True)
class Argument:
    """An argument of ours: its ``names`` there, its default there (None: that of our class), and its conversion."""

    names: str
    default: Any = None
    convert: Callable[[Any], Any] | None = None
    is_pair: bool = False

    def value(self, given: Arguments) -> Any:
        if self.is_pair:
            value: Any = given.pair(self.names, self.default)
        else:
            value = given.take(self.names, self.default)
        return value if value is None or self.convert is None else self.convert(value)


def pair(names: str, low: float, high: float, convert: Callable[[Any], Any] | None = None) -> Argument:
    """An argument that is a range; ``low`` and ``high`` are its default."""
    return Argument(names, (low, high), convert, is_pair=True)


def same_names(names: str) -> dict[str, Argument | str]:
    """Arguments that have the same name and default there."""
    return {name: name for name in names.split()}


@dataclass(frozen=True)
class Row:
    """A rule without arithmetic: ``cls`` of ``constants`` and ``arguments`` (a text is a name) and what ``also`` takes.

    ``require``: arguments there that must have one of the values, the first of which is the default; ``ignore``: names
    without a meaning here; ``note``: what differs, and by how much.
    """

    cls: type[Transform]
    arguments: Mapping[str, Argument | str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    require: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    ignore: str = ""
    note: str = ""
    also: tuple[Callable[[Arguments], dict[str, Any]], ...] = ()

    def __call__(self, given: Arguments) -> Transform:
        for name, accepted in self.require.items():
            given.require(name, *accepted)
        for name in self.ignore.split():
            given.take(name)
        if self.note:
            given.note(self.note)
        values = dict(self.constants)
        names_there = {}
        for name, argument in self.arguments.items():
            argument = Argument(argument) if isinstance(argument, str) else argument
            names_there[name] = argument.names.split()[0]
            value = argument.value(given)
            if value is not None:
                values[name] = value
        for take in self.also:
            values |= take(given)
        return given.build(self.cls, names_there, **values)


Rule = Callable[[Arguments], Transform | None]
