"""Resizing the image or a random box of it (names, arguments and boxes: torchvision v2; pixels: Pillow).

Boxes are drawn at random: area uniform, aspect log-uniform, place uniform, tried up to ten times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from ctypes import c_double, c_int64, c_void_p
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, as_integer, one_of, refused
from variegate.native.library import as_c_contiguous, data_ptr, entry
from variegate.ops.arguments import (
    AREA_PAIR,
    MAX_LENGTH,
    POSITIVE_PAIR,
    ArgumentError,
    Edges,
    FilterName,
    check_filter,
    check_size,
    checks,
    optional,
)
from variegate.ops.base import Transform, set_field
from variegate.ops.magnitude import INTERPOLATION_FLAGS
from variegate.program.one_image import Images, Selection
from variegate.program.ops import Op
from variegate.program.sampling import Rows, Sampling

TRIES = 10  # of a box; one slot each: area, aspect, top, left

_DRAW_BOXES = c_void_p, c_int64, c_int64, c_void_p, c_double, c_double, c_double, c_double, c_int64, c_void_p, c_void_p
_draw_boxes = entry("vg_draw_boxes", *_DRAW_BOXES, result=None)

Sizes = npt.NDArray[np.int32]
Boxes = npt.NDArray[np.int64]

# PIL images are always antialiased, and torchvision ignores the argument for them.
ANTIALIAS = partial(one_of, choices=(True, False, None))
EDGES = partial(one_of, choices=get_args(Edges))


def resized_size(size: npt.NDArray[Any], short: Any, max_size: int | None) -> Sizes:
    """int[R, 2] heights and widths whose short side becomes ``short`` (one, or [R]), the long one at most ``max_size``.

    Aspect is kept, fractions are cut off as torchvision does; a side never falls below one pixel.
    """
    shortest, longest = size.min(axis=1).astype(np.float64), size.max(axis=1).astype(np.float64)
    if short is None:
        assert max_size is not None
        new_short, new_long = np.trunc(max_size * shortest / longest), np.full(len(size), max_size, np.float64)
    else:
        new_short, new_long = np.full(len(size), short, np.float64), np.trunc(short * longest / shortest)
        if max_size is not None:
            over = new_long > max_size
            new_short = np.where(over, np.trunc(max_size * new_short / new_long), new_short)
            new_long = np.where(over, max_size, new_long)
    wide = size[:, 0] <= size[:, 1]
    resized = np.stack([np.where(wide, new_short, new_long), np.where(wide, new_long, new_short)], axis=1)
    return np.asarray(np.maximum(resized, 1), np.int32)


def side_or_size(name: str, value: Any, *, error: Refusal = refused) -> int | tuple[int, int]:
    """A list of one number is that number."""
    height, width = check_size(name, value, error=error)
    is_pair = as_integer(value) is None and len(value) == 2
    return (height, width) if is_pair else height


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

    size: int | Sequence[int] | None
    interpolation: FilterName = "bilinear"
    max_size: int | None = None
    antialias: bool | None = True
    _checks = checks(size=optional(side_or_size), interpolation=check_filter, antialias=ANTIALIAS)

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

    def draw(self, images: Images, slot: int) -> None:
        wanted: Any = self.size
        if not isinstance(wanted, tuple):
            wanted = images.numbers(resized_size(images.sizes, wanted, self.max_size))
        add_resize(images, wanted, self.interpolation)


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """Crop a random area and resize it to ``size`` (Szegedy et al. 2015, arXiv:1409.4842).

    Args:
        scale: range of the crop's area as a share of the image's; uniform.
        ratio: range of its width / height; log-uniform. After ten crops that do not fit, the largest central one within
            ``ratio`` is taken.
        edges: "image": along the crop's edges, the filter uses the image's pixels beyond them. "crop": it does not, as
            in torchvision, which crops first; pixels are then those of torchvision on PIL images to the bit. The two
            differ only within the filter's reach of the edges.
    """

    size: int | Sequence[int]
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: FilterName = "bilinear"
    antialias: bool | None = True
    edges: Edges = "image"
    num_slots = TRIES
    _checks = checks(
        size=check_size,
        scale=AREA_PAIR,
        ratio=POSITIVE_PAIR,
        interpolation=check_filter,
        antialias=ANTIALIAS,
        edges=EDGES,
    )

    def draw(self, images: Images, slot: int) -> None:
        boxes, found = sample_boxes(images.sampling, images.rows, slot, self.scale, self.ratio)
        if not all(found.tolist()):
            boxes[~found] = _central_boxes(images.sizes[~found], self.ratio)
        box = images.numbers(boxes)
        if crops_first(self.interpolation, self.edges):
            box = cut_out(images, box)
        add_resized_crop(images, box, self.size, self.interpolation)


def _central_boxes(size: Sizes, ratio: Sequence[float]) -> npt.NDArray[np.int64]:
    """int64[R, 4]: the largest box about the centre whose width / height is within ``ratio``."""
    height, width = size[:, 0].astype(np.float64), size[:, 1].astype(np.float64)
    aspect = width / height
    h = np.where(aspect < ratio[0], np.maximum(np.rint(width / ratio[0]), 1), height)
    w = np.where(aspect > ratio[1], np.maximum(np.rint(height * ratio[1]), 1), width)
    return np.stack([(height - h) // 2, (width - w) // 2, h, w], axis=1).astype(np.int64)


def emit_resize(sampling: Sampling, rows: Rows, wanted: npt.NDArray[Any], interpolation: FilterName) -> None:
    """Resize whole images to ``wanted``, int[R, 2]; those that have the size already are left alone."""
    add_resize(Selection(sampling, rows), wanted.T, interpolation)


def add_resize(images: Images, wanted: Any, interpolation: FilterName) -> None:
    """``emit_resize`` to ``wanted``, height and width."""
    (new_height, new_width), height, width = wanted, images.height, images.width
    changed = (new_height != height) | (new_width != width)
    chosen, height, width, *sides = images.filtered(changed, height, width, new_height, new_width)
    if chosen:
        add_resized_crop(chosen, (0, 0, height, width), tuple(sides), interpolation)


def crops_first(interpolation: FilterName, edges: Edges) -> bool:
    """True if a box of whole pixels is cut out before it is resized. Nearest pixels of a cut are Pillow's of that."""
    return edges == "crop" or interpolation == "nearest"


def emit_resized_crop(
    sampling: Sampling, rows: Rows, box: Iterable[npt.ArrayLike], wanted: Sizes, interpolation: FilterName
) -> None:
    """Resample the box (top, left, height, width) to ``wanted``, int[2] or [R, 2]."""
    add_resized_crop(Selection(sampling, rows), tuple(box), wanted.T, interpolation)


def add_resized_crop(images: Images, box: Sequence[Any], wanted: Any, interpolation: FilterName) -> None:
    """``emit_resized_crop`` to ``wanted``, height and width."""
    images.add(Op.RESIZED_CROP, *box, *wanted, flags=INTERPOLATION_FLAGS[interpolation], size=wanted)


def cut_out(images: Images, box: Sequence[Any]) -> Sequence[Any]:
    """Crop the box of whole pixels, where it is not all of the image -> what of that is to be resized."""
    height, width = box[2:]
    chosen, *cut = images.filtered((height != images.height) | (width != images.width), *box)
    if chosen:
        chosen.add(Op.CROP, *cut, size=cut[2:])
    return 0, 0, height, width


def sample_boxes(
    sampling: Sampling,
    rows: Rows,
    slot: int,
    scale: Sequence[float],
    ratio: Sequence[float],
    upright: bool = False,
) -> tuple[Boxes, npt.NDArray[np.bool_]]:
    """Draw a box for every row from slots ``slot .. slot + TRIES - 1``.

    ``scale``: range of the box's share of the area. ``ratio``: range of width / height, of boxes of at least one
    pixel that fit in the image; or with ``upright``, of height / width, of boxes smaller than the image on both sides,
    which may be empty (that is ``RandomErasing``'s rule).

    Returns int[R, 4] of top, left, height, width, and bool[R]: whether one of the ten tries fitted.
    """
    boxes = np.zeros((len(rows), 4), np.int64)
    found = np.zeros(len(rows), np.bool_)
    words, size = as_c_contiguous(sampling.words(rows, slot, TRIES)), sampling.size[rows].astype(np.int64)
    limits = (*scale, math.log(ratio[0]), math.log(ratio[1]))
    read = data_ptr(words), len(rows), TRIES, data_ptr(size), *limits, upright
    _draw_boxes(*read, data_ptr(boxes), data_ptr(found))
    return boxes, found
