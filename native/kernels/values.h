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
template <class Element> void apply_value(const Row &row, i64 slot, i64 channels, const u8 *luts,
                                          PlanesOf<Element> planes, const Range &columns);
// The fill color of the map at `slot` after the value operations between it and `stop`.
template <class Element> void color_after(const Row &row, i64 slot, i64 stop, i64 channels, Scratch &s, Element *out);
// True if operations at the slots of a row up to `length` are defined on 256 levels alone.
bool needs_levels(const Row &row, i64 length);
// HUE of three planes; `shift`: 0 to 255, added to the hue byte.
void shift_hue(Planes planes, Range columns, i32 shift);
// Runs an operation that depends on position (noise, ERASE, OVERLAY) on row `y`.
template <class Element> void apply_position(const Row &row, i64 slot, i64 y, i64 width, i64 channels, Scratch &s);
// Each ERASE of slots first..end that comes after Normalize, on lines y.first..y.end of a float result.
void erase_normalized(const Row &row, i64 first, i64 end, const Target &target, Range y);

// Pillow's L of one pixel.
template <class Sum> VG_INLINE Sum luma(Sum r, Sum g, Sum b) {
  return drop_bits<LUMA_SHIFT>(r * (Sum)LUMA_RED + g * (Sum)LUMA_GREEN + b * (Sum)LUMA_BLUE +
                               HALF_UNIT<Sum, LUMA_SHIFT>);
}

// The same of any element: of deep ones torchvision's, whose weights do not add up to 1, and of integers truncated.
template <class Element> VG_INLINE f32 gray_of(Element r, Element g, Element b) {
  if constexpr (HAS_LEVELS<Element>) return (f32)luma<i32>(r, g, b);
  const f32 gray = (f32)r * 0.2989f + (f32)g * 0.587f + (f32)b * 0.114f;
  return IS_FLOAT<Element> ? gray : (f32)(i32)gray;
}

}  // namespace vg::VG_LEVEL
