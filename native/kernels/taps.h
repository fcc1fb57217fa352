// Taps of interpolated pixels in registers. Each 16 bytes of a register hold four consecutive pixels: first i to i + 3,
// then i + 4 to i + 7, ... Therefore results need no move across groups of 16 bytes.
#pragma once
#include "registers.h"
#include "split.h"

namespace vg::VG_LEVEL {

#if VG_SSSE3

// Shuffles bytes within each 16 by a table of positions; 0 for positions of 128 or more (pshufb).
VG_INLINE Register pick(Register a, const ByteTable &table) { return VG_MM(shuffle_epi8)(a, load_register(table.at)); }

// Repeats number k of each four numbers four times (shufps).
template <int k> VG_INLINE Register repeat32(Register a) {
  const auto numbers = (decltype(VG_MM(setzero_ps)()))a;
  return (Register)VG_MM(shuffle_ps)(numbers, numbers, k * 0x55);
}

// Loads REGISTER / 4 numbers of 16 bits. Each four are then bytes 0, 1, 4, 5, 8, 9, 12 and 13 of 16, for `pick`.
VG_INLINE Register load_spread16(const i16 *at) {
#if VG_REGISTER_BITS == 512
  return _mm512_cvtepu16_epi32(load<__m256i>(at));
#elif VG_REGISTER_BITS == 256
  return _mm256_cvtepu16_epi32(load<__m128i>(at));
#else
  const __m128i four = _mm_loadl_epi64((const __m128i *)at);
  return _mm_unpacklo_epi16(four, four);
#endif
}

#endif

}  // namespace vg::VG_LEVEL
