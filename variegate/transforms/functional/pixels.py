"""Functions of pixel values and neighborhoods, with Pillow's meaning and torchvision's names where it has them.

Common arguments are described in ``variegate.transforms.functional``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np

from variegate import transforms as T
from variegate.arrays import UInt8Array
from variegate.checks import as_integer, as_number, as_numbers, integer, number
from variegate.ops.arguments import LARGEST, MAX_LENGTH, check_colour
from variegate.ops.base import Recorded
from variegate.ops.filters import clipped, kernel_sizes, odd_span
from variegate.ops.output import check_fractions, one_or_three
from variegate.program.ops import MEDIAN_SIZES, Op
from variegate.program.program import Output
from variegate.transforms.functional.single import Img, Single, like, refused, run, run_declared, shape_of


def adjust_brightness(img: Img, brightness_factor: float, device: str = "cpu") -> Img:
    """Blend with black: ``brightness_factor`` 0 is black, 1 the image. Pillow's ImageEnhance.Brightness."""
    return run_declared(img, device, "adjust_brightness", brightness_factor)


def adjust_contrast(img: Img, contrast_factor: float, device: str = "cpu") -> Img:
    """Blend with the mean gray: ``contrast_factor`` 0 is gray, 1 the image, below 0 inverted.

    Pillow's ImageEnhance.Contrast.
    """
    return run_declared(img, device, "adjust_contrast", contrast_factor)


def adjust_saturation(img: Img, saturation_factor: float, device: str = "cpu") -> Img:
    """Blend with gray: ``saturation_factor`` 0 is gray, 1 the image, below 0 opposite colors.

    Pillow's ImageEnhance.Color.
    """
    return run_declared(img, device, "adjust_saturation", saturation_factor)


def adjust_hue(img: Img, hue_factor: float, device: str = "cpu") -> Img:
    """Rotate the hue by ``hue_factor`` of a circle, -0.5..0.5, in Pillow's HSV bytes. Gray images do not change."""
    return run_declared(img, device, "adjust_hue", hue_factor)


def adjust_gamma(img: Img, gamma: float, gain: float = 1.0, device: str = "cpu") -> Img:
    """Correct gamma: ``255.999 * gain * (x / 255) ** gamma``, truncated and clipped; ``gamma`` 0 or more."""
    return run_declared(img, device, "adjust_gamma", gamma, gain)


def adjust_sharpness(img: Img, sharpness_factor: float, device: str = "cpu") -> Img:
    """Blend with a smoothed image: ``sharpness_factor`` 0 is smooth, 1 the image, above 1 sharper.

    Pillow's ImageEnhance.Sharpness.
    """
    return run_declared(img, device, "adjust_sharpness", sharpness_factor)


def posterize(img: Img, bits: int, device: str = "cpu") -> Img:
    """Keep the highest ``bits`` (1..8) bits of every value."""
    return run_declared(img, device, "posterize", bits)


def solarize(img: Img, threshold: float, device: str = "cpu") -> Img:
    """Invert values at and above ``threshold``."""
    return run_declared(img, device, "solarize", threshold)


def solarize_add(img: Img, addition: float, threshold: float = 128, device: str = "cpu") -> Img:
    """Add ``addition`` (-255..255, also fractions) to values below ``threshold``, clipped."""
    return run_declared(img, device, "solarize_add", addition, threshold)


def invert(img: Img, device: str = "cpu") -> Img:
    """Invert every value: 255 - x."""
    return run_declared(img, device, "invert")


def autocontrast(img: Img, device: str = "cpu") -> Img:
    """Stretch every channel to 0..255. Pillow's ImageOps.autocontrast."""
    return run_declared(img, device, "autocontrast")


def equalize(img: Img, device: str = "cpu") -> Img:
    """Equalize every channel's histogram. Pillow's ImageOps.equalize."""
    return run_declared(img, device, "equalize")


def rgb_to_grayscale(img: Img, num_output_channels: Literal[1, 3] = 1, device: str = "cpu") -> Img:
    """Convert to Pillow's mode "L" in ``num_output_channels``, 1 or 3: [H, W, 1] or three equal channels.

    One channel of an [H, W] image stays [H, W].
    """
    wanted = one_or_three("num_output_channels", num_output_channels, error=refused)
    if isinstance(img, Recorded):
        return cast(Img, T.Grayscale(wanted)(img))
    single = Single(img).emit(Op.GRAYSCALE)
    if wanted == 1:  # in planes, of which the first is taken as a whole
        return like(img, single.result(device, Output(layout="NCHW"))[0][..., None].copy())
    gray_HWC = single.result(device)
    return like(img, gray_HWC if single.channels == 3 else np.repeat(gray_HWC, 3, axis=2))


def grayscale_to_rgb(img: Img, device: str = "cpu") -> Img:
    """Repeat the channel of a gray image three times; RGB images are returned unchanged."""
    pixels = Single(img).result(device)
    return like(img, pixels if pixels.shape[2] == 3 else np.repeat(pixels, 3, axis=2))


def permute_channels(img: Img, permutation: Sequence[int], device: str = "cpu") -> Img:
    """Reorder channels: output channel i is input channel ``permutation[i]``."""
    channels = shape_of(img)[2]
    order = as_numbers(permutation, whole=True)
    if order is None or sorted(order) != list(range(channels)):
        raise refused("permutation", permutation, f"the channels 0..{channels - 1} in some order")
    return run(img, device, lambda: T.ChannelPermutation(order if channels == 3 else (0, 1, 2)))


grayscale = to_grayscale = rgb_to_grayscale


def gaussian_blur(
    img: Img, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None, device: str = "cpu"
) -> Img:
    """Blur with a Gaussian of ``kernel_size`` (odd) and ``sigma`` (pixels), each a number or an (x, y) pair.

    ``sigma`` None is ``0.15 * kernel_size + 0.35``. Edges are reflected, as in torchvision.
    """
    sizes = kernel_sizes("kernel_size", kernel_size, error=refused)
    single = as_number(sigma)
    sigmas = tuple(size * 0.15 + 0.35 for size in sizes) if sigma is None else as_numbers(sigma)
    sigmas = sigmas if single is None else (single,)
    if sigmas is None or len(sigmas) not in (1, 2) or min(sigmas) <= 0:
        raise refused("sigma", sigma, "a number greater than 0 or an (x, y) pair of them")
    return Single(img).emit(Op.GAUSSIAN_BLUR, *sizes, sigmas[0], sigmas[-1]).run(device)


def motion_blur(img: Img, kernel_size: int, angle: float, direction: float = 0.0, device: str = "cpu") -> Img:
    """Blur along a line of ``kernel_size`` (odd) pixels at ``angle`` degrees, counter-clockwise from the right.

    ``direction``, -1..1, shifts the weight from even (0) to one end of the line. Edges are replicated.
    """
    length = integer("kernel_size", kernel_size, 1, 255, error=refused)
    turn = number("angle", angle, -LARGEST, LARGEST, error=refused)
    weight = number("direction", direction, -1, 1, error=refused)
    odd_span("kernel_size", length, error=refused)
    single = Single(img)
    return (single.emit(Op.MOTION_BLUR, length, turn, weight) if length > 1 else single).run(device)


def jpeg(img: Img, quality: int, device: str = "cpu") -> Img:
    """Compress as a JPEG of ``quality`` (1..100) and decode it: torchvision's and Pillow's pixels, color in 4:2:0."""
    return run_declared(img, device, "jpeg", quality)


def median_blur(img: Img, kernel_size: int, device: str = "cpu") -> Img:
    """Replace each level by the median in a square of ``kernel_size`` (3, 5 or 7) pixels; edges are replicated."""
    size = as_integer(kernel_size)
    if size not in MEDIAN_SIZES:
        raise refused("kernel_size", kernel_size, "3, 5 or 7")
    return Single(img).emit(Op.MEDIAN, size).run(device)


def gaussian_noise(
    img: Img, mean: float = 0.0, sigma: float = 0.1, clip: bool = True, seed: int = 0, device: str = "cpu"
) -> Img:
    """Add ``255 * (mean + sigma * n)`` to every value, n standard normal; ``sigma`` 0 or more.

    Noise depends only on ``seed`` and the place: the same call returns the same pixels. ``clip`` must be True.
    """
    clipped("clip", clip, error=refused)
    level = number("mean", mean, error=refused)
    deviation = T.GaussianNoise.check_number("sigma", sigma, error=refused)
    slot = 0
    if isinstance(img, Recorded):
        if seed != 0:
            raise refused("seed", seed, "nothing in a pipeline, where noise follows from the sample")
        slot = img.noise_slot()
    single = Single(img, integer("seed", seed, error=refused))
    return single.emit(Op.GAUSSIAN_NOISE, level, deviation, slot).run(device)


def erase(img: Img, i: int, j: int, h: int, w: int, v: Any = 0, inplace: bool = False, device: str = "cpu") -> Img:
    """Erase ``h`` x ``w`` pixels from row ``i`` and column ``j``.

    ``v``: a level, one per channel, or an image: a tensor [C, h, w] or an array [h, w, C], of which each axis may be 1.
    Levels are truncated to integers and clipped to 0..255.
    """
    _check_not_in_place(inplace)
    single = Single(img)
    sides = {"i": (i, 0), "j": (j, 0), "h": (h, 1), "w": (w, 1)}
    top, left, height, width = (
        integer(name, value, low, MAX_LENGTH, error=refused) for name, (value, low) in sides.items()
    )
    if len(getattr(v, "shape", ())) < 2:
        plain = v.tolist() if hasattr(v, "tolist") else v
        first = single.sampling.rectangle(top, left, height, width)
        return single.emit(Op.ERASE, first, 1, fill=check_colour("v", plain, error=refused)).run(device)
    patch = _patch(v, (height, width, single.channels))
    out = single.result(device)
    hidden = out[top : top + height, left : left + width]
    hidden[...] = patch[: hidden.shape[0], : hidden.shape[1]]
    return like(img, out)


def _patch(v: Any, shape: tuple[int, int, int]) -> UInt8Array:
    """Levels of an array [h, w, C] or a tensor [C, h, w], for every pixel of ``shape``."""
    is_array = isinstance(v, np.ndarray)
    values = v if is_array else v.detach().cpu().numpy()
    if values.ndim == 3 and not is_array:
        values = values.transpose(1, 2, 0)
    elif values.ndim == 2:
        values = values[:, :, None]
    if values.ndim != 3 or any(given not in (1, side) for given, side in zip(values.shape, shape, strict=True)):
        height, width, channels = shape
        accepted = f"a level, {channels} of them, a tensor [{channels}, {height}, {width}] or an array "
        accepted += f"[{height}, {width}, {channels}], of which each axis may be 1"
        raise refused("v", f"shape {tuple(v.shape)}", accepted)
    return np.broadcast_to(np.clip(values, 0, 255).astype(np.uint8), shape)


def normalize(
    img: Any, mean: float | Sequence[float], std: float | Sequence[float], inplace: bool = False, device: str = "cpu"
) -> Any:
    """Normalize: ``(img / 255 - mean) / std`` as float32 of the image's shape; one number or one per channel.

    The division is done as a multiplication, so results can differ from the quotient by a few float32 roundings.
    """
    _check_not_in_place(inplace)
    single = Single(img)
    if not hasattr(img, "shape"):
        raise refused("img", type(img).__name__, "an array or a tensor, since what comes out are floats")
    means, stds = _per_channel("mean", mean, single.channels), _per_channel("std", std, single.channels)
    if not all(value > 0 for value in stds):
        raise refused("std", std, "numbers greater than 0")
    check_fractions(means, stds, error=refused)
    return single.run(device, Output(mean=means, std=stds, dtype="float32", layout="NHWC"))


def _check_not_in_place(inplace: object) -> None:
    if inplace is not False:
        raise refused("inplace", inplace, "False (every function gives a new image)")


def _per_channel(argument: str, value: Any, channels: int) -> tuple[float, ...]:
    single = as_number(value)
    values = as_numbers(value) if single is None else (single,)
    if values is None or len(values) not in (1, channels):
        raise refused(argument, value, f"one number or {channels}, one per channel")
    return tuple(map(float, values)) * (1 if len(values) == channels else channels)
