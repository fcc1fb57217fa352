"""Functions that change the image's size; names and arguments of torchvision.transforms.v2.functional.

Every function takes ``img``, a uint8 array [H, W, C] with C = 1 or 3 or [H, W] (or a torch tensor of such a shape), and
``device`` ("cpu" or "reference"). A ValueError names an argument out of range.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from variegate import transforms as T
from variegate.checks import as_numbers, integer
from variegate.transforms.arguments import BLACK, MAX_LENGTH, Fill, InterpolationName, PaddingMode, Size
from variegate.transforms.crop import emit_crop
from variegate.transforms.functional.single import ROW, Img, Single, declared, refused, run
from variegate.transforms.resize import emit_resized_crop


def pad(
    img: Img,
    padding: int | Sequence[int],
    fill: Fill = 0,
    padding_mode: PaddingMode = "constant",
    device: str = "cpu",
) -> Img:
    """Add borders of ``padding`` pixels: one number, (left and right, top and bottom) or (left, top, right, bottom).

    ``padding_mode``: "constant" (``fill``), "edge", "reflect" or "symmetric", the last three as NumPy's ``pad``.
    """
    return run(img, device, lambda: T.Pad(padding, fill, padding_mode))


def crop(img: Img, top: int, left: int, height: int, width: int, device: str = "cpu") -> Img:
    """The ``height`` x ``width`` pixels from (top, left) on; black where that reaches outside the image."""
    single = Single(img)
    _cut(single, top, left, height, width)
    return single.run(device)


def center_crop(img: Img, output_size: Size, device: str = "cpu") -> Img:
    """The middle ``output_size`` (height, width) pixels; smaller images get black borders."""
    return run(img, device, lambda: T.CenterCrop(output_size), size="output_size")


def resize(
    img: Img,
    size: Size | None,
    interpolation: InterpolationName = "bilinear",
    max_size: int | None = None,
    antialias: bool = True,
    device: str = "cpu",
) -> Img:
    """Resample to ``size`` (height, width), as Pillow's Image.resize.

    One number is the length of the shorter side, the other keeping the proportions and, where that made it longer than
    ``max_size``, both shrinking to it; None with ``max_size`` makes the longer side that long.
    """
    return run(img, device, lambda: T.Resize(size, interpolation, max_size, antialias))


def resized_crop(
    img: Img,
    top: float,
    left: float,
    height: float,
    width: float,
    size: Size,
    interpolation: InterpolationName = "bilinear",
    antialias: bool = True,
    device: str = "cpu",
) -> Img:
    """The box (pixels, fractions allowed) resampled to ``size`` in one go, as Pillow's ``Image.resize(size, box=...)``.

    Along the edges of the box the filter sees the image's pixels beyond it; torchvision crops first and sees only the
    box, which ``resize(crop(...))`` gives. A box that reaches outside the image is cropped first, with black outside.
    """
    wanted = declared(lambda: T.RandomResizedCrop(size, interpolation=interpolation, antialias=antialias))
    box = as_numbers((top, left, height, width))
    if box is None or min(box[2:]) <= 0 or max(map(abs, box)) > MAX_LENGTH:
        given = (top, left, height, width)
        raise refused("top, left, height, width", given, "a box in pixels, its height and width greater than 0")
    single = Single(img)
    if box[0] < 0 or box[1] < 0 or box[0] + box[2] > single.height or box[1] + box[3] > single.width:
        _cut(single, *box)
        box = (0, 0, *box[2:])
    emit_resized_crop(single.sampling, ROW, box, np.array(wanted.size, np.int32), wanted.interpolation)
    return single.run(device)


def _cut(single: Single[Img], top: float, left: float, height: float, width: float) -> None:
    sides = {"height": height, "width": width}
    size = [integer(name, value, 1, MAX_LENGTH, error=refused) for name, value in sides.items()]
    corner = {"top": top, "left": left}
    origin = [integer(name, value, -MAX_LENGTH, MAX_LENGTH, error=refused) for name, value in corner.items()]
    emit_crop(single.sampling, ROW, np.array([origin], np.int32), np.array(size, np.int32), BLACK)
