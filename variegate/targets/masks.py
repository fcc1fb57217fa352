"""Masks through rows of a program: pixels are followed back as real places, to the pixel that the last one lies in.

Places are rounded on the way only where the image takes the nearest pixel. What falls outside has the mask's fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils

from variegate.executors.batches import share_out
from variegate.executors.cpu.kernel import address_of
from variegate.executors.cpu.simd import I32, I64, Value, repeat, steps, vector_block
from variegate.executors.cpu.simd_pixels import prefetch
from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.targets import mask_lines as lines
from variegate.targets.stages import GRID, Stages

# What a region is: a rectangle of a row's result, the width of the row's image, and which layers are read in it.
REGION_ROW, REGION_LEFT, REGION_TOP, REGION_RIGHT, REGION_BOTTOM, IMAGE_WIDTH, FIRST_LAYER, END_LAYER = range(8)
# What a layer is: the addresses of a mask and of its result's first pixel, the result's width, the binary logarithm of
# an element's size, and the fill, whose lowest bytes count.
SOURCE, RESULT, RESULT_WIDTH, BITS, FILL = range(5)
# Regions that a thread is handed at a time.
_AT_A_TIME = 2
# Places of pixels that are kept at a time, for masks of one image.
_PLACES = 1 << 20
# Bytes of masks that are near enough when they are read, in a core's second cache.
_NEAR = 1 << 20


def read_masks(
    stages: Stages,
    begin: npt.NDArray[np.int64],
    regions: npt.NDArray[np.int64],
    layers: npt.NDArray[np.int64],
    num_threads: int | None,
) -> None:
    """Read ``regions`` [G, 8], of result n ``begin[n]:begin[n + 1]``, later ones on top. ``layers``: the caller's
    memory."""
    if not len(regions):
        return
    sides = regions[:, [REGION_RIGHT, REGION_BOTTOM]] - regions[:, [REGION_LEFT, REGION_TOP]]
    longest = max(int(sides.max()), 1)
    has_several = bool((regions[:, END_LAYER] - regions[:, FIRST_LAYER] > 1).any())
    kept = max(longest, min(int(sides.prod(axis=1).max()), _PLACES)) if has_several else longest

    def work(results: npt.NDArray[np.int64]) -> None:
        room, inside = np.empty((lines.ROOM, longest)), np.empty((3, longest), np.uint8)
        places, nodes = np.empty(kept, np.int32), np.empty(longest, np.int32)
        borders, ends = np.empty(4, np.int64), np.empty((longest, 3), np.int32)
        some = regions[begin[results[0]] : begin[results[-1] + 1]]
        _read_masks(stages, some, layers, room, inside, places, nodes, borders, ends)

    share_out(work, len(begin) - 1, num_threads, _AT_A_TIME)


# Few functions, each called in one place: what is called is compiled again with its caller.
@pixel_kernel
def _read_masks(
    stages: Any, regions: Any, layers: Any, room: Any, inside: Any, places: Any, nodes: Any, borders: Any, ends: Any
) -> None:
    across, down, x, y, within = room[0], room[1], room[2], room[3], inside[2]
    for r in range(len(regions)):
        region = regions[r]
        width, height = region[REGION_RIGHT] - region[REGION_LEFT], region[REGION_BOTTOM] - region[REGION_TOP]
        columns = region[IMAGE_WIDTH]
        s, first, is_turned = lines.begin_region(
            stages, region[REGION_ROW], region[REGION_LEFT], region[REGION_TOP], width, height, room, inside
        )
        start, end, is_whole, rises = lines.stretch_of(across, inside[0], width)
        by_tables, by_borders, by_grid, way = s < first, False, False, lines.ANYHOW
        if by_tables:
            way = lines.table_of(across, inside[0], columns if is_turned else 1, start, end, places)
        elif not is_turned:
            by_borders = rises != 0 and lines.is_affine(stages, s)
            by_grid = stages.kind[s] == GRID
            if by_grid:
                lines.cells_of(stages.numbers[s], across, end, nodes, room[4])
            # Of a grid: its lines that are held.
            borders[:] = -1 if by_grid else start
        # Places of many lines are kept for one mask after another; else they are those of a line, for all masks.
        by_layer = not by_tables and region[END_LAYER] - region[FIRST_LAYER] > 1
        together = min(max(len(places) // max(width, 1), 1), height) if by_layer else height
        whole = stages.before[first, 0] * columns if not by_tables else 0
        if not by_tables and not by_layer:
            _fetch(layers, region[FIRST_LAYER], region[END_LAYER], whole, width * height)
        for line in range(height):
            kept = line % together if by_layer else 0
            here = places[kept * width : (kept + 1) * width]
            v, low, high, base, last, is_direct = down[line], start, end, 0, s, True
            if not inside[1, line]:
                high = low
            elif by_tables:
                base, is_direct = int(v) * (1 if is_turned else columns), is_whole
            else:
                if by_borders:
                    low, high = lines.within_image(stages, s, across, v, start, end, rises > 0, borders)
                is_direct = by_borders and s == first
                if is_direct:
                    lines.affine_places(stages.back[s], across, v, columns, low, high, here)
                else:
                    if by_borders:
                        lines.affine_line(stages, s, across, v, low, high, x, y, within)
                        last = s - 1
                    elif by_grid:
                        lines.line_through_grid(stages, s, v, low, high, room, inside, nodes, borders)
                        last = s - 1
                    else:
                        for at in range(low, high):
                            i = np.uint64(at)
                            x[i], y[i] = v if is_turned else across[i], across[i] if is_turned else v
                            within[i] = inside[0, i]
                    lines.follow_line(stages, last, first, low, high, x, y, within)
                    lines.places_of(x, y, within, columns, low, high, here)
            if not by_layer:
                for n in range(region[FIRST_LAYER], region[END_LAYER]):
                    _put(region, layers[n], line, here, base, low, high, is_direct, way)
                continue
            ends[kept, 0], ends[kept, 1], ends[kept, 2] = low, high, is_direct
            if kept + 1 < together and line + 1 < height:
                continue
            for n in range(region[FIRST_LAYER], region[END_LAYER]):
                if together == height:
                    _fetch(layers, n, n + 1, whole, width * height)
                for k in range(kept + 1):
                    here = places[k * width : (k + 1) * width]
                    _put(region, layers[n], line - kept + k, here, 0, ends[k, 0], ends[k, 1], ends[k, 2] != 0, way)


@inner_kernel()
def _fetch(layers: Any, first: Any, end: Any, whole: Any, wanted: Any) -> None:
    """Masks of a region that shows most of them, ``wanted`` pixels of ``whole``, where they fit in the cache."""
    size = 0
    for n in range(first, end):
        size += whole << layers[n, BITS]
    if 2 * wanted < whole or size > _NEAR:
        return
    for n in range(first, end):
        prefetch(layers[n, SOURCE], whole << layers[n, BITS])


@inner_kernel()
def _put(
    region: Any, layer: Any, line: Any, places: Any, base: Any, begin: Any, end: Any, is_direct: Any, way: Any
) -> None:
    """Write columns ``begin`` to ``end`` of a line from ``places`` after ``base``, else the fill. ``is_direct``: none <
    0."""
    width = region[REGION_RIGHT] - region[REGION_LEFT]
    bits, fill, size = np.int32(layer[BITS]), layer[FILL], 1 << layer[BITS]
    at = (region[REGION_TOP] + line) * layer[RESULT_WIDTH] + region[REGION_LEFT]
    result, source = layer[RESULT] + at * size, layer[SOURCE] + base * size
    if begin > 0:
        fill_line(bits, fill, begin, result)
    if end < width:
        fill_line(bits, fill, width - end, result + end * size)
    to, where = result + begin * size, address_of(places) + 4 * begin
    if begin == end:
        return
    if way == lines.ON:
        copy_line(bits, source + places[begin] * size, end - begin, to)
    elif way == lines.BACK:
        copy_reversed(bits, source + places[begin] * size, end - begin, to)
    elif is_direct:
        gather_line(bits, source, where, end - begin, to)
    else:
        gather_or_fill(bits, source, where, fill, end - begin, to)


# Bytes of a vector that is turned around, and places that are looked at in one go.
_REGISTER, _TOGETHER = 32, 8


@vector_block(I32, I64, I64, I64, I64)
def gather_line(bits: Value, source: Value, places: Value, count: Value, out: Value) -> None:
    """The elements of ``source`` at int32 ``places``, which are 0 or more, in order -> ``out``."""

    def one(size: int, place: Value, to: Value) -> None:
        (source + (place.wide("i64") << size)).load(_element(size)).store(to)

    _for_each_place(bits, places, count, out, one)


@vector_block(I32, I64, I64, I64, I64, I64)
def gather_or_fill(bits: Value, source: Value, places: Value, fill: Value, count: Value, out: Value) -> None:
    """The same with ``fill`` where a place is negative."""

    def one(size: int, place: Value, to: Value) -> None:
        is_there = place >= 0
        # What is not there reads the first element of the source, so that nothing branches.
        safe = is_there.choose(place.wide("i64"), 0)
        found = (source + (safe << size)).load(_element(size))
        is_there.choose(found, _cut(fill, size)).store(to)

    _for_each_place(bits, places, count, out, one)


@vector_block(I32, I64, I64, I64)
def copy_line(bits: Value, source: Value, count: Value, out: Value) -> None:
    size = count << bits.wide("i64")
    to, of = (out.builder.inttoptr(address.value, ir.IntType(8).as_pointer()) for address in (out, source))
    cgutils.raw_memcpy(out.builder, to, of, size.value, 1)


@vector_block(I32, I64, I64, I64)
def copy_reversed(bits: Value, source: Value, count: Value, out: Value) -> None:
    """``count`` elements that end with the one at ``source``, from the last to the first."""

    def line(size: int) -> None:
        lanes = _REGISTER >> size
        whole = count & -lanes
        with steps(whole, lanes) as at:
            found = (source + ((1 - lanes - at) << size)).load(_element(size), lanes)
            found.picked(range(lanes - 1, -1, -1)).store(out + (at << size))
        with steps(count, 1, whole) as at:
            (source + (-at << size)).load(_element(size)).store(out + (at << size))

    _by_size(bits, line)


@vector_block(I32, I64, I64, I64)
def fill_line(bits: Value, fill: Value, count: Value, out: Value) -> None:
    def line(size: int) -> None:
        value = _cut(fill, size)
        with repeat(count) as at:
            value.store(out + (at << size))

    _by_size(bits, line)


def _for_each_place(
    bits: Value, places: Value, count: Value, out: Value, one: Callable[[int, Value, Value], None]
) -> None:
    def line(size: int) -> None:
        whole = count & -_TOGETHER
        with steps(whole, _TOGETHER) as at:
            for pair in range(0, _TOGETHER, 2):
                here = at + pair
                # Two places by one load.
                both = (places + (here << 2)).load("i64")
                one(size, both.narrow("i32"), out + (here << size))
                one(size, (both >> 32).narrow("i32"), out + ((here + 1) << size))
        with steps(count, 1, whole) as at:
            one(size, (places + (at << 2)).load("i32"), out + (at << size))

    _by_size(bits, line)


def _by_size(bits: Value, line: Callable[[int], None]) -> None:
    for size in range(4):
        with bits.builder.if_then(bits.equals(size).value):
            line(size)


def _element(size: int) -> str:
    return f"i{8 << size}"


def _cut(value: Value, size: int) -> Value:
    return value if size == 3 else value.narrow(_element(size))
