"""Rules of Albumentations' transforms whose arguments are written in another way here."""

from __future__ import annotations

from typing import Any

from variegate.integrations.converters.albumentations_arguments import Arguments
from variegate.integrations.converters.drawing import Drawing
from variegate.ops.base import Transform
from variegate.ops.colour import (
    CLAHE,
    WHITE_KELVIN,
    AutoContrast,
    ChannelPermutation,
    Color,
    ColorJitter,
    ColorTemperature,
    Contrast,
    Equalize,
    Hue,
    RandomChannelPermutation,
    RandomGrayscale,
    RandomPhotometricDistort,
)
from variegate.ops.compose import Compose, OneOf
from variegate.ops.crop import RandomHorizontalFlip, RandomRotate90
from variegate.ops.erase import CoarseDropout, GridMask, RandomErasing
from variegate.ops.mix import Mosaic
from variegate.ops.tone import Brightness, Gamma, RGBShift, Solarize, SolarizeAdd

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
    """``c x + b``: b is a share of 255, or of the image's mean; or a torchvision contrast and brightness (version 2.5
    of AlbumentationsX, which calls its arguments ranges)."""
    is_torchvision = "brightness_range" in given
    brightness = given.take_range("brightness_range brightness_limit", (-0.2, 0.2))
    contrast = given.take_range("contrast_range contrast_limit", (-0.2, 0.2))
    for name in ("ensure_safe_output", "ensure_safe_range"):
        given.require(name, False)
    of_max = given.take("brightness_by_max", not is_torchvision)
    names = {"factor": "contrast_range"}
    if is_torchvision and not of_max:
        first = given.place.build(Contrast, {"factor": _plus_one(contrast)}, names)
        return Compose([first, given.place.build(Brightness, {"factor": _plus_one(brightness)}, names)])
    drawing = Drawing(given.place)
    value = drawing.value
    factor, share = drawing.uniform(_plus_one(contrast)), drawing.uniform(brightness)
    if of_max:  # darkened before and brightened after the factor, so that nothing is cut off in between
        added = value("*", share, 255)
        before = value("round", value("/", value("min", added, 0), value("max", factor, 1e-3)))
        drawing.do("solarize_add", addition=value("max", before, -255), threshold=256)
        drawing.do("adjust_brightness", brightness_factor=factor)
        drawing.do("solarize_add", addition=value("round", value("max", added, 0)), threshold=256)
    else:  # c x + b mean is (b + c) times a contrast of c / (b + c); what is cut off in between would be at the end
        whole = value("max", value("+", factor, share), 1e-3)
        drawing.do("adjust_brightness", brightness_factor=value("min", whole, 1))
        drawing.do("adjust_contrast", contrast_factor=value("/", factor, whole))
        drawing.do("adjust_brightness", brightness_factor=value("max", whole, 1))
        given.place.differs("brightness_by_max", False, "the mean of the luma here, of all channels there: 3 levels")
    return drawing.made()


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
    """Shifts of hue, saturation and value; the last two are a factor and a shift of all channels here."""
    turn, more, light = (
        given.take_range(f"{name}_shift_range {name}_shift_limit", (-width, width))
        for name, width in (("hue", 20.0), ("sat", 30.0), ("val", 20.0))
    )
    steps: list[Transform] = []
    if any(turn):
        _hue_differs(given, "hue_shift_range", turn)
        turns = tuple(end / 180 for end in turn)  # cv2 has half as many hues as degrees
        steps.append(given.place.build(Hue, {"factor": turns}, {"factor": "hue_shift_range"}))
    if any(more):
        how = "blended with the luma here, added to there: 3 levels on average at 15, 6 at 30, 30 at most"
        given.place.differs("sat_shift_range", more, how)
        steps.append(given.place.build(Color, {"factor": tuple(max(1 + end / _SATURATION, 0.0) for end in more)}))
    if any(light):
        how = "added to all channels here, to the greatest there: 4 levels on average at 20, 23 at most"
        given.place.differs("val_shift_range", light, how)
        levels = tuple(map(round, light))
        steps.append(given.place.build(SolarizeAdd, {"addition": levels, "threshold": 256}))
    return steps[0] if len(steps) == 1 else Compose(steps)


# The saturation of which a shift is that share: photos come closest with it.
_SATURATION = 130.0


def _hue_differs(given: Arguments, name: str, value: Any) -> None:
    given.place.differs(
        name, value, "hues have 256 steps here (Pillow), 180 there (cv2): half a level on average, 10 at most"
    )


def gamma(given: Arguments) -> Transform:
    limits = given.take_range("gamma_range gamma_limit", (80, 120), 100)
    return given.place.build(Gamma, {"gamma": tuple(end / 100 for end in limits)}, {"gamma": "gamma_range"})


def to_gray(given: Arguments) -> Transform:
    given.require("num_output_channels", 3)
    given.require("method", "weighted_average")
    return RandomGrayscale(p=1.0)


def rgb_shift(given: Arguments) -> Transform:
    for name in ("approximation", "noise_params", "noise_type", "spatial_mode"):
        given.take(name)  # of the AdditiveNoise that it is there
    shifts = {}
    for colour in ("red", "green", "blue"):
        limits = given.take_range(f"{colour[0]}_shift_range {colour[0]}_shift_limit", (-20, 20))
        white = 255 if all(abs(end) <= 1 for end in limits) else 1  # shares of it, as version 2.0 takes them
        shifts[colour] = tuple(round(white * end) for end in limits)
    return given.place.build(RGBShift, shifts, {colour: f"{colour[0]}_shift_range" for colour in shifts})


def equalize(given: Arguments) -> Transform:
    given.require("by_channels", True)
    given.require("mask", None)
    mode = given.take("mode", "cv")
    same = "; of AlbumentationsX it is the same, of version 2.0 not" if mode == "pil" else ""
    given.place.differs("mode", mode, _EQUALIZED + same)
    return Equalize()


_EQUALIZED = "Pillow's Equalize here: 6 levels on average over eight photos, 50 at most"


def autocontrast(given: Arguments) -> Transform:
    given.require("cutoff", 0)
    given.require("ignore", None)
    method = given.take("method", "cdf")
    if method == "cdf":  # which makes the histogram flat
        given.place.differs("method", method, _EQUALIZED)
        return Equalize()
    how = "a channel's lowest and highest levels may be others there: 1 level on most photos, 29 at most"
    given.place.differs("", None, how)
    return AutoContrast()


def clahe(given: Arguments) -> Transform:
    arguments = {
        "clip_limit": given.take_range("clip_range clip_limit", (1.0, 4.0), 1.0),
        "tile_grid_size": given.take("tile_grid_size", (8, 8)),
    }
    how = "of colours the luma is equalised here, the lightness of LAB there: 5 levels on average, 41 at most"
    given.place.differs("", None, f"{how}; gray is the same")
    return given.place.build(CLAHE, arguments, {"clip_limit": "clip_range"})


def planckian_jitter(given: Arguments) -> Transform:
    given.require("mode", "blackbody")
    given.require("sampling_method", "uniform")
    kelvin = given.take("temperature_range temperature_limit", (3000, 15000))
    low, high = kelvin
    how = "in linear light here, so half as strong: 5 levels on average at 5,000 and 10,000 K, 19 at 3,000"
    given.place.differs("", None, how)
    halves = [
        given.place.build(ColorTemperature, {"kelvin": ends}, {"kelvin": "temperature_range"})
        for ends in ((low, WHITE_KELVIN), (WHITE_KELVIN, high))
    ]
    return OneOf(halves, weights=(0.4, 0.6))


def photometric_distort(given: Arguments) -> Transform:
    ranges = {name: given.take(f"{name}_range") for name in ("brightness", "contrast", "saturation", "hue")}
    there = {name: value for name, value in ranges.items() if value is not None}
    if any(there.get("hue", (1.0,))):
        _hue_differs(given, "hue_range", there.get("hue", (-0.05, 0.05)))
    names = {name: f"{name}_range" for name in ranges}
    # In a Compose, as its own probability is that of each of its parts.
    parts = given.place.build(RandomPhotometricDistort, {**there, "p": given.take("distort_p", 0.5)}, names)
    return Compose([parts])


def multiplied(given: Arguments) -> Transform:
    for name in ("per_channel", "elementwise"):
        given.require(name, False, why="one factor for the image")
    factor = given.take_range("multiplier", (0.9, 1.1), 0.0)
    return given.place.build(Brightness, {"factor": factor}, {"factor": "multiplier"})


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


def grid_dropout(given: Arguments) -> Transform:
    given.require("holes_number_xy", None, why="squares have distances in pixels here, or shares of the shorter side")
    given.require("shift_xy", (0, 0))
    given.require("random_offset", True)
    unit = given.take("unit_size_range") or 0.1
    given.place.differs("", None, "one grid of squares with a place of its own; there each square has one in its cell")
    arguments = {"unit": unit, "ratio": given.take("ratio", 0.5), "fill": _erased_with(given)}
    return given.place.build(GridMask, arguments, {"unit": "unit_size_range"})


def mosaic(given: Arguments) -> Transform:
    given.require("grid_yx", (2, 2))
    given.require("fit_mode", "cover")
    for name in ("metadata_key", "cell_shape", "interpolation", "fill"):
        given.take(name)
    how = "partners are of the batch, not of the metadata, and quadrants show what lies there, not whole images"
    given.place.differs("", None, how)
    size = given.take("target_size", (512, 512))
    given.place.differs("target_size", size, "all images have one size before: put a Resize in front of it")
    return given.place.build(Mosaic, {"center_range": given.take("center_range", (0.3, 0.7))})


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
