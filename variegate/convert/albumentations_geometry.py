"""Rules of Albumentations' crops, resizes and maps of coordinates. It resamples by cv2, Variegate as Pillow does."""

from __future__ import annotations

from typing import Any

from variegate.convert.albumentations_arguments import Arguments
from variegate.convert.report import argument_names
from variegate.transforms.base import Transform
from variegate.transforms.bends import OpticalDistortion, ThinPlateSpline
from variegate.transforms.crop import CenterCrop, Pad, RandomCrop
from variegate.transforms.deform import GridDistortion
from variegate.transforms.fitting import Downscale, LetterBox, LongestMaxSize, SmallestMaxSize
from variegate.transforms.geometry import Rotate
from variegate.transforms.random_geometry import RandomAffine
from variegate.transforms.resize import RandomResizedCrop, Resize

SIZE = {"size": "height, width"}

# -- crops and borders -------------------------------------------------------------------------------------------


def random_crop(given: Arguments) -> Transform:
    return given.place.build(RandomCrop, {"size": _cropped(given)}, SIZE)


def center_crop(given: Arguments) -> Transform:
    how = "where an odd number of pixels is left over, the place may be one pixel off"
    given.place.differs("", None, how)
    return given.place.build(CenterCrop, {"size": _cropped(given)}, SIZE)


def _cropped(given: Arguments) -> tuple[Any, Any]:
    given.require("pad_if_needed", False, why="pad before, by Pad")
    for name in ("pad_position", "border_mode", "fill"):
        given.take(name)
    return given.take("height"), given.take("width")


def pad(given: Arguments) -> Transform:
    arguments = {"padding": given.take("padding", 0), "padding_mode": given.border(), "fill": given.colour()}
    return given.place.build(Pad, arguments, {"padding_mode": "border_mode"})


# -- resizes -----------------------------------------------------------------------------------------------------


def resampled(given: Arguments) -> dict[str, Any]:
    """The filter that comes nearest to cv2's, with what differs."""
    return {"interpolation": _filter(given, "interpolation", given.interpolation())}


def _filter(given: Arguments, argument: str, kind: str) -> str:
    if kind == "area":
        how = "a triangle of twice the reduction here, the mean of its pixels there: 2 levels on average"
    elif kind == "nearest":
        how = "Pillow's nearest pixel here, which is up to half of the reduction away from cv2's"
    else:
        how = (
            "images that shrink are antialiased here, as Pillow does, and not by cv2: 5 of 255 levels on average "
            "where a photo shrinks to a third"
        )
    given.place.differs(argument, kind, how)
    return "bilinear" if kind == "area" else kind


def resize(given: Arguments) -> Transform:
    size = given.take("height"), given.take("width")
    return given.place.build(Resize, {"size": size, **resampled(given)}, SIZE)


def smallest_side(given: Arguments) -> Transform:
    return _by_side(given, SmallestMaxSize)


def longest_side(given: Arguments) -> Transform:
    return _by_side(given, LongestMaxSize)


def _by_side(given: Arguments, cls: type[Transform]) -> Transform:
    given.require("max_size_hw", None)
    return given.place.build(cls, {"max_size": given.take("max_size"), **resampled(given)})


def letter_box(given: Arguments) -> Transform:
    given.require("position", "center")
    return given.place.build(LetterBox, {"size": given.take("size"), "fill": given.colour(), **resampled(given)})


def downscale(given: Arguments) -> Transform:
    pair = given.take("interpolation_pair", {})
    down, up = (given.kind(f"interpolation_pair.{step}", dict(pair).get(step, 0)) for step in ("downscale", "upscale"))
    arguments = {
        "scale_range": given.take_range("scale_range", (0.25, 0.25)),
        "downscale": _filter(given, "interpolation_pair.downscale", down),
        "upscale": "bilinear" if up == "area" else up,
    }
    return given.place.build(Downscale, arguments)


def resized_crop(given: Arguments) -> Transform:
    given.require("sampling_method", "standard")
    arguments = {name: given.take(name) for name in ("size", "scale", "ratio")}
    if arguments["size"] is None:  # as versions before 1.4 say it
        arguments["size"] = given.take("height"), given.take("width")
    if "edges" in argument_names(RandomResizedCrop):
        arguments["edges"] = "crop"
    there = {name: value for name, value in arguments.items() if value is not None}
    return given.place.build(RandomResizedCrop, {**there, **resampled(given)})


# -- maps of coordinates -----------------------------------------------------------------------------------------


def rotate(given: Arguments) -> Transform:
    given.require("crop_border", False)
    degrees = given.take_range("angle_range limit", (-90, 90))
    return given.place.build(Rotate, {"degrees": degrees, **given.warped()}, {"degrees": "angle_range"})


def shift_scale_rotate(given: Arguments) -> Transform:
    shift = given.take_range("shift_range shift_limit", (-0.0625, 0.0625))
    scale = given.take_range("scale_range scale_limit", (-0.1, 0.1))
    along = [given.take(f"shift_range_{axis}") or given.take(f"shift_limit_{axis}") or shift for axis in ("x", "y")]
    arguments = {
        "degrees": _turned(given.take_range("rotate_range rotate_limit", (-45, 45))),
        "scale": (1 + scale[0], 1 + scale[1]),
        "translate": _shares(given, "shift_range", dict(zip(("x", "y"), along, strict=True))),
    }
    return _affine(given, arguments)


def affine(given: Arguments) -> Transform:
    given.require("fit_output", False)
    given.require("balanced_scale", False)
    keeps = given.take("keep_ratio", True)
    scale = _axes(given.take("scale", (1.0, 1.0)), (1.0, 1.0))
    if scale["x"] != scale["y"] or (not keeps and scale["x"][0] != scale["x"][1]):
        given.place.refuse("scale", scale, "one range for both axes, with keep_ratio=True")
    pixels = _axes(given.take("translate_px"), (0, 0))
    if any(ends != (0, 0) for ends in pixels.values()):
        given.place.refuse("translate_px", pixels, "None; translate_percent is a share of the side")
    shear = _axes(given.take("shear", (0.0, 0.0)), (0.0, 0.0))
    arguments: dict[str, Any] = {
        "degrees": _turned(given.take_range("rotate", (0.0, 0.0))),
        "scale": scale["x"],
        "translate": _shares(given, "translate_percent", _axes(given.take("translate_percent"), (0, 0))),
        "shear": (*shear["x"], *shear["y"]),
    }
    # Along one axis, and without a rotation, both orders are the same.
    if (any(shear["x"]) and any(shear["y"])) or (any(arguments["shear"]) and any(arguments["degrees"])):
        arguments["order"] = "rotate_shear"
    return _affine(given, arguments)


def grid_distortion(given: Arguments) -> Transform:
    how = "strips follow one another evenly here; there two pixels along their borders show the same place"
    given.place.differs("", None, how)
    arguments = {
        "num_steps": given.take("num_steps", 5),
        "distort_limit": given.take_range("distort_range distort_limit", (-0.3, 0.3)),
        "normalized": given.take("normalized", True),
    }
    return _deformed(given, GridDistortion, arguments, {"distort_limit": "distort_range"})


def optical_distortion(given: Arguments) -> Transform:
    mode = given.take("mode", "camera")
    if mode == "camera":
        given.place.differs("mode", mode, "about the image's centre here; half a pixel up and to the left of it there")
    given.require("shift_limit", 0, (0, 0), (-0.05, 0.05))  # of versions before 2.0, which did nothing
    limit = given.take_range("distort_range distort_limit", (-0.05, 0.05))
    return _deformed(
        given, OpticalDistortion, {"distort_limit": limit, "mode": mode}, {"distort_limit": "distort_range"}
    )


def thin_plate_spline(given: Arguments) -> Transform:
    arguments = {
        "scale_range": given.take("scale_range", (0.2, 0.4)),
        "num_control_points": given.take("num_control_points", 4),
    }
    return _deformed(given, ThinPlateSpline, arguments, {})


def _deformed(given: Arguments, cls: type[Transform], arguments: dict[str, Any], names: dict[str, str]) -> Transform:
    given.require("map_resolution_range", (1.0, 1.0), (1, 1), why="the map is exact at nodes of a grid of its own")
    return given.place.build(cls, {**arguments, **given.warped()}, names)


def _affine(given: Arguments, arguments: dict[str, Any]) -> Transform:
    # What does nothing is left out, so that the description reads well.
    if arguments["scale"] == (1, 1):
        del arguments["scale"]
    if not any(arguments["translate"]):
        del arguments["translate"]
    if not any(arguments.get("shear", ())):
        arguments.pop("shear", None)
    names = {"degrees": "rotate", "translate": "translate_percent"}
    return given.place.build(RandomAffine, {**arguments, **given.warped()}, names)


def _turned(limits: tuple[float, float]) -> tuple[float, float]:
    """Clockwise, as torchvision's RandomAffine turns, of counter-clockwise."""
    return 0.0 - limits[1], 0.0 - limits[0]


def _axes(value: Any, default: tuple[float, float]) -> dict[str, tuple[float, float]]:
    """A range for each axis, of {"x": ..., "y": ...}, of one range, or of a number."""
    both = value if isinstance(value, dict) else {"x": value, "y": value}
    ends = {axis: default if both.get(axis) is None else both[axis] for axis in ("x", "y")}
    return {axis: tuple(each) if isinstance(each, (list, tuple)) else (each, each) for axis, each in ends.items()}


def _shares(given: Arguments, name: str, axes: dict[str, tuple[float, float]]) -> tuple[float, ...]:
    """Shifts that are drawn evenly about 0, whole pixels of them."""
    for ends in axes.values():
        if ends[0] != -ends[1]:
            given.place.refuse(name, axes, "ranges about 0, such as (-0.1, 0.1)")
    if any(ends[1] for ends in axes.values()):
        given.place.differs(name, axes, "whole pixels are drawn here")
    return tuple(float(axes[axis][1]) for axis in ("x", "y"))
