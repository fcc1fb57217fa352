"""Functions that change the image's size; names and arguments of torchvision.transforms.v2.functional.

Every function takes ``img``, a uint8 array [H, W, C] with C = 1 or 3 or [H, W] (or a torch tensor of such a shape), and
``device`` ("cpu" or "reference"). A ValueError names an argument out of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from variegate.program.ops import Op, PadMode
from variegate.transforms.functional.arguments import Fill, Size, colour, integer, is_number, refused
from variegate.transforms.functional.arguments import interpolation as interpolation_flag
from variegate.transforms.functional.arguments import size as both_sides
from variegate.transforms.functional.single import Img, Single
from variegate.transforms.limits import MAX_LENGTH


def pad(
    img: Img,
    padding: int | Sequence[int],
    fill: Fill = 0,
    padding_mode: str = "constant",
    device: str = "cpu",
) -> Img:
    """Add borders of ``padding`` pixels: one number, (left and right, top and bottom) or (left, top, right, bottom).

    ``padding_mode``: "constant" (``fill``), "edge", "reflect" or "symmetric", the last three as NumPy's ``pad``.
    """
    left, top, right, bottom = _four_borders(padding)
    if padding_mode not in {mode.name.lower() for mode in PadMode}:
        raise refused("padding_mode", padding_mode, ", ".join(repr(mode.name.lower()) for mode in PadMode))
    single = Single(img)
    size = (single.height + top + bottom, single.width + left + right)
    flags, levels = PadMode[padding_mode.upper()], colour("fill", fill)
    return single.emit(Op.PAD, left, top, right, bottom, flags=flags, fill=levels, size=size).run(device)


def crop(img: Img, top: int, left: int, height: int, width: int, device: str = "cpu") -> Img:
    """The ``height`` x ``width`` pixels from (top, left) on; black where that reaches outside the image."""
    size = integer("height", height, 1, MAX_LENGTH), integer("width", width, 1, MAX_LENGTH)
    start = (integer(name, value, -MAX_LENGTH, MAX_LENGTH) for name, value in (("top", top), ("left", left)))
    return Single(img).emit(Op.CROP, *start, *size, size=size).run(device)


def center_crop(img: Img, output_size: Size, device: str = "cpu") -> Img:
    """The middle ``output_size`` (height, width) pixels; smaller images get black borders."""
    height, width = both_sides("output_size", output_size)
    single = Single(img)
    top, left = _start_of_middle(single.height, height), _start_of_middle(single.width, width)
    return single.emit(Op.CROP, top, left, height, width, size=(height, width)).run(device)


def resize(
    img: Img,
    size: Size | None,
    interpolation: Any = "bilinear",
    max_size: int | None = None,
    antialias: bool = True,
    device: str = "cpu",
) -> Img:
    """Resample to ``size`` (height, width), as Pillow's Image.resize.

    One number is the length of the shorter side, the other keeping the proportions and, where that made it longer than
    ``max_size``, both shrinking to it; None with ``max_size`` makes the longer side that long.
    """
    _check_antialias(antialias)
    single = Single(img)
    height, width = _resized(single.height, single.width, size, max_size)
    return _resample(single, (0, 0, single.height, single.width), (height, width), interpolation).run(device)


def resized_crop(
    img: Img,
    top: float,
    left: float,
    height: float,
    width: float,
    size: Size,
    interpolation: Any = "bilinear",
    antialias: bool = True,
    device: str = "cpu",
) -> Img:
    """The box (pixels, fractions allowed) resampled to ``size`` in one go, as Pillow's ``Image.resize(size, box=...)``.

    Along the edges of the box the filter sees the image's pixels beyond it; torchvision crops first and sees only the
    box, which ``resize(crop(...))`` gives. A box that reaches outside the image is cropped first, with black outside.
    """
    _check_antialias(antialias)
    single = Single(img)
    out_size = both_sides("size", size)
    box = (top, left, height, width)
    if not (all(map(is_number, box)) and height > 0 and width > 0 and all(abs(v) <= MAX_LENGTH for v in box)):
        raise refused("top, left, height, width", box, "a box in pixels, its height and width greater than 0")
    if box[0] < 0 or box[1] < 0 or box[0] + box[2] > single.height or box[1] + box[3] > single.width:
        cut = integer("top", top), integer("left", left), integer("height", height, 1), integer("width", width, 1)
        single.emit(Op.CROP, *cut, size=cut[2:])
        box = (0, 0, height, width)
    return _resample(single, box, out_size, interpolation).run(device)


def _resample(
    single: Single[Img], box: tuple[float, float, float, float], size: tuple[int, int], interpolation: Any
) -> Single[Img]:
    return single.emit(Op.RESIZED_CROP, *box, *size, flags=interpolation_flag(interpolation), size=size)


def _check_antialias(antialias: object) -> None:
    if antialias is not True:
        raise refused("antialias", antialias, "True (images are resampled as Pillow does, always antialiased)")


def _four_borders(padding: Any) -> tuple[int, int, int, int]:
    borders = list(padding) if hasattr(padding, "__len__") else [padding]
    if len(borders) not in (1, 2, 4):
        raise refused("padding", padding, "one, two or four integers of 0 or more")
    left, top, right, bottom = (integer("padding", value, 0, MAX_LENGTH) for value in borders * (4 // len(borders)))
    return left, top, right, bottom


def _start_of_middle(length: int, wanted: int) -> int:
    # Python's round (half to even) for a crop and the floor for a border, both as torchvision.
    return -((wanted - length) // 2) if wanted > length else round((length - wanted) / 2.0)


def _resized(height: int, width: int, size: Size | None, max_size: int | None) -> tuple[int, int]:
    """Output height and width by torchvision's rules."""
    short, long = min(height, width), max(height, width)
    if size is None:
        if max_size is None:
            raise refused("size", size, "a length, a (height, width) pair, or None with max_size")
        longest = integer("max_size", max_size, 1, MAX_LENGTH)
        new = int(longest * short / long), longest
    else:
        wanted = both_sides("size", size)
        if hasattr(size, "__len__") and len(size) == 2:
            if max_size is not None:
                raise refused("max_size", max_size, "None where size gives both height and width")
            return wanted
        new = wanted[0], int(wanted[0] * long / short)
        if max_size is not None:
            longest = integer("max_size", max_size, wanted[0] + 1, MAX_LENGTH)
            new = (int(longest * new[0] / new[1]), longest) if new[1] > longest else new
    new = max(new[0], 1), max(new[1], 1)
    return new if height <= width else new[::-1]
