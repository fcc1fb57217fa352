"""One fused pass over one image, row by row: source, value operations, outside, position, store."""

from __future__ import annotations

from typing import Any

import numba as nb

from variegate.executors.cpu.interpolate import sample_row, table_row, walk_back
from variegate.executors.cpu.layout import BYTES_HWC, FLOATS_CHW
from variegate.executors.cpu.position import apply_position, erase_normalized
from variegate.executors.cpu.prepare import (
    build_tables,
    colour_after,
    filter_row,
    maps_of,
    planes_for_filter,
    tap_lut,
)
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
from variegate.executors.cpu.simd import bytes_at, floats_at
from variegate.executors.cpu.store import store_bytes, store_floats
from variegate.executors.cpu.values import apply_values
from variegate.program.compiled import pixel_kernel
from variegate.program.coordinate_tables import pad_table, scale_table
from variegate.program.ops import KIND_OF, Kind, Op
from variegate.program.passes import BEGIN, END, FIRST, POSITION, SOURCE, VALUES, PassSource

_POSITION, _SCALE, _ERASE = int(Kind.POSITION), int(Op.MAP_SCALE), int(Op.ERASE)
_DIRECT, _STRETCH, _ONE_FIXED, _CHAIN, _TABLE, _INTERPOLATED, _FILTER, _RESIZE = (int(s) for s in PassSource)


@pixel_kernel
def run_pass(
    op: Any,
    args: Any,
    flags: Any,
    fill: Any,
    out_size: Any,
    window: Any,
    plan: Any,
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
    """One pass of one row of a program, from ``image`` (HWC bytes) to ``target`` (an address).

    ``plan``: the pass's row of the pass table.
    """
    begin, end, source, position = plan[BEGIN], plan[END], plan[SOURCE], plan[POSITION]
    first_slot, values_from = plan[FIRST], plan[VALUES]
    h, w = (nb.int64(out_size[end - 1, 0]), nb.int64(out_size[end - 1, 1])) if end > begin else (height, width)
    slots, planes, stage, fills = scratch.slots, scratch.planes, scratch.stage, scratch.fills
    count = maps_of(op, plan, slots)
    build_tables(op, args, fill, out_size, window, plan, image, height, width, channels, side, scratch)
    for i in range(count):
        slot = slots[i]
        colour = fills[slot]
        colour_after(op, args, fill[slot], slot + 1, position, channels, side, scratch, colour)
        scratch.colours[slot] = nb.int32(colour[0]) | nb.int32(colour[1]) << 8 | nb.int32(colour[2]) << 16

    lines = scratch.line
    taps_x, has_picks = 0, False
    if source == _FILTER:
        planes_for_filter(op, args, fill, out_size, window, begin, first_slot, image, width, channels, side, scratch)
    elif source == _INTERPOLATED:
        tap_lut(op, args, begin, first_slot, channels, side, scratch)
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
            image, height, width, channels, args[first_slot], flags[first_slot], h, w, scratch
        )

    bytes_target = bytes_at(target, h * w * channels)
    floats_target = floats_at(target, h * w * channels)
    for y in range(h):
        first, last = 0, w
        if source == _DIRECT:
            copy_pixels(image, y * width, w, False, channels, planes, 0)
        elif source == _STRETCH:
            first, last = whole_row(image, width, channels, args[first_slot], window[first_slot], y, w, planes)
        elif source == _ONE_FIXED:
            first, last = fixed_row(image, width, channels, args[first_slot], window[first_slot], y, w, planes)
        elif source == _CHAIN:
            chain_row(image, width, channels, scratch.maps, count, y, w, scratch, planes)
        elif source == _TABLE:
            table_row(image, width, channels, scratch.column, lines[y], first_slot, w, stage, planes)
        elif source == _INTERPOLATED:
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
            filter_row(op, args, first_slot, h, w, y, channels, side, scratch)
        else:
            resized_row(image, width, channels, args[first_slot], taps_x, has_picks, y, h, w, scratch, planes)
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
        if source == _STRETCH or source == _ONE_FIXED:
            fill_outside(planes, channels, fills[first_slot], first, last, w)
        elif source == _CHAIN or source == _TABLE or source == _INTERPOLATED:
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
        for p in range(program.num_passes[r]):
            plan = program.passes[r, p]
            is_last = p == program.num_passes[r] - 1
            canvas = scratch.canvas[p & 1]
            run_pass(
                program.opcode[r],
                program.args[r],
                program.flags[r],
                program.fill[r],
                program.out_size[r],
                program.window[r],
                plan,
                image,
                height,
                width,
                channels,
                program.ids[r],
                program.key[r],
                side,
                scratch,
                kind if is_last else BYTES_HWC,
                streams,
                scale[0 if channels == 1 else 1],
                bias[0 if channels == 1 else 1],
                targets[r] if is_last else canvas.ctypes.data,
            )
            last = plan[END] - 1
            if last >= plan[BEGIN]:
                height, width = nb.int64(program.out_size[r, last, 0]), nb.int64(program.out_size[r, last, 1])
            image = canvas[: height * width * channels]
