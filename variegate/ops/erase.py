"""Erasing of rectangles, grids, and grown regions."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from variegate.arrays import Int32Array, Int64Array, UInt32Array
from variegate.native.library import as_c_contiguous, check_status, data_ptr, entry
from variegate.ops.arguments import (
    BLACK,
    MAX_LENGTH,
    MAX_RECTANGLES,
    ArgumentError,
    FactorRange,
    Fill,
    FillColor,
    Integers,
    Number,
    Probability,
    ShareMagnitude,
    ShareRange,
    several_numbers,
)
from variegate.ops.base import Transform, TypicalRange, set_field
from variegate.ops.magnitude import MagnitudeOp, between, integers_between, limits
from variegate.ops.resize import TRIES, draw_box
from variegate.ops.schema import Argument, Converted, MagnitudeRange, Range
from variegate.program.channels import color_of, needs_color
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number as Drawn
from variegate.program.draws.values import floor
from variegate.program.ops import Op
from variegate.program.program import MAX_CHANNELS
from variegate.program.rng import to_unit
from variegate.program.sampling import Floats, Rows, Sampling

MAX_HOLES = 4096


def emit_rectangles(
    sampling: Sampling,
    rows: Rows,
    rectangles: Int64Array,
    owner: Int64Array,
    fill: Fill | str,
    name: str,
    noise_slot: int = 0,
) -> None:
    """Erase ``rectangles[Q, 4]`` (top, left, height, width). Rectangle q belongs to image ``rows[owner[q]]``.

    ``owner`` is in ascending order. Rectangles are clipped to the image, and empty ones are dropped; images without
    rectangles get no instruction. ``fill``: a color, or "random" for noise in every pixel, drawn from ``noise_slot``.
    ``name``: the operation's name in descriptions.
    """
    size = sampling.size[rows[owner]]
    start = np.clip(rectangles[:, :2], 0, size)
    end = np.clip(rectangles[:, :2] + rectangles[:, 2:], 0, size)
    visible = (end > start).all(axis=1)
    clipped = np.concatenate([start, end - start], axis=1)[visible].astype(np.int32)
    count = np.bincount(owner[visible], minlength=len(rows))
    first = sampling.add_rectangles(clipped) + np.cumsum(count) - count
    hit = count > 0
    is_random = isinstance(fill, str)
    color = BLACK if isinstance(fill, str) else fill
    args = (first[hit], count[hit], float(is_random), noise_slot if is_random else 0)
    sampling.emit(rows[hit], Op.ERASE, *args, fill=color, name=name)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Cutout(MagnitudeOp):
    """Erase ``num_holes`` squares of ``size`` pixels a side (DeVries and Taylor 2017, arXiv:1708.04552).

    ``size`` is a number or a range. Centers are drawn uniformly from the image; squares may exceed its edge. Sides may
    be odd: a square extends ``size // 2`` up and left of its center, and the rest down and right. The "Cutout" of
    policies (``policies/table.py``) has even sides, as in PBA and TensorFlow.
    """

    size: Annotated[Integers, MagnitudeRange(0, MAX_LENGTH)]
    num_holes: Annotated[int, Range(1, MAX_HOLES)] = 1
    fill: Fill = BLACK
    _typical_range = TypicalRange(0.0, 0.6, 0.0, unit="shorter")

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", 1 + self.num_holes)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        side = np.asarray(values, np.int64)
        unit = to_unit(sampling.words(rows, slot + 1, self.num_holes)[..., :2])
        middle = np.floor(unit * sampling.size[rows, None, :]).astype(np.int64)
        sides = np.broadcast_to(side[:, None, None], middle.shape)
        holes = np.concatenate([middle - sides // 2, sides], axis=-1).reshape(-1, 4)
        owner = np.repeat(np.arange(len(rows)), self.num_holes)
        emit_rectangles(sampling, rows, holes, owner, self.fill, "Cutout")


_ERASED_WITH = 'a number, one for each channel, "random" or "color"'


def _erased_with(value: Any) -> Any:
    if isinstance(value, str):
        return value if value in ("random", "color") else None
    return several_numbers(value, MAX_CHANNELS)


@dataclass(frozen=True)
class RandomErasing(Transform):
    """Erase one rectangle with probability ``p`` (Zhong et al. 2017, arXiv:1708.04896).

    Its area is uniform in ``scale`` times the image's, its height / width log-uniform in ``ratio``. If ten draws do not
    fit, the image does not change. ``value``: a number, one for each channel, "random" for noise in every pixel, or
    "color" for one random color. Before ``Normalize``, values are levels 0..255 and noise is uniform; after it, values
    are used as given and noise is normal.
    """

    p: Probability = 0.5
    scale: ShareRange = (0.02, 0.33)
    ratio: FactorRange = (0.3, 3.3)
    value: Annotated[float | str | Sequence[float], Converted(_erased_with, _ERASED_WITH)] = 0
    inplace: bool = False
    _changes_bytes = False  # may follow Normalize, where it erases in the float output
    num_slots = 1 + TRIES + 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.value == "color":  # a slot has two normal numbers, and three are needed
            set_field(self, "num_slots", type(self).num_slots + 1)

    def draw(self, image: DrawContext, slot: int) -> None:
        if not (chosen := image.by_chance(self.p, slot)):
            return
        found, box = draw_box(chosen, slot + 1, limits(self.scale), self.ratio, (0, 0, 0, 0), upright=True)
        erased = chosen.where(found & (box[2] > 0) & (box[3] > 0))
        if not erased:
            return
        is_float, is_random = erased.output.is_float, self.value == "random"
        noise_slot = slot + 1 + TRIES
        color = self._color(erased, noise_slot, is_float)
        values = color_of("RandomErasing: value", color, erased.num_channels, erased.table)
        args = (erased.rectangle(*box), 1, float(is_random), image.slot(noise_slot) if is_random else 0)
        fill = None if is_float else color
        erased.add(Op.ERASE, *args, *values, float(is_float), fill=fill, name="RandomErasing")

    def _color(self, image: DrawContext, slot: int, is_float: bool) -> Sequence[Drawn]:
        """Return one number for all channels, or a number per channel."""
        if self.value == "color":
            if image.num_channels != 3:
                raise needs_color("RandomErasing(value='color')", image.num_channels)
            if is_float:
                return [image.normal(slot), image.normal(slot, 1), image.normal(slot + 1)]
            return [floor(256 * image.uniform(slot, i)) for i in range(3)]
        value: Any = 0.0 if self.value == "random" else self.value
        values = [float(level) for level in (value if isinstance(value, Sequence) else (value,))]
        if not is_float and not all(0.0 <= level <= 255.0 for level in values):
            raise ArgumentError(self, "value", self.value, "levels from 0 to 255, as there is no Normalize before it")
        return values


class _FillOrRandom(FillColor):
    """Argument that accepts a color, or "random"."""

    def convert(self, value: Any) -> Any:
        return value if isinstance(value, str) and value == "random" else super().convert(value)

    def describe(self) -> str:
        return f'{super().describe()}, or "random"'


NoiseFill = Annotated[Fill | str, _FillOrRandom()]


@dataclass(frozen=True)
class CoarseDropout(Transform):
    """Erase several rectangles within the image.

    ``num_holes``: a number or a range. ``size``: height and width of each rectangle, a number or a range; integers are
    pixels, floats from 0 to 1 are shares of the side. ``fill`` may also be "random" for noise in every pixel.
    """

    num_holes: Annotated[Integers, Range(0, MAX_HOLES)] = (1, 8)
    size: Annotated[int | float | Sequence[float], Range(0.0, MAX_LENGTH)] = (8, 32)
    fill: NoiseFill = BLACK

    def __post_init__(self) -> None:
        super().__post_init__()
        in_pixels = all(isinstance(v, int) for v in limits(self.size))
        if not in_pixels and limits(self.size)[1] > 1.0:
            raise ArgumentError(self, "size", self.size, "whole pixels, or shares of the side from 0.0 to 1.0")
        set_field(self, "num_slots", 2 + limits(self.num_holes)[1])

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        count = integers_between(self.num_holes, sampling.uniform(rows, slot)[:, 0]).astype(np.int64)
        most = int(limits(self.num_holes)[1])
        unit = to_unit(sampling.words(rows, slot + 2, most))
        image = sampling.size[rows, None, :].astype(np.float64)
        if all(isinstance(v, int) for v in limits(self.size)):
            sides = np.minimum(integers_between(self.size, unit[..., :2]), image)
        else:
            sides = np.floor(between(self.size, unit[..., :2]) * image)
        start = np.floor(unit[..., 2:] * (image - sides + 1))
        holes = np.concatenate([start, sides], axis=-1).astype(np.int64)
        used = np.arange(most) < count[:, None]
        owner = np.repeat(np.arange(len(rows)), count)
        emit_rectangles(sampling, rows, holes[used], owner, self.fill, "CoarseDropout", noise_slot=slot + 1)


class GridUnit(Argument):
    """Argument that accepts pixels or a share of the shorter side, as a number or a range."""

    _pixels = Range(2, MAX_LENGTH).of_type(Integers)
    _share = Range(1e-9, 1.0 - 1e-9).of_type(Number)

    def convert(self, value: Any) -> Any:
        share = self._share.convert(value)
        return self._pixels.convert(value) if share is None else share

    def describe(self) -> str:
        return f"{self._pixels.describe()}; or a share of the shorter side, above 0 and below 1"


@dataclass(frozen=True)
class GridMask(Transform):
    """Erase a regular grid of squares (Chen et al. 2020, arXiv:2001.04086).

    ``unit``: distance between squares, a number or a range: integers are pixels, at least 2; fractions below 1 are
    shares of the shorter side. ``ratio``: side of the squares as a share of ``unit``, 0 to 1, a number or a range. The
    grid's position is uniform; it is not rotated.
    """

    unit: Annotated[float | Sequence[float], GridUnit()] = (96, 224)
    ratio: ShareRange = 0.5
    fill: Fill = BLACK
    num_slots = 1

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        drawn = sampling.uniform(rows, slot)
        if limits(self.unit)[0] < 1:
            unit = np.maximum(between(self.unit, drawn[:, 0]) * sampling.size[rows].min(axis=1), 2).astype(np.int64)
        else:
            unit = integers_between(self.unit, drawn[:, 0]).astype(np.int64)
        side = np.rint(unit * between(self.ratio, drawn[:, 1])).astype(np.int64)
        offset = np.floor(drawn[:, 2:4] * unit[:, None]).astype(np.int64) - unit[:, None]
        cells = -((offset - sampling.size[rows]) // unit[:, None])
        total = cells.prod(axis=1)
        if len(rows) and int(total.max()) > MAX_RECTANGLES:
            worst = int(np.argmax(total))
            height, width = sampling.size[rows[worst]].tolist()
            raise ValueError(
                f"GridMask: unit={self.unit} makes {int(total[worst]):,} squares on an image of {height}x{width}; "
                f"accepted: at most {MAX_RECTANGLES:,}, with a larger unit or on a smaller image"
            )
        owner = np.repeat(np.arange(len(rows)), total)
        number = np.arange(int(total.sum())) - np.repeat(np.cumsum(total) - total, total)
        across = cells[owner, 1]
        index = np.stack([number // across, number % across], axis=1)
        start = offset[owner] + index * unit[owner, None]
        sides = np.broadcast_to(side[owner, None], start.shape)
        emit_rectangles(sampling, rows, np.concatenate([start, sides], axis=1), owner, self.fill, "GridMask")


MAX_CELLS = 128


@dataclass(frozen=True)
class OcclusionDiffusion(MagnitudeOp):
    """Erase a ragged, connected region grown from random seeds (Eden's model of growth, 1961).

    Args:
        num_seeds: number of initial cells, drawn uniformly; an integer or a range. Then one free neighbor of the region
            is added at a time, each equally likely.
        area: share of the image to cover, a number or a range from 0 to 1; exceeded by less than a cell.
        fill: a color, or "random" for noise in every pixel.
        cells: number of square cells along the longer side, 1 to 128; their side is rounded up to whole pixels.
    """

    num_seeds: Annotated[Integers, Range(1, MAX_HOLES)] = (1, 4)
    area: ShareMagnitude = (0.02, 0.2)
    fill: NoiseFill = BLACK
    cells: Annotated[int, Range(1, MAX_CELLS)] = 32
    num_slots = 3
    _typical_range = TypicalRange(0.0, 0.6, 0.0)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        # Slot 0 draws the area and the number of seeds, slot 1 the key of the growth's words. Slot 2 is for noise.
        seeds = integers_between(self.num_seeds, sampling.uniform(rows, slot)[:, 1]).astype(np.int64)
        keys = sampling.words(rows, slot + 1)[:, 0, :2]
        size = sampling.size[rows]
        side = -(-size.max(axis=1).astype(np.int64) // self.cells)
        pixels = np.ceil(values * size.prod(axis=1, dtype=np.int64)).astype(np.int64)
        rectangles, count = grow(keys, size, side, seeds, pixels)
        owner = np.repeat(np.arange(len(rows)), count)
        emit_rectangles(sampling, rows, rectangles, owner, self.fill, "OcclusionDiffusion", noise_slot=slot + 2)


_grow_regions = entry(
    "vg_grow_regions", c_int64, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_void_p
)


def grow(
    keys: UInt32Array, size: Int32Array, side: Int64Array, seeds: Int64Array, pixels: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Grow a random region in each of N images.

    Image n, of height and width ``size[n]``, is divided into square cells of ``side[n]`` pixels from its upper left
    corner. The region starts with ``seeds[n]`` cells, uniform over the image. Then one cell is added at a time, until
    the region covers ``pixels[n]`` pixels. Each free neighbor (above, below, left or right) is equally likely.

    Random words are ``philox4x32(counter=(i, 0, 0, 0), key=keys[n])`` for i = 0, 1, ...; a word w draws one of m as
    ``w * m >> 32``. Free neighbors are in a list, in the order in which they were found, for one cell in the order of
    the directions. The drawn entry is replaced by the last. Entries that became seeds are skipped.

    Returns rectangles int64[Q, 4] of top, left, height, width, sorted by image, and their number per image, int64[N].
    A rectangle is a run of cells in a row of cells, merged with equal runs in the rows below. It may exceed the image.
    """
    cells = -(-size.astype(np.int64) // side[:, None])
    most = int(cells.prod(axis=1).max(initial=1))
    # Upper bound on rectangles: runs in a row of cells are separated by at least one free cell.
    room = int((cells[:, 0] * (cells[:, 1] // 2 + 1)).sum())
    rectangles, count = np.empty((room, 4), np.int64), np.zeros(len(size), np.int64)
    read = as_c_contiguous(keys), size.astype(np.int64), *map(as_c_contiguous, (side, seeds, pixels))
    written = data_ptr(rectangles), data_ptr(count)
    check_status(_grow_regions(len(size), *map(data_ptr, read), most, *written))
    return rectangles[: count.sum()], count
