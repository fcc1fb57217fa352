// Operations on a pixel's value: tables, mixes of channels, and users' functions. GPU counterpart: `apply_value` in
// executors/cuda/kernels/values.py.
#include "values.h"
#include "../levels.h"
#include "deep.h"
#include "lanes.h"
#include "pixel_functions.h"
#include "scratch.h"

namespace vg::VG_LEVEL {
namespace {

// Pillow's Image.blend in float32, truncated, for later clipping. Factors are limited, so sums fit into 32 bits.
VG_INLINE Ints blend(Floats degenerate, Ints value, Floats factor) {
  return truncate(degenerate + factor * (to_floats(value) - degenerate));
}

// Blends pixels with their luma, as ImageEnhance.Color of Pillow.
void blend_with_luma(Planes planes, Range columns, f32 factor) {
  u8 *const plane[] = {planes[0], planes[1], planes[2]};
  const Floats factors = all_floats(factor);
  store_columns(plane, columns, [&](i64 x, Halves *out) {
    Ints mixed[3][2];
    for (int half = 0; half < 2; half++) {
      const i64 at = x + half * LANES;
      const Ints r = load_bytes(plane[0] + at), g = load_bytes(plane[1] + at), b = load_bytes(plane[2] + at);
      const Floats gray = to_floats(luma_of(r, g, b));
      mixed[0][half] = blend(gray, r, factors);
      mixed[1][half] = blend(gray, g, factors);
      mixed[2][half] = blend(gray, b, factors);
    }
    for (int c = 0; c < 3; c++) out[c] = pack(mixed[c][0], mixed[c][1]);
  });
}

// Multiplies (r, g, b, 1) by a float32[3, 4], summed from left to right.
template <class Element> void multiply_by_matrix(PlanesOf<Element> planes, Range columns, const f32 *matrix) {
  for (i64 x = columns.first; x < columns.end; x++) {
    const f32 r = planes[0][x], g = planes[1][x], b = planes[2][x];
    for (int c = 0; c < 3; c++) {
      const f32 *w = matrix + 4 * c;
      planes[c][x] = round_value<Element>(r * w[0] + g * w[1] + b * w[2] + w[3] * UNIT<Element>);
    }
  }
}
void multiply_by_matrix(Planes planes, Range columns, const f32 *matrix) {
  u8 *const plane[] = {planes[0], planes[1], planes[2]};
  Floats weights[12];
  for (int i = 0; i < 12; i++) weights[i] = all_floats(matrix[i]);
  store_columns(plane, columns, [&](i64 x, Halves *out) {
    Ints sums[3][2];
    for (int half = 0; half < 2; half++) {
      Floats channel[3];
      for (int c = 0; c < 3; c++) channel[c] = to_floats(load_bytes(plane[c] + x + half * LANES));
      for (int c = 0; c < 3; c++) {
        const Floats *w = weights + 4 * c;
        sums[c][half] = round_to_byte(channel[0] * w[0] + channel[1] * w[1] + channel[2] * w[2] + w[3]);
      }
    }
    for (int c = 0; c < 3; c++) out[c] = pack(sums[c][0], sums[c][1]);
  });
}

// Replaces channel c by channel args[c].
template <class Element> void permute(PlanesOf<Element> planes, Range columns, const f64 *a) {
  typedef u8 Block __attribute__((vector_size(4 * LANES)));
  const Element *from[] = {planes[(i64)a[0]], planes[(i64)a[1]], planes[(i64)a[2]]};
  for (i64 x = columns.first; x < columns.end; x += (i64)(sizeof(Block) / sizeof(Element))) {
    const Block red = load<Block>(from[0] + x), green = load<Block>(from[1] + x), blue = load<Block>(from[2] + x);
    store(planes[0] + x, red);
    store(planes[1] + x, green);
    store(planes[2] + x, blue);
  }
}

// Passes the bounds separately: compilers would load a Range as a vector, which stalls after stores of its halves.
template <class Element>
VG_NOINLINE void change_colors(const Row &row, i64 slot, PlanesOf<Element> planes, i64 first, i64 end) {
  const Range columns = {first, end};
  const f64 *a = row.args[slot];
  switch ((ValueOp)row.opcode[slot]) {
    case ValueOp::MIX:
      if constexpr (HAS_LEVELS<Element>) return blend_with_luma(planes, columns, (f32)a[0]);
      else return change_saturation(planes, columns, (f32)a[0]);
    case ValueOp::PERMUTE: return permute(planes, columns, a);
    case ValueOp::COLOR_MATRIX: return multiply_by_matrix(planes, columns, row.batch->matrices + 12 * (i64)a[0]);
    case ValueOp::HUE:
      if constexpr (HAS_LEVELS<Element>) return shift_hue(planes, columns, (i32)(a[0] * 255.0) & 255);
      else return turn_hue(planes, columns, (f32)a[0]);
    case ValueOp::PIXEL_FUNCTION:
      if constexpr (HAS_LEVELS<Element>)
        apply_pixel_function(row.batch->pixel_functions[(i64)a[0]], planes, columns, (f32)a[1]);
      return;
    case ValueOp::LUT: return;  // handled by apply_value
  }
}

}  // namespace

// Short, because most operations are tables, and a table's row takes as long as a few calls.
template <class Element> void apply_value(const Row &row, i64 slot, i64 channels, const u8 *luts,
                                          PlanesOf<Element> planes, const Range &columns) {
  const i64 first = columns.first, end = columns.end;
  const int op = row.opcode[slot], kind = row.kind(slot);
  if (end <= first) return;
  if constexpr (HAS_LEVELS<Element>) {
    if (kind == Kind::STATISTIC || op == Op::LUT) {
      const u8 *table = op == Op::LUT ? row.lut(slot) : luts + 768 * slot;
      for (i64 c = 0; c < channels; c++) look_up(planes[c] + first, table + 256 * c, end - first);
      return;
    }
  } else if (kind == Kind::STATISTIC || IS_TABLE.at[op]) {
    for (i64 c = 0; c < channels; c++) change_channel(row, slot, c, luts, end - first, planes[c] + first);
    return;
  }
  if (kind != Kind::VALUE) return;
  if (channels == 1) {
    if (op != Op::COLOR_MATRIX && op != Op::PIXEL_FUNCTION) return;
    for (i64 c = 1; c < 3; c++) copy_values(planes[c] + first, planes[0] + first, end - first);
  }
  change_colors(row, slot, planes, first, end);
}

template <class Element> void color_after(const Row &row, i64 slot, i64 stop, i64 channels, Scratch &s, Element *out) {
  const PlanesOf<Element> spare = s.row.spare_planes<Element>();
  for (i64 c = 0; c < 3; c++) spare[c][0] = from_byte<Element>(row.fill[slot][c]);
  for (i64 k = slot + 1; k < stop; k++) apply_value(row, k, channels, s.tables.luts.at, spare, {0, 1});
  for (i64 c = 0; c < 3; c++) out[c] = spare[c][0];
}

bool needs_levels(const Row &row, i64 length) {
  for (i64 k = 0; k < length; k++)
    if (NEEDS_LEVELS[row.opcode[k]]) return true;
  return false;
}

#define VG_COMPILE_ALL(Element)    \
  VG_COMPILE(apply_value, Element) \
  VG_COMPILE(color_after, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
