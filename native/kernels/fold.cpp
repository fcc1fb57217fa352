// Maps that fold positions outside their image back into it: positions of a stage, chains of nearest maps, and pixels
// with taps outside the image. Positions within one image length outside fold without a division, in vectors; nearly
// all do. GPU counterparts: `trace_folded` and `_folded_places` in executors/cuda/kernels/fetch.py.
#include "../coords.h"
#include "interpolate.h"
#include "scratch.h"
#include "split.h"

namespace vg::VG_LEVEL {
namespace {

// Fraction bits of the positions of integer pixels, which are pixel centers; and the shift from 16.16 numbers.
constexpr int PIXEL_BITS = 1, TO_CENTERS = FIXED_BITS - PIXEL_BITS;
// The greatest int32.
constexpr i64 MOST = ((i64)1 << 31) - 1;
// A perspective's positions are clamped to this.
constexpr f32 FAR = 1 << 30;

// Transform of folded positions: forward from the first pixel, or backward from the last.
struct Origin {
  i64 base, sign;
};

// Folds positions within one image length outside the image, which fold once.
void fold_near(const i32 *positions, i64 width, Origin origin, i64 n, int mode, int bits, i64 slack, i32 *out) {
  const i32 half = 1 << (bits - 1), span = (i32)((u64)n << bits);
  const u32 base = (u32)origin.base, sign = (u32)origin.sign;
  if (mode == PadMode::EDGE) {
    const i32 low = (i32)(half - slack), high = (i32)(span - half + slack);
    for (i64 x = 0; x < width; x++) out[x] = (i32)(base + sign * (u32)min_of(max_of(positions[x], low), high));
  } else if (mode == PadMode::WRAP) {
    for (i64 x = 0; x < width; x++) {
      const i32 at = positions[x];
      out[x] = (i32)(base + sign * (u32)(at + (at < 0 ? span : 0) - (at >= span ? span : 0)));
    }
  } else {
    const i32 lead = mode == PadMode::REFLECT ? half : 0, twice = 2 * (span - 2 * lead);
    for (i64 x = 0; x < width; x++) {
      const i32 from_lead = positions[x] - lead, at = from_lead < 0 ? -from_lead : from_lead;
      out[x] = (i32)(base + sign * (u32)(lead + min_of(at, twice - at)));
    }
  }
}

bool are_near(const i32 *__restrict positions, i64 width, i64 n, int mode, int bits) {
  i32 low = 0, high = 0;
  const i64 max_coord = (i64)((u64)(mode == PadMode::REFLECT ? n - 1 : n) << bits);
  for (i64 x = 0; x < width; x++) {
    low = min_of(low, positions[x]);
    high = max_of(high, positions[x]);
  }
  return low >= -max_coord && high < 2 * max_coord;
}

// The quotient of a perspective, clamped to FAR.
VG_INLINE i32 divide(i32 numerator, i32 depth, f32 factor) {
  const f32 value = (f32)numerator / (f32)(depth != 0 ? depth : 1) * factor;
  return (i32)floorf(clamp(value, -FAR, FAR));
}

// Initializes positions to the pixels of a row.
void begin_positions(i64 y, i64 width, i32 *__restrict column, i32 *__restrict line) {
  for (i32 x = 0; x < (i32)width; x++) {
    column[x] = x;
    line[x] = (i32)y;
  }
}

// A linear form of positions (or of integer columns and lines): steps, and the value at 0.
struct Form {
  i64 x, y, at_0;

  Form(const i64 *form, int down) : x(form[0] >> down), y(form[1] >> down), at_0(form[2]) {}
  i64 at(i64 column, i64 line) const { return linear(x, column, y, line, at_0); }
};

// A map that folds.
struct FoldingMap {
  Form u, v, depth;
  int shift, mode;
  bool is_affine;
  f32 factor;
  i64 span_u, span_v;

  FoldingMap(const i64 *record, int down)
      : u(record + Record::U, down),
        v(record + Record::V, down),
        depth(record + Record::DEPTH, down),
        shift((int)record[Record::SHIFT]),
        mode((int)record[Record::FOLD]),
        is_affine(record[Record::EXPONENT] == 0),
        factor((f32)ldexp(1.0, (int)record[Record::EXPONENT])),
        span_u(record[Record::SPAN_U]),
        span_v(record[Record::SPAN_V]) {}
  i32 depth_at(i64 column, i64 line) const { return (i32)(depth.at(column, line) >> shift); }
};

// Computes positions of a row before folding, as int32. False if some do not fit.
bool move_row(const i64 *record, const FoldingMap &map, i64 y, int bits, i64 width, i32 *to_u, i32 *to_v, Scratch &s) {
  const i64 half = 1 << (bits - 1);
  // Positions along a row are monotone: if both ends fit, all do.
  for (i64 x = 0; x < width; x += max_of<i64>(width - 1, 1)) {
    const i64 u = map.u.at(x, y) >> map.shift, v = map.v.at(x, y) >> map.shift;
    if (u >= MOST || u <= -MOST || v >= MOST || v <= -MOST) return false;
  }
  compute_positions(record, y, {0, width}, bits, s);
  auto from_side = [&](const i32 *__restrict positions, int axis, i32 *__restrict to) {
    const u32 base = (u32)(record[Record::ORIGIN_U + 2 * axis] - half), sign = (u32)record[Record::SIGN_U + 2 * axis];
    for (i64 x = 0; x < width; x++) to[x] = (i32)(sign * ((u32)positions[x] - base));
  };
  from_side(s.row.column.at, 0, to_u);
  from_side(s.row.line.at, 1, to_v);
  return true;
}

void move_affine(const FoldingMap &map, i64 width, const i32 *__restrict column, const i32 *__restrict line,
                 i32 *__restrict to_u, i32 *__restrict to_v) {
  // Scalar, because clang 20 vectorizes it wrongly for AVX-512.
  VG_SCALAR_LOOP
  for (i64 x = 0; x < width; x++) {
    to_u[x] = (i32)clamp(map.u.at(column[x], line[x]) >> map.shift, -MOST, MOST);
    to_v[x] = (i32)clamp(map.v.at(column[x], line[x]) >> map.shift, -MOST, MOST);
  }
}

void move_perspective(const FoldingMap &map, i64 width, const i32 *__restrict column, const i32 *__restrict line,
                      i32 *__restrict to_u, i32 *__restrict to_v) {
  for (i64 x = 0; x < width; x++) {
    const i32 depth = map.depth_at(column[x], line[x]);
    to_u[x] = divide((i32)(map.u.at(column[x], line[x]) >> NUMERATOR_SHIFT), depth, map.factor);
    to_v[x] = divide((i32)(map.v.at(column[x], line[x]) >> NUMERATOR_SHIFT), depth, map.factor);
  }
}

// The same for the row's pixels under a perspective. Overwrites their columns and lines.
void move_row_by_perspective(const i64 *record, const FoldingMap &map, i64 y, i64 width, i32 *to_u, i32 *to_v,
                             Scratch &s) {
  i32 *__restrict depths = s.row.column.at, *__restrict numerators = s.row.line.at;
  follow_form(record + Record::DEPTH, y, 0, width, map.shift, depths);
  const f32 factor = map.factor;
  for (int axis = 0; axis < 2; axis++) {
    i32 *__restrict to = axis == 0 ? to_u : to_v;
    follow_form(record + Record::U + 3 * axis, y, 0, width, NUMERATOR_SHIFT, numerators);
    for (i64 x = 0; x < width; x++) to[x] = divide(numerators[x], depths[x], factor);
  }
}

// Applies a 16.16 map that folds to the integer pixels of a row. `max_coord`: their greatest column or line.
void fold_fixed(const i64 *record, i64 max_coord, i64 width, Scratch &s) {
  i32 *__restrict column = s.row.column.at, *__restrict line = s.row.line.at;
  i32 *__restrict to_u = s.row.offset.at, *__restrict to_v = s.row.words.at;
  const int mode = (int)record[Record::FOLD];
  const i64 span_u = record[Record::SPAN_U], span_v = record[Record::SPAN_V];
  const Form u(record + Record::U, 0), v(record + Record::V, 0);
  auto farthest = [=](const Form &form) {
    auto magnitude = [](i64 value) { return value < 0 ? minus(0, value) : value; };
    return plus(times(plus(magnitude(form.x), magnitude(form.y)), max_coord), magnitude(form.at_0));
  };
  bool is_near = max_of(farthest(u), farthest(v)) <= MOST;
  if (is_near) {
    const u32 a = (u32)u.x, b = (u32)u.y, c = (u32)u.at_0, d = (u32)v.x, e = (u32)v.y, f = (u32)v.at_0;
    for (i64 x = 0; x < width; x++) {
      const u32 at_x = (u32)column[x], at_y = (u32)line[x];
      to_u[x] = (i32)(a * at_x + b * at_y + c) >> TO_CENTERS | 1;
      to_v[x] = (i32)(d * at_x + e * at_y + f) >> TO_CENTERS | 1;
    }
    is_near = are_near(to_u, width, span_u, mode, PIXEL_BITS) && are_near(to_v, width, span_v, mode, PIXEL_BITS);
  }
  if (is_near) {
    fold_near(to_u, width, {0, 1}, span_u, mode, PIXEL_BITS, 0, column);
    fold_near(to_v, width, {0, 1}, span_v, mode, PIXEL_BITS, 0, line);
  } else {
    for (i64 x = 0; x < width; x++) {
      const i64 to_x = u.at(column[x], line[x]) >> TO_CENTERS | 1, to_y = v.at(column[x], line[x]) >> TO_CENTERS | 1;
      column[x] = (i32)fold_position(to_x, span_u, mode, PIXEL_BITS, 0);
      line[x] = (i32)fold_position(to_y, span_v, mode, PIXEL_BITS, 0);
    }
  }
  const i32 left = (i32)record[Record::ORIGIN_U], top = (i32)record[Record::ORIGIN_V];
  for (i64 x = 0; x < width; x++) {
    column[x] = left + (column[x] >> PIXEL_BITS);
    line[x] = top + (line[x] >> PIXEL_BITS);
  }
}

// Applies a 16.16 map that does not fold to the integer pixels of a row. Pixels outside read the window's first pixel;
// later the fill color replaces them.
void enter_fixed(const i64 *record, i32 slot, i64 width, Scratch &s) {
  i32 *__restrict column = s.row.column.at, *__restrict line = s.row.line.at, *__restrict stage = s.row.stage.at;
  const Form form_u(record + Record::U, 0), form_v(record + Record::V, 0);
  const i64 end_u = record[Record::SPAN_U], end_v = record[Record::SPAN_V];
  const i64 left = record[Record::ORIGIN_U], top = record[Record::ORIGIN_V];
  for (i64 x = 0; x < width; x++) {
    const i64 u = form_u.at(column[x], line[x]) >> FIXED_BITS, v = form_v.at(column[x], line[x]) >> FIXED_BITS;
    const bool is_inside = (u >= 0) & (u < end_u) & (v >= 0) & (v < end_v);
    const i32 now = ((stage[x] < 0) & !is_inside) ? slot : stage[x];
    column[x] = (i32)(left + (now < 0 ? u : 0));
    line[x] = (i32)(top + (now < 0 ? v : 0));
    stage[x] = now;
  }
}

// Computes a bilinear pixel whose taps outside the window have the color `fill`.
template <class Element> void blend_with_fill(const ImageOf<Element> &image, const i32 *window, i32 u, i32 v,
                                              const u8 *fill, bool weighs_twice, PlanesOf<Element> planes, i64 x) {
  using Sum = SumOf<Element>;
  const i64 column = u >> BILINEAR_BITS, line = v >> BILINEAR_BITS;
  const i32 dx = u & ((1 << BILINEAR_BITS) - 1), dy = v & ((1 << BILINEAR_BITS) - 1);
  const bool has_left = column >= window[1], has_right = column + 1 < window[3];
  const bool has_upper = line >= window[0], has_lower = line + 1 < window[2];
  const i32 weight_x = (has_left ? 32768 - dx : 0) + (has_right ? dx : 0);
  const i32 weight_y = (has_upper ? 32768 - dy : 0) + (has_lower ? dy : 0);
  const i32 weight = weighs_twice ? (i32)(((i64)weight_x * weight_y + (1 << 14)) >> 15) : 32768;
  for (i64 c = 0; c < image.channels; c++) {
    const auto color = from_byte<Element>(fill[c]), outside = weighs_twice ? (Element)0 : color;
    auto tap = [&](i64 at_line, i64 at_column, bool is_inside) {
      return to_tap(is_inside ? image.pixels[image.channels * (at_line * image.width + at_column) + c] : outside);
    };
    const Sum above = mix<BILINEAR_BITS, Sum>(tap(line, column, has_upper && has_left),
                                              tap(line, column + 1, has_upper && has_right), (Sum)dx);
    const Sum below = mix<BILINEAR_BITS, Sum>(tap(line + 1, column, has_lower && has_left),
                                              tap(line + 1, column + 1, has_lower && has_right), (Sum)dx);
    const Sum mixed = mix<BILINEAR_BITS, Sum>(above, below, (Sum)dy);
    planes[c][x] = from_tap<Element>(mix<BILINEAR_BITS, Sum>(to_tap(color), mixed, (Sum)weight));
  }
}

}  // namespace

void fold_positions(i32 *positions, i64 width, i64 n, int mode, int bits, i64 slack) {
  if (are_near(positions, width, n, mode, bits))
    return fold_near(positions, width, {0, 1}, n, mode, bits, slack, positions);
  for (i64 x = 0; x < width; x++) positions[x] = (i32)fold_position(positions[x], n, mode, bits, slack);
}

void fold_through(const i64 *record, i64 y, bool is_moved, int bits, i64 slack, i64 width, Scratch &s) {
  i32 *column = s.row.column.at, *line = s.row.line.at, *to_u = s.row.offset.at, *to_v = s.row.words.at;
  const FoldingMap map(record, is_moved ? bits : 0);
  const i64 half = 1 << (bits - 1);
  const Origin origin_u = {record[Record::ORIGIN_U] - half, record[Record::SIGN_U]};
  const Origin origin_v = {record[Record::ORIGIN_V] - half, record[Record::SIGN_V]};
  bool is_near = true;
  if (is_moved && map.is_affine) move_affine(map, width, column, line, to_u, to_v);
  else if (is_moved) move_perspective(map, width, column, line, to_u, to_v);
  else if (!map.is_affine) move_row_by_perspective(record, map, y, width, to_u, to_v, s);
  else is_near = move_row(record, map, y, bits, width, to_u, to_v, s);
  if (is_near && are_near(to_u, width, map.span_u, map.mode, bits) &&
      are_near(to_v, width, map.span_v, map.mode, bits)) {
    fold_near(to_u, width, origin_u, map.span_u, map.mode, bits, slack, column);
    fold_near(to_v, width, origin_v, map.span_v, map.mode, bits, slack, line);
    return;
  }
  if (!is_moved) begin_positions(y, width, column, line);
  for (i64 x = 0; x < width; x++) {
    const i64 at_x = column[x], at_y = line[x];
    i64 u = map.u.at(at_x, at_y), v = map.v.at(at_x, at_y);
    const i32 depth = map.depth_at(at_x, at_y);
    u = map.is_affine ? u >> map.shift : divide((i32)(u >> NUMERATOR_SHIFT), depth, map.factor);
    v = map.is_affine ? v >> map.shift : divide((i32)(v >> NUMERATOR_SHIFT), depth, map.factor);
    column[x] = (i32)(origin_u.base + origin_u.sign * fold_position(u, map.span_u, map.mode, bits, slack));
    line[x] = (i32)(origin_v.base + origin_v.sign * fold_position(v, map.span_v, map.mode, bits, slack));
  }
}

void fold_real_row(const f64 *a, const i32 *window, int mode, bool is_perspective, i64 y, i64 width, Scratch &s) {
  const f64 g = is_perspective ? a[6] : 0, h = is_perspective ? a[7] : 0, yc = (f64)y + 0.5;
  for (i64 x = 0; x < width; x++) {
    const f64 xc = (f64)x + 0.5, depth = g * xc + h * yc + 1.0;
    const f64 u = (a[0] * xc + a[1] * yc + a[2]) / depth, v = (a[3] * xc + a[4] * yc + a[5]) / depth;
    s.row.column[x] = (i32)fold_real(u, window[1], window[3], mode);
    s.row.line[x] = (i32)fold_real(v, window[0], window[2], mode);
  }
}

void find_folded_row(i64 count, i64 y, i64 width, Scratch &s) {
  begin_positions(y, width, s.row.column.at, s.row.line.at);
  memset(s.row.stage.at, 0xff, (size_t)width * sizeof(i32));
  i64 max_coord = max_of(width, y + 1);
  for (i64 i = count - 1; i >= 0; i--) {
    const i64 *record = s.interpolate.record(i);
    if (record[Record::FOLD] != 0) fold_fixed(record, max_coord, width, s);
    else enter_fixed(record, s.tables.map_slots[i], width, s);
    const i64 right = record[Record::ORIGIN_U] + record[Record::SPAN_U];
    max_coord = max_of(right, record[Record::ORIGIN_V] + record[Record::SPAN_V]);
  }
}

namespace {

// Marks the pixels of a row that have taps outside the image. `before`: number of taps before a position along each
// axis; there are `before` + 1 after it.
void mark_seam(const i32 *__restrict column, const i32 *__restrict line, const i32 *__restrict stage, const i32 *window,
               int bits, i32 before, i64 width, u8 *__restrict is_at_border) {
  const i32 left = window[1] + before, right = window[3] - 2 - before;
  const i32 top = window[0] + before, bottom = window[2] - 2 - before;
  for (i64 x = 0; x < width; x++) {
    const i32 i = column[x] >> bits, j = line[x] >> bits;
    is_at_border[x] = ((i < left) | (i > right) | (j < top) | (j > bottom)) & (stage[x] < 0);
  }
}

// The 4 x 4 pixels around a position, folded; and the position relative to them.
template <class Element> struct Surroundings {
  Element pixels[16 * 3];
  i32 u, v;

  Surroundings(const ImageOf<Element> &image, const i32 *window, int mode, int bits, i32 at_u, i32 at_v) {
    const i64 top = window[0], left = window[1], lines = window[2] - top, columns = window[3] - left;
    const i64 i = (at_u >> bits) - left, j = (at_v >> bits) - top, channels = image.channels;
    Element *to = pixels;
    for (i64 b = -1; b < 3; b++) {
      const i64 at = (top + fold_index(j + b, lines, mode)) * image.width + left;
      for (i64 a = -1; a < 3; a++) {
        const Element *pixel = image.pixels + channels * (at + fold_index(i + a, columns, mode));
        for (i64 c = 0; c < channels; c++) *to++ = pixel[c];
      }
    }
    const i32 one = 1 << bits;
    u = (at_u & (one - 1)) + one;
    v = (at_v & (one - 1)) + one;
  }
};

}  // namespace

template <class Element>
void read_seam(const Row &row, const ImageOf<Element> &image, i64 slot, i64 width, Scratch &s) {
  constexpr i32 AROUND[4] = {0, 0, 4, 4};
  const i32 *window = row.window[slot], *column = s.row.column.at, *line = s.row.line.at;
  const int mode = row.flags[slot] >> INTERPOLATION_BITS;
  const bool is_bicubic = (row.flags[slot] & INTERPOLATION_MASK) == Interpolation::BICUBIC;
  const bool weighs_twice = s.interpolate.record(0)[Record::TWICE] != 0;
  const int bits = is_bicubic ? BICUBIC_BITS : BILINEAR_BITS;
  const PlanesOf<Element> planes = s.row.planes<Element>();
  u8 *is_at_border = s.interpolate.is_at_border.at;
  mark_seam(column, line, s.row.stage.at, window, bits, is_bicubic ? 1 : 0, width, is_at_border);
  memset(is_at_border + width, 0, 8);
  for (i64 x = 0; x < width; x++) {
    if (!is_at_border[x]) {
      // Skip eight pixels without any.
      if (load<u64>(is_at_border + x) == 0) x += 7;
      continue;
    }
    if (mode == 0) {
      blend_with_fill(image, window, column[x], line[x], row.fill[slot], weighs_twice, planes, x);
      continue;
    }
    const Surroundings<Element> near(image, window, mode, bits, column[x], line[x]);
    const ImageOf<Element> pixels = {near.pixels, 4, 4, image.channels};
    if (is_bicubic) read_bicubic_pixel(pixels, AROUND, near.u, near.v, planes, x);
    else read_bilinear_pixel(pixels, AROUND, near.u, near.v, planes, x);
  }
}

#define VG_COMPILE_ALL(Element) VG_COMPILE(read_seam, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
