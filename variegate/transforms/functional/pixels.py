"""Functions of pixel values and neighborhoods, with Pillow's meaning and torchvision's names where it has them.

Common arguments are described in ``variegate.transforms.functional``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

import numpy as np

from variegate import transforms as T
from variegate.arrays import ImageArray
from variegate.checks import as_integer, as_number, as_numbers
from variegate.executors.batches import depth_of_batch
from variegate.ops.arguments import MAX_LENGTH, FillColor, Finite, Length, axes
from variegate.ops.base import Recorded
from variegate.ops.filters import Clip, KernelSizes
from variegate.ops.output import GrayChannels, check_fractions
from variegate.ops.schema import LARGEST, Converted, Exactly, Range
from variegate.program.depth import Depth
from variegate.program.ops import Op
from variegate.program.program import Output
from variegate.transforms.functional.declared import checked
from variegate.transforms.functional.single import Img, Single, like, refused, run, shape_of

NotInPlace = Annotated[bool, Exactly(False, "False (every function gives a new image)")]
Start = Annotated[int, Range(0, MAX_LENGTH)]


@checked
def rgb_to_grayscale(img: Img, num_output_channels: GrayChannels = 1, device: str = "cpu") -> Img:
    """Convert to Pillow's mode "L" in ``num_output_channels``, 1 or 3: [H, W, 1] or three equal channels.

    One channel of an [H, W] image stays [H, W].
    """
    if isinstance(img, Recorded):
        return cast(Img, T.Grayscale(num_output_channels)(img))
    single = Single(img).emit(Op.GRAYSCALE)
    if num_output_channels == 1:  # in planes; the first is used unchanged
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


@checked
def gaussian_blur(
    img: Img,
    kernel_size: KernelSizes,
    sigma: Annotated[float | Sequence[float], axes(1 / LARGEST)] | None = None,
    device: str = "cpu",
) -> Img:
    """Blur with a Gaussian of ``kernel_size`` (odd) and ``sigma`` (pixels), each a number or an (x, y) pair.

    ``sigma`` None is ``0.15 * kernel_size + 0.35``. Edges are reflected, as in torchvision.
    """
    sizes: Any = kernel_size
    sigmas: Any = [size * 0.15 + 0.35 for size in sizes] if sigma is None else np.ravel(sigma).tolist()
    return Single(img).emit(Op.GAUSSIAN_BLUR, *sizes, sigmas[0], sigmas[-1]).run(device)


@checked
def motion_blur(
    img: Img,
    kernel_size: Annotated[int, Range(1, 255, step=2)],
    angle: Finite,
    direction: Annotated[float, Range(-1.0, 1.0)] = 0.0,
    device: str = "cpu",
) -> Img:
    """Blur along a line of ``kernel_size`` (odd) pixels at ``angle`` degrees, counter-clockwise from the right.

    ``direction``, -1..1, shifts the weight from even (0) to one end of the line. Edges are replicated.
    """
    single = Single(img)
    if kernel_size > 1:
        single.emit(Op.MOTION_BLUR, kernel_size, angle, direction)
    return single.run(device)


@checked
def median_blur(img: Img, kernel_size: Annotated[int, Range(3, 7, step=2)], device: str = "cpu") -> Img:
    """Replace each level by the median in a square of ``kernel_size`` (3, 5 or 7) pixels; edges are replicated."""
    return Single(img).emit(Op.MEDIAN, kernel_size).run(device)


@checked
def gaussian_noise(
    img: Img,
    mean: Finite = 0.0,
    sigma: Annotated[float, Range(0.0)] = 0.1,
    clip: Clip = True,
    seed: Annotated[int, Converted(as_integer, "an integer")] = 0,
    device: str = "cpu",
) -> Img:
    """Add ``255 * (mean + sigma * n)`` to every value, n standard normal; ``sigma`` 0 or more.

    Noise depends only on ``seed`` and the place: the same call returns the same pixels. ``clip`` must be True.
    """
    slot = 0
    if isinstance(img, Recorded):
        if seed != 0:
            raise refused("seed", seed, "nothing in a pipeline, where noise follows from the sample")
        slot = img.noise_slot()
    return Single(img, seed).emit(Op.GAUSSIAN_NOISE, mean, sigma, slot).run(device)


@checked
def erase(
    img: Img, i: Start, j: Start, h: Length, w: Length, v: Any = 0, inplace: NotInPlace = False, device: str = "cpu"
) -> Img:
    """Erase ``h`` x ``w`` pixels from row ``i`` and column ``j``.

    ``v``: a level, one per channel, or an image: a tensor [C, h, w] or an array [h, w, C], whose axes may be 1. Levels
    are truncated to integers and clipped to 0..255.
    """
    single = Single(img)
    if len(getattr(v, "shape", ())) < 2:
        plain = v.tolist() if hasattr(v, "tolist") else v
        first = single.sampling.rectangle(i, j, h, w)
        return single.emit(Op.ERASE, first, 1, fill=FillColor().check("v", plain, error=refused)).run(device)
    out = single.result(device)
    patch = _patch(v, (h, w, single.channels), depth_of_batch(out))
    hidden = out[i : i + h, j : j + w]
    hidden[...] = patch[: hidden.shape[0], : hidden.shape[1]]
    return like(img, out)


def _patch(v: Any, shape: tuple[int, int, int], depth: Depth) -> ImageArray:
    """Values of an array [h, w, C] or a tensor [C, h, w], for every pixel of ``shape``."""
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
    return np.broadcast_to(np.clip(values, 0, depth.white).astype(depth.dtype), shape)


@checked
def normalize(
    img: Any,
    mean: float | Sequence[float],
    std: float | Sequence[float],
    inplace: NotInPlace = False,
    device: str = "cpu",
) -> Any:
    """Normalize: ``(img / 255 - mean) / std`` as float32 of the image's shape; one number or one per channel.

    The division is done as a multiplication, so results can differ from the quotient by a few float32 roundings.
    """
    single = Single(img)
    if not hasattr(img, "shape"):
        raise refused("img", type(img).__name__, "an array or a tensor, since what comes out are floats")
    means, stds = _per_channel("mean", mean, single.channels), _per_channel("std", std, single.channels)
    if not all(value > 0 for value in stds):
        raise refused("std", std, "numbers greater than 0")
    check_fractions(means, stds, error=refused)
    return single.run(device, Output(mean=means, std=stds, dtype="float32", layout="NHWC"))


def _per_channel(argument: str, value: Any, channels: int) -> tuple[float, ...]:
    single = as_number(value)
    values = as_numbers(value) if single is None else (single,)
    if values is None or len(values) not in (1, channels):
        raise refused(argument, value, f"one number or {channels}, one per channel")
    return tuple(map(float, values)) * (1 if len(values) == channels else channels)
