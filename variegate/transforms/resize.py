"""Resizing the image or a random box of it (names, arguments and boxes: torchvision v2; pixels: Pillow)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, as_integer, refused
from variegate.program.ops import Interpolation, Op
from variegate.program.sampling import Rows, Sampling
from variegate.transforms.arguments import (
    MAX_LENGTH,
    POSITIVE_PAIR,
    ArgumentError,
    InterpolationName,
    check_interpolation,
    check_size,
    checks,
    optional,
)
from variegate.transforms.base import Transform, set_field
from variegate.transforms.boxes import TRIES, sample_boxes

Sizes = npt.NDArray[np.int32]


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


def _side_or_size(name: str, value: Any, *, error: Refusal = refused) -> int | tuple[int, int]:
    """A list of one number is that number."""
    height, width = check_size(name, value, error=error)
    is_pair = as_integer(value) is None and len(value) == 2
    return (height, width) if is_pair else height


@dataclass(frozen=True)
class Resize(Transform):
    """Resize the whole image, antialiased.

    ``size`` a number: its short side becomes that, aspect kept; a (height, width) pair: exactly that; None: the long
    side becomes ``max_size``. ``max_size`` otherwise bounds the long side, and must be above ``size``. Images that
    have the size already stay as they are. ``interpolation``: nearest, bilinear or bicubic; the latter two are always
    antialiased, so that ``antialias=False`` is refused.
    """

    size: int | Sequence[int] | None
    interpolation: InterpolationName = "bilinear"
    max_size: int | None = None
    antialias: bool | None = True
    _checks = checks(size=optional(_side_or_size), interpolation=check_interpolation)

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
        _check_antialias(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        before = sampling.size[rows]
        if isinstance(self.size, tuple):
            wanted = np.broadcast_to(np.asarray(self.size, np.int32), before.shape)
        else:
            wanted = resized_size(before, self.size, self.max_size)  # type: ignore[arg-type]
        changed = (wanted != before).any(axis=1)
        if not changed.all():
            rows, before, wanted = rows[changed], before[changed], wanted[changed]
        emit_resized_crop(sampling, rows, (0, 0, *before.T), wanted, self.interpolation)


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """Crop a random box and resize it to ``size`` (Szegedy et al. 2015, arXiv:1409.4842).

    The box's area is uniform in ``scale`` times the image's, its width / height log-uniform in ``ratio``, its place
    uniform. After ten boxes that do not fit, the largest central box within ``ratio``.
    """

    size: int | Sequence[int]
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: InterpolationName = "bilinear"
    antialias: bool | None = True
    num_slots = TRIES
    _checks = checks(size=check_size, scale=POSITIVE_PAIR, ratio=POSITIVE_PAIR, interpolation=check_interpolation)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_antialias(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        boxes, found = sample_boxes(sampling, rows, slot, self.scale, self.ratio)
        if not found.all():
            boxes[~found] = _central_boxes(sampling.size[rows[~found]], self.ratio)
        emit_resized_crop(sampling, rows, boxes.T, np.array(self.size, np.int32), self.interpolation)


def _central_boxes(size: Sizes, ratio: tuple[float, float]) -> npt.NDArray[np.int64]:
    """int64[R, 4]: the largest box about the centre whose width / height is within ``ratio``."""
    height, width = size[:, 0].astype(np.float64), size[:, 1].astype(np.float64)
    aspect = width / height
    h = np.where(aspect < ratio[0], np.maximum(np.rint(width / ratio[0]), 1), height)
    w = np.where(aspect > ratio[1], np.maximum(np.rint(height * ratio[1]), 1), width)
    return np.stack([(height - h) // 2, (width - w) // 2, h, w], axis=1).astype(np.int64)


def emit_resized_crop(
    sampling: Sampling, rows: Rows, box: Iterable[npt.ArrayLike], wanted: Sizes, interpolation: InterpolationName
) -> None:
    """Resample the box (top, left, height, width) to ``wanted``, int[2] or [R, 2]."""
    flags = int(Interpolation[interpolation.upper()])
    sampling.emit(rows, Op.RESIZED_CROP, *box, wanted[..., 0], wanted[..., 1], flags=flags, size=wanted)


def _check_antialias(owner: Resize | RandomResizedCrop) -> None:
    antialias = owner.antialias
    is_meaningless = antialias is False and owner.interpolation == "nearest"
    if antialias is not True and antialias is not None and not is_meaningless:
        raise ArgumentError(owner, "antialias", antialias, "True or None (bilinear and bicubic are always antialiased)")
