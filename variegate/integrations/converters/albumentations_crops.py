"""Rules of Albumentations' crops, borders and resizes. It resamples by cv2, Variegate as Pillow does."""

from __future__ import annotations

from typing import Any

from variegate.integrations.converters.albumentations_arguments import Arguments
from variegate.integrations.converters.drawing import Drawing, Value
from variegate.integrations.converters.report import argument_names
from variegate.ops.base import Transform
from variegate.ops.crop import CenterCrop, Pad, RandomCrop
from variegate.ops.fitting import Downscale, LetterBox, LongestMaxSize, SmallestMaxSize
from variegate.ops.resize import RandomResizedCrop, Resize

SIZE = {"size": "height, width"}

# -- crops and borders -------------------------------------------------------------------------------------------


def random_crop(given: Arguments) -> Transform:
    return given.place.build(RandomCrop, {"size": _cropped(given)}, SIZE)


def center_crop(given: Arguments) -> Transform:
    how = "where an odd number of pixels is left over, the place may be one pixel off"
    given.place.differs("", None, how)
    return given.place.build(CenterCrop, {"size": _cropped(given)}, SIZE)


def _cropped(given: Arguments) -> tuple[Any, Any]:
    given.require("pad_if_needed", False, why="put PadIfNeeded before it")
    for name in ("pad_position", "border_mode", "fill"):
        given.take(name)
    return given.take("height"), given.take("width")


def crop(given: Arguments) -> Transform:
    left, top, right, bottom = (
        given.take(name, default) for name, default in (("x_min", 0), ("y_min", 0), ("x_max", 1024), ("y_max", 1024))
    )
    _cropped(given)
    given.place.differs("", None, "beyond a smaller image it is black here, and an error there")
    drawing = Drawing(given.place)
    drawing.do("crop", top=top, left=left, height=bottom - top, width=right - left)
    return drawing.made()


def crop_from_borders(given: Arguments) -> Transform:
    drawing = Drawing(given.place)
    value = drawing.value
    box = []
    for side, first, last in zip(drawing.size(), ("top", "left"), ("bottom", "right"), strict=True):
        start = drawing.between(0, drawing.value("int", value("*", side, given.take(f"crop_{first}", 0.1))))
        kept = drawing.value("int", value("*", side, 1 - given.take(f"crop_{last}", 0.1)))
        end = drawing.between(value("max", value("+", start, 1), kept), side)
        box.append((start, value("-", end, start)))
    (top, height), (left, width) = box
    drawing.do("crop", top=top, left=left, height=height, width=width)
    return drawing.made()


def crop_and_pad(given: Arguments) -> Transform:
    """Top, right, bottom and left: borders, or where they are negative, what is cut off."""
    for name in ("px_choices", "percent_choices"):
        given.require(name, None)
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
    mode, fill = given.border(), given.colour()
    drawing.do("pad", padding=(left, top, right, bottom), fill=fill, padding_mode=mode)
    if given.take("keep_size", True):
        drawing.do("resize", size=(height, width), **resampled(given))
    given.take("interpolation")
    return drawing.made()


def pad(given: Arguments) -> Transform:
    arguments = {"padding": given.take("padding", 0), "padding_mode": given.border(), "fill": given.colour()}
    return given.place.build(Pad, arguments, {"padding_mode": "border_mode"})


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
        else:
            before = 0 if first in position else missing
        borders |= {first: before, last: value("-", missing, before)}
    padding = tuple(borders[side] for side in ("left", "top", "right", "bottom"))
    drawing.do("pad", padding=padding, fill=given.colour(), padding_mode=given.border())
    return drawing.made()


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


def random_scale(given: Arguments) -> Transform:
    low, high = given.take_range("scale_range scale_limit", (-0.1, 0.1))
    drawing = Drawing(given.place)
    sides = drawing.size()
    factor = drawing.uniform((1 + low, 1 + high))
    size = tuple(drawing.value("int", drawing.value("*", side, factor)) for side in sides)
    drawing.do("resize", size=size, **resampled(given))
    return drawing.made()


def sized_crop(given: Arguments) -> Transform:
    drawing = Drawing(given.place)
    value, (height, width) = drawing.value, drawing.size()
    drawn = drawing.between(*given.take("min_max_height"))
    high = value("min", drawn, height)
    wide = value("min", drawing.value("int", value("*", drawn, given.take("w2h_ratio", 1.0))), width)
    top, left = (drawing.between(0, value("-", side, cut)) for side, cut in ((height, high), (width, wide)))
    size = given.take("size") or (given.take("height"), given.take("width"))
    box = {"top": top, "left": left, "height": high, "width": wide}
    drawing.do("resized_crop", size=size, **box, **resampled(given))
    return drawing.made()


def resized_crop(given: Arguments) -> Transform:
    given.require("sampling_method", "standard")
    arguments = {name: given.take(name) for name in ("size", "scale", "ratio")}
    if arguments["size"] is None:  # as versions before 1.4 say it
        arguments["size"] = given.take("height"), given.take("width")
    if "edges" in argument_names(RandomResizedCrop):
        arguments["edges"] = "crop"
    there = {name: value for name, value in arguments.items() if value is not None}
    return given.place.build(RandomResizedCrop, {**there, **resampled(given)})
