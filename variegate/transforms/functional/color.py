"""Functions of pixel values; names and arguments of torchvision.transforms.v2.functional, meaning of Pillow.

Every function takes ``img``, a uint8 array [H, W, C] with C = 1 or 3 or [H, W] (or a torch tensor of such a shape), and
``device`` ("cpu" or "reference"), and returns a new image of the same shape. A ValueError names an argument out of
range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import numpy as np

from variegate import transforms as T
from variegate.checks import as_numbers, number
from variegate.transforms.functional.single import ROW, Img, Single, refused, run, run_at, shape_of
from variegate.transforms.output import one_or_three


def adjust_brightness(img: Img, brightness_factor: float, device: str = "cpu") -> Img:
    """From black (0) over the image (1) to brighter; factor 0 or more. Pillow's ImageEnhance.Brightness."""
    return run_at(img, device, T.Brightness, "brightness_factor", brightness_factor)


def adjust_contrast(img: Img, contrast_factor: float, device: str = "cpu") -> Img:
    """From the mean gray (0) over the image (1) to more contrast; factor 0 or more. Pillow's ImageEnhance.Contrast."""
    return run_at(img, device, T.Contrast, "contrast_factor", contrast_factor)


def adjust_saturation(img: Img, saturation_factor: float, device: str = "cpu") -> Img:
    """From gray (0) over the image (1) to more colour; factor 0 or more. Pillow's ImageEnhance.Color."""
    return run_at(img, device, T.Color, "saturation_factor", saturation_factor)


def adjust_hue(img: Img, hue_factor: float, device: str = "cpu") -> Img:
    """Turn the hue by ``hue_factor`` of a circle, -0.5..0.5, through Pillow's HSV bytes. Gray images stay."""
    return run_at(img, device, T.Hue, "hue_factor", hue_factor)


def adjust_gamma(img: Img, gamma: float, gain: float = 1.0, device: str = "cpu") -> Img:
    """``255.999 * gain * (x / 255) ** gamma``, truncated; both 0 or more."""
    return run_at(img, device, T.Gamma, "gamma", gamma, gain=gain)


def adjust_sharpness(img: Img, sharpness_factor: float, device: str = "cpu") -> Img:
    """From smoothed (0) over the image (1) to sharper; factor 0 or more. Pillow's ImageEnhance.Sharpness."""
    return run_at(img, device, T.Sharpness, "sharpness_factor", sharpness_factor)


def posterize(img: Img, bits: int, device: str = "cpu") -> Img:
    """Keep the highest ``bits`` (0..8) bits of every value; 0 gives a black image, which Pillow 13 refuses."""
    return run_at(img, device, T.Posterize, "bits", bits)


def solarize(img: Img, threshold: float, device: str = "cpu") -> Img:
    """Invert values of ``threshold`` (0..256) and above."""
    return run_at(img, device, T.Solarize, "threshold", threshold)


def solarize_add(img: Img, addition: float, threshold: float = 128, device: str = "cpu") -> Img:
    """Add ``addition`` (-255..255) to values below ``threshold`` (0..256), clipped."""
    value = number("addition", addition, *T.SolarizeAdd._bounds, error=refused)
    single = Single(img)
    operation = T.SolarizeAdd(0, T.Solarize.check_number("threshold", threshold, error=refused))
    operation.emit_magnitude(single.sampling, ROW, np.array([value], np.float64), 0)  # fractions as well
    return single.run(device)


def invert(img: Img, device: str = "cpu") -> Img:
    """255 less every value."""
    return run(img, device, T.Invert)


def autocontrast(img: Img, device: str = "cpu") -> Img:
    """Stretch every channel to 0..255. Pillow's ImageOps.autocontrast."""
    return run(img, device, T.AutoContrast)


def equalize(img: Img, device: str = "cpu") -> Img:
    """Flatten every channel's histogram. Pillow's ImageOps.equalize."""
    return run(img, device, T.Equalize)


def rgb_to_grayscale(img: Img, num_output_channels: Literal[1, 3] = 1, device: str = "cpu") -> Img:
    """Pillow's mode "L", [H, W, 1], or repeated in three channels. An [H, W] image stays as it is."""
    wanted = one_or_three("num_output_channels", num_output_channels, error=refused)
    if shape_of(img) and img.ndim == 2 and wanted == 3:
        raise refused("num_output_channels", 3, "1 for an image [height, width]; give [height, width, 1] for 3")
    gray = run(img, device, lambda: T.Grayscale(3))
    return gray if img.ndim == 2 or img.shape[2] == wanted else cast(Img, gray[..., [0] * wanted])


def permute_channels(img: Img, permutation: Sequence[int], device: str = "cpu") -> Img:
    """Output channel i is input channel ``permutation[i]``."""
    channels = shape_of(img)[2]
    order = as_numbers(permutation, whole=True)
    if order is None or sorted(order) != list(range(channels)):
        raise refused("permutation", permutation, f"the channels 0..{channels - 1} in some order")
    return run(img, device, lambda: T.ChannelPermutation(order if channels == 3 else (0, 1, 2)))


grayscale = to_grayscale = rgb_to_grayscale
