// Splits interleaved pixels of three or four bytes into planes, with a few instructions per 16 to 64 pixels.
#pragma once
#include "../simd.h"
#include "executor.h"

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's headers of intrinsics initialize vectors with themselves.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// For loops of scalar loads: with AVX2, compilers would emit gather instructions, which are slower.
#if defined(__clang__)
#define VG_SCALAR_LOOP _Pragma("clang loop vectorize(disable)")
#define VG_SCALAR_FUNCTION VG_NOINLINE
#else
#define VG_SCALAR_LOOP
#define VG_SCALAR_FUNCTION __attribute__((noinline, optimize("no-tree-vectorize")))
#endif

namespace vg::VG_LEVEL {

// Byte indices for shuffles, as a function of the position.
struct ByteTable {
  alignas(64) u8 at[64];
};
template <class F> constexpr ByteTable byte_table(F of) {
  ByteTable table = {};
  for (int i = 0; i < 64; i++) table.at[i] = (u8)of(i);
  return table;
}

typedef u8 Bytes16 __attribute__((vector_size(16)));
#define VG_EACH_8(F, i) F(i), F(i + 1), F(i + 2), F(i + 3), F(i + 4), F(i + 5), F(i + 6), F(i + 7)
#define VG_EACH_16(F) VG_EACH_8(F, 0), VG_EACH_8(F, 8)

// `split_step` splits SPLIT_STEP RGB pixels; `is_mirrored`: in reverse order.
#if VG_AVX2  // vpshufb: two segments of 16 bytes per channel in one register, within which bytes move
template <class Element> constexpr i64 SPLIT_STEP = 32 / sizeof(Element);

// The number of elements of `size` bytes in 16.
constexpr int lanes_of(int size) { return 16 / size; }
// For each j, exactly one of a segment's three vectors has channel c in byte j.
template <int size> constexpr ByteTable rgb_blend(int c, int k) {
  return byte_table([=](int j) { return (lanes_of(size) * k + j % 16 / size) % 3 == c ? 255 : 0; });
}
template <int size, bool is_mirrored> constexpr ByteTable rgb_positions(int c) {
  constexpr int LANES_16 = lanes_of(size);
  return byte_table([=](int i) {
    const int lane = i % 16 / size, pixel = is_mirrored ? LANES_16 - 1 - lane : lane;
    return (3 * pixel + c) % LANES_16 * size + i % size;
  });
}
VG_INLINE __m256i load_table(const ByteTable &table) { return _mm256_load_si256((const __m256i *)table.at); }
VG_INLINE __m256i load_halves(const void *low, const void *high) {
  const __m128i a = _mm_loadu_si128((const __m128i *)low), b = _mm_loadu_si128((const __m128i *)high);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

template <int size, int c, bool is_mirrored> VG_INLINE __m256i rgb_channel(const __m256i *parts) {
  static constexpr ByteTable SECOND = rgb_blend<size>(c, 1);
  static constexpr ByteTable THIRD = rgb_blend<size>(c, 2);
  static constexpr ByteTable POSITIONS = rgb_positions<size, is_mirrored>(c);
  const __m256i two = _mm256_blendv_epi8(parts[0], parts[1], load_table(SECOND));
  return _mm256_shuffle_epi8(_mm256_blendv_epi8(two, parts[2], load_table(THIRD)), load_table(POSITIONS));
}

template <bool is_mirrored, class Element>
VG_INLINE void split_step(const Element *source, Element *red, Element *green, Element *blue) {
  constexpr int SIZE = sizeof(Element);
  const u8 *at = (const u8 *)source, *low = at + (is_mirrored ? 48 : 0), *high = at + (is_mirrored ? 0 : 48);
  __m256i parts[3];
  for (int k = 0; k < 3; k++) parts[k] = load_halves(low + 16 * k, high + 16 * k);
  _mm256_storeu_si256((__m256i *)red, rgb_channel<SIZE, 0, is_mirrored>(parts));
  _mm256_storeu_si256((__m256i *)green, rgb_channel<SIZE, 1, is_mirrored>(parts));
  _mm256_storeu_si256((__m256i *)blue, rgb_channel<SIZE, 2, is_mirrored>(parts));
}
#elif VG_SSSE3 || !defined(__x86_64__)  // pshufb, tbl
template <class Element> constexpr i64 SPLIT_STEP = 16 / sizeof(Element);

template <int size, int c, bool is_mirrored> VG_INLINE Bytes16 rgb_channel(Bytes16 x, Bytes16 y, Bytes16 z) {
#define VG_PIXEL(i) (is_mirrored ? 16 / size - 1 - (i) / size : (i) / size)
#define VG_AT(i) ((3 * VG_PIXEL(i) + c) * size + (i) % size)
#define VG_OF_TWO(i) (VG_AT(i) < 32 ? VG_AT(i) : 0)
#define VG_OF_THIRD(i) (VG_AT(i) < 32 ? (i) : VG_AT(i) - 16)
  const Bytes16 two = __builtin_shufflevector(x, y, VG_EACH_16(VG_OF_TWO));
  return __builtin_shufflevector(two, z, VG_EACH_16(VG_OF_THIRD));
#undef VG_PIXEL
#undef VG_AT
#undef VG_OF_TWO
#undef VG_OF_THIRD
}

template <bool is_mirrored, class Element>
VG_INLINE void split_step(const Element *source, Element *red, Element *green, Element *blue) {
  constexpr int SIZE = sizeof(Element);
  const u8 *at = (const u8 *)source;
  const Bytes16 x = load<Bytes16>(at), y = load<Bytes16>(at + 16), z = load<Bytes16>(at + 32);
  store(red, rgb_channel<SIZE, 0, is_mirrored>(x, y, z));
  store(green, rgb_channel<SIZE, 1, is_mirrored>(x, y, z));
  store(blue, rgb_channel<SIZE, 2, is_mirrored>(x, y, z));
}
#else
template <class Element> constexpr i64 SPLIT_STEP = 1;

template <bool is_mirrored, class Element>
VG_INLINE void split_step(const Element *source, Element *red, Element *green, Element *blue) {
  *red = source[0];
  *green = source[1];
  *blue = source[2];
}
#endif

#if VG_VBMI  // vpermi2b
template <> constexpr i64 SPLIT_STEP<u8> = 64;

template <bool is_mirrored> constexpr ByteTable byte_positions(int c) {
  return byte_table([c](int i) { return 3 * (is_mirrored ? 63 - i : i) + c; });
}

template <bool is_mirrored> VG_INLINE void split_step(const u8 *source, u8 *red, u8 *green, u8 *blue) {
  static constexpr ByteTable REDS = byte_positions<is_mirrored>(0);
  static constexpr ByteTable GREENS = byte_positions<is_mirrored>(1);
  static constexpr ByteTable BLUES = byte_positions<is_mirrored>(2);
  const __m512i a = _mm512_loadu_si512(source), b = _mm512_loadu_si512(source + 64);
  const __m512i c = _mm512_loadu_si512(source + 128);
  auto channel = [&](const ByteTable &table) {
    const __m512i at = _mm512_load_si512(table.at);
    const __m512i low = _mm512_permutex2var_epi8(a, at, b);
    return _mm512_mask_permutexvar_epi8(low, _mm512_movepi8_mask(at), at, c);
  };
  _mm512_storeu_si512(red, channel(REDS));
  _mm512_storeu_si512(green, channel(GREENS));
  _mm512_storeu_si512(blue, channel(BLUES));
}
#endif

// Splits `count` RGB pixels into planes. Reads and writes nothing outside them.
template <bool is_mirrored, class Element>
VG_INLINE void split_rgb(const Element *source, i64 count, Element *red, Element *green, Element *blue) {
  constexpr i64 STEP = SPLIT_STEP<Element>;
  if (count < STEP) {
    VG_SCALAR_LOOP
    for (i64 i = 0; i < count; i++) {
      const Element *pixel = source + 3 * (is_mirrored ? count - 1 - i : i);
      red[i] = pixel[0];
      green[i] = pixel[1];
      blue[i] = pixel[2];
    }
    return;
  }
  // Ascending reads, which hardware prefetchers follow. The last step overlaps the one before it.
  for (i64 x = 0; x < count; x += STEP) {
    const i64 from = min_of(x, count - STEP), to = is_mirrored ? count - STEP - from : from;
    split_step<is_mirrored>(source + 3 * from, red + to, green + to, blue + to);
  }
}

// Splits 64 pixels of four bytes; the fourth byte is ignored.
VG_INLINE void split_words_step(const u8 *source, u8 *red, u8 *green, u8 *blue) {
#if VG_VBMI  // vpermi2b
  static constexpr ByteTable REDS = byte_table([](int i) { return 4 * i % 128; });
  static constexpr ByteTable GREENS = byte_table([](int i) { return 4 * i % 128 + 1; });
  static constexpr ByteTable BLUES = byte_table([](int i) { return 4 * i % 128 + 2; });
  __m512i parts[4];
  for (int k = 0; k < 4; k++) parts[k] = _mm512_loadu_si512(source + 64 * k);
  auto channel = [&](const ByteTable &table) {
    const __m512i at = _mm512_load_si512(table.at);
    const __m512i low = _mm512_permutex2var_epi8(parts[0], at, parts[1]);
    return _mm512_mask_blend_epi8(0xffffffff00000000ull, low, _mm512_permutex2var_epi8(parts[2], at, parts[3]));
  };
  _mm512_storeu_si512(red, channel(REDS));
  _mm512_storeu_si512(green, channel(GREENS));
  _mm512_storeu_si512(blue, channel(BLUES));
#elif VG_AVX2  // vpshufb, and a transposition of words
  static constexpr ByteTable BY_CHANNEL = byte_table([](int i) { return 4 * (i % 4) + i % 16 / 4; });
  for (int part = 0; part < 64; part += 32) {
    __m256i w[4];
    for (int k = 0; k < 4; k++) {
      const u8 *at = source + 4 * (part + 4 * k);
      w[k] = _mm256_shuffle_epi8(load_halves(at, at + 64), load_table(BY_CHANNEL));
    }
    const __m256i low_rg = _mm256_unpacklo_epi32(w[0], w[1]), high_rg = _mm256_unpacklo_epi32(w[2], w[3]);
    const __m256i low_b = _mm256_unpackhi_epi32(w[0], w[1]), high_b = _mm256_unpackhi_epi32(w[2], w[3]);
    _mm256_storeu_si256((__m256i *)(red + part), _mm256_unpacklo_epi64(low_rg, high_rg));
    _mm256_storeu_si256((__m256i *)(green + part), _mm256_unpackhi_epi64(low_rg, high_rg));
    _mm256_storeu_si256((__m256i *)(blue + part), _mm256_unpacklo_epi64(low_b, high_b));
  }
#elif VG_SSSE3 || !defined(__x86_64__)  // pshufb, tbl
  typedef u32 Words4 __attribute__((vector_size(16)));
#define VG_BY_CHANNEL(i) (4 * ((i) % 4) + (i) / 4)
  for (int part = 0; part < 64; part += 16) {
    Words4 w[4];
    for (int k = 0; k < 4; k++) {
      const Bytes16 pixels = load<Bytes16>(source + 4 * part + 16 * k);
      w[k] = (Words4)__builtin_shufflevector(pixels, pixels, VG_EACH_16(VG_BY_CHANNEL));
    }
    const Words4 low_rg = __builtin_shufflevector(w[0], w[1], 0, 4, 1, 5);
    const Words4 high_rg = __builtin_shufflevector(w[2], w[3], 0, 4, 1, 5);
    const Words4 low_b = __builtin_shufflevector(w[0], w[1], 2, 6, 3, 7);
    const Words4 high_b = __builtin_shufflevector(w[2], w[3], 2, 6, 3, 7);
    store(red + part, __builtin_shufflevector(low_rg, high_rg, 0, 1, 4, 5));
    store(green + part, __builtin_shufflevector(low_rg, high_rg, 2, 3, 6, 7));
    store(blue + part, __builtin_shufflevector(low_b, high_b, 0, 1, 4, 5));
  }
#undef VG_BY_CHANNEL
#else
  for (int i = 0; i < 64; i++) {
    const u32 word = load<u32>(source + 4 * i);
    red[i] = (u8)word;
    green[i] = (u8)(word >> 8);
    blue[i] = (u8)(word >> 16);
  }
#endif
}

// Splits `count` words into planes, rounded up to blocks of 64.
VG_INLINE void split_words(const i32 *words, i64 count, Planes planes, i64 at) {
  for (i64 x = 0; x < count; x += 64)
    split_words_step((const u8 *)(words + x), planes[0] + at + x, planes[1] + at + x, planes[2] + at + x);
}

}  // namespace vg::VG_LEVEL
