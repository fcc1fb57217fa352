"""Rules of Albumentations' crops, borders, resizes and maps whose arguments need arithmetic."""

from __future__ import annotations

import math
from typing import Any

from variegate.integrations.converters.albumentations_arguments import Arguments, Pair
from variegate.integrations.converters.drawing import Drawing, Drawn, Number
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, RandomApply
from variegate.ops.crop import RandomRotate90
from variegate.ops.deform import ElasticTransform, ThinPlateSpline
from variegate.ops.resize import RandomResizedCrop
from variegate.ops.sizes import Downscale

Axes = dict[str, Pair]


def rotate90(given: Arguments) -> Transform:
    """All four turns there, with the one by 0 degrees."""
    given.require("group_element", None)
    elements = given.take("group_elements") or ("e", "r90", "r180", "r270")
    if sorted(elements) != ["e", "r180", "r270", "r90"]:
        given.refuse("group_elements", elements, "None or all four of them")
    return RandomRotate90(p=0.75)


# -- crops and borders -----------------------------------------------------------------------------------------------


def crop(given: Arguments) -> Transform:
    left = given.take("x_min", 0)
    top = given.take("y_min", 0)
    width = given.take("x_max", 1024) - left
    height = given.take("y_max", 1024) - top
    given.require("pad_if_needed", False, why="put PadIfNeeded before it")
    for name in ("pad_position", "border_mode", "fill"):
        given.take(name)
    given.note("beyond a smaller image it is black here, and an error there")
    return Drawing(given.place).do("crop", top=top, left=left, height=height, width=width).build()


def crop_from_borders(given: Arguments) -> Transform:
    drawing = Drawing(given.place)
    height, width = drawing.size()

    def draw(side: Drawn, first: str, last: str) -> tuple[Drawn, Drawn]:
        """The start and the length of what is left of a side."""
        start = drawing.randint(0, (side * given.take(first, 0.1)).to("int"))
        stop = (side * (1 - given.take(last, 0.1))).to("int")
        end = drawing.randint((start + 1).at_least(stop), side)
        return start, end - start

    top, rows = draw(height, "crop_top", "crop_bottom")
    left, columns = draw(width, "crop_left", "crop_right")
    return drawing.do("crop", top=top, left=left, height=rows, width=columns).build()


def crop_and_pad(given: Arguments) -> Transform:
    """Borders at the top, right, bottom and left; negative ones are cut off."""
    given.require("px_choices", None)
    given.require("percent_choices", None)
    pixels = given.take("px")
    shares = given.take("percent")
    has_pixels = pixels is not None
    limits = pixels if has_pixels else shares
    is_per_side = isinstance(limits, tuple) and len(limits) == 4
    is_drawn_once = not given.take("sample_independently", True) and not is_per_side
    drawing = Drawing(given.place)
    height, width = drawing.size()

    def draw(ends: Any) -> Number:
        low, high = ends if isinstance(ends, tuple) else (ends, ends)
        if not has_pixels:
            return drawing.uniform((low, high))
        return drawing.randint(low, high - 1) if low < high else low

    drawn = [draw(ends) for ends in (limits if is_per_side else (limits,) * 4)]
    if is_drawn_once:
        drawn = drawn[:1] * 4
    if not has_pixels:
        sides = (height, width, height, width)
        drawn = [(side * share).to("int") for side, share in zip(sides, drawn, strict=True)]
    top, right, bottom, left = drawn
    drawing.do("pad", padding=(left, top, right, bottom), **given.border())
    if given.take("keep_size", True):
        drawing.do("resize", size=(height, width), **given.resample())
    given.take("interpolation")
    return drawing.build()


_CORNERS = ("top_left", "top_right", "bottom_left", "bottom_right")


def pad_if_needed(given: Arguments) -> Transform:
    given.take("padding")  # of the Pad that it is in version 2.0
    position = given.take("position", "center")
    if position not in ("center", "random", *_CORNERS):
        given.refuse("position", position, f"'center', 'random' or {', '.join(map(repr, _CORNERS))}")
    drawing = Drawing(given.place)
    height, width = drawing.size()

    def draw(side: Drawn, name: str, first: str) -> tuple[Number, Number]:
        """Borders before and after a side."""
        divisor = given.take(f"pad_{name}_divisor")
        least = given.take(f"min_{name}")
        if divisor is None:
            missing = (-side + (1024 if least is None else least)).at_least(0)
        else:
            missing = -side % divisor
        before: Number = 0 if first in position else missing
        if position == "random":
            before = drawing.randint(0, missing)
        if position == "center":
            before = missing // 2
        return before, missing - before

    top, bottom = draw(height, "height", "top")
    left, right = draw(width, "width", "left")
    return drawing.do("pad", padding=(left, top, right, bottom), **given.border()).build()


# -- bands across the image ------------------------------------------------------------------------------------------


def xy_masking(given: Arguments) -> Transform | None:
    return _bands(given, 0, 0)


def time_masking(given: Arguments) -> Transform | None:
    _note_masks(given)
    return _bands(given, given.take("time_mask_param", 40), 0)


def frequency_masking(given: Arguments) -> Transform | None:
    _note_masks(given)
    return _bands(given, 0, given.take("freq_mask_param", 30))


def _note_masks(given: Arguments) -> None:
    given.take("fill_mask")  # always 0
    given.note("masks do not change here; there they become 0 in the band, of up to 40 pixels with default arguments")


def _bands(given: Arguments, max_columns: int, max_rows: int) -> Transform | None:
    """One band of columns and one of rows, up to so many pixels wide if no range is described."""
    fill = given.erased_fill()
    if fill != 0:
        given.refuse("fill", fill, "0")
    bands = [_band(given, "x", max_columns), _band(given, "y", max_rows)]
    drawn = [band for band in bands if band is not None]
    if len(drawn) == 2:
        return Compose(drawn)
    return drawn[0] if drawn else None


def _band(given: Arguments, axis: str, longest: int) -> Transform | None:
    low, high = given.pair(f"mask_{axis}_length_range mask_{axis}_length", (0, longest))
    numbers = given.pair(f"num_masks_{axis}_range num_masks_{axis}", (1, 1) if longest else (0, 0))
    if not high or not numbers[1]:
        return None
    if numbers[1] != 1 or not isinstance(high, int):
        given.refuse(f"num_masks_{axis}_range", numbers, "one band along each axis, of a length in pixels")
    drawing = Drawing(given.place)
    height, width = drawing.size()
    side = width if axis == "x" else height
    length = drawing.randint(low, high).at_most(side)
    start = drawing.randint(0, side - length)
    if low == 0:  # a band of no length lies behind the image
        start = (length < 1).where(side, start)
        length = length.at_least(1)
    if axis == "x":
        drawing.do("erase", i=0, j=start, h=height, w=length, v=0)
    else:
        drawing.do("erase", i=start, j=0, h=length, w=width, v=0)
    band = drawing.build()
    return band if numbers[0] == 1 else RandomApply([band], p=0.5)


# -- resizes ---------------------------------------------------------------------------------------------------------


def downscale(given: Arguments) -> Transform:
    codes = dict(given.take("interpolation_pair", {}))
    down = given.interpolation("interpolation_pair.downscale", codes.get("downscale", 0))
    up = given.interpolation("interpolation_pair.upscale", codes.get("upscale", 0))
    return given.build(
        Downscale,
        scale_range=given.pair("scale_range", (0.25, 0.25)),
        downscale=given.resize_filter("interpolation_pair.downscale", down),
        upscale="bilinear" if up == "area" else up,
    )


def random_scale(given: Arguments) -> Transform:
    low, high = given.pair("scale_range scale_limit", (-0.1, 0.1))
    drawing = Drawing(given.place)
    height, width = drawing.size()
    factor = drawing.uniform((1 + low, 1 + high))
    size = ((height * factor).to("int"), (width * factor).to("int"))
    return drawing.do("resize", size=size, **given.resample()).build()


def sized_crop(given: Arguments) -> Transform:
    drawing = Drawing(given.place)
    height, width = drawing.size()
    drawn = drawing.randint(*given.take("min_max_height"))
    rows = drawn.at_most(height)
    columns = (drawn * given.take("w2h_ratio", 1.0)).to("int").at_most(width)
    top = drawing.randint(0, height - rows)
    left = drawing.randint(0, width - columns)
    box = {"top": top, "left": left, "height": rows, "width": columns}
    return drawing.do("resized_crop", size=given.take("size"), **box, **given.resample()).build()


def resized_crop(given: Arguments) -> Transform:
    given.require("sampling_method", "standard")
    arguments = {name: given.take(name) for name in ("size", "scale", "ratio") if name in given}
    return given.build(RandomResizedCrop, **arguments, edges="crop", **given.resample())


# -- maps of coordinates ---------------------------------------------------------------------------------------------


def shift_scale_rotate(given: Arguments) -> Transform:
    shift = given.pair("shift_range shift_limit", (-0.0625, 0.0625))
    shares = {
        "x": given.pair("shift_range_x shift_limit_x", shift),
        "y": given.pair("shift_range_y shift_limit_y", shift),
    }
    low, high = given.pair("scale_range scale_limit", (-0.1, 0.1))
    scale = _axes((1 + low, 1 + high), 1.0)
    degrees = given.pair("rotate_range rotate_limit", (-45, 45))
    none = _axes(None, 0.0)
    return _affine(given, degrees, scale, shear=none, shares=shares, pixels=none)


def affine(given: Arguments) -> Transform:
    given.require("fit_output", False)
    given.require("balanced_scale", False)
    scale = _axes(given.take("scale"), 1.0)
    if given.take("keep_ratio", True):
        del scale["y"]
    return _affine(
        given,
        given.pair("rotate", (0.0, 0.0)),
        scale,
        shear=_axes(given.take("shear"), 0.0),
        shares=_axes(given.take("translate_percent"), 0.0),
        pixels=_axes(given.take("translate_px"), 0.0),
    )


def _axes(value: Any, default: float) -> Axes:
    """A range for each axis, of {"x": ..., "y": ...}, of one range, or of a number."""
    axes = value if isinstance(value, dict) else {"x": value, "y": value}
    found: Axes = {}
    for axis in ("x", "y"):
        ends = default if axes.get(axis) is None else axes[axis]
        low, high = ends if isinstance(ends, (list, tuple)) else (ends, ends)
        found[axis] = (low, high)
    return found


def _affine(given: Arguments, degrees: Pair, scale: Axes, shear: Axes, shares: Axes, pixels: Axes) -> Transform:
    """An affine map: the inverse of shear x rotation x scale. Without a "y", ``scale`` is one factor for both axes."""
    drawing = Drawing(given.place)
    height, width = drawing.size()
    x_scale = drawing.uniform(scale["x"])
    y_scale = drawing.uniform(scale["y"]) if "y" in scale else x_scale
    turn = drawing.radians(degrees)
    cos = turn.to("cos")
    sin = turn.to("sin")
    p = drawing.radians(shear["x"]).to("tan")
    q = drawing.radians(shear["y"]).to("tan")
    determinant = 1 - p * q  # of the shears, both of which are negative there

    def moved(axis: str, side: Drawn) -> Drawn:
        share = (side * drawing.uniform(shares[axis])).to("int")
        return side / 2 + share + drawing.randint(*map(int, pixels[axis]))

    x_middle = moved("x", width)
    y_middle = moved("y", height)

    def line(a: Drawn, b: Drawn, factor: Drawn, side: Drawn) -> tuple[Drawn, Drawn, Drawn]:
        """A line of the inverse, which takes the moved middle to the middle of the side."""
        a = a / (determinant * factor)
        b = b / (determinant * factor)
        return a, b, side / 2 - (a * x_middle + b * y_middle)

    x = line(cos - q * sin, p * cos - sin, x_scale, width)
    y = line(sin + q * cos, p * sin + cos, y_scale, height)
    return drawing.map(x, y, **given.warp()).build()


# Of the Affine that SafeRotate is in version 2.0.
_OF_AFFINE = ("rotate", "scale", "shear", "translate_px", "fit_output", "keep_ratio", "balanced_scale")


def safe_rotate(given: Arguments) -> Transform:
    """A rotation that shows the whole image, shrunk to the image's size."""
    boxes = "boxes move with their image here; there they are 0.5 pixels up and to the left of it"
    given.note_for("boxes", boxes)
    for name in _OF_AFFINE:
        given.take(name)
    drawing = Drawing(given.place)
    height, width = drawing.size()
    turn = drawing.radians(given.pair("angle_range limit", (-90, 90)))
    cos = turn.to("cos")
    sin = turn.to("sin")
    along = cos.to("abs")
    across = sin.to("abs")
    x_factor = (height * across + width * along).to("int") / width
    y_factor = (height * along + width * across).to("int") / height

    def line(a: Drawn, b: Drawn, side: Drawn) -> tuple[Drawn, Drawn, Drawn]:
        a = a * x_factor
        b = b * y_factor
        # Where the middle of a pixel becomes that of the image.
        there = a * (width / 2 + 0.5) + b * (height / 2 + 0.5)
        return a, b, side / 2 - there

    return drawing.map(line(cos, -sin, width), line(sin, cos, height), **given.warp()).build()


def perspective(given: Arguments) -> Transform:
    """Corners move inwards by the magnitude of normal numbers; the quadrangle between them is drawn out."""
    given.require("keep_size", True, why="the size would depend on the corners")
    given.require("fit_output", False)
    drawing = Drawing(given.place)
    height, width = drawing.size()
    scale = drawing.uniform(given.pair("scale", (0.05, 0.1)))

    def inwards() -> Drawn:
        return drawing.value("normal", 0, scale).to("abs") % 0.32

    top_left = (width * inwards(), height * inwards())
    top_right = (width * (1 - inwards()), height * inwards())
    bottom_right = (width * (1 - inwards()), height * (1 - inwards()))
    bottom_left = (width * inwards(), height * (1 - inwards()))

    def longer(*edges: tuple[tuple[Drawn, Drawn], tuple[Drawn, Drawn]]) -> Drawn:
        lengths = []
        for start, end in edges:
            x = end[0] - start[0]
            y = end[1] - start[1]
            lengths.append((x * x + y * y).to("sqrt"))
        return lengths[0].at_least(lengths[1]).to("int")

    # As large as the longer edges are, and then as the image was: more than fills it.
    right = width * width / longer((top_left, top_right), (bottom_left, bottom_right))
    bottom = height * height / longer((top_left, bottom_left), (top_right, bottom_right))
    # Corners of pixels have whole numbers here, their centers there.
    corners = (top_left, top_right, bottom_right, bottom_left)
    start = [(x + 0.5, y + 0.5) for x, y in corners]
    end = [(0.5, 0.5), (right + 0.5, 0.5), (right + 0.5, bottom + 0.5), (0.5, bottom + 0.5)]
    return drawing.do("perspective", startpoints=start, endpoints=end, **given.warp()).build()


def elastic(given: Arguments) -> Transform:
    """torchvision's, with the same deviation of displacements. AlbumentationsX has splines under this name."""
    if "displacement_range" in given or "control_grid_shape" in given:
        given.place.refuse("", "a spline of control points", "GridDistortion or ThinPlateSpline")
    given.require("approximate", False, why="the whole blur")
    given.require("same_dxdy", False, why="each axis has its own displacement here")
    alpha = given.take("alpha", 1.0)
    sigma = given.take("sigma", 50.0)
    is_uniform = given.take("noise_distribution", "gaussian") == "uniform"
    given.note_for("keypoints", "key points are whole pixels there: up to 1 pixel off")
    borders = f"positions within sigma={sigma:g} pixels of borders move less here"
    given.note(f"{borders}: 2 levels on average at alpha=100 and sigma=8")
    # Noise is half of uniform noise here; normal noise there has a 4.5th of alpha as its deviation.
    factor = 2.0 if is_uniform else 2.0 * math.sqrt(3.0) / 4.5
    return given.build(ElasticTransform, alpha=alpha * factor, sigma=sigma, **given.warp())


def thin_plate(given: Arguments) -> Transform:
    if "map_resolution_range" not in given:
        given.refuse(
            "", "a spline of version 2.0, whose positions move up to 9 times as far", "that of AlbumentationsX"
        )
    given.require("map_resolution_range", (1.0, 1.0), why="the map is exact at nodes of its own grid")
    scale = given.pair("scale_range", (0.2, 0.4))
    number = given.take("num_control_points", 4)
    return given.build(ThinPlateSpline, scale_range=scale, num_control_points=number, **given.warp())
