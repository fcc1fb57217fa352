"""Fields of displacements, of noise too: pixels along x and y at the nodes of a grid, and straight in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.arrays import Float32Array, Float64Array, IndexArray, Int16Array, Int64Array, RealArray
from variegate.native.library import as_c_contiguous, check_status, data_ptr, entry
from variegate.native.structs import FIELD_NOISE, pack_struct
from variegate.program.coords import MAX_UNIT, NODE_BITS, STEP_BITS, WEIGHS_TWICE
from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling

# What an int16 holds of a displacement's units.
LARGEST_NODE = 32_767

_draw_noise = entry("vg_draw_field_noise", c_void_p)
_add_fields = entry("vg_add_fields", c_void_p, c_int64, c_int64, c_void_p, c_int64, c_void_p, result=None)
_find_farthest = entry("vg_find_farthest", c_void_p, c_int64, c_int64, c_void_p, result=None)
_round_nodes = entry("vg_round_nodes", c_void_p, c_int64, c_int64, c_void_p, c_void_p, result=None)

Nodes = RealArray  # [R, lines, columns, 2]


@dataclass(frozen=True)
class Lattice:
    """Nodes of a grid: ``lines`` times ``columns`` of them, the first at the center of the first pixel,
    ``step`` / 2**26 of them per pixel."""

    lines: int
    columns: int
    step_y: int
    step_x: int

    def places(self) -> tuple[Floats, Floats]:
        """Of the nodes, counted in pixels from the first one's center: along x, and along y."""
        apart_x, apart_y = 2.0**STEP_BITS / self.step_x, 2.0**STEP_BITS / self.step_y
        return np.arange(self.columns, dtype=np.float64) * apart_x, np.arange(self.lines, dtype=np.float64) * apart_y


def lattice(size: tuple[int, int], spacing: float | tuple[float, float]) -> Lattice:
    """Nodes ``spacing`` pixels apart (along y, along x), one at least, over an image of a height and width."""
    apart = spacing if isinstance(spacing, tuple) else (spacing, spacing)
    step_y, step_x = (round(2.0**STEP_BITS / max(s, 1.0)) for s in apart)
    lines, columns = (((side - 1) * step >> STEP_BITS) + 2 for side, step in zip(size, (step_y, step_x), strict=True))
    return Lattice(lines, columns, step_y, step_x)


def smooth_lattice(size: tuple[int, int]) -> Lattice:
    """For functions that bend little over a thirty-second of the image."""
    return lattice(size, (size[0] / 32, size[1] / 32))


def by_size(sampling: Sampling, rows: Rows) -> Iterator[tuple[IndexArray, tuple[int, int]]]:
    """The places in ``rows`` of images of one size, and that size, for each of the sizes."""
    sizes = sampling.size[rows]
    if len(rows) and (sizes == sizes[0]).all():
        yield np.arange(len(rows)), (int(sizes[0, 0]), int(sizes[0, 1]))
        return
    unique, inverse = np.unique(sizes, axis=0, return_inverse=True)
    for i, (height, width) in enumerate(unique.tolist()):
        yield np.flatnonzero(inverse.reshape(-1) == i), (height, width)


def emit_nodes(
    sampling: Sampling, rows: Rows, over: Lattice, nodes: Nodes, flags: int, fill: Any, name: str | None
) -> None:
    """Displace ``rows`` by ``nodes``, in pixels."""
    placed, count = np.ascontiguousarray(nodes, np.float64), nodes.size // max(len(rows), 1)
    farthest = np.empty(len(rows))
    _find_farthest(data_ptr(placed), len(rows), count, data_ptr(farthest))
    unit = units_for(farthest)
    factors, grids = np.exp2(NODE_BITS - unit), np.empty(nodes.shape, np.int16)
    _round_nodes(data_ptr(placed), len(rows), count, data_ptr(factors), data_ptr(grids))
    emit_grids(sampling, rows, over, add_grids(sampling, grids), unit, farthest, flags, fill, name)


def units_for(farthest: npt.ArrayLike) -> Floats:
    """The least unit in which displacements so far find room, for each; see ``program/coords.py``."""
    room = np.maximum(farthest, 1e-9) * (2.0**NODE_BITS / LARGEST_NODE)
    return np.clip(np.ceil(np.log2(room)), -MAX_UNIT, MAX_UNIT)


def rounded(nodes: RealArray) -> Int16Array:
    return np.clip(np.rint(nodes), -LARGEST_NODE, LARGEST_NODE).astype(np.int16)


def add_grids(sampling: Sampling, grids: Int16Array) -> Int64Array:
    """int16[R, lines, columns, 2] -> where each begins."""
    return sampling.add_grids(grids) + np.arange(len(grids)) * (grids.size // max(len(grids), 1))


def emit_grids(
    sampling: Sampling,
    rows: Rows,
    over: Lattice,
    first: npt.ArrayLike,
    unit: npt.ArrayLike,
    farthest: npt.ArrayLike,
    flags: int,
    fill: Any,
    name: str | None,
    weighs_twice: bool = False,
) -> None:
    """Displace ``rows`` by the grids that begin at ``first``, in units of 2**(unit - 6) pixels.

    Within a pixel of the border, the image is blended with the fill, as by OpenCV; ``weighs_twice`` as by torchvision's
    ``elastic``, which applies the weight of the image twice.
    """
    args = (
        first,
        over.lines,
        over.columns,
        WEIGHS_TWICE if weighs_twice else 0,
        over.step_y,
        over.step_x,
        unit,
        farthest,
    )
    sampling.emit(rows, Op.DISPLACE, *args, flags=flags, fill=fill, name=name)


def add_up(parts: Floats, weights: Floats) -> Floats:
    """The sum over p of ``weights[R, p, 2] * parts[p, M]``, float64[R, M, 2]."""
    read, read_weights = as_c_contiguous(parts), as_c_contiguous(weights)
    nodes = np.empty((len(weights), parts.shape[1], 2))
    _add_fields(data_ptr(read), *parts.shape, data_ptr(read_weights), len(weights), data_ptr(nodes))
    return nodes


def sampled_nodes(
    sampling: Sampling,
    rows: Rows,
    field: Callable[[IndexArray, tuple[int, int]], tuple[Lattice, Nodes]],
    flags: int,
    fill: Any,
    name: str,
) -> None:
    """``emit_nodes`` of what ``field`` says for the places in ``rows`` of images of one size."""
    for at, size in by_size(sampling, rows):
        over, nodes = field(at, size)
        emit_nodes(sampling, rows[at], over, nodes, flags, fill, name)


# Deviations of a drawn field that find room. What is beyond, once in 10**15 nodes, is cut off.
_DEVIATIONS = 8.0
# Nodes are so many times closer to one another than the deviation of the blur is long, at least.
_PER_SIGMA = 1.2
_MAX_SPACING = 64
_MIN_SIGMA = 0.125


def gaussian_taps(sigma: float, radius: int, apart: float = 1.0) -> Float64Array:
    """Weights of a Gaussian at steps of ``apart`` pixels, of sum 1. Below an eighth of a pixel there is but one."""
    if sigma < _MIN_SIGMA:
        return np.ones(1)
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) * (apart / sigma)) ** 2)
    return taps / taps.sum()


def spacing_for(sigma: float) -> int:
    """A power of two: how far the nodes may be apart of noise that is blurred by ``sigma`` pixels."""
    return 1 << max(0, math.floor(math.log2(max(1.0, min(sigma / _PER_SIGMA, _MAX_SPACING)))))


def blurred_deviation(sigma: float, radius: int) -> float:
    """Share of the deviation of white noise that a blur along one axis leaves."""
    return math.sqrt(float((gaussian_taps(sigma, radius) ** 2).sum()))


def emit_noise(
    sampling: Sampling,
    rows: Rows,
    slot: int,
    sigmas: tuple[float, float],
    deviations: Float64Array,
    flags: int,
    fill: Any,
    name: str,
    weighs_twice: bool = False,
) -> None:
    """Displace ``rows`` by uniform noise that is blurred by Gaussians of ``sigmas`` pixels along x and along y, to
    deviations of ``deviations[R, 2]`` pixels along x and along y. It is drawn from the noise of ``slot``.

    Noise at the nodes, blurred there, has the correlation of noise at the pixels. Between nodes a straight line varies
    less; its deviation over all places is the one that is asked for.
    """
    apart = tuple(map(spacing_for, sigmas))
    coarse, share = [], 1.0
    for sigma, s in zip(sigmas, apart, strict=True):
        taps = gaussian_taps(sigma, math.ceil(3.5 * sigma / s), s)
        near = float((taps[1:] * taps[:-1]).sum() / (taps**2).sum()) if s > 1 else 1.0
        share *= float((taps**2).sum()) * ((2.0 + near) / 3.0)
        coarse.append(taps.astype(np.float32))
    at_nodes = math.sqrt(share / 3.0)
    unit = units_for(_DEVIATIONS * deviations.max(axis=1))
    gains = (deviations / at_nodes * np.exp2(NODE_BITS - unit)[:, None]).astype(np.float32)
    for where, size in by_size(sampling, rows):
        over = lattice(size, (float(apart[1]), float(apart[0])))
        grids, farthest = blurred_noise(sampling, rows[where], slot, over, coarse, gains[where])
        reach = farthest * np.exp2(unit[where] - NODE_BITS)
        first = add_grids(sampling, grids)
        emit_grids(sampling, rows[where], over, first, unit[where], reach, flags, fill, name, weighs_twice)


def blurred_noise(
    sampling: Sampling, rows: Rows, slot: int, over: Lattice, taps: Sequence[Any], gains: Float32Array
) -> tuple[Int16Array, Int64Array]:
    """Noise of ``slot`` between -1 and 1, blurred by ``taps`` along x and along y, times ``gains[R, fields]`` ->
    int16[R, lines, columns, fields] and the greatest magnitude in each of R."""
    number, fields = gains.shape
    grids, farthest = np.empty((number, over.lines, over.columns, fields), np.int16), np.empty(number, np.int64)
    ids, keys = sampling.streams(rows)
    read = {"ids": as_c_contiguous(ids), "keys": as_c_contiguous(keys), "gains": as_c_contiguous(gains)}
    read |= {"taps_x": as_c_contiguous(taps[0]), "taps_y": as_c_contiguous(taps[1])}
    counts = {"rows": number, "num_fields": fields, "num_taps_x": len(taps[0]), "num_taps_y": len(taps[1])}
    shape = {"lines": over.lines, "columns": over.columns}
    noise = pack_struct(FIELD_NOISE, **read, **counts, **shape, slot=slot, grids=grids, farthest=farthest)
    check_status(_draw_noise(data_ptr(noise)))
    return grids, farthest
