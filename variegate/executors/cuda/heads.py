"""What every pass of every row reads, does and writes: the heads of ``layout.py``, and the launches they make."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.plan import (
    FEATURES,
    FILTER,
    HUE,
    MEASURES,
    NOISE,
    NUM_ROWS,
    NUM_TILES,
    REAL,
    RESAMPLE,
    WEIGHTS_BLOCK,
    canvas_pixels,
    tap_count,
)
from variegate.program import passes as P
from variegate.program.compiled import kernel
from variegate.program.ops import KIND_OF, Kind, Op

_POSITION, _HUE, _ERASE = int(Kind.POSITION), int(Op.HUE), int(Op.ERASE)

# What kernels tell apart of the sources of a pass (a stretch and a direct read are chains of one map and of none), and
# what a launch must be able to do for it.
_KIND_OF_SOURCE = np.zeros(len(P.PassSource), np.int64)
for _source, _kind in (
    (P.PassSource.TABLE, L.TABLE),
    (P.PassSource.INTERPOLATED, L.REAL),
    (P.PassSource.FILTER, L.FILTER),
    (P.PassSource.RESAMPLE, L.RESAMPLE),
):
    _KIND_OF_SOURCE[_source] = _kind
_FEATURES_OF_KIND = np.zeros(5, np.int64)
_FEATURES_OF_KIND[[L.REAL, L.FILTER, L.RESAMPLE]] = REAL, FILTER, RESAMPLE


@kernel
def fill_heads(
    opcode: Any,
    args: Any,
    flags: Any,
    out_size: Any,
    passes: Any,
    num_passes: Any,
    in_shape: Any,
    ids: Any,
    keys: Any,
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
        first, second = canvas_pixels(out_size[r], passes[r], num_passes[r], in_shape[r], is_blended)
        canvas = (canvases, canvases + 4 * first)
        canvases += 4 * (first + second)
        source, stride_y, stride_x, stride_c = sources[r], strides[r, 0], strides[r, 1], strides[r, 2]
        height, width, channels = int(in_shape[r, 0]), int(in_shape[r, 1]), int(in_shape[r, 2])
        for p in range(num_passes[r]):
            plan = passes[r, p]
            begin, end = plan[P.BEGIN], plan[P.END]
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
            head[L.KEY] = np.uint64(keys[r, 1]) << np.uint64(32) | np.uint64(keys[r, 0])
            launch[FEATURES] |= _describe_source(plan, r * slots, head)
            launch[FEATURES] |= _describe_values(opcode[r], args[r], begin, end, head)
            _describe_statistics(plan, r * slots, head)
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
            height, width = h, w
        last_canvas[r] = source
        for p in range(num_passes[r], heads.shape[0]):
            heads[p, r, L.NEEDS] = 0


@kernel
def _describe_source(plan: Any, base: Any, head: Any) -> int:
    """KIND, FIRST, MAPS_END and VALUES of a pass whose slots count from ``base`` -> features."""
    kind = _KIND_OF_SOURCE[plan[P.SOURCE]]
    head[L.KIND] = kind
    head[L.FIRST], head[L.MAPS_END], head[L.VALUES] = (
        base + plan[P.FIRST],
        base + plan[P.MAPS_END],
        base + plan[P.VALUES],
    )
    return _FEATURES_OF_KIND[kind]


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
def _describe_statistics(plan: Any, base: Any, head: Any) -> None:
    """NEEDS and what of the source the pass's statistics see."""
    head[L.NEEDS] = plan[P.NEEDS]
    if plan[P.NEEDS] != 0:
        head[L.PREFIX_END], head[L.STATISTICS_END] = base + plan[P.STATISTICS], base + plan[P.STATISTICS_END]
        head[L.TOP], head[L.LEFT], head[L.BOTTOM], head[L.RIGHT] = (
            plan[P.TOP],
            plan[P.LEFT],
            plan[P.BOTTOM],
            plan[P.RIGHT],
        )
        head[L.OUTSIDE] = plan[P.OUTSIDE]


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
