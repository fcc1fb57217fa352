"""Records that kernels read (``layout.py``): a header for every pass of every row, which says what it reads, does and
writes, and every instruction, with the tables or integers of its maps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.layout import Ability
from variegate.program import passes as P
from variegate.program.compiled import pixel_kernel
from variegate.program.ops import (
    INTERPOLATION_BITS,
    INTERPOLATION_MASK,
    IS_REAL_MAP,
    IS_WARP,
    KIND_OF,
    Interpolation,
    Kind,
    Op,
)
from variegate.program.passes import PassSource
from variegate.program.places import RECORD, may_hit, pad_table, scale_table, write_records


@pixel_kernel
def tap_count(args: Any, flag: Any) -> Any:
    """Weights per output (along x, along y) of a RESIZED_CROP, at most."""
    radius = 2.0 if flag == Interpolation.BICUBIC else 3.0 if flag == Interpolation.LANCZOS else 1.0
    taps_x = 2 * int(np.ceil(radius * max(_scale(args[1], args[3], args[5]), 1.0))) + 1
    taps_y = 2 * int(np.ceil(radius * max(_scale(args[0], args[2], args[4]), 1.0))) + 1
    return taps_x, taps_y


@pixel_kernel
def _scale(start: Any, extent: Any, size: Any) -> Any:
    # A negative start stands for a crop (lowering/merge.py), whose scale is that of whole pixels.
    start = max(start, 0.0)
    first = np.float32(start)
    return np.float64(np.float32(np.float32(start + extent) - first)) / size


@pixel_kernel
def measure(program: Any, is_blended: Any) -> Any:
    """(int32 indices of separable maps, real maps, statistics, int32 resize weights, canvas pixels) of a program."""
    indices, maps, statistics, weights, pixels = 0, 0, 0, 0, 0
    for r in range(program.opcode.shape[0]):
        for k in range(program.length[r]):
            op, h, w = program.opcode[r, k], int(program.out_size[r, k, 0]), int(program.out_size[r, k, 1])
            if op == Op.MAP_SCALE or op == Op.MAP_PAD:
                indices += h + w
            elif IS_REAL_MAP[op]:
                maps += 1
            elif KIND_OF[op] == Kind.STATISTIC:
                statistics += 1
            elif KIND_OF[op] == Kind.RESAMPLE:
                taps_x, taps_y = tap_count(program.args[r, k], program.flags[r, k])
                weights += (taps_x + 1) * w + (taps_y + 1) * h
        for p in range(program.num_passes[r]):
            plan = program.passes[r, p]
            if plan[P.SOURCE] == PassSource.FOLDED:
                maps += int(plan[P.MAPS_END]) - int(plan[P.FIRST])
        first, second = canvas_pixels(program.passes[r], program.num_passes[r], is_blended)
        pixels += first + second
    return indices, maps, statistics, weights, pixels


@pixel_kernel
def canvas_pixels(passes: Any, num_passes: Any, is_blended: Any) -> Any:
    """Pixels of a row's two canvases, which its passes write in turn. The last pass writes none, unless rows blend.

    In whole groups of four, so that what lies behind a canvas stays aligned.
    """
    first, second = 0, 0
    for p in range(num_passes if is_blended else num_passes - 1):
        pixels = (int(passes[p, P.HEIGHT]) * int(passes[p, P.WIDTH]) + 3) // 4 * 4
        if p % 2 == 0:
            first = max(first, pixels)
        else:
            second = max(second, pixels)
    return first, second


# What a launch must be able to do for the source of a pass.
_ABILITY_OF_SOURCE = np.zeros(len(PassSource), np.int64)
_ABILITY_OF_SOURCE[PassSource.INTERPOLATED] = Ability.HAS_REAL
_ABILITY_OF_SOURCE[PassSource.FILTER] = Ability.HAS_FILTER
_ABILITY_OF_SOURCE[PassSource.RESAMPLE] = Ability.HAS_RESAMPLE
_ABILITY_OF_SOURCE[PassSource.FOLDED] = Ability.HAS_FOLD


class RowAddresses(NamedTuple):
    """Addresses of a batch's rows on the device."""

    images: Any  # int64[R], addresses
    strides: Any  # int64[R, 3], bytes along y, x and channels
    targets: Any  # int64[R], addresses of the results; zeros where rows are blended
    canvases: Any  # address of the images between passes
    weights: Any  # offset of the weights of resizes
    region: Any  # int64[3]: column, line and width of the whole image of which all rows are a region; 0: of none


class PassRecords(NamedTuple):
    """Headers of passes for the device, and launches for the host."""

    headers: Any  # int64[P, R, HEADER]
    last_canvas: Any  # int64[R]: what a row's last pass wrote, where rows are blended
    lists: Any  # int32[1 + P, rows]: the headers that need preparation, then the rows of every pass
    launches: Any  # int64[1 + P, 3]: likewise; see layout.NUM_ROWS


@pixel_kernel
def fill_headers(program: Any, addresses: Any, is_blended: Any, block: Any, records: Any) -> None:
    """Everything in ``records``; ``block``: height and width of a tile."""
    rows, slots = program.opcode.shape
    canvases, weights_at = addresses.canvases, addresses.weights
    records.launches[:] = 0
    for r in range(rows):
        first, second = canvas_pixels(program.passes[r], program.num_passes[r], is_blended)
        canvas = (canvases, canvases + 4 * first)
        canvases += 4 * (first + second)
        image, stride_y, stride_x, stride_c = (
            addresses.images[r], addresses.strides[r, 0], addresses.strides[r, 1], addresses.strides[r, 2],
        )  # fmt: skip
        height, width = int(program.in_shape[r, 0]), int(program.in_shape[r, 1])
        for p in range(program.num_passes[r]):
            header, launch = records.headers[p, r], records.launches[1 + p]
            _copy_pass(program.passes[r, p], r * slots, header)
            is_final = p == program.num_passes[r] - 1 and not is_blended
            header[L.IMAGE], header[L.STRIDE_Y], header[L.STRIDE_X], header[L.STRIDE_C] = (
                image, stride_y, stride_x, stride_c,
            )  # fmt: skip
            header[L.CHANNELS], header[L.IN_HEIGHT], header[L.IN_WIDTH] = program.in_shape[r, 2], height, width
            header[L.IS_FINAL], header[L.TARGET] = is_final, addresses.targets[r] if is_final else canvas[p % 2]
            header[L.ID_LOW] = program.ids[r] & np.uint64(0xFFFFFFFF)
            header[L.ID_HIGH] = program.ids[r] >> np.uint64(32)
            header[L.KEY] = np.uint64(program.key[r, 1]) << np.uint64(32) | np.uint64(program.key[r, 0])
            header[L.REGION_X], header[L.REGION_Y], whole_width = addresses.region
            launch[L.ABILITIES] |= Ability.IS_REGION if whole_width else 0
            header[L.REGION_OF] = whole_width if whole_width else header[P.WIDTH]
            height, width = header[P.HEIGHT], header[P.WIDTH]
            launch[L.ABILITIES] |= _ABILITY_OF_SOURCE[header[P.SOURCE]]
            launch[L.ABILITIES] |= _describe_values(program.opcode[r], program.args[r], header, r * slots)
            for k in range(program.passes[r, p, P.BEGIN], program.passes[r, p, P.END]):
                if IS_REAL_MAP[program.opcode[r, k]] and program.flags[r, k] > INTERPOLATION_MASK:
                    launch[L.ABILITIES] |= Ability.HAS_FOLD
            _add_row(launch, records.lists[1 + p], r, -(-height // block[0]) * -(-width // block[1]))
            prepared = 0
            if header[P.SOURCE] == PassSource.RESAMPLE:
                slot = header[P.FIRST] - r * slots
                taps_x, taps_y = tap_count(program.args[r, slot], program.flags[r, slot])
                header[L.TAPS_X], header[L.TAPS_Y], header[L.WEIGHTS] = taps_x, taps_y, weights_at
                weights_at += 4 * ((taps_x + 1) * width + (taps_y + 1) * height)
                prepared = -(-height // L.WEIGHTS_BLOCK) + -(-width // L.WEIGHTS_BLOCK)
            if header[P.NEEDS] and p > 0:
                records.launches[p, L.ABILITIES] |= Ability.MEASURES
            elif header[P.NEEDS]:
                seen_y = max(header[P.BOTTOM] - header[P.TOP], 0)
                seen_x = max(header[P.RIGHT] - header[P.LEFT], 0)
                prepared = max(-(-seen_y // block[0]), 1) * max(-(-seen_x // block[1]), 1)
            if prepared:
                _add_row(records.launches[0], records.lists[0], p * rows + r, prepared)
            image, stride_y, stride_x, stride_c = canvas[p % 2], 4 * width, 4, 1
        records.last_canvas[r] = image
        for p in range(program.num_passes[r], records.headers.shape[0]):
            records.headers[p, r, P.NEEDS] = 0


@pixel_kernel
def _copy_pass(row: Any, base: Any, header: Any) -> None:
    """A row of the pass table, slots counted from ``base``; all else of the header is cleared."""
    header[:] = 0
    for field in range(P.PASS_FIELDS):
        header[field] = row[field]
    for field in (P.BEGIN, P.END, P.FIRST, P.MAPS_END, P.VALUES, P.POSITION, P.STATISTICS, P.STATISTICS_END):
        header[field] += base


@pixel_kernel
def _add_row(launch: Any, entries: Any, entry: Any, tiles: Any) -> None:
    entries[launch[L.NUM_ROWS]] = entry
    launch[L.NUM_ROWS] += 1
    launch[L.NUM_TILES] = max(launch[L.NUM_TILES], tiles)


@pixel_kernel
def _describe_values(op: Any, args: Any, header: Any, base: Any) -> int:
    """ERASES of the header's slots -> abilities. ``base``: what slots are counted from."""
    abilities = 0
    for k in range(header[P.BEGIN] - base, header[P.END] - base):
        if op[k] == Op.HUE:
            abilities |= Ability.HAS_HUE
        elif op[k] == Op.CLAHE:
            abilities |= Ability.HAS_CLAHE
        elif IS_WARP[op[k]]:
            abilities |= Ability.HAS_WARP
        elif op[k] == Op.ERASE:
            abilities |= Ability.HAS_NOISE if args[k, 2] != 0.0 else 0
            if args[k, 7] != 0.0:
                header[L.ERASES] = 1
        elif op[k] == Op.OVERLAY:
            abilities |= Ability.HAS_OVERLAY
        elif KIND_OF[op[k]] == Kind.POSITION:
            abilities |= Ability.HAS_NOISE
        elif op[k] == Op.MAP_GRID:
            abilities |= Ability.HAS_GRID
    return abilities


@pixel_kernel
def fill_blend_headers(
    program: Any, headers: Any, row: Any, begins: Any, targets: Any, block: Any, blend_headers: Any, launch: Any
) -> None:
    """A header per output: of its first row's last pass, but over all the row's instructions. And the launch."""
    slots = program.opcode.shape[1]
    launch[:] = 0
    launch[L.NUM_ROWS] = len(targets)
    for n in range(len(targets)):
        r = row[begins[n]]
        header = blend_headers[n]
        for field in range(L.HEADER):
            header[field] = headers[program.num_passes[r] - 1, r, field]
        header[P.BEGIN], header[P.END] = r * slots, r * slots + program.length[r]
        header[L.TARGET], header[L.ERASES] = targets[n], 0
        tiles = -(-header[P.HEIGHT] // block[0]) * -(-header[P.WIDTH] // block[1])
        launch[L.NUM_TILES] = max(launch[L.NUM_TILES], tiles)
        launch[L.ABILITIES] |= _describe_values(program.opcode[r], program.args[r], header, r * slots)


class Offsets(NamedTuple):
    """Offsets of the tables that instructions point into."""

    kernels: Any
    luts: Any
    matrices: Any
    rectangles: Any
    grids: Any
    indices: Any  # of separable maps: source columns and lines
    statistics: Any  # tables made on the device


@pixel_kernel
def fill_instructions(program: Any, at: Any, code: Any, indices: Any) -> None:
    """Every instruction, and the tables of columns and lines. ``at``: Offsets."""
    used_indices, used_statistics = 0, 0
    code[:] = 0
    for r in range(program.opcode.shape[0]):
        height, width = int(program.in_shape[r, 0]), int(program.in_shape[r, 1])
        for k in range(program.length[r]):
            op, a, flag, c = program.opcode[r, k], program.args[r, k], program.flags[r, k], code[r, k]
            size, window, fill = program.out_size[r, k], program.window[r, k], program.fill[r, k]
            h, w = int(size[0]), int(size[1])
            kind = KIND_OF[op]
            c[L.OP], c[L.FLAG] = op, flag
            c[L.FILL] = np.int32(fill[0]) | np.int32(fill[1]) << 8 | np.int32(fill[2]) << 16
            if kind == Kind.GEOMETRY:
                c[L.CLASS], c[L.FLAG], c[L.COUNT] = L.MAP, flag & INTERPOLATION_MASK, flag >> INTERPOLATION_BITS
            if op == Op.MAP_FIXED:
                # Nothing of a map that misses is inside, perhaps by more than 32 bits can tell.
                if may_hit(a, window, size):
                    for i in range(6):
                        c[L.COEFFICIENT + i] = np.int32(a[i])
                    _copy_window(window, c)
            elif op == Op.MAP_SCALE or op == Op.MAP_PAD:
                columns, lines = indices[used_indices:], indices[used_indices + w :]
                if op == Op.MAP_SCALE:
                    scale_table(a[1], a[0], width, columns, w, a[4] != 0.0, flag >> INTERPOLATION_BITS)
                    scale_table(a[3], a[2], height, lines, h, False, flag >> INTERPOLATION_BITS)
                else:
                    pad_table(int(a[0]), flag, width, columns, w)
                    pad_table(int(a[1]), flag, height, lines, h)
                c[L.ARG] = at.indices + 4 * used_indices
                c[L.COEFFICIENT] = at.indices + 4 * (used_indices + w)
                used_indices += h + w
            elif kind == Kind.GEOMETRY:
                _copy_window(window, c)
                if op == Op.MAP_GRID:
                    c[L.COEFFICIENT] = at.grids + 2 * int(a[0])
            elif op == Op.CONVOLVE:
                c[L.ARG], c[L.FLAG] = at.kernels + 2 * int(a[0]), int(a[3])
                c[L.COEFFICIENT], c[L.COEFFICIENT + 1] = int(a[1]), int(a[2])
                c[L.COEFFICIENT + 2], c[L.COEFFICIENT + 3] = int(a[4]), int(a[5])
                c[L.COEFFICIENT + 4], c[L.COEFFICIENT + 5] = int(a[6]), int(a[7])
            elif op == Op.SHARPNESS:
                c[L.FLAG] = _sees_source_plainly(program, r, k)
            elif kind == Kind.STATISTIC:
                c[L.CLASS], c[L.ARG] = L.LOOKUP, at.statistics + L.TABLE * used_statistics
                used_statistics += 1
            elif op == Op.LUT:
                c[L.CLASS], c[L.ARG] = L.LOOKUP, at.luts + L.TABLE * int(a[0])
            elif kind == Kind.VALUE:
                c[L.CLASS] = L.VALUE
                c[L.ARG] = at.matrices + 48 * int(a[0]) if op == Op.COLOR_MATRIX else int(a[0])
            elif kind == Kind.POSITION:
                c[L.CLASS] = L.POSITION
                if op == Op.ERASE:
                    c[L.CLASS] = L.POSITION_NORMALIZED if a[7] != 0.0 else L.POSITION
                    c[L.ARG], c[L.COUNT] = at.rectangles + 16 * int(a[0]), int(a[1])
                elif op == Op.OVERLAY:
                    c[L.ARG], c[L.COUNT] = at.grids + 2 * int(a[0]), int(np.floor(a[7] * 32767 + 0.5))
                    for i in range(6):
                        c[L.COEFFICIENT + i] = int(a[1 + i])
            height, width = h, w


@pixel_kernel
def _sees_source_plainly(program: Any, r: Any, k: Any) -> bool:
    """True if nothing or a flip comes in its pass before the filter in slot k: maps that keep every pixel
    and who its neighbours are."""
    begin = 0
    for p in range(program.num_passes[r]):
        if program.passes[r, p, P.BEGIN] <= k:
            begin = program.passes[r, p, P.BEGIN]
    if begin == k:
        return True
    a, window, size = program.args[r, begin], program.window[r, begin], program.out_size[r, begin]
    if begin + 1 < k or program.opcode[r, begin] != Op.MAP_FIXED or a[1] != 0.0 or a[3] != 0.0:
        return False
    u, v = a[2] / 65536.0, a[5] / 65536.0
    far_u, far_v = u + a[0] / 65536.0 * (size[1] - 1), v + a[4] / 65536.0 * (size[0] - 1)
    in_x = min(u, far_u) >= window[1] and max(u, far_u) < window[3]
    in_y = min(v, far_v) >= window[0] and max(v, far_v) < window[2]
    return bool(abs(a[0]) == 65536.0 and abs(a[4]) == 65536.0 and in_x and in_y)


@pixel_kernel
def fill_maps(program: Any, at: Any, code: Any, records: Any) -> None:
    """The records of all real maps, and of chains that fold (program/places.py), which begin at the offset ``at``."""
    used = 0
    for r in range(program.opcode.shape[0]):
        for p in range(program.num_passes[r]):
            plan = program.passes[r, p]
            if plan[P.SOURCE] != PassSource.INTERPOLATED and plan[P.SOURCE] != PassSource.FOLDED:
                continue
            write_records(
                program.opcode[r], program.args[r], program.flags[r], program.window[r], program.out_size[r],
                plan[P.FIRST], plan[P.MAPS_END], records[used:],
            )  # fmt: skip
            for k in range(plan[P.FIRST], plan[P.MAPS_END]):
                if KIND_OF[program.opcode[r, k]] == Kind.GEOMETRY:
                    code[r, k, L.ARG] = at + 8 * RECORD * used
                    used += 1


@pixel_kernel
def _copy_window(window: Any, c: Any) -> None:
    for side in range(4):
        c[L.WINDOW + side] = window[side]
