// Noise: Philox in vectors of 64-bit products, and normal numbers by the table of program/rng.py.
#include "noise.h"
#include "lanes.h"
#include "scratch.h"

namespace vg {
namespace VG_LEVEL {
namespace {

constexpr i64 WORDS = LANES / 2;
typedef u64 Words __attribute__((vector_size(8 * WORDS)));

// Products of the lower halves (pmuludq).
VG_INLINE Words multiply(Words a, Words b) {
#if VG_AVX512
  return (Words)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif VG_AVX2
  return (Words)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (Words)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}

VG_INLINE Words all_words(u64 value) { return Words{} + value; }

// Counters of which the lower halves alone count.
struct Counter {
  Words at[4];
};

VG_INLINE void philox_round(Counter &c, Words key0, Words key1) {
  const Words product0 = multiply(c.at[0], all_words(PHILOX_M0)), product1 = multiply(c.at[2], all_words(PHILOX_M1));
  c = {{product1 >> 32 ^ c.at[1] ^ key0, product1, product0 >> 32 ^ c.at[3] ^ key1, product0}};
}

// Words of even pixels and of odd ones, in order.
VG_INLINE void store_words(u32 *to, Words even, Words odd) {
#if VG_AVX512
  store(to, _mm512_mask_blend_epi32(0xaaaa, (__m512i)even, (__m512i)(odd << 32)));
#else
  store(to, (even & 0xffffffff) | odd << 32);
#endif
}

}  // namespace

void draw_words(const Row &row, i64 slot, i64 pixel, i64 count, NoiseChunk &chunk) {
  Words keys[PHILOX_ROUNDS][2], numbers;
  for (int round = 0; round < PHILOX_ROUNDS; round++) {
    keys[round][0] = all_words((u32)(row.key_low + (u32)PHILOX_W0 * (u32)round));
    keys[round][1] = all_words((u32)(row.key_high + (u32)PHILOX_W1 * (u32)round));
  }
  for (i64 i = 0; i < WORDS; i++) numbers[i] = 2 * (u64)i;
  const Words slots = all_words((u64)slot), low = all_words((u32)row.id), high = all_words(row.id >> 32);
  for (i64 x = 0; x < count; x += LANES) {
    const Words first = numbers + (u64)(pixel + x);
    Counter even = {{first, slots, low, high}}, odd = {{first + 1, slots, low, high}};
#pragma GCC unroll 10
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
      philox_round(even, keys[round][0], keys[round][1]);
      philox_round(odd, keys[round][0], keys[round][1]);
    }
    for (int c = 0; c < 3; c++) store_words(chunk.words[c] + x, even.at[c], odd.at[c]);
  }
}

namespace {

// Where lanes of `lines` lie, so that `split_lines` puts them in order.
VG_INLINE i64 line_position(i64 lane) {
#if VG_AVX2 && !VG_AVX512
  return (lane & 4) >> 1 | (lane & 2) << 1 | (lane & 1);
#else
  return lane;
#endif
}

// Bases and slopes of LANES lines.
VG_INLINE void split_lines(const u64 *lines, Floats &base, Floats &slope) {
#if VG_AVX512
  const __m512 a = _mm512_load_ps(lines), b = _mm512_load_ps(lines + 8);
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  base = (Floats)_mm512_permutex2var_ps(a, even, b);
  slope = (Floats)_mm512_permutex2var_ps(a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b);
#elif VG_AVX2
  const __m256 a = _mm256_load_ps((const f32 *)lines), b = _mm256_load_ps((const f32 *)(lines + 4));
  base = (Floats)_mm256_shuffle_ps(a, b, 0x88);
  slope = (Floats)_mm256_shuffle_ps(a, b, 0xdd);
#elif defined(__SSE2__)
  const __m128 a = _mm_load_ps((const f32 *)lines), b = _mm_load_ps((const f32 *)(lines + 2));
  base = (Floats)_mm_shuffle_ps(a, b, 0x88);
  slope = (Floats)_mm_shuffle_ps(a, b, 0xdd);
#else
  for (int i = 0; i < LANES; i++) {
    base[i] = load<f32>((const f32 *)lines + 2 * i);
    slope[i] = load<f32>((const f32 *)lines + 2 * i + 1);
  }
#endif
}

VG_INLINE Floats magnitudes(const u32 *words) { return to_floats((load<Ints>(words) & 0x7fffffff) | 1); }

}  // namespace

void draw_normals(const f32 *segments, i64 channel, i64 count, NoiseChunk &chunk) {
  const u32 *words = chunk.words[channel];
  // The numbers of the segments first, and then loads one by one, base and slope together: gathers are slower on most
  // processors, on some by far. What is stored in parts is loaded whole only after a while.
  alignas(64) i32 at[CHUNK];
  for (i64 x = 0; x < count; x += LANES)
    store(at + x, ((Ints)magnitudes(words + x) >> SEGMENT_SHIFT) - FIRST_SEGMENT);
  for (i64 x = 0; x < count; x += LANES)
    for (i64 i = 0; i < LANES; i++) chunk.lines[x + line_position(i)] = load<u64>(segments + 2 * at[x + i]);
  for (i64 x = 0; x < count; x += LANES) {
    Floats base, slope;
    split_lines(chunk.lines + x, base, slope);
    const Ints sign = load<Ints>(words + x) & (i32)0x80000000;
    store(chunk.normals + x, (Floats)((Ints)(base + slope * magnitudes(words + x)) ^ sign));
  }
}

namespace {

void add_gaussian(u8 *levels, i64 count, f32 mean, f32 sigma, const NoiseChunk &chunk) {
  const Floats means = all_floats(mean), sigmas = all_floats(sigma);
  for (i64 x = 0; x < count; x += LANES) {
    const Floats shift = (means + sigmas * load<Floats>(chunk.normals + x)) * 255.0f;
    store_rounded(levels + x, to_floats(load_bytes(levels + x)) + shift);
  }
}

void add_shot(u8 *levels, i64 count, f32 scale, const NoiseChunk &chunk) {
  const Floats scales = all_floats(scale);
  for (i64 x = 0; x < count; x += LANES) {
    const Floats level = to_floats(load_bytes(levels + x));
    store_rounded(levels + x, level + square_root(level * scales) * load<Floats>(chunk.normals + x));
  }
}

// A word as a number from 0 to 1.
VG_INLINE Floats unit(const u32 *words) {
  typedef u32 Unsigned __attribute__((vector_size(4 * LANES)));
  return to_floats((Ints)(load<Unsigned>(words) >> 8)) * 0x1p-24f;
}

void add_salt(Planes planes, i64 first, i64 count, f32 amount, f32 salt, const NoiseChunk &chunk) {
  const Floats amounts = all_floats(amount), salts = all_floats(salt);
  for (i64 x = 0; x < count; x += LANES) {
    const Ints is_hit = unit(chunk.words[0] + x) < amounts, extreme = (unit(chunk.words[1] + x) < salts) & 255;
    for (i64 c = 0; c < 3; c++) {
      u8 *at = planes[c] + first + x;
      store_bytes(at, is_hit ? extreme : load_bytes(at));
    }
  }
}

}  // namespace

void add_noise(const Row &row, i64 slot, i64 pixel, i64 width, i64 channels, Planes planes) {
  const int op = row.opcode[slot];
  const f64 *a = row.args[slot];
  const i64 number = (i64)(op == Op::SHOT_NOISE ? a[1] : a[2]);
  NoiseChunk chunk;
  for (i64 first = 0; first < width; first += CHUNK) {
    const i64 count = min_of(CHUNK, width - first);
    draw_words(row, number, pixel + first, count, chunk);
    if (op == Op::SALT_AND_PEPPER) {
      add_salt(planes, first, count, (f32)a[0], (f32)a[1], chunk);
      continue;
    }
    for (i64 c = 0; c < channels; c++) {
      draw_normals(row.batch->segments, c, count, chunk);
      if (op == Op::GAUSSIAN_NOISE) add_gaussian(planes[c] + first, count, (f32)a[0], (f32)a[1], chunk);
      else add_shot(planes[c] + first, count, (f32)a[0], chunk);
    }
  }
}

void apply_position(const Row &row, i64 slot, i64 y, i64 width, i64 channels, Scratch &s) {
  const int op = row.opcode[slot];
  if (op == Op::OVERLAY) overlay_row(row, slot, y, width, channels, s);
  else if (op == Op::ERASE) erase_row(row, slot, y, width, channels, s.row.planes());
  else add_noise(row, slot, y * width, width, channels, s.row.planes());
}

}  // namespace VG_LEVEL
}  // namespace vg
