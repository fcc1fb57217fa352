#include "resize.h"

#include "interleave.h"
#include "nearest.h"
#include "registers.h"
#include "scratch.h"

namespace vg::VG_LEVEL {
namespace {

constexpr i32 HALF = 1 << (RESIZE_BITS - 1);

// The sum of bytes, `step` apart, times weights.
VG_INLINE u8 weigh(const u8 *at, i64 step, const i32 *weights, i64 count) {
  i32 total = HALF;
  for (i64 tap = 0; tap < count; tap++) total += at[tap * step] * weights[tap];
  return clip<u8>(total >> RESIZE_BITS);
}

// `dot16` adds the products of two taps, of 16-bit numbers. Therefore a weight is split into two, low + 4096 high.
constexpr int LOW_BITS = 12;

VG_INLINE i32 low_part(i32 weight) { return ((weight + 2048) & 4095) - 2048; }
VG_INLINE i32 high_part(i32 weight) { return (weight - low_part(weight)) >> LOW_BITS; }
// Low parts of the weights of two taps.
VG_INLINE i32 low_parts(const i32 *weights) { return pair_of(low_part(weights[0]), low_part(weights[1])); }
VG_INLINE i32 high_parts(const i32 *weights) { return pair_of(high_part(weights[0]), high_part(weights[1])); }

// Registers of low parts and of high parts.
struct Weights {
  Register low, high;
};
VG_INLINE Weights load_weights(const u8 *at) { return {load_register(at), load_register(at + REGISTER)}; }

// Sums of products with low parts, and with high parts.
struct Sums {
  Register low = all32(HALF), high = all32(0);

  VG_MEMBER void add(Register pixels, Weights weights) {
    low = add_dot16(low, pixels, weights.low);
    high = add_dot16(high, pixels, weights.high);
    pin_register(low);
    pin_register(high);
  }
  VG_MEMBER Register total() const { return right32<RESIZE_BITS>(add32(low, left32<LOW_BITS>(high))); }
};

// Saturates four registers of sums to bytes.
VG_INLINE Register bytes_of(const Sums *sums) {
  return pack16(pack32(sums[0].total(), sums[1].total()), pack32(sums[2].total(), sums[3].total()));
}

// ---- The horizontal pass for three channels, by pairs of taps. A block of outputs has four registers of sums: output
// i is 16 bytes of register i % 4: R, G, B and an unused lane. Packing then gives pixels of four bytes, in order.

constexpr i64 BLOCK_OUTPUTS = REGISTER / 4;
constexpr i64 PAIR_WEIGHTS = 8 * REGISTER;  // bytes of a block's weights of two taps
constexpr i64 PAIR_READ = 16;  // bytes loaded for two source pixels

bool pack_pairs(ResizeScratch &r) {
  const ResizeAxis &x = r.x;
  const i64 outputs = round_up(x.size, BLOCK_OUTPUTS), pairs = (x.most + 1) / 2;
  if (!r.packed.reserve(outputs / BLOCK_OUTPUTS * pairs * PAIR_WEIGHTS)) return false;
  if (!r.offsets.reserve(outputs)) return false;
  for (i64 output = 0; output < outputs; output++) {
    r.offsets[output] = 3 * x.first[output];
    const i32 *weights = x.weights_of(output);
    const i64 block = output / BLOCK_OUTPUTS, lane = output % BLOCK_OUTPUTS;
    u8 *to = r.packed.at + block * pairs * PAIR_WEIGHTS + lane % 4 * 2 * REGISTER + lane / 4 * 16;
    for (i64 pair = 0; pair < pairs; pair++, weights += 2, to += PAIR_WEIGHTS) {
      const i32 low = low_parts(weights), high = high_parts(weights);
      for (int c = 0; c < 4; c++) {
        store(to + 4 * c, low);
        store(to + REGISTER + 4 * c, high);
      }
    }
  }
  return true;
}

// Converts each 16 bytes, which begin with two RGB pixels, to 16-bit lanes R, R, G, G, B, B and two unused lanes.
VG_INLINE Register pair_channels(Register pixels) {
#if VG_SSSE3  // pshufb
  return move_bytes(pixels, _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
#elif defined(VG_MM)
  return low8(low8(pixels, _mm_srli_si128(pixels, 3)), all8(0));
#else
  return __builtin_shufflevector(pixels, all8(0), 0, 16, 3, 16, 1, 16, 4, 16, 2, 16, 5, 16, 16, 16, 16, 16);
#endif
}

// Loads two source pixels of every fourth output. `at`: by output, the begin of its pixels.
VG_INLINE Register load_pairs(const u8 *const *at, i64 offset) {
  return pair_channels(join_16([=](int output) { return load<Part>(at[output] + offset); }));
}

// Stores pixels of four bytes as RGB. Writes a full register: the next store overwrites the excess.
VG_INLINE void store_rgb(u8 *out, Register pixels) {
#if VG_SSSE3  // pshufb, vpermd
  const Register rgb = move_bytes(pixels, _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
#if VG_REGISTER_BITS == 512
  const __m512i words = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
  store(out, _mm512_permutexvar_epi32(words, rgb));
#elif VG_REGISTER_BITS == 256
  store(out, _mm256_permutevar8x32_epi32(rgb, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7)));
#else
  store(out, rgb);
#endif
#else
  u32 words[REGISTER / 4];
  store(words, pixels);
  for (i64 i = 0; i < REGISTER / 4; i++) store(out + 3 * i, words[i]);
#endif
}

// Inlined for each constant number of pairs, so that compilers unroll the loop over them.
VG_INLINE i64 resize_unrolled(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, i64 pairs, u8 *out) {
  source -= 3 * shift;
  i64 output = 0;
  for (; output < r.x.size; output += BLOCK_OUTPUTS) {
    const u8 *at[BLOCK_OUTPUTS];
    for (i64 i = 0; i < BLOCK_OUTPUTS; i++) at[i] = source + r.offsets[output + i];
    // Offsets never decrease.
    if (at[BLOCK_OUTPUTS - 1] + 6 * (pairs - 1) + PAIR_READ > end) break;
    const u8 *weights = r.packed.at + output / BLOCK_OUTPUTS * pairs * PAIR_WEIGHTS;
    Sums sums[4];
    for (i64 pair = 0; pair < pairs; pair++, weights += PAIR_WEIGHTS)
      VG_EACH_SUM(i) sums[i].add(load_pairs(at + i, 6 * pair), load_weights(weights + 2 * i * REGISTER));
    store_rgb(out + 3 * output, bytes_of(sums));
  }
  return output;
}

i64 resize_by_pairs(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, u8 *out) {
  const i64 pairs = (r.x.most + 1) / 2;
  switch (pairs) {
    case 1: return resize_unrolled(r, source, end, shift, 1, out);
    case 2: return resize_unrolled(r, source, end, shift, 2, out);
    default: return resize_unrolled(r, source, end, shift, pairs, out);
  }
}

// ---- The horizontal pass for three channels, if each 16 outputs read at most 128 bytes of the source. vpermi2b picks
// four pixels per output, and vpdpbusd adds the products of four bytes: a weight is split into three signed bytes.

#if VG_VNNI

constexpr i64 WINDOW = 128, WINDOW_OUTPUTS = 16, WINDOW_WEIGHTS = 192;
// Shuffle of four groups of 4 red, 4 green, 4 blue and 4 unused bytes to RGB.
constexpr ByteTable BY_PIXEL = byte_table([](int i) { return 16 * (i / 12) + 4 * (i % 3) + i % 12 / 3; });

struct DigitSums {
  Register digit[3] = {all32(HALF), all32(0), all32(0)};

  VG_MEMBER void add(Register pixels, const Register *weights) {
    for (int i = 0; i < 3; i++) digit[i] = _mm512_dpbusd_epi32(digit[i], pixels, weights[i]);
  }
  VG_MEMBER Register total() const {
    const Register high = add32(left32<8>(digit[1]), left32<16>(digit[2]));
    return right32<RESIZE_BITS>(add32(digit[0], high));
  }
};

bool fits_windows(const ResizeAxis &x) {
  for (i64 output = 0; output < x.size; output++)
    if (3 * (x.end_of(output) - x.first[output / WINDOW_OUTPUTS * WINDOW_OUTPUTS]) > WINDOW) return false;
  return true;
}

bool pack_windows(ResizeScratch &r) {
  const ResizeAxis &x = r.x;
  const i64 outputs = round_up(x.size, WINDOW_OUTPUTS), groups = (x.most + 3) / 4;
  if (!r.packed.reserve(outputs / WINDOW_OUTPUTS * groups * WINDOW_WEIGHTS)) return false;
  if (!r.offsets.reserve(outputs)) return false;
  for (i64 output = 0; output < outputs; output++) {
    const i64 block = output / WINDOW_OUTPUTS, lane = output % WINDOW_OUTPUTS;
    const u32 offset = (u32)(3 * (x.first[output] - x.first[WINDOW_OUTPUTS * block]));
    // Reds of four adjacent pixels: bytes 0, 3, 6 and 9.
    r.offsets[output] = (i32)(offset * 0x01010101u + 0x09060300u);
    for (i64 tap = 0; tap < 4 * groups; tap++) {
      const u32 digits = ((u32)x.weights_of(output)[tap] + 0x8080u) ^ 0x8080u;
      u8 *to = r.packed.at + (block * groups + tap / 4) * WINDOW_WEIGHTS + 4 * lane + tap % 4;
      for (int i = 0; i < 3; i++) to[64 * i] = (u8)(digits >> 8 * i);
    }
  }
  return true;
}

i64 resize_by_windows(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, u8 *out) {
  const i64 groups = (r.x.most + 3) / 4;
  i64 output = 0;
  for (; output < r.x.size; output += WINDOW_OUTPUTS) {
    const u8 *window = source + 3 * (r.x.first[output] - shift);
    if (window + WINDOW > end) break;
    const Register first = load_register(window), second = load_register(window + 64);
    const u8 *packed = r.packed.at + output / WINDOW_OUTPUTS * groups * WINDOW_WEIGHTS;
    Register reds = load_register(r.offsets.at + output);
    DigitSums sums[3];
    for (i64 group = 0; group < groups; group++, packed += WINDOW_WEIGHTS) {
      const Register weights[3] = {load_register(packed), load_register(packed + 64), load_register(packed + 128)};
      for (int c = 0; c < 3; c++) {
        const Register positions = _mm512_add_epi8(reds, all8(c));
        sums[c].add(_mm512_permutex2var_epi8(first, positions, second), weights);
      }
      reds = _mm512_add_epi8(reds, all8(12));
    }
    const Register red_green = _mm512_packus_epi32(sums[0].total(), sums[1].total());
    const Register bytes = pack16(red_green, _mm512_packus_epi32(sums[2].total(), all32(0)));
    store(out + 3 * output, _mm512_permutexvar_epi8(load_register(BY_PIXEL.at), bytes));
  }
  return output;
}

#else

bool fits_windows(const ResizeAxis &) { return false; }
bool pack_windows(ResizeScratch &r) { return pack_pairs(r); }
i64 resize_by_windows(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, u8 *out) {
  return resize_by_pairs(r, source, end, shift, out);
}

#endif

// ---- The horizontal pass for one channel: REGISTER outputs, by four taps. Register k of the sums has four outputs in
// each 16 bytes. Packing then gives bytes in order.

constexpr i64 GRAY_WEIGHTS = 16 * REGISTER;  // bytes of REGISTER outputs' weights of four taps

bool pack_gray(ResizeScratch &r) {
  const i64 outputs = round_up(r.x.size, REGISTER), groups = ceil_div(r.x.most, 4);
  if (!r.packed.reserve(outputs / REGISTER * groups * GRAY_WEIGHTS)) return false;
  for (i64 output = 0; output < outputs; output++) {
    const i32 *weights = r.x.weights_of(output);
    const i64 block = output / REGISTER, lane = output % REGISTER;
    u8 *to = r.packed.at + block * groups * GRAY_WEIGHTS + lane % 16 / 4 * 4 * REGISTER + lane / 16 * 16 + lane % 4 * 4;
    for (i64 group = 0; group < groups; group++, weights += 4, to += GRAY_WEIGHTS) {
      for (i64 odd = 0; odd < 2; odd++) {
        const i32 pair[2] = {weights[odd], weights[odd + 2]};
        store(to + 2 * odd * REGISTER, low_parts(pair));
        store(to + (2 * odd + 1) * REGISTER, high_parts(pair));
      }
    }
  }
  return true;
}

// Loads four bytes at each of four addresses.
VG_INLINE Part load_fours(const u8 *source, const i32 *offset) {
  typedef i32 Numbers4 __attribute__((vector_size(16)));
  auto four = [=](i64 i) { return load<i32>(source + offset[i]); };
  return (Part)Numbers4{four(0), four(1), four(2), four(3)};
}

i64 resize_gray(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, u8 *out) {
  const i64 groups = ceil_div(r.x.most, 4);
  const u8 *weights = r.packed.at;
  source -= shift;
  i64 output = 0;
  for (; output < r.x.size; output += REGISTER) {
    const i32 *first = r.x.first.at + output;
    // Offsets never decrease.
    if (source + first[REGISTER - 1] + 4 * groups > end) break;
    Sums sums[4];
    for (i64 group = 0; group < groups; group++, weights += GRAY_WEIGHTS) {
      VG_EACH_SUM(k) {
        const i32 *offset = first + 4 * k;
        const Register taps = join_16([=](i64 i) { return load_fours(source + 4 * group, offset + 4 * i); });
        const u8 *at = weights + 4 * k * REGISTER;
        sums[k].add(even_bytes(taps), load_weights(at));
        sums[k].add(odd_bytes(taps), load_weights(at + 2 * REGISTER));
      }
    }
    store(out + output, bytes_of(sums));
  }
  return output;
}

bool pack_weights(ResizeScratch &r, i64 channels) {
  if (channels == 1) return pack_gray(r);
  r.has_windows = fits_windows(r.x);
  return r.has_windows ? pack_windows(r) : pack_pairs(r);
}

// Resizes the first outputs of a row along x by vectors; returns their number.
i64 resize_vectors(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, i64 channels, u8 *out) {
  if (channels == 1) return resize_gray(r, source, end, shift, out);
  return r.has_windows ? resize_by_windows(r, source, end, shift, out) : resize_by_pairs(r, source, end, shift, out);
}

// Resizes a row along x. `source`: its pixels from column `shift` on; `end`: end of readable memory. Writes up to a
// block of bytes beyond the row.
void resize_row(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, i64 channels, u8 *out) {
  const ResizeAxis &x = r.x;
  for (i64 output = resize_vectors(r, source, end, shift, channels, out); output < x.size; output++) {
    const u8 *at = source + channels * (x.first[output] - shift);
    for (i64 c = 0; c < channels; c++)
      out[channels * output + c] = weigh(at + c, channels, x.weights_of(output), x.count[output]);
  }
}

// ---- The vertical pass, the same for any number of channels.

// Computes REGISTER bytes of a line. Inlined for each constant number of pairs.
VG_INLINE void mix_block(const u8 *source, i64 stride, i64 count, i64 pairs, const u8 *weights, u8 *out) {
  Sums sums[4];
  for (i64 pair = 0; pair < pairs; pair++, weights += 2 * REGISTER) {
    const u8 *line = source + 2 * pair * stride;
    // An odd number of lines ends with a weight of 0.
    const u8 *next_line = 2 * pair + 1 < count ? line + stride : line;
    const Register first = load_register(line), second = load_register(next_line);
    const Register low = low8(first, second), high = high8(first, second), zero = all8(0);
    const Register quarters[4] = {low8(low, zero), high8(low, zero), low8(high, zero), high8(high, zero)};
    VG_EACH_SUM(i) sums[i].add(quarters[i], load_weights(weights));
  }
  store(out, bytes_of(sums));
}

VG_INLINE void mix_blocks(const u8 *source, i64 stride, i64 bytes, i64 count, i64 pairs, const u8 *weights, u8 *out) {
  for (i64 at = 0; at < bytes; at += REGISTER) {
    // The last block overlaps the one before it, so that no read leaves the line.
    const i64 block = min_of(at, bytes - REGISTER);
    mix_block(source + block, stride, count, pairs, weights, out + block);
  }
}

// Computes output line `y` from source lines that are `stride` bytes apart. `source`: the first line with a weight.
void mix_lines(ResizeScratch &r, const u8 *source, i64 stride, i64 bytes, i64 y, u8 *out) {
  const i64 count = r.y.count[y], pairs = (count + 1) / 2;
  const i32 *weights = r.y.weights_of(y);
  if (bytes < REGISTER || count == 0) {
    for (i64 i = 0; i < bytes; i++) out[i] = weigh(source + i, stride, weights, count);
    return;
  }
  u8 *packed = r.line_weights.at;
  for (i64 pair = 0; pair < pairs; pair++) {
    store(packed + 2 * pair * REGISTER, all32(low_parts(weights + 2 * pair)));
    store(packed + (2 * pair + 1) * REGISTER, all32(high_parts(weights + 2 * pair)));
  }
  switch (pairs) {
    case 1: return mix_blocks(source, stride, bytes, count, 1, packed, out);
    case 2: return mix_blocks(source, stride, bytes, count, 2, packed, out);
    default: return mix_blocks(source, stride, bytes, count, pairs, packed, out);
  }
}

// True if the vertical pass comes first because that is less work, as lowering decided.
bool is_vertical_first(const f64 *args) { return args[7] != 0; }

}  // namespace

bool prepare_resize(const Row &row, i64 slot, const Image &image, i64 height, i64 width, Range y, Scratch &s) {
  const f64 *args = row.args[slot];
  const int filter = row.flags[slot];
  ResizeScratch &r = s.resize;
  const i64 channels = image.channels, source_bytes = channels * image.width, out_bytes = channels * width;
  if (!r.x.fill<i32>(image.width, args[1], args[3], width, filter)) return false;
  if (!r.y.fill<i32>(image.height, args[0], args[2], height, filter)) return false;
  if (!r.mixed.reserve(source_bytes + 2 * BLOCK) || !r.row.reserve(out_bytes + BLOCK)) return false;
  if (!r.line_weights.reserve(r.y.taps * REGISTER)) return false;
  if (!pack_weights(r, channels)) return false;
  if (is_vertical_first(args) || y.is_empty()) return true;
  r.first_line = r.y.first[y.first];
  const i64 lines = r.y.end_of(y.end - 1) - r.first_line;
  if (!r.band.reserve(lines * out_bytes + BLOCK)) return false;
  const u8 *end = image.pixels + image.height * source_bytes;
  for (i64 line = 0; line < lines; line++) {
    const u8 *source = image.pixels + (r.first_line + line) * source_bytes;
    resize_row(r, source, end, 0, channels, r.band.at + line * out_bytes);
  }
  return true;
}

void read_resized_row(const Row &row, i64 slot, const Image &image, i64 y, i64 width, Scratch &s) {
  const f64 *args = row.args[slot];
  ResizeScratch &r = s.resize;
  const i64 channels = image.channels;
  u8 *mixed = r.mixed.at, *out = r.row.at;
  if (is_vertical_first(args)) {
    const i64 stride = channels * image.width, left = r.x.first[0];
    const i64 bytes = channels * (r.x.end_of(width - 1) - left);
    mix_lines(r, image.pixels + r.y.first[y] * stride + channels * left, stride, bytes, y, mixed);
    resize_row(r, mixed, mixed + stride + 2 * BLOCK, left, channels, out);
  } else {
    const i64 bytes = channels * width;
    mix_lines(r, r.band.at + (r.y.first[y] - r.first_line) * bytes, bytes, bytes, y, out);
  }
  copy_pixels<u8>({out, 1, width, channels}, 0, width, is_mirrored(args), s.row.planes(), 0);
}

}  // namespace vg::VG_LEVEL
