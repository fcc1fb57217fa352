"""Rules of Albumentations' crops, borders, resizes and maps whose arguments need arithmetic."""

from __future__ import annotations

import math
from typing import Any

from variegate.interop.convert import drawn
from variegate.interop.convert.albumentations_arguments import Arguments, Pair
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
    return drawn.build(given.place, drawn.crop, top=top, left=left, height=height, width=width)


def crop_from_borders(given: Arguments) -> Transform:
    starts = given.take("crop_top", 0.1), given.take("crop_left", 0.1)
    ends = given.take("crop_bottom", 0.1), given.take("crop_right", 0.1)
    return drawn.build(given.place, drawn.crop_from_borders, starts=starts, ends=ends)


def crop_and_pad(given: Arguments) -> Transform:
    given.require("px_choices", None)
    given.require("percent_choices", None)
    pixels, shares = given.take("px"), given.take("percent")
    limits = shares if pixels is None else pixels
    is_per_side = isinstance(limits, tuple) and len(limits) == 4
    arguments = given.border()
    keep_size = given.take("keep_size", True)
    if keep_size:
        arguments |= given.resample()
    given.take("interpolation")
    return drawn.build(
        given.place,
        drawn.crop_and_pad,
        limits=[
            ends if isinstance(ends, tuple) else (ends, ends) for ends in (limits if is_per_side else (limits,) * 4)
        ],
        is_drawn_once=not given.take("sample_independently", True) and not is_per_side,
        are_pixels=pixels is not None,
        keep_size=keep_size,
        **arguments,
    )


_CORNERS = ("top_left", "top_right", "bottom_left", "bottom_right")


def pad_if_needed(given: Arguments) -> Transform:
    given.take("padding")  # of the Pad that it is in version 2.0
    position = given.take("position", "center")
    if position not in ("center", "random", *_CORNERS):
        given.refuse("position", position, f"'center', 'random' or {', '.join(map(repr, _CORNERS))}")
    divisors = [given.take(f"pad_{name}_divisor") for name in ("height", "width")]
    sides = [given.take(f"min_{name}") for name in ("height", "width")]
    least = [1024 if side is None else side for side in sides]
    return drawn.build(
        given.place, drawn.pad_if_needed, least=least, divisors=divisors, position=position, **given.border()
    )


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
    used = [band for band in bands if band is not None]
    if len(used) == 2:
        return Compose(used)
    return used[0] if used else None


def _band(given: Arguments, axis: str, longest: int) -> Transform | None:
    low, high = given.pair(f"mask_{axis}_length_range mask_{axis}_length", (0, longest))
    numbers = given.pair(f"num_masks_{axis}_range num_masks_{axis}", (1, 1) if longest else (0, 0))
    if not high or not numbers[1]:
        return None
    if numbers[1] != 1 or not isinstance(high, int):
        given.refuse(f"num_masks_{axis}_range", numbers, "one band along each axis, of a length in pixels")
    band = drawn.build(given.place, drawn.band, is_column=axis == "x", lengths=(low, high))
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
    return drawn.build(given.place, drawn.random_scale, factors=(1 + low, 1 + high), **given.resample())


def sized_crop(given: Arguments) -> Transform:
    return drawn.build(
        given.place,
        drawn.sized_crop,
        heights=given.take("min_max_height"),
        aspect=given.take("w2h_ratio", 1.0),
        size=given.take("size"),
        **given.resample(),
    )


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
    """Without a "y", ``scale`` is one factor for both axes."""
    ranges = {"scales": scale, "shears": shear, "shares": shares, "pixels": pixels}
    axes = {name: list(of_axes.values()) for name, of_axes in ranges.items()}
    return drawn.build(given.place, drawn.affine, degrees=degrees, **axes, **given.warp())


# Of the Affine that SafeRotate is in version 2.0.
_OF_AFFINE = ("rotate", "scale", "shear", "translate_px", "fit_output", "keep_ratio", "balanced_scale")


def safe_rotate(given: Arguments) -> Transform:
    boxes = "boxes move with their image here; there they are 0.5 pixels up and to the left of it"
    given.note_for("boxes", boxes)
    for name in _OF_AFFINE:
        given.take(name)
    degrees = given.pair("angle_range limit", (-90, 90))
    return drawn.build(given.place, drawn.safe_rotate, degrees=degrees, **given.warp())


def perspective(given: Arguments) -> Transform:
    given.require("keep_size", True, why="the size would depend on the corners")
    given.require("fit_output", False)
    return drawn.build(given.place, drawn.perspective, scales=given.pair("scale", (0.05, 0.1)), **given.warp())


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
