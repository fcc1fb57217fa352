// Integer coordinates of maps: the source positions of pixels. See variegate/program/coords.py. GPU counterparts:
// executors/cuda/kernels/fetch.py; definition: tests/oracle/places.py.
#pragma once
#include "constants.h"

namespace vg {

constexpr int FIXED_BITS = 16;
constexpr f64 FIXED_ONE = 1 << FIXED_BITS;

// Truncates to an integer. Values out of range and NaN become the least integer, as x86 instructions do.
VG_INLINE i64 to_i64(f64 value) { return value > -0x1p63 && value < 0x1p63 ? (i64)value : INT64_MIN; }
VG_INLINE i32 to_i32(f64 value) { return value > -0x1p31 - 1 && value < 0x1p31 ? (i32)value : INT32_MIN; }

// Arithmetic that wraps around, because positions far outside of an image may have any value.
VG_INLINE i64 times(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
VG_INLINE i64 plus(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
VG_INLINE i64 minus(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
VG_INLINE i64 linear(i64 a, i64 x, i64 b, i64 y, i64 c) { return (i64)((u64)a * (u64)x + (u64)b * (u64)y + (u64)c); }

// The quotient rounded down, and the remainder that is not negative. The divisor is positive.
VG_INLINE i64 floor_div(i64 a, i64 b) { return a / b - (a % b < 0); }
VG_INLINE i64 floor_mod(i64 a, i64 b) {
  const i64 rest = a % b;
  return rest < 0 ? rest + b : rest;
}

// -- folding: PadModes continue an image outside its border ----------------------------------------------------------

// Mirrors index `i` into 0..n about the border pixels, repeatedly. GPU counterpart: `reflect` in neighborhood.py.
VG_INLINE i64 reflect(i64 i, i64 n) {
  if (n == 1) return 0;
  const i64 period = 2 * (n - 1);
  const i64 rest = (i < 0 ? -i : i) % period;
  return rest >= n ? period - rest : rest;
}

// Maps pixel `i` of an image of `n` pixels, continued by a PadMode, to 0..n. GPU counterpart: `fold_index` in fetch.py.
VG_INLINE i64 fold_index(i64 i, i64 n, int mode) {
  if (mode == PadMode::EDGE) return clamp<i64>(i, 0, n - 1);
  if (mode == PadMode::REFLECT) return reflect(i, n);
  if (mode == PadMode::WRAP) return floor_mod(i, n);
  const i64 rest = floor_mod(i, 2 * n);
  return rest >= n ? 2 * n - 1 - rest : rest;
}

// The same for a position with fraction bits. EDGE clamps to the centers of the outermost pixels, or `slack` outside
// them, because bicubic weights still change there. GPU counterpart: `fold_place` in fetch.py.
VG_INLINE i64 fold_position(i64 position, i64 n, int mode, int bits, i64 slack) {
  const i64 one = (i64)1 << bits, half = one >> 1;
  if (mode == PadMode::EDGE) return min_of(max_of(position, half - slack), n * one - half + slack);
  if (mode == PadMode::WRAP) return floor_mod(position, n * one);
  const i64 lead = mode == PadMode::REFLECT ? half : 0;
  const i64 length = n * one - 2 * lead;
  if (length == 0) return lead;
  const i64 rest = floor_mod(position - lead, 2 * length);
  return lead + (rest > length ? 2 * length - rest : rest);
}

// The pixel of low..high that contains a real position after folding. GPU counterpart: `_pixel_in` in fused.py.
VG_INLINE i64 fold_real(f64 position, i64 low, i64 high, int mode) {
  if (position != position) position = 0;
  return low + fold_index((i64)floor(clamp(position, -MAX_COORD, MAX_COORD)) - low, high - low, mode);
}

// -- Pillow's rotations ----------------------------------------------------------------------------------------------

struct Size {
  i64 height, width;
};

// Pillow's affine_fixed is used only if every coordinate of an output stays below this.
constexpr f64 FIXED_LIMIT = 32768.0;

// True if the affine map `m` keeps the corners of an output below FIXED_LIMIT.
bool fits_fixed(const f64 *m, Size out);

// Quarter turns of a ROTATE with arguments `a`, if Pillow transposes instead; else -1.
i64 exact_turns(const f64 *a, Size in);

// Image.rotate's matrix from output to input.
void set_rotation(const f64 *a, Size in, Size out, f64 *m);

// -- tables of source indices, by output column or line --------------------------------------------------------------

// Source indices as in Pillow's ImagingScaleAffine, which accumulates `step`. Indices outside are -1, or folded by
// `mode` (a PadMode; 0 for none).
void scale_table(f64 start, f64 step, i64 in_size, i32 *table, i64 n, bool is_mirrored, bool by_corners, int mode);

// Source indices of non-constant padding, as in NumPy.
void pad_table(i64 before, int mode, i64 in_size, i32 *table, i64 n);

// -- maps in fixed point, 16.16 --------------------------------------------------------------------------------------

// Without a rounding instruction (SSE4.1), the C library's floor takes longer than all other work of an instruction.
VG_INLINE f64 floor_of(f64 value) {
  if (!(fabs(value) < 0x1p52)) return value;
  const f64 whole = (f64)(i64)value;
  return whole > value ? whole - 1 : whole;
}
VG_INLINE bool is_whole(f64 value) { return floor_of(value) == value && fabs(value) < HUGE_VAL; }

// True if a map in fixed point moves whole pixels: every step is 0, 1 or -1, and the offsets are integers.
VG_INLINE bool moves_whole_pixels(const f64 *a) {
  bool has_unit_steps = fabs(a[0]) + fabs(a[1]) == FIXED_ONE && fabs(a[3]) + fabs(a[4]) == FIXED_ONE &&
                        a[0] * a[1] == 0 && a[3] * a[4] == 0 && fabs(a[0]) == fabs(a[4]);
  return has_unit_steps && is_whole(a[2] / FIXED_ONE) && is_whole(a[5] / FIXED_ONE);
}

// The part of the source that an integer map reads for a rectangle of its output.
VG_INLINE Rectangle source_rectangle(const f64 *a, Rectangle output) {
  const i64 xa = (i64)a[0] * output.left + (i64)a[1] * output.top + (i64)a[2];
  const i64 ya = (i64)a[3] * output.left + (i64)a[4] * output.top + (i64)a[5];
  const i64 xb = xa + (i64)a[0] * (output.right - 1 - output.left) + (i64)a[1] * (output.bottom - 1 - output.top);
  const i64 yb = ya + (i64)a[3] * (output.right - 1 - output.left) + (i64)a[4] * (output.bottom - 1 - output.top);
  return {min_of(ya, yb) >> FIXED_BITS, min_of(xa, xb) >> FIXED_BITS, (max_of(ya, yb) >> FIXED_BITS) + 1,
          (max_of(xa, xb) >> FIXED_BITS) + 1};
}

// The PassSource of a pass that begins with this map.
VG_INLINE int source_of_map(int op, const f64 *a) {
  if (op == Op::MAP_SCALE || op == Op::MAP_PAD) return PassSource::TABLE;
  if (op != Op::MAP_FIXED) return PassSource::INTERPOLATED;
  // A quarter turn is an integer map also, but its rows are columns of the source.
  return moves_whole_pixels(a) && a[1] == 0 ? PassSource::ROW_COPY : PassSource::FIXED;
}

// Arrays of a program, by slot.
struct MapSlots {
  const i16 *opcode;
  const f64 (*args)[NUM_ARGS];
  const i16 *flags;
  const i32 (*window)[4];  // top, left, bottom, right
  const i32 (*out_size)[2];
};
VG_INLINE MapSlots map_slots_of(const i16 *opcode, const f64 *args, const i16 *flags, const i32 *window,
                                const i32 *out_size) {
  return {opcode, (const f64(*)[NUM_ARGS])args, flags, (const i32(*)[4])window, (const i32(*)[2])out_size};
}

// The pixels that a statistic measures: a part of the source, and `outside` pixels with the map's fill color.
struct Seen {
  Rectangle part;
  i64 outside;
};

// `map_slot`: the integer map before the statistic, -1 for none.
VG_INLINE Seen seen_by_statistics(const MapSlots &slots, i64 map_slot, i64 height, i64 width) {
  if (map_slot < 0) return {{0, 0, height, width}, 0};
  const i64 h = slots.out_size[map_slot][0], w = slots.out_size[map_slot][1];
  const i32 *inside = slots.window[map_slot];
  Rectangle part = source_rectangle(slots.args[map_slot], {0, 0, h, w});
  part.top = max_of<i64>(part.top, inside[0]);
  part.left = max_of<i64>(part.left, inside[1]);
  part.bottom = min_of<i64>(part.bottom, inside[2]);
  part.right = min_of<i64>(part.right, inside[3]);
  const i64 seen = max_of<i64>(0, part.bottom - part.top) * max_of<i64>(0, part.right - part.left);
  return {part, h * w - seen};
}

// True if every output pixel of an integer map reads inside the window.
VG_INLINE bool stays_inside(const f64 *a, const i32 *window, i64 height, i64 width) {
  const Rectangle source = source_rectangle(a, {0, 0, height, width});
  return source.top >= window[0] && source.left >= window[1] && source.bottom <= window[2] && source.right <= window[3];
}

// False if a map in fixed point reads no pixel inside its window. Compares bounding boxes.
bool may_hit(const f64 *a, const i32 *window, i64 height, i64 width);

// -- maps with real coefficients -------------------------------------------------------------------------------------

// Rounds `count` coefficients to multiples of 2**-36 (2**-48 in denominators), so that linear forms of integer pixels
// are exact.
void quantize(f64 *a, i64 count);

// True if sums of coefficients times columns and lines of an output of this size are exact in float64.
bool is_exact_f64(const f64 *a, i64 height, i64 width, bool is_perspective);

// Writes Records of the maps in slots first..end, [maps, RECORD_FIELDS]; returns their number. Positions are
// transformed from the last map to the first. Either all maps have real coefficients, or all are in fixed point.
i64 write_records(const MapSlots &slots, i64 first, i64 end, i64 *records);

}  // namespace vg
