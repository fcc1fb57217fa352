"""Fields of displacements: where the nodes of grids lie, and how grids become instructions.

A field is known at the nodes of a grid that lies over the image, and straight in between. Displacements are in pixels,
along x and along y; a pixel shows what lies where its displacement points to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.compiled import kernel
from variegate.program.ops import Interpolation, Op
from variegate.program.places import MAX_UNIT, NODE_BITS, STEP_BITS
from variegate.program.sampling import Floats, Rows, Sampling

# What an int16 holds of a displacement's units.
LARGEST_NODE = 32_767
_LIMIT = float(LARGEST_NODE)

Nodes = npt.NDArray[np.floating]  # [R, lines, columns, 2]


@dataclass(frozen=True)
class Lattice:
    """Where the nodes of a grid lie: ``lines`` times ``columns`` of them, the first at the centre of the first pixel,
    ``step`` / 2**26 of them per pixel."""

    lines: int
    columns: int
    step_y: int
    step_x: int

    def places(self) -> tuple[Floats, Floats]:
        """Of the nodes, counted in pixels from the first one's centre: along x, and along y."""
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


def by_size(sampling: Sampling, rows: Rows) -> Iterator[tuple[npt.NDArray[np.intp], tuple[int, int]]]:
    """The places in ``rows`` of images of one size, and that size, for each of the sizes."""
    sizes = sampling.size[rows]
    if len(rows) and (sizes == sizes[0]).all():
        yield np.arange(len(rows)), (int(sizes[0, 0]), int(sizes[0, 1]))
        return
    unique, inverse = np.unique(sizes, axis=0, return_inverse=True)
    for i, (height, width) in enumerate(unique.tolist()):
        yield np.flatnonzero(inverse.reshape(-1) == i), (height, width)


def emit_nodes(
    sampling: Sampling, rows: Rows, over: Lattice, nodes: Nodes, interpolation: str, fill: Any, name: str | None
) -> None:
    """Displace ``rows`` by ``nodes``, in pixels."""
    flat = np.ascontiguousarray(nodes, np.float64).reshape(len(rows), -1)
    farthest = np.empty(len(rows))
    _find_farthest(flat, farthest)
    unit = units_for(farthest)
    grids = np.empty(nodes.shape, np.int16)
    _round(flat, np.exp2(NODE_BITS - unit), grids.reshape(len(rows), -1))
    emit_grids(sampling, rows, over, add_grids(sampling, grids), unit, farthest, interpolation, fill, name)


def units_for(farthest: npt.ArrayLike) -> Floats:
    """The least unit in which displacements so far find room, for each; see ``program/places.py``."""
    room = np.maximum(farthest, 1e-9) * (2.0**NODE_BITS / LARGEST_NODE)
    return np.clip(np.ceil(np.log2(room)), -MAX_UNIT, MAX_UNIT)


def rounded(nodes: npt.NDArray[np.floating]) -> npt.NDArray[np.int16]:
    return np.clip(np.rint(nodes), -LARGEST_NODE, LARGEST_NODE).astype(np.int16)


def add_grids(sampling: Sampling, grids: npt.NDArray[np.int16]) -> npt.NDArray[np.int64]:
    """int16[R, lines, columns, 2] -> where each begins."""
    return sampling.add_grids(grids) + np.arange(len(grids)) * (grids.size // max(len(grids), 1))


def emit_grids(
    sampling: Sampling,
    rows: Rows,
    over: Lattice,
    first: npt.ArrayLike,
    unit: npt.ArrayLike,
    farthest: npt.ArrayLike,
    interpolation: str,
    fill: Any,
    name: str | None,
) -> None:
    """Displace ``rows`` by the grids that begin at ``first``, in units of 2**(unit - 6) pixels."""
    args = (first, over.lines, over.columns, 0, over.step_y, over.step_x, unit, farthest)
    flags = int(Interpolation[interpolation.upper()])
    sampling.emit(rows, Op.DISPLACE, *args, flags=flags, fill=fill, name=name)


@kernel
def add_up(parts: Any, weights: Any, nodes: Any) -> None:
    """``nodes[R, M, 2]`` = the sum over p of ``weights[R, p, 2] * parts[p, M]``."""
    for n in range(nodes.shape[0]):
        nodes[n] = 0.0
        for p in range(parts.shape[0]):
            along, down = weights[n, p, 0], weights[n, p, 1]
            for i in range(parts.shape[1]):
                nodes[n, i, 0] += along * parts[p, i]
                nodes[n, i, 1] += down * parts[p, i]


@kernel
def _find_farthest(nodes: Any, farthest: Any) -> None:
    for n in range(nodes.shape[0]):
        most = 0.0
        for i in range(nodes.shape[1]):
            most = max(most, abs(nodes[n, i]))
        farthest[n] = most


@kernel
def _round(nodes: Any, factors: Any, grids: Any) -> None:
    for n in range(nodes.shape[0]):
        factor = factors[n]
        for i in range(nodes.shape[1]):
            grids[n, i] = np.int16(min(max(np.floor(nodes[n, i] * factor + 0.5), -_LIMIT), _LIMIT))


def sampled_nodes(
    sampling: Sampling,
    rows: Rows,
    field: Callable[[npt.NDArray[np.intp], tuple[int, int]], tuple[Lattice, Nodes]],
    interpolation: str,
    fill: Any,
    name: str,
) -> None:
    """``emit_nodes`` of what ``field`` says for the places in ``rows`` of images of one size."""
    for at, size in by_size(sampling, rows):
        over, nodes = field(at, size)
        emit_nodes(sampling, rows[at], over, nodes, interpolation, fill, name)
