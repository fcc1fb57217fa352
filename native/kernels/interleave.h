// Interleaves the pixels of three planes.
#pragma once
#include "split.h"

namespace vg::VG_LEVEL {

// Vectors move bytes within groups of 16. Of n elements in 16 bytes, element j of chunk k (of three) has the channel
// (n k + j) % 3. Shuffle c moves every element of that channel to its position, modulo n: 11 and 3 are inverses of 3.
template <int size> constexpr ByteTable shuffle_of(int c) {
  return byte_table([c](int j) {
    constexpr int N = 16 / size, INVERSE = N == 16 ? 11 : 3;
    return INVERSE * (j % 16 / size + N - c) % N * size + j % size;
  });
}
// A mask of the elements of a group whose index, modulo 3, is k.
template <int size> constexpr ByteTable every_third(int k) {
  return byte_table([k](int j) { return j % 16 / size % 3 == k ? 255 : 0; });
}
template <int size> struct Interleaving {
  static constexpr ByteTable RED = shuffle_of<size>(0), GREEN = shuffle_of<size>(1), BLUE = shuffle_of<size>(2);
  static constexpr ByteTable FIRST = every_third<size>(0), SECOND = every_third<size>(1), THIRD = every_third<size>(2);
  // The second chunk begins with the channel n % 3.
  static constexpr bool FROM_BLUE = 16 / size % 3 == 2;
};

template <class Element>
VG_INLINE void interleave_values(const Element *r, const Element *g, const Element *b, i64 count, Element *to) {
  for (i64 x = 0; x < count; x++) {
    to[3 * x] = r[x];
    to[3 * x + 1] = g[x];
    to[3 * x + 2] = b[x];
  }
}

// Interleaves 16 bytes of each channel.
template <class Element>
VG_INLINE void interleave_16(const Element *r, const Element *g, const Element *b, Element *to) {
#if VG_SSSE3
  using Tables = Interleaving<sizeof(Element)>;
  auto read = [](const void *at) { return _mm_loadu_si128((const __m128i *)at); };
  const __m128i red = _mm_shuffle_epi8(read(r), read(Tables::RED.at));
  const __m128i green = _mm_shuffle_epi8(read(g), read(Tables::GREEN.at));
  const __m128i blue = _mm_shuffle_epi8(read(b), read(Tables::BLUE.at));
  const __m128i first = read(Tables::FIRST.at), second = read(Tables::SECOND.at), third = read(Tables::THIRD.at);
  auto chunk = [&](__m128i x, __m128i y, __m128i z) {
    return _mm_or_si128(_mm_and_si128(x, first), _mm_or_si128(_mm_and_si128(y, second), _mm_and_si128(z, third)));
  };
  const __m128i from_green = chunk(green, blue, red), from_blue = chunk(blue, red, green);
  __m128i *out = (__m128i *)to;
  _mm_storeu_si128(out, chunk(red, green, blue));
  _mm_storeu_si128(out + 1, Tables::FROM_BLUE ? from_blue : from_green);
  _mm_storeu_si128(out + 2, Tables::FROM_BLUE ? from_green : from_blue);
#else
  interleave_values(r, g, b, 16 / (i64)sizeof(Element), to);
#endif
}

#if VG_AVX2
// 32 bytes: two groups at a time.
template <class Element> constexpr i64 INTERLEAVED = 32 / sizeof(Element);
template <class Element>
VG_INLINE void interleave_step(const Element *r, const Element *g, const Element *b, Element *to) {
  using Tables = Interleaving<sizeof(Element)>;
  auto read = [](const void *at) { return _mm256_loadu_si256((const __m256i *)at); };
  const __m256i red = _mm256_shuffle_epi8(read(r), read(Tables::RED.at));
  const __m256i green = _mm256_shuffle_epi8(read(g), read(Tables::GREEN.at));
  const __m256i blue = _mm256_shuffle_epi8(read(b), read(Tables::BLUE.at));
  const __m256i second = read(Tables::SECOND.at), third = read(Tables::THIRD.at);
  auto chunk = [&](__m256i x, __m256i y, __m256i z) {
    return _mm256_blendv_epi8(_mm256_blendv_epi8(x, y, second), z, third);
  };
  const __m256i from_green = chunk(green, blue, red), from_blue = chunk(blue, red, green);
  const __m256i x = chunk(red, green, blue), y = Tables::FROM_BLUE ? from_blue : from_green;
  const __m256i z = Tables::FROM_BLUE ? from_green : from_blue;
  __m256i *out = (__m256i *)to;
  _mm256_storeu_si256(out, _mm256_permute2x128_si256(x, y, 0x20));
  _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(z, x, 0x30));
  _mm256_storeu_si256(out + 2, _mm256_permute2x128_si256(y, z, 0x31));
}
#else
template <class Element> constexpr i64 INTERLEAVED = 16 / sizeof(Element);
template <class Element>
VG_INLINE void interleave_step(const Element *r, const Element *g, const Element *b, Element *to) {
  interleave_16(r, g, b, to);
}
#endif

#if VG_VBMI
// Of 64 pixels, byte j of vector k: bytes of red and green by vpermi2b, then bytes of blue by vpermb.
template <> constexpr i64 INTERLEAVED<u8> = 64;
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
#endif

// Interleaves `count` pixels of padded rows; writes nothing after them.
template <class Element>
VG_INLINE void interleave(const Element *r, const Element *g, const Element *b, i64 count, Element *to) {
  constexpr i64 STEP = INTERLEAVED<Element>, GROUP = 16 / sizeof(Element);
  i64 x = 0;
  for (; x + STEP <= count; x += STEP) interleave_step(r + x, g + x, b + x, to + 3 * x);
  for (; x + GROUP <= count; x += GROUP) interleave_16(r + x, g + x, b + x, to + 3 * x);
  if (x == count) return;
  if (count >= GROUP) {  // the last ones overlap those before them
    x = count - GROUP;
    interleave_16(r + x, g + x, b + x, to + 3 * x);
  } else {
    interleave_values(r, g, b, count, to);
  }
}

}  // namespace vg::VG_LEVEL
