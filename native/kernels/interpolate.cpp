// Rows through maps with real coefficients. For each row, the columns inside are solved for, and the source is read
// once, at the first map of a chain. At every stage, positions are affine or projective in the output's columns and
// lines, with the coefficients in Records (program/coords.py).
#include "interpolate.h"

#include "../coords.h"
#include "../simd.h"
#include "scratch.h"

namespace vg::VG_LEVEL {

bool InterpolateScratch::reserve(i64 slots, i64 row_stride) {
  stride = row_stride;
  return records.reserve(RECORD_FIELDS * (slots + 1)) && fractions.reserve(2 * stride) && weights.reserve(4 * stride) &&
         is_at_border.reserve(stride) && along.reserve(4 * stride);
}

i64 prepare_maps(const Row &row, i64 first, i64 end, Scratch &s) {
  InterpolateScratch &maps = s.interpolate;
  const i64 count = write_records(row.map_slots(), first, end, maps.records.at);
  maps.even_line = maps.odd_line = -1;
  maps.has_grid = false;
  for (i64 i = 0; i < count; i++)
    if (maps.record(i)[Record::GRID] != 0 || maps.record(i)[Record::FOLD] != 0) maps.has_grid = true;
  const i64 mode = maps.record(0)[Record::FOLD], interpolation = row.flags[first] & INTERPOLATION_MASK;
  if (maps.record(0)[Record::GRID] != 0 && mode == 0) maps.has_seam = interpolation == Interpolation::BILINEAR;
  else if (mode == 0 || mode == PadMode::EDGE) maps.has_seam = false;
  else maps.has_seam = mode == PadMode::WRAP || interpolation == Interpolation::BICUBIC;
  return count;
}

namespace {

// The part of a range of x with start + step x >= 0.
Range not_negative(i64 start, i64 step, Range range) {
  if (range.is_empty()) return {0, 0};
  if (step == 0) return start >= 0 ? range : Range{0, 0};
  // Start near the change of sign, as exactly as floats can; then search.
  const f64 zero = clamp(-(f64)start / (f64)step, -1.0, 65536.0);
  i64 x = clamp((i64)zero, range.first, range.end);
  auto is_inside = [=](i64 at) { return start + step * at >= 0; };
  if (step > 0) {
    while (x > range.first && is_inside(x - 1)) x--;
    while (x < range.end && !is_inside(x)) x++;
    return {x, range.end};
  }
  while (x < range.end && is_inside(x)) x++;
  while (x > range.first && !is_inside(x - 1)) x--;
  return {range.first, x};
}

void mark(i32 *__restrict stage, i64 first, i64 end, i32 slot) {
  for (i64 x = first; x < end; x++) stage[x] = stage[x] < 0 ? slot : stage[x];
}

// A coordinate along a row: its value at column 0, its step per column, and its right shift.
struct Along {
  u64 start, step;
  int shift;
};

// Writes the coordinate plus `summand` as int32, rounded up to a block of 16.
void follow(Along along, i32 summand, i64 count, i32 *__restrict numbers) {
  u64 at = along.start;
#if VG_AVX2 && !VG_AVX512  // vshufps takes the lower halves of two vectors
  const u64 step = along.step;
  __m256i ats = _mm256_setr_epi64x((i64)at, (i64)(at + step), (i64)(at + 2 * step), (i64)(at + 3 * step));
  const __m256i four_steps = _mm256_set1_epi64x((i64)(4 * step)), summands = _mm256_set1_epi32(summand);
  const __m128i shift = _mm_cvtsi32_si128(along.shift);
  for (i64 i = 0; i < count; i += 8) {
    const __m256 low = _mm256_castsi256_ps(_mm256_srl_epi64(ats, shift));
    ats = _mm256_add_epi64(ats, four_steps);
    const __m256 high = _mm256_castsi256_ps(_mm256_srl_epi64(ats, shift));
    ats = _mm256_add_epi64(ats, four_steps);
    const __m256i both = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88));
    const __m256i sorted = _mm256_permute4x64_epi64(both, 0xd8);
    _mm256_storeu_si256((__m256i *)(numbers + i), _mm256_add_epi32(sorted, summands));
  }
#else
  for (i64 i = 0; i < round_up(count, 16); i++) {
    numbers[i] = (i32)((u32)(at >> along.shift) + (u32)summand);
    at += along.step;
  }
#endif
}

// One axis of an affine map at `first`.
Along affine_axis(const i64 *record, int axis, i64 y, i64 first) {
  const i64 *form = record + Record::U + 3 * axis;
  const int shift = (int)record[Record::SHIFT];
  u64 step = (u64)form[0], start = (u64)form[1] * (u64)y + (u64)form[2];
  if (record[Record::SIGN_U + 2 * axis] < 0) {
    // Falling coordinates round up, so that they mirror rising ones.
    start = ((u64)1 << shift) - 1 - start;
    step = 0 - step;
  }
  return {start + ((u64)record[Record::ORIGIN_U + 2 * axis] << shift) + step * (u64)first, step, shift};
}

void divide(const i32 *__restrict numerators, const i32 *__restrict depths, f32 factor, f32 end, i32 origin, i64 count,
            i32 *__restrict positions) {
  for (i64 i = 0; i < count; i++) {
    const i32 depth = depths[i] == 0 ? 1 : depths[i];
    f32 value = (f32)numerators[i] / (f32)depth * factor;
    value = value > 0 ? value : 0;
    value = value < end ? value : end;
    positions[i] = (i32)value + origin;
  }
}

void compute_perspective_positions(const i64 *record, i64 y, Range columns, i64 count, int bits, Scratch &s) {
  const i64 half = 1 << (bits - 1);
  i32 *numerators = s.row.words.at, *depths = s.row.offset.at, *positions[2] = {s.row.column.at, s.row.line.at};
  const f32 factor = (f32)ldexp(1.0, (int)record[Record::EXPONENT]);
  follow_form(record + Record::DEPTH, y, columns.first, count, (int)record[Record::SHIFT], depths);
  for (int axis = 0; axis < 2; axis++) {
    follow_form(record + Record::U + 3 * axis, y, columns.first, count, NUMERATOR_SHIFT, numerators);
    const f32 end = (f32)((u64)record[Record::SPAN_U + axis] << bits);
    const i32 origin = (i32)(record[Record::ORIGIN_U + 2 * axis] - half);
    divide(numerators, depths, factor, end, origin, count, positions[axis] + columns.first);
  }
}

// Number of float64 in a register. Explicit vectors, because compilers narrow conditions before selecting by them.
constexpr int LANES = VG_AVX512 ? 8 : VG_AVX2 ? 4 : 2;
typedef f64 Reals __attribute__((vector_size(8 * LANES)));
typedef i64 Masks __attribute__((vector_size(8 * LANES)));
typedef i32 Ints __attribute__((vector_size(4 * LANES)));

VG_INLINE void store_chosen(Reals values, Masks chosen, i32 *at) {
  store(at, __builtin_convertvector((Reals)((Masks)values & chosen), Ints));
}

// Coordinates of a nearest map, in Pillow's arithmetic. The depth of an affine map is 1.
template <bool is_perspective>
void compute_nearest_positions(const f64 *a, const i32 *window, i32 slot, i64 y, i64 width, RowScratch &row) {
  const f64 top = window[0], left = window[1], bottom = window[2], right = window[3], yc = (f64)y + 0.5;
  Reals xc;
  for (int i = 0; i < LANES; i++) xc[i] = i + 0.5;
  for (i64 x = 0; x < width; x += LANES) {
    Reals u = a[0] * xc + a[1] * yc + a[2], v = a[3] * xc + a[4] * yc + a[5];
    if (is_perspective) {
      const Reals depth = a[6] * xc + a[7] * yc + 1.0;
      u /= depth;
      v /= depth;
    }
    // False for NaN, the coordinate of a point at infinity.
    const Masks inside = (u >= left) & (u < right) & (v >= top) & (v < bottom);
    store(row.stage.at + x, slot | __builtin_convertvector(inside, Ints));
    store_chosen(u, inside, row.column.at + x);
    store_chosen(v, inside, row.line.at + x);
    xc += (f64)LANES;
  }
}

}  // namespace

Range inside_columns(const i64 *record, i64 y, i64 width, i64 sign) {
  const i64 depth_step = record[Record::DEPTH];
  const i64 depth = linear(record[Record::DEPTH + 1], y, 0, 0, record[Record::DEPTH + 2]);
  Range inside = {0, width};
  for (int axis = 0; axis < 2; axis++) {
    const i64 *form = record + Record::U + 3 * axis;
    const i64 step = form[0], start = linear(form[1], y, 0, 0, form[2]), span = record[Record::SPAN_U + axis];
    inside = not_negative(sign * start, sign * step, inside);
    inside = not_negative(sign * (span * depth - start) - 1, sign * (span * depth_step - step), inside);
  }
  return inside;
}

Range mark_outside(const i64 *record, i64 y, i32 slot, i64 width, i32 *stage) {
  Range inside = inside_columns(record, y, width, 1), behind = {0, 0};
  if (record[Record::BEHIND] != 0) behind = inside_columns(record, y, width, -1);
  const bool is_sorted = inside.first <= behind.first;
  const Range one = is_sorted ? inside : behind, two = is_sorted ? behind : inside;
  mark(stage, 0, one.first, slot);
  mark(stage, one.end, two.first, slot);
  mark(stage, max_of(one.end, two.end), width, slot);
  if (one.is_empty()) return two;
  return two.is_empty() ? one : Range{one.first, max_of(one.end, two.end)};
}

void compute_positions(const i64 *record, i64 y, Range columns, int bits, Scratch &s) {
  const i64 count = round_up(columns.size(), 16);
  if (record[Record::EXPONENT] != 0) return compute_perspective_positions(record, y, columns, count, bits, s);
  const i32 half = 1 << (bits - 1);
  follow(affine_axis(record, 0, y, columns.first), -half, count, s.row.column.at + columns.first);
  follow(affine_axis(record, 1, y, columns.first), -half, count, s.row.line.at + columns.first);
}

void follow_form(const i64 *form, i64 y, i64 first, i64 count, int shift, i32 *numbers) {
  const u64 step = (u64)form[0];
  follow({(u64)form[1] * (u64)y + (u64)form[2] + step * (u64)first, step, shift}, 0, count, numbers);
}

namespace {

// Computes positions of row `y` through `count` interpolating maps, with `bits` fraction bits; returns their columns.
Range compute_row_positions(const Row &row, i64 count, bool is_range, i64 y, i64 width, int bits, Scratch &s) {
  InterpolateScratch &maps = s.interpolate;
  i32 *stage = s.row.stage.at;
  Range columns = {0, width};
  if (maps.has_grid) {
    compute_displaced_positions(row, count, y, width, s);
    return columns;
  }
  if (is_range) {
    columns = inside_columns(maps.record(0), y, width, 1);
  } else {
    memset(stage, 0xff, (size_t)width * sizeof *stage);
    for (i64 i = count - 1; i >= 0; i--) columns = mark_outside(maps.record(i), y, s.tables.map_slots[i], width, stage);
  }
  if (!columns.is_empty()) compute_positions(maps.record(0), y, columns, bits, s);
  return columns;
}

}  // namespace

void find_composed_row(const Row &row, i64 slot, i64 count, i64 y, i64 width, Scratch &s) {
  compute_row_positions(row, count, false, y, width, BILINEAR_BITS, s);
  const i32 *window = row.window[slot];
  const int mode = row.flags[slot] >> INTERPOLATION_BITS;
  i32 *positions[2] = {s.row.column.at, s.row.line.at};
  for (int axis = 0; axis < 2; axis++) {
    const i32 low = window[1 - axis], high = window[3 - axis];
    i32 *__restrict at = positions[axis];
    for (i64 x = 0; x < width; x++) {
      // Positions are less half a pixel.
      const i32 pixel = (at[x] + (1 << (BILINEAR_BITS - 1))) >> BILINEAR_BITS;
      const i32 folded = mode == 0 ? pixel : low + (i32)fold_index(pixel - low, high - low, mode);
      at[x] = clamp<i32>(folded, low, high - 1);
    }
  }
}

template <class Element> Range read_interpolated_row(const Row &row, const ImageOf<Element> &image, i64 slot, i64 count,
                                                     bool is_range, i64 y, i64 width, Scratch &s) {
  InterpolateScratch &maps = s.interpolate;
  const bool is_bilinear = (row.flags[slot] & INTERPOLATION_MASK) == Interpolation::BILINEAR;
  const Range columns =
      compute_row_positions(row, count, is_range, y, width, is_bilinear ? BILINEAR_BITS : BICUBIC_BITS, s);
  if (!columns.is_empty()) {
    if (is_bilinear) read_bilinear(image, row.window[slot], columns, s);
    else read_bicubic(image, row.window[slot], columns, s);
  }
  if (maps.has_seam) read_seam(row, image, slot, width, s);
  return is_range ? columns : Range{0, width};
}

void find_real_nearest_row(const Row &row, i64 slot, i64 y, i64 width, Scratch &s) {
  const f64 *a = row.args[slot];
  const i32 *window = row.window[slot];
  const bool is_perspective = row.opcode[slot] == Op::MAP_PERSPECTIVE;
  const int mode = row.flags[slot] >> INTERPOLATION_BITS;
  if (row.opcode[slot] == Op::MAP_GRID) {
    compute_displaced_positions(row, 1, y, width, s);
  } else if (mode != 0) {
    memset(s.row.stage.at, 0xff, (size_t)width * sizeof(i32));
    fold_real_row(a, window, mode, is_perspective, y, width, s);
  } else if (is_perspective) {
    compute_nearest_positions<true>(a, window, (i32)slot, y, width, s.row);
  } else {
    compute_nearest_positions<false>(a, window, (i32)slot, y, width, s.row);
  }
}

#define VG_COMPILE_ALL(Element) VG_COMPILE(read_interpolated_row, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
