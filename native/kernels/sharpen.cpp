// SHARPNESS of uint8 images: Pillow's blend with its SMOOTH filter in float32, computed in integers if the results are
// equal. Others: deep_filters.cpp. GPU counterpart: `_sharpen` in executors/cuda/kernels/neighborhood.py; definition: `sharpness` in
// tests/oracle/neighborhood.py.
#include "filter_rows.h"
#include "registers.h"

namespace vg::VG_LEVEL {
namespace {

// Converts 32-bit lanes to float32, and back by truncation; numbers must fit into 32 bits.
typedef f32 FloatLanes __attribute__((vector_size(REGISTER)));
VG_INLINE FloatLanes to_floats(Register a) { return __builtin_convertvector((IntLanes)a, FloatLanes); }
VG_INLINE Register truncate(FloatLanes a) { return (Register) __builtin_convertvector(a, IntLanes); }
VG_INLINE FloatLanes all_floats(f32 value) { return FloatLanes{} + value; }

// Fraction bits of a factor in fixed point, and the number of its low bits, which are multiplied separately.
constexpr int FACTOR_BITS = 22, LOW_BITS = 7;
// Products of a factor and the difference of two values fit into 32 bits up to this factor.
constexpr f32 LARGEST_FACTOR = 1 << 22;
constexpr int MOST_SHIFT = 21, LEAST_SHIFT = 8;

// Pillow's float32 arithmetic rounds a sum with weights 1 and 5 to floor((2 total + 13) / 26). The product is exact for
// every total up to 13 * 255.
constexpr u32 RECIPROCAL = 20165;
constexpr int RECIPROCAL_SHIFT = 19;

// Computes columns 1..width - 2 by the definition: smooth + factor * (value - smooth), truncated and clipped.
void sharpen_by_values(const u8 *above, const u8 *row, const u8 *below, i64 width, f32 factor, u8 *__restrict out) {
  for (i64 x = 1; x < width - 1; x++) {
    auto three = [x](const u8 *line) { return line[x - 1] + line[x] + line[x + 1]; };
    const i32 total = three(above) + three(row) + 4 * row[x] + three(below);
    const f32 smooth = (f32)((2 * total + 13) / 26);
    out[x] = truncate_value<u8>(smooth + factor * ((f32)row[x] - smooth));
  }
}

// The blend by the definition, for i16.
struct FloatBlend {
  FloatLanes factor;

  Register operator()(Register smooth, Register level) const {
    const Register gap = sub16(level, smooth), zero = all16(0);
    const FloatLanes first = to_floats(low16(smooth, zero)) + factor * to_floats(right32<16>(low16(gap, gap)));
    const FloatLanes second = to_floats(high16(smooth, zero)) + factor * to_floats(right32<16>(high16(gap, gap)));
    return pack32(truncate(first), truncate(second));
  }
};

// The same in fixed point.
struct IntegerBlend {
  Register weights, rounding;
  int shift;

  Register operator()(Register smooth, Register level) const {
    const Register gap = sub16(level, smooth), high = left16<LOW_BITS>(gap);
    const Register first = right32(add_dot16(rounding, low16(gap, high), weights), shift);
    const Register second = right32(add_dot16(rounding, high16(gap, high), weights), shift);
    return add_saturated16(smooth, pack32(first, second));
  }
};

// Computes columns from 1 to beyond the last. Even and odd columns are separate, because products of bytes are summed
// in adjacent pairs.
template <class Blend>
void sharpen_vectors(const u8 *above, const u8 *row, const u8 *below, i64 width, const Blend blend, u8 *out) {
  // All weights are doubled, see RECIPROCAL.
  const Register both = all16(0x0202), one = all16(0x0002), center = all16(0x0a02);
  const Register thirteen = all16(13), reciprocal = all16(2 * RECIPROCAL);
  auto smooth_of = [&](i64 x) {
    const Register outer = add16(dot8(load_register(above + x - 1), both), dot8(load_register(below + x - 1), both));
    const Register last = add16(dot8(load_register(above + x + 1), one), dot8(load_register(below + x + 1), one));
    const Register middle = add16(dot8(load_register(row + x - 1), center), dot8(load_register(row + x + 1), one));
    const Register total = add16(add16(outer, last), add16(middle, thirteen));
    return right_u16<RECIPROCAL_SHIFT + 1 - 16>(multiply_high_u16(total, reciprocal));
  };
  for (i64 x = 1; x < width - 1; x += REGISTER) {
    const Register levels = load_register(row + x);
    const Register even = blend(smooth_of(x), even_bytes(levels));
    const Register odd = blend(smooth_of(x + 1), odd_bytes(levels));
    store(out + x, interleaved8(even, odd));
  }
}

void sharpen_columns(const u8 *above, const u8 *row, const u8 *below, i64 width, const SharpenScratch &sharpen,
                     u8 *out) {
  const f32 factor = sharpen.factor;
  if (sharpen.is_exact)
    sharpen_vectors(above, row, below, width,
                    IntegerBlend{all32(sharpen.weights), all32(sharpen.rounding), sharpen.shift}, out);
  else if (fabsf(factor) <= LARGEST_FACTOR)
    sharpen_vectors(above, row, below, width, FloatBlend{all_floats(factor)}, out);
  else sharpen_by_values(above, row, below, width, factor, out);
}

// True if products in float32 and in fixed point round down to equal integers for all differences of two values.
bool rounds_equally(f32 factor, i32 fixed, i32 rounding, int shift) {
  i32 misses = 0;
  for (i32 gap = -255; gap <= 255; gap++) {
    const f32 product = factor * (f32)gap;
    const f32 rest = product - (f32)((fixed * gap + rounding) >> shift);
    // Sums outside 0..255 are clipped. Half a unit in the last place of sums up to 511 is 2**-16.
    misses |= (fabsf(product) < 256.0f) & !((rest >= 0.0f) & (rest < 1.0f - 0x1p-16f));
  }
  return misses == 0;
}

}  // namespace

// In float32, floor(value + product) is value + floor(product), except for products so close below an integer that the
// sum rounds up to it. So a factor in fixed point is equivalent if all its products round down to the same integers.
// Products that float32 rounds up to an integer, as happens with decimal fractions, need slightly more than the nearest
// fixed-point factor. Few factors fail.
void prepare_sharpen(f32 factor, SharpenScratch &sharpen) {
  sharpen.factor = factor;
  sharpen.is_exact = false;
  constexpr f32 LIMIT = (1 << FACTOR_BITS) - (1 << LOW_BITS);
  int shift = MOST_SHIFT;
  while (shift > LEAST_SHIFT && fabsf(factor) * (f32)(1 << shift) >= LIMIT) shift--;
  if (!(fabsf(factor) * (f32)(1 << shift) < LIMIT)) return;
  const i32 fixed = (i32)floor((f64)factor * (1 << shift) + 0.5);
  const i32 high = (fixed + (1 << (LOW_BITS - 1))) >> LOW_BITS, low = fixed - high * (1 << LOW_BITS);
  sharpen.weights = (i32)(((u32)low & 0xffff) | (u32)high << 16);
  sharpen.shift = shift;
  for (int bits = 14; bits <= 20 && !sharpen.is_exact; bits += 3) {
    sharpen.rounding = 1 << shift >> bits;
    sharpen.is_exact = rounds_equally(factor, fixed, sharpen.rounding, shift);
  }
}

void sharpen_row(const FilterImage &image, i64 y, const SharpenScratch &sharpen, Planes out) {
  const i64 width = image.width, height = image.height;
  const bool is_border = y == 0 || y == height - 1 || height < 3 || width < 3;
  for (i64 c = 0; c < image.channels; c++) {
    const u8 *row = image.line(y, c);
    u8 *to = out[c];
    if (is_border) {
      memcpy(to, row, (size_t)width);
      continue;
    }
    sharpen_columns(row - image.step(), row, row + image.step(), width, sharpen, to);
    to[0] = row[0];
    to[width - 1] = row[width - 1];
  }
}

}  // namespace vg::VG_LEVEL
