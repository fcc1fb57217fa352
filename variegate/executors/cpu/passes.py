"""One fused pass over one image, row by row: source, value operations, outside, position, store."""

from __future__ import annotations

from typing import Any

import numba as nb

from variegate.executors.cpu.interpolate import pad_table, sample_row, scale_table, table_row, walk_back
from variegate.executors.cpu.layout import BYTES_HWC, FLOATS_CHW
from variegate.executors.cpu.neighbourhood import blur_row, convolve_row, sharpen_row
from variegate.executors.cpu.position import apply_position, erase_normalized
from variegate.executors.cpu.resample import prepare_resize, resized_row
from variegate.executors.cpu.rows import (
    chain_row,
    copy_pixels,
    fill_by_stage,
    fill_outside,
    fixed_row,
    pack_maps,
    whole_row,
)
from variegate.executors.cpu.simd import BLOCK, address_of, bytes_at, copy_block, floats_at
from variegate.executors.cpu.statistics import build_table, source_rectangle
from variegate.executors.cpu.store import store_bytes, store_floats
from variegate.executors.cpu.values import apply_values
from variegate.program.compiled import pixel_kernel
from variegate.program.lowering.merge import KIND_OF, _is_integer
from variegate.program.ops import Kind, Op

_GEOMETRY, _RESAMPLE, _VALUE, _STATISTIC, _NEIGHBOURHOOD, _POSITION = (
    int(kind) for kind in (Kind.GEOMETRY, Kind.RESAMPLE, Kind.VALUE, Kind.STATISTIC, Kind.NEIGHBOURHOOD, Kind.POSITION)
)
_FIXED, _SCALE, _PAD, _SHARPNESS, _ERASE = (
    int(op) for op in (Op.MAP_FIXED, Op.MAP_SCALE, Op.MAP_PAD, Op.SHARPNESS, Op.ERASE)
)

# How a pass gets its rows.
_DIRECT, _WHOLE, _ONE_FIXED, _CHAIN, _TABLE, _REAL, _FILTER, _RESIZE = range(8)


@pixel_kernel
def _survey(op: Any, begin: Any, end: Any, slots: Any) -> Any:
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
def _is_whole(op: Any, a: Any) -> bool:
    """A whole-pixel map whose rows are stretches of source rows."""
    return bool(op == _FIXED and _is_integer(a) and a[1] == 0.0)


@pixel_kernel
def _choose(op: Any, args: Any, slots: Any, count: Any, filter_slot: Any, resample_slot: Any) -> int:
    if resample_slot >= 0:
        return _RESIZE
    if filter_slot >= 0:
        return _FILTER
    if count == 0:
        return _DIRECT
    first = slots[0]
    if op[first] == _SCALE or op[first] == _PAD:
        return _TABLE
    if op[first] != _FIXED:
        return _REAL
    if count > 1:
        return _CHAIN
    return _WHOLE if _is_whole(op[first], args[first]) else _ONE_FIXED


@pixel_kernel
def _colour_after(
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
def _build_tables(
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
                _colour_after(op, args, fill[map_slot], map_slot + 1, k, channels, side, scratch, colour)
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
def _planes_for_filter(
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
        _colour_after(op, args, fill[map_slot], map_slot + 1, stop, channels, side, scratch, colour)
    planes = scratch.planes
    for y in range(h):
        first, last = 0, w
        if map_slot < 0:
            copy_pixels(image, y * width, w, False, channels, planes, 0)
        elif _is_whole(op[map_slot], args[map_slot]):
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
def _filter_row(op: Any, args: Any, slot: Any, h: Any, w: Any, y: Any, channels: Any, side: Any, scratch: Any) -> None:
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
def _tap_lut(op: Any, args: Any, begin: Any, stop: Any, channels: Any, side: Any, scratch: Any) -> None:
    """The LUTs of slots begin..stop as one table, for what an interpolating map reads."""
    table = scratch.tap_lut
    for c in range(3):
        for i in range(256):
            table[c, i] = i
    apply_values(
        op, args, begin, stop, channels, side.luts, scratch.stat_luts, side.matrices, side.points, table, 0, 256
    )


@pixel_kernel
def run_pass(
    op: Any,
    args: Any,
    flags: Any,
    fill: Any,
    out_size: Any,
    window: Any,
    begin: Any,
    end: Any,
    image: Any,
    height: Any,
    width: Any,
    channels: Any,
    sample_id: Any,
    key: Any,
    side: Any,
    scratch: Any,
    kind: Any,
    streams: Any,
    scale: Any,
    bias: Any,
    target: Any,
) -> None:
    """Slots begin..end of one row of a program, from ``image`` (HWC bytes) to ``target`` (an address)."""
    h, w = (nb.int64(out_size[end - 1, 0]), nb.int64(out_size[end - 1, 1])) if end > begin else (height, width)
    slots, planes, stage, fills = scratch.slots, scratch.planes, scratch.stage, scratch.fills
    count, filter_slot, resample_slot, position = _survey(op, begin, end, slots)
    source = _choose(op, args, slots, count, filter_slot, resample_slot)
    _build_tables(op, args, fill, out_size, window, begin, end, image, height, width, channels, side, scratch)
    for i in range(count):
        slot = slots[i]
        colour = fills[slot]
        _colour_after(op, args, fill[slot], slot + 1, position, channels, side, scratch, colour)
        scratch.colours[slot] = nb.int32(colour[0]) | nb.int32(colour[1]) << 8 | nb.int32(colour[2]) << 16

    values_from = begin
    first_slot = slots[0]
    lines = scratch.line
    taps_x, has_picks = 0, False
    if source == _FILTER:
        values_from = filter_slot
        _planes_for_filter(op, args, fill, out_size, window, begin, filter_slot, image, width, channels, side, scratch)
    elif source == _REAL:
        values_from = first_slot
        _tap_lut(op, args, begin, first_slot, channels, side, scratch)
    elif source == _TABLE:
        if op[first_slot] == _SCALE:
            scale_table(args[first_slot, 1], args[first_slot, 0], width, scratch.column, w, args[first_slot, 4] != 0.0)
            scale_table(args[first_slot, 3], args[first_slot, 2], height, lines, h, False)
        else:
            pad_table(int(args[first_slot, 0]), flags[first_slot], width, scratch.column, w)
            pad_table(int(args[first_slot, 1]), flags[first_slot], height, lines, h)
    elif source == _CHAIN:
        pack_maps(args, window, out_size, slots, count, scratch.maps)
    elif source == _RESIZE:
        taps_x, has_picks = prepare_resize(
            image, height, width, channels, args[resample_slot], flags[resample_slot], h, w, scratch
        )

    bytes_target = bytes_at(target, h * w * channels)
    floats_target = floats_at(target, h * w * channels)
    for y in range(h):
        first, last = 0, w
        if source == _DIRECT:
            copy_pixels(image, y * width, w, False, channels, planes, 0)
        elif source == _WHOLE:
            first, last = whole_row(image, width, channels, args[first_slot], window[first_slot], y, w, planes)
        elif source == _ONE_FIXED:
            first, last = fixed_row(image, width, channels, args[first_slot], window[first_slot], y, w, planes)
        elif source == _CHAIN:
            chain_row(image, width, channels, scratch.maps, count, y, w, scratch, planes)
        elif source == _TABLE:
            table_row(image, width, channels, scratch.column, lines[y], first_slot, w, stage, planes)
        elif source == _REAL:
            walk_back(op, args, window, slots, count, y, w, scratch.real, stage)
            sample_row(
                image,
                width,
                channels,
                window[first_slot],
                flags[first_slot],
                scratch.tap_lut,
                scratch.real,
                stage,
                w,
                planes,
            )
        elif source == _FILTER:
            _filter_row(op, args, filter_slot, h, w, y, channels, side, scratch)
        else:
            resized_row(image, width, channels, args[resample_slot], taps_x, has_picks, y, h, w, scratch, planes)
        apply_values(
            op,
            args,
            values_from,
            position,
            channels,
            side.luts,
            scratch.stat_luts,
            side.matrices,
            side.points,
            planes,
            first,
            last,
        )
        if source == _WHOLE or source == _ONE_FIXED:
            fill_outside(planes, channels, fills[first_slot], first, last, w)
        elif source == _CHAIN or source == _TABLE or source == _REAL:
            fill_by_stage(planes, scratch.colours, stage, w)
        for k in range(position, end):
            if KIND_OF[op[k]] == _POSITION:
                if op[k] != _ERASE or args[k, 7] == 0.0:
                    apply_position(op[k], args[k], fill[k], side.rectangles, y, w, channels, sample_id, key, planes)
            else:
                apply_values(
                    op,
                    args,
                    k,
                    k + 1,
                    channels,
                    side.luts,
                    scratch.stat_luts,
                    side.matrices,
                    side.points,
                    planes,
                    0,
                    w,
                )
        if kind >= FLOATS_CHW:
            store_floats(planes, channels, kind, y, h, w, scale, bias, streams, floats_target)
        else:
            store_bytes(planes, channels, kind, y, h, w, bytes_target)
    if kind >= FLOATS_CHW:
        for k in range(position, end):
            if op[k] == _ERASE and args[k, 7] != 0.0:
                erase_normalized(
                    args[k], side.rectangles, h, w, channels, kind == FLOATS_CHW, sample_id, key, floats_target
                )


@pixel_kernel
def run_rows(
    rows: Any,
    program: Any,
    side: Any,
    sources: Any,
    targets: Any,
    kind: Any,
    streams: Any,
    scale: Any,
    bias: Any,
    scratch: Any,
) -> None:
    """Every pass of every row in ``rows``. ``sources`` and ``targets`` are addresses, one per row of the program."""
    for r in rows:
        height, width = nb.int64(program.in_shape[r, 0]), nb.int64(program.in_shape[r, 1])
        channels = nb.int64(program.in_shape[r, 2])
        image = bytes_at(sources[r], height * width * channels)
        begin = 0
        for p in range(program.num_passes[r]):
            end = begin
            while end < program.length[r] and program.pass_of[r, end] == p:
                end += 1
            is_last = p == program.num_passes[r] - 1
            canvas = scratch.canvas[p & 1]
            run_pass(
                program.opcode[r],
                program.args[r],
                program.flags[r],
                program.fill[r],
                program.out_size[r],
                program.window[r],
                begin,
                end,
                image,
                height,
                width,
                channels,
                program.ids[r],
                program.key,
                side,
                scratch,
                kind if is_last else BYTES_HWC,
                streams,
                scale[0 if channels == 1 else 1],
                bias[0 if channels == 1 else 1],
                targets[r] if is_last else canvas.ctypes.data,
            )
            if end > begin:
                height, width = nb.int64(program.out_size[r, end - 1, 0]), nb.int64(program.out_size[r, end - 1, 1])
            image = canvas[: height * width * channels]
            begin = end
