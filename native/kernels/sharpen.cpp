// SHARPNESS: Pillow's blend with its SMOOTH filter, in float32, worked out in integers where they lead to the same.
#include "filter_rows.h"
#include "registers.h"

namespace vg {
namespace VG_LEVEL {
namespace {

constexpr int FACTOR_BITS = 22, LOW_BITS = 7;

// floor((2 total + 13) / 26) is what Pillow's float32 rounds a sum of weights 1 and 5 to. The product is exact for
// every total up to 13 * 255.
constexpr u32 RECIPROCAL = 20165;
constexpr int RECIPROCAL_SHIFT = 19;

// smooth + factor * (level - smooth) in float32, cut off, within 0..255.
VG_INLINE u8 blend_float(i32 smooth, i32 level, f32 factor) {
  const f32 base = (f32)smooth;
  const f32 value = base + factor * ((f32)level - base);
  return (u8)(i32)min_of(max_of(value, 0.0f), 255.0f);
}

// Columns 1..width - 2, by the definition.
void sharpen_by_floats(const u8 *__restrict above, const u8 *__restrict row, const u8 *__restrict below, i64 width,
                       f32 factor, u8 *__restrict out) {
  for (i64 x = 1; x < width - 1; x++) {
    const i32 total = above[x - 1] + above[x] + above[x + 1] + row[x - 1] + 5 * row[x] + row[x + 1] + below[x - 1] +
                      below[x] + below[x + 1];
    out[x] = blend_float((i32)((2 * (u32)total + 13) * RECIPROCAL >> RECIPROCAL_SHIFT), row[x], factor);
  }
}

// From column 1 on, and past the last one. Columns are taken in two halves, even and odd ones, as products of bytes add
// neighbors up.
void sharpen_by_integers(const u8 *above, const u8 *row, const u8 *below, i64 width, const SharpenScratch &sharpen,
                         u8 *out) {
  // All weights are doubled, see RECIPROCAL.
  const Register both = all16(0x0202), one = all16(0x0002), center = all16(0x0a02);
  const Register thirteen = all16(13), reciprocal = all16(2 * RECIPROCAL), weights = all32(sharpen.weights);
  auto smooth_of = [&](i64 x) {
    const Register outer = add16(dot8(load_register(above + x - 1), both), dot8(load_register(below + x - 1), both));
    const Register last = add16(dot8(load_register(above + x + 1), one), dot8(load_register(below + x + 1), one));
    const Register middle = add16(dot8(load_register(row + x - 1), center), dot8(load_register(row + x + 1), one));
    const Register total = add16(add16(outer, last), add16(middle, thirteen));
    return right_u16<RECIPROCAL_SHIFT + 1 - 16>(multiply_high_u16(total, reciprocal));
  };
  const int shift = sharpen.shift;
  auto blend = [&](Register smooth, Register level) {
    const Register gap = sub16(level, smooth), high = left16<LOW_BITS>(gap);
    const Register first = right32(dot16(low16(gap, high), weights), shift);
    const Register second = right32(dot16(high16(gap, high), weights), shift);
    return add_saturated16(smooth, pack32(first, second));
  };
  for (i64 x = 1; x < width - 1; x += REGISTER) {
    const Register levels = load_register(row + x);
    const Register even = blend(smooth_of(x), even_bytes(levels));
    const Register odd = blend(smooth_of(x + 1), odd_bytes(levels));
    store(out + x, interleaved8(even, odd));
  }
}

}  // namespace

// A product in float32, added to a level and rounded down, is that level and the product rounded down, but for products
// so close below an integer that the sum is rounded up to it. The factor in fixed point is as good as float32 if it
// rounds down to the same integers for all gaps between two levels: few factors fail.
void prepare_sharpen(f32 factor, SharpenScratch &sharpen) {
  sharpen.factor = factor;
  sharpen.is_exact = false;
  int shift = 21;
  while (shift > 8 && fabsf(factor) * (f32)(1 << shift) >= (f32)((1 << FACTOR_BITS) - 64)) shift--;
  if (!(fabsf(factor) * (f32)(1 << shift) < (f32)((1 << FACTOR_BITS) - 64))) return;
  const i32 fixed = (i32)floor((f64)factor * (1 << shift) + 0.5);
  i32 misses = 0;
  for (i32 gap = -255; gap <= 255; gap++) {
    const f32 product = factor * (f32)gap;
    const f32 rest = product - (f32)(fixed * gap >> shift);
    // Sums beyond 0 and 255 are cut off. Half a unit in the last place of those up to 511 is 2**-16.
    misses |= (fabsf(product) < 256.0f) & !((rest >= 0.0f) & (rest < 1.0f - 0x1p-16f));
  }
  sharpen.shift = shift;
  const i32 high = (fixed + (1 << (LOW_BITS - 1))) >> LOW_BITS, low = fixed - high * (1 << LOW_BITS);
  sharpen.weights = (i32)((u32)low & 0xffff) | (i32)((u32)high << 16);
  sharpen.is_exact = misses == 0;
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
    const u8 *above = row - image.step(), *below = row + image.step();
    if (sharpen.is_exact) sharpen_by_integers(above, row, below, width, sharpen, to);
    else sharpen_by_floats(above, row, below, width, sharpen.factor, to);
    to[0] = row[0];
    to[width - 1] = row[width - 1];
  }
}

}  // namespace VG_LEVEL
}  // namespace vg
