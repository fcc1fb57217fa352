"""Pixels of one kernel program: their output positions, their source coordinates after maps, and loads from the source.

CPU counterparts of maps: ``native/coords.h`` and ``native/kernels/interpolate.cpp``, ``nearest.cpp``, ``fold.cpp`` and
``displace.cpp``; definition: ``tests/oracle/places.py``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.element import channels_of, clamp, pack
from variegate.executors.cuda.kernels.memory import (
    elements_at,
    int16s_at,
    int32s_at,
    int64s_at,
    load_inside,
    load_int,
    load_level,
)
from variegate.program import coords as R
from variegate.program import ops
from variegate.program import passes as P


@triton.jit
def tile_and_row():
    """Tile and row of this program; rows use two grid axes, because CUDA limits the second to 65,535."""
    return tl.program_id(0), tl.program_id(1) + tl.program_id(2) * L.ROWS_SIDE_BY_SIDE


@triton.jit
def pixels_of(tile, tiles_x, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr):
    """Columns and lines of tile number ``tile``, as flat int32 tensors. ``tiles_x``: tiles per line of tiles."""
    i = tl.arange(0, BLOCK_Y * BLOCK_X)
    # An unsigned division takes half the instructions.
    above = (tile.to(tl.uint32) // tiles_x.to(tl.uint32)).to(tl.int32)
    x = (tile - above * tiles_x) * BLOCK_X + i % BLOCK_X
    y = above * BLOCK_Y + i // BLOCK_X
    return x, y


@triton.jit
def fetch(header, x, y, inside, FORMAT: tl.constexpr):
    """Pixels at integer positions ``x, y`` (int32); 0 where ``inside`` is false.

    Bytes above a pixel's channels are arbitrary.
    """
    if FORMAT == L.CANVAS:
        pixel = _fetch_word(header, x, y, inside)
    elif FORMAT == L.INTERLEAVED:
        pixel = _fetch_unaligned(header, x, y, inside)
    else:
        r, g, b = _fetch_channels(header, x, y, inside, FORMAT)
        pixel = pack(r, g, b)
    return pixel


@triton.jit
def fetch_levels(header, x, y, inside, FORMAT: tl.constexpr):
    """``fetch`` with three separate channels: fewer instructions if only one pixel is read."""
    if FORMAT == L.CANVAS:
        pixel = _fetch_word(header, x, y, inside)
        r, g, b = channels_of(pixel)
    else:
        r, g, b = _fetch_channels(header, x, y, inside, FORMAT)
    return r, g, b


# An image spans less than 2**32 elements, so offsets are uint32, which take one instruction to add to an address.


@triton.jit
def _fetch_word(header, x, y, inside):
    source = tl.load(header + L.IMAGE).to(tl.pointer_type(tl.int32))
    at = (y * load_int(header + L.IN_WIDTH) + x).to(tl.uint32)
    return load_inside(source + at, inside)


@triton.jit
def _fetch_unaligned(header, x, y, inside):
    """Load one or two aligned words instead of three bytes, to save requests.

    The second word is loaded only if a channel is in it, so that no load is outside the image's memory.
    """
    source = tl.load(header + L.IMAGE)
    at = y * load_int(header + L.STRIDE_Y) + x * load_int(header + L.STRIDE_X)
    channels = load_int(header + L.CHANNELS)
    ahead = source & 3
    byte = (at + ahead.to(tl.int32)).to(tl.uint32)
    word = (source - ahead).to(tl.pointer_type(tl.uint32)) + (byte >> 2)
    lead = byte & 3
    low = load_inside(word, inside)
    high = load_inside(word + 1, inside & (lead.to(tl.int32) > 4 - channels))
    # Two shifts, because a single shift by 32 bits is undefined.
    return ((low >> (8 * lead)) | ((high << 1) << (31 - 8 * lead))).to(tl.int32)


@triton.jit
def _fetch_channels(header, x, y, inside, FORMAT: tl.constexpr):
    at = y * load_int(header + L.STRIDE_Y) + x * load_int(header + L.STRIDE_X)
    element = elements_at(tl.load(header + L.IMAGE), FORMAT) + at.to(tl.uint32)
    in_color = inside & (x * 0 + load_int(header + L.CHANNELS) == 3)
    if FORMAT == L.INTERLEAVED:
        next_channel = tl.full([], 1, tl.int64)
    else:
        next_channel = tl.load(header + L.STRIDE_C)
    return (
        load_level(element, inside, FORMAT),
        load_level(element + next_channel, in_color, FORMAT),
        load_level(element + 2 * next_channel, in_color, FORMAT),
    )


@triton.jit
def step(code, slot, x, y):
    """Apply the fixed map at ``slot`` -> (column, line, stage); see ``trace_maps``."""
    at = code + slot * L.CODE
    a = at + L.PARAMS
    u = (tl.load(a) * x + tl.load(a + 1) * y + tl.load(a + 2)) >> 16
    v = (tl.load(a + 3) * x + tl.load(a + 4) * y + tl.load(a + 5)) >> 16
    window = at + L.WINDOW
    top = tl.load(window)
    left = tl.load(window + 1)
    # As unsigned, negative numbers are large, so that one comparison checks both bounds.
    in_y = (v - top).to(tl.uint32) < (tl.load(window + 2) - top).to(tl.uint32)
    in_x = (u - left).to(tl.uint32) < (tl.load(window + 3) - left).to(tl.uint32)
    return u, v, tl.where(in_y & in_x, -1, slot)


@triton.jit
def trace_maps(code, begin, end, x, y):
    """Apply the fixed maps of slots begin..end, last to first -> (column, line, stage).

    ``stage`` is the slot of the map at which a pixel left the image, or -1. The position of a pixel that left is
    arbitrary.
    """
    stage = tl.full(x.shape, -1, tl.int32)
    for i in range(end - begin):
        slot = end - 1 - i
        if tl.load(code + slot * L.CODE + L.OP) == ops.Op.MAP_FIXED:
            x, y, left_at = step(code, slot, x, y)
            # A pixel first leaves at the highest slot; its later positions do not matter.
            stage = tl.maximum(stage, left_at)
    return x, y, stage


@triton.jit
def trace_tables(buffer, code, header, x, y, inside):
    """Apply a map given as a table of columns and a table of lines (-1: outside); returns as ``trace_maps``."""
    slot = load_int(header + P.FIRST)
    at = code + slot * L.CODE
    columns = int32s_at(buffer, tl.load(at + L.ARG))
    lines = int32s_at(buffer, tl.load(at + L.PARAMS))
    u = tl.load(columns + x, mask=inside, other=-1)
    v = tl.load(lines + y, mask=inside, other=-1)
    return u, v, tl.where((u < 0) | (v < 0), slot, -1)


@triton.jit
def trace_folded(buffer, code, begin, end, x, y):
    """``trace_maps`` by the maps' records (``program/coords.py``); no pixel leaves at a map that folds."""
    stage = tl.full(x.shape, -1, tl.int32)
    for i in range(end - begin):
        slot = end - 1 - i
        at = code + slot * L.CODE
        if tl.load(at + L.OP) == ops.Op.MAP_FIXED:
            record = int64s_at(buffer, tl.load(at + L.ARG))
            u = linear_form(record + R.U, x, y) >> 16
            v = linear_form(record + R.V, x, y) >> 16
            span_u = tl.load(record + R.SPAN_U)
            span_v = tl.load(record + R.SPAN_V)
            mode = tl.load(record + R.FOLD)
            if mode != 0:
                u = fold_index(u, span_u, mode)
                v = fold_index(v, span_v, mode)
            is_inside = (u >= 0) & (u < span_u) & (v >= 0) & (v < span_v)
            stage = tl.maximum(stage, tl.where(is_inside, -1, slot))
            # Pixels that left may have any position that fits into int32.
            u = tl.where(is_inside, u, 0)
            v = tl.where(is_inside, v, 0)
            x = (u + tl.load(record + R.ORIGIN_U)).to(tl.int32)
            y = (v + tl.load(record + R.ORIGIN_V)).to(tl.int32)
    return x, y, stage


@triton.jit
def _modulo(a, n):
    """The remainder of ``a`` by ``n`` that is not negative."""
    return (a % n + n) % n


@triton.jit
def fold_index(i, n, mode):
    """``fold_index`` of ``native/coords.h``, for integers of any width."""
    period = tl.where(mode == ops.PadMode.REFLECT, tl.maximum(2 * n - 2, 1), 2 * n)
    period = tl.where(mode == ops.PadMode.WRAP, n, period)
    within = _modulo(i, period)
    back = tl.where(mode == ops.PadMode.REFLECT, period - within, period - 1 - within)
    within = tl.where(within >= n, back, within)
    return tl.where(mode == ops.PadMode.EDGE, clamp(i, 0, n - 1), within)


@triton.jit
def fold_place(place, n, mode, bits, slack):
    """``fold_position`` of ``native/coords.h``, for int64."""
    half = (n * 0 + 1) << (bits - 1)
    span = n << bits
    lead = tl.where(mode == ops.PadMode.REFLECT, half, 0)
    length = span - 2 * lead
    turned = _modulo(place - lead, tl.maximum(2 * length, 1))
    turned = lead + tl.where(turned > length, 2 * length - turned, turned)
    folded = tl.where(mode == ops.PadMode.WRAP, _modulo(place, span), turned)
    low = half - slack
    high = span - half + slack
    return tl.where(mode == ops.PadMode.EDGE, clamp(place, low, high), folded)


@triton.jit
def _folded_places(record, a, b, depth, bits, slack):
    """Source coordinates by the linear forms of a map that folds, int32, less half a pixel."""
    exponent = load_int(record + R.EXPONENT)
    shift = tl.load(record + R.SHIFT)
    mode = tl.load(record + R.FOLD)
    half = (1 << bits) >> 1
    if exponent == 0:
        a >>= shift
        b >>= shift
    else:
        divisor, factor = _divisor(depth, shift, exponent)
        a = _far_quotient(a, divisor, factor)
        b = _far_quotient(b, divisor, factor)
    a = tl.load(record + R.SIGN_U) * fold_place(a, tl.load(record + R.SPAN_U), mode, bits, slack)
    b = tl.load(record + R.SIGN_V) * fold_place(b, tl.load(record + R.SPAN_V), mode, bits, slack)
    u = tl.load(record + R.ORIGIN_U) + a - half
    v = tl.load(record + R.ORIGIN_V) + b - half
    return u.to(tl.int32), v.to(tl.int32)


@triton.jit
def _divisor(depth, shift, exponent):
    """The divisor of a perspective, and the power of two to multiply quotients by, float32."""
    divisor = (depth >> shift).to(tl.int32)
    factor = ((exponent + 127) << 23).to(tl.float32, bitcast=True)
    return tl.where(divisor == 0, 1, divisor).to(tl.float32), factor


@triton.jit
def _far_quotient(numerator, divisor, factor):
    numerator = (numerator >> R.NUMERATOR_SHIFT).to(tl.int32).to(tl.float32)
    quotient = clamp(tl.div_rn(numerator, divisor) * factor, -1073741824.0, 1073741824.0)
    return tl.floor(quotient).to(tl.int64)


@triton.jit
def linear_form(numbers, x, y):
    """A linear form of columns and lines, int64; see ``program/coords.py``."""
    return tl.load(numbers) * x.to(tl.int64) + tl.load(numbers + 1) * y.to(tl.int64) + tl.load(numbers + 2)


@triton.jit
def trace_records(buffer, code, begin, end, record, u, v, depth, x, y):
    """Check the subpixel maps of slots begin..end -> the stage, as in ``trace_maps``.

    ``record``, ``u``, ``v``, ``depth``: the first map's record, and the values of its three linear forms.
    """
    stage = tl.full(x.shape, -1, tl.int32)
    for i in range(end - 1 - begin):
        slot = end - 1 - i
        at = code + slot * L.CODE
        op = tl.load(at + L.OP)
        if (op == ops.Op.MAP_FLOAT) | (op == ops.Op.MAP_PERSPECTIVE):
            later = int64s_at(buffer, tl.load(at + L.ARG))
            is_inside = is_in_span(
                later,
                linear_form(later + R.U, x, y),
                linear_form(later + R.V, x, y),
                linear_form(later + R.DEPTH, x, y),
            )
            stage = tl.maximum(stage, tl.where(is_inside, -1, slot))
    return tl.maximum(stage, tl.where(is_in_span(record, u, v, depth), -1, begin))


@triton.jit
def is_in_span(record, u, v, depth):
    far_u = tl.load(record + R.SPAN_U) * depth - u
    far_v = tl.load(record + R.SPAN_V) * depth - v
    ahead = (u >= 0) & (far_u > 0) & (v >= 0) & (far_v > 0)
    return ahead | ((u <= 0) & (far_u < 0) & (v <= 0) & (far_v < 0))


@triton.jit
def place(record, u, v, depth, bits):
    """Source coordinates by the values of a map's linear forms, int32 with ``bits`` fraction bits.

    Arbitrary for pixels outside.
    """
    exponent = load_int(record + R.EXPONENT)
    shift = tl.load(record + R.SHIFT)
    if exponent == 0:
        along = (u >> shift).to(tl.int32)
        across = (v >> shift).to(tl.int32)
    else:
        divisor, factor = _divisor(depth, shift, exponent)
        along = _quotient(u, divisor, factor, load_int(record + R.SPAN_U) << bits)
        across = _quotient(v, divisor, factor, load_int(record + R.SPAN_V) << bits)
    return _in_source(record, along, across)


@triton.jit
def _in_source(record, u, v):
    """Convert distances from the sides of a map's window to source coordinates, int32."""
    x = load_int(record + R.ORIGIN_U) + load_int(record + R.SIGN_U) * u
    return x, load_int(record + R.ORIGIN_V) + load_int(record + R.SIGN_V) * v


@triton.jit
def _quotient(numerator, divisor, factor, end):
    numerator = (numerator >> R.NUMERATOR_SHIFT).to(tl.int32).to(tl.float32)
    quotient = tl.div_rn(numerator, divisor) * factor
    return clamp(quotient, 0.0, end.to(tl.float32)).to(tl.int32)


@triton.jit
def trace_grids(buffer, code, begin, end, x, y, bits, HAS_FOLD: tl.constexpr):
    """Apply subpixel maps and grids of slots begin..end -> (u, v, stage).

    ``u``, ``v``: source coordinates less half a pixel, int32; ``stage``: as in ``trace_maps``. The records of maps
    before a grid, or before a map that folds, are linear forms of that map's result.
    """
    stage = tl.full(x.shape, -1, tl.int32)
    half = (1 << bits) >> 1
    u = (x << bits).to(tl.int32)
    v = (y << bits).to(tl.int32)
    # The result of the last grid or folding map, the argument of the maps before it.
    moved_u = u
    moved_v = v
    is_moved = 0
    for i in range(end - begin):
        slot = end - 1 - i
        at = code + slot * L.CODE
        op = tl.load(at + L.OP)
        if op == ops.Op.MAP_GRID:
            u, v, is_inside = _displaced(buffer, at, u, v, bits, -1, 0, slot == begin, HAS_FOLD)
            stage = tl.maximum(stage, tl.where(is_inside, -1, slot))
            moved_u = u
            moved_v = v
            is_moved = 1
        elif (op == ops.Op.MAP_FLOAT) | (op == ops.Op.MAP_PERSPECTIVE):
            record = int64s_at(buffer, tl.load(at + L.ARG))
            if is_moved == 0:
                a = linear_form(record + R.U, x, y)
                b = linear_form(record + R.V, x, y)
                depth = linear_form(record + R.DEPTH, x, y)
            else:
                a = _linear_form_at(record + R.U, moved_u, moved_v, bits)
                b = _linear_form_at(record + R.V, moved_u, moved_v, bits)
                depth = _linear_form_at(record + R.DEPTH, moved_u, moved_v, bits)
            folds = 0
            if HAS_FOLD:
                folds = tl.load(at + L.COUNT)
            if folds != 0:
                slack = tl.where((slot == begin) & (bits == R.BICUBIC_BITS), 1 << bits, 0)
                u, v = _folded_places(record, a, b, depth, bits, slack)
                moved_u = u
                moved_v = v
                is_moved = 1
            else:
                stage = tl.maximum(stage, tl.where(is_in_span(record, a, b, depth), -1, slot))
                u, v = place(record, a, b, depth, bits)
                u -= half
                v -= half
    return u, v, stage


@triton.jit
def nearest_in_grid(buffer, at, x, y, HAS_FOLD: tl.constexpr):
    """Apply the grid of the instruction at ``at`` to pixel centers -> (column, line, is inside)."""
    bits = R.BILINEAR_BITS
    half = (1 << bits) >> 1
    u, v, is_inside = _displaced(buffer, at, x << bits, y << bits, bits, -(1 << bits), half, False, HAS_FOLD)
    return u >> bits, v >> bits, is_inside


@triton.jit
def _linear_form_at(numbers, u, v, bits):
    """``linear_form`` at coordinates with ``bits`` fraction bits."""
    along = tl.load(numbers) >> bits
    across = tl.load(numbers + 1) >> bits
    return along * u.to(tl.int64) + across * v.to(tl.int64) + tl.load(numbers + 2)


@triton.jit
def _displaced(buffer, at, u, v, bits, kept, added, is_first, HAS_FOLD: tl.constexpr):
    """Displace coordinates less half a pixel by a grid -> (u, v, is inside); u and v are source coordinates.

    The displaced coordinate is masked by ``kept``, then ``added`` is added. ``is_first``: the map is the first of its
    chain.
    """
    record = int64s_at(buffer, tl.load(at + L.ARG))
    nodes = int16s_at(buffer, tl.load(at + L.PARAMS))
    width = load_int(record + R.SPAN_U)
    height = load_int(record + R.SPAN_V)
    half = (1 << bits) >> 1
    at_x = clamp(u, 0, (width - 1) << bits).to(tl.int64) * tl.load(record + R.STEP_X)
    at_y = clamp(v, 0, (height - 1) << bits).to(tl.int64) * tl.load(record + R.STEP_Y)
    columns = load_int(record + R.COLUMNS)
    cell = (at_y >> (R.STEP_BITS + bits)).to(tl.int32) * columns + (at_x >> (R.STEP_BITS + bits)).to(tl.int32)
    across = (at_x >> (R.STEP_BITS - R.WEIGHT_BITS + bits)).to(tl.int32) & ((1 << R.WEIGHT_BITS) - 1)
    down = (at_y >> (R.STEP_BITS - R.WEIGHT_BITS + bits)).to(tl.int32) & ((1 << R.WEIGHT_BITS) - 1)
    node = nodes + 2 * cell
    shift = tl.load(record + R.SHIFT)
    u += half + _weighed(node, 2 * columns, across, down, shift)
    v += half + _weighed(node + 1, 2 * columns, across, down, shift)
    u = (u & kept) + added
    v = (v & kept) + added
    # Up to half a pixel outside, bilinear samples are blended with the fill: see ``fused.read_interpolated``.
    blends = tl.load(at + L.FLAG) == ops.Interpolation.BILINEAR
    beyond = tl.where(is_first & blends, half, 0)
    in_x = (u >= -beyond) & (u < (width << bits) + beyond)
    is_inside = in_x & (v >= -beyond) & (v < (height << bits) + beyond)
    if HAS_FOLD:
        mode = tl.load(at + L.COUNT)
        if mode != 0:
            slack = tl.where(is_first & (bits == R.BICUBIC_BITS), 1 << bits, 0)
            u = fold_place(u.to(tl.int64), width.to(tl.int64), mode, bits, slack).to(tl.int32)
            v = fold_place(v.to(tl.int64), height.to(tl.int64), mode, bits, slack).to(tl.int32)
            is_inside = u == u
    swaps = tl.load(record + R.SWAPS) != 0
    a, b = _in_source(record, tl.where(swaps, v, u), tl.where(swaps, u, v))
    return a - half, b - half, is_inside


@triton.jit
def _weighed(node, line, across, down, shift):
    """Interpolate the displacement between four nodes, int32."""
    a = load_int(node)
    b = load_int(node + line)
    upper = (a << R.WEIGHT_BITS) + (load_int(node + 2) - a) * across
    lower = (b << R.WEIGHT_BITS) + (load_int(node + line + 2) - b) * across
    total = (upper.to(tl.int64) << R.WEIGHT_BITS) + (lower - upper).to(tl.int64) * down
    return ((total + ((shift * 0 + 1) << (shift - 1))) >> shift).to(tl.int32)
