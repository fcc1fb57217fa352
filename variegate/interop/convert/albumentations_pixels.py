"""Rules of Albumentations' colors, filters, noise and erasing whose arguments need arithmetic."""

from __future__ import annotations

import math

from variegate.interop.convert import drawn
from variegate.interop.convert.albumentations_arguments import Arguments, Pair
from variegate.ops import colour, filters, tone
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, OneOf
from variegate.ops.erase import CoarseDropout, GridMask, RandomErasing

MIRRORED_EDGES = "the image's outermost pixels are repeated around it here, and mirrored there: 0.2 levels on average"
EQUALIZED = "Pillow's Equalize here: 6 levels on average over eight photos, 50 at most"


def odd(sizes: Pair) -> tuple[int, int]:
    """Sides of kernels, the next odd ones."""
    return int(sizes[0]) | 1, int(sizes[1]) | 1


def plus_one(limits: Pair) -> Pair:
    return 1 + limits[0], 1 + limits[1]


def levels(ends: Pair) -> tuple[int, int]:
    """Whole levels. Version 2.0 takes shares of 255 as well."""
    white = 255 if all(abs(end) <= 1 for end in ends) else 1
    return round(white * ends[0]), round(white * ends[1])


def _one_of(transforms: list[Transform]) -> Transform:
    return transforms[0] if len(transforms) == 1 else OneOf(transforms)


# -- colors ----------------------------------------------------------------------------------------------------------


def channel_shuffle(given: Arguments) -> Transform:
    order = given.take("channel_order")
    if order is None:
        return colour.RandomChannelPermutation()
    return given.build(colour.ChannelPermutation, {"order": "channel_order"}, order=order)


def brightness_contrast(given: Arguments) -> Transform:
    """Contrast and brightness of torchvision in AlbumentationsX; ``c x + b`` in 2.0, b a share of 255 or the mean."""
    is_torchvision = "brightness_range" in given
    shares = given.pair("brightness_range brightness_limit", (-0.2, 0.2))
    factors = plus_one(given.pair("contrast_range contrast_limit", (-0.2, 0.2)))
    given.require("ensure_safe_output", False)
    given.require("ensure_safe_range", False)
    has_share_of_white = given.take("brightness_by_max", not is_torchvision)
    if is_torchvision and not has_share_of_white:
        contrast = given.build(colour.Contrast, {"factor": "contrast_range"}, factor=factors)
        return Compose([contrast, given.build(tone.Brightness, factor=plus_one(shares))])
    if has_share_of_white:
        return drawn.build(given.place, drawn.linear, factors=factors, shares=shares)
    given.note("the mean of the luma here, of all channels there: 3 levels", "brightness_by_max", False)
    return drawn.build(given.place, drawn.linear_of_mean, factors=factors, shares=shares)


def color_jitter(given: Arguments) -> Transform:
    ranges = {name: given.pair(f"{name}_range {name}", (0.8, 1.2)) for name in ("brightness", "contrast", "saturation")}
    ranges["hue"] = given.pair("hue_range hue", (-0.5, 0.5))
    _note_hue(given, "hue_range", ranges["hue"])
    return given.build(colour.ColorJitter, {name: f"{name}_range" for name in ranges}, **ranges)


def photometric_distort(given: Arguments) -> Transform:
    names = {name: f"{name}_range" for name in ("brightness", "contrast", "saturation", "hue")}
    ranges = {name: given.take(there) for name, there in names.items() if there in given}
    _note_hue(given, "hue_range", ranges.get("hue", (-0.05, 0.05)))
    distort = given.build(colour.RandomPhotometricDistort, names, **ranges, p=given.take("distort_p", 0.5))
    return Compose([distort])  # whose probability is not that of each of its parts


def _note_hue(given: Arguments, name: str, ends: Pair) -> None:
    if any(ends):
        given.note("hues have 256 steps here (Pillow), 180 there (cv2): up to 10 levels", name, ends)


def hue_saturation_value(given: Arguments) -> Transform | None:
    hue = given.pair("hue_shift_range hue_shift_limit", (-20.0, 20.0))
    saturation = given.pair("sat_shift_range sat_shift_limit", (-30.0, 30.0))
    value = given.pair("val_shift_range val_shift_limit", (-20.0, 20.0))
    steps: list[Transform] = []
    _note_hue(given, "hue_shift_range", hue)
    if any(hue):
        turns = (hue[0] / 180, hue[1] / 180)  # cv2 has half as many hues as degrees
        steps.append(given.build(colour.Hue, {"factor": "hue_shift_range"}, factor=turns))
    if any(saturation):
        given.note(
            "blended with the luma here, added to there: up to a third of the shift", "sat_shift_range", saturation
        )
        # Photos come closest where a shift is a share of 130.
        factor = tuple(max(1 + end / 130, 0.0) for end in saturation)
        steps.append(given.build(colour.Color, factor=factor))
    if any(value):
        given.note("added to all channels here, to the greatest there: a third of the shift", "val_shift_range", value)
        addition = (round(value[0]), round(value[1]))
        steps.append(given.build(tone.SolarizeAdd, addition=addition, threshold=256))
    if len(steps) > 1:
        return Compose(steps)
    return steps[0] if steps else None


def equalize(given: Arguments) -> Transform:
    given.require("by_channels", True)
    given.require("mask", None)
    mode = given.take("mode", "cv")
    newer = "; of AlbumentationsX it is the same, of version 2.0 not" if mode == "pil" else ""
    given.note(EQUALIZED + newer, "mode", mode)
    return colour.Equalize()


def autocontrast(given: Arguments) -> Transform:
    given.require("cutoff", 0)
    given.require("ignore", None)
    method = given.take("method", "cdf")
    if method == "cdf":  # which makes the histogram flat
        given.note(EQUALIZED, "method", method)
        return colour.Equalize()
    given.note("a channel's lowest and highest levels may be others there: 1 level on most photos, 29 at most")
    return colour.AutoContrast()


# -- filters and compression -----------------------------------------------------------------------------------------


def gaussian_blur(given: Arguments) -> Transform:
    given.require("volume_mode", "slice")
    is_older = "blur_limit" in given
    sizes = given.pair("blur_range blur_limit", (0, 0))
    sigma = given.pair("sigma_range sigma_limit", (0.5, 3.0))
    if any(sizes):
        low, high = odd(sizes)
        kernels = list(range(low, high + 1, 2))
    else:  # as large as the greatest sigma wants it: a larger one adds next to nothing
        kernels = [int(sigma[1] * 3.5) * 2 + 1]
        if not is_older:
            boxes = (
                "a Gaussian with reflected edges here, Pillow's three box blurs there: up to 5 levels within the image"
            )
            given.note(boxes, "blur_range", sizes)
    names = {"kernel_size": "blur_range", "sigma": "sigma_range"}
    return _one_of([given.build(filters.GaussianBlur, names, kernel_size=size, sigma=sigma) for size in kernels])


def box_blur(given: Arguments) -> Transform:
    low, high = odd(given.pair("blur_range blur_limit", (3, 7)))
    given.note(MIRRORED_EDGES)
    blurs = []
    for size in range(low, high + 1, 2):
        kernel = ((1 / size**2,) * size,) * size
        blurs.append(given.build(filters.Convolve, {"kernel": "blur_range"}, kernel=kernel))
    return _one_of(list(blurs))


def sharpen(given: Arguments) -> Transform:
    """A Laplacian of strength alpha: a Sharpness after a Brightness of its weights. Or an UnsharpMask."""
    is_older = "alpha" in given
    alpha = given.pair("alpha_range alpha", (0.2, 0.5))
    lightness = given.pair("lightness_range lightness", (0.5, 1.0))
    size = given.take("kernel_size", 5)
    sigma = given.take("sigma", 1.0)
    method = given.take("method", "kernel")
    if method == "gaussian":
        if is_older:
            given.refuse("method", method, "'kernel': in version 2.0 the bytes of this method wrap around")
        names = {"blur_limit": "kernel_size", "sigma_limit": "sigma"}
        return given.build(filters.UnsharpMask, names, blur_limit=size, sigma_limit=sigma, alpha=alpha, threshold=0)
    # The factor by which the rounding of the smoothed image grows.
    growth = (1 + alpha[1] * (lightness[0] + 12)) / max(1 + alpha[1] * (lightness[0] - 1), 1e-3)
    mean = math.sqrt(min(growth, 255.0)) - 1
    given.note(f"made of a smoothed image of whole levels here: up to {mean:.0f} levels on average")
    return drawn.build(given.place, drawn.sharpen, alpha=alpha, lightness=lightness)


def motion_blur(given: Arguments) -> Transform:
    """Angles turn the other way there, and the line runs from its other end."""
    sizes = given.pair("blur_range blur_limit", (3, 7))
    angle = given.pair("angle_range", (0, 360))
    direction = given.pair("direction_range", (-1.0, 1.0))
    rounded = "an even line through the pixel here, one rounded to whole pixels that may miss it there"
    given.note(f"{rounded}: up to {1 + sizes[1] / 12:.0f} levels on average")
    given.take("allow_shifted")
    return given.build(
        filters.MotionBlur,
        {"kernel_size": "blur_range", "angle": "angle_range", "direction": "direction_range"},
        kernel_size=odd(sizes),
        angle=(0.0 - angle[1], 0.0 - angle[0]),
        direction=(0.0 - direction[1], 0.0 - direction[0]),
    )


def image_compression(given: Arguments) -> Transform:
    given.require("compression_type", "jpeg")
    quality = given.pair("quality_range", (99, 100))
    mean = 8.0
    for least, difference in ((10, 4.0), (20, 2.5), (75, 1.0)):
        if quality[0] >= least:
            mean = difference
    given.note(f"red and blue change places before the file is written there: up to {mean:g} levels on average")
    return given.build(filters.JPEG, {"quality": "quality_range"}, quality=quality)


# -- noise -----------------------------------------------------------------------------------------------------------


def gauss_noise(given: Arguments) -> Transform:
    sigma = given.pair("std_range", (0.2, 0.44))
    mean = given.constant("mean_range", (0.0, 0.0))
    given.require("noise_scale_factor", 1)
    if not given.take("per_channel", False):
        channels = "each channel has its own noise here, as with per_channel=True: channels differ by 44 levels"
        given.note(channels, "per_channel", False)
    return given.build(filters.GaussianNoise, {"sigma": "std_range"}, mean=mean, sigma=sigma)


def additive_noise(given: Arguments) -> Transform:
    """A number for each channel; or normal noise of each pixel."""
    kinds = (given.take("spatial_mode", "constant"), given.take("noise_type", "uniform"))
    params = given.take("noise_params") or {"ranges": ((-0.1, 0.1),)}
    # Of patches, and of the speed.
    for name in ("patch_count_range", "patch_height_range", "patch_width_range", "per_channel", "approximation"):
        given.take(name)
    if kinds == ("per_pixel", "gaussian"):
        means = Arguments(given.place, params, "noise_params")
        mean = means.constant("mean_range", (0.0, 0.0))
        return given.build(filters.GaussianNoise, mean=mean, sigma=tuple(params["std_range"]))
    if kinds != ("constant", "uniform"):
        given.refuse("spatial_mode", kinds[0], "'constant' with uniform noise, or 'per_pixel' with Gaussian noise")
    ranges = [levels((low, high)) for low, high in params["ranges"]]
    red, green, blue, *_ = ranges * 3 if len(ranges) == 1 else ranges
    return given.build(tone.RGBShift, red=red, green=green, blue=blue)


def salt_and_pepper(given: Arguments) -> Transform:
    amount = given.pair("amount_range amount", (0.01, 0.06))
    low, high = given.pair("salt_vs_pepper_range salt_vs_pepper", (0.4, 0.6))
    if low != high:
        given.note("the middle of the range for all images here", "salt_vs_pepper_range", (low, high))
    return given.build(filters.SaltAndPepper, {"amount": "amount_range"}, amount=amount, salt=(low + high) / 2)


# -- erasing ---------------------------------------------------------------------------------------------------------


def coarse_dropout(given: Arguments) -> Transform:
    height = given.pair("hole_height_range", (0.1, 0.2))
    width = given.pair("hole_width_range", (0.1, 0.2))
    if height != width:
        given.refuse("hole_width_range", width, f"hole_height_range ({height}): both sides have one range here")
    size = (int(height[0]), int(height[1])) if height[1] >= 1 else height  # pixels, or shares
    numbers = given.take("num_holes_range", (1, 2))
    names = {"num_holes": "num_holes_range", "size": "hole_height_range"}
    return given.build(CoarseDropout, names, num_holes=numbers, size=size, fill=given.erased_fill())


def grid_dropout(given: Arguments) -> Transform:
    given.require("holes_number_xy", None, why="squares have distances in pixels here, or shares of the shorter side")
    given.require("shift_xy", (0, 0))
    given.require("random_offset", True)
    given.note("one regular grid here; there each square has its own position in its cell: 2 % more are erased")
    unit = given.take("unit_size_range") or 0.1
    ratio = given.take("ratio", 0.5)
    return given.build(GridMask, {"unit": "unit_size_range"}, unit=unit, ratio=ratio, fill=given.erased_fill())


def erasing(given: Arguments) -> Transform:
    scale = given.pair("scale", (0.02, 0.33))
    low, high = given.pair("ratio", (0.3, 3.3))  # of width to height
    largest = min(low, 1 / high)
    if scale[1] > largest:
        given.note(f"areas end at {largest:.2g} of a square image there", "scale", scale)
    ratio = (1 / high, 1 / low)
    return given.build(RandomErasing, p=1.0, scale=scale, ratio=ratio, value=given.erased_fill())
