"""The end of a tile: normalize, ERASE after Normalize, cast, store planar or interleaved; and blends of rows.

CPU counterparts: ``native/kernels/store.cpp`` and ``blend.cpp``; definition: ``tests/oracle/executor.py``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.element import (
    blue,
    full,
    green,
    pack,
    red,
    select_rgb,
    truncate_value,
)
from variegate.executors.cuda.kernels.fetch import pixels_of, tile_and_row
from variegate.executors.cuda.kernels.memory import (
    elements_at,
    float32s_at,
    float64s_at,
    int32s_at,
    int64s_at,
    load_inside,
    load_int,
    load_key,
    load_level,
    size_of,
)
from variegate.executors.cuda.kernels.values import erase_normalized
from variegate.program import passes as P


@triton.jit
def store_result(
    buffer,
    code,
    args,
    header,
    constants,
    begin,
    end,
    x,
    y,
    height,
    width,
    whole_x,
    whole_y,
    whole_width,
    inside,
    r,
    g,
    b,
    key_low,
    key_high,
    HAS_NOISE: tl.constexpr,
    RESULT: tl.constexpr,
    IS_PLANAR: tl.constexpr,
):
    """Store values ``r, g, b`` to the result at the target of ``header``.

    ``whole_*``: positions in the full image, if this is a region. ``constants``: float32 scale[3] and bias[3] for one
    channel, then for three, then the table of normal noise.
    """
    channels = load_int(header + L.CHANNELS)
    target = tl.load(header + L.TARGET).to(tl.pointer_type(RESULT))
    if IS_PLANAR:
        at = (y * width + x).to(tl.uint32)
        step = height.to(tl.int64) * width
    else:
        at = ((y * width + x) * channels).to(tl.uint32)
        step = tl.full([], 1, tl.int64)
    if RESULT.is_int():
        tl.store(target + at, r.to(RESULT), mask=inside)
        if channels == 3:
            tl.store(target + step + at, g.to(RESULT), mask=inside)
            tl.store(target + 2 * step + at, b.to(RESULT), mask=inside)
    else:
        scale = constants
        if channels == 3:
            scale += 6
        real_r = r.to(tl.float32) * tl.load(scale) + tl.load(scale + 3)
        real_g = g.to(tl.float32) * tl.load(scale + 1) + tl.load(scale + 4)
        real_b = b.to(tl.float32) * tl.load(scale + 2) + tl.load(scale + 5)
        if tl.load(header + L.ERASES) != 0:
            real_r, real_g, real_b = erase_normalized(
                buffer, code, args, header, constants, begin, end, whole_x, whole_y, whole_width, real_r, real_g,
                real_b, key_low, key_high, HAS_NOISE,
            )  # fmt: skip
        tl.store(target + at, real_r.to(RESULT), mask=inside)
        if channels == 3:
            tl.store(target + step + at, real_g.to(RESULT), mask=inside)
            tl.store(target + 2 * step + at, real_b.to(RESULT), mask=inside)


@triton.jit
def store_canvas(header, x, y, height, width, inside, r, g, b, FORMAT: tl.constexpr):
    """Store values for the next pass: a word per pixel; of deep images, a plane per channel."""
    target = tl.load(header + L.TARGET)
    at = (y * width + x).to(tl.uint32)
    if FORMAT >= L.UINT16:
        canvas = elements_at(target, FORMAT)
        element = canvas.dtype.element_ty
        tl.store(canvas + at, r.to(element), mask=inside)
        if load_int(header + L.CHANNELS) == 3:
            plane = height.to(tl.int64) * width
            tl.store(canvas + plane + at, g.to(element), mask=inside)
            tl.store(canvas + 2 * plane + at, b.to(element), mask=inside)
    else:
        tl.store(target.to(tl.pointer_type(tl.int32)) + at, pack(r, g, b), mask=inside)


@triton.jit
def _load_canvas(address, x, y, height, width, inside, channels, FORMAT: tl.constexpr):
    """Load pixels that ``store_canvas`` stored; 0 where ``inside`` is false."""
    at = (y * width + x).to(tl.uint32)
    if FORMAT >= L.UINT16:
        canvas = elements_at(address, FORMAT)
        plane = height.to(tl.int64) * width
        in_color = inside & (x * 0 + channels == 3)
        pixel = (
            load_level(canvas + at, inside, FORMAT),
            load_level(canvas + plane + at, in_color, FORMAT),
            load_level(canvas + 2 * plane + at, in_color, FORMAT),
        )
    else:
        pixel = load_inside(address.to(tl.pointer_type(tl.int32)) + at, inside)
    return pixel


@triton.jit
def _to_value(total, FORMAT: tl.constexpr):
    """Convert a sum of rows to a value. Floats may be outside black and white."""
    if FORMAT != L.FLOAT32:
        total = truncate_value(total, FORMAT)
    return total


@triton.jit
def _alpha_blend(total, above, alpha, FORMAT: tl.constexpr):
    """Composite ``above`` over the value of a sum by ``alpha`` / 255, rounded to the nearest.

    CPU counterpart: ``alpha_blend`` in ``native/kernels/blend.cpp``; definition: ``alpha_blend`` in
    ``tests/oracle/executor.py``.
    """
    if FORMAT >= L.UINT16:
        below = _to_value(total, FORMAT)
        mixed = below * (255 - alpha) + above * alpha
        # Sums of uint16 are exact in float32.
        if FORMAT == L.UINT16:
            mixed += 127.0
        mixed = tl.div_rn(mixed, full(mixed, 255.0, FORMAT))
        if FORMAT == L.UINT16:
            mixed = tl.floor(mixed)
    else:
        total = truncate_value(total, FORMAT) * (255 - alpha) + above.to(tl.int32) * alpha + 128
        mixed = ((total + (total >> 8)) >> 8).to(tl.float32)
    return mixed


@triton.jit(do_not_specialize=["rows"])
def blend_rows(
    buffer,
    code_at,
    args_at,
    headers_at,
    begins_at,
    starts_at,
    canvases_at,
    weights_at,
    boxes_at,
    alpha_at,
    alphas_at,
    constants_at,
    rows,
    HAS_NOISE: tl.constexpr,
    HAS_ALPHA: tl.constexpr,
    FORMAT: tl.constexpr,
    RESULT: tl.constexpr,
    IS_PLANAR: tl.constexpr,
    BLOCK_Y: tl.constexpr,
    BLOCK_X: tl.constexpr,
    VERSION: tl.constexpr,
):
    """Blend canvases into ``rows`` outputs.

    Output n is ``starts[n]`` (float32) plus entries ``begins[n]`` to ``begins[n + 1]`` (int32), in order. Per entry:
    ``canvases`` (int64 addresses), ``weights`` (float32), ``boxes`` (int32[4]: top, left, bottom, right) and
    ``alpha_at`` (int64 offset in the planes at ``alphas_at``; -1 for no alpha). ``headers_at`` has a header per output:
    its first row's last pass, with the result as target.
    """
    code = int32s_at(buffer, code_at)
    args = float64s_at(buffer, args_at)
    tile, n = tile_and_row()
    if n >= rows:
        return
    header = int64s_at(buffer, headers_at) + n * L.HEADER
    height, width = size_of(header)
    tiles_x = tl.cdiv(width, BLOCK_X)
    if tile >= tiles_x * tl.cdiv(height, BLOCK_Y):
        return
    x, y = pixels_of(tile, tiles_x, BLOCK_Y, BLOCK_X)
    inside = (y < height) & (x < width)
    begins = int32s_at(buffer, begins_at) + n
    canvases = int64s_at(buffer, canvases_at)
    weights = float32s_at(buffer, weights_at)
    boxes = int32s_at(buffer, boxes_at)
    start = tl.load(float32s_at(buffer, starts_at) + n)
    if FORMAT == L.FLOAT32:
        # It rounds integers.
        start *= 0.0
    total_r = tl.full([BLOCK_Y * BLOCK_X], 0.0, tl.float32) + start
    total_g = total_r
    total_b = total_r
    for i in range(tl.load(begins), tl.load(begins + 1)):
        canvas = tl.load(canvases + i)
        weight = tl.load(weights + i)
        box = boxes + 4 * i
        in_y = (y >= tl.load(box)) & (y < tl.load(box + 2))
        in_x = (x >= tl.load(box + 1)) & (x < tl.load(box + 3))
        # Masked pixels are 0 and add weight * 0 = +0, which leaves a sum unchanged, because sums are never -0.
        seen = inside & in_y & in_x
        pixel = _load_canvas(canvas, x, y, height, width, seen, load_int(header + L.CHANNELS), FORMAT)
        new_r = total_r + weight * red(pixel).to(tl.float32)
        new_g = total_g + weight * green(pixel).to(tl.float32)
        new_b = total_b + weight * blue(pixel).to(tl.float32)
        if HAS_ALPHA:
            first = tl.load(int64s_at(buffer, alpha_at) + i)
            is_laid = (first + 0 * x) >= 0  # broadcast to a block, for the masks
            plane = (y - tl.load(box)) * (tl.load(box + 3) - tl.load(box + 1)) + x - tl.load(box + 1)
            # Outside the box alpha is 0, which leaves the value below, truncated as it will be in the end.
            alpha = load_inside(buffer + alphas_at + first + plane, inside & in_y & in_x & is_laid)
            share = alpha.to(tl.int32)
            over_r = _alpha_blend(total_r, red(pixel), share, FORMAT)
            over_g = _alpha_blend(total_g, green(pixel), share, FORMAT)
            over_b = _alpha_blend(total_b, blue(pixel), share, FORMAT)
            new_r, new_g, new_b = select_rgb(is_laid, over_r, over_g, over_b, new_r, new_g, new_b)
        total_r = new_r
        total_g = new_g
        total_b = new_b
    constants = float32s_at(buffer, constants_at)
    key_low, key_high = load_key(header)
    begin = load_int(header + P.BEGIN)
    end = load_int(header + P.END)
    store_result(
        buffer, code, args, header, constants, begin, end, x, y, height, width, x, y, width, inside,
        _to_value(total_r, FORMAT), _to_value(total_g, FORMAT), _to_value(total_b, FORMAT), key_low, key_high,
        HAS_NOISE, RESULT, IS_PLANAR,
    )  # fmt: skip
