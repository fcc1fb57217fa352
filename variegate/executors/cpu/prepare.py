"""What a pass works out before its first row: its maps, tables of statistics, colours of the outside."""

from __future__ import annotations

from typing import Any

import numba as nb

from variegate.executors.cpu.neighbourhood import blur_row, convolve_row, sharpen_row
from variegate.executors.cpu.rows import copy_pixels, fill_outside, fixed_row, whole_row
from variegate.executors.cpu.simd import BLOCK, address_of, copy_block
from variegate.executors.cpu.statistics import build_table
from variegate.executors.cpu.values import apply_values
from variegate.program.compiled import pixel_kernel
from variegate.program.coordinate_tables import moves_whole_pixels, seen_by_statistics
from variegate.program.ops import KIND_OF, Kind, Op
from variegate.program.passes import BEGIN, FIRST, MAPS_END, NEEDS, STATISTICS_END

_GEOMETRY, _STATISTIC = int(Kind.GEOMETRY), int(Kind.STATISTIC)
_SHARPNESS = int(Op.SHARPNESS)


@pixel_kernel
def maps_of(op: Any, plan: Any, slots: Any) -> int:
    """Slots of the maps that a pass reads through into ``slots`` -> how many."""
    count = 0
    for k in range(plan[FIRST], plan[MAPS_END]):
        if KIND_OF[op[k]] == _GEOMETRY:
            slots[count] = k
            count += 1
    return count


@pixel_kernel
def colour_after(
    op: Any, args: Any, colour: Any, begin: Any, stop: Any, channels: Any, side: Any, scratch: Any, out: Any
) -> None:
    """What ``colour`` becomes through the value operations of slots begin..stop."""
    spare = scratch.spare
    for c in range(3):
        spare[c, 0] = colour[c]
    apply_values(op, args, begin, stop, channels, side.luts, scratch.stat_luts, side.matrices, side.points, spare, 0, 1)
    for c in range(3):
        out[c] = spare[c, 0]


@pixel_kernel
def build_tables(
    op: Any,
    args: Any,
    fill: Any,
    out_size: Any,
    window: Any,
    plan: Any,
    image: Any,
    height: Any,
    width: Any,
    channels: Any,
    side: Any,
    scratch: Any,
) -> None:
    """The tables of the pass's statistics. Only LUTs and at most one whole-pixel map come before them."""
    map_slot, begin = -1, plan[BEGIN]
    for k in range(begin, plan[STATISTICS_END] if plan[NEEDS] != 0 else begin):
        kind = KIND_OF[op[k]]
        if kind == _GEOMETRY:
            map_slot = k
        elif kind == _STATISTIC:
            colour = scratch.fills[k]
            seen = seen_by_statistics(args, out_size, window, map_slot, height, width)
            if map_slot >= 0:
                colour_after(op, args, fill[map_slot], map_slot + 1, k, channels, side, scratch, colour)
            build_table(
                k,
                op[k],
                args[k, 0],
                image,
                width,
                channels,
                (seen[0], seen[1], seen[2], seen[3]),
                seen[4],
                colour,
                op,
                args,
                begin,
                side,
                scratch,
            )


@pixel_kernel
def planes_for_filter(
    op: Any,
    args: Any,
    fill: Any,
    out_size: Any,
    window: Any,
    begin: Any,
    stop: Any,
    image: Any,
    width: Any,
    channels: Any,
    side: Any,
    scratch: Any,
) -> None:
    """What a filter at slot ``stop`` sees, as padded planes in ``scratch.plane_image``."""
    map_slot = -1
    for k in range(begin, stop):
        if KIND_OF[op[k]] == _GEOMETRY:
            map_slot = k
    h, w = nb.int64(out_size[stop, 0]), nb.int64(out_size[stop, 1])
    stride = scratch.planes.shape[1]
    view = scratch.plane_image[: channels * h * stride].reshape((channels, h, stride))
    colour = scratch.fills[stop]
    if map_slot >= 0:
        colour_after(op, args, fill[map_slot], map_slot + 1, stop, channels, side, scratch, colour)
    planes = scratch.planes
    for y in range(h):
        first, last = 0, w
        if map_slot < 0:
            copy_pixels(image, y * width, w, False, channels, planes, 0)
        elif moves_whole_pixels(args[map_slot]) and args[map_slot, 1] == 0.0:
            first, last = whole_row(image, width, channels, args[map_slot], window[map_slot], y, w, planes)
        else:
            first, last = fixed_row(image, width, channels, args[map_slot], window[map_slot], y, w, planes)
        apply_values(
            op,
            args,
            begin,
            stop,
            channels,
            side.luts,
            scratch.stat_luts,
            side.matrices,
            side.points,
            planes,
            first,
            last,
        )
        if map_slot >= 0:
            fill_outside(planes, channels, colour, first, last, w)
        for c in range(channels):
            line, plane = address_of(view[c, y]), address_of(planes[c])
            for x in range(0, w, BLOCK):
                copy_block(plane + x, line + x)


@pixel_kernel(forceinline=True)
def filter_row(op: Any, args: Any, slot: Any, h: Any, w: Any, y: Any, channels: Any, side: Any, scratch: Any) -> None:
    stride = scratch.planes.shape[1]
    view = scratch.plane_image[: channels * h * stride].reshape((channels, h, stride))
    for c in range(channels):
        if op[slot] == _SHARPNESS:
            sharpen_row(view[c], h, w, y, nb.float32(args[slot, 0]), scratch.planes[c])
        else:
            weights = side.kernels[side.kernel_start[int(args[slot, 0])] :]
            kx, ky = int(args[slot, 1]), int(args[slot, 2])
            if args[slot, 3] != 0.0:
                blur_row(view[c], h, w, y, weights, kx, ky, scratch.sums, scratch.planes[c])
            else:
                convolve_row(view[c], h, w, y, weights, kx, ky, scratch.sums, scratch.planes[c])


@pixel_kernel
def tap_lut(op: Any, args: Any, begin: Any, stop: Any, channels: Any, side: Any, scratch: Any) -> None:
    """The LUTs of slots begin..stop as one table, for what an interpolating map reads."""
    table = scratch.tap_lut
    for c in range(3):
        for i in range(256):
            table[c, i] = i
    apply_values(
        op, args, begin, stop, channels, side.luts, scratch.stat_luts, side.matrices, side.points, table, 0, 256
    )
