"""Rules of Albumentations' maps of coordinates. It resamples by cv2, Variegate as Pillow does."""

from __future__ import annotations

import math
from typing import Any

from variegate.integrations.converters.albumentations_arguments import Arguments
from variegate.integrations.converters.drawing import Drawing, Value
from variegate.ops.base import Transform
from variegate.ops.deform import ElasticTransform, GridDistortion, OpticalDistortion, ThinPlateSpline
from variegate.ops.geometry import RandomAffine, Rotate

Range = tuple[float, float]
Axes = dict[str, Range]

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
    degrees = given.take_range("rotate", (0.0, 0.0))
    scale, shear = (
        _axes(given.take(name), default) for name, default in (("scale", (1.0, 1.0)), ("shear", (0.0, 0.0)))
    )
    shares, pixels = (_axes(given.take(f"translate_{unit}"), (0.0, 0.0)) for unit in ("percent", "px"))
    one_scale = scale["x"] == scale["y"] and (keeps or scale["x"][0] == scale["x"][1])
    if not one_scale or any(map(any, pixels.values())) or any(low != -high for low, high in shares.values()):
        return _drawn_affine(given, degrees, (scale["x"], None if keeps else scale["y"]), shear, (shares, pixels))
    arguments: dict[str, Any] = {
        "degrees": _turned(degrees),
        "scale": scale["x"],
        "translate": _shares(given, "translate_percent", shares),
        "shear": (*shear["x"], *shear["y"]),
    }
    # Along one axis, and without a rotation, both orders are the same.
    if (any(shear["x"]) and any(shear["y"])) or (any(arguments["shear"]) and any(degrees)):
        arguments["order"] = "rotate_shear"
    return _affine(given, arguments)


def _drawn_affine(given: Arguments, degrees: Range, scale: Any, shear: Axes, shifts: tuple[Axes, Axes]) -> Transform:
    """What ``RandomAffine`` has no arguments for: the inverse of shear x rotation x scale, as it is there."""
    drawing = Drawing(given.place)
    value, sides = drawing.value, dict(zip(("y", "x"), drawing.size(), strict=True))
    x_scale = drawing.uniform(scale[0])
    y_scale = x_scale if scale[1] is None else drawing.uniform(scale[1])
    turn, *slants = (value("*", drawing.uniform(limits), math.pi / 180) for limits in (degrees, shear["x"], shear["y"]))
    cos, sin, p, q = value("cos", turn), value("sin", turn), *(value("tan", slant) for slant in slants)
    least = value("-", 1, value("*", p, q))  # the determinant of the shears
    # Rotation back x shears back, a line of it for either axis; the shears of both are negative there.
    lines = [
        (value("-", cos, value("*", q, sin)), value("-", value("*", p, cos), sin), x_scale),
        (value("+", sin, value("*", q, cos)), value("+", value("*", p, sin), cos), y_scale),
    ]
    moved = []
    for axis in ("x", "y"):
        share = drawing.value("int", value("*", drawing.uniform(shifts[0][axis]), sides[axis]))
        pixels = drawing.between(*map(int, shifts[1][axis]))
        moved.append(value("+", value("/", sides[axis], 2), value("+", share, pixels)))
    coefficients: list[Value] = []
    for axis, (a, b, factor) in zip(("x", "y"), lines, strict=True):
        a, b = (value("/", entry, value("*", least, factor)) for entry in (a, b))
        there = value("+", value("*", a, moved[0]), value("*", b, moved[1]))
        coefficients += [a, b, value("-", value("/", sides[axis], 2), there)]
    drawing.map(coefficients, given.warped())
    return drawing.made()


def safe_rotate(given: Arguments) -> Transform:
    """A rotation of which all is seen, drawn together to the image's size."""
    for name in ("rotate", "scale", "shear", "translate_px", "fit_output", "keep_ratio", "balanced_scale"):
        given.take(name)  # of the Affine that it is there
    drawing = Drawing(given.place)
    value, (height, width) = drawing.value, drawing.size()
    turn = value("*", drawing.uniform(given.take_range("angle_range limit", (-90, 90))), math.pi / 180)
    cos, sin = value("cos", turn), value("sin", turn)
    along, across = value("abs", cos), value("abs", sin)
    coefficients: list[Value] = []
    middle = value("/", width, 2), value("/", height, 2)
    wide = drawing.value("int", value("+", value("*", height, across), value("*", width, along)))
    high = drawing.value("int", value("+", value("*", height, along), value("*", width, across)))
    by = value("/", wide, width), value("/", high, height)
    right, low = (value("+", side, 0.5) for side in middle)  # where the middle of a pixel becomes that of the image
    for centre, a, b in ((middle[0], cos, value("neg", sin)), (middle[1], sin, cos)):
        a, b = value("*", a, by[0]), value("*", b, by[1])
        there = value("+", value("*", a, right), value("*", b, low))
        coefficients += [a, b, value("-", centre, there)]
    drawing.map(coefficients, given.warped())
    return drawing.made()


def perspective(given: Arguments) -> Transform:
    """Corners that are moved inwards by the magnitude of normal numbers; the quadrangle between them is drawn out."""
    given.require("keep_size", True, why="the size would depend on the corners")
    given.require("fit_output", False)
    limits = given.take("scale", (0.05, 0.1))
    drawing = Drawing(given.place)
    value, (height, width) = drawing.value, drawing.size()
    scale = drawing.uniform(limits if isinstance(limits, tuple) else (0.0, limits))
    start = []
    for is_right, is_low in ((0, 0), (1, 0), (1, 1), (0, 1)):
        corner = []
        for side, is_far in ((width, is_right), (height, is_low)):
            inwards = value("%", value("abs", value("normal", 0, scale)), 0.32)
            corner.append(value("*", side, value("-", 1, inwards) if is_far else inwards))
        start.append(corner)

    def longest(*edges: tuple[int, int]) -> str:
        lengths = []
        for one, other in edges:
            x, y = (value("-", start[one][axis], start[other][axis]) for axis in (0, 1))
            lengths.append(value("sqrt", value("+", value("*", x, x), value("*", y, y))))
        return drawing.value("int", value("max", *lengths))

    # As large as the longer edges are, and then as the image was: more than fills it.
    right = value("/", value("*", width, width), longest((0, 1), (2, 3)))
    low = value("/", value("*", height, height), longest((1, 2), (0, 3)))
    half = 0.5  # of a pixel, whose corners have whole numbers here and whose centres have them there
    start = [[value("+", side, half) for side in corner] for corner in start]
    ends = [[half, half], [value("+", right, half), half], [value("+", right, half), value("+", low, half)]]
    drawing.do("perspective", startpoints=start, endpoints=[*ends, [half, value("+", low, half)]], **given.warped())
    return drawing.made()


def elastic(given: Arguments) -> Transform:
    """torchvision's, by its deviation. Splines, which version 2.5 of AlbumentationsX has under this name, are not."""
    if given.take("displacement_range control_grid_shape") is not None:
        given.place.refuse(
            "displacement_range", "some", "ThinPlateSpline or OpticalFlowWarp: there are no splines here"
        )
    given.require("approximate", False, why="the whole blur")
    given.require("same_dxdy", False, why="a displacement of its own along each axis")
    alpha, kind = given.take("alpha", 1.0), given.take("noise_distribution", "gaussian")
    if kind == "gaussian":
        how = (
            "noise has a 4.5th of alpha as its deviation here, and its greatest value decides there: 10 % more or less"
        )
        given.place.differs("noise_distribution", kind, how)
    # Half of uniform noise here.
    factor = 2.0 if kind == "uniform" else 2.0 * math.sqrt(3.0) / 4.5
    arguments = {"alpha": alpha * factor, "sigma": given.take("sigma", 50.0), **given.warped()}
    return given.place.build(ElasticTransform, arguments)


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
