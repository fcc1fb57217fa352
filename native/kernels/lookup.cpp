// Lookup of bytes in a table of 256 bytes, which is kept in registers.
#include "../simd.h"
#include "values.h"

namespace vg::VG_LEVEL {
namespace {

// Up to this many bytes are looked up one by one, because loading the table into registers takes longer.
constexpr i64 FEW = 16;

void look_up_each(u8 *bytes, const u8 *table, i64 count) {
  for (i64 x = 0; x < count; x++) bytes[x] = table[bytes[x]];
}

// Each of the following versions changes `count` bytes, rounded up to its vectors.
#if VG_VBMI
// vpermi2b picks 64 bytes from the lower half of the table, and again from the upper half.
void look_up_vectors(u8 *bytes, const u8 *table, i64 count) {
  __m512i quarter[4];
  for (int i = 0; i < 4; i++) quarter[i] = _mm512_loadu_si512(table + 64 * i);
  for (i64 x = 0; x < count; x += 64) {
    const __m512i index = _mm512_loadu_si512(bytes + x);
    const __m512i low = _mm512_permutex2var_epi8(quarter[0], index, quarter[1]);
    const __m512i high = _mm512_permutex2var_epi8(quarter[2], index, quarter[3]);
    _mm512_storeu_si512(bytes + x, _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high));
  }
}
#elif VG_AVX512
// vpermi2w picks words, once for even positions and once for odd positions: bits 1 to 6 of an index pick a word, bit 7
// the half of the table, bit 0 the byte.
void look_up_vectors(u8 *bytes, const u8 *table, i64 count) {
  __m512i quarter[4];
  for (int i = 0; i < 4; i++) quarter[i] = _mm512_loadu_si512(table + 64 * i);
  const __m512i lower = _mm512_set1_epi16(255), one = _mm512_set1_epi16(1);
  auto pick = [&](__m512i index) {  // indices of 16 bits -> words whose lower byte is the result
    const __m512i word = _mm512_srli_epi16(index, 1);
    const __m512i low = _mm512_permutex2var_epi16(quarter[0], word, quarter[1]);
    const __m512i high = _mm512_permutex2var_epi16(quarter[2], word, quarter[3]);
    const __mmask32 is_high = _mm512_test_epi16_mask(index, _mm512_set1_epi16(128));
    const __m512i words = _mm512_mask_blend_epi16(is_high, low, high);
    return _mm512_srlv_epi16(words, _mm512_slli_epi16(_mm512_and_si512(index, one), 3));
  };
  for (i64 x = 0; x < count; x += 64) {
    const __m512i index = _mm512_loadu_si512(bytes + x);
    const __m512i even = pick(_mm512_and_si512(index, lower)), odd = pick(_mm512_srli_epi16(index, 8));
    _mm512_storeu_si512(bytes + x, _mm512_or_si512(_mm512_and_si512(even, lower), _mm512_slli_epi16(odd, 8)));
  }
}
#elif VG_AVX2
// pshufb picks from each of 16 rows of 16 bytes, by bits 0 to 3 of an index. Blends then select between two rows by bit
// 4, between two such pairs by bit 5, ...; shifts move these bits to the top of their byte.
template <int bit> VG_INLINE __m256i pick(const u8 *table, __m256i index, __m256i positions) {
  if constexpr (bit < 4) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table)), positions);
  } else {
    const __m256i low = pick<bit - 1>(table, index, positions);
    const __m256i high = pick<bit - 1>(table + (1 << bit), index, positions);
    return _mm256_blendv_epi8(low, high, _mm256_slli_epi16(index, 7 - bit));
  }
}

void look_up_vectors(u8 *bytes, const u8 *table, i64 count) {
  for (i64 x = 0; x < count; x += 32) {
    const __m256i index = _mm256_loadu_si256((const __m256i *)(bytes + x));
    const __m256i positions = _mm256_and_si256(index, _mm256_set1_epi8(15));
    _mm256_storeu_si256((__m256i *)(bytes + x), pick<7>(table, index, positions));
  }
}
#elif VG_SSSE3
// pshufb picks from 16 bytes, and returns 0 for a negative index. The index is reduced by 16 per row of the table, and
// remains negative once it is. So an index picks from its own row *and all rows before*. Therefore each row is stored
// as its difference (xor) to the row before, and the results of the shuffles are combined by xor. The upper half of the
// table uses the index minus 128.
void look_up_vectors(u8 *bytes, const u8 *table, i64 count) {
  __m128i row[16];
  for (int i = 0; i < 16; i++) {
    row[i] = _mm_loadu_si128((const __m128i *)(table + 16 * i));
    if (i % 8 != 0) row[i] = _mm_xor_si128(row[i], _mm_loadu_si128((const __m128i *)(table + 16 * i - 16)));
  }
  const __m128i sixteen = _mm_set1_epi8(16);
  for (i64 x = 0; x < count; x += 16) {
    __m128i low = _mm_loadu_si128((const __m128i *)(bytes + x)), high = _mm_xor_si128(low, _mm_set1_epi8(-128));
    __m128i total = _mm_xor_si128(_mm_shuffle_epi8(row[0], low), _mm_shuffle_epi8(row[8], high));
    for (int i = 1; i < 8; i++) {
      low = _mm_subs_epi8(low, sixteen);
      high = _mm_subs_epi8(high, sixteen);
      total = _mm_xor_si128(total, _mm_xor_si128(_mm_shuffle_epi8(row[i], low), _mm_shuffle_epi8(row[8 + i], high)));
      // Forces this order: in another order, the compiler would spill 16 intermediate results.
      __asm__("" : "+x"(total));
    }
    _mm_storeu_si128((__m128i *)(bytes + x), total);
  }
}
#elif defined(__aarch64__)
// tbl picks from 64 bytes; tbx keeps the destination byte for an index out of range.
void look_up_vectors(u8 *bytes, const u8 *table, i64 count) {
  uint8x16x4_t quarter[4];
  for (int i = 0; i < 4; i++) quarter[i] = vld1q_u8_x4(table + 64 * i);
  for (i64 x = 0; x < count; x += 16) {
    uint8x16_t index = vld1q_u8(bytes + x), picked = vqtbl4q_u8(quarter[0], index);
    for (int i = 1; i < 4; i++) {
      index = vsubq_u8(index, vdupq_n_u8(64));
      picked = vqtbx4q_u8(picked, quarter[i], index);
    }
    vst1q_u8(bytes + x, picked);
  }
}
#else
void look_up_vectors(u8 *bytes, const u8 *table, i64 count) { look_up_each(bytes, table, count); }
#endif

}  // namespace

void look_up(u8 *bytes, const u8 *table, i64 count) {
  if (count < FEW) look_up_each(bytes, table, count);
  else look_up_vectors(bytes, table, count);
}

}  // namespace vg::VG_LEVEL
