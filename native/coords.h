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
