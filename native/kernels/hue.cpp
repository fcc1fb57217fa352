// HUE. Pillow computes in float and double. The fewer roundings here give the same bytes for all colors and all HSV
// triples, as `test_every_hue` in tests/executors/test_contract.py checks. GPU counterpart: `_turn_hue` in
// executors/cuda/kernels/values.py; definition: `hue` in tests/oracle/values.py.
#include "lanes.h"
#include "values.h"

namespace vg::VG_LEVEL {
namespace {

// A channel is v * (FADES - s * weight) / FADES, weight 0 to SIXTH: exact in float32 before the division.
constexpr i32 SIXTH = 85, FADES = 255 * SIXTH;
// Adding it rounds a value to an integer in the lower bits of the float32.
constexpr f32 ROUNDING = 1 << 23;

// Steps whose numbers fit into bytes process this many pixels, a register of bytes.
constexpr i64 SIZE = 4 * LANES;
typedef u8 Block __attribute__((vector_size(SIZE)));
typedef i8 SignedBlock __attribute__((vector_size(SIZE)));

VG_INLINE Block all_bytes(u8 value) { return Block{} + value; }
VG_INLINE Block subtract_to_zero(Block a, Block b) { return max_of(a, b) - b; }

// Number of pixels per stage of three: within a stage, no vector depends on another.
constexpr i64 MANY = 256;

struct Pixels {
  u8 span[MANY];  // greatest minus least channel; 1 if they are equal
  u8 saturated[MANY];  // the same, 0 if they are equal
  u8 value[MANY];  // the greatest
  u8 divisor[MANY];  // the same, 1 if it is 0
  u8 from_middle[MANY];  // the distance from the greatest channel to the middle one
  u8 sextant[MANY];  // the base of the hue plus 1, in bits 0 to 2; bit 7 is set if the hue falls from it
  u8 hue[MANY], saturation[MANY];
  u8 weights[3][MANY];  // of the channels, for a hue of full saturation, in 85ths
};

// Finds the hue's sextant of six: the hue is a base plus or minus from_middle / span.
VG_INLINE void find_sextants(Block r, Block g, Block b, Pixels &to, i64 x) {
  const Block both = max_of(r, g), less = min_of(r, g), high = max_of(both, b), low = min_of(less, b);
  const Block middle = max_of(min_of(both, b), less), span = high - low;
  const Block blue_is_low = (Block)(b == low), red_is_low = (Block)(r == low);
  const Block rises1 = all_bytes(2), falls1 = all_bytes(2 + 128), rises3 = all_bytes(4), falls3 = all_bytes(4 + 128);
  const Block of_red = blue_is_low != 0 ? falls1 : all_bytes(0);
  const Block of_green = blue_is_low != 0 ? rises1 : falls3;
  const Block of_blue = red_is_low != 0 ? rises3 : all_bytes(6 + 128);
  store(to.sextant + x, r == high ? of_red : g == high ? of_green : of_blue);
  store(to.from_middle + x, high - middle);
  store(to.saturated + x, span);
  store(to.span + x, max_of(span, all_bytes(1)));
  store(to.value + x, high);
  store(to.divisor + x, max_of(high, all_bytes(1)));
}

// v / 6, correctly rounded: the remainder of the first quotient corrects it (Markstein), without a division.
VG_INLINE Floats sixth(Floats v) {
#if defined(VG_WIDE) && defined(__FMA__)  // vfmadd
  const WideFloats part = (WideFloats)all_floats(1.0f / 6.0f), quotient = (WideFloats)((Floats)v * (Floats)part);
  const WideFloats rest = VG_WIDE(fnmadd_ps)(quotient, (WideFloats)all_floats(6), (WideFloats)v);
  return (Floats)VG_WIDE(fmadd_ps)(rest, part, quotient);
#else
  return v / 6.0f;
#endif
}

VG_INLINE Ints hues(const Pixels &p, i64 x) {
  const Ints sextant = load_bytes(p.sextant + x), sign = sextant << 24 & (i32)0x80000000;
  const Floats from_middle = (Floats)((Ints)to_floats(load_bytes(p.from_middle + x)) ^ sign);
  const Floats part = from_middle / to_floats(load_bytes(p.span + x));
  const Floats turn = sixth(to_floats((sextant & 7) - 1) + part);
  return truncate((turn < 0.0f ? turn + 1.0f : turn) * 255.0f);
}

VG_INLINE Ints saturations(const Pixels &p, i64 x) {
  return truncate(to_floats(load_bytes(p.saturated + x)) * 255.0f / to_floats(load_bytes(p.divisor + x)));
}

// Computes weights from the distance between twice the hue and each channel's primary hue.
VG_INLINE void find_weights(Block hue, Pixels &to, i64 x) {
  const Block twice = hue + hue, full = all_bytes(SIXTH);
  const auto is_late = (SignedBlock)hue < 0;  // 128 and more, where twice the hue leaves the byte
  const Block distance = is_late ? twice | 1 : ~twice;  // from 255
  store(to.weights[0] + x, min_of(subtract_to_zero(all_bytes(2 * SIXTH), distance), full));
  store(to.weights[1] + x, is_late ? min_of(twice | 1, full) : subtract_to_zero(full, twice));
  store(to.weights[2] + x, is_late ? subtract_to_zero(twice, all_bytes(169)) : min_of(~twice, full));
}

void shift_pixels(u8 *const (&planes)[3], i64 count, i32 shift) {
  Pixels p;
  for (i64 x = 0; x < count; x += SIZE)
    find_sextants(load<Block>(planes[0] + x), load<Block>(planes[1] + x), load<Block>(planes[2] + x), p, x);
  u8 *const hue_and_saturation[] = {p.hue, p.saturation};
  store_columns(hue_and_saturation, {0, count}, [&](i64 x, Halves *out) {
    out[0] = pack(hues(p, x), hues(p, x + LANES));
    out[1] = pack(saturations(p, x), saturations(p, x + LANES));
  });
  for (i64 x = 0; x < count; x += SIZE) find_weights(load<Block>(p.hue + x) + (u8)shift, p, x);
  store_columns(planes, {0, count}, [&](i64 x, Halves *out) {
    Ints faded[3][2];
    for (int half = 0; half < 2; half++) {
      const i64 from = x + half * LANES;
      const Floats value = to_floats(load_bytes(p.value + from)) * (f32)(1.0 / FADES);
      const Ints saturation = load_bytes(p.saturation + from);
      for (int c = 0; c < 3; c++) {
        const Floats fade = to_floats(FADES - multiply_pairs(saturation, load_bytes(p.weights[c] + from)));
        faded[c][half] = (Ints)(value * fade + ROUNDING) & 255;
      }
    }
    for (int c = 0; c < 3; c++) out[c] = pack(faded[c][0], faded[c][1]);
  });
}

}  // namespace

void shift_hue(Planes planes, Range columns, i32 shift) {
  for (i64 x = columns.first; x < columns.end; x += MANY) {
    u8 *const at[] = {planes[0] + x, planes[1] + x, planes[2] + x};
    shift_pixels(at, min_of(MANY, columns.end - x), shift);
  }
}

}  // namespace vg::VG_LEVEL
