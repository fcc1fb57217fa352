"""Functions of pixel values; names and arguments of torchvision.transforms.v2.functional, meaning of Pillow.

Every function takes ``img``, a uint8 array [H, W, C] with C = 1 or 3 or [H, W] (or a torch tensor of such a shape), and
``device`` ("cpu" or "reference"), and returns a new image of the same shape. A ValueError names an argument out of
range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from variegate.program.ops import Op
from variegate.transforms.functional.arguments import integer, number, refused
from variegate.transforms.functional.single import Img, run_one, shape_of


def adjust_brightness(img: Img, brightness_factor: float, device: str = "cpu") -> Img:
    """From black (0) over the image (1) to brighter; factor 0 or more. Pillow's ImageEnhance.Brightness."""
    return run_one(img, device, Op.BRIGHTNESS, number("brightness_factor", brightness_factor, 0))


def adjust_contrast(img: Img, contrast_factor: float, device: str = "cpu") -> Img:
    """From the mean gray (0) over the image (1) to more contrast; factor 0 or more. Pillow's ImageEnhance.Contrast."""
    return run_one(img, device, Op.CONTRAST, number("contrast_factor", contrast_factor, 0))


def adjust_saturation(img: Img, saturation_factor: float, device: str = "cpu") -> Img:
    """From gray (0) over the image (1) to more colour; factor 0 or more. Pillow's ImageEnhance.Color."""
    return run_one(img, device, Op.SATURATION, number("saturation_factor", saturation_factor, 0))


def adjust_hue(img: Img, hue_factor: float, device: str = "cpu") -> Img:
    """Turn the hue by ``hue_factor`` of a circle, -0.5..0.5, through Pillow's HSV bytes. Gray images stay."""
    return run_one(img, device, Op.HUE, number("hue_factor", hue_factor, -0.5, 0.5))


def adjust_gamma(img: Img, gamma: float, gain: float = 1.0, device: str = "cpu") -> Img:
    """``255.999 * gain * (x / 255) ** gamma``, truncated; both 0 or more."""
    return run_one(img, device, Op.GAMMA, number("gamma", gamma, 0), number("gain", gain, 0))


def adjust_sharpness(img: Img, sharpness_factor: float, device: str = "cpu") -> Img:
    """From smoothed (0) over the image (1) to sharper; factor 0 or more. Pillow's ImageEnhance.Sharpness."""
    return run_one(img, device, Op.SHARPNESS, number("sharpness_factor", sharpness_factor, 0))


def posterize(img: Img, bits: int, device: str = "cpu") -> Img:
    """Keep the highest ``bits`` (0..8) bits of every value; 0 gives a black image, which Pillow 13 refuses."""
    return run_one(img, device, Op.POSTERIZE, integer("bits", bits, 0, 8))


def solarize(img: Img, threshold: float, device: str = "cpu") -> Img:
    """Invert values of ``threshold`` (0..256) and above."""
    return run_one(img, device, Op.SOLARIZE, number("threshold", threshold, 0, 256))


def solarize_add(img: Img, addition: float, threshold: float = 128, device: str = "cpu") -> Img:
    """Add ``addition`` (-255..255) to values below ``threshold`` (0..256), clipped."""
    return run_one(
        img, device, Op.SOLARIZE_ADD, number("addition", addition, -255, 255), number("threshold", threshold, 0, 256)
    )


def invert(img: Img, device: str = "cpu") -> Img:
    """255 less every value."""
    return run_one(img, device, Op.INVERT)


def autocontrast(img: Img, device: str = "cpu") -> Img:
    """Stretch every channel to 0..255. Pillow's ImageOps.autocontrast."""
    return run_one(img, device, Op.AUTOCONTRAST)


def equalize(img: Img, device: str = "cpu") -> Img:
    """Flatten every channel's histogram. Pillow's ImageOps.equalize."""
    return run_one(img, device, Op.EQUALIZE)


def rgb_to_grayscale(img: Img, num_output_channels: int = 1, device: str = "cpu") -> Img:
    """Pillow's mode "L", [H, W, 1], or repeated in three channels. An [H, W] image stays as it is."""
    if num_output_channels not in (1, 3) or isinstance(num_output_channels, bool):
        raise refused("num_output_channels", num_output_channels, "1 or 3")
    channels = shape_of(img)[2]
    if img.ndim == 2:
        if num_output_channels == 3:
            raise refused("num_output_channels", 3, "1 for an image [height, width]; give [height, width, 1] for 3")
        return run_one(img, device, Op.GRAYSCALE)
    gray = run_one(img, device, Op.GRAYSCALE)
    if channels == num_output_channels:
        return gray
    return cast(Img, gray[..., [0] * num_output_channels])


def permute_channels(img: Img, permutation: Sequence[int], device: str = "cpu") -> Img:
    """Output channel i is input channel ``permutation[i]``."""
    channels = shape_of(img)[2]
    if sorted(permutation) != list(range(channels)):
        raise refused("permutation", permutation, f"the channels 0..{channels - 1} in some order")
    order = permutation if channels == 3 else (0, 1, 2)
    return run_one(img, device, Op.PERMUTE, *(int(i) for i in order))


grayscale = to_grayscale = rgb_to_grayscale
