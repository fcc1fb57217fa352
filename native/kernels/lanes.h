// Vectors of 32-bit numbers, as many as a register of this level holds, and moves between them and bytes that compilers
// do not find by themselves. Operators are those of the compilers' vector extension.
#pragma once
#include "../constants.h"
#include "../simd.h"

namespace vg {
namespace VG_LEVEL {

#if VG_AVX512
constexpr i64 LANES = 16;
#elif VG_AVX2
constexpr i64 LANES = 8;
#else
constexpr i64 LANES = 4;
#endif
typedef i32 Ints __attribute__((vector_size(4 * LANES)));
typedef f32 Floats __attribute__((vector_size(4 * LANES)));

// A number in every lane.
VG_INLINE Ints all_ints(i32 value) { return Ints{} + value; }
VG_INLINE Floats all_floats(f32 value) {
#if VG_AVX512
  return (Floats)_mm512_set1_ps(value);
#elif VG_AVX2
  return (Floats)_mm256_set1_ps(value);
#else
  return Floats{value, value, value, value};
#endif
}

// LANES bytes, unsigned.
VG_INLINE Ints load_bytes(const u8 *at) {
#if VG_AVX512
  return (Ints)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)at));
#elif VG_AVX2
  return (Ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)at));
#elif defined(__SSE2__)
  const __m128i zero = _mm_setzero_si128(), bytes = _mm_cvtsi32_si128(load<i32>(at));
  return (Ints)_mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero);
#else
  return Ints{at[0], at[1], at[2], at[3]};
#endif
}

// LANES bytes of numbers that fit.
VG_INLINE void store_bytes(u8 *at, Ints v) {
#if VG_AVX512
  _mm_storeu_si128((__m128i *)at, _mm512_cvtepi32_epi8((__m512i)v));
#elif VG_AVX2
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
  _mm_storel_epi64((__m128i *)at, _mm_packus_epi16(words, words));
#elif defined(__SSE2__)
  const __m128i words = _mm_packs_epi32((__m128i)v, (__m128i)v);
  store(at, _mm_cvtsi128_si32(_mm_packus_epi16(words, words)));
#else
  for (int i = 0; i < LANES; i++) at[i] = (u8)v[i];
#endif
}

// The same of numbers of up to 16 bits, clipped to 0..255.
VG_INLINE void store_clipped(u8 *at, Ints v) {
#if VG_AVX512
  _mm_storeu_si128((__m128i *)at, _mm512_cvtusepi32_epi8(_mm512_max_epi32((__m512i)v, _mm512_setzero_si512())));
#elif defined(__SSE2__)
  store_bytes(at, v);  // packs saturate
#else
  for (int i = 0; i < LANES; i++) at[i] = (u8)clamp(v[i], 0, 255);
#endif
}

VG_INLINE Floats to_floats(Ints v) { return __builtin_convertvector(v, Floats); }

// Towards zero; of numbers out of range, anything.
VG_INLINE Ints truncate(Floats v) {
#if VG_AVX512
  return (Ints)_mm512_cvttps_epi32((__m512)v);
#elif VG_AVX2
  return (Ints)_mm256_cvttps_epi32((__m256)v);
#elif defined(__SSE2__)
  return (Ints)_mm_cvttps_epi32((__m128)v);
#else
  return __builtin_convertvector(v, Ints);
#endif
}

// No less than 0 and no more than 255; NaN becomes 0.
VG_INLINE Floats clip(Floats v) {
#if VG_AVX512
  return (Floats)_mm512_min_ps(_mm512_max_ps((__m512)v, _mm512_setzero_ps()), _mm512_set1_ps(255));
#elif VG_AVX2
  return (Floats)_mm256_min_ps(_mm256_max_ps((__m256)v, _mm256_setzero_ps()), _mm256_set1_ps(255));
#elif defined(__SSE2__)
  return (Floats)_mm_min_ps(_mm_max_ps((__m128)v, _mm_setzero_ps()), _mm_set1_ps(255));
#else
  const Floats low = {}, high = all_floats(255);
  v = v > low ? v : low;
  return v < high ? v : high;
#endif
}

// Clipped to bytes and rounded half up: truncation is the floor of what is not negative.
VG_INLINE void store_rounded(u8 *at, Floats v) { store_bytes(at, truncate(clip(v + 0.5f))); }

VG_INLINE Floats square_root(Floats v) {
#if VG_AVX512
  return (Floats)_mm512_sqrt_ps((__m512)v);
#elif VG_AVX2
  return (Floats)_mm256_sqrt_ps((__m256)v);
#elif defined(__SSE2__)
  return (Floats)_mm_sqrt_ps((__m128)v);
#else
  for (int i = 0; i < LANES; i++) v[i] = sqrtf(v[i]);
  return v;
#endif
}

// Signed products of the lower 16 bits and of the upper 16 bits, added up (pmaddwd).
VG_INLINE Ints multiply_pairs(Ints a, Ints b) {
#if VG_AVX512
  return (Ints)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif VG_AVX2
  return (Ints)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (Ints)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
  return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

// Weights of Pillow's L as pairs for pmaddwd, whose numbers have 15 bits: red and twice the green; blue and 2.
constexpr i32 LUMA_RED_GREEN = LUMA_RED | (LUMA_GREEN / 2) << 16, LUMA_BLUE_HALF = LUMA_BLUE | (LUMA_HALF / 2) << 16;

VG_INLINE Ints luma_of(Ints red, Ints green, Ints blue) {
  return (multiply_pairs(red | green << 17, all_ints(LUMA_RED_GREEN)) +
          multiply_pairs(blue | 2 << 16, all_ints(LUMA_BLUE_HALF))) >> LUMA_SHIFT;
}

}  // namespace VG_LEVEL
}  // namespace vg
