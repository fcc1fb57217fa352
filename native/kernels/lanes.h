// Vectors of 32-bit numbers, as many as a register of this level holds, and moves between them and bytes that compilers
// do not find by themselves. Operators are those of the compilers' vector extension.
#pragma once
#include "../constants.h"
#include "../simd.h"
#include "executor.h"

namespace vg::VG_LEVEL {

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

// 2 * LANES numbers of 16 bits, in an order of their own.
typedef i16 Halves __attribute__((vector_size(4 * LANES)));

// Two vectors in 16 bits, saturated.
VG_INLINE Halves pack(Ints a, Ints b) {
#if VG_AVX512
  return (Halves)_mm512_packs_epi32((__m512i)a, (__m512i)b);
#elif VG_AVX2
  return (Halves)_mm256_packs_epi32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (Halves)_mm_packs_epi32((__m128i)a, (__m128i)b);
#else
  Halves packed;
  for (int i = 0; i < LANES; i++) {
    packed[i] = (i16)clamp(a[i], -32768, 32767);
    packed[LANES + i] = (i16)clamp(b[i], -32768, 32767);
  }
  return packed;
#endif
}

// 4 * LANES bytes of what was packed, clipped to 0..255.
VG_INLINE void store_packed(u8 *at, Halves low, Halves high) {
#if VG_AVX512
  // Packing works within each 16 bytes.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(at, _mm512_permutexvar_epi32(order, _mm512_packus_epi16((__m512i)low, (__m512i)high)));
#elif VG_AVX2
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_packus_epi16((__m256i)low, (__m256i)high);
  _mm256_storeu_si256((__m256i *)at, _mm256_permutevar8x32_epi32(bytes, order));
#elif defined(__SSE2__)
  _mm_storeu_si128((__m128i *)at, _mm_packus_epi16((__m128i)low, (__m128i)high));
#else
  for (int i = 0; i < 2 * LANES; i++) {
    at[i] = (u8)clamp<i16>(low[i], 0, 255);
    at[2 * LANES + i] = (u8)clamp<i16>(high[i], 0, 255);
  }
#endif
}

// The first half of them.
VG_INLINE void store_packed(u8 *at, Halves low) {
#if VG_AVX512
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16((__m512i)low, (__m512i)low));
  _mm256_storeu_si256((__m256i *)at, _mm512_castsi512_si256(bytes));
#elif VG_AVX2
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16((__m256i)low, (__m256i)low), order);
  _mm_storeu_si128((__m128i *)at, _mm256_castsi256_si128(bytes));
#elif defined(__SSE2__)
  _mm_storel_epi64((__m128i *)at, _mm_packus_epi16((__m128i)low, (__m128i)low));
#else
  for (int i = 0; i < 2 * LANES; i++) at[i] = (u8)clamp<i16>(low[i], 0, 255);
#endif
}

// Stores columns of planes: compute(x, values) writes those of 2 * LANES pixels from x on, packed, by channel. Runs
// over the end by less than 2 * LANES.
template <int channels, class F> VG_INLINE void store_columns(u8 *const (&planes)[channels], Range columns, F compute) {
  Halves low[channels], high[channels];
  i64 x = columns.first;
  for (; x + 2 * LANES < columns.end; x += 4 * LANES) {
    compute(x, low);
    compute(x + 2 * LANES, high);
    for (int c = 0; c < channels; c++) store_packed(planes[c] + x, low[c], high[c]);
  }
  if (x >= columns.end) return;
  compute(x, low);
  for (int c = 0; c < channels; c++) store_packed(planes[c] + x, low[c]);
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

// Towards zero, to be clipped to bytes. NaN becomes less than 0.
VG_INLINE Ints truncate_to_byte(Floats v) {
#if VG_AVX512
  return truncate((Floats)_mm512_min_ps(_mm512_set1_ps(255), (__m512)v));
#elif VG_AVX2
  return truncate((Floats)_mm256_min_ps(_mm256_set1_ps(255), (__m256)v));
#elif defined(__SSE2__)
  return truncate((Floats)_mm_min_ps(_mm_set1_ps(255), (__m128)v));
#else
  const Floats low = {}, high = all_floats(255);
  v = v > low ? v : low;
  return truncate(v < high ? v : high);
#endif
}

// Rounded half up, to be clipped to bytes: truncation is the floor of what is not negative.
VG_INLINE Ints round_to_byte(Floats v) { return truncate_to_byte(v + 0.5f); }

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

}  // namespace vg::VG_LEVEL
