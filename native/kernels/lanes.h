// Vectors of 32-bit numbers, one register of this level wide, and conversions to and from bytes for which compilers do
// not find the instructions. Operators come from the compilers' vector extension.
#pragma once
#include "../constants.h"
#include "../simd.h"
#include "executor.h"

namespace vg::VG_LEVEL {

#if VG_AVX512
constexpr i64 LANES = 16;
using WideInts = __m512i;
using WideFloats = __m512;
#define VG_WIDE(name) _mm512_##name
#elif VG_AVX2
constexpr i64 LANES = 8;
using WideInts = __m256i;
using WideFloats = __m256;
#define VG_WIDE(name) _mm256_##name
#else
constexpr i64 LANES = 4;
#if defined(__SSE2__)
using WideInts = __m128i;
using WideFloats = __m128;
#define VG_WIDE(name) _mm_##name
#endif
#endif
typedef i32 Ints __attribute__((vector_size(4 * LANES)));
typedef f32 Floats __attribute__((vector_size(4 * LANES)));
// 2 * LANES numbers of 16 bits. `pack` does not keep the order of its arguments' lanes; `store_packed` restores it.
typedef i16 Halves __attribute__((vector_size(4 * LANES)));

// A number in every lane.
VG_INLINE Ints all_ints(i32 value) { return Ints{} + value; }
VG_INLINE Floats all_floats(f32 value) { return value - Floats{}; }

VG_INLINE Floats to_floats(Ints v) { return __builtin_convertvector(v, Floats); }

// LANES bytes, unsigned.
VG_INLINE Ints load_bytes(const u8 *at) {
#if VG_AVX512  // vpmovzxbd
  return (Ints)_mm512_cvtepu8_epi32(load<__m128i>(at));
#elif VG_AVX2
  return (Ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)at));
#elif defined(__SSE4_1__)  // pmovzxbd
  return (Ints)_mm_cvtepu8_epi32(_mm_cvtsi32_si128(load<i32>(at)));
#elif defined(__SSE2__)  // punpcklbw
  const __m128i zero = _mm_setzero_si128(), bytes = _mm_cvtsi32_si128(load<i32>(at));
  return (Ints)_mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero);
#else
  return Ints{at[0], at[1], at[2], at[3]};
#endif
}

// The lanes at indices modulo LANES (vpermps).
VG_INLINE Floats pick_lanes(Floats v, Ints index) {
#if VG_AVX512
  return (Floats)_mm512_permutexvar_ps((__m512i)index, (__m512)v);
#elif VG_AVX2
  return (Floats)_mm256_permutevar8x32_ps((__m256)v, (__m256i)index);
#else
  Floats picked;
  for (i64 i = 0; i < LANES; i++) picked[i] = v[index[i] & (LANES - 1)];
  return picked;
#endif
}

// LANES numbers of 16 bits, unsigned.
typedef u16 Words16 __attribute__((vector_size(2 * LANES)));
VG_INLINE Ints load_ints(const u16 *at) {
#if VG_AVX512  // vpmovzxwd: GCC 12 extends both halves and joins them
  return (Ints)_mm512_cvtepu16_epi32(load<__m256i>(at));
#elif VG_AVX2
  return (Ints)_mm256_cvtepu16_epi32(load<__m128i>(at));
#else
  return __builtin_convertvector(load<Words16>(at), Ints);
#endif
}

// LANES elements.
VG_INLINE Floats load_floats(const u8 *at) { return to_floats(load_bytes(at)); }
VG_INLINE Floats load_floats(const u16 *at) { return to_floats(load_ints(at)); }
VG_INLINE Floats load_floats(const f32 *at) { return load<Floats>(at); }

#if defined(VG_WIDE)

// Packs two vectors to 16 bits, saturated (packssdw).
VG_INLINE Halves pack(Ints a, Ints b) { return (Halves)VG_WIDE(packs_epi32)((WideInts)a, (WideInts)b); }

// Bytes of two packed vectors in their order, clipped to 0..255 (packuswb, which works within each 16 bytes).
VG_INLINE WideInts to_bytes(Halves low, Halves high) {
  const WideInts bytes = VG_WIDE(packus_epi16)((WideInts)low, (WideInts)high);
#if VG_AVX512
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, bytes);
#elif VG_AVX2
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
#else
  return bytes;
#endif
}

// Stores packed vectors as bytes: 4 * LANES, or 2 * LANES.
VG_INLINE void store_packed(u8 *at, Halves low, Halves high) { store(at, to_bytes(low, high)); }
VG_INLINE void store_packed(u8 *at, Halves low) {
  const WideInts bytes = to_bytes(low, low);
  memcpy(at, &bytes, 2 * LANES);
}

// Truncates towards zero; arbitrary for numbers out of range (cvttps2dq).
VG_INLINE Ints truncate(Floats v) { return (Ints)VG_WIDE(cvttps_epi32)((WideFloats)v); }

// Truncates towards zero, for later clipping to bytes. NaN becomes a number less than 0 (minps).
VG_INLINE Ints truncate_to_byte(Floats v) {
  return truncate((Floats)VG_WIDE(min_ps)((WideFloats)all_floats(255), (WideFloats)v));
}

// (sqrtps)
VG_INLINE Floats square_root(Floats v) { return (Floats)VG_WIDE(sqrt_ps)((WideFloats)v); }

// Sums of the signed products of the lower 16 bits and of the upper 16 bits (pmaddwd).
VG_INLINE Ints multiply_pairs(Ints a, Ints b) { return (Ints)VG_WIDE(madd_epi16)((WideInts)a, (WideInts)b); }

#else  // without intrinsics

VG_INLINE Halves pack(Ints a, Ints b) {
  Halves packed;
  for (int i = 0; i < LANES; i++) {
    packed[i] = (i16)clamp(a[i], -32768, 32767);
    packed[LANES + i] = (i16)clamp(b[i], -32768, 32767);
  }
  return packed;
}

VG_INLINE void store_packed(u8 *at, Halves low) {
  for (int i = 0; i < 2 * LANES; i++) at[i] = (u8)clamp<i16>(low[i], 0, 255);
}
VG_INLINE void store_packed(u8 *at, Halves low, Halves high) {
  store_packed(at, low);
  store_packed(at + 2 * LANES, high);
}

VG_INLINE Ints truncate(Floats v) { return __builtin_convertvector(v, Ints); }

VG_INLINE Ints truncate_to_byte(Floats v) {
  const Floats low = {}, high = all_floats(255);
  v = v > low ? v : low;
  return truncate(v < high ? v : high);
}

VG_INLINE Floats square_root(Floats v) {
  for (int i = 0; i < LANES; i++) v[i] = sqrtf(v[i]);
  return v;
}

VG_INLINE Ints multiply_pairs(Ints a, Ints b) { return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16); }

#endif

// Clips to 0..white. NaN becomes 0.
VG_INLINE Floats clip_floats(Floats v, f32 white) {
  const Floats zero = {}, limit = all_floats(white);
#if defined(VG_WIDE)  // maxps, minps
  return (Floats)VG_WIDE(min_ps)((WideFloats)limit, VG_WIDE(max_ps)((WideFloats)v, (WideFloats)zero));
#else
  v = v > zero ? v : zero;
  return limit < v ? limit : v;
#endif
}

// Stores LANES numbers of 0..65535.
VG_INLINE void store_ints(u16 *at, Ints numbers) {
#if VG_AVX512  // vpmovdw
  store(at, _mm512_cvtepi32_epi16((__m512i)numbers));
#elif VG_AVX2  // vpackusdw
  const __m256i packed = _mm256_packus_epi32((__m256i)numbers, (__m256i)numbers);
  store(at, _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
#else
  store(at, __builtin_convertvector(numbers, Words16));
#endif
}

// Stores LANES values, clipped; integers are truncated.
VG_INLINE void store_clipped(f32 *at, Floats v) { store(at, clip_floats(v, WHITE<f32>)); }
VG_INLINE void store_clipped(u16 *at, Floats v) { store_ints(at, truncate(clip_floats(v, WHITE<u16>))); }

// Stores LANES values: integers are truncated and clipped, floats may be outside black and white.
VG_INLINE void store_values(f32 *at, Floats v) { store(at, v); }
VG_INLINE void store_values(u16 *at, Floats v) { store_clipped(at, v); }

// The addend by which truncation rounds half up.
template <class Element> constexpr f32 HALF_UP = IS_FLOAT<Element> ? 0 : 0.5f;

// Rounds half up, for later clipping to bytes: truncation is the floor of numbers that are not negative.
VG_INLINE Ints round_to_byte(Floats v) { return truncate_to_byte(v + 0.5f); }

// Stores columns of planes: compute(x, values) computes 2 * LANES pixels from x on, packed, by channel. Writes up to
// 2 * LANES - 1 pixels beyond the end.
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

// Weights of Pillow's L as pairs for pmaddwd, whose factors have 15 bits: for red and 2 * green; for blue and 2.
constexpr i32 LUMA_RED_GREEN = LUMA_RED | (LUMA_GREEN / 2) << 16, LUMA_BLUE_HALF = LUMA_BLUE | (LUMA_HALF / 2) << 16;

VG_INLINE Ints luma_of(Ints red, Ints green, Ints blue) {
  return (multiply_pairs(red | green << 17, all_ints(LUMA_RED_GREEN)) +
          multiply_pairs(blue | 2 << 16, all_ints(LUMA_BLUE_HALF))) >>
         LUMA_SHIFT;
}

}  // namespace vg::VG_LEVEL
