// Operations on uint16 and float32 values: per-channel operations, statistics and hue.
#include "deep.h"
#include "interleave.h"
#include "mathematics.h"
#include "scratch.h"
#include "statistics.h"
#include "values.h"

namespace vg::VG_LEVEL {
namespace {

// CONTRAST, AUTOCONTRAST and PERCENTILE_STRETCH of a channel: shift + scale * (value - center).
struct Line {
  f32 center, scale, shift;
};

// Stretches low..high to black..white; without change if they are equal.
template <class Element> Line stretch(Element low, Element high) {
  if (low < high) return {(f32)low, WHITE<Element> / ((f32)high - (f32)low), 0};
  return {0, 1, 0};
}

// The scale from 0..1. For integers it is almost white + 1, so that truncation maps values just below 1 to white.
template <class Element> constexpr f32 GREATEST = IS_FLOAT<Element> ? 1 : WHITE<Element> + 0.999f;

// Scales a threshold of 0..255. Callers scale pixels by x / 255 or by x * (1 / 255), which may differ in the last bit:
// the lesser of both, so that a pixel on the threshold is never below it.
template <class Element> VG_INLINE f32 threshold_of(f32 level) {
  return min_of(level * WHITE<Element> / 255, level * UNIT<Element>);
}

// Number of bins of EQUALIZE's histogram.
constexpr i64 BINS = 256;

// Converts to uint8 as torchvision does: integers by their highest bits.
VG_INLINE u8 bin_of(u16 value) { return (u8)(value >> 8); }
VG_INLINE u8 bin_of(f32 value) { return (u8)(i32)(truncate_value<f32>(value) * 255.999f); }

// Keeps the highest bits of a value, for POSTERIZE. Floats are rounded down to a multiple of 2**-bits.
template <class Element> VG_INLINE Element keep_bits(Element value, i64 bits) {
  if constexpr (IS_FLOAT<Element>) {
    const f32 levels = (f32)((i64)1 << bits), level = floor_of(value * levels);
    return min_of(level > 0 ? level : 0, levels - 1) / levels;
  } else {
    return (Element)(value & ~((1 << (8 * (i64)sizeof(Element) - bits)) - 1));
  }
}

// Interpolates linearly between a curve's 256 values of 0..255. In float64, because a curve may be steep.
template <class Element> void apply_curve(const f64 *curve, i64 count, Element *values) {
  constexpr f64 white = WHITE<Element>;
  for (i64 x = 0; x < count; x++) {
    const f64 value = values[x], position = min_of(255.0, value > 0 ? value * (255 / white) : 0);
    const i32 level = min_of((i32)position, 254);
    const f64 low = curve[level], high = curve[level + 1];
    values[x] = round_value<Element>((f32)((low + (position - level) * (high - low)) * (white / 255)));
  }
}

// Calls `use` with the rows of the input image of the statistic at slot `k`, after the operations from `begin` on.
template <class Element, class Use> void for_each_seen_row(const Row &row, i64 begin, i64 k,
                                                           const ImageOf<Element> &image, const Rectangle &part,
                                                           Scratch &s, Use use) {
  const i64 pixels = part.right - part.left;
  if (pixels <= 0) return;
  const PlanesOf<Element> planes = s.row.planes<Element>();
  for (i64 line = part.top; line < part.bottom; line++) {
    copy_pixels(image, line * image.width + part.left, pixels, false, planes, 0);
    for (i64 j = begin; j < k; j++) apply_value(row, j, image.channels, s.tables.luts.at, planes, {0, pixels});
    use(planes, pixels);
  }
}

// Pixels of a statistic's input that are outside the image: their color and number.
template <class Element> struct Outside {
  i64 pixels;
  Element color[3];
};

template <class Element, class Each> void measure_contrast(const Row &row, i64 slot, i64 channels, i64 seen,
                                                           const Outside<Element> &outside, Line *lines,
                                                           Each for_each) {
  auto gray = [=](Element r, Element g, Element b) { return channels == 1 ? (f32)r : gray_of<Element>(r, g, b); };
  f64 sum = (f64)outside.pixels * (f64)gray(outside.color[0], outside.color[1], outside.color[2]);
  for_each([&](PlanesOf<Element> planes, i64 pixels) {
    for (i64 x = 0; x < pixels; x++) sum += (f64)gray(planes[0][x], planes[1][x], planes[2][x]);
  });
  const f32 center = (f32)(sum / (f64)(seen + outside.pixels));
  for (i64 c = 0; c < 3; c++) lines[c] = {center, (f32)row.args[slot][0], center};
}

template <class Element, class Each>
void measure_extremes(i64 channels, const Outside<Element> &outside, Line *lines, Each for_each) {
  Element low[3], high[3];
  bool is_first = outside.pixels == 0;
  for (i64 c = 0; c < channels; c++) low[c] = high[c] = outside.color[c];
  for_each([&](PlanesOf<Element> planes, i64 pixels) {
    for (i64 c = 0; c < channels; c++) {
      Element least = is_first ? planes[c][0] : low[c], greatest = is_first ? planes[c][0] : high[c];
      for (i64 x = 0; x < pixels; x++) {
        least = min_of(least, planes[c][x]);
        greatest = max_of(greatest, planes[c][x]);
      }
      low[c] = least;
      high[c] = greatest;
    }
    is_first = false;
  });
  for (i64 c = 0; c < channels; c++) lines[c] = stretch(low[c], high[c]);
}

// Unsigned integers in the order of values.
VG_INLINE u32 key_of(u16 value) { return value; }
VG_INLINE u32 key_of(f32 value) {
  const u32 bits = load<u32>(&value);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
template <class Element> Element value_of_key(u32 key) {
  if constexpr (!IS_FLOAT<Element>) return (Element)key;
  const u32 bits = key >> 31 ? key & 0x7FFFFFFFu : ~key;
  return load<Element>(&bits);
}

// Digits of keys in which PERCENTILE_STRETCH finds its two values, from the highest.
constexpr int DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS;

// A value that is searched: the upper digits of its key so far, and the number of smaller values that have these.
struct Rank {
  u32 upper = 0;
  i64 rank = 0;
  u32 counts[DIGITS];  // of the next digit

  void count(u32 digits, i64 pixels) {
    if (digits >> DIGIT_BITS == upper) counts[digits & (DIGITS - 1)] += (u32)pixels;
  }
  void take_digit() {
    u32 digit = 0;
    while (rank >= counts[digit]) rank -= counts[digit++];
    upper = upper << DIGIT_BITS | digit;
  }
};

// NaN is not counted. Without any values, both ranks are -1 and both keys 0.
template <class Element, class Each>
void measure_percentiles(const f64 *args, i64 channels, const Outside<Element> &outside, Line *lines, Each for_each) {
  // The highest digit of a key has the remaining bits.
  constexpr int ROUNDS = (8 * (int)sizeof(Element) + DIGIT_BITS - 1) / DIGIT_BITS;
  Rank ends[3][2];
  for (int round = 0; round < ROUNDS; round++) {
    const int shift = DIGIT_BITS * (ROUNDS - 1 - round);
    for (auto &channel : ends)
      for (Rank &end : channel) memset(end.counts, 0, sizeof end.counts);
    auto count = [&](i64 c, Element value, i64 pixels) {
      if (value != value) return;
      for (Rank &end : ends[c]) end.count(key_of(value) >> shift, pixels);
    };
    for (i64 c = 0; c < channels; c++) count(c, outside.color[c], outside.pixels);
    for_each([&](PlanesOf<Element> planes, i64 pixels) {
      for (i64 c = 0; c < channels; c++)
        for (i64 x = 0; x < pixels; x++) count(c, planes[c][x], 1);
    });
    for (i64 c = 0; c < channels; c++) {
      auto &[low, high] = ends[c];
      if (round == 0) {
        i64 total = 0;
        for (u32 pixels : low.counts) total += pixels;
        low.rank = min_of(cut_off(total, args[0]), total - 1);
        high.rank = total - 1 - cut_off(total, 100 - args[1]);
      }
      low.take_digit();
      high.take_digit();
    }
  }
  for (i64 c = 0; c < channels; c++)
    lines[c] = stretch(value_of_key<Element>(ends[c][0].upper), value_of_key<Element>(ends[c][1].upper));
}

template <class Element, class Each>
void measure_histogram(i64 channels, const Outside<Element> &outside, u8 *tables, Each for_each) {
  i64 counts[3][BINS] = {};
  for (i64 c = 0; c < channels; c++) counts[c][bin_of(outside.color[c])] += outside.pixels;
  for_each([&](PlanesOf<Element> planes, i64 pixels) {
    for (i64 c = 0; c < channels; c++)
      for (i64 x = 0; x < pixels; x++) counts[c][bin_of(planes[c][x])]++;
  });
  for (i64 c = 0; c < channels; c++) equalize_table(counts[c], tables + BINS * c);
}

}  // namespace

template <class Element>
void measure_statistics(const Row &row, const i32 *pass, const ImageOf<Element> &image, Scratch &s) {
  const i64 begin = pass[PassField::BEGIN], channels = image.channels;
  i64 map_slot = -1;
  for (i64 k = begin; k < pass[PassField::STATISTICS_END]; k++) {
    if (row.kind(k) == Kind::GEOMETRY) map_slot = k;
    if (row.kind(k) != Kind::STATISTIC) continue;
    const Seen seen = seen_by_statistics(row.map_slots(), map_slot, image.height, image.width);
    const Rectangle &part = seen.part;
    Outside<Element> outside = {seen.outside, {}};
    if (map_slot >= 0) color_after(row, map_slot, k, channels, s, outside.color);
    const i64 area = max_of<i64>(0, part.bottom - part.top) * max_of<i64>(0, part.right - part.left);
    auto for_each = [&](auto use) { for_each_seen_row(row, begin, k, image, part, s, use); };
    u8 *to = s.tables.lut(k);
    switch ((StatisticOp)row.opcode[k]) {
      case StatisticOp::CONTRAST: measure_contrast(row, k, channels, area, outside, (Line *)to, for_each); break;
      case StatisticOp::AUTOCONTRAST: measure_extremes(channels, outside, (Line *)to, for_each); break;
      case StatisticOp::EQUALIZE: measure_histogram(channels, outside, to, for_each); break;
      case StatisticOp::PERCENTILE_STRETCH: measure_percentiles(row.args[k], channels, outside, (Line *)to, for_each);
    }
  }
}

template <class Element>
void change_channel(const Row &row, i64 slot, i64 c, const u8 *measured, i64 count, Element *values) {
  constexpr f32 white = WHITE<Element>;
  const f64 *a = row.args[slot];
  const f32 first = (f32)a[0], second = (f32)a[1];
  const u8 *known = measured + 768 * slot;
  auto change = [=](auto new_value) {
    for (i64 x = 0; x < count; x++) values[x] = truncate_value<Element>(new_value((f32)values[x]));
  };
  switch (row.opcode[slot]) {
    case Op::LUT: return apply_curve(row.curves(slot) + 256 * c, count, values);
    case Op::WINDOW: {
      const f32 scale = white / second;
      for (i64 x = 0; x < count; x++) values[x] = round_value<Element>((values[x] - first) * scale + white / 2);
      return;
    }
    case Op::BRIGHTNESS: return change([=](f32 value) { return first * value; });
    case Op::GAMMA: {
      const f32 gain = second * GREATEST<Element>;
      return change([=](f32 value) { return gain * power_of(value / white, first); });
    }
    case Op::POSTERIZE: {
      const i64 bits = (i64)clamp(a[0], 0.0, 8.0);
      for (i64 x = 0; x < count; x++) values[x] = keep_bits(values[x], bits);
      return;
    }
    case Op::SOLARIZE: {
      const f32 threshold = threshold_of<Element>(first);
      return change([=](f32 value) { return pick(value < threshold, value, white - value); });
    }
    case Op::SOLARIZE_ADD: {
      const f32 addition = first * UNIT<Element>, threshold = threshold_of<Element>(second);
      return change([=](f32 value) { return value + pick(value < threshold, addition, 0); });
    }
    case Op::INVERT: return change([=](f32 value) { return white - value; });
    case Op::RGB_SHIFT: {
      const f32 shift = (f32)(i64)a[c] * UNIT<Element>;
      return change([=](f32 value) { return value + shift; });
    }
    case Op::CONTRAST:
    case Op::AUTOCONTRAST:
    case Op::PERCENTILE_STRETCH: {
      const Line line = ((const Line *)known)[c];
      return change([=](f32 value) { return line.shift + line.scale * (value - line.center); });
    }
    default:  // Op::EQUALIZE
      for (i64 x = 0; x < count; x++) {
        const u8 level = known[BINS * c + bin_of(values[x])];
        values[x] = IS_FLOAT<Element> ? from_byte<Element>(level) : (Element)(level << 8);
      }
  }
}

// HUE as in torchvision: to HSV and back in floats.
template <class Element> void turn_hue(PlanesOf<Element> planes, Range columns, f32 turn) {
  constexpr f32 white = WHITE<Element>;
  for (i64 x = columns.first; x < columns.end; x++) {
    const f32 r = planes[0][x] / white, g = planes[1][x] / white, b = planes[2][x] / white;
    const f32 high = max_of(max_of(r, g), b), low = min_of(min_of(r, g), b), span = high - low;
    const bool is_gray = !(span > 0);
    const f32 divisor = pick(is_gray, 1, span), saturation = span / pick(is_gray, 1, high);
    const f32 from_r = (high - r) / divisor, from_g = (high - g) / divisor, from_b = (high - b) / divisor;
    const f32 sextant =
        pick(high == r, from_b - from_g, pick(high == g, 2 + from_r - from_b, 4 + from_g - from_r)) / 6 + turn;
    const f32 hue = 6 * (sextant - floor_of(sextant));
    // A channel is `high` around its center sextant, and falls to `low` with the distance from it.
    constexpr f32 CENTER[] = {0, 2, 4};
    for (int c = 0; c < 3; c++) {
      const f32 apart = abs_of(hue - CENTER[c]), away = min_of(apart, 6 - apart);
      const f32 faded = clamp(away - 1, 0.0f, 1.0f);
      planes[c][x] = truncate_value<Element>(high * (1 - saturation * faded) * GREATEST<Element>);
    }
  }
}

#define VG_COMPILE_ALL(Element)           \
  VG_COMPILE(change_channel, Element)     \
  VG_COMPILE(measure_statistics, Element) \
  VG_COMPILE(turn_hue, Element)
VG_COMPILE_ALL(u16)
VG_COMPILE_ALL(f32)

}  // namespace vg::VG_LEVEL
