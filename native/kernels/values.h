// Operations on a row of planes in place: by value (tables, colors, hue) and by position (noise, ERASE, OVERLAY). GPU
// counterpart: executors/cuda/kernels/values.py; definitions: tests/oracle/values.py and position.py.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

// bytes[i] = table[bytes[i]] for `count` bytes, and for some of the padding after them.
void look_up(u8 *bytes, const u8 *table, i64 count);
// The same of columns first..end.
VG_INLINE void look_up(u8 *plane, const u8 *table, Range columns) {
  look_up(plane + columns.first, table, columns.size());
}
// Runs the value or statistic operation at `slot`. `luts`: see TableScratch. Also writes to the padding after the
// columns.
template <class Element> void apply_value(const Row &row, i64 slot, i64 channels, const u8 *luts,
                                          PlanesOf<Element> planes, const Range &columns);
// The fill color of the map at `slot` after the value operations between it and `stop`.
template <class Element> void color_after(const Row &row, i64 slot, i64 stop, i64 channels, Scratch &s, Element *out);
// True if an operation at the slots of a row up to `length` is defined for 256 values only.
bool needs_levels(const Row &row, i64 length);
// HUE of three planes; `shift`: 0 to 255, added to the hue byte. GPU counterpart: `_turn_hue` in values.py.
void shift_hue(Planes planes, Range columns, i32 shift);
// Runs an operation that depends on position (noise, ERASE, OVERLAY) on row `y`.
template <class Element> void apply_position(const Row &row, i64 slot, i64 y, i64 width, i64 channels, Scratch &s);
// Runs each ERASE after Normalize among slots first..end, on lines `y` of a float result.
void erase_normalized(const Row &row, i64 first, i64 end, const Target &target, Range y);

// Pillow's L of one pixel.
template <class Sum> VG_INLINE Sum luma(Sum r, Sum g, Sum b) {
  return drop_bits<LUMA_SHIFT>(r * (Sum)LUMA_RED + g * (Sum)LUMA_GREEN + b * (Sum)LUMA_BLUE +
                               HALF_UNIT<Sum, LUMA_SHIFT>);
}

// The luma of any element. For uint16 and float32 it is torchvision's, whose weights do not sum to 1; integers are
// truncated.
template <class Element> VG_INLINE f32 gray_of(Element r, Element g, Element b) {
  if constexpr (HAS_LEVELS<Element>) return (f32)luma<i32>(r, g, b);
  const f32 gray = (f32)r * 0.2989f + (f32)g * 0.587f + (f32)b * 0.114f;
  return IS_FLOAT<Element> ? gray : (f32)(i32)gray;
}

}  // namespace vg::VG_LEVEL
