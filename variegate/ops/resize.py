"""Resizing of the image or of a random box. Names, arguments and boxes follow torchvision v2, pixels Pillow.

Random boxes have a uniform area, a log-uniform aspect ratio and a uniform position. Up to ten boxes are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from variegate.checks import as_integer
from variegate.ops.arguments import (
    MAX_LENGTH,
    SIZES,
    AreaRange,
    ArgumentError,
    Edges,
    FactorRange,
    FilterName,
    Size,
    two_integers,
)
from variegate.ops.base import Transform, set_field
from variegate.ops.magnitude import INTERPOLATION_FLAGS, between
from variegate.ops.schema import Converted
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number, exp, floor, log, maximum, minimum, rint, select, sqrt, trunc
from variegate.program.ops import Op

TRIES = 10  # attempts to draw a box that fits, with a slot each: area, aspect ratio, top, left

# ``Sides``: height and width. ``Box``: top, left, height and width.
Sides = tuple[Number, Number]
Box = tuple[Number, ...]

# PIL images are always antialiased, and torchvision ignores the argument for them.


def resized_size(height: Number, width: Number, short: Number | None, max_size: int | None) -> tuple[Number, Number]:
    """Return height and width after resizing the short side to ``short``, and the long side to at most ``max_size``.

    The aspect ratio is kept, fractions are truncated as in torchvision, and sides are at least one pixel.
    """
    shortest, longest = minimum(height, width), maximum(height, width)
    if short is None:
        assert max_size is not None
        new_short, new_long = trunc(max_size * shortest / longest), max_size
    else:
        new_short, new_long = short, trunc(short * longest / shortest)
        if max_size is not None:
            is_over = new_long > max_size
            new_short = select(is_over, trunc(max_size * new_short / new_long), new_short)
            new_long = minimum(new_long, max_size)
    is_tall = width < height
    new_height, new_width = select(is_tall, new_long, new_short), select(is_tall, new_short, new_long)
    return maximum(new_height, 1), maximum(new_width, 1)


def _side_or_size(value: Any) -> int | tuple[int, int] | None:
    """Parse a side, also as a list of one number, or a (height, width) pair."""
    size = two_integers(value, MAX_LENGTH)
    is_pair = size is not None and as_integer(value) is None and len(value) == 2
    return size[0] if size is not None and not is_pair else size


SideOrSize = Annotated[int | Sequence[int], Converted(_side_or_size, SIZES)]


@dataclass(frozen=True)
class Resize(Transform, function="resize"):
    """Resize the whole image.

    Args:
        size: an integer for the shorter side, keeping the aspect ratio; a (height, width) pair; or None, for a longer
            side of ``max_size``. Images of that size do not change.
        interpolation: "nearest" (or "nearest-exact"), "bilinear", "bicubic", "box", "hamming" or "lanczos", or Pillow's
            code of one.
        max_size: limit of the longer side, above ``size``.
    """

    size: SideOrSize | None
    interpolation: FilterName = "bilinear"
    max_size: int | None = None
    antialias: bool | None = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size is None and self.max_size is None:
            raise ArgumentError(self, "size", None, "a size, or None together with max_size")
        if self.max_size is not None:
            least = self.size if isinstance(self.size, int) else 0
            longest = as_integer(self.max_size)
            if isinstance(self.size, tuple) or longest is None or not least < longest <= MAX_LENGTH:
                accepted = f"None, or an integer above size ({least}) and up to {MAX_LENGTH:,}"
                accepted = "None where size is a pair" if isinstance(self.size, tuple) else accepted
                raise ArgumentError(self, "max_size", self.max_size, accepted)
            set_field(self, "max_size", longest)

    def draw(self, image: DrawContext, slot: int) -> None:
        wanted: Any = self.size
        if not isinstance(wanted, tuple):
            wanted = resized_size(image.height, image.width, wanted, self.max_size)
        add_resize(image, wanted, self.interpolation)


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """Crop a random area and resize it to ``size`` (Szegedy et al. 2015, arXiv:1409.4842).

    Args:
        scale: range of the crop's area as a share of the image's; uniform.
        ratio: range of its width / height; log-uniform. After ten crops that do not fit, the largest central one within
            ``ratio`` is taken.
        edges: "image": along the crop's edges, the filter uses the image's pixels beyond them. "crop": it does not, as
            in torchvision, which crops first; pixels then equal torchvision's for PIL images to the bit. The two differ
            only within the filter's support of the edges.
    """

    size: Size
    scale: AreaRange = (0.08, 1.0)
    ratio: FactorRange = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: FilterName = "bilinear"
    antialias: bool | None = True
    edges: Edges = "image"
    num_slots = TRIES

    def draw(self, image: DrawContext, slot: int) -> None:
        otherwise = _central_box(image.height, image.width, self.ratio)
        _, box = draw_box(image, slot, self.scale, self.ratio, otherwise)
        if crops_first(self.interpolation, self.edges):
            box = cut_out(image, box)
        add_resized_crop(image, box, self.size, self.interpolation)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Fit(Transform):
    """Crop the largest area with the aspect ratio of ``size``, and resize it to ``size``.

    Args:
        size: (height, width), or an integer for a square.
        position: position of the crop: "random" or "center".
    """

    size: Size
    position: Literal["random", "center"] = "random"
    interpolation: FilterName = "bilinear"
    num_slots = 1

    def draw(self, image: DrawContext, slot: int) -> None:
        height, width = self.size  # type: ignore[misc]
        ratio = width / height
        top, left, h, w = _central_box(image.height, image.width, (ratio, ratio))
        if self.position == "random":
            top = floor(image.uniform(slot) * (image.height - h + 1))
            left = floor(image.uniform(slot, 1) * (image.width - w + 1))
        add_resized_crop(image, (top, left, h, w), self.size, self.interpolation)  # type: ignore[arg-type]


def _central_box(height: Number, width: Number, ratio: Sequence[float]) -> Box:
    """Return the largest box about the center whose width / height is within ``ratio``."""
    aspect = width / height
    h = select(aspect < ratio[0], maximum(rint(width / ratio[0]), 1), height)
    w = select(aspect > ratio[1], maximum(rint(height * ratio[1]), 1), width)
    return (height - h) // 2, (width - w) // 2, h, w


def add_resize(image: DrawContext, wanted: Sides, interpolation: FilterName) -> None:
    """Add a resize of the full image to height and width ``wanted``, except to images that have this size."""
    (new_height, new_width), height, width = wanted, image.height, image.width
    if chosen := image.where((new_height != height) | (new_width != width)):
        add_resized_crop(chosen, (0, 0, height, width), wanted, interpolation)


def crops_first(interpolation: FilterName, edges: Edges) -> bool:
    """Return whether a box is cropped before it is resized.

    "nearest" always crops first, so that pixels equal Pillow's for the cropped image.
    """
    return edges == "crop" or interpolation == "nearest"


def add_resized_crop(image: DrawContext, box: Box, wanted: Sides, interpolation: FilterName) -> None:
    """Add a resize of the box (top, left, height, width) to height and width ``wanted``."""
    image.add(Op.RESIZED_CROP, *box, *wanted, flags=INTERPOLATION_FLAGS[interpolation], size=wanted)


def cut_out(image: DrawContext, box: Box) -> Box:
    """Add a crop to the integer box, except to images that it covers. Returns the box in the cropped image."""
    height, width = box[2:]
    if chosen := image.where((height != image.height) | (width != image.width)):
        chosen.add(Op.CROP, *box, size=(height, width))
    return 0, 0, height, width


def draw_box(
    image: DrawContext,
    slot: int,
    scale: Sequence[float],
    ratio: Sequence[float],
    otherwise: Box,
    upright: bool = False,
) -> tuple[Number, Box]:
    """Draw a box (top, left, height, width) from slots ``slot .. slot + TRIES - 1``.

    ``scale``: range of the box's share of the area. ``ratio``: range of width / height, of boxes of at least one
    pixel that fit in the image; or with ``upright``, of height / width, of boxes smaller than the image on both sides,
    which may be empty (that is ``RandomErasing``'s rule).

    Returns whether one of ten attempts fitted, and the first box that did, else ``otherwise``.
    """
    height, width = image.height, image.width
    area, logarithms = height * width, (log(ratio[0]), log(ratio[1]))

    def attempt(i: int) -> tuple[Number, Box]:
        shape, aspect, y, x = (image.uniform(slot + i, word) for word in range(4))
        wanted = area * between(scale, shape)
        proportion = exp(between(logarithms, aspect))
        if upright:
            h, w = rint(sqrt(wanted * proportion)), rint(sqrt(wanted / proportion))
            fits = (h < height) & (w < width)
        else:
            h, w = rint(sqrt(wanted / proportion)), rint(sqrt(wanted * proportion))
            fits = (h > 0) & (h <= height) & (w > 0) & (w <= width)
        return fits, (floor(y * (height - h + 1)), floor(x * (width - w + 1)), h, w)

    found, box = image.first_of(TRIES, attempt, otherwise)
    return found, box
