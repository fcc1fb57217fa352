"""Masks through rows of a program: for each pixel of a row's result the pixel of the mask that it shows.

Pixels are followed back through all steps as real places, and the pixel is taken that the last place lies in; places
are rounded on the way only where the image itself takes the nearest pixel. So a mask shows the nearest neighbour of the
place at which the image is interpolated, however many maps there are. Whatever falls outside at some step has the
mask's fill, as the image has its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.threads import share_out
from variegate.program.compiled import pixel_kernel
from variegate.program.ops import PadMode
from variegate.targets.stages import ERASE, FIRST, GRID, LEFT, MODE, REPEAT, SCALE, TOP, Stages
from variegate.targets.walk import displacement

_EDGE_MODE, _REFLECT = int(PadMode.EDGE), int(PadMode.REFLECT)
Indices = npt.NDArray[np.int32]


def read_places(
    stages: Stages, rows: npt.NDArray[np.int64], sizes: npt.NDArray[np.integer], num_threads: int | None
) -> list[Indices]:
    """For each of ``rows`` int32[h, w], (height, width) being those of its result: which pixel of the image it shows,
    counted line by line; -1 where it shows none. ``sizes``: int[len(rows), 2, 2] of images, and of results."""
    made = [np.empty(size[1].tolist(), np.int32) for size in sizes]

    def work(numbers: npt.NDArray[np.int64]) -> None:
        for n in numbers.tolist():
            width = int(sizes[n, 1, 1])
            _read(stages, int(rows[n]), int(sizes[n, 0, 1]), made[n], np.empty((2, width)), np.empty(width, np.uint8))

    share_out(work, len(made), num_threads, 1)
    return made


def shown(mask: npt.NDArray[Any], places: Indices, fill: int) -> npt.NDArray[Any]:
    """A mask [H, W] of any dtype, as a row's result [h, w] shows it."""
    out = np.empty(places.shape, mask.dtype)
    # Bytes of every kind are one kind to the kernel.
    plain = [array.view(f"u{mask.dtype.itemsize}") for array in (mask.reshape(-1), np.asarray([fill], mask.dtype), out)]
    _take(plain[0], plain[1], np.ascontiguousarray(places), plain[2])
    return out


@pixel_kernel
def _take(source: Any, fill: Any, places: Any, out: Any) -> None:
    for line in range(out.shape[0]):
        here, shown_here = places[line], out[line]
        for at in range(out.shape[1]):
            i = np.uint64(at)
            place = here[i]
            shown_here[i] = source[np.uint64(place)] if place >= 0 else fill[0]


@pixel_kernel
def _read(stages: Any, row: Any, columns: Any, out: Any, places: Any, inside: Any) -> None:
    # Indices without a sign are not looked at for being counted from the end: loops over a line are vectorised.
    x, y = places[0], places[1]
    for line in range(out.shape[0]):
        for at in range(out.shape[1]):
            i = np.uint64(at)
            x[i], y[i], inside[i] = at + 0.5, line + 0.5, np.uint8(1)
        for s in range(stages.begin[row + 1] - 1, stages.begin[row] - 1, -1):
            kind, height, width = stages.kind[s], float(stages.before[s, 0]), float(stages.before[s, 1])
            if kind == ERASE:
                continue
            if kind == GRID:
                for at in range(out.shape[1]):
                    if inside[at]:
                        dx, dy = displacement(stages.numbers[s], stages.grids, x[at], y[at])
                        x[at], y[at] = x[at] + dx, y[at] + dy
            elif kind == REPEAT:
                numbers = stages.numbers[s]
                for at in range(out.shape[1]):
                    x[at] = _repeated(x[at] - numbers[LEFT], width, numbers[MODE])
                    y[at] = _repeated(y[at] - numbers[TOP], height, numbers[MODE])
            elif kind == SCALE:
                columns_at, lines_at = stages.numbers[s, FIRST], stages.numbers[s, FIRST] + stages.after[s, 1]
                for at in range(out.shape[1]):
                    if inside[at]:
                        x[at] = stages.tables[columns_at + int(x[at])]
                        y[at] = stages.tables[lines_at + int(y[at])]
            else:
                _map_back(stages.back[s], x, y)
            for at in range(out.shape[1]):
                i = np.uint64(at)
                within = (x[i] >= 0.0) & (x[i] < width) & (y[i] >= 0.0) & (y[i] < height)
                inside[i] &= np.uint8(within)
            if stages.rounds[s]:
                for at in range(out.shape[1]):
                    i = np.uint64(at)
                    x[i], y[i] = np.floor(x[i]) + 0.5, np.floor(y[i]) + 0.5
        whole = out[line]
        for at in range(out.shape[1]):
            i = np.uint64(at)
            whole[i] = np.int32(y[i]) * np.int32(columns) + np.int32(x[i]) if inside[i] else np.int32(-1)


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _map_back(m: Any, x: Any, y: Any) -> None:
    a, b, c, d, e, f, g, h = m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7]
    if g == 0.0 and h == 0.0:
        for at in range(x.shape[0]):
            i = np.uint64(at)
            u, v = x[i], y[i]
            x[i], y[i] = a * u + b * v + c, d * u + e * v + f
    else:
        for at in range(x.shape[0]):
            i = np.uint64(at)
            u, v = x[i], y[i]
            depth = g * u + h * v + m[8]
            x[i], y[i] = (a * u + b * v + c) / depth, (d * u + e * v + f) / depth


@pixel_kernel
def _repeated(place: Any, side: Any, mode: Any) -> float:
    """A place beyond an image that is continued by its edge, or mirrored about its last pixels or its border."""
    if 0.0 <= place < side:
        return float(place)
    if mode == _EDGE_MODE or side == 1:
        return min(max(place, 0.5), side - 0.5)
    # Mirrors: about centres of the outermost pixels, or about the image's border.
    first = 0.5 if mode == _REFLECT else 0.0
    length = side - 1.0 if mode == _REFLECT else float(side)
    place = (place - first) % (2.0 * length)
    return first + (2.0 * length - place if place > length else place)
