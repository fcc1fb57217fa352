// Bilinear samples of 2 x 2 taps, in float32. For uint8, a tap is an int16 with 7 fraction bits, and weights have 15. GPU
// counterpart: `_blended` in executors/cuda/kernels/fused.py.
#include "../coords.h"
#include "interpolate.h"
#include "scratch.h"
#include "taps.h"

namespace vg::VG_LEVEL {
namespace {

constexpr i32 FRACTION = (1 << BILINEAR_BITS) - 1;

// Sums of uint16 along a line are exact integers: of pixels less the middle, by weights that are negative, because
// 16 bits hold -32,768. A sum's unit, and the middle.
constexpr f32 WORD_UNIT = -0x1p-15f, MIDDLE = 32768;

// Interpolates four values by two weights.
template <class Element>
VG_INLINE Element mix_taps(const Element *upper, const Element *lower, i64 left, i64 right, i32 dx, i32 dy) {
  using Sum = SumOf<Element>;
  const Sum above = mix<BILINEAR_BITS, Sum>(to_tap(upper[left]), to_tap(upper[right]), (Sum)dx);
  const Sum below = mix<BILINEAR_BITS, Sum>(to_tap(lower[left]), to_tap(lower[right]), (Sum)dx);
  return from_tap<Element>(mix<BILINEAR_BITS, Sum>(above, below, (Sum)dy));
}
VG_INLINE u16 mix_taps(const u16 *upper, const u16 *lower, i64 left, i64 right, i32 dx, i32 dy) {
  auto mix_line = [=](const u16 *line) {
    return (f32)((line[left] - 32768) * (dx - 32768) - (line[right] - 32768) * dx);
  };
  const f32 above = mix_line(upper), below = mix_line(lower);
  return truncate_value<u16>((above + (below - above) * ((f32)dy * 0x1p-15f)) * WORD_UNIT + MIDDLE);
}

// Bounds of positions: the centers of the outermost pixels.
struct Frame {
  i32 left, top, right, bottom;
};

i32 to_position(i64 pixel) { return (i32)((u32)pixel << BILINEAR_BITS); }

// Converts positions to offsets of the first of 2 x 2 taps and weights of the others; returns the greatest offset.
// Clamping a position is equivalent to clamping its taps.
i32 split_positions(const i32 *__restrict columns, const i32 *__restrict lines, Frame frame, i32 step, i32 channels,
                    i64 count, i32 *__restrict offset, i16 *__restrict dx, i16 *__restrict dy) {
  i32 most = 0;
  for (i64 i = 0; i < floor_to_block(count); i++) {
    const i32 u = clamp(columns[i], frame.left, frame.right), v = clamp(lines[i], frame.top, frame.bottom);
    dx[i] = (i16)(u & FRACTION);
    dy[i] = (i16)(v & FRACTION);
    offset[i] = (v >> BILINEAR_BITS) * step + (u >> BILINEAR_BITS) * channels;
    most = max_of(most, offset[i]);
  }
  return most;
}

// Marks offsets at which a load would leave the image, and clamps them to the last offset at which none does.
void keep_inside(i32 last, i64 count, i32 *__restrict offset, u8 *__restrict is_at_border) {
  for (i64 i = 0; i < count; i++) {
    is_at_border[i] = offset[i] > last;
    offset[i] = min_of(offset[i], last);
  }
}

// Interpolates two values in 16 bits (pmulhrsw).
VG_INLINE Register mix(Register a, Register b, Register weight) {
  return add16(a, multiply_rounded16(sub16(b, a), weight));
}

// Computes `count` RGB pixels, rounded up to a multiple of 16, as words R, G, B, 0.
#if VG_SSSE3  // pshufb, pmulhrsw
// Pixels i + k and i + k + 1 of each four, of four channels each. One load of 8 bytes reads a pixel's two taps of a
// line.
template <int k>
VG_INLINE Register mix_two_of_four(const u8 *image, i64 row_bytes, const i32 *offset, Register dx, Register dy) {
  // Moves bytes to the upper halves of int16: the first tap's channels, and the second tap's, 3 bytes later.
  static constexpr ByteTable FIRST =
      byte_table([](int i) { return i % 2 == 0 || i % 8 == 7 ? 128 : i % 16 / 8 * 8 + i % 8 / 2; });
  static constexpr ByteTable SECOND =
      byte_table([](int i) { return i % 2 == 0 || i % 8 == 7 ? 128 : i % 16 / 8 * 8 + i % 8 / 2 + 3; });
  static constexpr ByteTable WEIGHTS = byte_table([](int i) { return 4 * (k + i % 16 / 8) + i % 2; });
  const Register x = pick(dx, WEIGHTS), y = pick(dy, WEIGHTS);
  auto mix_line = [&](const u8 *line) {
    const Register taps = join_16([=](i64 i) {
      const __m128 low = _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(line + offset[i + k])));
      return _mm_castps_si128(_mm_loadh_pi(low, (const __m64 *)(line + offset[i + k + 1])));
    });
    return mix(right_u16<1>(pick(taps, FIRST)), right_u16<1>(pick(taps, SECOND)), x);
  };
  return right_u16<7>(mix(mix_line(image), mix_line(image + row_bytes), y));
}

void mix_words(const u8 *image, i64 row_bytes, const i32 *offset, const i16 *dx, const i16 *dy, i64 count, i32 *words) {
  for (i64 i = 0; i < count; i += REGISTER / 4) {
    const Register x = load_spread16(dx + i), y = load_spread16(dy + i);
    const Register first = mix_two_of_four<0>(image, row_bytes, offset + i, x, y);
    store(words + i, pack16(first, mix_two_of_four<2>(image, row_bytes, offset + i, x, y)));
  }
}
#else
void mix_words(const u8 *image, i64 row_bytes, const i32 *offset, const i16 *dx, const i16 *dy, i64 count, i32 *words) {
  for (i64 i = 0; i < round_up(count, 8); i++) {
    const u8 *upper = image + offset[i], *lower = upper + row_bytes;
    u32 word = 0;
    for (int c = 0; c < 3; c++) word |= (u32)mix_taps(upper + c, lower + c, 0, 3, dx[i], dy[i]) << (8 * c);
    words[i] = (i32)word;
  }
}
#endif

// Loads pairs of adjacent bytes at eight offsets, and on the lines below.
VG_INLINE void load_pairs(const u8 *image, i64 row_bytes, const i32 *offset, u16 *upper, u16 *lower) {
#if defined(__x86_64__)  // pinsrw, because processors load twice as fast as they store
  __m128i above = _mm_setzero_si128(), below = above;
#define VG_INSERT(i)                                               \
  {                                                                \
    const u8 *at = image + offset[i];                              \
    above = _mm_insert_epi16(above, load<u16>(at), i);             \
    below = _mm_insert_epi16(below, load<u16>(at + row_bytes), i); \
  }
  VG_INSERT(0)
  VG_INSERT(1)
  VG_INSERT(2)
  VG_INSERT(3)
  VG_INSERT(4)
  VG_INSERT(5)
  VG_INSERT(6)
  VG_INSERT(7)
#undef VG_INSERT
  _mm_storeu_si128((__m128i *)upper, above);
  _mm_storeu_si128((__m128i *)lower, below);
#else
  for (int i = 0; i < 8; i++) {
    upper[i] = load<u16>(image + offset[i]);
    lower[i] = load<u16>(image + offset[i] + row_bytes);
  }
#endif
}

// Computes gray pixels, rounded up to a register of bytes.
void mix_pairs(const u16 *upper, const u16 *lower, const i16 *dx, const i16 *dy, i64 count, u8 *levels) {
  constexpr i64 HALF = REGISTER / 2;
  auto mix_half = [=](i64 i) {
    auto mix_line = [=](const u16 *line) {
      const Register pairs = load_register(line + i);
      return mix(left16<7>(even_bytes(pairs)), left16<7>(odd_bytes(pairs)), load_register(dx + i));
    };
    return right_u16<7>(mix(mix_line(upper), mix_line(lower), load_register(dy + i)));
  };
  for (i64 i = 0; i < count; i += REGISTER) store(levels + i, natural8(mix_half(i), mix_half(i + HALF)));
}

// Computes the pixels whose first taps are at `s.row.offset`, rounded up to a multiple of 16; `step`: to the next line.
void mix_pixels(const Image &image, i64 step, i64 first, i64 count, Scratch &s) {
  const i16 *dx = s.interpolate.fractions.at, *dy = dx + s.interpolate.stride;
  const i32 *offset = s.row.offset.at;
  const Planes planes = s.row.planes();
  if (image.channels == 3) {
    mix_words(image.pixels, step, offset, dx, dy, count, s.row.words.at);
    split_words(s.row.words.at, count, planes, first);
  } else {
    u16 *upper = (u16 *)s.row.words.at, *lower = upper + s.row.stride;
    for (i64 i = 0; i < count; i += 8) load_pairs(image.pixels, step, offset + i, upper + i, lower + i);
    mix_pairs(upper, lower, dx, dy, count, planes[0] + first);
  }
}

// The weights along x of LANES pixels: fractions for floats, pairs of words for uint16.
VG_INLINE Floats weights_along_x(const f32 *, Ints dx) { return to_floats(dx) * 0x1p-15f; }
VG_INLINE Floats weights_along_x(const u16 *, Ints dx) { return (Floats)(dx | 0x8000 | (0 - dx) << 16); }

VG_INLINE Floats weigh_pairs(Register pairs, Floats x) { return to_floats((Ints)dot16(pairs, (Register)x)); }

// Pixels at every fourth offset of a line, interpolated along x.
VG_INLINE Floats mix_line(const f32 *line, const i32 *offset, Floats x) {
  const Floats first = (Floats)load_pixels(line, offset);
  return first + ((Floats)load_pixels(line + 3, offset) - first) * x;
}
VG_INLINE Floats mix_line(const u16 *line, const i32 *offset, Floats x) {
  return weigh_pairs(load_tap_pairs(line, offset), x);
}
// Adjacent pixels of one channel.
VG_INLINE Floats mix_gray_line(const f32 *line, const i32 *offset, Floats x) {
  Floats taps[4];
  load_taps(line, offset, taps);
  return taps[0] + (taps[1] - taps[0]) * x;
}
VG_INLINE Floats mix_gray_line(const u16 *line, const i32 *offset, Floats x) {
  i32 pairs[LANES];
  for (i64 i = 0; i < LANES; i++) pairs[i] = load<i32>(line + offset[i]);
  return weigh_pairs(less_middle(load_register(pairs)), x);
}

// Pixels k, k + 4, ... of three channels.
template <int k, class Element>
VG_INLINE Register mix_every_fourth(const Element *&image, i64 step, const i32 *offset, Floats x, Floats y) {
  const Floats across = repeat<k>(x), above = mix_line(image, offset + k, across);
  Floats mixed = above + (mix_line(image + step, offset + k, across) - above) * repeat<k>(y);
  image = after(mixed, image);
  return (Register)mixed;
}

VG_INLINE void store_mixed(f32 *at, Floats values) { store(at, values); }
VG_INLINE void store_mixed(u16 *at, Floats sums) { store_values(at, sums * WORD_UNIT + MIDDLE); }

template <class Element> void mix_pixels(const ImageOf<Element> &image, i64 step, i64 first, i64 count, Scratch &s) {
  const u16 *fractions = (const u16 *)s.interpolate.fractions.at;
  const Element *pixels = image.pixels;
  const PlanesOf<Element> planes = s.row.planes<Element>();
  const i64 ahead = taps_ahead(image, s.row.offset[count / 2], s.interpolate);
  for (i64 i = 0; i < count; i += LANES) {
    const i32 *offset = s.row.offset.at + i;
    if (ahead != 0) prefetch_pixels(pixels + ahead, offset);
    const Floats x = weights_along_x(pixels, load_ints(fractions + i));
    const Floats y = to_floats(load_ints(fractions + s.interpolate.stride + i)) * 0x1p-15f;
    if (image.channels == 1) {
      const Floats above = mix_gray_line(pixels, offset, x), below = mix_gray_line(pixels + step, offset, x);
      store_mixed(planes[0] + first + i, above + (below - above) * y);
      continue;
    }
    Register split[4];
    const Register mixed[4] = {
        mix_every_fourth<0>(pixels, step, offset, x, y), mix_every_fourth<1>(pixels, step, offset, x, y),
        mix_every_fourth<2>(pixels, step, offset, x, y), mix_every_fourth<3>(pixels, step, offset, x, y)};
    split_pixels(mixed, split);
    for (int c = 0; c < 3; c++) store_mixed(planes[c] + first + i, (Floats)split[c]);
  }
}

}  // namespace

template <class Element>
void read_bilinear(const ImageOf<Element> &image, const i32 *window, Range columns, Scratch &s) {
  const i64 step = image.channels * image.width, size = image.height * step, count = round_up(columns.size(), 16);
  const i32 *u = s.row.column.at + columns.first, *v = s.row.line.at + columns.first;
  const PlanesOf<Element> planes = s.row.planes<Element>();
  // The greatest offset at which the loads of a pixel stay in the image.
  const i64 last = size - step - (image.channels == 3 ? 8 : HAS_LEVELS<Element> ? 2 : 4);
  if (last < 0 || size >= (i64)1 << 31) {
    for (i64 i = 0; i < columns.size(); i++) read_bilinear_pixel(image, window, u[i], v[i], planes, columns.first + i);
    return;
  }
  i16 *dx = s.interpolate.fractions.at, *dy = dx + s.interpolate.stride;
  i32 *offset = s.row.offset.at;
  u8 *is_at_border = s.interpolate.is_at_border.at;
  const Frame frame = {to_position(window[1]), to_position(window[0]), to_position(window[3] - 1),
                       to_position(window[2] - 1)};
  const i32 most = split_positions(u, v, frame, (i32)step, (i32)image.channels, count, offset, dx, dy);
  if (most > last) keep_inside((i32)last, count, offset, is_at_border);
  mix_pixels(image, step, columns.first, count, s);
  if (most <= last) return;
  for (i64 i = 0; i < columns.size(); i++)
    if (is_at_border[i]) read_bilinear_pixel(image, window, u[i], v[i], planes, columns.first + i);
}

template <class Element> void read_bilinear_pixel(const ImageOf<Element> &image, const i32 *window, i32 u, i32 v,
                                                  PlanesOf<Element> planes, i64 x) {
  const i64 column = u >> BILINEAR_BITS, line = v >> BILINEAR_BITS;
  const i64 left = image.channels * max_of<i64>(column, window[1]);
  const i64 right = image.channels * min_of<i64>(column + 1, window[3] - 1);
  const i64 step = image.channels * image.width;
  const Element *upper = image.pixels + step * max_of<i64>(line, window[0]);
  const Element *lower = image.pixels + step * min_of<i64>(line + 1, window[2] - 1);
  for (i64 c = 0; c < image.channels; c++)
    planes[c][x] = mix_taps(upper + c, lower + c, left, right, u & FRACTION, v & FRACTION);
}

#define VG_COMPILE_ALL(Element)      \
  VG_COMPILE(read_bilinear, Element) \
  VG_COMPILE(read_bilinear_pixel, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
