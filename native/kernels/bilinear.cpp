// Bilinear pixels, of two by two taps. A tap is an int16 with 7 fraction bits; weights have 15.
#include "../coords.h"
#include "interpolate.h"
#include "scratch.h"
#include "split.h"

namespace vg::VG_LEVEL {
namespace {

constexpr i32 FRACTION = (1 << BILINEAR_BITS) - 1;

// As x86's pmulhrsw has it in one instruction, which compilers find in this form.
VG_INLINE i16 mix(i16 a, i16 b, i16 weight) {
  const i16 difference = (i16)(b - a);
  return (i16)(a + (i16)((((i32)difference * weight >> 14) + 1) >> 1));
}

// The level between four, by two weights.
VG_INLINE u8 mix_taps(const u8 *upper, const u8 *lower, i64 left, i64 right, i16 dx, i16 dy) {
  const i16 above = mix((i16)(upper[left] << 7), (i16)(upper[right] << 7), dx);
  const i16 below = mix((i16)(lower[left] << 7), (i16)(lower[right] << 7), dx);
  return (u8)(mix(above, below, dy) >> 7);
}

// Where places may lie: the centers of the outermost pixels.
struct Frame {
  i32 left, top, right, bottom;
};

i32 place_of(i64 pixel) { return (i32)((u32)pixel << BILINEAR_BITS); }

// Places to byte offsets of the first of each two by two taps, and weights of the others; returns the greatest offset.
// Clamping a place has the effect that clamping its taps has.
i32 split_places(const i32 *__restrict columns, const i32 *__restrict lines, Frame frame, i32 row_bytes,
                 i32 pixel_bytes, i64 count, i32 *__restrict offset, i16 *__restrict dx, i16 *__restrict dy) {
  i32 most = 0;
  for (i64 i = 0; i < whole_blocks(count); i++) {
    const i32 u = clamp(columns[i], frame.left, frame.right), v = clamp(lines[i], frame.top, frame.bottom);
    dx[i] = (i16)(u & FRACTION);
    dy[i] = (i16)(v & FRACTION);
    offset[i] = (v >> BILINEAR_BITS) * row_bytes + (u >> BILINEAR_BITS) * pixel_bytes;
    most = max_of(most, offset[i]);
  }
  return most;
}

// Marks offsets from which a load would leave the image, and moves them to the last from which none does.
void keep_inside(i32 last, i64 count, i32 *__restrict offset, u8 *__restrict is_at_border) {
  for (i64 i = 0; i < count; i++) {
    is_at_border[i] = offset[i] > last;
    offset[i] = min_of(offset[i], last);
  }
}

// Vectors of PIXELS pixels of four channels, as int16. The taps of a pixel on one line are read by one load of 8 bytes.
#if VG_AVX512  // vpmulhrsw
struct Vector {
  static constexpr int PIXELS = 8, STEP = 8, LANES = 32;
  __m512i value;

  static Vector load_lanes(const void *at) { return {_mm512_loadu_si512(at)}; }
  Vector left() const { return {_mm512_slli_epi16(_mm512_and_si512(value, _mm512_set1_epi16(255)), 7)}; }
  Vector right() const { return {_mm512_slli_epi16(_mm512_srli_epi16(value, 8), 7)}; }
  void store_bytes(u8 *to) const {
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi16_epi8(_mm512_srli_epi16(value, 7)));
  }

  static Vector load_taps(const u8 *line, const i32 *offset) {
    auto two = [=](int i) {
      const __m128i low = _mm_loadl_epi64((const __m128i *)(line + offset[i]));
      return _mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(low), (const __m64 *)(line + offset[i + 1])));
    };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(two(0)), two(2), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(two(4)), two(6), 1);
    return {_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)};
  }
  static Vector load_weights(const i16 *weights) {
    const __m512i positions = _mm512_setr_epi64(0, 0x0001000100010001, 0x0002000200020002, 0x0003000300030003,
                                                0x0004000400040004, 0x0005000500050005, 0x0006000600060006,
                                                0x0007000700070007);
    return {_mm512_permutexvar_epi16(positions, _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)weights)))};
  }
  Vector pick(const u8 *table) const {
    return {_mm512_srli_epi16(_mm512_shuffle_epi8(value, _mm512_load_si512(table)), 1)};
  }
  Vector mix(Vector to, Vector weight) const {
    const __m512i difference = _mm512_sub_epi16(to.value, value);
    return {_mm512_add_epi16(value, _mm512_mulhrs_epi16(difference, weight.value))};
  }
  static void store(const Vector *levels, i32 *pixels) {
    _mm256_storeu_si256((__m256i *)pixels, _mm512_cvtepi16_epi8(_mm512_srli_epi16(levels[0].value, 7)));
  }
};
#elif VG_AVX2  // vpmulhrsw
struct Vector {
  static constexpr int PIXELS = 4, STEP = 8, LANES = 16;
  __m256i value;

  static Vector load_lanes(const void *at) { return {_mm256_loadu_si256((const __m256i *)at)}; }
  Vector left() const { return {_mm256_slli_epi16(_mm256_and_si256(value, _mm256_set1_epi16(255)), 7)}; }
  Vector right() const { return {_mm256_slli_epi16(_mm256_srli_epi16(value, 8), 7)}; }
  void store_bytes(u8 *to) const {
    const __m256i levels = _mm256_srli_epi16(value, 7);
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(levels, levels), 0xd8);
    _mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(bytes));
  }

  static Vector load_taps(const u8 *line, const i32 *offset) {
    auto two = [=](int i) {
      const __m128i low = _mm_loadl_epi64((const __m128i *)(line + offset[i]));
      return _mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(low), (const __m64 *)(line + offset[i + 1])));
    };
    return {_mm256_inserti128_si256(_mm256_castsi128_si256(two(0)), two(2), 1)};
  }
  static Vector load_weights(const i16 *weights) {
    static constexpr ByteTable POSITIONS = byte_table([](int i) { return 2 * (i % 32 / 8) + i % 2; });
    const __m256i four = _mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)weights));
    return {_mm256_shuffle_epi8(four, load_table(POSITIONS))};
  }
  Vector pick(const u8 *table) const {
    return {_mm256_srli_epi16(_mm256_shuffle_epi8(value, _mm256_load_si256((const __m256i *)table)), 1)};
  }
  Vector mix(Vector to, Vector weight) const {
    const __m256i difference = _mm256_sub_epi16(to.value, value);
    return {_mm256_add_epi16(value, _mm256_mulhrs_epi16(difference, weight.value))};
  }
  static void store(const Vector *levels, i32 *pixels) {
    const __m256i low = _mm256_srli_epi16(levels[0].value, 7), high = _mm256_srli_epi16(levels[1].value, 7);
    _mm256_storeu_si256((__m256i *)pixels, _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8));
  }
};
#elif VG_SSSE3  // pmulhrsw
struct Vector {
  static constexpr int PIXELS = 2, STEP = 4, LANES = 8;
  __m128i value;

  static Vector load_lanes(const void *at) { return {_mm_loadu_si128((const __m128i *)at)}; }
  Vector left() const { return {_mm_slli_epi16(_mm_and_si128(value, _mm_set1_epi16(255)), 7)}; }
  Vector right() const { return {_mm_slli_epi16(_mm_srli_epi16(value, 8), 7)}; }
  void store_bytes(u8 *to) const {
    const __m128i levels = _mm_srli_epi16(value, 7);
    _mm_storel_epi64((__m128i *)to, _mm_packus_epi16(levels, levels));
  }

  static Vector load_taps(const u8 *line, const i32 *offset) {
    const __m128i low = _mm_loadl_epi64((const __m128i *)(line + offset[0]));
    return {_mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(low), (const __m64 *)(line + offset[1])))};
  }
  static Vector load_weights(const i16 *weights) {
    const __m128i two = _mm_shufflelo_epi16(_mm_cvtsi32_si128(load<i32>(weights)), 0x50);
    return {_mm_unpacklo_epi32(two, two)};
  }
  Vector pick(const u8 *table) const {
    return {_mm_srli_epi16(_mm_shuffle_epi8(value, _mm_load_si128((const __m128i *)table)), 1)};
  }
  Vector mix(Vector to, Vector weight) const {
    return {_mm_add_epi16(value, _mm_mulhrs_epi16(_mm_sub_epi16(to.value, value), weight.value))};
  }
  static void store(const Vector *levels, i32 *pixels) {
    const __m128i low = _mm_srli_epi16(levels[0].value, 7), high = _mm_srli_epi16(levels[1].value, 7);
    _mm_storeu_si128((__m128i *)pixels, _mm_packus_epi16(low, high));
  }
};
#endif

// `count` RGB pixels, rounded up to a multiple of 8, as words R, G, B, 0.
#if VG_SSSE3
void mix_words(const u8 *image, i64 row_bytes, const i32 *offset, const i16 *dx, const i16 *dy, i64 count, i32 *words) {
  // To upper halves of int16: the first tap's channels, and the second's, 3 bytes further.
  static constexpr ByteTable FIRST =
      byte_table([](int i) { return i % 2 == 0 || i % 8 == 7 ? 128 : i % 16 / 8 * 8 + i % 8 / 2; });
  static constexpr ByteTable SECOND =
      byte_table([](int i) { return i % 2 == 0 || i % 8 == 7 ? 128 : i % 16 / 8 * 8 + i % 8 / 2 + 3; });
  for (i64 i = 0; i < count; i += Vector::STEP) {
    Vector levels[Vector::STEP / Vector::PIXELS];
#pragma GCC unroll 4
    for (i64 k = 0; k < Vector::STEP; k += Vector::PIXELS) {
      const Vector x = Vector::load_weights(dx + i + k), y = Vector::load_weights(dy + i + k);
      const Vector upper = Vector::load_taps(image, offset + i + k);
      const Vector lower = Vector::load_taps(image + row_bytes, offset + i + k);
      const Vector above = upper.pick(FIRST.at).mix(upper.pick(SECOND.at), x);
      const Vector below = lower.pick(FIRST.at).mix(lower.pick(SECOND.at), x);
      levels[k / Vector::PIXELS] = above.mix(below, y);
    }
    Vector::store(levels, words + i);
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

// Pairs of neighboring bytes at eight offsets, and below them.
VG_INLINE void load_pairs(const u8 *image, i64 row_bytes, const i32 *offset, u16 *upper, u16 *lower) {
#if defined(__x86_64__)  // pinsrw: processors load twice as fast as they store
  __m128i above = _mm_setzero_si128(), below = above;
#define VG_INSERT(i)                                                          \
  {                                                                           \
    const u8 *at = image + offset[i];                                         \
    above = _mm_insert_epi16(above, load<u16>(at), i);                        \
    below = _mm_insert_epi16(below, load<u16>(at + row_bytes), i);            \
  }
  VG_INSERT(0) VG_INSERT(1) VG_INSERT(2) VG_INSERT(3) VG_INSERT(4) VG_INSERT(5) VG_INSERT(6) VG_INSERT(7)
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

// Gray pixels; as many more as a vector has.
#if VG_SSSE3
void mix_pairs(const u16 *upper, const u16 *lower, const i16 *dx, const i16 *dy, i64 count, u8 *levels) {
  for (i64 i = 0; i < count; i += Vector::LANES) {
    const Vector x = Vector::load_lanes(dx + i), y = Vector::load_lanes(dy + i);
    const Vector above = Vector::load_lanes(upper + i), below = Vector::load_lanes(lower + i);
    above.left().mix(above.right(), x).mix(below.left().mix(below.right(), x), y).store_bytes(levels + i);
  }
}
#else
void mix_pairs(const u16 *__restrict upper, const u16 *__restrict lower, const i16 *__restrict dx,
               const i16 *__restrict dy, i64 count, u8 *__restrict levels) {
  for (i64 i = 0; i < whole_blocks(count); i++) {
    const i16 above = mix((i16)((upper[i] & 255) << 7), (i16)((upper[i] >> 8) << 7), dx[i]);
    const i16 below = mix((i16)((lower[i] & 255) << 7), (i16)((lower[i] >> 8) << 7), dx[i]);
    levels[i] = (u8)(mix(above, below, dy[i]) >> 7);
  }
}
#endif

}  // namespace

void read_bilinear(const Image &image, const i32 *window, Range columns, Scratch &s) {
  const i64 row_bytes = image.channels * image.width, size = image.bytes(), count = round_up(columns.size(), 16);
  const i32 *u = s.row.column.at + columns.first, *v = s.row.line.at + columns.first;
  // From where one load reads a line.
  const i64 last = size - row_bytes - (image.channels == 1 ? 2 : 8);
  const Planes planes = s.row.planes();
  if (last < 0 || size >= (i64)1 << 31) {
    for (i64 i = 0; i < columns.size(); i++) read_bilinear_pixel(image, window, u[i], v[i], planes, columns.first + i);
    return;
  }
  i16 *dx = s.interpolate.fractions.at, *dy = dx + s.interpolate.stride;
  i32 *offset = s.row.offset.at;
  u8 *is_at_border = s.interpolate.is_at_border.at;
  const Frame frame = {place_of(window[1]), place_of(window[0]), place_of(window[3] - 1), place_of(window[2] - 1)};
  const i32 most = split_places(u, v, frame, (i32)row_bytes, (i32)image.channels, count, offset, dx, dy);
  if (most > last) keep_inside((i32)last, count, offset, is_at_border);
  if (image.channels == 3) {
    mix_words(image.pixels, row_bytes, offset, dx, dy, count, s.row.words.at);
    split_words(s.row.words.at, count, planes, columns.first);
  } else {
    u16 *upper = (u16 *)s.row.words.at, *lower = upper + s.row.stride;
    for (i64 i = 0; i < count; i += 8) load_pairs(image.pixels, row_bytes, offset + i, upper + i, lower + i);
    mix_pairs(upper, lower, dx, dy, count, planes[0] + columns.first);
  }
  if (most <= last) return;
  for (i64 i = 0; i < columns.size(); i++)
    if (is_at_border[i]) read_bilinear_pixel(image, window, u[i], v[i], planes, columns.first + i);
}

void read_bilinear_pixel(const Image &image, const i32 *window, i32 u, i32 v, Planes planes, i64 x) {
  const i64 column = u >> BILINEAR_BITS, line = v >> BILINEAR_BITS;
  const i64 left = image.channels * max_of<i64>(column, window[1]);
  const i64 right = image.channels * min_of<i64>(column + 1, window[3] - 1);
  const i64 row_bytes = image.channels * image.width;
  const u8 *upper = image.pixels + row_bytes * max_of<i64>(line, window[0]);
  const u8 *lower = image.pixels + row_bytes * min_of<i64>(line + 1, window[2] - 1);
  const i16 dx = (i16)(u & FRACTION), dy = (i16)(v & FRACTION);
  for (i64 c = 0; c < image.channels; c++) planes[c][x] = mix_taps(upper + c, lower + c, left, right, dx, dy);
}

}  // namespace vg::VG_LEVEL
