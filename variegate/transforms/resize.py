"""Resizing the image or a random box of it (names, arguments and boxes: torchvision v2; pixels: Pillow)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variegate.program.ops import Interpolation, Op
from variegate.program.sampling import Rows, Sampling
from variegate.transforms.base import ArgumentError, Transform, as_interpolation, as_size, is_number, set_field
from variegate.transforms.boxes import TRIES, sample_boxes
from variegate.transforms.limits import MAX_LENGTH
from variegate.transforms.magnitude import check_positive_pair

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
            if not (single and is_number(self.max_size, True) and least < self.max_size <= MAX_LENGTH):
                accepted = f"None, or an integer above size ({least}) and up to {MAX_LENGTH:,}"
                accepted = accepted if single else "None where size is a pair"
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


def _flag(interpolation: str) -> int:
    return int(Interpolation[interpolation.upper()])


def _check_antialias(owner: Resize | RandomResizedCrop) -> None:
    antialias = owner.antialias
    is_meaningless = antialias is False and owner.interpolation == "nearest"
    if antialias is not True and antialias is not None and not is_meaningless:
        raise ArgumentError(owner, "antialias", antialias, "True or None (bilinear and bicubic are always antialiased)")
