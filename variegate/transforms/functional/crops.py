"""Borders, crops and resizes of one image; names and arguments of torchvision.transforms.v2.functional, as in
``geometry.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from variegate import transforms as T
from variegate.checks import as_numbers, integer
from variegate.ops.arguments import BLACK, FLAG, MAX_LENGTH, Edges, Fill, FilterName, PaddingMode, Size, check_size
from variegate.ops.crop import add_crop
from variegate.ops.resize import EDGES, add_resized_crop, crops_first, cut_out, resized_size
from variegate.program.ops import Op
from variegate.transforms.functional.single import Img, Single, declared, refused, run, shape_of


def pad(
    img: Img, padding: int | Sequence[int], fill: Fill = 0, padding_mode: PaddingMode = "constant", device: str = "cpu"
) -> Img:
    """Add borders of ``padding`` pixels: one number, (left and right, top and bottom) or (left, top, right, bottom);
    negative ones cut off.

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


def five_crop(img: Img, size: Size, device: str = "cpu") -> tuple[Img, ...]:
    """The four corners and the middle, ``size`` (height, width) pixels each: top left, top right, bottom left, ...

    Raises ValueError for an image smaller than that.
    """
    height, width = check_size("size", size, error=refused)
    down, right = shape_of(img)[0] - height, shape_of(img)[1] - width
    if down < 0 or right < 0:
        raise refused("size", size, f"at most the image's {shape_of(img)[:2]} (height, width)")
    corners = [crop(img, y, x, height, width, device) for y in (0, down) for x in (0, right)]
    return *corners, center_crop(img, (height, width), device)


def ten_crop(img: Img, size: Size, vertical_flip: bool = False, device: str = "cpu") -> tuple[Img, ...]:
    """``five_crop`` of the image, and of it mirrored: left-right, or with ``vertical_flip`` top-bottom."""
    mirrored = Single(img).emit(Op.VFLIP if FLAG("vertical_flip", vertical_flip, error=refused) else Op.HFLIP)
    return *five_crop(img, size, device), *five_crop(mirrored.run(device), size, device)


def resize(
    img: Img,
    size: Size | None,
    interpolation: FilterName = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
    device: str = "cpu",
) -> Img:
    """Resample to ``size`` (height, width), as Pillow's Image.resize.

    One number is the length of the shorter side, the other keeping the proportions and, where that made it longer than
    ``max_size``, both shrinking to it; None with ``max_size`` makes the longer side that long. ``interpolation`` may
    also be "box", "hamming" or "lanczos"; all but nearest are antialiased, whatever ``antialias`` says.
    """
    return run(img, device, lambda: T.Resize(size, interpolation, max_size, antialias))


def resized_crop(
    img: Img,
    top: float,
    left: float,
    height: float,
    width: float,
    size: Size,
    interpolation: FilterName = "bilinear",
    antialias: bool | None = True,
    device: str = "cpu",
    edges: Edges = "image",
) -> Img:
    """The box (pixels, fractions allowed) resampled to ``size`` in one go, as Pillow's ``Image.resize(size, box=...)``.

    ``size`` as for ``resize``: one number is the length of the box's shorter side. Along the edges of the box the
    filter sees the image's pixels beyond it; torchvision crops first and sees only the box, and so does
    ``edges="crop"``, for whole pixels. A box that reaches outside the image is cropped first, with black outside.
    """
    wanted = declared(lambda: T.Resize(size, interpolation, antialias=antialias))
    edges = EDGES("edges", edges, error=refused)
    box = as_numbers((top, left, height, width))
    if box is None or min(box[2:]) <= 0 or max(map(abs, box)) > MAX_LENGTH:
        given = (top, left, height, width)
        raise refused("top, left, height, width", given, "a box in pixels, its height and width greater than 0")
    if edges == "crop" and any(value != int(value) for value in box):
        raise refused("edges", edges, '"image" for a box with fractions of pixels')
    sides = wanted.size
    if isinstance(sides, int):
        sides = tuple(resized_size(np.array([box[2:]]), sides, None)[0].tolist())
    single = Single(img)
    if box[0] < 0 or box[1] < 0 or box[0] + box[2] > single.height or box[1] + box[3] > single.width:
        _cut(single, *box)
        box = (0, 0, *box[2:])
    if crops_first(wanted.interpolation, edges) and all(value == int(value) for value in box):
        box = tuple(cut_out(single.sampling, tuple(map(int, box))))
    add_resized_crop(single.sampling, box, sides, wanted.interpolation)
    return single.run(device)


def _cut(single: Single[Img], top: float, left: float, height: float, width: float) -> None:
    size = [integer(n, v, 1, MAX_LENGTH, error=refused) for n, v in (("height", height), ("width", width))]
    corner = (("top", top), ("left", left))
    origin = [integer(n, v, -MAX_LENGTH, MAX_LENGTH, error=refused) for n, v in corner]
    add_crop(single.sampling, origin[0], origin[1], (size[0], size[1]), BLACK)
