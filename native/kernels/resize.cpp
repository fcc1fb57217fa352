#include "resize.h"

#include "../simd.h"
#include "scratch.h"

namespace vg {
namespace VG_LEVEL {
namespace {

constexpr int PRECISION = 22;
constexpr i32 HALF = 1 << (PRECISION - 1);
constexpr f64 PI = 3.14159265358979323846;
// Pillow has these in single precision.
constexpr f64 HAMMING_MEAN = 0.54f, HAMMING_SWING = 0.46f;

f64 filter_radius(int filter) {
  switch (filter) {
    case Interpolation::BICUBIC: return 2.0;
    case Interpolation::LANCZOS: return 3.0;
    case Interpolation::BOX: return 0.5;
    default: return 1.0;
  }
}

f64 sinc(f64 x) { return x == 0 ? 1.0 : sin(x * PI) / (x * PI); }

// Keys' cubic convolution with a = -0.5.
f64 cubic(f64 x) {
  constexpr f64 a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

template <int filter> f64 filter_at(f64 x) {
  if (filter == Interpolation::BOX) return -0.5 < x && x <= 0.5 ? 1 : 0;
  x = fabs(x);
  if (filter == Interpolation::BILINEAR) return x < 1 ? 1 - x : 0;
  if (filter == Interpolation::HAMMING) return x < 1 ? sinc(x) * (HAMMING_MEAN + HAMMING_SWING * cos(x * PI)) : 0;
  if (filter == Interpolation::LANCZOS) return x < 3 ? sinc(x) * sinc(x / 3) : 0;
  return cubic(x);
}

// Weights of the output whose center in the source this is, into `exact`; returns the range of source indices.
template <int filter> Range weigh_output(f64 center, f64 support, f64 inverse, i64 in_size, f64 *exact) {
  const Range range = {max_of<i64>((i64)(center - support + 0.5), 0), min_of<i64>((i64)(center + support + 0.5), in_size)};
  f64 total = 0;
  for (i64 j = 0; j < range.size(); j++) {
    exact[j] = filter_at<filter>(((f64)(j + range.first) - center + 0.5) * inverse);
    total += exact[j];
  }
  if (total != 0)
    for (i64 j = 0; j < range.size(); j++) exact[j] = exact[j] / total;
  return range;
}

VG_INLINE i32 fixed_weight(f64 weight) { return (i32)(weight * (1 << PRECISION) + (weight >= 0 ? 0.5 : -0.5)); }

struct Box {
  f64 first, scale;  // along one axis
  f64 support, inverse;  // of the filter
  i64 in_size, skipped;
};

template <int filter> void fill_axis(ResizeAxis &axis, const Box &box) {
  axis.most = 0;
  for (i64 i = 0; i < axis.size; i++) {
    const f64 center = box.first + ((f64)i + 0.5) * box.scale;
    const Range range = weigh_output<filter>(center, box.support, box.inverse, box.in_size, axis.exact.at);
    i32 *weights = axis.weights.at + i * axis.taps;
    for (i64 j = 0; j < range.size(); j++) weights[j] = fixed_weight(axis.exact[j]);
    axis.first[i] = (i32)(box.skipped + range.first);
    axis.count[i] = (i32)range.size();
    axis.most = max_of(axis.most, range.size());
  }
}

}  // namespace

bool ResizeAxis::fill(i64 in_size, f64 start, f64 extent, i64 out_size, int filter) {
  i64 skipped = 0;
  if (start < 0) {
    skipped = (i64)(-1.0 - start);
    in_size = (i64)extent;
    start = 0;
  }
  const f32 first = (f32)start;  // Pillow's boxes are float32
  const f64 scale = (f64)((f32)(start + extent) - first) / (f64)out_size;
  const f64 filter_scale = max_of(scale, 1.0);
  const f64 support = filter_radius(filter) * filter_scale;
  size = out_size;
  taps = round_up((i64)ceil(support) * 2 + 1, 4);
  // Vectors read whole blocks of outputs.
  const i64 outputs = round_up(out_size, BLOCK);
  if (!this->first.reserve(outputs) || !count.reserve(outputs) || !weights.reserve(outputs * taps) || !exact.reserve(taps))
    return false;
  memset(weights.at, 0, (size_t)(outputs * taps) * sizeof(i32));
  const Box box = {first, scale, support, 1.0 / filter_scale, in_size, skipped};
  switch (filter) {
    case Interpolation::BICUBIC: fill_axis<Interpolation::BICUBIC>(*this, box); break;
    case Interpolation::BOX: fill_axis<Interpolation::BOX>(*this, box); break;
    case Interpolation::HAMMING: fill_axis<Interpolation::HAMMING>(*this, box); break;
    case Interpolation::LANCZOS: fill_axis<Interpolation::LANCZOS>(*this, box); break;
    default: fill_axis<Interpolation::BILINEAR>(*this, box);
  }
  for (i64 i = out_size; i < outputs; i++) {
    this->first[i] = this->first[out_size - 1];
    count[i] = 0;
  }
  return true;
}

namespace {

VG_INLINE u8 to_level(i64 total) { return (u8)clamp<i64>(total >> PRECISION, 0, 255); }

// The horizontal pass of colors, in vectors.

#if VG_VNNI

// 16 outputs at a time, whose source pixels lie within 128 bytes. Waits for VPDPBUSD: products of bytes are added up in
// fours. A weight is three signed bytes, w = d0 + 256 d1 + 65536 d2; bytes of the source are picked by VPERMI2B.
constexpr i64 OUTPUTS = 16, WINDOW = 128;

VG_INLINE __m512i join_digits(__m512i d0, __m512i d1, __m512i d2) {
  __m512i sum = _mm512_add_epi32(d0, _mm512_add_epi32(_mm512_slli_epi32(d1, 8), _mm512_slli_epi32(d2, 16)));
  return _mm512_srai_epi32(sum, PRECISION);
}

// A weight's three signed bytes, in the bytes of a word.
VG_INLINE u32 split_digits(i32 weight) { return ((u32)weight + 0x8080u) ^ 0x8080u; }

// True if every block of outputs reads within a window.
bool fit_windows(const ResizeAxis &x) {
  for (i64 block = 0; block < x.size; block += OUTPUTS)
    for (i64 output = block; output < min_of(block + OUTPUTS, x.size); output++)
      if (3 * (x.end_of(output) - x.first[block]) > WINDOW) return false;
  return true;
}

bool pack_picks(ResizeScratch &r) {
  const ResizeAxis &x = r.x;
  const i64 blocks = (x.size + OUTPUTS - 1) / OUTPUTS, groups = (x.most + 3) / 4;
  if (!r.packed.reserve(blocks * groups * 192) || !r.picks.reserve(blocks * OUTPUTS)) return false;
  r.packing = ResizePacking::PICKS;
  for (i64 block = 0; block < blocks; block++) {
    for (i64 lane = 0; lane < OUTPUTS; lane++) {
      const i64 output = OUTPUTS * block + lane;
      const i64 offset = 3 * (x.first[output] - x.first[OUTPUTS * block]);
      // Four pixels side by side: bytes 0, 3, 6 and 9.
      r.picks[output] = (i32)((u32)offset * 0x01010101u + 0x09060300u);
      for (i64 tap = 0; tap < 4 * groups; tap++) {
        const u32 digits = split_digits(x.weights_of(output)[tap]);
        u8 *to = r.packed.at + (block * groups + tap / 4) * 192 + 4 * lane + tap % 4;
        to[0] = (u8)digits;
        to[64] = (u8)(digits >> 8);
        to[128] = (u8)(digits >> 16);
      }
    }
  }
  return true;
}

// Outputs of a row of colors, as many as whole windows of the source allow; returns how many. `shift`: the source column
// that `source` stands for.
i64 read_by_picks(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, u8 *out) {
  const i64 groups = (r.x.most + 3) / 4;
  const __m512i half = _mm512_set1_epi32(HALF), zero = _mm512_setzero_si512();
  const __m512i next_channel = _mm512_set1_epi8(1), next_group = _mm512_set1_epi8(12);
  i64 output = 0;
  for (; output < r.x.size; output += OUTPUTS) {
    const u8 *at = source + 3 * (r.x.first[output] - shift);
    if (at + WINDOW > end) break;
    const u8 *weights = r.packed.at + output / OUTPUTS * groups * 192;
    const __m512i low = _mm512_loadu_si512(at), high = _mm512_loadu_si512(at + 64);
    __m512i pick = _mm512_loadu_si512(r.picks.at + output);
    __m512i sums[3][3];
    for (auto &sum : sums) {
      sum[0] = half;
      sum[1] = sum[2] = zero;
    }
    for (i64 group = 0; group < groups; group++, weights += 192) {
      const __m512i w0 = _mm512_loadu_si512(weights), w1 = _mm512_loadu_si512(weights + 64),
                    w2 = _mm512_loadu_si512(weights + 128);
      __m512i of_channel = pick;
      for (auto &sum : sums) {
        const __m512i levels = _mm512_permutex2var_epi8(low, of_channel, high);
        of_channel = _mm512_add_epi8(of_channel, next_channel);
        sum[0] = _mm512_dpbusd_epi32(sum[0], levels, w0);
        sum[1] = _mm512_dpbusd_epi32(sum[1], levels, w1);
        sum[2] = _mm512_dpbusd_epi32(sum[2], levels, w2);
      }
      pick = _mm512_add_epi8(pick, next_group);
    }
    __m512i levels[3];
    for (int c = 0; c < 3; c++) {
      const __m512i value = join_digits(sums[c][0], sums[c][1], sums[c][2]);
      levels[c] = _mm512_min_epi32(_mm512_max_epi32(value, zero), _mm512_set1_epi32(255));
    }
    const __m512i red_green = _mm512_or_si512(levels[0], _mm512_slli_epi32(levels[1], 8));
    _mm512_storeu_si512(out + 4 * output, _mm512_or_si512(red_green, _mm512_slli_epi32(levels[2], 16)));
  }
  return output;
}

#endif

#if VG_SSSE3

// For PMADDWD: products of 16 bits are added up in twos. A weight is two signed numbers of 12 bits and fewer,
// w = low + 4096 high.
constexpr int SPLIT_BITS = 12;

VG_INLINE i32 low_part(i32 weight) { return ((weight + 2048) & 4095) - 2048; }
VG_INLINE i32 high_part(i32 weight) { return (weight - low_part(weight)) >> SPLIT_BITS; }
// Two numbers of 16 bits in a word.
VG_INLINE i32 pair_of(i32 first, i32 second) { return (i32)((u32)(first & 0xffff) | (u32)second << 16); }

// Bytes that are read of each pair of source pixels, which takes six.
constexpr i64 READ = 16;

#endif

#if VG_AVX2

VG_INLINE __m256i join_parts(__m256i low, __m256i high) {
  return _mm256_srai_epi32(_mm256_add_epi32(low, _mm256_slli_epi32(high, SPLIT_BITS)), PRECISION);
}

VG_INLINE __m256i add_products(__m256i sum, __m256i levels, __m256i weights) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(levels, weights));
}

// 8 outputs at a time; output i and i + 4 share a register: R, G, B and nothing of each.
constexpr i64 PAIR_OUTPUTS = 8;

bool pack_pairs(ResizeScratch &r) {
  const ResizeAxis &x = r.x;
  const i64 blocks = (x.size + PAIR_OUTPUTS - 1) / PAIR_OUTPUTS, pairs = (x.most + 1) / 2;
  if (!r.packed.reserve(blocks * pairs * 256)) return false;
  r.packing = ResizePacking::PAIRS;
  for (i64 block = 0; block < blocks; block++) {
    for (i64 output = 0; output < PAIR_OUTPUTS; output++) {
      const i32 *weights = x.weights_of(PAIR_OUTPUTS * block + output);
      for (i64 pair = 0; pair < pairs; pair++) {
        const i32 first = weights[2 * pair], second = weights[2 * pair + 1];
        const i32 parts[2] = {pair_of(low_part(first), low_part(second)), pair_of(high_part(first), high_part(second))};
        for (int part = 0; part < 2; part++) {
          u8 *to = r.packed.at + (block * pairs + pair) * 256 + (output % 4 * 2 + part) * 32 + output / 4 * 16;
          for (int c = 0; c < 4; c++) store(to + 4 * c, parts[part]);
        }
      }
    }
  }
  return true;
}

// One pair of source pixels of two outputs, added to their sums.
VG_INLINE void add_pair(const u8 *first, const u8 *second, const u8 *weights, __m256i spread, __m256i &low, __m256i &high) {
  const __m128i a = _mm_loadu_si128((const __m128i *)first), b = _mm_loadu_si128((const __m128i *)second);
  // Of each 16 bytes: red of both pixels, green, blue, and nothing, as 16 bits each.
  const __m256i levels = _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1), spread);
  low = add_products(low, levels, _mm256_loadu_si256((const __m256i *)weights));
  high = add_products(high, levels, _mm256_loadu_si256((const __m256i *)(weights + 32)));
}

i64 read_by_pairs(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, u8 *out) {
  const ResizeAxis &x = r.x;
  const i64 pairs = (x.most + 1) / 2;
  const __m256i half = _mm256_set1_epi32(HALF), zero = _mm256_setzero_si256();
  const __m256i spread = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  i64 output = 0;
  for (; output < x.size; output += PAIR_OUTPUTS) {
    // Places do not fall from output to output.
    if (source + 3 * (x.first[output + PAIR_OUTPUTS - 1] - shift) + 6 * (pairs - 1) + READ > end) break;
    const u8 *weights = r.packed.at + output / PAIR_OUTPUTS * pairs * 256;
    const u8 *at[PAIR_OUTPUTS];
    for (i64 i = 0; i < PAIR_OUTPUTS; i++) at[i] = source + 3 * (x.first[output + i] - shift);
    // Variables: GCC keeps an array of sums in memory.
    __m256i low_0 = half, low_1 = half, low_2 = half, low_3 = half;
    __m256i high_0 = zero, high_1 = zero, high_2 = zero, high_3 = zero;
    for (i64 pair = 0; pair < pairs; pair++, weights += 256) {
      add_pair(at[0] + 6 * pair, at[4] + 6 * pair, weights, spread, low_0, high_0);
      add_pair(at[1] + 6 * pair, at[5] + 6 * pair, weights + 64, spread, low_1, high_1);
      add_pair(at[2] + 6 * pair, at[6] + 6 * pair, weights + 128, spread, low_2, high_2);
      add_pair(at[3] + 6 * pair, at[7] + 6 * pair, weights + 192, spread, low_3, high_3);
    }
    const __m256i first = _mm256_packs_epi32(join_parts(low_0, high_0), join_parts(low_1, high_1));
    const __m256i second = _mm256_packs_epi32(join_parts(low_2, high_2), join_parts(low_3, high_3));
    _mm256_storeu_si256((__m256i *)(out + 4 * output), _mm256_packus_epi16(first, second));
  }
  return output;
}

#elif VG_SSSE3

// The same in 16 bytes: four outputs at a time, each in a register of its own.
constexpr i64 PAIR_OUTPUTS = 4;

VG_INLINE __m128i join_parts(__m128i low, __m128i high) {
  return _mm_srai_epi32(_mm_add_epi32(low, _mm_slli_epi32(high, SPLIT_BITS)), PRECISION);
}

VG_INLINE __m128i add_products(__m128i sum, __m128i levels, __m128i weights) {
  return _mm_add_epi32(sum, _mm_madd_epi16(levels, weights));
}

bool pack_pairs(ResizeScratch &r) {
  const ResizeAxis &x = r.x;
  const i64 blocks = (x.size + PAIR_OUTPUTS - 1) / PAIR_OUTPUTS, pairs = (x.most + 1) / 2;
  if (!r.packed.reserve(blocks * pairs * 128)) return false;
  r.packing = ResizePacking::PAIRS;
  for (i64 block = 0; block < blocks; block++) {
    for (i64 output = 0; output < PAIR_OUTPUTS; output++) {
      const i32 *weights = x.weights_of(PAIR_OUTPUTS * block + output);
      for (i64 pair = 0; pair < pairs; pair++) {
        const i32 first = weights[2 * pair], second = weights[2 * pair + 1];
        u8 *to = r.packed.at + (block * pairs + pair) * 128 + output * 32;
        for (int c = 0; c < 4; c++) {
          store(to + 4 * c, pair_of(low_part(first), low_part(second)));
          store(to + 16 + 4 * c, pair_of(high_part(first), high_part(second)));
        }
      }
    }
  }
  return true;
}

VG_INLINE void add_pair(const u8 *at, const u8 *weights, __m128i spread, __m128i &low, __m128i &high) {
  const __m128i levels = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)at), spread);
  low = add_products(low, levels, _mm_loadu_si128((const __m128i *)weights));
  high = add_products(high, levels, _mm_loadu_si128((const __m128i *)(weights + 16)));
}

i64 read_by_pairs(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, u8 *out) {
  const ResizeAxis &x = r.x;
  const i64 pairs = (x.most + 1) / 2;
  const __m128i half = _mm_set1_epi32(HALF), zero = _mm_setzero_si128();
  const __m128i spread = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
  i64 output = 0;
  for (; output < x.size; output += PAIR_OUTPUTS) {
    if (source + 3 * (x.first[output + PAIR_OUTPUTS - 1] - shift) + 6 * (pairs - 1) + READ > end) break;
    const u8 *weights = r.packed.at + output / PAIR_OUTPUTS * pairs * 128;
    const u8 *at[PAIR_OUTPUTS];
    for (i64 i = 0; i < PAIR_OUTPUTS; i++) at[i] = source + 3 * (x.first[output + i] - shift);
    __m128i low_0 = half, low_1 = half, low_2 = half, low_3 = half;
    __m128i high_0 = zero, high_1 = zero, high_2 = zero, high_3 = zero;
    for (i64 pair = 0; pair < pairs; pair++, weights += 128) {
      add_pair(at[0] + 6 * pair, weights, spread, low_0, high_0);
      add_pair(at[1] + 6 * pair, weights + 32, spread, low_1, high_1);
      add_pair(at[2] + 6 * pair, weights + 64, spread, low_2, high_2);
      add_pair(at[3] + 6 * pair, weights + 96, spread, low_3, high_3);
    }
    const __m128i first = _mm_packs_epi32(join_parts(low_0, high_0), join_parts(low_1, high_1));
    const __m128i second = _mm_packs_epi32(join_parts(low_2, high_2), join_parts(low_3, high_3));
    _mm_storeu_si128((__m128i *)(out + 4 * output), _mm_packus_epi16(first, second));
  }
  return output;
}

#endif

// Weights along x for the vectors of this level, where there are any. False where there is no memory.
bool pack_weights(ResizeScratch &r) {
  r.packing = ResizePacking::NONE;
#if VG_VNNI
  if (fit_windows(r.x)) return pack_picks(r);
#endif
#if VG_SSSE3
  return pack_pairs(r);
#else
  return true;
#endif
}

i64 read_in_vectors(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, u8 *out) {
#if VG_VNNI
  if (r.packing == ResizePacking::PICKS) return read_by_picks(r, source, end, shift, out);
#endif
#if VG_SSSE3
  if (r.packing == ResizePacking::PAIRS) return read_by_pairs(r, source, end, shift, out);
#endif
  (void)r, (void)source, (void)end, (void)shift, (void)out;
  return 0;
}

#if VG_VNNI

// Bytes of `mix_lines` that are made at a time.
constexpr i64 MIXED = 64;

void pack_row_weights(const i32 *weights, i64 count, i32 *packed) {
  const i64 groups = (count + 3) / 4;
  for (i64 tap = 0; tap < 4 * groups; tap++) {
    const u32 digits = split_digits(tap < count ? weights[tap] : 0);
    u8 *to = (u8 *)packed + 12 * (tap / 4) + tap % 4;
    to[0] = (u8)digits;
    to[4] = (u8)(digits >> 8);
    to[8] = (u8)(digits >> 16);
  }
}

VG_INLINE void mix_block(const u8 *source, i64 stride, i64 count, const i32 *weights, u8 *out) {
  const __m512i half = _mm512_set1_epi32(HALF), zero = _mm512_setzero_si512();
  __m512i sums[4][3];
  for (auto &sum : sums) {
    sum[0] = half;
    sum[1] = sum[2] = zero;
  }
  for (i64 tap = 0; tap < count; tap += 4, weights += 3) {
    __m512i lines[4];
    // Lines past the last one have weights of 0.
    for (i64 j = 0; j < 4; j++) lines[j] = _mm512_loadu_si512(source + min_of(tap + j, count - 1) * stride);
    const __m512i low_01 = _mm512_unpacklo_epi8(lines[0], lines[1]), high_01 = _mm512_unpackhi_epi8(lines[0], lines[1]);
    const __m512i low_23 = _mm512_unpacklo_epi8(lines[2], lines[3]), high_23 = _mm512_unpackhi_epi8(lines[2], lines[3]);
    const __m512i quads[4] = {_mm512_unpacklo_epi16(low_01, low_23), _mm512_unpackhi_epi16(low_01, low_23),
                              _mm512_unpacklo_epi16(high_01, high_23), _mm512_unpackhi_epi16(high_01, high_23)};
    for (int digit = 0; digit < 3; digit++) {
      const __m512i weight = _mm512_set1_epi32(weights[digit]);
      for (int i = 0; i < 4; i++) sums[i][digit] = _mm512_dpbusd_epi32(sums[i][digit], quads[i], weight);
    }
  }
  __m512i values[4];
  for (int i = 0; i < 4; i++) values[i] = join_digits(sums[i][0], sums[i][1], sums[i][2]);
  // Packing saturates, and undoes the order of the interleaving.
  const __m512i first = _mm512_packus_epi32(values[0], values[1]), second = _mm512_packus_epi32(values[2], values[3]);
  _mm512_storeu_si512(out, _mm512_packus_epi16(first, second));
}

#else

#if VG_SSSE3

void pack_row_weights(const i32 *weights, i64 count, i32 *packed) {
  for (i64 tap = 0; tap < count; tap += 2) {
    const i32 first = weights[tap], second = tap + 1 < count ? weights[tap + 1] : 0;
    packed[tap] = pair_of(low_part(first), low_part(second));
    packed[tap + 1] = pair_of(high_part(first), high_part(second));
  }
}

#endif

#if VG_AVX2

constexpr i64 MIXED = 32;

VG_INLINE void mix_block(const u8 *source, i64 stride, i64 count, const i32 *weights, u8 *out) {
  const __m256i half = _mm256_set1_epi32(HALF), zero = _mm256_setzero_si256();
  __m256i low_0 = half, low_1 = half, low_2 = half, low_3 = half;
  __m256i high_0 = zero, high_1 = zero, high_2 = zero, high_3 = zero;
  for (i64 tap = 0; tap < count; tap += 2) {
    const u8 *first = source + tap * stride, *second = source + min_of(tap + 1, count - 1) * stride;
    const __m256i a = _mm256_loadu_si256((const __m256i *)first), b = _mm256_loadu_si256((const __m256i *)second);
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    const __m256i w_low = _mm256_set1_epi32(weights[tap]), w_high = _mm256_set1_epi32(weights[tap + 1]);
    const __m256i levels_0 = _mm256_unpacklo_epi8(low, zero), levels_1 = _mm256_unpackhi_epi8(low, zero);
    const __m256i levels_2 = _mm256_unpacklo_epi8(high, zero), levels_3 = _mm256_unpackhi_epi8(high, zero);
    low_0 = add_products(low_0, levels_0, w_low);
    low_1 = add_products(low_1, levels_1, w_low);
    low_2 = add_products(low_2, levels_2, w_low);
    low_3 = add_products(low_3, levels_3, w_low);
    high_0 = add_products(high_0, levels_0, w_high);
    high_1 = add_products(high_1, levels_1, w_high);
    high_2 = add_products(high_2, levels_2, w_high);
    high_3 = add_products(high_3, levels_3, w_high);
  }
  const __m256i first = _mm256_packs_epi32(join_parts(low_0, high_0), join_parts(low_1, high_1));
  const __m256i second = _mm256_packs_epi32(join_parts(low_2, high_2), join_parts(low_3, high_3));
  _mm256_storeu_si256((__m256i *)out, _mm256_packus_epi16(first, second));
}

#elif VG_SSSE3

constexpr i64 MIXED = 16;

VG_INLINE void mix_block(const u8 *source, i64 stride, i64 count, const i32 *weights, u8 *out) {
  const __m128i half = _mm_set1_epi32(HALF), zero = _mm_setzero_si128();
  __m128i low_0 = half, low_1 = half, low_2 = half, low_3 = half;
  __m128i high_0 = zero, high_1 = zero, high_2 = zero, high_3 = zero;
  for (i64 tap = 0; tap < count; tap += 2) {
    const u8 *first = source + tap * stride, *second = source + min_of(tap + 1, count - 1) * stride;
    const __m128i a = _mm_loadu_si128((const __m128i *)first), b = _mm_loadu_si128((const __m128i *)second);
    const __m128i low = _mm_unpacklo_epi8(a, b), high = _mm_unpackhi_epi8(a, b);
    const __m128i w_low = _mm_set1_epi32(weights[tap]), w_high = _mm_set1_epi32(weights[tap + 1]);
    const __m128i levels_0 = _mm_unpacklo_epi8(low, zero), levels_1 = _mm_unpackhi_epi8(low, zero);
    const __m128i levels_2 = _mm_unpacklo_epi8(high, zero), levels_3 = _mm_unpackhi_epi8(high, zero);
    low_0 = add_products(low_0, levels_0, w_low);
    low_1 = add_products(low_1, levels_1, w_low);
    low_2 = add_products(low_2, levels_2, w_low);
    low_3 = add_products(low_3, levels_3, w_low);
    high_0 = add_products(high_0, levels_0, w_high);
    high_1 = add_products(high_1, levels_1, w_high);
    high_2 = add_products(high_2, levels_2, w_high);
    high_3 = add_products(high_3, levels_3, w_high);
  }
  const __m128i first = _mm_packs_epi32(join_parts(low_0, high_0), join_parts(low_1, high_1));
  const __m128i second = _mm_packs_epi32(join_parts(low_2, high_2), join_parts(low_3, high_3));
  _mm_storeu_si128((__m128i *)out, _mm_packus_epi16(first, second));
}

#else

// Bytes whose sums GCC keeps in registers.
constexpr i64 MIXED = 16;

void pack_row_weights(const i32 *weights, i64 count, i32 *packed) { memcpy(packed, weights, (size_t)count * sizeof(i32)); }

VG_INLINE void mix_block(const u8 *source, i64 stride, i64 count, const i32 *weights, u8 *out) {
  i32 sums[MIXED];
  for (i64 i = 0; i < MIXED; i++) sums[i] = HALF;
  for (i64 tap = 0; tap < count; tap++) {
    const u8 *line = source + tap * stride;
    for (i64 i = 0; i < MIXED; i++) sums[i] += weights[tap] * line[i];
  }
  for (i64 i = 0; i < MIXED; i++) out[i] = to_level(sums[i]);
}

#endif
#endif

// A row of the source, from column `shift` on, resized along x into `out`: RGBX for colors, bytes for gray. `end`: of what
// may be read.
void resize_row(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, i64 channels, u8 *out) {
  const ResizeAxis &x = r.x;
  const i64 pixel = channels == 3 ? 4 : 1;
  i64 output = 0;
  if (channels == 3) output = read_in_vectors(r, source, end, shift, out);
  for (; output < x.size; output++) {
    const i32 *weights = x.weights_of(output);
    for (i64 c = 0; c < channels; c++) {
      const u8 *at = source + channels * (x.first[output] - shift) + c;
      i64 total = HALF;
      for (i64 tap = 0; tap < x.count[output]; tap++) total += (i64)at[channels * tap] * weights[tap];
      out[pixel * output + c] = to_level(total);
    }
  }
}

// Output line `y`: `bytes` of as many lines as it has weights, `stride` apart, weighed into one.
void mix_lines(ResizeScratch &r, const u8 *source, i64 stride, i64 bytes, i64 y, u8 *out) {
  const i64 count = r.y.count[y];
  const i32 *weights = r.y.weights_of(y);
  if (bytes >= MIXED && count > 0) {
    pack_row_weights(weights, count, r.row_weights.at);
    // The last block overlaps the one before it, so that no read leaves the line.
    for (i64 at = 0; at < bytes; at += MIXED) {
      const i64 block = min_of(at, bytes - MIXED);
      mix_block(source + block, stride, count, r.row_weights.at, out + block);
    }
    return;
  }
  for (i64 i = 0; i < bytes; i++) {
    i64 total = HALF;
    for (i64 tap = 0; tap < count; tap++) total += (i64)source[tap * stride + i] * weights[tap];
    out[i] = to_level(total);
  }
}

// A resized row into planes.
void spread_row(const u8 *row, i64 width, i64 channels, bool is_mirrored, Planes planes) {
  const i64 pixel = channels == 3 ? 4 : 1;
  i64 x = 0;
#if VG_AVX2
  if (channels == 3) {
    const __m256i by_channel = _mm256_broadcastsi128_si256(
        is_mirrored ? _mm_setr_epi8(12, 8, 4, 0, 13, 9, 5, 1, 14, 10, 6, 2, 15, 11, 7, 3)
                    : _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m256i halves = is_mirrored ? _mm256_setr_epi32(4, 0, 5, 1, 6, 2, 7, 3) : _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (; x + 8 <= width; x += 8) {
      const u8 *at = row + 4 * (is_mirrored ? width - 8 - x : x);
      const __m256i pixels = _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)at), by_channel);
      const __m256i channels_of_8 = _mm256_permutevar8x32_epi32(pixels, halves);
      _mm_storel_epi64((__m128i *)(planes[0] + x), _mm256_castsi256_si128(channels_of_8));
      _mm_storeh_pd((double *)(planes[1] + x), _mm_castsi128_pd(_mm256_castsi256_si128(channels_of_8)));
      _mm_storel_epi64((__m128i *)(planes[2] + x), _mm256_extracti128_si256(channels_of_8, 1));
    }
  }
#elif VG_SSSE3
  if (channels == 3) {
    const __m128i by_channel = is_mirrored ? _mm_setr_epi8(12, 8, 4, 0, 13, 9, 5, 1, 14, 10, 6, 2, 15, 11, 7, 3)
                                           : _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (; x + 4 <= width; x += 4) {
      const u8 *at = row + 4 * (is_mirrored ? width - 4 - x : x);
      const __m128i pixels = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)at), by_channel);
      store(planes[0] + x, _mm_cvtsi128_si32(pixels));
      store(planes[1] + x, _mm_cvtsi128_si32(_mm_srli_si128(pixels, 4)));
      store(planes[2] + x, _mm_cvtsi128_si32(_mm_srli_si128(pixels, 8)));
    }
  }
#endif
  for (; x < width; x++) {
    const u8 *at = row + pixel * (is_mirrored ? width - 1 - x : x);
    for (i64 c = 0; c < channels; c++) planes[c][x] = at[c];
  }
}

// The vertical pass comes first where that is less work: `a[7]`.
bool is_vertical_first(const f64 *a) { return a[7] != 0; }

}  // namespace

bool prepare_resize(const Row &row, i64 slot, const Image &image, i64 height, i64 width, Range y, Scratch &s) {
  const f64 *a = row.args[slot];
  const int filter = row.flags[slot];
  ResizeScratch &r = s.resize;
  const i64 channels = image.channels, row_bytes = channels * image.width;
  if (!r.x.fill(image.width, a[1], a[3], width, filter) || !r.y.fill(image.height, a[0], a[2], height, filter)) return false;
  const i64 out_bytes = (channels == 3 ? 4 : 1) * round_up(width, BLOCK);
  if (!r.row_weights.reserve(r.y.taps + 8) || !r.row.reserve(out_bytes) || !r.mixed.reserve(row_bytes + 2 * BLOCK))
    return false;
  if (channels == 3 && !pack_weights(r)) return false;
  if (is_vertical_first(a) || y.is_empty()) return true;
  r.first_line = r.y.first[y.first];
  const i64 lines = r.y.end_of(y.end - 1) - r.first_line;
  if (!r.band.reserve(lines * out_bytes)) return false;
  const u8 *end = image.pixels + image.bytes();
  for (i64 line = 0; line < lines; line++)
    resize_row(r, image.pixels + (r.first_line + line) * row_bytes, end, 0, channels, r.band.at + line * out_bytes);
  return true;
}

void read_resized_row(const Row &row, i64 slot, const Image &image, i64 y, i64 width, Scratch &s) {
  const f64 *a = row.args[slot];
  ResizeScratch &r = s.resize;
  const i64 channels = image.channels, pixel = channels == 3 ? 4 : 1;
  if (is_vertical_first(a)) {
    const i64 stride = channels * image.width, left = r.x.first[0];
    const i64 bytes = channels * (r.x.end_of(width - 1) - left);
    mix_lines(r, image.pixels + r.y.first[y] * stride + channels * left, stride, bytes, y, r.mixed.at);
    resize_row(r, r.mixed.at, r.mixed.at + image.width * channels + 2 * BLOCK, left, channels, r.row.at);
  } else {
    const i64 stride = pixel * round_up(width, BLOCK);
    mix_lines(r, r.band.at + (r.y.first[y] - r.first_line) * stride, stride, pixel * width, y, r.row.at);
  }
  spread_row(r.row.at, width, channels, a[6] != 0, s.row.planes());
}

}  // namespace VG_LEVEL
}  // namespace vg
