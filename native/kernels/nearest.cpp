// Rows that are copied, or gathered through nearest maps.
#include "nearest.h"

#include "../coords.h"
#include "scratch.h"
#include "taps.h"

namespace vg::VG_LEVEL {
namespace {

// Size of an image, in bytes, that fits into the second-level cache in addition to another one.
constexpr i64 PREFETCHED = 1 << 18;
constexpr i64 ROWS_AHEAD = 8;
// Limits for int32 offsets, and int32 products of lines and widths.
constexpr i64 WIDEST = (1 << 15) - 1, LARGEST = (1LL << 31) - 1;
// Pixels are read by loads of four elements.
constexpr i64 LOAD = 4;

template <class Element> bool fits_offsets(const ImageOf<Element> &image) {
  const i64 size = image.height * image.width * image.channels;
  return IS_OF_IMAGES<Element> && image.channels == 3 && size >= LOAD && size <= LARGEST && image.width <= WIDEST;
}

// Loads the words at byte offsets, their number rounded up to a multiple of 8. `ahead`: distance in bytes to the pixels
// that later rows read, for prefetching; 0 for an image that is in the cache already.
VG_SCALAR_FUNCTION void load_words(const u8 *__restrict pixels, const i32 *__restrict offset, i64 count, i64 ahead,
                                   i32 *__restrict words) {
  VG_SCALAR_LOOP
  for (i64 i = 0; i < count; i += 8) {
    if (ahead != 0) __builtin_prefetch(pixels + offset[i] + ahead, 0, 3);
    for (int k = 0; k < 8; k += 2) {
      // Two offsets by one load.
      const u64 both = load<u64>(offset + i + k);
      const u32 first = load<u32>(pixels + (u32)both), second = load<u32>(pixels + (both >> 32));
      words[i + k] = (i32)first;
      words[i + k + 1] = (i32)second;
    }
  }
}

// Copies the RGB pixels at the first `count` of `s.row.offset` to planes, from column `at` on. `has_last`: the image's
// last pixel is among them.
template <class Element> void gather_words(const ImageOf<Element> &image, i64 count, bool has_last, i64 ahead,
                                           PlanesOf<Element> planes, i64 at, Scratch &s) {
  i32 *__restrict offset = s.row.offset.at;
  const i32 last = (i32)(image.height * image.width * 3 - LOAD);
  for (i64 i = count; i < round_up(count, LANES); i++) offset[i] = 0;
  if (has_last)
    for (i64 i = 0; i < count; i++) offset[i] = min_of(offset[i], last);
  for (i64 i = 0; i < count; i += LANES) {
    if (ahead != 0) prefetch_pixels(image.pixels + ahead, offset + i);
    Register pixels[4], channels[4];
    for (int k = 0; k < 4; k++) pixels[k] = load_pixels(image.pixels, offset + i + k);
    split_pixels(pixels, channels);
    for (int c = 0; c < 3; c++) store_numbers(planes[c] + at + i, channels[c]);
  }
  // The load of the last pixel began one element earlier. No other pixel begins there.
  if (!has_last) return;
  for (i64 i = 0; i < count; i++)
    for (i64 c = 0; c < 3; c++)
      if (offset[i] == last) planes[c][at + i] = image.pixels[last + 1 + c];
}
void gather_words(const Image &image, i64 count, bool has_last, i64 ahead, Planes planes, i64 at, Scratch &s) {
  i32 *__restrict offset = s.row.offset.at, *__restrict words = s.row.words.at;
  const i32 last = (i32)(image.bytes() - LOAD);
  for (i64 i = count; i < round_up(count, 8); i++) offset[i] = 0;
  if (has_last)
    for (i64 i = 0; i < count; i++) offset[i] = min_of(offset[i], last);
  load_words(image.pixels, offset, count, ahead, words);
  // The last pixel is read one byte earlier, so that no load leaves the image. No other pixel begins there.
  if (has_last)
    for (i64 i = 0; i < count; i++) words[i] = offset[i] == last ? (i32)((u32)words[i] >> 8) : words[i];
  split_words(words, count, planes, at);
}

// The x in 0..n with low <= start + step x < high.
Range solve(i64 start, i64 step, i64 low, i64 high, i64 n) {
  if (step == 0) return low <= start && start < high ? Range{0, n} : Range{0, 0};
  const i64 first = step > 0 ? -floor_div(start - low, step) : floor_div(start - high, -step) + 1;
  const i64 end = step > 0 ? -floor_div(start - high, step) : floor_div(start - low, -step) + 1;
  return {max_of<i64>(0, first), min_of(n, end)};
}

// Writes byte offsets of `count` pixels at fixed-point coordinates with steps du, dv; returns the greatest.
i32 fixed_offsets_32(u32 u, u32 du, u32 v, u32 dv, i32 width, i32 channels, i64 count, i32 *__restrict offset) {
  i32 most = 0;
  for (i64 i = 0; i < count; i++) {
    offset[i] = channels * (((i32)v >> FIXED_BITS) * width + ((i32)u >> FIXED_BITS));
    most = max_of(most, offset[i]);
    u += du;
    v += dv;
  }
  return most;
}

// The same by one product for both coordinates (pmaddwd), whose integer parts are the upper halves of their numbers.
// Offsets after the end of the row, up to a full block, are overwritten or never read.
i32 fixed_offsets(u32 u, u32 du, u32 v, u32 dv, i32 width, i32 channels, i64 count, i32 *__restrict offset) {
  if (channels * width > INT16_MAX) return fixed_offsets_32(u, du, v, dv, width, channels, count, offset);
  constexpr u32 STEP = REGISTER / 4;
  u32 first_u[STEP], first_v[STEP];
  IntLanes index, most = {};
  for (u32 i = 0; i < STEP; i++) {
    index[i] = (i32)i;
    first_u[i] = u + i * du;
    first_v[i] = v + i * dv;
  }
  Register us = load_register(first_u), vs = load_register(first_v);
  const Register weights = all_pairs(channels * width, channels);
  const Register du_step = all32((i32)(STEP * du)), dv_step = all32((i32)(STEP * dv));
  for (i64 i = 0; i < count; i += STEP) {
    const Register offsets = dot16(upper_halves(vs, us), weights);
    store(offset + i, offsets);
    const IntLanes inside = (IntLanes)offsets & (index < (i32)count);
    most = most > inside ? most : inside;
    us = add32(us, du_step);
    vs = add32(vs, dv_step);
    index += (i32)STEP;
  }
  i32 greatest = 0;
  for (u32 i = 0; i < STEP; i++) greatest = max_of<i32>(greatest, most[i]);
  return greatest;
}

// Fields of a packed map: six coefficients, then these.
enum { TOP = 6, LEFT, BOTTOM, RIGHT, SLOT, PACKED = 16 };

// A map's window, with masks (all bits or none) of pixels outside. With `?:`, compilers emit masked stores, for which
// the next load waits. The copy lets them hoist loads of the window out of loops that store.
struct Window {
  u32 top, left, bottom, right;  // the outermost lines and columns inside

  explicit Window(const i32 *map)
      : top((u32)map[TOP]), left((u32)map[LEFT]), bottom((u32)map[BOTTOM] - 1), right((u32)map[RIGHT] - 1) {}
  i32 outside(i32 u, i32 v) const {
    return (i32)(((u32)u - left) | (right - (u32)u) | ((u32)v - top) | (bottom - (u32)v)) >> 31;
  }
};

// Applies the last map of a chain to row `y` of the output. Pixels outside continue from (0, 0).
void begin_walk(const i32 *map, i64 y, i64 width, Scratch &s) {
  i32 *__restrict column = s.row.column.at, *__restrict line = s.row.line.at, *__restrict stage = s.row.stage.at;
  const Window window(map);
  const i32 slot = map[SLOT];
  const u32 du = (u32)map[0], dv = (u32)map[3];
  u32 at_u = (u32)map[1] * (u32)y + (u32)map[2], at_v = (u32)map[4] * (u32)y + (u32)map[5];
  for (i64 x = 0; x < width; x++) {
    const i32 u = (i32)at_u >> FIXED_BITS, v = (i32)at_v >> FIXED_BITS;
    const i32 outside = window.outside(u, v);
    column[x] = u & ~outside;
    line[x] = v & ~outside;
    stage[x] = slot | ~outside;
    at_u += du;
    at_v += dv;
  }
}

// Applies one map to all coordinates in place. Sets `stage` to the map's slot for pixels that are outside for the first
// time.
void step_back(const i32 *map, i64 width, Scratch &s) {
  i32 *__restrict column = s.row.column.at, *__restrict line = s.row.line.at, *__restrict stage = s.row.stage.at;
  const Window window(map);
  const i32 slot = map[SLOT];
  const u32 a = (u32)map[0], b = (u32)map[1], c = (u32)map[2], d = (u32)map[3], e = (u32)map[4], f = (u32)map[5];
  for (i64 i = 0; i < width; i++) {
    const u32 x = (u32)column[i], y = (u32)line[i];
    const i32 u = (i32)(a * x + b * y + c) >> FIXED_BITS, v = (i32)(d * x + e * y + f) >> FIXED_BITS;
    const i32 outside = window.outside(u, v), leaves = outside & (stage[i] >> 31);
    column[i] = u & ~outside;
    line[i] = v & ~outside;
    stage[i] ^= leaves & ~slot;  // from -1
  }
}

// Writes byte offsets of pixels; returns the greatest.
i32 pixel_offsets(const i32 *__restrict column, const i32 *__restrict line, i32 width, i64 count,
                  i32 *__restrict offset) {
  i32 most = 0;
  for (i64 i = 0; i < count; i++) {
    offset[i] = 3 * (line[i] * width + column[i]);
    most = max_of(most, offset[i]);
  }
  return most;
}

template <class Element> void copy_mirrored(const Element *__restrict from, i64 count, Element *__restrict to) {
  for (i64 i = 0; i < count; i++) to[i] = from[count - 1 - i];
}

// Pixels along a line in fixed point, from (u, v) on with a constant step; written from column `at` of the planes on.
struct FixedLine {
  i64 u, v, du, dv, count;
  i64 ahead_u, ahead_v;  // distance to the source of the pixel a few rows below
};

template <class Element> void gather_rgb_line(const ImageOf<Element> &image, const FixedLine &line,
                                              PlanesOf<Element> planes, i64 at, Scratch &s) {
  const i32 most = fixed_offsets((u32)line.u, (u32)line.du, (u32)line.v, (u32)line.dv, (i32)image.width, 3, line.count,
                                 s.row.offset.at);
  const i64 ahead = image.bytes() > PREFETCHED ? 3 * (image.width * line.ahead_v + line.ahead_u) : 0;
  gather_words(image, line.count, most > image.bytes() / (i64)sizeof(Element) - LOAD, ahead, planes, at, s);
}

template <class Element>
void gather_line(const ImageOf<Element> &image, const FixedLine &line, PlanesOf<Element> planes, i64 at, Scratch &s) {
  if (image.channels == 1) {
    const i32 *offset = s.row.offset.at;
    fixed_offsets((u32)line.u, (u32)line.du, (u32)line.v, (u32)line.dv, (i32)image.width, 1, line.count,
                  s.row.offset.at);
    Element *__restrict out = planes[0] + at;
    for (i64 i = 0; i < line.count; i++) out[i] = image.pixels[offset[i]];
    return;
  }
  if (!fits_offsets(image)) {
    for (i64 i = 0; i < line.count; i++) {
      const i64 y = (line.v + line.dv * i) >> FIXED_BITS, x = (line.u + line.du * i) >> FIXED_BITS;
      const Element *pixel = image.pixels + image.channels * (y * image.width + x);
      for (i64 c = 0; c < image.channels; c++) planes[c][at + i] = pixel[c];
    }
    return;
  }
  if constexpr (IS_OF_IMAGES<Element>) gather_rgb_line(image, line, planes, at, s);
}

// ---- Maps that exchange columns and lines. Blocks of adjacent columns are copied at once, and kept for the rows that
// read them.

template <class Element> constexpr i64 TURNED = 16 / sizeof(Element);

// Elements of the first or the second half of two vectors, alternately (punpckl, punpckh).
template <int half, int n, class Vector> VG_INLINE Vector zip(Vector a, Vector b) {
#define VG_ZIP(i) ((i) / 2 + (i) % 2 * n + half * n / 2)
  if constexpr (n == 16) return __builtin_shufflevector(a, b, VG_EACH_16(VG_ZIP));
  else if constexpr (n == 8) return __builtin_shufflevector(a, b, VG_EACH_8(VG_ZIP, 0));
  else if constexpr (n == 4) return __builtin_shufflevector(a, b, VG_ZIP(0), VG_ZIP(1), VG_ZIP(2), VG_ZIP(3));
  else return __builtin_shufflevector(a, b, VG_ZIP(0), VG_ZIP(1));
#undef VG_ZIP
}

// Transposes n x n elements of n lines, `step` apart; stores row j to to(j).
template <class Element, class F> VG_INLINE void transpose(const Element *from, i64 step, F to) {
  typedef Element Vector __attribute__((vector_size(16)));
  constexpr int n = TURNED<Element>;
  Vector rows[n], zipped[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; i++) rows[i] = load<Vector>(from + i * step);
#pragma GCC unroll 4
  for (int stage = 1; stage < n; stage *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; i++) {
      zipped[2 * i] = zip<0, n>(rows[i], rows[i + n / 2]);
      zipped[2 * i + 1] = zip<1, n>(rows[i], rows[i + n / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; i++) rows[i] = zipped[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < n; i++) store(to(i), rows[i]);
}

bool exchanges_axes(const f64 *a) {
  return a[0] == 0 && a[4] == 0 && fabs(a[1]) == FIXED_ONE && fabs(a[3]) == FIXED_ONE;
}

// Copies `count` pixels of column `u`, from line `v` on; `down`: 1, or -1 upwards. `ahead`: -1 if the next row reads the
// column to the left, else 1.
template <class Element> void read_column(const ImageOf<Element> &image, i64 u, i64 v, i64 down, i64 ahead, i64 count,
                                          PlanesOf<Element> planes, i64 at, Scratch &s) {
  constexpr i64 n = TURNED<Element>;
  const i64 channels = image.channels, stride = s.row.stride, step = down * channels * image.width;
  Element *turned = (Element *)s.nearest.turned.at;
  i64 &first = s.nearest.turned_column;
  if (first < 0 || u < first || u >= first + n) {
    first = min_of(u / n * n, image.width - n);
    const Element *source = image.pixels + channels * (v * image.width + first);
    for (i64 i = 0; i < count; i += n) {
      const i64 line = min_of(i, count - n);
      for (i64 k = 0; k < n; k++) __builtin_prefetch(source + (line + k) * step + ahead * n * channels, 0, 3);
      for (i64 k = 0; k < channels; k++)
        transpose(source + line * step + n * k, step, [=](i64 j) { return turned + (n * k + j) * stride + line; });
    }
  }
  for (i64 c = 0; c < channels; c++)
    copy_values(planes[c] + at, (const Element *)turned + (channels * (u - first) + c) * stride, count);
}

// Copies the pixels at `column` and `line`.
template <class Element> void gather_pixels(const ImageOf<Element> &image, i64 y, i64 width, Scratch &s) {
  const PlanesOf<Element> planes = s.row.planes<Element>();
  if (!fits_offsets(image)) {
    const i32 *column = s.row.column.at, *line = s.row.line.at;
    for (i64 x = 0; x < width; x++) {
      const Element *pixel = image.pixels + image.channels * (line[x] * image.width + column[x]);
      for (i64 c = 0; c < image.channels; c++) planes[c][x] = pixel[c];
    }
    return;
  }
  const i64 middle = width / 2, before = s.row.offset[middle];
  const i32 most = pixel_offsets(s.row.column.at, s.row.line.at, (i32)image.width, width, s.row.offset.at);
  // Extrapolates the distance between this row and the row before.
  i64 ahead = 0;
  if (y > 0 && image.bytes() > PREFETCHED) ahead = (s.row.offset[middle] - before) * ROWS_AHEAD;
  gather_words(image, width, most > image.bytes() / (i64)sizeof(Element) - LOAD, ahead, planes, 0, s);
}

// Copies the pixels of a line at `column`; pixels before the first column are arbitrary.
template <class Element>
void gather_columns(const ImageOf<Element> &image, i64 line, i64 width, PlanesOf<Element> planes, Scratch &s) {
  const i32 *__restrict column = s.row.column.at;
  if (!fits_offsets(image)) {
    const Element *pixels = image.pixels + image.channels * line * image.width;
    for (i64 x = 0; x < width; x++)
      for (i64 c = 0; c < image.channels; c++) planes[c][x] = pixels[image.channels * max_of(column[x], 0) + c];
    return;
  }
  i32 *__restrict offset = s.row.offset.at;
  const i32 start = (i32)(3 * line * image.width);
  for (i64 x = 0; x < width; x++) offset[x] = start + 3 * max_of(column[x], 0);
  gather_words(image, width, line == image.height - 1, 0, planes, 0, s);
}

}  // namespace

RowCopy row_copy(i64 image_width, const f64 *a, const i32 *window, i64 y, i64 width) {
  const bool is_mirrored = a[0] <= 0;
  const i64 shift = to_i64(a[2]) >> FIXED_BITS;
  const i64 v = (a[4] > 0 ? y : -y) + (to_i64(a[5]) >> FIXED_BITS);
  Range columns;
  i64 u;
  if (is_mirrored) {
    columns = {max_of<i64>(0, shift - window[3] + 1), min_of(width, shift - window[1] + 1)};
    u = shift - columns.end + 1;
  } else {
    columns = {max_of<i64>(0, window[1] - shift), min_of(width, window[3] - shift)};
    u = columns.first + shift;
  }
  if (v < window[0] || v >= window[2] || columns.is_empty()) return {{0, 0}, 0, is_mirrored};
  return {columns, v * image_width + u, is_mirrored};
}

template <class Element> void copy_pixels(const ImageOf<Element> &image, i64 first, i64 count, bool is_mirrored,
                                          PlanesOf<Element> planes, i64 at) {
  const Element *source = image.pixels + image.channels * first;
  if (count <= 0) return;
  if (image.channels == 1) {
    if (is_mirrored) copy_mirrored(source, count, planes[0] + at);
    else copy_values(planes[0] + at, source, count);
    return;
  }
  Element *red = planes[0] + at, *green = planes[1] + at, *blue = planes[2] + at;
  if (is_mirrored) split_rgb<true>(source, count, red, green, blue);
  else split_rgb<false>(source, count, red, green, blue);
}

template <class Element> bool prepare_turn(const f64 *a, i64 channels, Scratch &s) {
  s.nearest.turned_column = -1;
  return !exchanges_axes(a) ||
         s.nearest.turned.reserve(TURNED<Element> * channels * s.row.stride * (i64)sizeof(Element));
}

template <class Element> Range read_fixed_row(const ImageOf<Element> &image, const f64 *a, const i32 *window, i64 y,
                                              i64 width, PlanesOf<Element> planes, Scratch &s) {
  const i64 dx = to_i64(a[0]), dy = to_i64(a[3]);
  const i64 x0 = linear(to_i64(a[1]), y, 0, 0, to_i64(a[2])), y0 = linear(to_i64(a[4]), y, 0, 0, to_i64(a[5]));
  const i64 one = 1 << FIXED_BITS;
  const Range in_x = solve(x0, dx, window[1] * one, window[3] * one, width);
  const Range in_y = solve(y0, dy, window[0] * one, window[2] * one, width);
  const Range inside = {max_of(in_x.first, in_y.first), min_of(in_x.end, in_y.end)};
  if (inside.is_empty()) return {0, 0};
  const i64 u = x0 + dx * inside.first, v = y0 + dy * inside.first;
  if (exchanges_axes(a) && min_of(inside.size(), image.width) >= TURNED<Element>) {
    read_column(image, u >> FIXED_BITS, v >> FIXED_BITS, dy >> FIXED_BITS, to_i64(a[1]) >> FIXED_BITS, inside.size(),
                planes, inside.first, s);
    return inside;
  }
  const i64 ahead_u = to_i64(a[1]) * ROWS_AHEAD >> FIXED_BITS, ahead_v = to_i64(a[4]) * ROWS_AHEAD >> FIXED_BITS;
  gather_line(image, {u, v, dx, dy, inside.size(), ahead_u, ahead_v}, planes, inside.first, s);
  return inside;
}

bool prepare_chain(const Row &row, i64 count, Scratch &s) {
  if (!s.nearest.maps.reserve(PACKED * row.slots)) return false;
  for (i64 i = 0; i < count; i++) {
    const i64 slot = s.tables.map_slots[i];
    const f64 *a = row.args[slot];
    i32 *map = s.nearest.maps.at + PACKED * i;
    memset(map, 0, PACKED * sizeof(i32));
    map[SLOT] = (i32)slot;
    // Otherwise no pixel is inside, and coordinates may overflow 32 bits.
    if (!may_hit(a, row.window[slot], row.out_size[slot][0], row.out_size[slot][1])) continue;
    for (int j = 0; j < 6; j++) map[j] = to_i32(a[j]);
    for (int j = 0; j < 4; j++) map[TOP + j] = row.window[slot][j];
  }
  return true;
}

void find_chain_row(i64 count, i64 y, i64 width, Scratch &s) {
  const i32 *maps = s.nearest.maps.at;
  begin_walk(maps + PACKED * (count - 1), y, width, s);
  for (i64 i = count - 2; i >= 0; i--) step_back(maps + PACKED * i, width, s);
}

template <class Element> void read_coordinates(const ImageOf<Element> &image, i64 y, i64 width, Scratch &s) {
  gather_pixels(image, y, width, s);
}

void prepare_tables(const Row &row, i64 slot, i64 image_height, i64 image_width, i64 height, i64 width, Scratch &s) {
  const f64 *a = row.args[slot];
  i32 *column = s.row.column.at, *line = s.row.line.at;
  if (row.opcode[slot] == Op::MAP_SCALE) {
    const int mode = row.flags[slot] >> INTERPOLATION_BITS;
    scale_table(a[1], a[0], image_width, column, width, a[4] != 0, a[5] != 0, mode);
    scale_table(a[3], a[2], image_height, line, height, false, a[5] != 0, mode);
  } else {
    pad_table(to_i64(a[0]), row.flags[slot], image_width, column, width);
    pad_table(to_i64(a[1]), row.flags[slot], image_height, line, height);
  }
}

template <class Element>
void read_table_row(const ImageOf<Element> &image, i64 slot, i64 y, i64 width, PlanesOf<Element> planes, Scratch &s) {
  const i32 *__restrict column = s.row.column.at;
  i32 *__restrict stage = s.row.stage.at;
  const i64 line = s.row.line[y];
  if (line < 0) {
    for (i64 x = 0; x < width; x++) stage[x] = (i32)slot;
    return;
  }
  for (i64 x = 0; x < width; x++) stage[x] = column[x] < 0 ? (i32)slot : -1;
  gather_columns(image, line, width, planes, s);
}

template <class Element>
void fill_outside(PlanesOf<Element> planes, i64 channels, const Element *color, Range inside, i64 width) {
  // Most rows have no pixel outside, and a call takes as long as a short row.
  if (inside.first > 0)
    for (i64 c = 0; c < channels; c++) set_values(planes[c], color[c], inside.first);
  if (inside.end < width)
    for (i64 c = 0; c < channels; c++) set_values(planes[c] + inside.end, color[c], width - inside.end);
}

namespace {

// Sets the pixels whose stage is `slot` to a color.
template <class Element>
void fill_slot(const i32 *stage, i32 slot, const Element *color, i64 width, PlanesOf<Element> planes) {
  Ints any = {};
  for (i64 x = 0; x < width; x += LANES) any |= load<Ints>(stage + x) == slot;
  i32 is_any = 0;
  for (i64 i = 0; i < LANES; i++) is_any |= any[i];
  if (is_any == 0) return;
  for (i64 c = 0; c < 3; c++) {
    Element *plane = planes[c];
    if constexpr (HAS_LEVELS<Element>) {
      for (i64 x = 0; x < width; x++) plane[x] = stage[x] == slot ? color[c] : plane[x];
    } else {
      const Floats level = all_floats((f32)color[c]);
      for (i64 x = 0; x < width; x += LANES)
        store_values(plane + x, load<Ints>(stage + x) == slot ? level : load_floats(plane + x));
    }
  }
}
#if defined(__x86_64__)  // 16 at a time
void fill_slot(const i32 *stage, i32 slot, const u8 *color, i64 width, Planes planes) {
  __m128i levels[3];
  for (int c = 0; c < 3; c++) levels[c] = _mm_set1_epi8((char)color[c]);
  for (i64 x = 0; x < width; x += 16) {
#if VG_AVX512  // vpcmpd to a mask
    const __mmask16 is_here = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(stage + x), _mm512_set1_epi32(slot));
    if (is_here == 0) continue;
    for (int c = 0; c < 3; c++) _mm_mask_storeu_epi8(planes[c] + x, is_here, levels[c]);
#else  // packssdw, packsswb
    const __m128i *at = (const __m128i *)(stage + x);
    __m128i words[4];
    for (int k = 0; k < 4; k++) words[k] = _mm_cmpeq_epi32(_mm_loadu_si128(at + k), _mm_set1_epi32(slot));
    const __m128i is_here = _mm_packs_epi16(_mm_packs_epi32(words[0], words[1]), _mm_packs_epi32(words[2], words[3]));
    if (_mm_movemask_epi8(is_here) == 0) continue;
    for (int c = 0; c < 3; c++) {
      __m128i *plane = (__m128i *)(planes[c] + x);
      const __m128i kept = _mm_andnot_si128(is_here, _mm_loadu_si128(plane));
      _mm_storeu_si128(plane, _mm_or_si128(kept, _mm_and_si128(is_here, levels[c])));
    }
#endif
  }
}
#endif

}  // namespace

template <class Element> void fill_by_stage(i64 count, i64 width, Scratch &s) {
  for (i64 i = 0; i < count; i++) {
    const i32 slot = s.tables.map_slots[i];
    fill_slot(s.row.stage.at, slot, s.tables.fill<Element>(slot), width, s.row.planes<Element>());
  }
}

#define VG_COMPILE_ALL(Element)         \
  VG_COMPILE(copy_pixels, Element)      \
  VG_COMPILE(read_coordinates, Element) \
  VG_COMPILE(read_table_row, Element)   \
  VG_COMPILE(fill_outside, Element)     \
  VG_COMPILE(fill_by_stage, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)
#define VG_COMPILE_MOVED(Element)   \
  VG_COMPILE(prepare_turn, Element) \
  VG_COMPILE(read_fixed_row, Element)
VG_EACH_MOVED_ELEMENT(VG_COMPILE_MOVED)

}  // namespace vg::VG_LEVEL
