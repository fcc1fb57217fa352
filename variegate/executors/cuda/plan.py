"""What every pass of every row reads, does and writes, as the heads and instructions of ``layout.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cuda import layout as L
from variegate.program.compiled import kernel
from variegate.program.lowering.merge import KIND_OF
from variegate.program.ops import Interpolation, Kind, Op
from variegate.program.places import may_hit, pad_table, scale_table, source_rectangle

_GEOMETRY, _RESAMPLE, _VALUE, _STATISTIC, _NEIGHBOURHOOD, _POSITION = (
    int(kind) for kind in (Kind.GEOMETRY, Kind.RESAMPLE, Kind.VALUE, Kind.STATISTIC, Kind.NEIGHBOURHOOD, Kind.POSITION)
)
_FIXED, _SCALE, _FLOAT, _PERSPECTIVE, _PAD, _CONVOLVE, _LUT = (
    int(op) for op in (Op.MAP_FIXED, Op.MAP_SCALE, Op.MAP_FLOAT, Op.MAP_PERSPECTIVE, Op.MAP_PAD, Op.CONVOLVE, Op.LUT)
)
_HUE, _MATRIX, _POINT, _ERASE, _CONTRAST = (
    int(op) for op in (Op.HUE, Op.COLOR_MATRIX, Op.POINT, Op.ERASE, Op.CONTRAST)
)
_BICUBIC = int(Interpolation.BICUBIC)

# What a launch must be able to do, beyond nearest maps and tables.
REAL, FILTER, RESAMPLE, HUE, NOISE, MEASURES = 1, 2, 4, 8, 16, 32
# Fields of a launch: rows in its list, tiles of the largest, features.
NUM_ROWS, NUM_TILES, FEATURES = range(3)
# Columns or lines of a resize whose weights one program works out.
WEIGHTS_BLOCK = 128
_TABLE = 768


@kernel
def tap_count(args: Any, flag: Any) -> Any:
    """Weights per output (along x, along y) of a RESIZED_CROP, at most."""
    radius = 2.0 if flag == _BICUBIC else 1.0
    taps_x = 2 * int(np.ceil(radius * max(_scale(args[1], args[3], args[5]), 1.0))) + 1
    taps_y = 2 * int(np.ceil(radius * max(_scale(args[0], args[2], args[4]), 1.0))) + 1
    return taps_x, taps_y


@kernel
def _scale(start: Any, extent: Any, size: Any) -> Any:
    first = np.float32(start)
    return np.float64(np.float32(np.float32(start + extent) - first)) / size


@kernel
def measure(
    opcode: Any,
    args: Any,
    flags: Any,
    out_size: Any,
    pass_of: Any,
    length: Any,
    num_passes: Any,
    in_shape: Any,
    is_blended: Any,
) -> Any:
    """Room that a program needs: (int32 indices, statistics, int32 resize weights, canvas pixels)."""
    indices, statistics, weights, pixels = 0, 0, 0, 0
    for r in range(opcode.shape[0]):
        for k in range(length[r]):
            op, h, w = opcode[r, k], int(out_size[r, k, 0]), int(out_size[r, k, 1])
            kind = KIND_OF[op]
            if op == _SCALE or op == _PAD:
                indices += h + w
            elif kind == _STATISTIC:
                statistics += 1
            elif kind == _RESAMPLE:
                taps_x, taps_y = tap_count(args[r, k], flags[r, k])
                weights += (taps_x + 1) * w + (taps_y + 1) * h
        first, second = _canvases(out_size[r], pass_of[r], length[r], num_passes[r], in_shape[r], is_blended)
        pixels += first + second
    return indices, statistics, weights, pixels


@kernel
def _canvases(out_size: Any, pass_of: Any, length: Any, num_passes: Any, in_shape: Any, is_blended: Any) -> Any:
    """Pixels of a row's two canvases, which its passes write in turn. The last pass writes none, unless rows blend."""
    sizes = (0, 0)
    written = num_passes if is_blended else num_passes - 1
    if length == 0 and is_blended:
        # A row without instructions has one pass that copies its image.
        sizes = (_pixels(in_shape), 0)
    for k in range(length):
        if (k + 1 == length or pass_of[k + 1] != pass_of[k]) and pass_of[k] < written:
            size = _pixels(out_size[k])
            sizes = (max(sizes[0], size), sizes[1]) if pass_of[k] % 2 == 0 else (sizes[0], max(sizes[1], size))
    return sizes


@kernel
def _pixels(size: Any) -> Any:
    """Of an image, in whole groups of four, so that what lies behind it stays aligned."""
    return (np.int64(size[0]) * size[1] + 3) // 4 * 4


@kernel
def fill_code(
    opcode: Any,
    args: Any,
    flags: Any,
    fill: Any,
    out_size: Any,
    window: Any,
    in_shape: Any,
    length: Any,
    kernel_at: Any,
    luts_at: Any,
    matrices_at: Any,
    rectangles_at: Any,
    indices_at: Any,
    statistics_at: Any,
    code: Any,
    indices: Any,
) -> None:
    """Every instruction, and the tables of columns and lines. ``*_at``: offsets; ``kernel_at``: one per kernel."""
    used_indices, used_statistics = 0, 0
    code[:] = 0
    for r in range(opcode.shape[0]):
        height, width = int(in_shape[r, 0]), int(in_shape[r, 1])
        for k in range(length[r]):
            op, a, c = opcode[r, k], args[r, k], code[r, k]
            h, w = int(out_size[r, k, 0]), int(out_size[r, k, 1])
            kind = KIND_OF[op]
            c[L.OP], c[L.FLAG] = op, flags[r, k]
            c[L.FILL] = np.int32(fill[r, k, 0]) | np.int32(fill[r, k, 1]) << 8 | np.int32(fill[r, k, 2]) << 16
            if op == _FIXED:
                # Nothing of a map that misses is inside, perhaps by more than 32 bits can tell.
                if may_hit(a, window[r, k], out_size[r, k]):
                    for i in range(6):
                        c[L.COEFFICIENT + i] = np.int32(a[i])
                    c[L.WINDOW : L.WINDOW + 4] = window[r, k]
            elif op == _SCALE or op == _PAD:
                columns, lines = indices[used_indices:], indices[used_indices + w :]
                if op == _SCALE:
                    scale_table(a[1], a[0], width, columns, w, a[4] != 0.0)
                    scale_table(a[3], a[2], height, lines, h, False)
                else:
                    pad_table(int(a[0]), flags[r, k], width, columns, w)
                    pad_table(int(a[1]), flags[r, k], height, lines, h)
                c[L.ARG] = indices_at + 4 * used_indices
                c[L.COEFFICIENT] = indices_at + 4 * (used_indices + w)
                used_indices += h + w
            elif kind == _GEOMETRY:
                c[L.WINDOW : L.WINDOW + 4] = window[r, k]
            elif op == _CONVOLVE:
                c[L.ARG], c[L.FLAG] = kernel_at[int(a[0])], int(a[3])
                c[L.COEFFICIENT], c[L.COEFFICIENT + 1] = int(a[1]), int(a[2])
            elif kind == _STATISTIC:
                c[L.CLASS], c[L.ARG] = L.LOOKUP, statistics_at + _TABLE * used_statistics
                used_statistics += 1
            elif op == _LUT:
                c[L.CLASS], c[L.ARG] = L.LOOKUP, luts_at + _TABLE * int(a[0])
            elif kind == _VALUE:
                c[L.CLASS] = L.VALUE
                c[L.ARG] = matrices_at + 48 * int(a[0]) if op == _MATRIX else int(a[0])
            elif kind == _POSITION:
                c[L.CLASS] = L.PLACE
                if op == _ERASE:
                    c[L.CLASS] = L.PLACE_NORMALIZED if a[7] != 0.0 else L.PLACE
                    c[L.ARG], c[L.COUNT] = rectangles_at + 16 * int(a[0]), int(a[1])
            height, width = h, w


@kernel
def fill_heads(
    opcode: Any,
    args: Any,
    flags: Any,
    out_size: Any,
    window: Any,
    pass_of: Any,
    length: Any,
    num_passes: Any,
    in_shape: Any,
    ids: Any,
    sources: Any,
    strides: Any,
    targets: Any,
    canvases: Any,
    weights_at: Any,
    is_blended: Any,
    block: Any,
    heads: Any,
    last_canvas: Any,
    lists: Any,
    launches: Any,
) -> None:
    """Every head, the lists of rows per launch, and the launches.

    ``sources[R]``, ``strides[R, 3]`` (bytes along y, x and channels), ``targets[R]``: where images lie and results go.
    ``canvases``: an address. ``last_canvas[R]`` gets the canvas that a row's last pass wrote, where rows blend.
    ``lists[0]`` holds the heads that need preparation, ``lists[1 + p]`` the rows of pass p; ``launches`` likewise.
    """
    rows, slots = opcode.shape
    launches[:] = 0
    for r in range(rows):
        first, second = _canvases(out_size[r], pass_of[r], length[r], num_passes[r], in_shape[r], is_blended)
        canvas = (canvases, canvases + 4 * first)
        canvases += 4 * (first + second)
        source, stride_y, stride_x, stride_c = sources[r], strides[r, 0], strides[r, 1], strides[r, 2]
        height, width, channels = int(in_shape[r, 0]), int(in_shape[r, 1]), int(in_shape[r, 2])
        begin = 0
        for p in range(num_passes[r]):
            end = begin
            while end < length[r] and pass_of[r, end] == p:
                end += 1
            h, w = height, width
            if end > begin:
                h, w = int(out_size[r, end - 1, 0]), int(out_size[r, end - 1, 1])
            head, launch = heads[p, r], launches[1 + p]
            head[:] = 0
            is_last = p == num_passes[r] - 1
            is_final = is_last and not is_blended
            head[L.BEGIN], head[L.END] = r * slots + begin, r * slots + end
            head[L.SOURCE], head[L.STRIDE_Y], head[L.STRIDE_X], head[L.STRIDE_C] = source, stride_y, stride_x, stride_c
            head[L.CHANNELS], head[L.IN_HEIGHT], head[L.IN_WIDTH] = channels, height, width
            head[L.OUT_HEIGHT], head[L.OUT_WIDTH], head[L.IS_FINAL] = h, w, is_final
            head[L.TARGET] = targets[r] if is_final else canvas[p % 2]
            head[L.ID_LOW], head[L.ID_HIGH] = ids[r] & np.uint64(0xFFFFFFFF), ids[r] >> np.uint64(32)
            launch[FEATURES] |= _describe_source(opcode[r], begin, end, r * slots, head)
            launch[FEATURES] |= _describe_values(opcode[r], args[r], begin, end, head)
            _describe_statistics(opcode[r], args[r], out_size[r], window[r], begin, end, r * slots, height, width, head)
            tiles = -(-h // block[0]) * -(-w // block[1])
            lists[1 + p, launch[NUM_ROWS]] = r
            launch[NUM_ROWS] += 1
            launch[NUM_TILES] = max(launch[NUM_TILES], tiles)
            prepared = 0
            if head[L.KIND] == L.RESAMPLE:
                slot = head[L.FIRST] - r * slots
                taps_x, taps_y = tap_count(args[r, slot], flags[r, slot])
                head[L.TAPS_X], head[L.TAPS_Y], head[L.WEIGHTS] = taps_x, taps_y, weights_at
                weights_at += 4 * ((taps_x + 1) * w + (taps_y + 1) * h)
                prepared = -(-h // WEIGHTS_BLOCK) + -(-w // WEIGHTS_BLOCK)
            if head[L.NEEDS] and p > 0:
                launches[p, FEATURES] |= MEASURES
            elif head[L.NEEDS]:
                seen_y, seen_x = max(head[L.BOTTOM] - head[L.TOP], 0), max(head[L.RIGHT] - head[L.LEFT], 0)
                prepared = max(-(-seen_y // block[0]), 1) * max(-(-seen_x // block[1]), 1)
            if prepared:
                lists[0, launches[0, NUM_ROWS]] = p * rows + r
                launches[0, NUM_ROWS] += 1
                launches[0, NUM_TILES] = max(launches[0, NUM_TILES], prepared)
            source, stride_y, stride_x, stride_c = canvas[p % 2], 4 * w, 4, 1
            height, width, begin = h, w, end
        last_canvas[r] = source
        for p in range(num_passes[r], heads.shape[0]):
            heads[p, r, L.NEEDS] = 0


@kernel
def _describe_source(op: Any, begin: Any, end: Any, base: Any, head: Any) -> int:
    """KIND, FIRST, MAPS_END and VALUES of a pass whose slots count from ``base`` -> features."""
    kind, first, maps_end, features = L.CHAIN, begin, begin, 0
    values = begin
    for k in range(begin, end):
        group = KIND_OF[op[k]]
        if group == _NEIGHBOURHOOD:
            kind, first, maps_end, values, features = L.FILTER, k, k, k, FILTER
        elif group == _RESAMPLE:
            kind, first, maps_end, features = L.RESAMPLE, k, k, RESAMPLE
        elif group == _GEOMETRY:
            maps_end = k + 1
            if op[k] == _SCALE or op[k] == _PAD:
                kind, first = L.TABLE, k
            elif op[k] != _FIXED and kind != L.REAL:
                kind, first, values, features = L.REAL, k, k, REAL
    head[L.KIND] = kind
    head[L.FIRST], head[L.MAPS_END], head[L.VALUES] = base + first, base + maps_end, base + values
    return features


@kernel
def _describe_values(op: Any, args: Any, begin: Any, end: Any, head: Any) -> int:
    """ERASES of a pass -> features."""
    features = 0
    for k in range(begin, end):
        if op[k] == _HUE:
            features |= HUE
        elif op[k] == _ERASE:
            features |= NOISE if args[k, 2] != 0.0 else 0
            if args[k, 7] != 0.0:
                head[L.ERASES] = 1
        elif KIND_OF[op[k]] == _POSITION:
            features |= NOISE
    return features


@kernel
def _describe_statistics(
    op: Any,
    args: Any,
    out_size: Any,
    window: Any,
    begin: Any,
    end: Any,
    base: Any,
    height: Any,
    width: Any,
    head: Any,
) -> None:
    """NEEDS and what of the source the pass's statistics see."""
    map_slot, needs = -1, 0
    for k in range(begin, end):
        kind = KIND_OF[op[k]]
        if kind == _GEOMETRY:
            map_slot = k
        elif kind == _STATISTIC:
            if needs == 0:
                head[L.PREFIX_END] = base + k
                rectangle, outside = (0, 0, height, width), 0
                if map_slot >= 0:
                    h, w = np.int64(out_size[map_slot, 0]), np.int64(out_size[map_slot, 1])
                    rectangle = _seen(args[map_slot], window[map_slot], out_size[map_slot])
                    outside = h * w - max(0, rectangle[2] - rectangle[0]) * max(0, rectangle[3] - rectangle[1])
                head[L.TOP], head[L.LEFT], head[L.BOTTOM], head[L.RIGHT] = rectangle
                head[L.OUTSIDE] = outside
            needs |= L.NEEDS_LUMA if op[k] == _CONTRAST else L.NEEDS_COUNTS
            head[L.STATISTICS_END] = base + k + 1
    head[L.NEEDS] = needs


@kernel
def _seen(a: Any, window: Any, size: Any) -> Any:
    top, left, bottom, right = source_rectangle(a, window, size[0], size[1])
    return np.int64(top), np.int64(left), np.int64(bottom), np.int64(right)


@kernel
def fill_blend_heads(
    opcode: Any,
    args: Any,
    length: Any,
    num_passes: Any,
    heads: Any,
    order: Any,
    begins: Any,
    targets: Any,
    block: Any,
    blend_heads: Any,
    launch: Any,
) -> None:
    """A head per output: of its first row's last pass, but over all the row's instructions. And the launch."""
    slots = opcode.shape[1]
    launch[:] = 0
    launch[NUM_ROWS] = len(targets)
    for n in range(len(targets)):
        r = order[begins[n]]
        head = blend_heads[n]
        head[:] = heads[num_passes[r] - 1, r]
        head[L.BEGIN], head[L.END], head[L.TARGET] = r * slots, r * slots + length[r], targets[n]
        h, w = head[L.OUT_HEIGHT], head[L.OUT_WIDTH]
        launch[NUM_TILES] = max(launch[NUM_TILES], -(-h // block[0]) * -(-w // block[1]))
        head[L.ERASES] = 0
        launch[FEATURES] |= _describe_values(opcode[r], args[r], 0, length[r], head)
