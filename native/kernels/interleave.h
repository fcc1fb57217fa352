// Interleaves the pixels of three planes.
#pragma once
#include "split.h"

namespace vg::VG_LEVEL {

// Vectors move bytes within groups of 16. Of 16 pixels, byte j of chunk k (of three) has the channel (16 k + j) % 3.
// Shuffle c moves every byte of that channel to its position, modulo 16: 11 is the inverse of 3.
constexpr ByteTable SHUFFLE_0 = byte_table([](int j) { return 11 * (j % 16) % 16; });
constexpr ByteTable SHUFFLE_1 = byte_table([](int j) { return 11 * (j % 16 + 15) % 16; });
constexpr ByteTable SHUFFLE_2 = byte_table([](int j) { return 11 * (j % 16 + 14) % 16; });
// A mask of the bytes of a group whose index, modulo 3, is k.
constexpr ByteTable EVERY_0 = byte_table([](int j) { return j % 16 % 3 == 0 ? 255 : 0; });
constexpr ByteTable EVERY_1 = byte_table([](int j) { return j % 16 % 3 == 1 ? 255 : 0; });
constexpr ByteTable EVERY_2 = byte_table([](int j) { return j % 16 % 3 == 2 ? 255 : 0; });

// Interleaves `count` pixels of padded rows; writes nothing after them.
template <class Element>
VG_INLINE void interleave(const Element *r, const Element *g, const Element *b, i64 count, Element *to) {
  for (i64 x = 0; x < count; x++) {
    to[3 * x] = r[x];
    to[3 * x + 1] = g[x];
    to[3 * x + 2] = b[x];
  }
}

// Interleaves 16 pixels.
VG_INLINE void interleave_16(const u8 *r, const u8 *g, const u8 *b, u8 *to) {
#if VG_SSSE3
  auto read = [](const void *at) { return _mm_loadu_si128((const __m128i *)at); };
  auto any = [](__m128i x, __m128i y, __m128i z) { return _mm_or_si128(x, _mm_or_si128(y, z)); };
  const __m128i red = _mm_shuffle_epi8(read(r), read(SHUFFLE_0.at));
  const __m128i green = _mm_shuffle_epi8(read(g), read(SHUFFLE_1.at));
  const __m128i blue = _mm_shuffle_epi8(read(b), read(SHUFFLE_2.at));
  const __m128i first = read(EVERY_0.at), second = read(EVERY_1.at), third = read(EVERY_2.at);
  __m128i *out = (__m128i *)to;
  _mm_storeu_si128(out, any(_mm_and_si128(red, first), _mm_and_si128(green, second), _mm_and_si128(blue, third)));
  _mm_storeu_si128(out + 1, any(_mm_and_si128(red, third), _mm_and_si128(green, first), _mm_and_si128(blue, second)));
  _mm_storeu_si128(out + 2, any(_mm_and_si128(red, second), _mm_and_si128(green, third), _mm_and_si128(blue, first)));
#else
  interleave<u8>(r, g, b, 16, to);
#endif
}

#if VG_VBMI
// Of 64 pixels, byte j of vector k: bytes of red and green by vpermi2b, then bytes of blue by vpermb.
constexpr i64 INTERLEAVED = 64;
template <int k> struct InterleaveTables {
  static constexpr ByteTable RED_GREEN =
      byte_table([](int j) { return (64 * k + j) / 3 + ((64 * k + j) % 3 == 1 ? 64 : 0); });
};
template <int k> VG_INLINE void interleave_vector(__m512i r, __m512i g, __m512i b, u8 *to) {
  constexpr u64 first_blue = 1ull << (2 + 2 * k) % 3;  // of 64 k + j with 2 modulo 3
  constexpr u64 every_third = 0x9249249249249249ull;
  constexpr u64 blues = first_blue == 1 ? every_third : first_blue == 2 ? every_third << 1 : every_third << 2;
  const __m512i index = _mm512_load_si512(InterleaveTables<k>::RED_GREEN.at);
  const __m512i red_green = _mm512_permutex2var_epi8(r, index, g);
  _mm512_storeu_si512(to + 64 * k, _mm512_mask_permutexvar_epi8(red_green, blues, index, b));
}
VG_INLINE void interleave_step(const u8 *r, const u8 *g, const u8 *b, u8 *to) {
  const __m512i red = _mm512_loadu_si512(r), green = _mm512_loadu_si512(g), blue = _mm512_loadu_si512(b);
  interleave_vector<0>(red, green, blue, to);
  interleave_vector<1>(red, green, blue, to);
  interleave_vector<2>(red, green, blue, to);
}
#elif VG_AVX2
// 32 pixels: two groups at a time.
constexpr i64 INTERLEAVED = 32;
VG_INLINE void interleave_step(const u8 *r, const u8 *g, const u8 *b, u8 *to) {
  auto read = [](const void *at) { return _mm256_loadu_si256((const __m256i *)at); };
  const __m256i red = _mm256_shuffle_epi8(read(r), read(SHUFFLE_0.at));
  const __m256i green = _mm256_shuffle_epi8(read(g), read(SHUFFLE_1.at));
  const __m256i blue = _mm256_shuffle_epi8(read(b), read(SHUFFLE_2.at));
  const __m256i second = read(EVERY_1.at), third = read(EVERY_2.at);
  auto chunk = [&](__m256i x, __m256i y, __m256i z) {
    return _mm256_blendv_epi8(_mm256_blendv_epi8(x, y, second), z, third);
  };
  const __m256i x = chunk(red, green, blue), y = chunk(green, blue, red), z = chunk(blue, red, green);
  __m256i *out = (__m256i *)to;
  _mm256_storeu_si256(out, _mm256_permute2x128_si256(x, y, 0x20));
  _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(z, x, 0x30));
  _mm256_storeu_si256(out + 2, _mm256_permute2x128_si256(y, z, 0x31));
}
#else
constexpr i64 INTERLEAVED = 16;
VG_INLINE void interleave_step(const u8 *r, const u8 *g, const u8 *b, u8 *to) { interleave_16(r, g, b, to); }
#endif

// The same by vectors.
VG_INLINE void interleave(const u8 *r, const u8 *g, const u8 *b, i64 count, u8 *to) {
  i64 x = 0;
  for (; x + INTERLEAVED <= count; x += INTERLEAVED) interleave_step(r + x, g + x, b + x, to + 3 * x);
  for (; x + 16 <= count; x += 16) interleave_16(r + x, g + x, b + x, to + 3 * x);
  if (x == count) return;
  if (count >= 16) {  // the last ones overlap those before them
    x = count - 16;
    interleave_16(r + x, g + x, b + x, to + 3 * x);
  } else {
    u8 last[48];
    interleave_16(r, g, b, last);
    memcpy(to, last, (size_t)(3 * count));
  }
}

}  // namespace vg::VG_LEVEL
