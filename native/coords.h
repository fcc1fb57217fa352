// Where pixels are read: integer coordinates of maps. See variegate/program/places.py.
#pragma once
#include "constants.h"

namespace vg {

constexpr int FIXED_BITS = 16;
constexpr f64 FIXED_ONE = 1 << FIXED_BITS;

struct Rectangle {
  i64 top, left, bottom, right;
};

// A map in fixed point moves whole pixels: every step is 0, 1 or -1, and there is no fraction.
VG_INLINE bool moves_whole_pixels(const f64 *a) {
  bool has_unit_steps = fabs(a[0]) + fabs(a[1]) == FIXED_ONE && fabs(a[3]) + fabs(a[4]) == FIXED_ONE &&
                        a[0] * a[1] == 0 && a[3] * a[4] == 0 && fabs(a[0]) == fabs(a[4]);
  return has_unit_steps && fmod(a[2], FIXED_ONE) == 0 && fmod(a[5], FIXED_ONE) == 0;
}

// The part of the source that a map of whole pixels shows in a rectangle of its output.
VG_INLINE Rectangle source_rectangle(const f64 *a, Rectangle of) {
  const i64 xa = (i64)a[0] * of.left + (i64)a[1] * of.top + (i64)a[2];
  const i64 ya = (i64)a[3] * of.left + (i64)a[4] * of.top + (i64)a[5];
  const i64 xb = xa + (i64)a[0] * (of.right - 1 - of.left) + (i64)a[1] * (of.bottom - 1 - of.top);
  const i64 yb = ya + (i64)a[3] * (of.right - 1 - of.left) + (i64)a[4] * (of.bottom - 1 - of.top);
  return {min_of(ya, yb) >> FIXED_BITS, min_of(xa, xb) >> FIXED_BITS, (max_of(ya, yb) >> FIXED_BITS) + 1,
          (max_of(xa, xb) >> FIXED_BITS) + 1};
}

// Every output pixel of a map of whole pixels reads inside the window.
VG_INLINE bool stays_inside(const f64 *a, const i32 *window, const i32 *size) {
  const Rectangle read = source_rectangle(a, {0, 0, size[0], size[1]});
  return read.top >= window[0] && read.left >= window[1] && read.bottom <= window[2] && read.right <= window[3];
}

// How the rows of a map are read where it is the first of its pass (PassSource).
VG_INLINE int source_of_map(int op, const f64 *a) {
  if (op == Op::MAP_SCALE || op == Op::MAP_PAD) return PassSource::TABLE;
  if (op != Op::MAP_FIXED) return PassSource::INTERPOLATED;
  // A quarter turn moves whole pixels too, but its rows are columns of the source.
  return moves_whole_pixels(a) && a[1] == 0 ? PassSource::STRETCH : PassSource::FIXED;
}

// Rounds coefficients to multiples of 2**-36 (a denominator's to 2**-48): sums with whole pixels are exact then.
VG_INLINE void quantize(f64 *a, int count) {
  constexpr f64 grid = 68719476736.0, depth_grid = 281474976710656.0, large = 131072.0;
  for (int i = 0; i < count; i++) {
    const f64 steps = i < 6 ? grid : depth_grid;
    if (fabs(a[i]) < large) a[i] = floor(a[i] * steps + 0.5) / steps;
  }
}

// True if sums of coefficients times columns and lines of an output of this size are exact in float64.
VG_INLINE bool is_exact_f64(const f64 *a, const i32 *size, bool is_perspective) {
  constexpr f64 exact = 32768.0, exact_steps = 16.0;  // sums have 53 bits at most below these
  if (is_perspective) {
    const f64 step = max_of(max_of(fabs(a[0]), fabs(a[1])), max_of(fabs(a[3]), fabs(a[4])));
    const f64 of_depth = exact * max_of(fabs(a[6]), fabs(a[7]));
    return step + of_depth < exact_steps && max_of(fabs(a[2]), fabs(a[5])) < exact;
  }
  const f64 u = fabs(a[0]) * size[1] + fabs(a[1]) * size[0] + fabs(a[2]);
  const f64 v = fabs(a[3]) * size[1] + fabs(a[4]) * size[0] + fabs(a[5]);
  return max_of(u, v) < exact;
}

// What a statistic sees of a source: a part of it, and so many pixels of its map's fill color besides.
struct Seen {
  Rectangle part;
  i64 outside;
};

// `map_slot`: of the map of whole pixels before the statistic, -1 for none.
VG_INLINE Seen seen_by_statistics(const f64 (*args)[NUM_ARGS], const i32 (*out_size)[2], const i32 (*window)[4],
                                  i64 map_slot, i64 height, i64 width) {
  if (map_slot < 0) return {{0, 0, height, width}, 0};
  const i64 h = out_size[map_slot][0], w = out_size[map_slot][1];
  const i32 *inside = window[map_slot];
  Rectangle part = source_rectangle(args[map_slot], {0, 0, h, w});
  part.top = max_of<i64>(part.top, inside[0]);
  part.left = max_of<i64>(part.left, inside[1]);
  part.bottom = min_of<i64>(part.bottom, inside[2]);
  part.right = min_of<i64>(part.right, inside[3]);
  const i64 seen = max_of<i64>(0, part.bottom - part.top) * max_of<i64>(0, part.right - part.left);
  return {part, h * w - seen};
}

}  // namespace vg
