// Bicubic pixels, of four by four taps. Weights have 14 bits; a line's sum is rounded to 6 fraction bits.
#include "../coords.h"
#include "interpolate.h"
#include "scratch.h"
#include "split.h"

namespace vg::VG_LEVEL {
namespace {

constexpr i32 ONE = 1 << BICUBIC_BITS, FRACTION = ONE - 1;

// A product of numbers with 14 fraction bits.
VG_INLINE i32 scale_product(i32 a, i32 b) { return (a * b + (1 << 13)) >> 14; }

// Weights of the outer taps; the inner ones have what is left of 1 - t and of t.
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

VG_INLINE i32 pair_of(i32 low, i32 high) { return (i32)(((u32)low & 0xffff) | (u32)high << 16); }

// Where first taps may lie, so that all are in the window.
struct Frame {
  i32 left, top, right, bottom;
};

// Places of one axis to first taps, to which of them lie elsewhere, and to pairs of weights.
void split_axis(const i32 *__restrict places, i32 low, i32 high, i64 count, i32 *__restrict taps,
                i32 *__restrict first_two, i32 *__restrict last_two, u8 *__restrict is_at_border) {
  for (i64 i = 0; i < whole_blocks(count); i++) {
    const CubicWeights weights(places[i] & FRACTION);
    first_two[i] = pair_of(weights.first, weights.second);
    last_two[i] = pair_of(weights.third, weights.fourth);
    const i32 at = (places[i] >> BICUBIC_BITS) - 1, inside = clamp(at, low, high);
    taps[i] = inside;
    is_at_border[i] |= at != inside;
  }
}

void offsets_of(const i32 *__restrict columns, const i32 *__restrict lines, i32 row_bytes, i32 last, i64 count,
                i32 *__restrict offset, u8 *__restrict is_at_border) {
  for (i64 i = 0; i < whole_blocks(count); i++) {
    const i32 at = lines[i] * row_bytes + columns[i] * 3;
    is_at_border[i] |= at > last;
    offset[i] = min_of(at, last);
  }
}

// Vectors of PIXELS pixels of four channels, as int32. One load of 16 bytes reads the taps of a pixel on one line.
#if VG_AVX512  // vpmaddwd
struct Vector {
  static constexpr int PIXELS = 4, STEP = 4;
  __m512i value;

  static Vector load_taps(const u8 *line, const i32 *offset) {
    __m512i taps = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(line + offset[0])));
    taps = _mm512_inserti32x4(taps, _mm_loadu_si128((const __m128i *)(line + offset[1])), 1);
    taps = _mm512_inserti32x4(taps, _mm_loadu_si128((const __m128i *)(line + offset[2])), 2);
    return {_mm512_inserti32x4(taps, _mm_loadu_si128((const __m128i *)(line + offset[3])), 3)};
  }
  static Vector load_weights(const i32 *weights) {
    const __m512i positions = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return {_mm512_permutexvar_epi32(positions, _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)weights)))};
  }
  Vector pick(const u8 *table) const { return {_mm512_shuffle_epi8(value, _mm512_load_si512(table))}; }
  Vector weigh(Vector weights) const { return {_mm512_madd_epi16(value, weights.value)}; }
  Vector operator+(Vector other) const { return {_mm512_add_epi32(value, other.value)}; }
  Vector round_line() const { return {_mm512_srai_epi32(_mm512_add_epi32(value, _mm512_set1_epi32(1 << 7)), 8)}; }
  // int16 pairs of two lines' sums.
  Vector pair_with(Vector below) const {
    return {_mm512_mask_blend_epi16(0xaaaaaaaa, value, _mm512_slli_epi32(below.value, 16))};
  }
  static void store(const Vector *totals, i32 *pixels) {
    const __m512i levels = _mm512_max_epi32(_mm512_srai_epi32(totals[0].value, 20), _mm512_setzero_si512());
    _mm_storeu_si128((__m128i *)pixels, _mm512_cvtusepi32_epi8(levels));
  }
};
#elif VG_AVX2  // vpmaddwd
struct Vector {
  static constexpr int PIXELS = 2, STEP = 8;
  __m256i value;

  static Vector load_taps(const u8 *line, const i32 *offset) {
    return {load_halves(line + offset[0], line + offset[1])};
  }
  static Vector load_weights(const i32 *weights) {
    const __m256i positions = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m256i two = _mm256_castsi128_si256(_mm_loadl_epi64((const __m128i *)weights));
    return {_mm256_permutevar8x32_epi32(two, positions)};
  }
  Vector pick(const u8 *table) const {
    return {_mm256_shuffle_epi8(value, _mm256_load_si256((const __m256i *)table))};
  }
  Vector weigh(Vector weights) const { return {_mm256_madd_epi16(value, weights.value)}; }
  Vector operator+(Vector other) const { return {_mm256_add_epi32(value, other.value)}; }
  Vector round_line() const { return {_mm256_srai_epi32(_mm256_add_epi32(value, _mm256_set1_epi32(1 << 7)), 8)}; }
  Vector pair_with(Vector below) const {
    return {_mm256_blend_epi16(value, _mm256_slli_epi32(below.value, 16), 0xaa)};
  }
  static void store(const Vector *totals, i32 *pixels) {
    __m256i levels[4];
    for (int k = 0; k < 4; k++) levels[k] = _mm256_srai_epi32(totals[k].value, 20);
    const __m256i low = _mm256_packs_epi32(levels[0], levels[1]), high = _mm256_packs_epi32(levels[2], levels[3]);
    // Pixels 0, 2, 4, 6, and 1, 3, 5, 7.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((__m256i *)pixels, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
  }
};
#elif VG_SSSE3  // pshufb, pmaddwd
struct Vector {
  static constexpr int PIXELS = 1, STEP = 4;
  __m128i value;

  static Vector load_taps(const u8 *line, const i32 *offset) {
    return {_mm_loadu_si128((const __m128i *)(line + offset[0]))};
  }
  static Vector load_weights(const i32 *weights) { return {_mm_set1_epi32(*weights)}; }
  Vector pick(const u8 *table) const { return {_mm_shuffle_epi8(value, _mm_load_si128((const __m128i *)table))}; }
  Vector weigh(Vector weights) const { return {_mm_madd_epi16(value, weights.value)}; }
  Vector operator+(Vector other) const { return {_mm_add_epi32(value, other.value)}; }
  Vector round_line() const { return {_mm_srai_epi32(_mm_add_epi32(value, _mm_set1_epi32(1 << 7)), 8)}; }
  Vector pair_with(Vector below) const {
    const __m128i low = _mm_and_si128(value, _mm_set1_epi32(0xffff));
    return {_mm_or_si128(low, _mm_slli_epi32(below.value, 16))};
  }
  static void store(const Vector *totals, i32 *pixels) {
    __m128i levels[4];
    for (int k = 0; k < 4; k++) levels[k] = _mm_srai_epi32(totals[k].value, 20);
    const __m128i low = _mm_packs_epi32(levels[0], levels[1]), high = _mm_packs_epi32(levels[2], levels[3]);
    _mm_storeu_si128((__m128i *)pixels, _mm_packus_epi16(low, high));
  }
};
#endif

// `count` RGB pixels, rounded up to a multiple of 8, as words R, G, B, 0. `weights`: four arrays, `stride` apart.
#if VG_SSSE3
void weigh_words(const u8 *image, i64 row_bytes, const i32 *offset, const i32 *weights, i64 stride, i64 count,
                 i32 *words) {
  // Channels of the first two taps side by side, as int16; and of the last two, 6 bytes further.
  static constexpr ByteTable FIRST_TWO =
      byte_table([](int i) { return i % 2 == 1 || i % 16 >= 12 ? 128 : i % 16 / 4 + i % 4 / 2 * 3; });
  static constexpr ByteTable LAST_TWO =
      byte_table([](int i) { return i % 2 == 1 || i % 16 >= 12 ? 128 : i % 16 / 4 + i % 4 / 2 * 3 + 6; });
  for (i64 i = 0; i < count; i += Vector::STEP) {
    Vector totals[Vector::STEP / Vector::PIXELS];
    // Else the totals would go through memory.
#pragma GCC unroll 4
    for (i64 k = 0; k < Vector::STEP; k += Vector::PIXELS) {
      const i32 *of = weights + i + k;
      const Vector x01 = Vector::load_weights(of), x23 = Vector::load_weights(of + stride);
      Vector lines[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        const Vector taps = Vector::load_taps(image + j * row_bytes, offset + i + k);
        lines[j] = (taps.pick(FIRST_TWO.at).weigh(x01) + taps.pick(LAST_TWO.at).weigh(x23)).round_line();
      }
      const Vector y01 = Vector::load_weights(of + 2 * stride), y23 = Vector::load_weights(of + 3 * stride);
      totals[k / Vector::PIXELS] = lines[0].pair_with(lines[1]).weigh(y01) + lines[2].pair_with(lines[3]).weigh(y23);
    }
    Vector::store(totals, words + i);
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

}  // namespace

void read_bicubic(const Image &image, const i32 *window, Range columns, Scratch &s) {
  const i64 row_bytes = image.channels * image.width, size = image.bytes(), count = round_up(columns.size(), 16);
  const i32 *u = s.row.column.at + columns.first, *v = s.row.line.at + columns.first;
  const Frame frame = {window[1], window[0], window[3] - 4, window[2] - 4};
  // From where one load reads a line.
  const i64 last = size - 3 * row_bytes - 16;
  const Planes planes = s.row.planes();
  const bool has_room = frame.bottom >= frame.top && frame.right >= frame.left && last >= 0;
  if (image.channels != 3 || !has_room || size >= (i64)1 << 31) {
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
  offsets_of(first_columns, first_lines, (i32)row_bytes, (i32)last, count, offset, is_at_border);
  weigh_words(image.pixels, row_bytes, offset, weights, stride, count, s.row.words.at);
  split_words(s.row.words.at, count, planes, columns.first);
  for (i64 block = 0; block < columns.size(); block += 8) {
    if (load<u64>(is_at_border + block) == 0) continue;
    for (i64 i = block; i < min_of(block + 8, columns.size()); i++)
      if (is_at_border[i]) read_bicubic_pixel(image, window, u[i], v[i], planes, columns.first + i);
  }
}

void read_bicubic_pixel(const Image &image, const i32 *window, i32 u, i32 v, Planes planes, i64 x) {
  const i64 column = (u >> BICUBIC_BITS) - 1, line = (v >> BICUBIC_BITS) - 1;
  const CubicWeights across(u & FRACTION), down(v & FRACTION);
  const i32 along_x[4] = {across.first, across.second, across.third, across.fourth};
  const i32 along_y[4] = {down.first, down.second, down.third, down.fourth};
  for (i64 c = 0; c < image.channels; c++) {
    i32 total = 0;
    for (i64 j = 0; j < 4; j++) {
      const i64 at = clamp<i64>(line + j, window[0], window[2] - 1) * image.width;
      i32 level = 1 << 7;
      for (i64 i = 0; i < 4; i++) {
        const i64 tap = at + clamp<i64>(column + i, window[1], window[3] - 1);
        level += along_x[i] * image.pixels[image.channels * tap + c];
      }
      total += along_y[j] * (level >> 8);
    }
    planes[c][x] = (u8)clamp(total >> 20, 0, 255);
  }
}

}  // namespace vg::VG_LEVEL
