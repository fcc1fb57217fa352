"""What a pass works out before its first row: where rows come from, tables of statistics, colours of the outside."""

from __future__ import annotations

from typing import Any

import numba as nb

from variegate.executors.cpu.neighbourhood import blur_row, convolve_row, sharpen_row
from variegate.executors.cpu.rows import copy_pixels, fill_outside, fixed_row, whole_row
from variegate.executors.cpu.simd import BLOCK, address_of, copy_block
from variegate.executors.cpu.statistics import build_table
from variegate.executors.cpu.values import apply_values
from variegate.program.compiled import pixel_kernel
from variegate.program.coordinate_tables import moves_whole_pixels, source_rectangle
from variegate.program.ops import KIND_OF, Kind, Op

_GEOMETRY, _RESAMPLE, _STATISTIC, _NEIGHBOURHOOD, _POSITION = (
    int(kind) for kind in (Kind.GEOMETRY, Kind.RESAMPLE, Kind.STATISTIC, Kind.NEIGHBOURHOOD, Kind.POSITION)
)
_FIXED, _SCALE, _PAD, _SHARPNESS = (int(op) for op in (Op.MAP_FIXED, Op.MAP_SCALE, Op.MAP_PAD, Op.SHARPNESS))

# How a pass gets its rows.
DIRECT, WHOLE, ONE_FIXED, CHAIN, TABLE, REAL, FILTER, RESIZE = range(8)


@pixel_kernel
def survey(op: Any, begin: Any, end: Any, slots: Any) -> Any:
    """Slots of the maps into ``slots`` -> (how many, filter slot, resample slot, first position slot)."""
    count, filter_slot, resample_slot, position = 0, -1, -1, end
    for k in range(begin, end):
        kind = KIND_OF[op[k]]
        if kind == _GEOMETRY:
            slots[count] = k
            count += 1
        elif kind == _NEIGHBOURHOOD:
            filter_slot = k
        elif kind == _RESAMPLE:
            resample_slot = k
        elif kind == _POSITION and position == end:
            position = k
    return count, filter_slot, resample_slot, position


@pixel_kernel
def is_whole(op: Any, a: Any) -> bool:
    """A whole-pixel map whose rows are stretches of source rows."""
    return bool(op == _FIXED and moves_whole_pixels(a) and a[1] == 0.0)


@pixel_kernel
def choose(op: Any, args: Any, slots: Any, count: Any, filter_slot: Any, resample_slot: Any) -> int:
    if resample_slot >= 0:
        return RESIZE
    if filter_slot >= 0:
        return FILTER
    if count == 0:
        return DIRECT
    first = slots[0]
    if op[first] == _SCALE or op[first] == _PAD:
        return TABLE
    if op[first] != _FIXED:
        return REAL
    if count > 1:
        return CHAIN
    return WHOLE if is_whole(op[first], args[first]) else ONE_FIXED


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
    begin: Any,
    end: Any,
    image: Any,
    height: Any,
    width: Any,
    channels: Any,
    side: Any,
    scratch: Any,
) -> None:
    """The tables of the pass's statistics. Only LUTs and at most one whole-pixel map come before them."""
    map_slot = -1
    for k in range(begin, end):
        kind = KIND_OF[op[k]]
        if kind == _GEOMETRY:
            map_slot = k
        elif kind == _STATISTIC:
            rectangle, outside = (0, 0, height, width), 0
            colour = scratch.fills[k]
            if map_slot >= 0:
                h, w = out_size[map_slot, 0], out_size[map_slot, 1]
                top, left, bottom, right = source_rectangle(args[map_slot], window[map_slot], h, w)
                rectangle = (top, left, bottom, right)
                outside = h * w - max(0, bottom - top) * max(0, right - left)
                colour_after(op, args, fill[map_slot], map_slot + 1, k, channels, side, scratch, colour)
            build_table(
                k,
                op[k],
                args[k, 0],
                image,
                width,
                channels,
                rectangle,
                outside,
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
        elif is_whole(op[map_slot], args[map_slot]):
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
