"""Blurs, noise, erasing and normalising; names and arguments of torchvision.transforms.v2.functional where it has them.

Every function takes ``img``, a uint8 array [H, W, C] with C = 1 or 3 or [H, W] (or a torch tensor of such a shape), and
``device`` ("cpu" or "reference"). A ValueError names an argument out of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate import transforms as T
from variegate.checks import as_number, as_numbers, integer, number
from variegate.program.ops import Op
from variegate.program.program import Output
from variegate.transforms.arguments import LARGEST, MAX_LENGTH, Fill, check_colour
from variegate.transforms.blur import kernel_sizes
from variegate.transforms.functional.single import Img, Single, refused, run
from variegate.transforms.noise import clipped


def gaussian_blur(
    img: Img, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None, device: str = "cpu"
) -> Img:
    """Blur with a Gaussian of ``kernel_size`` (odd) and ``sigma`` (pixels), each a number or an (x, y) pair.

    ``sigma`` None is ``0.15 * kernel_size + 0.35``. Edges are reflected. torchvision's ``gaussian_blur``.
    """
    sizes = kernel_sizes("kernel_size", kernel_size, error=refused)
    single = as_number(sigma)
    sigmas = tuple(size * 0.15 + 0.35 for size in sizes) if sigma is None else as_numbers(sigma)
    sigmas = sigmas if single is None else (single,)
    if sigmas is None or len(sigmas) not in (1, 2) or min(sigmas) <= 0:
        raise refused("sigma", sigma, "a number greater than 0 or an (x, y) pair of them")
    return Single(img).emit(Op.GAUSSIAN_BLUR, *sizes, sigmas[0], sigmas[-1]).run(device)


def motion_blur(img: Img, kernel_size: int, angle: float, direction: float = 0.0, device: str = "cpu") -> Img:
    """Blur along a line of ``kernel_size`` (odd) pixels at ``angle`` degrees, counter-clockwise from rightwards.

    ``direction`` -1..1 shifts the weight from even (0) to one end of the line. Edges are repeated.
    """
    length = integer("kernel_size", kernel_size, 1, 255, error=refused)
    turn = number("angle", angle, -LARGEST, LARGEST, error=refused)
    weight = number("direction", direction, -1, 1, error=refused)
    return run(img, device, lambda: T.MotionBlur(length, turn, weight))


def gaussian_noise(
    img: Img, mean: float = 0.0, sigma: float = 0.1, clip: bool = True, seed: int = 0, device: str = "cpu"
) -> Img:
    """Add ``255 * (mean + sigma * n)`` to every value, n standard normal, clipped; ``sigma`` 0 or more.

    The noise is a function of ``seed`` and the place alone: the same call gives the same pixels.
    """
    clipped("clip", clip, error=refused)
    level = number("mean", mean, error=refused)
    deviation = T.GaussianNoise.check_number("sigma", sigma, error=refused)
    single = Single(img, integer("seed", seed, error=refused))
    return single.emit(Op.GAUSSIAN_NOISE, level, deviation, 0.0).run(device)


def erase(img: Img, i: int, j: int, h: int, w: int, v: Fill = 0, inplace: bool = False, device: str = "cpu") -> Img:
    """Paint the ``h`` x ``w`` pixels from row ``i`` and column ``j`` on with the level(s) ``v``."""
    _check_not_in_place(inplace)
    single = Single(img)
    sides = {"i": (i, 0), "j": (j, 0), "h": (h, 1), "w": (w, 1)}
    rectangle = [integer(name, value, low, MAX_LENGTH, error=refused) for name, (value, low) in sides.items()]
    first = single.sampling.add_rectangles(np.array([rectangle], np.int32))
    return single.emit(Op.ERASE, first, 1, fill=check_colour("v", v, error=refused)).run(device)


def normalize(
    img: Any, mean: float | Sequence[float], std: float | Sequence[float], inplace: bool = False, device: str = "cpu"
) -> Any:
    """``(img / 255 - mean) / std`` as float32 of the image's shape; one number, or one per channel, each.

    The division is folded into a multiplication: results differ from the quotient by a few float32 roundings.
    """
    _check_not_in_place(inplace)
    single = Single(img)
    means, stds = _per_channel("mean", mean, single.channels), _per_channel("std", std, single.channels)
    if not all(value > 0 for value in stds):
        raise refused("std", std, "numbers greater than 0")
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
