"""A pass of one row of a fused program, as kernels take it, for one rectangle after another; and parts of run_rows
that depend on where a pixel is in the whole image."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from variegate.executors.cpu import kernel as calls
from variegate.executors.cpu.batch import (
    SCRATCH,
    batch_at,
    form_of,
    held_batch,
    keep_scratch,
    measure,
    new_batch,
    scratch_at,
    side_tables,
)
from variegate.executors.cpu.displace import describe_maps, record_maps
from variegate.executors.cpu.kernel import address_of, call_part, floats_at, image_of_sweep, inlined, part_kernel
from variegate.executors.cpu.layout import (
    BYTES_HWC,
    EVEN_LINE,
    HAS_GRID,
    NEEDS,
    ODD_LINE,
    Instructions,
    make_scratch,
    row_program,
)
from variegate.executors.cpu.memory import address_of_part, part_addresses, place_of
from variegate.executors.cpu.neighbourhood import filtered_planes, look_up_row, lumas_of, move_row, tile_sides
from variegate.executors.cpu.passes import run_rows
from variegate.executors.cpu.rows import read_places
from variegate.executors.cpu.tiled.areas import Area, Image
from variegate.executors.cpu.tiled.follow import follow, real_nearest
from variegate.executors.cpu.values import erase_result, noise_row
from variegate.executors.cpu.warp import Frame, warp_row
from variegate.program import passes as P
from variegate.program import places
from variegate.program.held import words_of
from variegate.program.ops import INTERPOLATION_BITS, INTERPOLATION_MASK, IS_WARP, KIND_OF, Interpolation, Kind, Op
from variegate.program.passes import PASS_FIELDS
from variegate.program.places import RECORD
from variegate.program.program import Program

_FREE = np.int16(Op.NOP)


class PassWorkspace:
    """A pass of one row, whose numbers its stage moves to one rectangle after another.

    ``plan``: the pass's row of the pass table; slots outside of it are emptied, and statistics become tables, which
    are 0 until somebody writes them into ``tables_of`` their slots. ``is_last``: results are what the program's output
    says; else bytes, [H, W, C].
    """

    def __init__(self, program: Program, row: int, plan: npt.NDArray[np.int32], is_last: bool) -> None:
        arrays = {name: getattr(program, name)[row : row + 1].copy() for name in Instructions._fields}
        begin, end = int(plan[P.BEGIN]), int(plan[P.END])
        opcode = arrays["opcode"][0]
        opcode[:begin] = opcode[end:] = _FREE
        # Room is made for the largest of all sizes.
        arrays["out_size"][0, :begin] = 1
        arrays["passes"] = np.zeros((1, 1, PASS_FIELDS), np.int32)
        arrays["passes"][0, 0] = plan
        # Statistics and a JPEG are other stages.
        arrays["passes"][0, 0, [P.NEEDS, P.QUALITY]] = 0
        arrays["num_passes"][:], arrays["length"][:] = 1, end
        self.program = Instructions(**{name: np.ascontiguousarray(array) for name, array in arrays.items()})
        self.begin, self.end, self.plan = begin, end, self.program.passes[0, 0]
        tables, statistics = program.tables, np.flatnonzero(KIND_OF[opcode] == Kind.STATISTIC)
        self.luts = np.zeros((len(tables.luts) + len(statistics), 3, 256), np.uint8)
        self.luts[: len(tables.luts)] = tables.luts
        self.grids = tables.grids
        self.tables_of = {int(k): self.luts[len(tables.luts) + i] for i, k in enumerate(statistics)}
        # What they were, and their arguments.
        self.statistics = {int(k): (int(opcode[k]), self.program.args[0, k].copy()) for k in statistics}
        for i, k in enumerate(statistics):
            opcode[k], self.program.args[0, k, 0] = Op.LUT, len(tables.luts) + i
        self.is_planar = is_last and program.output.layout == "NCHW"
        self.dtype: npt.DTypeLike = np.float32 if is_last and program.output.is_float else np.uint8
        self.tile_luts: npt.NDArray[np.uint8] | None = None  # of a CLAHE

    def run(self, area: Area, levels: Image, source: Area | None) -> Image:
        """``area`` of the image that the pass makes, of ``levels`` uint8[H, W, C], which are ``source`` of the image
        before it. Sizes that slots make, and maps, are those of the rectangles already."""
        raise NotImplementedError


class TileWorkspace(PassWorkspace):
    """As kernels of the CPU take it. ``size``: of the whole image that the pass makes; ``records``: see
    ``records_of``."""

    def __init__(
        self,
        program: Program,
        row: int,
        plan: npt.NDArray[np.int32],
        size: tuple[int, int],
        is_last: bool,
        records: npt.NDArray[np.int64],
    ) -> None:
        super().__init__(program, row, plan, is_last)
        side = side_tables(program.tables)
        points = np.concatenate([side.points, records.reshape(-1), np.zeros(HEADER, np.int64)])
        self._header = points[-HEADER:]
        self._header[MAPS] = len(records) // RECORD if records.ndim == 1 else len(records)
        self._header[IMAGE_HEIGHT], self._header[IMAGE_WIDTH] = size
        self._rectangles = side.rectangles
        side = side._replace(luts=self.luts, points=points, rectangles=side.rectangles.copy())
        self._side = side
        opcode = self.program.opcode[0]
        self._erased = [
            (int(a[0]), int(a[0]) + int(a[1])) for a in self.program.args[0, np.flatnonzero(opcode == Op.ERASE)]
        ]
        self._overlaid = np.flatnonzero(opcode == Op.OVERLAY)
        self._places = self.program.args[0, self._overlaid, 5:7].copy()
        self._sources, self._targets = np.zeros(1, np.int64), np.zeros(1, np.int64)
        form = form_of(program.output)
        self._kind = form.kind if is_last else BYTES_HWC
        batch = new_batch(self.program, side, self._sources, self._targets)
        self._batch = batch._replace(scale=form.scale, bias=form.bias)
        self._memory = held_batch(self._batch)
        self._warps = bool(IS_WARP[opcode[self.begin : self.end]].any())

    def run(self, area: Area, levels: Image, source: Area | None) -> Image:
        header, program = self._header, self.program
        header[TILE_X], header[TILE_Y] = area.left, area.top
        header[SOURCE_X], header[SOURCE_Y] = (0, 0) if source is None else (source.left, source.top)
        program.in_shape[0] = levels.shape
        for begin, end in self._erased:
            moved = self._rectangles[begin:end].astype(np.int64)
            moved[:, 0] -= area.top
            moved[:, 1] -= area.left
            self._side.rectangles[begin:end] = moved
        program.args[0, self._overlaid, 5:7] = self._places - (area.top, area.left)
        shape = area.height, area.width, levels.shape[2]
        made = np.empty((shape[2], *shape[:2]) if self.is_planar else shape, self.dtype)
        self._sources[0], self._targets[0] = place_of(levels), place_of(made)
        at = place_of(self._memory)
        measure(at)
        scratch = _own_scratch().take(tuple(self._batch.needs.tolist()), self.tile_luts, self._warps)
        run_rows(0, 1, at, scratch, self._kind, False)
        return made.transpose(1, 2, 0) if self.is_planar else made


class _TileScratch:
    """Of one thread."""

    def __init__(self) -> None:
        self._sizes = (0,) * NEEDS
        self._held = np.zeros(words_of(SCRATCH), np.int64)

    def take(self, needs: tuple[int, ...], tile_luts: npt.NDArray[np.uint8] | None, warps: bool) -> int:
        """The address of a scratch that is large enough, with the parts for tiles."""
        if any(have < need for have, need in zip(self._sizes, needs, strict=True)):
            self._sizes = tuple(map(max, zip(self._sizes, needs, strict=True)))
            self._scratch = make_scratch(*self._sizes)
            keep_scratch(place_of(self._held), self._scratch)
        self._scratch.parts[:] = tile_part_addresses(tile_luts is not None, warps)
        if tile_luts is not None:
            self._scratch.tile_luts[: len(tile_luts)] = tile_luts
        return place_of(self._held)


_local = threading.local()


def _own_scratch() -> _TileScratch:
    scratch: _TileScratch | None = getattr(_local, "scratch", None)
    if scratch is None:
        scratch = _local.scratch = _TileScratch()
    return scratch


# Fields of the header, the last numbers of all.
HEADER = 8
(
    TILE_X,  # where the tile begins in the image that the pass makes
    TILE_Y,
    IMAGE_WIDTH,  # of that image
    IMAGE_HEIGHT,
    SOURCE_X,  # where the rectangle that is read begins in its image
    SOURCE_Y,
    MAPS,  # how many records there are
) = range(7)


_NEAREST, _BICUBIC = int(Interpolation.NEAREST), int(Interpolation.BICUBIC)
_RECORD = places.RECORD
_HALF, _ONE = np.float32(0.5), np.float32(1.0)


@inlined
def _header(side: Any) -> Any:
    return side.points[side.points.size - HEADER :]


@inlined
def _bits(flag: Any) -> Any:
    return places.BICUBIC_BITS if flag & INTERPOLATION_MASK == _BICUBIC else places.BILINEAR_BITS


@part_kernel
def add_tile_noise(batch: Any, scratch: Any, r: Any, slot: Any, y: Any) -> Any:
    """``values.add_noise``."""
    held, own = batch_at(batch), scratch_at(scratch)
    row, header = row_program(held.program, r, held.side), _header(held.side)
    pixel = (header[TILE_Y] + y) * header[IMAGE_WIDTH] + header[TILE_X]
    noise_row(row, slot, y, pixel, own.sweep[calls.RESULT_WIDTH], own.sweep[calls.CHANNELS], own)
    return np.int64(0)


@part_kernel
def erase_normalized_tile(batch: Any, scratch: Any, r: Any, begin: Any, end: Any) -> Any:
    """``values.erase_normalized``."""
    held, own = batch_at(batch), scratch_at(scratch)
    header = _header(held.side)
    first = header[TILE_Y] * header[IMAGE_WIDTH] + header[TILE_X]
    erase_result(row_program(held.program, r, held.side), own.sweep, begin, end, first, header[IMAGE_WIDTH])
    return np.int64(0)


@part_kernel
def place_maps(batch: Any, scratch: Any, r: Any, first: Any, end: Any) -> Any:
    """``displace.prepare_maps``: the whole image's records, from the tile's first pixel to the rectangle's. Where a
    grid is among them, or a map that folds, they stay as they are, and places are followed one by one. Fixed maps, of
    which there are none, are those of the rectangles already."""
    held, own = batch_at(batch), scratch_at(scratch)
    points, header, records, lines = held.side.points, _header(held.side), own.records, own.grid_lines
    count, flag = header[MAPS], held.program.flags[r, first]
    if count == 0:
        return record_maps(batch, scratch, r, first, end)
    begin, bits = points.size - HEADER - _RECORD * count, _bits(flag)
    lines[EVEN_LINE], lines[ODD_LINE] = -1, -1
    for i in range(count):
        for j in range(_RECORD):
            records[i, j] = points[begin + _RECORD * i + j]
    describe_maps(records, count, flag, lines)
    if lines[HAS_GRID] == 0:
        for i in range(count):
            for axis in range(3):
                step_x, step_y = records[i, 3 * axis], records[i, 3 * axis + 1]
                records[i, 3 * axis + 2] += step_x * header[TILE_X] + step_y * header[TILE_Y]
        records[0, places.ORIGIN_U] -= header[SOURCE_X] << bits
        records[0, places.ORIGIN_V] -= header[SOURCE_Y] << bits
    return np.int64(count)


@part_kernel
def follow_tile_row(batch: Any, scratch: Any, r: Any, count: Any, y: Any) -> Any:
    """``displace.displaced_row``."""
    held, own = batch_at(batch), scratch_at(scratch)
    header, slots, stage = _header(held.side), own.slots, own.stage
    flag = held.program.flags[r, slots[0]] & INTERPOLATION_MASK
    bits = _bits(flag)
    from_x, from_y = header[SOURCE_X] << bits, header[SOURCE_Y] << bits
    for x in range(own.sweep[calls.RESULT_WIDTH]):
        at_x, at_y = header[TILE_X] + x, header[TILE_Y] + y
        left_at, column, line = follow(own.records, held.side.grids, count, at_x, at_y, flag, bits)
        is_out = left_at >= 0
        stage[x] = slots[left_at] if is_out else -1
        # What is outside reads the first pixel, which nobody sees.
        u, v = nb.int64(0) if is_out else column - from_x, nb.int64(0) if is_out else line - from_y
        own.column[x] = np.int32(u >> bits if flag == _NEAREST else u)
        own.line[x] = np.int32(v >> bits if flag == _NEAREST else v)
    return np.int64(0)


@part_kernel
def real_nearest_tile_row(batch: Any, scratch: Any, r: Any, slot: Any, y: Any) -> Any:
    """``displace.real_nearest_row``. The window is that of the rectangle that is read."""
    held, own = batch_at(batch), scratch_at(scratch)
    program, header, width, stage = held.program, _header(held.side), own.sweep[calls.RESULT_WIDTH], own.stage
    if program.opcode[r, slot] == Op.MAP_GRID:
        call_part(own.parts[calls.DISPLACED], batch, scratch, r, 1, y)
    else:
        a, window, is_perspective = program.args[r, slot], program.window[r, slot], False
        mode = program.flags[r, slot] >> INTERPOLATION_BITS
        if program.opcode[r, slot] == Op.MAP_PERSPECTIVE:
            is_perspective = True
        from_x, from_y = header[SOURCE_X], header[SOURCE_Y]
        inside = (window[0] + from_y, window[1] + from_x, window[2] + from_y, window[3] + from_x)
        for x in range(width):
            at_x, at_y = header[TILE_X] + x, header[TILE_Y] + y
            is_in, column, line = real_nearest(a, inside, mode, is_perspective, at_x, at_y)
            stage[x] = -1 if is_in else slot
            own.column[x] = np.int32(column - from_x if is_in else nb.int64(0))
            own.line[x] = np.int32(line - from_y if is_in else nb.int64(0))
    read_places(image_of_sweep(own.sweep), y, width, own)
    return np.int64(0)


@part_kernel
def equalized_tile_row(batch: Any, scratch: Any, r: Any, slot: Any, y: Any) -> Any:
    """``neighbourhood.filtered_row`` of a CLAHE, whose tables lie in ``scratch.tile_luts`` already."""
    held, own = batch_at(batch), scratch_at(scratch)
    row, header = row_program(held.program, r, held.side), _header(held.side)
    width, channels, stride = own.sweep[calls.RESULT_WIDTH], own.sweep[calls.CHANNELS], own.planes.shape[1]
    tiles_x, tiles_y = int(row.args[slot, 1]), int(row.args[slot, 2])
    tile_h, tile_w = tile_sides(header[IMAGE_HEIGHT], header[IMAGE_WIDTH], tiles_y, tiles_x)
    if y == 0:
        shares, scale = floats_at(address_of(own.tap_weights), width), _ONE / np.float32(tile_w)
        for x in range(width):
            at = np.float32(header[TILE_X] + x) * scale - _HALF
            tile = int(np.floor(at))
            shares[x] = at - np.float32(tile)
            own.column[x], own.line[x] = 256 * max(tile, 0), 256 * min(tile + 1, tiles_x - 1)
    at = np.float32(header[TILE_Y] + y) * (_ONE / np.float32(tile_h)) - _HALF
    tile = int(np.floor(at))
    share = at - np.float32(tile)
    first = filtered_planes(row, slot, own) + 3 * stride * y
    levels, moved, tables = address_of(own.row_bytes), address_of(own.row_pixels), address_of(own.tile_luts)
    lumas_of(first, stride, width, channels, levels)
    above, below = tables + 256 * tiles_x * max(tile, 0), tables + 256 * tiles_x * min(tile + 1, tiles_y - 1)
    look_up_row(levels, width, above, below, own.column, own.line, address_of(own.tap_weights), share, moved)
    for c in range(channels):
        move_row(first + c * stride, levels, moved, width, address_of(own.planes) + c * stride)
    return np.int64(0)


@part_kernel
def warped_tile_row(batch: Any, scratch: Any, r: Any, slot: Any, y: Any) -> Any:
    """``neighbourhood.filtered_row`` of what reads far from a pixel."""
    held, own = batch_at(batch), scratch_at(scratch)
    row, header = row_program(held.program, r, held.side), _header(held.side)
    height, width, stride = own.sweep[calls.RESULT_HEIGHT], own.sweep[calls.RESULT_WIDTH], nb.int64(own.planes.shape[1])
    first, size = filtered_planes(row, slot, own), (header[IMAGE_HEIGHT], header[IMAGE_WIDTH])
    frame = Frame(first, stride, height, width, header[TILE_Y], header[TILE_X], *size)
    warp_row(row, slot, y, frame, own.sweep[calls.CHANNELS], own)
    return np.int64(0)


_TILE_KERNELS = {
    calls.MAPS: place_maps,
    calls.NEAREST: real_nearest_tile_row,
    calls.NOISE: add_tile_noise,
    calls.ERASED: erase_normalized_tile,
    calls.DISPLACED: follow_tile_row,
}


@cache
def tile_part_addresses(is_clahe: bool, warps: bool) -> tuple[int, ...]:
    """By number; those of whole images where a tile needs no other."""
    kernels = dict(_TILE_KERNELS)
    if is_clahe or warps:
        kernels[calls.FILTER] = equalized_tile_row if is_clahe else warped_tile_row
    known = part_addresses(has_jpeg=False)
    return tuple(address_of_part(kernels[i]) if i in kernels else known[i] for i in range(calls.PARTS))
