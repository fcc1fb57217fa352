"""Resizing, cropping and padding (names, arguments and boxes: torchvision v2; pixels: Pillow)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variegate.program.ops import Interpolation, Op, PadMode
from variegate.program.sampling import Rows, Sampling
from variegate.transforms.base import (
    ArgumentError,
    Transform,
    as_fill,
    as_interpolation,
    as_size,
    check_choice,
    set_field,
)
from variegate.transforms.boxes import TRIES, sample_boxes
from variegate.transforms.magnitude import BLACK, Fill, is_number

Sizes = npt.NDArray[np.int32]

PAD_MODES = ("constant", "edge", "reflect", "symmetric")


def resized_size(size: Sizes, short: int | None, max_size: int | None) -> Sizes:
    """int[R, 2] heights and widths whose short side becomes ``short``, the long side at most ``max_size``.

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


@dataclass(frozen=True)
class Resize(Transform):
    """Resize the whole image, antialiased.

    ``size`` a number: its short side becomes that, aspect kept; a (height, width) pair: exactly that; None: the long
    side becomes ``max_size``. ``max_size`` otherwise bounds the long side, and must be above ``size``. Images that
    have the size already stay as they are. ``interpolation``: nearest, bilinear or bicubic; the latter two are always
    antialiased, so that ``antialias=False`` is refused.
    """

    size: int | Sequence[int] | None
    interpolation: str = "bilinear"
    max_size: int | None = None
    antialias: bool | None = True

    def __post_init__(self) -> None:
        if isinstance(self.size, (list, tuple)) and len(self.size) == 1:
            set_field(self, "size", self.size[0])
        if self.size is None:
            if self.max_size is None:
                raise ArgumentError(self, "size", None, "a size, or None together with max_size")
        elif isinstance(self.size, int):
            as_size(self, "size")
            set_field(self, "size", self.size[0])  # type: ignore[index]
        else:
            as_size(self, "size")
        if self.max_size is not None:
            single = self.size is None or isinstance(self.size, int)
            least = self.size if isinstance(self.size, int) else 0
            if not (single and is_number(self.max_size, True) and self.max_size > least):
                accepted = f"None, or an integer above size ({least})" if single else "None where size is a pair"
                raise ArgumentError(self, "max_size", self.max_size, accepted)
        as_interpolation(self)
        _check_antialias(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        size = sampling.size[rows]
        if isinstance(self.size, tuple):
            wanted = np.broadcast_to(np.asarray(self.size, np.int32), size.shape)
        else:
            wanted = resized_size(size, self.size, self.max_size)  # type: ignore[arg-type]
        changed = (wanted != size).any(axis=1)
        if not changed.all():
            rows, size, wanted = rows[changed], size[changed], wanted[changed]
        sampling.emit(
            rows,
            Op.RESIZED_CROP,
            *(0, 0, size[:, 0], size[:, 1], wanted[:, 0], wanted[:, 1]),
            flags=_flag(self.interpolation),
            size=wanted,
        )


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """Crop a random box and resize it to ``size`` (Szegedy et al. 2015, arXiv:1409.4842).

    The box's area is uniform in ``scale`` times the image's, its width / height log-uniform in ``ratio``, its place
    uniform. After ten boxes that do not fit, the largest central box within ``ratio``.
    """

    size: int | Sequence[int]
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: str = "bilinear"
    antialias: bool | None = True
    num_slots = TRIES

    def __post_init__(self) -> None:
        as_size(self, "size")
        for argument in ("scale", "ratio"):
            check_positive_pair(self, argument)
        as_interpolation(self)
        _check_antialias(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        boxes, found = sample_boxes(sampling, rows, slot, self.scale, self.ratio)
        if not found.all():
            boxes[~found] = _central_boxes(sampling.size[rows[~found]], self.ratio)
        out_height, out_width = self.size  # type: ignore[misc]
        sampling.emit(
            rows,
            Op.RESIZED_CROP,
            *(boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3], out_height, out_width),
            flags=_flag(self.interpolation),
            size=np.array([out_height, out_width], np.int32),
        )


def _central_boxes(size: Sizes, ratio: tuple[float, float]) -> npt.NDArray[np.int64]:
    """int64[R, 4]: the largest box about the centre whose width / height is within ``ratio``."""
    height, width = size[:, 0].astype(np.float64), size[:, 1].astype(np.float64)
    aspect = width / height
    h = np.where(aspect < ratio[0], np.maximum(np.rint(width / ratio[0]), 1), height)
    w = np.where(aspect > ratio[1], np.maximum(np.rint(height * ratio[1]), 1), width)
    return np.stack([(height - h) // 2, (width - w) // 2, h, w], axis=1).astype(np.int64)


@dataclass(frozen=True)
class CenterCrop(Transform):
    """The central ``size`` pixels; smaller images are padded with black."""

    size: int | Sequence[int]

    def __post_init__(self) -> None:
        as_size(self, "size")

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        wanted = np.asarray(self.size, np.int32)
        spare = sampling.size[rows] - wanted
        # torchvision rounds an odd rest half to even when it cuts, and puts it last when it pads.
        origin = np.where(spare < 0, -((-spare) // 2), np.rint(spare / 2.0).astype(np.int32))
        _emit_crop(sampling, rows, origin, wanted, BLACK)


@dataclass(frozen=True)
class RandomCrop(Transform):
    """``size`` pixels from a random place, after padding.

    ``padding``: pixels on all sides, (left and right, top and bottom), or (left, top, right, bottom).
    ``pad_if_needed`` pads sides that are still too small by what they lack, on both ends. Raises ValueError while
    sampling for an image that is smaller than ``size`` without that.
    """

    size: int | Sequence[int]
    padding: int | Sequence[int] | None = None
    pad_if_needed: bool = False
    fill: Fill = BLACK
    padding_mode: str = "constant"
    num_slots = 1

    def __post_init__(self) -> None:
        as_size(self, "size")
        if self.padding is not None:
            as_padding(self)
        as_fill(self)
        check_choice(self, "padding_mode", PAD_MODES)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        wanted = np.asarray(self.size, np.int32)
        left, top, right, bottom = padding_sides(self.padding or 0)
        size = sampling.size[rows]
        before = np.broadcast_to(np.array([top, left], np.int32), size.shape)
        padded = size + np.array([top + bottom, left + right], np.int32)
        if self.pad_if_needed:
            missing = np.maximum(wanted - padded, 0)
            before, padded = before + missing, padded + 2 * missing
        if (padded < wanted).any():
            worst = tuple(padded[(padded < wanted).any(axis=1)][0].tolist())
            raise ValueError(
                f"RandomCrop: size={self.size} (height, width) is larger than an image of {worst} after padding; "
                "pass pad_if_needed=True, a larger padding, or resize first"
            )
        unit = sampling.uniform(rows, slot)[:, :2]
        origin = np.floor(unit * (padded - wanted + 1)).astype(np.int32)
        if self.padding_mode == "constant":
            _emit_crop(sampling, rows, origin - before, wanted, self.fill)
        else:
            after = padded - size - before
            _emit_pad(sampling, rows, before, after, self.fill, self.padding_mode)
            _emit_crop(sampling, rows, origin, wanted, self.fill)


@dataclass(frozen=True)
class Pad(Transform):
    """Add a border: ``padding`` pixels on all sides, (left and right, top and bottom), or (left, top, right, bottom).

    ``padding_mode``: constant (``fill``), edge (the outermost pixel), reflect (mirrored without it) or symmetric
    (mirrored with it).
    """

    padding: int | Sequence[int]
    fill: Fill = BLACK
    padding_mode: str = "constant"

    def __post_init__(self) -> None:
        as_padding(self)
        as_fill(self)
        check_choice(self, "padding_mode", PAD_MODES)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        left, top, right, bottom = padding_sides(self.padding)
        before = np.broadcast_to(np.array([top, left], np.int32), (len(rows), 2))
        after = np.broadcast_to(np.array([bottom, right], np.int32), (len(rows), 2))
        _emit_pad(sampling, rows, before, after, self.fill, self.padding_mode)


# -- shared ------------------------------------------------------------------------------------------------------


def _flag(interpolation: str) -> int:
    return int(Interpolation[interpolation.upper()])


def _check_antialias(owner: Resize | RandomResizedCrop) -> None:
    antialias = owner.antialias
    if antialias not in (True, None) and owner.interpolation != "nearest":
        raise ArgumentError(owner, "antialias", antialias, "True or None (bilinear and bicubic are always antialiased)")


def check_positive_pair(owner: Transform, argument: str) -> None:
    """The argument is an ordered pair of numbers above 0."""
    value = getattr(owner, argument)
    pair = tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(pair) != 2 or not all(is_number(v) for v in pair) or not 0 < pair[0] <= pair[1]:
        raise ArgumentError(owner, argument, value, "a pair (low, high) of numbers above 0")
    set_field(owner, argument, pair)


def padding_sides(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """left, top, right, bottom of torchvision's ways to write a padding."""
    sides = (padding,) if isinstance(padding, int) else tuple(padding)
    left, top, right, bottom = sides * (4 // len(sides))
    return left, top, right, bottom


def as_padding(owner: Transform, argument: str = "padding") -> None:
    """Check a padding of one, two or four integers >= 0, and store a list as a tuple."""
    value = getattr(owner, argument)
    sides = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if len(sides) not in (1, 2, 4) or not all(is_number(v, True) and v >= 0 for v in sides):
        raise ArgumentError(owner, argument, value, "an integer >= 0, or two or four of them")
    if isinstance(value, list):
        set_field(owner, argument, sides)


def _emit_crop(sampling: Sampling, rows: Rows, origin: Sizes, size: Sizes, fill: Fill) -> None:
    """Crop boxes of one size at ``origin[R, 2]`` (top, left); rows that would not change are left alone."""
    changed = ((sampling.size[rows] != size) | (origin != 0)).any(axis=1)
    if not changed.all():
        rows, origin = rows[changed], origin[changed]
    args = (origin[:, 0], origin[:, 1], size[0], size[1])
    sampling.emit(rows, Op.CROP, *args, fill=fill, size=size)  # type: ignore[arg-type]


def _emit_pad(sampling: Sampling, rows: Rows, before: Sizes, after: Sizes, fill: Fill, mode: str) -> None:
    """Pad by ``before`` and ``after``, int[R, 2] of (vertical, horizontal); rows without padding are left alone."""
    changed = ((before > 0) | (after > 0)).any(axis=1)
    rows, before, after = rows[changed], before[changed], after[changed]
    sampling.emit(
        rows,
        Op.PAD,
        *(before[:, 1], before[:, 0], after[:, 1], after[:, 0]),
        flags=int(PadMode[mode.upper()]),
        fill=fill,  # type: ignore[arg-type]
        size=sampling.size[rows] + before + after,
    )
