"""The rows of a batch, pass by pass. For every output row: source, value operations, outside, position, store."""

from __future__ import annotations

from typing import Any

import numba as nb

from variegate.executors.cpu import kernel as K
from variegate.executors.cpu import rows
from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.interpolate import interpolated_row
from variegate.executors.cpu.kernel import Pixels, address_of, bytes_at, call_part, inlined, set_image, set_target
from variegate.executors.cpu.layout import BYTES_HWC, FLOATS_CHW, PLANES, ResultFormat, row_program, target_at
from variegate.executors.cpu.neighbourhood import filtered_planes
from variegate.executors.cpu.resample import resized_row
from variegate.executors.cpu.simd_pixels import prefetch
from variegate.executors.cpu.statistics import colour_after
from variegate.executors.cpu.store import store_row
from variegate.executors.cpu.values import apply_value, erase_row
from variegate.program.compiled import pixel_kernel
from variegate.program.lowering.fuse import describe_filter_input
from variegate.program.ops import INTERPOLATION_BITS, INTERPOLATION_MASK, KIND_OF, Interpolation, Kind, Op
from variegate.program.passes import BEGIN, END, FIRST, MAPS_END, NEEDS, POSITION, QUALITY, SOURCE, VALUES, PassSource
from variegate.program.places import BEHIND, ONE, pad_table, scale_table

_GEOMETRY, _POSITION = int(Kind.GEOMETRY), int(Kind.POSITION)
_NEAREST, _BEHIND = int(Interpolation.NEAREST), int(BEHIND)
_DIRECT, _STRETCH, _ONE_FIXED, _CHAIN, _TABLE, _INTERPOLATED, _FILTER, _RESIZE, _FOLDED = (int(s) for s in PassSource)


@pixel_kernel
def run_rows(begin: Any, end: Any, batch: Any, scratch: Any, kind: Any, streams: Any) -> None:
    """Every pass of the rows ``begin..end`` of the ``BatchArrays`` at address ``batch``, with the ``Scratch`` at
    address ``scratch``. ``kind``, ``streams``: as in ``ResultFormat``."""
    held, own = batch_at(batch), scratch_at(scratch)
    program, side, sources, targets = held.program, held.side, held.sources, held.targets
    form = ResultFormat(kind, streams != 0, held.scale, held.bias)
    for r in range(begin, end):
        ahead, ahead_size = _next_image(r + 1, end, program, sources)
        height, width = nb.int64(program.in_shape[r, 0]), nb.int64(program.in_shape[r, 1])
        channels = nb.int64(program.in_shape[r, 2])
        levels = bytes_at(sources[r], height * width * channels)
        row = row_program(program, r, side)
        for p in range(program.num_passes[r]):
            plan = program.passes[r, p]
            image = Pixels(levels, height, width, channels)
            if plan[END] > plan[BEGIN]:
                height, width = nb.int64(row.out_size[plan[END] - 1, 0]), nb.int64(row.out_size[plan[END] - 1, 1])
            is_last = p == program.num_passes[r] - 1
            address = targets[r] if is_last else address_of(own.canvas[p & 1])
            if plan[QUALITY] != 0:
                set_image(image, address_of(image.levels), own.sweep)
                call_part(own.parts[K.CODEC], batch, scratch, r, p, 0)
                coded = bytes_at(address_of(own.coded), image.height * image.width * channels)
                image = Pixels(coded, image.height, image.width, channels)
            if plan[NEEDS] != 0:
                set_image(image, address_of(image.levels), own.sweep)
                call_part(own.parts[K.STATISTICS], batch, scratch, r, p, 0)
            # What a filter sees is made first, as a whole; so is an image that a real map reads through tables.
            is_filter, is_tabled = plan[SOURCE] == _FILTER, plan[SOURCE] == _INTERPOLATED and plan[FIRST] > plan[BEGIN]
            for part in range(0 if is_filter or is_tabled else 1, 2):
                sweep, to, kind, h, w = plan, address, form.kind if is_last else BYTES_HWC, height, width
                if part == 0:
                    if is_tabled:
                        to, kind, h, w = address_of(own.plane_image), BYTES_HWC, image.height, image.width
                    else:
                        to, kind = filtered_planes(row, plan[FIRST], own), PLANES
                    sweep = own.filter_input
                    describe_filter_input(row.opcode, row.args, plan, sweep)
                target = target_at(to, kind, h, w, channels, form)
                set_image(image, address_of(image.levels), own.sweep)
                set_target(target, own.sweep)
                _run_sweep(row, sweep, image, target, ahead, ahead_size, own, (batch, scratch, r))
                ahead_size = 0
                if part == 0 and is_tabled:
                    image = Pixels(bytes_at(to, h * w * channels), h, w, channels)
            levels = bytes_at(address, height * width * channels)


@inlined
def _next_image(r: Any, end: Any, program: Any, sources: Any) -> Any:
    """Address and size of what is brought into the cache meanwhile: nothing (0 bytes) if no row ``r`` comes, or if its
    image would not stay there. Whatever does not read in order would wait for every line of it."""
    if r >= end:
        return nb.int64(0), nb.int64(0)
    size = nb.int64(program.in_shape[r, 0]) * program.in_shape[r, 1] * program.in_shape[r, 2]
    return sources[r], size if size <= rows.PREFETCHED else nb.int64(0)


@inlined
def _run_sweep(
    row: Any, sweep: Any, image: Any, target: Any, ahead: Any, ahead_size: Any, scratch: Any, of: Any
) -> None:
    """Every row of ``target``, from ``image``; ``sweep``: a row of the pass table. Meanwhile ``ahead_size`` bytes at
    ``ahead`` are brought into the cache. ``of``: whose sweep it is, as arguments of parts."""
    width, channels, source, end, position = target.width, target.channels, sweep[SOURCE], sweep[END], sweep[POSITION]
    planes, fill, row_bytes = scratch.planes, scratch.fills[sweep[FIRST]], scratch.planes.size
    count = prepare_source(row, sweep, image, target, scratch, of)
    is_stretch = source == _STRETCH or source == _ONE_FIXED
    if source == _INTERPOLATED and row.flags[sweep[FIRST]] & INTERPOLATION_MASK != _NEAREST:
        is_stretch = count == 1 and scratch.records[0, _BEHIND] == 0
    step = (ahead_size // target.height + 64) // 64 * 64
    for y in range(target.height):
        prefetch(ahead + y * step, min(step, ahead_size - y * step))
        if target.kind == PLANES:
            # In place: what a filter sees is no chain of maps, and nothing that is made elsewhere.
            planes = bytes_at(target.address + y * row_bytes, row_bytes).reshape((3, row_bytes // 3))
        first, last = _read_row(row, sweep, image, count, is_stretch, y, planes, target, scratch, of)
        for k in range(sweep[VALUES], end + 1):
            if k == position:
                if is_stretch:
                    rows.fill_outside(planes, channels, fill, first, last, width)
                elif source == _CHAIN or source == _TABLE or source == _INTERPOLATED or source == _FOLDED:
                    rows.fill_by_stage(count, width, scratch)
                first, last = 0, width
            if k == end:
                break
            op, a = row.opcode[k], row.args[k]
            if KIND_OF[op] != _POSITION:
                apply_value(row, k, channels, scratch.stat_luts, planes, first, last)
            elif op != Op.ERASE or (
                a[7] == 0.0 and erase_row(a, row.fill[k], row.side.rectangles, y, width, channels, planes)
            ):
                call_part(scratch.parts[K.NOISE], *of, k, y)
        if target.kind != PLANES:
            store_row(planes, y, target)
    if target.kind >= FLOATS_CHW and position < end:
        call_part(scratch.parts[K.ERASED], *of, position, end)


@inlined
def prepare_source(row: Any, sweep: Any, image: Any, target: Any, scratch: Any, of: Any) -> Any:
    """Prepare a pass before its first row: maps and the colours of their outside, tables, weights -> number of
    maps."""
    source, first, slots, a = sweep[SOURCE], sweep[FIRST], scratch.slots, row.args[sweep[FIRST]]
    count = 0
    for k in range(first, sweep[MAPS_END]):
        if KIND_OF[row.opcode[k]] == _GEOMETRY:
            slots[count] = k
            count += 1
            colour = scratch.fills[k]
            colour_after(row, k, sweep[POSITION], image.channels, scratch, colour)
            scratch.colours[k] = nb.int32(colour[0]) | nb.int32(colour[1]) << 8 | nb.int32(colour[2]) << 16
    if source == _INTERPOLATED or source == _ONE_FIXED or source == _CHAIN or source == _FOLDED:
        rows.fetch_ahead(image, a[3] if source == _INTERPOLATED else a[3] / ONE, target.width)
    elif source == _STRETCH and a[4] < 0.0:
        # Lines from the last to the first are not foreseen either.
        rows.fetch_ahead(image, 1.0, target.width)
    if source == _INTERPOLATED or source == _FOLDED:
        call_part(scratch.parts[K.MAPS], *of, first, sweep[MAPS_END])
    elif source == _TABLE:
        if row.opcode[first] == Op.MAP_SCALE:
            mode = row.flags[first] >> INTERPOLATION_BITS
            scale_table(a[1], a[0], image.width, scratch.column, target.width, a[4] != 0.0, mode)
            scale_table(a[3], a[2], image.height, scratch.line, target.height, False, mode)
        else:
            pad_table(int(a[0]), row.flags[first], image.width, scratch.column, target.width)
            pad_table(int(a[1]), row.flags[first], image.height, scratch.line, target.height)
    elif source == _CHAIN:
        rows.pack_maps(row, slots, count, scratch.maps)
    elif source == _RESIZE:
        call_part(scratch.parts[K.RESIZE], *of, first, 0)
    return count


@inlined
def _read_row(
    row: Any,
    sweep: Any,
    image: Any,
    count: Any,
    is_stretch: Any,
    y: Any,
    planes: Any,
    target: Any,
    scratch: Any,
    of: Any,
) -> Any:
    """Row ``y`` into the planes -> the part of it that is inside, where that is one stretch."""
    source, slot, width = sweep[SOURCE], sweep[FIRST], target.width
    stage = scratch.stage
    first, last = 0, width
    if source == _DIRECT or source == _STRETCH:
        start, is_mirrored = y * width, False
        if source == _STRETCH:
            first, last, start, is_mirrored = rows.stretch_of(image, row.args[slot], row.window[slot], y, width)
        rows.copy_pixels(image, start, last - first, is_mirrored, planes, first)
    elif source == _ONE_FIXED:
        first, last = rows.fixed_row(image, row.args[slot], row.window[slot], y, width, planes, scratch)
    elif source == _CHAIN:
        rows.chain_row(image, count, y, width, scratch)
    elif source == _TABLE:
        rows.table_row(image, scratch.column, scratch.line[y], slot, width, stage, planes)
    elif source == _INTERPOLATED:
        interpolation = row.flags[slot] & INTERPOLATION_MASK
        if interpolation == _NEAREST:
            call_part(scratch.parts[K.NEAREST], *of, slot, y)
        else:
            first, last = interpolated_row(
                image, row.window[slot], interpolation, count, is_stretch, y, width, scratch, of
            )
    elif source == _FOLDED:
        call_part(scratch.parts[K.FOLDED], *of, count, y)
    elif source == _FILTER:
        call_part(scratch.parts[K.FILTER], *of, slot, y)
    else:
        resized_row(image, row.args[slot], y, target.height, width, scratch)
    return first, last
