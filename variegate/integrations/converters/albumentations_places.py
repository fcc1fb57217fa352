"""Rules of Albumentations' crops, borders, resizes (by cv2) and maps that do more than take arguments."""

from __future__ import annotations

import math
from typing import Any

from variegate.integrations.converters.albumentations_arguments import Arguments, Range
from variegate.integrations.converters.report import Drawing, Value
from variegate.ops.base import Transform
from variegate.ops.deform import ElasticTransform, OpticalDistortion, ThinPlateSpline
from variegate.ops.geometry import RandomAffine
from variegate.ops.resize import RandomResizedCrop
from variegate.ops.sizes import Downscale

Axes = dict[str, Range]

# -- crops and borders -------------------------------------------------------------------------------------------

CROPPED = {"pad_if_needed": (False,)}
CROPPED_WHY = "put PadIfNeeded before it"
OF_BORDERS = "pad_position border_mode fill"


def crop(given: Arguments) -> Transform:
    left, top, right, bottom = (
        given.take(name, default) for name, default in (("x_min", 0), ("y_min", 0), ("x_max", 1024), ("y_max", 1024))
    )
    given.require("pad_if_needed", False, why=CROPPED_WHY)
    for name in (*OF_BORDERS.split(), "height", "width"):
        given.take(name)
    given.differs("beyond a smaller image it is black here, and an error there")
    drawing = Drawing(given.place)
    return drawing.do("crop", top=top, left=left, height=bottom - top, width=right - left).made()


def crop_from_borders(given: Arguments) -> Transform:
    drawing = Drawing(given.place)
    value = drawing.value
    box = []
    for side, first, last in zip(drawing.size(), ("top", "left"), ("bottom", "right"), strict=True):
        start = drawing.between(0, value("int", value("*", side, given.take(f"crop_{first}", 0.1))))
        stop = value("int", value("*", side, 1 - given.take(f"crop_{last}", 0.1)))
        end = drawing.between(value("max", value("+", start, 1), stop), side)
        box.append((start, value("-", end, start)))
    (top, height), (left, width) = box
    return drawing.do("crop", top=top, left=left, height=height, width=width).made()


def crop_and_pad(given: Arguments) -> Transform:
    """Top, right, bottom and left: borders, or where they are negative, what is cut off."""
    given.require("px_choices percent_choices", None)
    drawing = Drawing(given.place)
    height, width = drawing.size()
    pixels, shares, each = given.take("px"), given.take("percent"), given.take("sample_independently", True)
    limits = shares if pixels is None else pixels
    sides = limits if isinstance(limits, tuple) and len(limits) == 4 else (limits,) * (4 if each else 1)
    drawn: list[Value] = []
    for side, ends in zip((height, width, height, width), sides * (4 // len(sides)), strict=True):
        low, high = ends if isinstance(ends, tuple) else (ends, ends)
        if len(sides) == 4 or not drawn:
            number = drawing.uniform((low, high)) if pixels is None else low
            number = drawing.between(low, high - 1) if pixels is not None and low < high else number
        drawn.append(number if pixels is not None else drawing.value("int", drawing.value("*", number, side)))
    top, right, bottom, left = drawn
    drawing.do("pad", padding=(left, top, right, bottom), **given.bordered())
    if given.take("keep_size", True):
        drawing.do("resize", size=(height, width), **given.resampled())
    given.take("interpolation")
    return drawing.made()


_CORNERS = ("top_left", "top_right", "bottom_left", "bottom_right")


def pad_if_needed(given: Arguments) -> Transform:
    given.take("padding")  # of the Pad that it is there
    position = given.take("position", "center")
    drawing = Drawing(given.place)
    value = drawing.value
    borders: dict[str, Value] = {}
    for name, length, first, last in zip(
        ("height", "width"), drawing.size(), ("top", "left"), ("bottom", "right"), strict=True
    ):
        divisor, least = given.take(f"pad_{name}_divisor"), given.take(f"min_{name}")
        if divisor is None:
            missing = value("max", 0, value("-", 1024 if least is None else least, length))
        else:
            missing = value("%", value("neg", length), divisor)
        if position == "random":
            before: Value = drawing.between(0, missing)
        elif position == "center":
            before = value("//", missing, 2)
        elif position in _CORNERS:
            before = 0 if first in position else missing
        else:
            given.refuse("position", position, f"'center', 'random' or {', '.join(map(repr, _CORNERS))}")
        borders |= {first: before, last: value("-", missing, before)}
    padding = tuple(borders[side] for side in ("left", "top", "right", "bottom"))
    return drawing.do("pad", padding=padding, **given.bordered()).made()


# -- resizes -----------------------------------------------------------------------------------------------------


def downscale(given: Arguments) -> Transform:
    pair = dict(given.take("interpolation_pair", {}))
    down, up = (given.interpolation(f"interpolation_pair.{way}", pair.get(way, 0)) for way in ("downscale", "upscale"))
    return given.build(
        Downscale,
        scale_range=given.take_range("scale_range", (0.25, 0.25)),
        downscale=given.filter_for("interpolation_pair.downscale", down),
        upscale="bilinear" if up == "area" else up,
    )


def random_scale(given: Arguments) -> Transform:
    low, high = given.take_range("scale_range scale_limit", (-0.1, 0.1))
    drawing = Drawing(given.place)
    sides = drawing.size()
    factor = drawing.uniform((1 + low, 1 + high))
    size = tuple(drawing.value("int", drawing.value("*", side, factor)) for side in sides)
    return drawing.do("resize", size=size, **given.resampled()).made()


def sized_crop(given: Arguments) -> Transform:
    drawing = Drawing(given.place)
    value, (height, width) = drawing.value, drawing.size()
    drawn = drawing.between(*given.take("min_max_height"))
    high = value("min", drawn, height)
    wide = value("min", value("int", value("*", drawn, given.take("w2h_ratio", 1.0))), width)
    top, left = (drawing.between(0, value("-", side, cut)) for side, cut in ((height, high), (width, wide)))
    size = given.take("size") or (given.take("height"), given.take("width"))
    drawing.do("resized_crop", size=size, top=top, left=left, height=high, width=wide, **given.resampled())
    return drawing.made()


def resized_crop(given: Arguments) -> Transform:
    given.require("sampling_method", "standard")
    there = {name: value for name in ("size", "scale", "ratio") if (value := given.take(name)) is not None}
    if "size" not in there:  # as versions before 1.4 say it
        there["size"] = given.take("height"), given.take("width")
    return given.build(RandomResizedCrop, **there, edges="crop", **given.resampled())


# -- maps of coordinates -----------------------------------------------------------------------------------------


def shift_scale_rotate(given: Arguments) -> Transform:
    shift = given.take_range("shift_range shift_limit", (-0.0625, 0.0625))
    scale = given.take_range("scale_range scale_limit", (-0.1, 0.1))
    along = {axis: given.take_range(f"shift_range_{axis} shift_limit_{axis}", shift) for axis in "xy"}
    degrees = given.take_range("rotate_range rotate_limit", (-45, 45))
    factors, none = (1 + scale[0], 1 + scale[1]), _axes(0.0, 0.0)
    if scale[0] != scale[1]:  # one for each axis
        return _drawn_affine(given, degrees, (factors, factors), none, (along, none))
    return _affine(given, degrees, factors, _shares(given, "shift_range", along))


def affine(given: Arguments) -> Transform:
    given.require("fit_output balanced_scale", False)
    keeps = given.take("keep_ratio", True)
    degrees = given.take_range("rotate", (0.0, 0.0))
    scale, shear, shares, pixels = (
        _axes(given.take(name), default)
        for name, default in (("scale", 1.0), ("shear", 0.0), ("translate_percent", 0.0), ("translate_px", 0.0))
    )
    one_scale = scale["x"] == scale["y"] and (keeps or scale["x"][0] == scale["x"][1])
    if not one_scale or any(map(any, pixels.values())) or any(low != -high for low, high in shares.values()):
        return _drawn_affine(given, degrees, (scale["x"], None if keeps else scale["y"]), shear, (shares, pixels))
    moved, both = _shares(given, "translate_percent", shares), (*shear["x"], *shear["y"])
    # Along one axis, and without a rotation, both orders are the same.
    ordered = (any(shear["x"]) and any(shear["y"])) or (any(both) and any(degrees))
    more: dict[str, Any] = {"shear": both} if any(both) else {}
    return _affine(given, degrees, scale["x"], moved, **more, **({"order": "rotate_shear"} if ordered else {}))


def _affine(given: Arguments, degrees: Range, scale: Range, moved: Range, **more: Any) -> Transform:
    """Affine map without what does nothing, so that the description reads well."""
    # Clockwise, as torchvision's RandomAffine turns, of counter-clockwise.
    arguments: dict[str, Any] = {"degrees": (0.0 - degrees[1], 0.0 - degrees[0])}
    if scale != (1, 1):
        arguments["scale"] = scale
    if any(moved):
        arguments["translate"] = moved
    names = {"degrees": "rotate", "translate": "translate_percent"}
    return given.build(RandomAffine, names, **arguments, **more, **given.warped())


def _axes(value: Any, default: float) -> Axes:
    """A range for each axis, of {"x": ..., "y": ...}, of one range, or of a number."""
    both = value if isinstance(value, dict) else {"x": value, "y": value}
    ends = {axis: default if both.get(axis) is None else both[axis] for axis in ("x", "y")}
    return {axis: tuple(each) if isinstance(each, (list, tuple)) else (each, each) for axis, each in ends.items()}


def _shares(given: Arguments, name: str, axes: Axes) -> Range:
    """Shifts that are drawn evenly about 0, whole pixels of them."""
    if any(ends[0] != -ends[1] for ends in axes.values()):
        given.refuse(name, axes, "ranges about 0, such as (-0.1, 0.1)")
    if any(ends[1] for ends in axes.values()):
        given.differs("whole pixels are drawn here", name, axes)
    return float(axes["x"][1]), float(axes["y"][1])


def _drawn_affine(given: Arguments, degrees: Range, scale: Any, shear: Axes, shifts: tuple[Axes, Axes]) -> Transform:
    """Albumentations' affine that ``RandomAffine`` has no arguments for: the inverse of shear x rotation x scale."""
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
        share = value("int", value("*", drawing.uniform(shifts[0][axis]), sides[axis]))
        pixels = drawing.between(*map(int, shifts[1][axis]))
        moved.append(value("+", value("/", sides[axis], 2), value("+", share, pixels)))
    coefficients: list[Value] = []
    for axis, (a, b, factor) in zip(("x", "y"), lines, strict=True):
        a, b = (value("/", entry, value("*", least, factor)) for entry in (a, b))
        there = value("+", value("*", a, moved[0]), value("*", b, moved[1]))
        coefficients += [a, b, value("-", value("/", sides[axis], 2), there)]
    return drawing.map(coefficients, given.warped()).made()


def safe_rotate(given: Arguments) -> Transform:
    """A rotation of which all is seen, drawn together to the image's size."""
    given.differs_for("boxes", "boxes move with their image here; there they are 0.5 pixels up and to the left of it")
    for name in ("rotate", "scale", "shear", "translate_px", "fit_output", "keep_ratio", "balanced_scale"):
        given.take(name)  # of the Affine that it is there
    drawing = Drawing(given.place)
    value, (height, width) = drawing.value, drawing.size()
    turn = value("*", drawing.uniform(given.take_range("angle_range limit", (-90, 90))), math.pi / 180)
    cos, sin = value("cos", turn), value("sin", turn)
    along, across = value("abs", cos), value("abs", sin)
    coefficients: list[Value] = []
    middle = value("/", width, 2), value("/", height, 2)
    wide = value("int", value("+", value("*", height, across), value("*", width, along)))
    high = value("int", value("+", value("*", height, along), value("*", width, across)))
    by = value("/", wide, width), value("/", high, height)
    right, low = (value("+", side, 0.5) for side in middle)  # where the middle of a pixel becomes that of the image
    for centre, a, b in ((middle[0], cos, value("neg", sin)), (middle[1], sin, cos)):
        a, b = value("*", a, by[0]), value("*", b, by[1])
        there = value("+", value("*", a, right), value("*", b, low))
        coefficients += [a, b, value("-", centre, there)]
    return drawing.map(coefficients, given.warped()).made()


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
        return value("int", value("max", *lengths))

    # As large as the longer edges are, and then as the image was: more than fills it.
    right = value("/", value("*", width, width), longest((0, 1), (2, 3)))
    low = value("/", value("*", height, height), longest((1, 2), (0, 3)))
    half = 0.5  # of a pixel, whose corners have whole numbers here and whose centres have them there
    start = [[value("+", side, half) for side in corner] for corner in start]
    ends = [[half, half], [value("+", right, half), half], [value("+", right, half), value("+", low, half)]]
    ends.append([half, value("+", low, half)])
    return drawing.do("perspective", startpoints=start, endpoints=ends, **given.warped()).made()


def elastic(given: Arguments) -> Transform:
    """torchvision's, by its deviation. AlbumentationsX 2.5 has splines under this name."""
    if "displacement_range" in given or "control_grid_shape" in given:
        given.place.refuse("", "a spline of control points", "GridDistortion or ThinPlateSpline")
    given.require("approximate", False, why="the whole blur")
    given.require("same_dxdy", False, why="a displacement of its own along each axis")
    alpha, kind = given.take("alpha", 1.0), given.take("noise_distribution", "gaussian")
    sigma = given.take("sigma", 50.0)
    given.differs_for("keypoints", "key points are whole pixels there: up to 1 pixel off")
    farther = max(sigma, 1.0)
    how = f"noise is repeated around the image there: within {sigma:g} pixels of borders, places move up to about"
    given.differs(f"{how} {farther**0.5:.1f} times as far, in corners {farther:.0f} times", "sigma", sigma)
    factor = 2.0  # half of uniform noise here
    if kind == "gaussian":
        how = "noise has a 4.5th of alpha as its deviation here, and its greatest value decides there"
        given.differs(f"{how}: 15 % more or less", "noise_distribution", kind)
    if kind != "uniform":
        factor = 2.0 * math.sqrt(3.0) / 4.5
    return given.build(ElasticTransform, alpha=alpha * factor, sigma=sigma, **given.warped())


def thin_plate(given: Arguments) -> Transform:
    number = given.take("num_control_points", 4)
    if "map_resolution_range" not in given:  # as in AlbumentationsX
        how = "1.3, 1.6 and 4.8 times as far with 2, 3 and 4, and 9 times or more with 5"
        given.differs(f"in version 2.0 places move {how}", "num_control_points", number)
    given.require("map_resolution_range", *EXACT_MAP["map_resolution_range"], why=EXACT_MAP_WHY)
    how = "key points follow the exact inverse of the map here; there they are about 1.2 pixels off"
    given.differs_for("keypoints", how)
    scale = given.take("scale_range", (0.2, 0.4))
    return given.build(ThinPlateSpline, scale_range=scale, num_control_points=number, **given.warped())


EXACT_MAP = {"map_resolution_range": ((1.0, 1.0), (1, 1))}
EXACT_MAP_WHY = "the map is exact at nodes of a grid of its own"


def optical_distortion(given: Arguments) -> Transform:
    mode = given.take("mode", "camera")
    how = "about the image's center here; half a pixel up and to the left of it there: places differ by up to 1.6 "
    given.differs(how + "pixels at a distort_range of 0.3", "mode", mode)
    given.require("shift_limit", 0, (0, 0), (-0.05, 0.05))  # of versions before 2.0, which did nothing
    given.require("map_resolution_range", *EXACT_MAP["map_resolution_range"], why=EXACT_MAP_WHY)
    limit = given.take_range("distort_range distort_limit", (-0.05, 0.05))
    names = {"distort_limit": "distort_range"}
    return given.build(OpticalDistortion, names, distort_limit=limit, mode=mode, **given.warped())
