// Sums of luma, extremes, and histograms of interleaved bytes.
#include "interleave.h"
#include "lanes.h"
#include "statistics.h"
#include "values.h"

namespace vg::VG_LEVEL {
namespace {

#if VG_SSSE3  // pshufb, pmaddwd
// Shuffles within groups of 16 bytes: four pixels of three bytes become four lanes of two 16-bit channels, red and
// green, or green and blue.
constexpr int pair_byte(int j, int first) {
  const int pixel = j % 16 / 4;
  return j % 2 == 1 ? 128 : 3 * pixel + first + j % 4 / 2;
}
constexpr ByteTable RED_GREEN = byte_table([](int j) { return pair_byte(j, 0); });
constexpr ByteTable GREEN_BLUE = byte_table([](int j) { return pair_byte(j, 1); });
// Weights of 16 bits for pmaddwd. Green's weight needs more bits, so each pair has half of it.
constexpr i32 WEIGHTS_RED_GREEN = LUMA_RED | (LUMA_GREEN / 2) << 16;
constexpr i32 WEIGHTS_GREEN_BLUE = LUMA_GREEN / 2 | LUMA_BLUE << 16;

// The sum of the luma of pixels at `bytes`, at most a million. Adds the number of processed bytes to `done`. Reads
// nothing after `count` bytes.
i64 sum_luma_vectors(const u8 *bytes, i64 count, i64 &done) {
  Ints sum = {};
  i64 i = 0;
  const WideInts red_green = load<WideInts>(RED_GREEN.at), green_blue = load<WideInts>(GREEN_BLUE.at);
#if VG_AVX512
  const __m512i spread = _mm512_setr_epi32(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0);
  auto read = [&](const u8 *at) { return _mm512_permutexvar_epi32(spread, load<__m512i>(at)); };
  constexpr i64 READ = 64;
#elif VG_AVX2
  auto read = [](const u8 *at) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load<__m128i>(at)), load<__m128i>(at + 12), 1);
  };
  constexpr i64 READ = 28;
#else
  auto read = [](const u8 *at) { return load<__m128i>(at); };
  constexpr i64 READ = 16;
#endif
  for (; i + READ <= count; i += 3 * LANES) {
    const WideInts pixels = read(bytes + i);
    auto move = [&](WideInts order) { return (Ints)VG_WIDE(shuffle_epi8)(pixels, order); };
    sum += (multiply_pairs(move(red_green), all_ints(WEIGHTS_RED_GREEN)) +
            multiply_pairs(move(green_blue), all_ints(WEIGHTS_GREEN_BLUE)) + LUMA_HALF) >>
           LUMA_SHIFT;
  }
  done += i;
  i64 total = 0;
  for (i64 k = 0; k < LANES; k++) total += sum[k];
  return total;
}
#else
i64 sum_luma_vectors(const u8 *, i64, i64 &) { return 0; }
#endif

// Number of pixels whose sums fit into 32 bits.
constexpr i64 MOST_PIXELS = 1 << 20;

}  // namespace

i64 sum_luma(const u8 *bytes, i64 count, i64 channels) {
  i64 total = 0;
  if (channels == 1) {
    for (i64 first = 0; first < count; first += MOST_PIXELS) {
      u32 part = 0;
      for (i64 i = first; i < min_of(count, first + MOST_PIXELS); i++) part += bytes[i];
      total += part;
    }
    return total;
  }
  for (i64 first = 0; first < count; first += 3 * MOST_PIXELS) {
    const i64 end = min_of(count, first + 3 * MOST_PIXELS);
    i64 i = first;
    total += sum_luma_vectors(bytes + first, end - first, i);
    for (; i < end; i += 3) total += luma<i64>(bytes[i], bytes[i + 1], bytes[i + 2]);
  }
  return total;
}

i64 sum_luma(Planes planes, i64 pixels) {
  const u8 *red = planes[0], *green = planes[1], *blue = planes[2];
  i64 total = 0, x = 0;
  while (x + LANES <= pixels) {
    Ints sum = {};
    for (const i64 end = min_of(pixels, x + MOST_PIXELS); x + LANES <= end; x += LANES)
      sum += luma_of(load_bytes(red + x), load_bytes(green + x), load_bytes(blue + x));
    for (i64 k = 0; k < LANES; k++) total += sum[k];
  }
  for (; x < pixels; x++) total += luma<i64>(red[x], green[x], blue[x]);
  return total;
}

void widen_extremes(const u8 *bytes, i64 count, Extremes &extremes) {
  constexpr i64 SIZE = Extremes::SIZE;
  if (count < SIZE) {
    for (i64 i = 0; i < count; i++) {
      extremes.low[i] = min_of(extremes.low[i], bytes[i]);
      extremes.high[i] = max_of(extremes.high[i], bytes[i]);
    }
    return;
  }
  typedef u8 Block __attribute__((vector_size(32)));
  Block low0 = load<Block>(extremes.low), low1 = load<Block>(extremes.low + 32), low2 = load<Block>(extremes.low + 64);
  Block high0 = load<Block>(extremes.high), high1 = load<Block>(extremes.high + 32);
  Block high2 = load<Block>(extremes.high + 64);
  auto widen = [](Block v, Block &low, Block &high) {
    low = v < low ? v : low;
    high = v > high ? v : high;
  };
  for (i64 x = 0; x < count; x += SIZE) {
    // The last vector overlaps the one before; rows of three channels end at a full pixel.
    const u8 *at = bytes + min_of(x, count - SIZE);
    widen(load<Block>(at), low0, high0);
    widen(load<Block>(at + 32), low1, high1);
    widen(load<Block>(at + 64), low2, high2);
  }
  store(extremes.low, low0);
  store(extremes.low + 32, low1);
  store(extremes.low + 64, low2);
  store(extremes.high, high0);
  store(extremes.high + 32, high1);
  store(extremes.high + 64, high2);
}

void count_bytes(const u8 *bytes, i64 count, Histogram &histogram) {
  u32(*counts)[Histogram::COPIES][256] = histogram.counts;
  i64 i = 0;
  for (; i + 24 <= count; i += 24) {
    const u64 words[] = {load<u64>(bytes + i), load<u64>(bytes + i + 8), load<u64>(bytes + i + 16)};
#pragma GCC unroll 24
    for (int k = 0; k < 24; k++) counts[k % 3][k / 3 % Histogram::COPIES][(u8)(words[k / 8] >> k % 8 * 8)]++;
  }
  for (; i < count; i++) counts[i % 3][0][bytes[i]]++;
}

}  // namespace vg::VG_LEVEL
