"""Regions that grow over an image cell by cell, from seeds, by random neighbours (Eden 1961's model)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.program.compiled import kernel
from variegate.program.rng import philox_block

Ints = npt.NDArray[np.int64]
_FREE, _WAITING, _COVERED = 0, 1, 2


class GrowthWork(NamedTuple):
    words: npt.NDArray[np.uint32]  # [4]
    state: npt.NDArray[np.int8]  # of every cell
    waiting: npt.NDArray[np.int32]  # cells


def grow(
    keys: npt.NDArray[np.uint32], size: npt.NDArray[np.int32], side: Ints, seeds: Ints, pixels: Ints
) -> tuple[Ints, Ints]:
    """Regions of N images -> (rectangles int64[Q, 4] of top, left, height, width, by image; how many of each, int64[N])

    Image n, ``size[n]`` pixels high and wide, is cut into squares of ``side[n]`` pixels from its upper left corner.
    First come ``seeds[n]`` cells, uniform over all. Then one is added at a time, each free neighbour of the region
    (above, below, left or right) being equally likely, until ``pixels[n]`` pixels are covered. Draws are the words of
    ``philox4x32(counter=(0, 0, 0, 0), key=keys[n])``, then of (1, 0, 0, 0) and so on; a word w draws one of m as
    ``w * m >> 32``. Free neighbours wait in a list in the order in which they were reached, those of one cell in that
    of the directions; the last takes the place of the one drawn. One that a seed has fallen on since is passed over.

    A rectangle is a run of cells of a line, with the same run of the lines below it. It may reach beyond the image.
    """
    cells = -(-size.astype(np.int64) // side[:, None])
    most = int(cells.prod(axis=1).max(initial=1))
    # Runs of a line have a free cell between them.
    room = int((cells[:, 0] * (cells[:, 1] // 2 + 1)).sum())
    rectangles, count = np.empty((room, 4), np.int64), np.zeros(len(size), np.int64)
    work = GrowthWork(np.empty(4, np.uint32), np.empty(most, np.int8), np.empty(most, np.int32))
    _grow(keys.copy(), size, side, seeds, pixels, work, rectangles, count)
    return rectangles[: count.sum()], count


@kernel
def _grow(keys: Any, size: Any, side: Any, seeds: Any, pixels: Any, work: Any, rectangles: Any, count: Any) -> None:
    words, state, waiting = work.words, work.state, work.waiting
    total = 0
    for n in range(size.shape[0]):
        s, height, width = side[n], np.int64(size[n, 0]), np.int64(size[n, 1])
        lines, columns = (height + s - 1) // s, (width + s - 1) // s
        state[: lines * columns] = _FREE
        covered, step, num_waiting = 0, 0, 0
        while covered < pixels[n] and (step < seeds[n] or num_waiting > 0):
            if step % 4 == 0:
                zero = np.uint32(0)
                w0, w1, w2, w3 = philox_block(np.uint32(step // 4), zero, zero, zero, keys[n, 0], keys[n, 1])
                words[0], words[1], words[2], words[3] = w0, w1, w2, w3
            word = np.uint64(words[step % 4])
            if step < seeds[n]:
                cell = np.int64((word * np.uint64(lines * columns)) >> np.uint64(32))
            else:
                place = np.int64((word * np.uint64(num_waiting)) >> np.uint64(32))
                cell = waiting[place]
                num_waiting -= 1
                waiting[place] = waiting[num_waiting]
            step += 1
            if state[cell] == _COVERED:
                continue
            state[cell] = _COVERED
            y, x = cell // columns, cell % columns
            covered += (min(height, (y + 1) * s) - y * s) * (min(width, (x + 1) * s) - x * s)
            for direction in range(4):
                v = y + (direction == 1) - (direction == 0)
                u = x + (direction == 3) - (direction == 2)
                if 0 <= v < lines and 0 <= u < columns and state[v * columns + u] == _FREE:
                    state[v * columns + u] = _WAITING
                    waiting[num_waiting] = v * columns + u
                    num_waiting += 1
        count[n] = _rectangles(state, lines, columns, s, waiting, rectangles[total:])
        total += count[n]


@kernel
def _rectangles(state: Any, lines: Any, columns: Any, side: Any, open_at: Any, rectangles: Any) -> Any:
    """-> how many. ``open_at``: by column, the rectangle that begins there and reaches down to this line."""
    count = 0
    open_at[:columns] = -1
    for y in range(lines):
        x = 0
        while x < columns:
            first = x
            while x < columns and state[y * columns + x] == _COVERED:
                x += 1
            if x == first:
                open_at[x] = -1
                x += 1
                continue
            q = open_at[first]
            if q >= 0 and rectangles[q, 3] == (x - first) * side and rectangles[q, 0] + rectangles[q, 2] == y * side:
                rectangles[q, 2] += side
            else:
                rectangles[count] = y * side, first * side, side, (x - first) * side
                open_at[first] = count
                count += 1
    return count
