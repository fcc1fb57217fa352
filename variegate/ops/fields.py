"""Displacement fields, including blurred noise: pixels along x and y at the nodes of a grid, bilinear in between."""

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

# Largest displacement of a node, in units: the maximum of int16.
LARGEST_NODE = 32_767

_draw_noise = entry("vg_draw_field_noise", c_void_p)
_add_fields = entry("vg_add_fields", c_void_p, c_int64, c_int64, c_void_p, c_int64, c_void_p, result=None)
_find_farthest = entry("vg_find_farthest", c_void_p, c_int64, c_int64, c_void_p, result=None)
_round_nodes = entry("vg_round_nodes", c_void_p, c_int64, c_int64, c_void_p, c_void_p, result=None)

Nodes = RealArray  # [R, lines, columns, 2]


@dataclass(frozen=True)
class Lattice:
    """Nodes of a grid, ``lines`` x ``columns``. Node 0 is at the center of pixel 0; the step is in 2**-26 nodes per
    pixel."""

    lines: int
    columns: int
    step_y: int
    step_x: int

    def places(self) -> tuple[Floats, Floats]:
        """Return the positions of nodes along x and along y, in pixels from the first node."""
        apart_x, apart_y = 2.0**STEP_BITS / self.step_x, 2.0**STEP_BITS / self.step_y
        return np.arange(self.columns, dtype=np.float64) * apart_x, np.arange(self.lines, dtype=np.float64) * apart_y


def lattice(size: tuple[int, int], spacing: float | tuple[float, float]) -> Lattice:
    """Return nodes ``spacing`` pixels apart, at least 1, over an image of ``size`` (height, width).

    ``spacing`` may be a pair (along y, along x).
    """
    apart = spacing if isinstance(spacing, tuple) else (spacing, spacing)
    step_y, step_x = (round(2.0**STEP_BITS / max(s, 1.0)) for s in apart)
    lines, columns = (((side - 1) * step >> STEP_BITS) + 2 for side, step in zip(size, (step_y, step_x), strict=True))
    return Lattice(lines, columns, step_y, step_x)


def smooth_lattice(size: tuple[int, int]) -> Lattice:
    """Return nodes a 32nd of the image apart, for functions that are nearly linear over this distance."""
    return lattice(size, (size[0] / 32, size[1] / 32))


def by_size(sampling: Sampling, rows: Rows) -> Iterator[tuple[IndexArray, tuple[int, int]]]:
    """Yield (indices into ``rows``, size) for each distinct (height, width) of the images."""
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
    """Displace ``rows`` by ``nodes`` [R, lines, columns, 2], in pixels."""
    placed, count = np.ascontiguousarray(nodes, np.float64), nodes.size // max(len(rows), 1)
    farthest = np.empty(len(rows))
    _find_farthest(data_ptr(placed), len(rows), count, data_ptr(farthest))
    unit = units_for(farthest)
    factors, grids = np.exp2(NODE_BITS - unit), np.empty(nodes.shape, np.int16)
    _round_nodes(data_ptr(placed), len(rows), count, data_ptr(factors), data_ptr(grids))
    emit_grids(sampling, rows, over, add_grids(sampling, grids), unit, farthest, flags, fill, name)


def units_for(farthest: npt.ArrayLike) -> Floats:
    """Return the smallest unit in which displacements of up to ``farthest`` pixels fit, see ``program/coords.py``."""
    room = np.maximum(farthest, 1e-9) * (2.0**NODE_BITS / LARGEST_NODE)
    return np.clip(np.ceil(np.log2(room)), -MAX_UNIT, MAX_UNIT)


def rounded(nodes: RealArray) -> Int16Array:
    return np.clip(np.rint(nodes), -LARGEST_NODE, LARGEST_NODE).astype(np.int16)


def add_grids(sampling: Sampling, grids: Int16Array) -> Int64Array:
    """Add grids int16[R, lines, columns, 2] to the side tables. Returns the first index of each."""
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
    """Displace ``rows`` by the grids that start at index ``first``, in units of 2**(unit - 6) pixels.

    ``farthest``: greatest displacement in pixels. Within a pixel of the border, the image is blended with the fill, as
    by OpenCV; with ``weighs_twice`` as by torchvision's ``elastic``, see ``WEIGHS_TWICE``.
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
    """Return the sum over p of ``weights[R, p, 2] * parts[p, M]``, float64[R, M, 2]."""
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
    """Displace ``rows`` by a field that is computed per image size.

    ``field(indices, size)`` returns the nodes for ``rows[indices]``, whose images have this size.
    """
    for at, size in by_size(sampling, rows):
        over, nodes = field(at, size)
        emit_nodes(sampling, rows[at], over, nodes, flags, fill, name)


# Range of a random field, in standard deviations. Larger values, one in 10**15 nodes, are clipped.
_DEVIATIONS = 8.0
# Least ratio of a blur's standard deviation to the distance between nodes.
_PER_SIGMA = 1.2
_MAX_SPACING = 64
_MIN_SIGMA = 0.125


def gaussian_taps(sigma: float, radius: int, apart: float = 1.0) -> Float64Array:
    """Return weights of a Gaussian at steps of ``apart`` pixels, with sum 1. One weight if sigma is below 1/8 pixel."""
    if sigma < _MIN_SIGMA:
        return np.ones(1)
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) * (apart / sigma)) ** 2)
    return taps / taps.sum()


def spacing_for(sigma: float) -> int:
    """Return the distance in pixels, a power of two, between nodes of noise that is blurred by ``sigma`` pixels."""
    return 1 << max(0, math.floor(math.log2(max(1.0, min(sigma / _PER_SIGMA, _MAX_SPACING)))))


def blurred_deviation(sigma: float, radius: int) -> float:
    """Return the factor by which a blur along one axis reduces the standard deviation of white noise."""
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
    """Displace ``rows`` by blurred uniform noise, drawn from the noise of ``slot``.

    ``sigmas``: standard deviations of the Gaussian blur along x and y, in pixels. ``deviations[R, 2]``: standard
    deviations of displacements along x and y, in pixels.

    Noise is drawn and blurred at nodes, where it has the correlation of noise per pixel. Interpolation between nodes
    reduces its deviation; ``deviations`` are averages over all pixels.
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
    """Return noise of ``slot`` in (-1, 1), blurred by ``taps`` along x and y, times ``gains[R, fields]``.

    Returns int16[R, lines, columns, fields], and the greatest magnitude per row, int64[R].
    """
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
