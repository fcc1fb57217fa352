#include "resize.h"

#include "interleave.h"
#include "nearest.h"
#include "scratch.h"
#include "taps.h"

namespace vg::VG_LEVEL {
namespace {

constexpr i32 HALF = 1 << (RESIZE_BITS - 1);

// The sum of elements, `step` apart, times weights.
template <class Element>
VG_INLINE Element weigh(const Element *at, i64 step, const SumOf<Element> *weights, i64 count) {
  using Sum = SumOf<Element>;
  Sum total = HALF_UNIT<Sum, RESIZE_BITS>;
  for (i64 tap = 0; tap < count; tap++) total += (Sum)at[tap * step] * weights[tap];
  if constexpr (HAS_LEVELS<Element>) total = drop_bits<RESIZE_BITS>(total);
  return to_element<Element>(total);
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

// Unrolls a loop over four sums early, so that GCC keeps them in registers.
#define VG_EACH_SUM(i) _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)

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

// ---- The horizontal pass for three channels of uint16 and float32: LANES / 4 outputs at a time.

constexpr i64 OUTPUTS = LANES / 4;

bool pack_floats(ResizeScratch &r) {
  const i64 outputs = round_up(r.x.size, OUTPUTS), taps = r.x.most;
  if (!r.packed.reserve(16 * outputs * taps) || !r.offsets.reserve(outputs)) return false;
  for (i64 output = 0; output < outputs; output++) {
    r.offsets[output] = 3 * r.x.first[output];
    f32 *to = (f32 *)r.packed.at + 4 * (output / OUTPUTS * taps * OUTPUTS + output % OUTPUTS);
    for (i64 tap = 0; tap < taps; tap++, to += LANES)
      for (int c = 0; c < 4; c++) to[c] = r.x.weights_of<f32>(output)[tap];
  }
  return true;
}

// Inlined for each constant number of taps.
template <class Element>
VG_INLINE i64 resize_pixels(const ResizeScratch &r, const Element *source, const Element *end, i64 taps, Element *out) {
  const f32 *weights = (const f32 *)r.packed.at;
  i64 output = 0;
  for (; output < r.x.size; output += OUTPUTS, weights += taps * LANES) {
    const i32 *offset = r.offsets.at + output;
    // Offsets never decrease.
    if (source + offset[OUTPUTS - 1] + 3 * taps + 1 > end) break;
    Floats sum = {};
    for (i64 tap = 0; tap < taps; tap++) {
      const Element *at = source + 3 * tap;
      const Register pixels = join_16([=](int i) { return load_four(at + offset[i / 4]); });
      sum += to_values<Element>(pixels) * load<Floats>(weights + tap * LANES);
    }
    // Writes one value beyond each pixel: the next pixel overwrites it.
    Element pixels[LANES];
    store_values(pixels, sum + HALF_UP<Element>);
    for (i64 i = 0; i < OUTPUTS; i++) memcpy(out + 3 * (output + i), pixels + 4 * i, 4 * sizeof(Element));
  }
  return output;
}

// The same for one channel: four taps of LANES outputs at a time.
template <class Element>
i64 resize_gray(const ResizeScratch &r, const Element *source, const Element *end, Element *out) {
  const i64 taps = round_up(r.x.most, 4);
  const i32 *first = r.x.first.at;
  i64 output = 0;
  for (; output + LANES <= r.x.size; output += LANES) {
    if (source + first[output + LANES - 1] + taps > end) break;
    Register sums[4], split[4];
    for (i64 k = 0; k < 4; k++) {
      Floats sum = {};
      for (i64 tap = 0; tap < taps; tap += 4) {
        const Register values = join_16([=](i64 i) { return load_four(source + first[output + k + i] + tap); });
        const Register weights = join_16([=, &r](i64 i) { return load<Part>(r.x.weights_of(output + k + i) + tap); });
        sum += to_values<Element>(values) * (Floats)weights;
      }
      sums[k] = (Register)sum;
    }
    split_pixels(sums, split);
    const Floats total = (Floats)split[0] + (Floats)split[1] + (Floats)split[2] + (Floats)split[3];
    store_values(out + output, total + HALF_UP<Element>);
  }
  return output;
}

// One output of `resize_gray`, summed in the same order.
template <class Element> VG_INLINE Element weigh_by_fours(const Element *at, const f32 *weights, i64 count) {
  f32 sums[4] = {};
  for (i64 tap = 0; tap < count; tap++) sums[tap % 4] += (f32)at[tap] * weights[tap];
  return to_element<Element>(sums[0] + sums[1] + sums[2] + sums[3]);
}

template <class Element> bool pack_weights(ResizeScratch &r) {
  if constexpr (!HAS_LEVELS<Element>) return pack_floats(r);
  r.has_windows = fits_windows(r.x);
  return r.has_windows ? pack_windows(r) : pack_pairs(r);
}

// Resizes the first outputs of a row along x by vectors; returns their number. `resize_row` computes the others.
template <class Element> i64 resize_vectors(const ResizeScratch &r, const Element *source, const Element *end,
                                            i64 shift, i64 channels, Element *out) {
  source -= channels * shift;
  if (channels == 1) return resize_gray(r, source, end, out);
  switch (r.x.most) {
    case 2: return resize_pixels(r, source, end, 2, out);
    case 3: return resize_pixels(r, source, end, 3, out);
    default: return resize_pixels(r, source, end, r.x.most, out);
  }
}
i64 resize_vectors(const ResizeScratch &r, const u8 *source, const u8 *end, i64 shift, i64 channels, u8 *out) {
  if (channels != 3) return 0;
  return r.has_windows ? resize_by_windows(r, source, end, shift, out) : resize_by_pairs(r, source, end, shift, out);
}

// Resizes a row along x. `source`: its pixels from column `shift` on; `end`: end of readable memory. Writes up to a
// block of bytes beyond the row.
template <class Element> void resize_row(const ResizeScratch &r, const Element *source, const Element *end, i64 shift,
                                         i64 channels, Element *out) {
  const ResizeAxis &x = r.x;
  for (i64 output = resize_vectors(r, source, end, shift, channels, out); output < x.size; output++) {
    const Element *at = source + channels * (x.first[output] - shift);
    if constexpr (!HAS_LEVELS<Element>)
      if (channels == 1) {
        out[output] = weigh_by_fours(at, x.weights_of<f32>(output), x.count[output]);
        continue;
      }
    for (i64 c = 0; c < channels; c++)
      out[channels * output + c] = weigh(at + c, channels, x.weights_of<SumOf<Element>>(output), x.count[output]);
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

// Computes output line `y`, of `count` values, from source lines that are `stride` values apart. `source`: the first
// line with a weight.
template <class Element>
void mix_lines(ResizeScratch &r, const Element *source, i64 stride, i64 count, i64 y, Element *out) {
  i64 i = 0;
  if constexpr (!HAS_LEVELS<Element>) {
    constexpr int VECTORS = 4;
    for (; i + VECTORS * LANES <= count; i += VECTORS * LANES) {
      Floats sums[VECTORS] = {};
      for (i64 tap = 0; tap < r.y.count[y]; tap++) {
        const Floats weight = all_floats(r.y.weights_of<f32>(y)[tap]);
        for (int k = 0; k < VECTORS; k++) sums[k] += load_floats(source + tap * stride + i + k * LANES) * weight;
      }
      for (int k = 0; k < VECTORS; k++) store_values(out + i + k * LANES, sums[k] + HALF_UP<Element>);
    }
  }
  for (; i < count; i++) out[i] = weigh(source + i, stride, r.y.weights_of<SumOf<Element>>(y), r.y.count[y]);
}
void mix_lines(ResizeScratch &r, const u8 *source, i64 stride, i64 bytes, i64 y, u8 *out) {
  const i64 count = r.y.count[y], pairs = (count + 1) / 2;
  if (bytes < REGISTER || count == 0) return mix_lines<u8>(r, source, stride, bytes, y, out);
  const i32 *weights = r.y.weights_of(y);
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

bool is_mirrored(const f64 *args) { return args[6] != 0; }
// True if the vertical pass comes first because that is less work, as lowering decided.
bool is_vertical_first(const f64 *args) { return args[7] != 0; }

}  // namespace

template <class Element> bool prepare_resize(const Row &row, i64 slot, const ImageOf<Element> &image, i64 height,
                                             i64 width, Range y, Scratch &s) {
  constexpr i64 SIZE = sizeof(Element);
  const f64 *args = row.args[slot];
  const int filter = row.flags[slot];
  ResizeScratch &r = s.resize;
  const i64 channels = image.channels, source_values = channels * image.width, out_values = channels * width;
  if (!r.x.fill<SumOf<Element>>(image.width, args[1], args[3], width, filter)) return false;
  if (!r.y.fill<SumOf<Element>>(image.height, args[0], args[2], height, filter)) return false;
  if (!r.mixed.reserve(SIZE * source_values + 2 * BLOCK) || !r.row.reserve(SIZE * out_values + BLOCK)) return false;
  if (!r.line_weights.reserve(r.y.taps * REGISTER)) return false;
  if (channels == 3 && !pack_weights<Element>(r)) return false;
  if (is_vertical_first(args) || y.is_empty()) return true;
  r.first_line = r.y.first[y.first];
  const i64 lines = r.y.end_of(y.end - 1) - r.first_line;
  if (!r.band.reserve(SIZE * lines * out_values + BLOCK)) return false;
  const Element *end = image.pixels + image.height * source_values;
  for (i64 line = 0; line < lines; line++) {
    const Element *source = image.pixels + (r.first_line + line) * source_values;
    // Floats may be NaN, also times a weight of 0: vectors read nothing after the row.
    resize_row(r, source, HAS_LEVELS<Element> ? end : source + source_values, 0, channels,
               (Element *)r.band.at + line * out_values);
  }
  return true;
}

template <class Element>
void read_resized_row(const Row &row, i64 slot, const ImageOf<Element> &image, i64 y, i64 width, Scratch &s) {
  const f64 *args = row.args[slot];
  ResizeScratch &r = s.resize;
  const i64 channels = image.channels;
  const Element *band = (const Element *)r.band.at;
  Element *mixed = (Element *)r.mixed.at, *out = (Element *)r.row.at;
  if (is_vertical_first(args)) {
    const i64 stride = channels * image.width, left = r.x.first[0];
    const i64 count = channels * (r.x.end_of(width - 1) - left);
    mix_lines(r, image.pixels + r.y.first[y] * stride + channels * left, stride, count, y, mixed);
    const Element *end = mixed + (HAS_LEVELS<Element> ? stride + 2 * BLOCK : count);
    resize_row(r, (const Element *)mixed, end, left, channels, out);
  } else {
    const i64 count = channels * width;
    mix_lines(r, band + (r.y.first[y] - r.first_line) * count, count, count, y, out);
  }
  copy_pixels<Element>({out, 1, width, channels}, 0, width, is_mirrored(args), s.row.planes<Element>(), 0);
}

#define VG_COMPILE_ALL(Element)       \
  VG_COMPILE(prepare_resize, Element) \
  VG_COMPILE(read_resized_row, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
