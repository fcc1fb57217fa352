// Operations on a row of planes, in place: values, noise by Philox, erased rectangles.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

// bytes[i] = table[bytes[i]] for `count` bytes, and harmlessly for some padding after them.
void look_up(u8 *bytes, const u8 *table, i64 count);
// The same of columns first..end.
VG_INLINE void look_up(u8 *plane, const u8 *table, Range columns) {
  look_up(plane + columns.first, table, columns.size());
}
// Runs the value or statistic operation at `slot`. `luts`: TableScratch's. Runs over into the padding after the
// columns.
void apply_value(const Row &row, i64 slot, i64 channels, const u8 *luts, Planes planes, const Range &columns);
// HUE of three planes; `shift`: 0 to 255, added to the hue byte.
void shift_hue(Planes planes, Range columns, i32 shift);
// Runs an operation that depends on position (noise, ERASE, OVERLAY) on row `y`.
void apply_position(const Row &row, i64 slot, i64 y, i64 width, i64 channels, Scratch &s);
// Each ERASE of slots first..end that comes after Normalize, on lines y.first..y.end of a float result.
void erase_normalized(const Row &row, i64 first, i64 end, const Target &target, Range y);

// Pillow's L of one pixel.
VG_INLINE i64 luma(i64 r, i64 g, i64 b) {
  return (r * LUMA_RED + g * LUMA_GREEN + b * LUMA_BLUE + LUMA_HALF) >> LUMA_SHIFT;
}

}  // namespace vg::VG_LEVEL
