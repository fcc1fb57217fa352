// Philox4x32-10 of many counters, in vectors of 64-bit products. For a single counter see ../philox.h.
#pragma once
#include "../philox.h"
#include "lanes.h"

namespace vg::VG_LEVEL {

constexpr i64 WORDS = LANES / 2;
typedef u64 Words __attribute__((vector_size(8 * WORDS)));

// Products of the lower halves (pmuludq).
VG_INLINE Words multiply(Words a, Words b) {
#if defined(VG_WIDE)
  return (Words)VG_WIDE(mul_epu32)((WideInts)a, (WideInts)b);
#else
  return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}

VG_INLINE Words all_words(u64 value) { return Words{} + value; }

VG_INLINE Words xor_of(Words a, Words b, Words c) {
#if VG_AVX512
  return (Words)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
#else
  return a ^ (b ^ c);
#endif
}

// Counters in the lower halves of 64-bit lanes; the upper halves are arbitrary.
struct Counter {
  Words at[4];
};

VG_INLINE void philox_round(Counter &c, Words key0, Words key1) {
  const Words product0 = multiply(c.at[0], all_words(PHILOX_M0)), product1 = multiply(c.at[2], all_words(PHILOX_M1));
  c = {{xor_of(product1 >> 32, c.at[1], key0), product1, xor_of(product0 >> 32, c.at[3], key1), product0}};
}

// Number of vectors computed together, because each round of a single vector waits for the round before.
constexpr i64 TOGETHER = VG_AVX2 ? 4 : 2;

}  // namespace vg::VG_LEVEL
