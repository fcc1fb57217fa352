// Noise: Philox words, and normal numbers by the table of program/rng.py. GPU counterparts: `words`, `normals` and
// `_add_noise` in executors/cuda/kernels/values.py.
#include "noise.h"
#include "philox_lanes.h"
#include "scratch.h"

namespace vg::VG_LEVEL {
namespace {

VG_INLINE u32 low_key(const NoiseKey &key, int round) { return key.low + (u32)PHILOX_W0 * (u32)round; }
VG_INLINE u32 high_key(const NoiseKey &key, int round) { return key.high + (u32)PHILOX_W1 * (u32)round; }

// Results of the first two rounds for the parts of counters that all pixels share.
struct SharedRounds {
  Words flip2, flip0, flip3, word3;

  explicit SharedRounds(const NoiseKey &key) {
    const u64 product1 = (u64)(u32)key.id * PHILOX_M1;
    const u32 c0 = (u32)(product1 >> 32) ^ key.slot ^ key.low;
    const u64 product0 = c0 * (u64)PHILOX_M0;
    flip2 = all_words((u32)(key.id >> 32) ^ key.high);
    flip0 = all_words((u32)product1 ^ low_key(key, 1));
    flip3 = all_words((u32)(product0 >> 32) ^ high_key(key, 1));
    word3 = all_words((u32)product0);
  }
};

// Counters of pixels after two Philox rounds.
VG_INLINE Counter two_rounds(const SharedRounds &shared, Words pixels) {
  const Words product0 = multiply(pixels, all_words(PHILOX_M0));
  const Words product1 = multiply(product0 >> 32 ^ shared.flip2, all_words(PHILOX_M1));
  return {{product1 >> 32 ^ shared.flip0, product1, product0 ^ shared.flip3, shared.word3}};
}

// Stores the words of even and odd pixels in order.
VG_INLINE void store_words(u32 *to, Words even, Words odd) {
#if VG_AVX512
  store(to, _mm512_mask_blend_epi32(0xaaaa, (__m512i)even, (__m512i)(odd << 32)));
#elif VG_AVX2
  store(to, _mm256_blend_epi32((__m256i)even, (__m256i)(odd << 32), 0xaa));
#else
  store(to, (even & 0xffffffff) | odd << 32);
#endif
}

template <int words> VG_INLINE void draw(const NoiseKey &key, i64 first, i64 count, NoiseChunk &chunk) {
  Words keys[PHILOX_ROUNDS][2], numbers;
  for (int round = 2; round < PHILOX_ROUNDS; round++) {
    keys[round][0] = all_words(low_key(key, round));
    keys[round][1] = all_words(high_key(key, round));
  }
  const SharedRounds shared(key);
  for (i64 i = 0; i < WORDS; i++) numbers[i] = 2 * (u64)i;
  constexpr i64 PIXELS = TOGETHER * WORDS;
  for (i64 x = 0; x < count; x += PIXELS) {
    Counter counters[TOGETHER];
    for (i64 i = 0; i < TOGETHER; i++)
      counters[i] = two_rounds(shared, numbers + (u64)(first + x + i / 2 * LANES + i % 2));
#pragma GCC unroll 10
    for (int round = 2; round < PHILOX_ROUNDS; round++)
#pragma GCC unroll 4
      for (Counter &counter : counters) philox_round(counter, keys[round][0], keys[round][1]);
#pragma GCC unroll 4
    for (i64 i = 0; i < TOGETHER; i += 2)
#pragma GCC unroll 4
      for (int c = 0; c < words; c++)
        store_words(chunk.words[c] + x + i / 2 * LANES, counters[i].at[c], counters[i + 1].at[c]);
  }
}

// Position of a lane in `lines`, such that `split_lines` returns lanes in order.
VG_INLINE i64 line_position(i64 lane) {
#if VG_AVX2 && !VG_AVX512
  return (lane & 4) >> 1 | (lane & 2) << 1 | (lane & 1);
#else
  return lane;
#endif
}

// Splits LANES lines into bases and slopes.
VG_INLINE void split_lines(const u64 *lines, Floats &base, Floats &slope) {
#if VG_AVX512
  const __m512 a = _mm512_load_ps(lines), b = _mm512_load_ps(lines + 8);
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  base = (Floats)_mm512_permutex2var_ps(a, even, b);
  slope = (Floats)_mm512_permutex2var_ps(a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b);
#elif defined(VG_WIDE)  // shufps
  const WideFloats a = load<WideFloats>(lines), b = load<WideFloats>(lines + LANES / 2);
  base = (Floats)VG_WIDE(shuffle_ps)(a, b, 0x88);
  slope = (Floats)VG_WIDE(shuffle_ps)(a, b, 0xdd);
#else
  for (int i = 0; i < LANES; i++) {
    base[i] = load<f32>((const f32 *)lines + 2 * i);
    slope[i] = load<f32>((const f32 *)lines + 2 * i + 1);
  }
#endif
}

VG_INLINE Floats magnitudes(Ints words) { return to_floats((words & 0x7fffffff) | 1); }

// Loads the lines of the table for a channel's words, for `normals`. Scalar loads, of base and slope together, because
// gathers are slower on most processors, and much slower on some.
void find_lines(const f32 *segments, i64 channel, i64 count, NoiseChunk &chunk) {
  const u32 *words = chunk.words[channel];
  alignas(64) i32 at[CHUNK];
  // All segment numbers first: vector stores that are soon loaded with another width would stall.
  for (i64 x = 0; x < count; x += LANES)
    store(at + x, ((Ints)magnitudes(load<Ints>(words + x)) >> SEGMENT_SHIFT) - FIRST_SEGMENT);
  typedef u64 Pair __attribute__((vector_size(16)));
  for (i64 x = 0; x < count; x += LANES) {
#pragma GCC unroll 8
    for (i64 i = 0; i < LANES; i += 2) {
      const u64 two = load<u64>(at + x + i);
      const Pair lines = {load<u64>(segments + 2 * (u32)two), load<u64>(segments + 2 * (two >> 32))};
      store(chunk.lines + x + line_position(i), lines);
    }
  }
}

// Standard normal numbers from the words from x on.
VG_INLINE Floats normals(const NoiseChunk &chunk, i64 channel, i64 x) {
  const Ints words = load<Ints>(chunk.words[channel] + x);
  Floats base, slope;
  split_lines(chunk.lines + x, base, slope);
  return (Floats)((Ints)(base + slope * magnitudes(words)) ^ (words & (i32)0x80000000));
}

}  // namespace

void draw_words(const NoiseKey &key, i64 first, i64 count, NoiseChunk &chunk) { draw<3>(key, first, count, chunk); }
void draw_four_words(const NoiseKey &key, i64 first, i64 count, NoiseChunk &chunk) {
  draw<4>(key, first, count, chunk);
}

void draw_normals(const f32 *segments, i64 channel, i64 count, NoiseChunk &chunk) {
  find_lines(segments, channel, count, chunk);
  for (i64 x = 0; x < count; x += LANES) store(chunk.normals + x, normals(chunk, channel, x));
}

namespace {

template <class Element> void add_gaussian(Element *values, i64 count, i64 channel, f32 mean, f32 sigma,
                                           const f32 *segments, NoiseChunk &chunk) {
  find_lines(segments, channel, count, chunk);
  for (i64 x = 0; x < count; x += LANES) {
    const Floats shift = (mean + sigma * normals(chunk, channel, x)) * WHITE<Element>;
    store_clipped(values + x, load_floats(values + x) + shift + HALF_UP<Element>);
  }
}
void add_gaussian(u8 *bytes, i64 count, i64 channel, f32 mean, f32 sigma, const f32 *segments, NoiseChunk &chunk) {
  find_lines(segments, channel, count, chunk);
  const Floats means = all_floats(mean), sigmas = all_floats(sigma);
  auto noisy = [&](i64 x) {
    const Floats shift = (means + sigmas * normals(chunk, channel, x)) * 255.0f;
    return round_to_byte(to_floats(load_bytes(bytes + x)) + shift);
  };
  u8 *const plane[] = {bytes};
  store_columns(plane, {0, count}, [&](i64 x, Halves *out) { out[0] = pack(noisy(x), noisy(x + LANES)); });
}

// SHOT_NOISE. `scale`: the variance is the value times `scale`, in units of uint8.
template <class Element>
void add_shot(Element *values, i64 count, i64 channel, f32 scale, const f32 *segments, NoiseChunk &chunk) {
  find_lines(segments, channel, count, chunk);
  for (i64 x = 0; x < count; x += LANES) {
    const Floats value = load_floats(values + x), sigma = square_root(value * (scale * UNIT<Element>));
    store_clipped(values + x, value + sigma * normals(chunk, channel, x) + HALF_UP<Element>);
  }
}
void add_shot(u8 *bytes, i64 count, i64 channel, f32 scale, const f32 *segments, NoiseChunk &chunk) {
  find_lines(segments, channel, count, chunk);
  const Floats scales = all_floats(scale);
  auto noisy = [&](i64 x) {
    const Floats value = to_floats(load_bytes(bytes + x));
    return round_to_byte(value + square_root(value * scales) * normals(chunk, channel, x));
  };
  u8 *const plane[] = {bytes};
  store_columns(plane, {0, count}, [&](i64 x, Halves *out) { out[0] = pack(noisy(x), noisy(x + LANES)); });
}

// Converts words to numbers in [0, 1).
VG_INLINE Floats unit(const u32 *words) {
  typedef u32 Unsigned __attribute__((vector_size(4 * LANES)));
  return to_floats((Ints)(load<Unsigned>(words) >> 8)) * 0x1p-24f;
}

template <class Element>
void add_salt(PlanesOf<Element> planes, i64 first, i64 count, f32 amount, f32 salt, const NoiseChunk &chunk) {
  const Floats white = all_floats(WHITE<Element>), black = {};
  for (i64 x = 0; x < count; x += LANES) {
    const Ints is_hit = unit(chunk.words[0] + x) < amount;
    const Floats extreme = unit(chunk.words[1] + x) < salt ? white : black;
    for (int c = 0; c < 3; c++) {
      Element *at = planes[c] + first + x;
      store_values(at, is_hit ? extreme : load_floats(at));
    }
  }
}
void add_salt(Planes planes, i64 first, i64 count, f32 amount, f32 salt, const NoiseChunk &chunk) {
  const Floats amounts = all_floats(amount), salts = all_floats(salt);
  u8 *const plane[] = {planes[0] + first, planes[1] + first, planes[2] + first};
  store_columns(plane, {0, count}, [&](i64 x, Halves *out) {
    Ints hit[2], extreme[2];
    for (int half = 0; half < 2; half++) {
      hit[half] = unit(chunk.words[0] + x + half * LANES) < amounts;
      extreme[half] = (unit(chunk.words[1] + x + half * LANES) < salts) & 255;
    }
    // A saturated mask of 32 bits is a mask of 16 bits.
    const Halves is_hit = pack(hit[0], hit[1]), salted = pack(extreme[0], extreme[1]) & is_hit;
    for (int c = 0; c < 3; c++)
      out[c] = (pack(load_bytes(plane[c] + x), load_bytes(plane[c] + x + LANES)) & ~is_hit) | salted;
  });
}

}  // namespace

template <class Element>
void add_noise(const Row &row, i64 slot, i64 pixel, i64 width, i64 channels, PlanesOf<Element> planes) {
  const int op = row.opcode[slot];
  const f64 *a = row.args[slot];
  const f32 *segments = row.batch->segments;
  const i64 number = (i64)a[NOISE_ARG[op]];
  NoiseChunk chunk;
  for (i64 first = 0; first < width; first += CHUNK) {
    const i64 count = min_of(CHUNK, width - first);
    draw_words(row, number, pixel + first, count, chunk);
    if (op == Op::SALT_AND_PEPPER) {
      add_salt(planes, first, count, (f32)a[0], (f32)a[1], chunk);
      continue;
    }
    for (i64 c = 0; c < channels; c++) {
      Element *values = planes[c] + first;
      if (op == Op::GAUSSIAN_NOISE) add_gaussian(values, count, c, (f32)a[0], (f32)a[1], segments, chunk);
      else add_shot(values, count, c, (f32)a[0], segments, chunk);
    }
  }
}

#define VG_COMPILE_ALL(Element) VG_COMPILE(add_noise, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
