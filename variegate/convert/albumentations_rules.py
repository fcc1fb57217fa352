"""Rules of Albumentations' transforms whose arguments are written in another way here."""

from __future__ import annotations

from typing import Any

from variegate.convert.albumentations_arguments import Arguments
from variegate.transforms.base import Transform
from variegate.transforms.color import (
    CLAHE,
    AutoContrast,
    Brightness,
    ChannelPermutation,
    Contrast,
    Equalize,
    Gamma,
    Hue,
    RGBShift,
    Solarize,
    SolarizeAdd,
)
from variegate.transforms.compose import Compose
from variegate.transforms.crop import RandomHorizontalFlip, RandomRotate90
from variegate.transforms.erase import CoarseDropout, RandomErasing
from variegate.transforms.jitter import ColorJitter, RandomChannelPermutation, RandomGrayscale

Range = tuple[float, float]

# -- moving pixels -----------------------------------------------------------------------------------------------


def channel_shuffle(given: Arguments) -> Transform:
    order = given.take("channel_order")
    if order is None:
        return RandomChannelPermutation()
    return given.place.build(ChannelPermutation, {"order": order}, {"order": "channel_order"})


def rotate90(given: Arguments) -> Transform:
    """All four turns there, the one by 0 degrees too."""
    given.require("group_element", None)
    elements = given.take("group_elements", ("e", "r90", "r180", "r270"))
    if elements is not None and sorted(elements) != ["e", "r180", "r270", "r90"]:
        given.place.refuse("group_elements", elements, "None or all four of them")
    return RandomRotate90(p=0.75)


def square_symmetry(given: Arguments) -> Transform:
    given.require("group_element", None)
    return Compose([RandomRotate90(p=0.75), RandomHorizontalFlip(p=0.5)])


# -- values ------------------------------------------------------------------------------------------------------


def solarize(given: Arguments) -> Transform:
    old, new = given.take("threshold"), given.take("threshold_range", (0.5, 0.5))
    if old is not None:  # levels
        return given.place.build(Solarize, {"threshold": old})
    levels = tuple(255.0 * end for end in new)
    return given.place.build(Solarize, {"threshold": levels}, {"threshold": "threshold_range"})


def brightness_contrast(given: Arguments) -> Transform:
    brightness = given.take_range("brightness_range brightness_limit", (-0.2, 0.2))
    contrast = given.take_range("contrast_range contrast_limit", (-0.2, 0.2))
    given.require("ensure_safe_output", False)
    of_max = given.take("brightness_by_max", False)
    names = {"factor": "contrast_range"}
    if not of_max:
        first = given.place.build(Contrast, {"factor": _plus_one(contrast)}, names)
        return Compose([first, given.place.build(Brightness, {"factor": _plus_one(brightness)}, names)])
    # c x + 255 b, here with levels cut off in between.
    scaled = given.place.build(Brightness, {"factor": _plus_one(contrast)}, names)
    levels = tuple(round(255 * end) for end in brightness)
    added = given.place.build(SolarizeAdd, {"addition": levels, "threshold": 256}, {"addition": "brightness_range"})
    if contrast[1] > 0 and brightness[0] < 0:
        how = "levels are cut off at 255 before a darkening here, after it there"
        given.place.differs("brightness_by_max", True, how)
    return Compose([scaled, added])


def _plus_one(limits: Range) -> Range:
    return 1 + limits[0], 1 + limits[1]


def color_jitter(given: Arguments) -> Transform:
    arguments = {}
    for name, centre, default in (
        ("brightness", 1.0, (0.8, 1.2)),
        ("contrast", 1.0, (0.8, 1.2)),
        ("saturation", 1.0, (0.8, 1.2)),
        ("hue", 0.0, (-0.5, 0.5)),
    ):
        arguments[name] = given.take_range(f"{name}_range {name}", default, centre)
    if arguments["hue"] != (0.0, 0.0):
        _hue_differs(given, "hue_range", arguments["hue"])
    return given.place.build(ColorJitter, arguments, {name: f"{name}_range" for name in arguments})


def hue(given: Arguments) -> Transform:
    """Saturation and value are shifted there; only the hue means the same."""
    for name in ("sat", "val"):
        limits = given.take_range(f"{name}_shift_range {name}_shift_limit", (0.0, 0.0))
        if limits != (0, 0):
            accepted = "(0, 0), since it is added there and multiplied here; ColorJitter converts"
            given.place.refuse(f"{name}_shift_range", limits, accepted)
    limits = given.take_range("hue_shift_range hue_shift_limit", (-20, 20))
    _hue_differs(given, "hue_shift_range", limits)
    turns = tuple(end / 180 for end in limits)  # cv2 has half as many hues as degrees
    return given.place.build(Hue, {"factor": turns}, {"factor": "hue_shift_range"})


def _hue_differs(given: Arguments, name: str, value: Any) -> None:
    given.place.differs(
        name, value, "hues have 256 steps here (Pillow), 180 there (cv2): half a level on average, 7 at most"
    )


def gamma(given: Arguments) -> Transform:
    limits = given.take_range("gamma_range gamma_limit", (80, 120), 100)
    return given.place.build(Gamma, {"gamma": tuple(end / 100 for end in limits)}, {"gamma": "gamma_range"})


def to_gray(given: Arguments) -> Transform:
    given.require("num_output_channels", 3)
    given.require("method", "weighted_average")
    return RandomGrayscale(p=1.0)


def rgb_shift(given: Arguments) -> Transform:
    shifts = {}
    for colour in ("red", "green", "blue"):
        limits = given.take_range(f"{colour[0]}_shift_range {colour[0]}_shift_limit", (-20, 20))
        shifts[colour] = tuple(round(end) for end in limits)
    return given.place.build(RGBShift, shifts, {colour: f"{colour[0]}_shift_range" for colour in shifts})


def equalize(given: Arguments) -> Transform:
    given.require("by_channels", True)
    given.require("mask", None)
    if given.take("mode", "cv") == "cv":
        given.place.differs(
            "mode", "cv", "Pillow's here, as with mode='pil': 3 levels on average, 9 at most in a photo"
        )
    return Equalize()


def autocontrast(given: Arguments) -> Transform:
    given.require("cutoff", 0)
    given.require("ignore", None)
    method = given.take("method", "cdf")
    if method != "pil":
        given.place.refuse("method", method, "'pil'")
    how = "a channel's lowest and highest levels may be others there: 1 level on most photos, 29 at most"
    given.place.differs("", None, how)
    return AutoContrast()


def clahe(given: Arguments) -> Transform:
    arguments = {
        "clip_limit": given.take_range("clip_range clip_limit", (1.0, 4.0), 1.0),
        "tile_grid_size": given.take("tile_grid_size", (8, 8)),
    }
    given.place.differs("", None, "of colours the luma is equalised here, the lightness of LAB there; gray is the same")
    return given.place.build(CLAHE, arguments, {"clip_limit": "clip_range"})


# -- erasing -----------------------------------------------------------------------------------------------------


def coarse_dropout(given: Arguments) -> Transform:
    height = given.take("hole_height_range", (0.1, 0.2))
    width = given.take("hole_width_range", (0.1, 0.2))
    if height != width:
        given.place.refuse("hole_width_range", width, f"hole_height_range ({height}): both sides have one range here")
    count = given.take("num_holes_range", (1, 2))
    names = {"num_holes": "num_holes_range", "size": "hole_height_range"}
    arguments = {"num_holes": count, "size": height, "fill": _erased_with(given)}
    return given.place.build(CoarseDropout, arguments, names)


def erasing(given: Arguments) -> Transform:
    scale, ratio = given.take("scale", (0.02, 0.33)), given.take("ratio", (0.3, 3.3))
    # Width / height there, height / width here.
    arguments = {"p": 1.0, "scale": scale, "ratio": (1 / ratio[1], 1 / ratio[0]), "value": _erased_with(given)}
    return given.place.build(RandomErasing, arguments, {"value": "fill"})


def _erased_with(given: Arguments) -> Any:
    value = given.take("fill fill_value", 0)
    if isinstance(value, str):
        if value != "random":
            given.place.refuse("fill", value, "a level, three of them, or 'random'")
        return value
    return tuple(map(round, value)) if isinstance(value, tuple) else round(value)
