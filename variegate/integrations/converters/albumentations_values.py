"""Rules of Albumentations' transforms of values, filters, noise and erasing that do more than take arguments."""

from __future__ import annotations

import math
from typing import Any

from variegate.integrations.converters.albumentations_arguments import Arguments, Range, odd
from variegate.integrations.converters.report import Drawing
from variegate.ops import colour, filters, tone
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, OneOf
from variegate.ops.crop import RandomRotate90
from variegate.ops.erase import CoarseDropout, GridMask, RandomErasing

# -- turns and channels ------------------------------------------------------------------------------------------


def channel_shuffle(given: Arguments) -> Transform:
    order = given.take("channel_order")
    if order is None:
        return colour.RandomChannelPermutation()
    return given.build(colour.ChannelPermutation, {"order": "channel_order"}, order=order)


def rotate90(given: Arguments) -> Transform:
    """All four turns there, the one by 0 degrees too."""
    given.require("group_element", None)
    elements = given.take("group_elements", ("e", "r90", "r180", "r270"))
    if elements is not None and sorted(elements) != ["e", "r180", "r270", "r90"]:
        given.refuse("group_elements", elements, "None or all four of them")
    return RandomRotate90(p=0.75)


# -- values ------------------------------------------------------------------------------------------------------


def solarize(given: Arguments) -> Transform:
    levels, shares = given.take("threshold"), given.take("threshold_range", (0.5, 0.5))
    if levels is not None:
        return given.build(tone.Solarize, threshold=levels)
    return given.build(tone.Solarize, {"threshold": "threshold_range"}, threshold=tuple(255.0 * end for end in shares))


def brightness_contrast(given: Arguments) -> Transform:
    """``c x + b``: b is a share of 255, or of the image's mean; or torchvision's contrast and brightness (X 2.5)."""
    is_torchvision = "brightness_range" in given
    brightness = given.take_range("brightness_range brightness_limit", (-0.2, 0.2))
    contrast = _plus_one(given.take_range("contrast_range contrast_limit", (-0.2, 0.2)))
    given.require("ensure_safe_output ensure_safe_range", False)
    of_max = given.take("brightness_by_max", not is_torchvision)
    if is_torchvision and not of_max:
        names = {"factor": "contrast_range"}
        first = given.build(colour.Contrast, names, factor=contrast)
        return Compose([first, given.build(tone.Brightness, names, factor=_plus_one(brightness))])
    drawing = Drawing(given.place)
    value = drawing.value
    factor, share = drawing.uniform(contrast), drawing.uniform(brightness)
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
        given.differs("the mean of the luma here, of all channels there: 3 levels", "brightness_by_max", False)
    return drawing.made()


def _plus_one(limits: Range) -> Range:
    return 1 + limits[0], 1 + limits[1]


def color_jitter(given: Arguments) -> Transform:
    ranges = {
        name: given.take_range(f"{name}_range {name}", (0.8, 1.2), 1.0)
        for name in ("brightness", "contrast", "saturation")
    }
    ranges["hue"] = given.take_range("hue_range hue", (-0.5, 0.5))
    if ranges["hue"] != (0.0, 0.0):
        _hue_differs(given, "hue_range", ranges["hue"])
    return given.build(colour.ColorJitter, {name: f"{name}_range" for name in ranges}, **ranges)


def hue(given: Arguments) -> Transform | None:
    """Shifts of hue, saturation and value; the last two are a factor and a shift of all channels here. None without
    a shift."""
    turn, more, light = (
        given.take_range(f"{name}_shift_range {name}_shift_limit", (-width, width))
        for name, width in (("hue", 20.0), ("sat", 30.0), ("val", 20.0))
    )
    steps: list[Transform] = []
    if any(turn):
        _hue_differs(given, "hue_shift_range", turn)
        turns = tuple(end / 180 for end in turn)  # cv2 has half as many hues as degrees
        steps.append(given.build(colour.Hue, {"factor": "hue_shift_range"}, factor=turns))
    if any(more):
        most = max(map(abs, more))
        mean = f"{most / 5:.1f} levels on average, twice as many where colors are strong, {most:.0f} at most"
        how = f"blended with the luma here, added to there: {mean}"
        given.differs(how, "sat_shift_range", more)
        # Photos come closest where a shift is a share of 130.
        steps.append(given.build(colour.Color, factor=tuple(max(1 + end / 130.0, 0.0) for end in more)))
    if any(light):
        most = max(map(abs, light))
        how = "added to all channels here, to the greatest there"
        given.differs(f"{how}: {most / 4:.1f} levels on average, {most + 3:.0f} at most", "val_shift_range", light)
        steps.append(given.build(tone.SolarizeAdd, addition=tuple(map(round, light)), threshold=256))
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else Compose(steps)


def _hue_differs(given: Arguments, name: str, value: Any) -> None:
    how = "hues have 256 steps here (Pillow), 180 there (cv2): half a level to one level on average, 10 at most"
    given.differs(how, name, value)


_EQUALIZED = "Pillow's Equalize here: 6 levels on average over eight photos, 50 at most"


def equalize(given: Arguments) -> Transform:
    given.require("by_channels", True)
    given.require("mask", None)
    mode = given.take("mode", "cv")
    same = "; of AlbumentationsX it is the same, of version 2.0 not" if mode == "pil" else ""
    given.differs(_EQUALIZED + same, "mode", mode)
    return colour.Equalize()


def autocontrast(given: Arguments) -> Transform:
    given.require("cutoff", 0)
    given.require("ignore", None)
    method = given.take("method", "cdf")
    if method == "cdf":  # which makes the histogram flat
        given.differs(_EQUALIZED, "method", method)
        return colour.Equalize()
    given.differs("a channel's lowest and highest levels may be others there: 1 level on most photos, 29 at most")
    return colour.AutoContrast()


def planckian_jitter(given: Arguments) -> Transform:
    given.require("mode", "blackbody")
    given.require("sampling_method", "uniform")
    low, high = given.take("temperature_range temperature_limit", (3000, 15000))
    how = "in linear light here, so half as strong: 5 levels on average at 5,000 and 10,000 K, 19 at 3,000"
    given.differs(how)
    halves = [
        given.build(colour.ColorTemperature, {"kelvin": "temperature_range"}, kelvin=ends)
        for ends in ((low, colour.WHITE_KELVIN), (colour.WHITE_KELVIN, high))
    ]
    return OneOf(halves, weights=(0.4, 0.6))


def photometric_distort(given: Arguments) -> Transform:
    names = {name: f"{name}_range" for name in ("brightness", "contrast", "saturation", "hue")}
    there = {name: value for name, called in names.items() if (value := given.take(called)) is not None}
    if any(there.get("hue", (1.0,))):
        _hue_differs(given, "hue_range", there.get("hue", (-0.05, 0.05)))
    # In a Compose, as its own probability is that of each of its parts.
    return Compose([given.build(colour.RandomPhotometricDistort, names, **there, p=given.take("distort_p", 0.5))])


# -- filters, noise and compression ------------------------------------------------------------------------------


def gaussian_blur(given: Arguments) -> Transform:
    given.require("volume_mode", "slice")
    has_boxes = "blur_limit" not in given  # as versions before AlbumentationsX say it
    sizes = given.take_range("blur_range blur_limit", (0, 0))
    sigma = given.take_range("sigma_range sigma_limit", (0.5, 3.0))
    if not any(sizes):  # the kernel is as large as the sigma wants it; a larger one adds next to nothing
        kernels = [int(sigma[1] * 3.5) * 2 + 1]
        if has_boxes:
            how = (
                "a Gaussian with reflected edges here, Pillow's three box blurs there: up to 5 levels within the image"
            )
            given.differs(how, "blur_range", sizes)
    else:
        kernels = _odd_between(sizes)
    names = {"kernel_size": "blur_range", "sigma": "sigma_range"}
    return _one_of([given.build(filters.GaussianBlur, names, kernel_size=size, sigma=sigma) for size in kernels])


def _odd_between(sizes: Range) -> list[int]:
    return list(range(odd(sizes)[0], odd(sizes)[1] + 1, 2))


def _one_of(transforms: list[Any]) -> Transform:
    only: Transform = transforms[0]
    return only if len(transforms) == 1 else OneOf(transforms)


MIRRORED = "the image's outermost pixels are repeated around it here, and mirrored there: 0.2 levels on average"


def box_blur(given: Arguments) -> Transform:
    sizes = _odd_between(given.take_range("blur_range blur_limit", (3, 7)))
    given.differs(MIRRORED)
    kernels = [((1 / size**2,) * size,) * size for size in sizes]
    return _one_of([given.build(filters.Convolve, {"kernel": "blur_range"}, kernel=kernel) for kernel in kernels])


def sharpen(given: Arguments) -> Transform:
    """A Laplacian of strength alpha, a Sharpness after a Brightness of its weights; method="gaussian": UnsharpMask."""
    is_old = "alpha" in given
    alpha = given.take_range("alpha_range alpha", (0.2, 0.5))
    lightness = given.take_range("lightness_range lightness", (0.5, 1.0))
    size, sigma, method = given.take("kernel_size", 5), given.take("sigma", 1.0), given.take("method", "kernel")
    if method == "gaussian":
        if is_old:
            how = "differences of bytes wrap around in version 2.0; they are differences here, as in AlbumentationsX"
            given.differs(how, "method", method)
        names = {"blur_limit": "kernel_size", "sigma_limit": "sigma"}
        return given.build(filters.UnsharpMask, names, blur_limit=size, sigma_limit=sigma, alpha=alpha, threshold=0)
    # Times which the rounding of the smoothed image grows.
    most = min((1 + alpha[1] * (lightness[0] + 12)) / max(1 + alpha[1] * (lightness[0] - 1), 1e-3), 255.0)
    how = f"made of a smoothed image of whole levels here: up to {math.sqrt(most) - 1:.0f} levels on average"
    given.differs(f"{how}, {most:.0f} at most; the outermost pixels do not change")
    drawing = Drawing(given.place)
    value = drawing.value
    share, light = drawing.uniform(alpha), drawing.uniform(lightness)
    total = value("+", 1, value("*", share, value("-", light, 1)))
    factor = value("/", value("+", 1, value("*", share, value("+", light, 12))), value("max", total, 1e-3))
    drawing.do("adjust_brightness", brightness_factor=total)
    return drawing.do("adjust_sharpness", sharpness_factor=factor).made()


def motion_blur(given: Arguments) -> Transform:
    """Angles turn the other way there, and the line runs from its other end."""
    sizes = given.take_range("blur_range blur_limit", (3, 7))
    ranges = {
        "angle": given.take_range("angle_range", (0, 360)),
        "direction": given.take_range("direction_range", (-1.0, 1.0)),
    }
    how = "an even line here, one rounded to whole pixels there; directions fade its end here and shorten it there"
    given.differs(f"{how}: up to {1 + sizes[1] / 12:.0f} levels on average, 160 along edges")
    if given.take("allow_shifted", True):
        given.differs("the line goes through the pixel here, and may miss it there", "allow_shifted", True)
    turned = {name: (0.0 - high, 0.0 - low) for name, (low, high) in ranges.items()}
    names = {"kernel_size": "blur_range", "angle": "angle_range", "direction": "direction_range"}
    return given.build(filters.MotionBlur, names, kernel_size=odd(sizes), **turned)


# The mean and the greatest difference in eight photos, from a quality on.
_COMPRESSED = ((75, 1, 40), (20, 2.5, 60), (10, 4, 100), (-math.inf, 8, 170))


def image_compression(given: Arguments) -> Transform:
    kind = given.take("compression_type", "jpeg")
    if kind not in ("jpeg", 0):
        given.refuse("compression_type", kind, "'jpeg'")
    limits = given.take("quality_range", (99, 100))
    quality = given.take("quality_lower", limits[0]), given.take("quality_upper", limits[1])
    mean, most = next(levels for least, *levels in _COMPRESSED if quality[0] >= least)
    how = "red and blue change places before the file is written there"
    given.differs(f"{how}: up to {mean} levels on average, {most} at most")
    return given.build(filters.JPEG, {"quality": "quality_range"}, quality=quality)


def gauss_noise(given: Arguments) -> Transform:
    sigma, mean = given.take_range("std_range", (0.2, 0.44)), given.take_range("mean_range", (0.0, 0.0))
    if mean[0] != mean[1]:
        given.refuse("mean_range", mean, "one mean, such as (0, 0)")
    given.require("noise_scale_factor", 1)
    if not given.take("per_channel", False):
        how = "each channel has its own noise here, as with per_channel=True: channels differ by 44 levels, by 7 there"
        given.differs(how, "per_channel", False)
    return given.build(filters.GaussianNoise, {"mean": "mean_range", "sigma": "std_range"}, mean=mean[0], sigma=sigma)


def salt_and_pepper(given: Arguments) -> Transform:
    amount = given.take_range("amount_range amount", (0.01, 0.06))
    salt = given.take_range("salt_vs_pepper_range salt_vs_pepper", (0.4, 0.6))
    if salt[0] != salt[1]:
        given.differs("the same share for all images here, the middle of the range", "salt_vs_pepper_range", salt)
    share = (salt[0] + salt[1]) / 2
    return given.build(filters.SaltAndPepper, {"amount": "amount_range"}, amount=amount, salt=share)


def shot_noise(given: Arguments) -> Transform:
    """Photons of linear light, of a gamma of 2.2."""
    low, high = given.take_range("scale_range", (0.1, 0.3))
    how = "normal noise on 8 bits of light here, photons there: dark levels become up to 33 levels lighter on average"
    given.differs(how)
    noise = given.build(filters.ShotNoise, {"scale": "scale_range"}, scale=(255 * low, 255 * high))
    return Compose([tone.Gamma(2.2), noise, tone.Gamma(1 / 2.2)])


# -- erasing -----------------------------------------------------------------------------------------------------


def coarse_dropout(given: Arguments) -> Transform:
    height, width = given.take("hole_height_range", (0.1, 0.2)), given.take("hole_width_range", (0.1, 0.2))
    if height != width:
        given.refuse("hole_width_range", width, f"hole_height_range ({height}): both sides have one range here")
    if height[1] >= 1:  # pixels, floats as well
        height = tuple(map(int, height))
    count, names = given.take("num_holes_range", (1, 2)), {"num_holes": "num_holes_range", "size": "hole_height_range"}
    return given.build(CoarseDropout, names, num_holes=count, size=height, fill=_erased_with(given))


def grid_dropout(given: Arguments) -> Transform:
    given.require("holes_number_xy", None, why="squares have distances in pixels here, or shares of the shorter side")
    given.require("shift_xy", (0, 0))
    given.require("random_offset", True)
    unit, ratio = given.take("unit_size_range") or 0.1, given.take("ratio", 0.5)
    given.differs(
        "one regular grid here; there each square has its own position in its cell: 22 % are erased, 20 % here"
    )
    return given.build(GridMask, {"unit": "unit_size_range"}, unit=unit, ratio=ratio, fill=_erased_with(given))


def erasing(given: Arguments) -> Transform:
    """An area of which rectangles of all ratios, of width to height, lie within the image."""
    scale, ratio, fill = given.take("scale", (0.02, 0.33)), given.take("ratio", (0.3, 3.3)), _erased_with(given)
    if fill == "random":
        if scale[1] > (most := min(ratio[0], 1 / ratio[1])):
            how = f"areas end at {most:.2g} of square images there, at {0.75 * most:.2g} of those of 4:3"
            given.differs(how, "scale", scale)
        ratio = (1 / ratio[1], 1 / ratio[0])  # of height to width
        return given.build(RandomErasing, p=1.0, scale=scale, ratio=ratio, value=fill)
    drawing = Drawing(given.place)
    value, (height, width) = drawing.value, drawing.size()
    least, most = (value("*", value("*", height, width), end) for end in scale)
    squares = value("*", value("*", height, height), ratio[0]), value("/", value("*", width, width), ratio[1])
    most = value("min", value("min", most, squares[0]), squares[1])
    area, drawn = value("uniform", least, value("max", least, most)), drawing.uniform(ratio)
    high = value("max", value("round", value("sqrt", value("/", area, drawn))), 1)
    wide = value("max", value("round", value("sqrt", value("*", area, drawn))), 1)
    rest = value("-", height, high), value("-", width, wide)
    top, left = (drawing.between(0, value("max", side, 0)) for side in rest)
    top = value("where", value("<", most, least), height, top)  # where none fits, behind the image
    return drawing.do("erase", i=top, j=left, h=high, w=wide, v=fill).made()


def _erased_with(given: Arguments) -> Any:
    given.keep_masks()
    given.keep_boxes()
    value = given.take("fill fill_value", 0)
    if isinstance(value, str):
        if value != "random":
            given.refuse("fill", value, "a level, three of them, or 'random'")
        return value
    return tuple(map(round, value)) if isinstance(value, tuple) else round(value)
