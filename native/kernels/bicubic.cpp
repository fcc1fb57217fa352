// Bicubic samples of 4 x 4 taps. Weights have 14 fraction bits. Sums are float32. A line's sum of integers is exact; for
// uint8 it is rounded to 6 fraction bits, and all sums are integers. GPU counterparts: `_cubic_row` and `_weight` in
// executors/cuda/kernels/fused.py.
#include "../coords.h"
#include "interpolate.h"
#include "scratch.h"
#include "taps.h"

namespace vg::VG_LEVEL {
namespace {

constexpr i32 ONE = 1 << BICUBIC_BITS, FRACTION = ONE - 1;

// Fraction bits to remove from a line's sum, and from a pixel's sum.
constexpr int LINE_SHIFT = 8, TOTAL_SHIFT = 2 * BICUBIC_BITS - LINE_SHIFT;

// The rounded product of numbers with 14 fraction bits.
VG_INLINE i32 scale_product(i32 a, i32 b) { return (a * b + (1 << 13)) >> 14; }

// Weights of the outer taps. The inner taps' weights are 1 - t and t minus the outer weights of their sides.
struct CubicWeights {
  i32 first, second, third, fourth;

  explicit CubicWeights(i32 t) {
    const i32 u = ONE - t, product = scale_product(t, u);
    first = -scale_product(product, u);
    fourth = -scale_product(product, t);
    second = u - first;
    third = t - fourth;
  }
};

// Bounds of the first taps such that all taps are in the window.
struct Frame {
  i32 left, top, right, bottom;
};

// Converts positions of one axis to first taps, flags of taps outside the frame, and pairs of weights.
void split_axis(const i32 *__restrict positions, i32 low, i32 high, i64 count, i32 *__restrict taps,
                i32 *__restrict first_two, i32 *__restrict last_two, u8 *__restrict is_at_border) {
  for (i64 i = 0; i < floor_to_block(count); i++) {
    const CubicWeights weights(positions[i] & FRACTION);
    first_two[i] = pair_of(weights.first, weights.second);
    last_two[i] = pair_of(weights.third, weights.fourth);
    const i32 at = (positions[i] >> BICUBIC_BITS) - 1, inside = clamp(at, low, high);
    taps[i] = inside;
    is_at_border[i] |= at != inside;
  }
}

void offsets_of(const i32 *__restrict columns, const i32 *__restrict lines, i32 step, i32 channels, i32 last, i64 count,
                i32 *__restrict offset, u8 *__restrict is_at_border) {
  for (i64 i = 0; i < floor_to_block(count); i++) {
    const i32 at = lines[i] * step + columns[i] * channels;
    is_at_border[i] |= at > last;
    offset[i] = min_of(at, last);
  }
}

// Computes `count` RGB pixels, rounded up to a multiple of 16, as words R, G, B, 0. `weights`: four arrays, `stride`
// apart.
#if VG_SSSE3  // pshufb, pmaddwd
// Pixels i + k, i + k + 4, ..., of four channels each, as sums with 20 fraction bits. One load of 16 bytes reads a
// pixel's four taps of a line.
template <int k>
VG_INLINE Register weigh_taps(const u8 *image, i64 row_bytes, const i32 *offset, const Register (&weights)[4]) {
  // Channels of the first two taps as adjacent int16; and of the last two taps, 6 bytes later.
  static constexpr ByteTable FIRST_TWO =
      byte_table([](int i) { return i % 2 == 1 || i % 16 >= 12 ? 128 : i % 16 / 4 + i % 4 / 2 * 3; });
  static constexpr ByteTable LAST_TWO =
      byte_table([](int i) { return i % 2 == 1 || i % 16 >= 12 ? 128 : i % 16 / 4 + i % 4 / 2 * 3 + 6; });
  const Register x01 = repeat32<k>(weights[0]), x23 = repeat32<k>(weights[1]);
  auto weigh_line = [&](const u8 *line) {
    const Register taps = join_16([=](i64 i) { return load<__m128i>(line + offset[i + k]); });
    const Register sum = add32(dot16(pick(taps, FIRST_TWO), x01), dot16(pick(taps, LAST_TWO), x23));
    return add32(sum, all32(1 << 7));
  };
  // Sums of two lines as pairs of int16, with LINE_SHIFT fraction bits removed.
  auto weigh_two_lines = [&](const u8 *line) {
    const Register above = weigh_line(line), below = weigh_line(line + row_bytes);
    return upper_halves(VG_MM(slli_epi32)(above, 8), VG_MM(slli_epi32)(below, 8));
  };
  const Register upper = dot16(weigh_two_lines(image), repeat32<k>(weights[2]));
  return add32(upper, dot16(weigh_two_lines(image + 2 * row_bytes), repeat32<k>(weights[3])));
}

void weigh_words(const u8 *image, i64 row_bytes, const i32 *offset, const i32 *weights, i64 stride, i64 count,
                 i32 *words) {
  for (i64 i = 0; i < count; i += REGISTER / 4) {
    Register four[4];
    for (int j = 0; j < 4; j++) four[j] = load_register(weights + j * stride + i);
    const Register first = pack32(right32<20>(weigh_taps<0>(image, row_bytes, offset + i, four)),
                                  right32<20>(weigh_taps<1>(image, row_bytes, offset + i, four)));
    const Register last = pack32(right32<20>(weigh_taps<2>(image, row_bytes, offset + i, four)),
                                 right32<20>(weigh_taps<3>(image, row_bytes, offset + i, four)));
    store(words + i, pack16(first, last));
  }
}
#else
void weigh_words(const u8 *image, i64 row_bytes, const i32 *offset, const i32 *weights, i64 stride, i64 count,
                 i32 *words) {
  for (i64 i = 0; i < round_up(count, 8); i++) {
    i32 x[4], y[4];
    for (int k = 0; k < 4; k++) {
      x[k] = (i32)((u32)weights[k / 2 * stride + i] << (k % 2 ? 0 : 16)) >> 16;
      y[k] = (i32)((u32)weights[(2 + k / 2) * stride + i] << (k % 2 ? 0 : 16)) >> 16;
    }
    u32 word = 0;
    for (int c = 0; c < 3; c++) {
      i32 total = 0;
      for (int j = 0; j < 4; j++) {
        const u8 *taps = image + offset[i] + j * row_bytes + c;
        const i32 level = x[0] * taps[0] + x[1] * taps[3] + x[2] * taps[6] + x[3] * taps[9] + (1 << 7);
        total += y[j] * (level >> 8);
      }
      word |= (u32)clamp(total >> 20, 0, 255) << (8 * c);
    }
    words[i] = (i32)word;
  }
}
#endif

// Computes the pixels whose first taps are at `s.row.offset`, rounded up to a multiple of 16.
void weigh_pixels(const Image &image, i64 first, i64 count, Scratch &s) {
  const InterpolateScratch &maps = s.interpolate;
  weigh_words(image.pixels, 3 * image.width, s.row.offset.at, maps.weights.at, maps.stride, count, s.row.words.at);
  split_words(s.row.words.at, count, s.row.planes(), first);
}

// Sums of uint16 along a line are exact integers, because they are sums of taps less this.
template <class Element> constexpr i32 MIDDLE = sizeof(Element) == 2 ? 1 << 15 : 0;

// Weights of LANES pixels. Along x, two vectors of pairs for uint16.
struct Weights {
  Floats x[4], y[4];
};

template <class Element> VG_INLINE Weights load_weights(const i32 *at, i64 stride) {
  Weights weights = {};
  for (int j = 0; j < 4; j++) {
    const Ints pairs = load<Ints>(at + j * stride);
    Floats *out = (j < 2 ? weights.x : weights.y) + j % 2 * 2;
    out[0] = to_floats(pairs << 16 >> 16);
    out[1] = to_floats(pairs >> 16);
    if (j < 2 && !IS_FLOAT<Element>) weights.x[j] = (Floats)pairs;
  }
  return weights;
}

// Sums along a line of three channels, of the pixels at every fourth offset.
VG_INLINE Floats weigh_line(const f32 *line, const i32 *offset, const Floats (&x)[4]) {
  auto weigh = [&](int i) { return x[i] * (Floats)load_pixels(line + 3 * i, offset); };
  return weigh(0) + weigh(1) + weigh(2) + weigh(3);
}
VG_INLINE Floats weigh_line(const u16 *line, const i32 *offset, const Floats (&x)[4]) {
  auto weigh_two = [&](int i) { return dot16(load_tap_pairs(line + 6 * i, offset), (Register)x[i]); };
  return to_floats((Ints)add32(weigh_two(0), weigh_two(1)));
}

// Sums of four taps on a line of one channel, in the same order.
VG_INLINE Floats weigh_gray_line(const f32 *line, const i32 *offset, const Floats (&x)[4]) {
  Floats taps[4];
  load_taps(line, offset, taps);
  Floats total = x[0] * taps[0];
  for (int i = 1; i < 4; i++) total += x[i] * taps[i];
  return total;
}
VG_INLINE Floats weigh_gray_line(const u16 *line, const i32 *offset, const Floats (&x)[4]) {
  // Pixels k, k + 2, k + 4, ... of four taps each.
  auto load_every_second = [=](int k) {
    return less_middle(join_16([=](int i) { return load_two_words(line + offset[i + k], line + offset[i + k + 2]); }));
  };
  const Register first = (Register)x[0], second = (Register)x[1];
  const Register low = low32(first, second), high = high32(first, second);
  const Register even = dot16(load_every_second(0), low64(low, high));
  const Register odd = dot16(load_every_second(1), high64(low, high));
  const Register upper = low32(even, odd), lower = high32(even, odd);
  return to_floats((Ints)add32(low64(upper, lower), high64(upper, lower)));
}

// Sums weigh(line), the sums along the four lines from `at` on, with 28 fraction bits.
template <class Element, class F>
VG_INLINE Floats weigh_lines(const Element *at, i64 step, const Floats (&y)[4], F weigh) {
  Floats total = y[0] * weigh(at);
  for (int j = 1; j < 4; j++) total += y[j] * weigh(after(total, at + j * step));
  return total;
}

// Pixels k, k + 4, ...
template <int k, class Element>
VG_INLINE Register weigh_every_fourth(const Element *&at, i64 step, const i32 *offset, const Weights &weights) {
  Weights own;
  for (int i = 0; i < 4; i++) {
    own.x[i] = repeat<k>(weights.x[i]);
    own.y[i] = repeat<k>(weights.y[i]);
  }
  Floats total = weigh_lines(at, step, own.y, [&](const Element *line) { return weigh_line(line, offset + k, own.x); });
  at = after(total, at);
  return (Register)total;
}

template <class Element> void weigh_pixels(const ImageOf<Element> &image, i64 first, i64 count, Scratch &s) {
  const PlanesOf<Element> planes = s.row.planes<Element>();
  const i64 step = image.channels * image.width, ahead = taps_ahead(image, s.row.offset[count / 2], s.interpolate);
  const Element *at = image.pixels;
  for (i64 i = 0; i < count; i += LANES) {
    const i32 *offset = s.row.offset.at + i;
    if (ahead != 0) prefetch_pixels(at + ahead, offset);
    const Weights weights = load_weights<Element>(s.interpolate.weights.at + i, s.interpolate.stride);
    auto store_pixels = [=](i64 c, Floats totals) {
      store_values(planes[c] + first + i, totals * 0x1p-28f + ((f32)MIDDLE<Element> + HALF_UP<Element>));
    };
    if (image.channels == 1) {
      auto weigh = [&](const Element *line) { return weigh_gray_line(line, offset, weights.x); };
      store_pixels(0, weigh_lines(at, step, weights.y, weigh));
      continue;
    }
    Register split[4];
    const Register pixels[4] = {
        weigh_every_fourth<0>(at, step, offset, weights), weigh_every_fourth<1>(at, step, offset, weights),
        weigh_every_fourth<2>(at, step, offset, weights), weigh_every_fourth<3>(at, step, offset, weights)};
    split_pixels(pixels, split);
    for (int c = 0; c < 3; c++) store_pixels(c, (Floats)split[c]);
  }
}

// The sum along x of four taps of one channel; without LINE_SHIFT fraction bits for uint8.
VG_INLINE i32 weigh_taps(const i32 *x, const u8 *taps) {
  return (x[0] * taps[0] + x[1] * taps[1] + x[2] * taps[2] + x[3] * taps[3] + (1 << (LINE_SHIFT - 1))) >> LINE_SHIFT;
}
VG_INLINE f32 weigh_taps(const i32 *x, const u16 *taps) {
  i32 sum = 0;
  for (int i = 0; i < 4; i++) sum += x[i] * (taps[i] - MIDDLE<u16>);
  return (f32)sum;
}
VG_INLINE f32 weigh_taps(const i32 *x, const f32 *taps) {
  return (f32)x[0] * taps[0] + (f32)x[1] * taps[1] + (f32)x[2] * taps[2] + (f32)x[3] * taps[3];
}

}  // namespace

template <class Element>
void read_bicubic(const ImageOf<Element> &image, const i32 *window, Range columns, Scratch &s) {
  const i64 step = image.channels * image.width, size = image.height * step, count = round_up(columns.size(), 16);
  const PlanesOf<Element> planes = s.row.planes<Element>();
  const i32 *u = s.row.column.at + columns.first, *v = s.row.line.at + columns.first;
  const Frame frame = {window[1], window[0], window[3] - 4, window[2] - 4};
  // The greatest offset at which the loads of a pixel stay in the image.
  const i64 last = size - 3 * step - 16;
  const bool fits_taps = frame.bottom >= frame.top && frame.right >= frame.left && last >= 0;
  if ((HAS_LEVELS<Element> && image.channels != 3) || !fits_taps || size >= (i64)1 << 31) {
    for (i64 i = 0; i < columns.size(); i++) read_bicubic_pixel(image, window, u[i], v[i], planes, columns.first + i);
    return;
  }
  const i64 stride = s.interpolate.stride;
  i32 *weights = s.interpolate.weights.at, *offset = s.row.offset.at;
  i32 *first_columns = s.row.words.at, *first_lines = first_columns + s.row.stride;
  u8 *is_at_border = s.interpolate.is_at_border.at;
  memset(is_at_border, 0, (size_t)count);
  split_axis(u, frame.left, frame.right, count, first_columns, weights, weights + stride, is_at_border);
  split_axis(v, frame.top, frame.bottom, count, first_lines, weights + 2 * stride, weights + 3 * stride, is_at_border);
  offsets_of(first_columns, first_lines, (i32)step, (i32)image.channels, (i32)last, count, offset, is_at_border);
  weigh_pixels(image, columns.first, count, s);
  for (i64 block = 0; block < columns.size(); block += 8) {
    if (load<u64>(is_at_border + block) == 0) continue;
    for (i64 i = block; i < min_of(block + 8, columns.size()); i++)
      if (is_at_border[i]) read_bicubic_pixel(image, window, u[i], v[i], planes, columns.first + i);
  }
}

template <class Element> void read_bicubic_pixel(const ImageOf<Element> &image, const i32 *window, i32 u, i32 v,
                                                 PlanesOf<Element> planes, i64 x) {
  const i64 column = (u >> BICUBIC_BITS) - 1, line = (v >> BICUBIC_BITS) - 1;
  const CubicWeights across(u & FRACTION), down(v & FRACTION);
  const i32 along_x[4] = {across.first, across.second, across.third, across.fourth};
  const i32 along_y[4] = {down.first, down.second, down.third, down.fourth};
  for (i64 c = 0; c < image.channels; c++) {
    SumOf<Element> total = 0;
    for (i64 j = 0; j < 4; j++) {
      const i64 at = clamp<i64>(line + j, window[0], window[2] - 1) * image.width;
      Element taps[4];
      for (i64 i = 0; i < 4; i++)
        taps[i] = image.pixels[image.channels * (at + clamp<i64>(column + i, window[1], window[3] - 1)) + c];
      total += (SumOf<Element>)along_y[j] * weigh_taps(along_x, taps);
    }
    if constexpr (HAS_LEVELS<Element>) planes[c][x] = clip<Element>(total >> TOTAL_SHIFT);
    else planes[c][x] = to_element<Element>(total * 0x1p-28f + (f32)MIDDLE<Element>);
  }
}

#define VG_COMPILE_ALL(Element)     \
  VG_COMPILE(read_bicubic, Element) \
  VG_COMPILE(read_bicubic_pixel, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
