"""Layers that ``brushes.py`` draws and Op.OVERLAY composites on images.

A layer is a grid of nodes with bilinear interpolation. The cost of drawing therefore depends on the layer's detail, not
on the image's size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from variegate.arrays import Float32Array, UInt8Array
from variegate.checks import as_numbers
from variegate.ops.arguments import Probability, RgbColor
from variegate.ops.fields import Lattice, lattice
from variegate.ops.magnitude import MagnitudeOp, between, integers_between
from variegate.ops.schema import Converted
from variegate.program.channels import per_channel
from variegate.program.draws.recorder import DrawContext
from variegate.program.ops import LAYER_PLANES, LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT, LayerMode, Op
from variegate.program.rng import noise_words, to_unit
from variegate.program.sampling import Floats, Rows, Sampling

# Most nodes along the longer side. On larger images, shapes with sizes in pixels are scaled up.
MAX_NODES = 512
WHITE: RgbColor = (255, 255, 255)
# Most shadows, spots or reflections per image.
MAX_SHAPES = 64


Layers = UInt8Array  # [R, planes, lines, columns]


def canvas(size: tuple[int, int], most: int = MAX_NODES, apart: float = 1.0) -> tuple[Lattice, float]:
    """Return nodes for an image of ``size`` (height, width), and the number of nodes per pixel.

    Nodes are ``apart`` pixels apart, or farther, so that there are at most ``most`` along the longer side.
    """
    apart = max(apart, (max(size) - 1) / most)
    over = lattice(size, apart)
    # An even number of columns, so that planes of uint8 can be stored in an int16 table.
    return replace(over, columns=over.columns + over.columns % 2), 1.0 / apart


def blank(count: int, planes: int, over: Lattice) -> Layers:
    return np.zeros((count, planes, over.lines, over.columns), np.uint8)


def units(sampling: Sampling, rows: Rows, slot: int, count: int) -> Floats:
    """Return uniform numbers in [0, 1) from the noise of ``slot``, float64[4, R, count], for a variable count."""
    return np.moveaxis(to_unit(noise_words(*sampling.streams(rows), slot, count)), -1, 0)


def joined(*values: Floats) -> Float32Array:
    """Stack properties of shapes along a new last axis, as float32 for brushes."""
    return np.stack(np.broadcast_arrays(*values), axis=-1).astype(np.float32)


def emit_layers(
    sampling: Sampling,
    rows: Rows,
    over: Lattice,
    layers: Layers,
    strength: npt.ArrayLike,
    name: str,
    mode: LayerMode = LayerMode.OVER,
    color: RgbColor = WHITE,
    place: npt.ArrayLike = (0, 0),
) -> None:
    """Composite ``layers``, one per row or one for all, on the images, with their upper left corner at ``place``.

    ``place``: (top, left). ``strength``: factor of alpha per row. The number of planes determines their meaning: 1,
    alpha of ``color``; 2, alpha and gray; 3, alpha of ``color`` per channel; 4, alpha, red, green, blue. Gray images
    get the luma of colors.
    """
    color = per_channel(f"{name}: fill", color, 3).tolist()
    gray = sampling.channels[rows] == 1
    args = (over.lines, over.columns, over.step_y, over.step_x, *np.moveaxis(np.asarray(place), -1, 0), strength)
    for is_gray in (False, True):
        of = np.flatnonzero(gray == is_gray)
        if not len(of):
            continue
        own = layers if len(layers) == 1 or len(of) == len(rows) else layers[of]
        own = _without_color(own) if is_gray and layers.shape[1] > 2 else own
        nodes = np.ascontiguousarray(own).reshape(len(own), -1)
        if nodes.shape[1] % 2:
            nodes = np.pad(nodes, ((0, 0), (0, 1)))
        first = sampling.add_grids(nodes.view(np.int16)) + np.arange(len(nodes)) * (nodes.shape[1] // 2)
        fill = (int(luma(*color)),) * 3 if is_gray else color
        flags = int(mode) + LAYER_PLANES * own.shape[1]
        own_args = (np.asarray(v)[of] if np.ndim(v) else v for v in args)
        sampling.emit(rows[of], Op.OVERLAY, first, *own_args, flags=flags, fill=fill, name=name)


def luma(red: Any, green: Any, blue: Any) -> Any:
    return LUMA_RED * red + LUMA_GREEN * green + LUMA_BLUE * blue + LUMA_HALF >> LUMA_SHIFT


def _without_color(layers: Layers) -> Layers:
    """Convert layers of three or four planes for a gray image."""
    gray = luma(*np.moveaxis(layers[:, -3:].astype(np.int32), 1, 0)).astype(np.uint8)[:, None]
    return np.concatenate([layers[:, :1], gray], axis=1) if layers.shape[1] == 4 else gray


def gradient(over: Lattice, size: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return x [columns] and y [lines, 1] of nodes, in fractions of the image's width and height."""
    along, down = over.places()
    return along / max(size[1] - 1, 1), (down / max(size[0] - 1, 1))[:, None]


def _region(value: Any) -> tuple[float, ...] | None:
    ends = as_numbers(value) or ()
    return ends if len(ends) == 4 and 0 <= ends[0] < ends[2] <= 1 and 0 <= ends[1] < ends[3] <= 1 else None


Region = Annotated[
    Sequence[float], Converted(_region, "shares (x_min, y_min, x_max, y_max) of the sides, 0 <= min < max <= 1")
]


def pixels_of(region: Region, size: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return (top, left) and (height, width) in pixels of a region in an image of ``size`` (height, width)."""
    left, top, right, bottom = (int(share * size[i]) for share, i in zip(region, (1, 0, 1, 0), strict=True))
    return (top, left), (max(bottom - top, 1), max(right - left, 1))


class Overlaid(MagnitudeOp, abstract=True):
    """Composite a drawn layer on the image with probability ``p``. Masks, boxes and points do not change."""

    p: Probability
    num_slots = 3

    def draw(self, image: DrawContext, slot: int) -> None:
        if chosen := image.by_chance(self.p, slot):
            value = getattr(self, self._magnitude_name)
            drawn = (integers_between if self._magnitude_range.is_integer else between)(value, chosen.uniform(slot, 1))
            chosen.run_at(self, drawn, slot)
