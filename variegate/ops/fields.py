"""Fields of displacements, of noise too: pixels along x and y at the nodes of a grid, and straight in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.compiled import kernel
from variegate.program.ops import Op
from variegate.program.places import MAX_UNIT, NODE_BITS, STEP_BITS, WEIGHS_TWICE
from variegate.program.rng import philox_block
from variegate.program.sampling import Floats, Rows, Sampling

# What an int16 holds of a displacement's units.
LARGEST_NODE = 32_767
_LIMIT = float(LARGEST_NODE)

Nodes = npt.NDArray[np.floating]  # [R, lines, columns, 2]


@dataclass(frozen=True)
class Lattice:
    """Nodes of a grid: ``lines`` times ``columns`` of them, the first at the centre of the first pixel,
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
    sampling: Sampling, rows: Rows, over: Lattice, nodes: Nodes, flags: int, fill: Any, name: str | None
) -> None:
    """Displace ``rows`` by ``nodes``, in pixels."""
    flat = np.ascontiguousarray(nodes, np.float64).reshape(len(rows), -1)
    farthest = np.empty(len(rows))
    _find_farthest(flat, farthest)
    unit = units_for(farthest)
    grids = np.empty(nodes.shape, np.int16)
    _round(flat, np.exp2(NODE_BITS - unit), grids.reshape(len(rows), -1))
    emit_grids(sampling, rows, over, add_grids(sampling, grids), unit, farthest, flags, fill, name)


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
_LEAST_SIGMA = 0.125
_LARGEST_NODE = np.float32(LARGEST_NODE)


def gaussian_taps(sigma: float, radius: int, apart: float = 1.0) -> npt.NDArray[np.float64]:
    """Weights of a Gaussian at steps of ``apart`` pixels, of sum 1. Below an eighth of a pixel there is but one."""
    if sigma < _LEAST_SIGMA:
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
    deviations: npt.NDArray[np.float64],
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
    sampling: Sampling, rows: Rows, slot: int, over: Lattice, taps: Sequence[Any], gains: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]:
    """Noise of ``slot`` between -1 and 1, blurred by ``taps`` along x and along y, times ``gains[R, fields]`` ->
    int16[R, lines, columns, fields] and the greatest magnitude in each of R."""
    number, fields = gains.shape
    grids, farthest = np.empty((number, over.lines, over.columns, fields), np.int16), np.empty(number, np.int64)
    blocks = -(-fields * over.lines * over.columns // 8)
    words, noise = np.empty((4, blocks), np.uint32), np.empty((2, 8 * blocks), np.float32)
    line = np.empty(over.columns + 2 * (len(taps[0]) // 2), np.float32)
    _draw_noise(*sampling.streams(rows), slot, taps[0], taps[1], gains, (words, noise, line), grids, farthest)
    return grids, farthest


@kernel
def _draw_noise(
    ids: Any, keys: Any, slot: Any, taps_x: Any, taps_y: Any, gains: Any, room: Any, grids: Any, farthest: Any
) -> None:
    words, noise, line = room
    lines, columns, fields, blocks = grids.shape[1], grids.shape[2], grids.shape[3], words.shape[1]
    radius_x, radius_y = len(taps_x) // 2, len(taps_y) // 2
    white, blurred = noise[0], noise[1]
    for n in range(grids.shape[0]):
        low, high = np.uint32(ids[n] & np.uint64(0xFFFFFFFF)), np.uint32(ids[n] >> np.uint64(32))
        for b in range(blocks):
            w0, w1, w2, w3 = philox_block(np.uint32(b), np.uint32(slot), low, high, keys[n, 0], keys[n, 1])
            words[0, b], words[1, b], words[2, b], words[3, b] = w0, w1, w2, w3
        # Two numbers of each word: odd multiples of 2**-16 between -1 and 1.
        for k in range(4):
            for b in range(blocks):
                word = np.int64(words[k, b])
                low_half, high_half = 2 * (word & 0xFFFF) - 65535, 2 * (word >> 16) - 65535
                white[k * blocks + b] = np.float32(low_half) * np.float32(2.0**-16)
                white[(4 + k) * blocks + b] = np.float32(high_half) * np.float32(2.0**-16)
        grid = grids[n].reshape(-1)
        for axis in range(fields):
            for i in range(lines):
                begin = (axis * lines + i) * columns
                for j in range(columns):
                    line[radius_x + j] = white[begin + j]
                for j in range(radius_x):
                    line[j] = white[begin + _mirrored(j - radius_x, columns)]
                    line[radius_x + columns + j] = white[begin + _mirrored(columns + j, columns)]
                target = blurred[i * columns : (i + 1) * columns]
                target[:] = np.float32(0.0)
                for t in range(len(taps_x)):
                    weight = taps_x[t]
                    for j in range(columns):
                        target[j] += weight * line[j + t]
            gain = gains[n, axis]
            for i in range(lines):
                line[:columns] = np.float32(0.0)
                for t in range(len(taps_y)):
                    weight, begin = taps_y[t] * gain, _mirrored(i + t - radius_y, lines) * columns
                    source = blurred[begin : begin + columns]
                    for j in range(columns):
                        line[j] += weight * source[j]
                begin = i * columns * fields + axis
                for j in range(columns):
                    value = np.floor(line[j] + np.float32(0.5))
                    grid[begin + fields * j] = np.int16(min(max(value, -_LARGEST_NODE), _LARGEST_NODE))
        most = np.int32(0)
        for i in range(len(grid)):
            most = max(most, np.int32(abs(np.int32(grid[i]))))
        farthest[n] = most


@kernel(inline="always")
def _mirrored(i: Any, n: Any) -> Any:
    """Index ``i`` into 0..n-1, mirrored beyond them. torchvision mirrors about the outermost pixels, of which a node
    stands for many: with each node repeated, the border's deviation is the same."""
    if 0 <= i < n:
        return i
    i = i % (2 * n)
    return 2 * n - 1 - i if i >= n else i
