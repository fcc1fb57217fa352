// HUE. Pillow goes through float and double; that the few roundings here give the same bytes for all colors and all of
// HSV was checked one by one (tests/executors/test_hue.py).
#include "lanes.h"
#include "values.h"

namespace vg {
namespace VG_LEVEL {
namespace {

// Levels fade by v * (FADES - s * weight) / FADES, weight 0 to SIXTH: exact in float32 before the division.
constexpr i32 SIXTH = 85, FADES = 255 * SIXTH;
// Added to a value, it rounds it to an integer, in the lower bits of the float32.
constexpr f32 ROUNDING = 1 << 23;

struct Hsv {
  Ints hue, saturation, value;
};

VG_INLINE Ints least(Ints a, Ints b) { return a < b ? a : b; }
VG_INLINE Ints most(Ints a, Ints b) { return a > b ? a : b; }
VG_INLINE Ints magnitude(Ints v) { return most(v, -v); }

VG_INLINE Hsv to_hsv(Ints r, Ints g, Ints b) {
  const Ints high = most(most(r, g), b), low = least(least(r, g), b), one = all_ints(1), two = all_ints(2);
  const Ints is_red = r == high, is_green = g == high, red_is_low = r == low, blue_is_low = b == low;
  // Of six sextants, the hue is at `base` plus or minus the share that the middle value has of the span.
  Ints base = is_green ? (~blue_is_low & two) + 1 : (~red_is_low & two) + 3;
  base = is_red ? (blue_is_low & two) - 1 : base;
  const Ints falls = is_red ? blue_is_low : is_green ? ~blue_is_low : ~red_is_low;
  const Ints from_middle = high + high + low - r - g - b, span = high - low;
  const Floats part = to_floats((from_middle ^ falls) - falls) / to_floats(most(span, one));
  Floats turn = (to_floats(base) + part) / 6.0f;
  turn = turn < 0.0f ? turn + 1.0f : turn;
  const Floats saturation = to_floats(span) * 255.0f / to_floats(most(high, one));
  return {truncate(turn * 255.0f), truncate(saturation), high};
}

// `weight`: how far the hue is from the channel's own, in 85ths of a sextant; the channel is full from 85 on.
VG_INLINE void store_channel(u8 *at, Ints weight, Ints saturation, Floats value) {
  weight = most(least(weight, all_ints(SIXTH)), Ints{});
  const Floats fade = to_floats(FADES - multiply_pairs(saturation, weight));
  store_bytes(at, (Ints)(value * fade + ROUNDING) & 255);
}

}  // namespace

void turn_hue(Planes planes, Range columns, i32 shift) {
  u8 *red = planes[0], *green = planes[1], *blue = planes[2];
  for (i64 x = columns.first; x < columns.end; x += LANES) {
    const Hsv hsv = to_hsv(load_bytes(red + x), load_bytes(green + x), load_bytes(blue + x));
    const Ints place = ((hsv.hue + shift) & 255) * 2;
    const Floats value = to_floats(hsv.value) * (f32)(1.0 / FADES);
    store_channel(red + x, 170 - magnitude(place - 255), hsv.saturation, value);
    store_channel(green + x, magnitude(place - 2 * SIXTH) - SIXTH, hsv.saturation, value);
    store_channel(blue + x, magnitude(place - 4 * SIXTH) - SIXTH, hsv.saturation, value);
  }
}

}  // namespace VG_LEVEL
}  // namespace vg
