"""Rules for Albumentations' filters, noise and compression: the arguments of each -> a transform."""

from __future__ import annotations

from variegate.integrations.converters.albumentations_arguments import Arguments
from variegate.integrations.converters.drawing import Drawing
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, OneOf
from variegate.ops.filters import (
    JPEG,
    Convolve,
    Emboss,
    GaussianBlur,
    GaussianNoise,
    MedianBlur,
    MotionBlur,
    PixelDropout,
    SaltAndPepper,
    ShotNoise,
    UnsharpMask,
)
from variegate.ops.tone import Gamma


def gaussian_blur(given: Arguments) -> Transform:
    given.require("volume_mode", "slice")
    has_boxes = "blur_limit" not in given  # as versions before AlbumentationsX say it
    sizes = given.take_range("blur_range blur_limit", (0, 0))
    sigma = given.take_range("sigma_range sigma_limit", (0.5, 3.0))
    names = {"kernel_size": "blur_range", "sigma": "sigma_range"}
    if not any(sizes):  # the kernel is as large as the sigma wants it; a larger one adds next to nothing
        odd = [int(sigma[1] * 3.5) * 2 + 1]
        if has_boxes:
            how = (
                "a Gaussian with reflected edges here, Pillow's three box blurs there: up to 5 levels within the image"
            )
            given.place.differs("blur_range", sizes, how)
    else:
        odd = list(range(int(sizes[0]) | 1, (int(sizes[1]) | 1) + 1, 2))
    blurs = [given.place.build(GaussianBlur, {"kernel_size": size, "sigma": sigma}, names) for size in odd]
    return blurs[0] if len(blurs) == 1 else OneOf(blurs)


def box_blur(given: Arguments) -> Transform:
    low, high = given.take_range("blur_range blur_limit", (3, 7))
    given.place.differs("", None, "the image's outermost pixels are repeated around it here, and mirrored there")
    sizes = range(int(low) | 1, (int(high) | 1) + 1, 2)
    names = {"kernel": "blur_range"}
    blurs = [given.place.build(Convolve, {"kernel": ((1 / size**2,) * size,) * size}, names) for size in sizes]
    return blurs[0] if len(blurs) == 1 else OneOf(blurs)


def sharpen(given: Arguments) -> Transform:
    """A Laplacian of strength alpha, which is a Sharpness after a Brightness: its weights are theirs. With
    method="gaussian" an UnsharpMask."""
    old = "alpha" in given
    alpha = given.take_range("alpha_range alpha", (0.2, 0.5))
    lightness = given.take_range("lightness_range lightness", (0.5, 1.0))
    size, sigma, method = given.take("kernel_size", 5), given.take("sigma", 1.0), given.take("method", "kernel")
    if method == "gaussian":
        if old:
            how = "differences of bytes wrap around in version 2.0; they are differences here, as in AlbumentationsX"
            given.place.differs("method", method, how)
        arguments = {"blur_limit": size, "sigma_limit": sigma, "alpha": alpha, "threshold": 0}
        return given.place.build(UnsharpMask, arguments, {"blur_limit": "kernel_size", "sigma_limit": "sigma"})
    how = "made of a smoothed image of whole levels here: 2 levels on average at alpha 0.5, 9 at most"
    given.place.differs("", None, f"{how}; the outermost pixels stay as they are")
    drawing = Drawing(given.place)
    value = drawing.value
    share, light = drawing.uniform(alpha), drawing.uniform(lightness)
    total = value("+", 1, value("*", share, value("-", light, 1)))
    factor = value("/", value("+", 1, value("*", share, value("+", light, 12))), value("max", total, 1e-3))
    drawing.do("adjust_brightness", brightness_factor=total)
    drawing.do("adjust_sharpness", sharpness_factor=factor)
    return drawing.made()


def motion_blur(given: Arguments) -> Transform:
    """Angles turn the other way there, and the line runs from its other end."""
    sizes = given.take_range("blur_range blur_limit", (3, 7))
    ranges = {
        "angle": given.take_range("angle_range", (0, 360)),
        "direction": given.take_range("direction_range", (-1.0, 1.0)),
    }
    how = "an even line here, one rounded to whole pixels there: 1 to 2 levels on average"
    given.place.differs("", None, how)
    if given.take("allow_shifted", True):
        given.place.differs("allow_shifted", True, "the line goes through the pixel here, and may lie beside it there")
    turned = {name: (0.0 - high, 0.0 - low) for name, (low, high) in ranges.items()}
    kernel = int(sizes[0]) | 1, int(sizes[1]) | 1
    names = {"kernel_size": "blur_range", "angle": "angle_range", "direction": "direction_range"}
    return given.place.build(MotionBlur, {"kernel_size": kernel, **turned}, names)


def image_compression(given: Arguments) -> Transform:
    kind = given.take("compression_type", "jpeg")
    if kind not in ("jpeg", 0):
        given.place.refuse("compression_type", kind, "'jpeg'")
    limits = given.take("quality_range", (99, 100))
    lower, upper = given.take("quality_lower", limits[0]), given.take("quality_upper", limits[1])
    how = "red and blue change places before the file is written there: 1 to 2 levels on average in a photo, 49 at most"
    given.place.differs("", None, how)
    return given.place.build(JPEG, {"quality": (lower, upper)}, {"quality": "quality_range"})


def median_blur(given: Arguments) -> Transform:
    sizes = given.take_range("blur_range blur_limit", (3, 7))
    return given.place.build(
        MedianBlur, {"kernel_size": (int(sizes[0]) | 1, int(sizes[1]) | 1)}, {"kernel_size": "blur_range"}
    )


def emboss(given: Arguments) -> Transform:
    shares = {
        "alpha": given.take_range("alpha_range alpha", (0.2, 0.5)),
        "strength": given.take_range("strength_range strength", (0.2, 0.7)),
    }
    given.place.differs("", None, "the image's outermost pixels are repeated around it here, and mirrored there")
    return given.place.build(Emboss, shares, {name: f"{name}_range" for name in shares})


def unsharp_mask(given: Arguments) -> Transform:
    sizes = given.take_range("blur_range blur_limit", (3, 7))
    arguments = {
        "blur_limit": (int(sizes[0]) | 1, int(sizes[1]) | 1),
        "sigma_limit": given.take_range("sigma_range sigma_limit", (0.0, 0.0)),
        "alpha": given.take_range("alpha_range alpha", (0.2, 0.5)),
        "threshold": given.take("threshold", 10),
    }
    how = (
        "what the threshold keeps out stays as it is here; there the outline of the rest is blurred: 5 levels at most, "
        "20 in version 2.0"
    )
    given.place.differs("threshold", arguments["threshold"], how)
    names = {"blur_limit": "blur_range", "sigma_limit": "sigma_range", "alpha": "alpha_range"}
    return given.place.build(UnsharpMask, arguments, names)


def pixel_dropout(given: Arguments) -> Transform:
    given.require("per_channel", False)
    given.require("mask_drop_value", None)
    level = given.take("drop_value", 0)
    whole = int(level) if isinstance(level, float) and level.is_integer() else level
    arguments = {"dropout_prob": given.take("dropout_prob", 0.01), "drop_value": whole}
    return given.place.build(PixelDropout, arguments)


def gauss_noise(given: Arguments) -> Transform:
    sigma = given.take_range("std_range", (0.2, 0.44))
    mean = given.take_range("mean_range", (0.0, 0.0))
    if mean[0] != mean[1]:
        given.place.refuse("mean_range", mean, "one mean, such as (0, 0)")
    given.require("noise_scale_factor", 1)
    if not given.take("per_channel", False):
        given.place.differs("per_channel", False, "each channel has noise of its own here, as with per_channel=True")
    names = {"mean": "mean_range", "sigma": "std_range"}
    return given.place.build(GaussianNoise, {"mean": mean[0], "sigma": sigma}, names)


def salt_and_pepper(given: Arguments) -> Transform:
    amount = given.take_range("amount_range amount", (0.01, 0.06))
    salt = given.take_range("salt_vs_pepper_range salt_vs_pepper", (0.4, 0.6))
    if salt[0] != salt[1]:
        given.place.differs("salt_vs_pepper_range", salt, "the same share for all images here, the middle of the range")
    arguments = {"amount": amount, "salt": (salt[0] + salt[1]) / 2}
    return given.place.build(SaltAndPepper, arguments, {"amount": "amount_range"})


def shot_noise(given: Arguments) -> Transform:
    """Photons of linear light, of a gamma of 2.2."""
    low, high = given.take_range("scale_range", (0.1, 0.3))
    how = "normal noise on 8 bits of light here, photons there: dark levels become up to 33 levels lighter on average"
    given.place.differs("", None, how)
    noise = given.place.build(ShotNoise, {"scale": (255 * low, 255 * high)}, {"scale": "scale_range"})
    return Compose([Gamma(2.2), noise, Gamma(1 / 2.2)])
