// Operations on uint16 and float32 values: per-channel operations, statistics, saturation and hue. They run in vectors
// of floats; the last vector extends into the padding. The order of sums does not depend on the size of vectors.
#include "deep.h"
#include "interleave.h"
#include "lanes.h"
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
template <class Element> Line stretch(f32 low, f32 high) {
  if (low < high) return {low, WHITE<Element> / (high - low), 0};
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
VG_INLINE i64 bin_of(u16 value) { return value >> 8; }
VG_INLINE i64 bin_of(f32 value) { return (i64)(truncate_value<f32>(value) * 255.999f); }
VG_INLINE Ints load_bins(const u16 *at) { return load_ints(at) >> 8; }
VG_INLINE Ints load_bins(const f32 *at) { return truncate(clip_floats(load_floats(at), 1) * 255.999f); }

template <class Element> VG_INLINE void find_bins(const Element *values, i64 count, u8 *bins) {
  for (i64 x = 0; x < count; x += 2 * LANES)
    store_packed(bins + x, pack(load_bins(values + x), load_bins(values + x + LANES)));
}

// Keeps the highest bits of values, for POSTERIZE. Floats are rounded down to a multiple of 2**-bits.
void keep_bits(u16 *values, i64 count, i64 bits) {
  const u16 mask = (u16)(0xffff << (16 - bits));
  for (i64 x = 0; x < count; x++) values[x] &= mask;
}
void keep_bits(f32 *values, i64 count, i64 bits) {
  const f32 levels = (f32)((i64)1 << bits);
  for (i64 x = 0; x < count; x += LANES)
    store(values + x, to_floats(truncate(clip_floats(load_floats(values + x) * levels, levels - 1))) / levels);
}

// Values, or torchvision's gray of three channels.
template <class Element> VG_INLINE Floats load_gray(PlanesOf<Element> planes, i64 channels, i64 x) {
  const Floats red = load_floats(planes[0] + x);
  if (channels == 1) return red;
  const Floats gray = red * 0.2989f + load_floats(planes[1] + x) * 0.587f + load_floats(planes[2] + x) * 0.114f;
  return IS_FLOAT<Element> ? gray : to_floats(truncate(gray));
}

// The sum of a row's gray. Column x is added to lane x % 16 at every level, and lanes are added before float32 loses
// precision.
template <class Element> f64 sum_gray(PlanesOf<Element> planes, i64 channels, i64 pixels) {
  constexpr i64 SUMS = 16, BETWEEN = 16 * SUMS;
  alignas(64) f32 sums[SUMS];
  f64 total = 0;
  for (i64 first = 0; first < pixels; first += BETWEEN) {
    const i64 end = min_of(pixels, first + BETWEEN);
    memset(sums, 0, sizeof sums);
    i64 x = first;
    for (; x + SUMS <= end; x += SUMS)
      for (i64 k = 0; k < SUMS; k += LANES)
        store(sums + k, load<Floats>(sums + k) + load_gray(planes, channels, x + k));
    for (i64 k = 0; x < end; k += LANES, x += LANES) {
      const Floats rest = load_gray(planes, channels, x);
      for (i64 j = 0; j < min_of(LANES, end - x); j++) sums[k + j] += rest[j];
    }
    for (const f32 sum : sums) total += (f64)sum;
  }
  return total;
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
  const Element *color = outside.color;
  const f32 gray = channels == 1 ? (f32)color[0] : gray_of<Element>(color[0], color[1], color[2]);
  f64 sum = (f64)outside.pixels * (f64)gray;
  for_each([&](PlanesOf<Element> planes, i64 pixels) { sum += sum_gray(planes, channels, pixels); });
  const f32 center = (f32)(sum / (f64)(seen + outside.pixels));
  for (i64 c = 0; c < 3; c++) lines[c] = {center, (f32)row.args[slot][0], center};
}

// The least and the greatest value. NaN does not count.
struct Extent {
  f32 low = HUGE_VALF, high = -HUGE_VALF;

  void add(f32 value) {
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
};

template <class Element> void widen_extent(const Element *values, i64 count, Extent &extent) {
  Floats low = all_floats(extent.low), high = all_floats(extent.high);
  i64 x = 0;
  for (; x + LANES <= count; x += LANES) {
    const Floats value = load_floats(values + x);
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  for (; x < count; x++) extent.add(values[x]);
  for (i64 i = 0; i < LANES; i++) {
    extent.low = min_of(extent.low, low[i]);
    extent.high = max_of(extent.high, high[i]);
  }
}

template <class Element, class Each>
void measure_extremes(i64 channels, const Outside<Element> &outside, Line *lines, Each for_each) {
  Extent extents[3];
  for (i64 c = 0; c < channels && outside.pixels != 0; c++) extents[c].add(outside.color[c]);
  for_each([&](PlanesOf<Element> planes, i64 pixels) {
    for (i64 c = 0; c < channels; c++) widen_extent(planes[c], pixels, extents[c]);
  });
  for (i64 c = 0; c < channels; c++) lines[c] = stretch<Element>(extents[c].low, extents[c].high);
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
    lines[c] = stretch<Element>(value_of_key<Element>(ends[c][0].upper), value_of_key<Element>(ends[c][1].upper));
}

template <class Element, class Each>
void measure_histogram(i64 channels, const Outside<Element> &outside, u8 *tables, Scratch &s, Each for_each) {
  Histogram histogram;
  memset(&histogram, 0, sizeof histogram);
  const Planes bins = s.row.spare_planes();
  u8 *interleaved = s.row.interleaved.at;
  for_each([&](PlanesOf<Element> planes, i64 pixels) {
    for (i64 c = 0; c < channels; c++) find_bins((const Element *)planes[c], pixels, bins[c]);
    if (channels == 1) return count_bytes(bins[0], pixels, histogram);
    interleave((const u8 *)bins[0], bins[1], bins[2], pixels, interleaved);
    count_bytes(interleaved, 3 * pixels, histogram);
  });
  for (i64 c = 0; c < channels; c++) {
    i64 counts[BINS] = {};
    for (i64 d = c; d < 3; d += channels)
      for (const auto &copy : histogram.counts[d])
        for (i64 i = 0; i < BINS; i++) counts[i] += copy[i];
    counts[bin_of(outside.color[c])] += outside.pixels;
    equalize_table(counts, tables + BINS * c);
  }
}

// Levels of uint8 as elements, LANES from `bytes` on.
VG_INLINE void store_levels(u16 *to, const u8 *bytes) { store_clipped(to, to_floats(load_bytes(bytes) << 8)); }
VG_INLINE void store_levels(f32 *to, const u8 *bytes) { store(to, to_floats(load_bytes(bytes)) / 255.0f); }

template <class Element> void equalize(const u8 *table, i64 count, Element *values) {
  constexpr i64 CHUNK = 256;
  u8 bins[CHUNK + BLOCK];
  for (i64 first = 0; first < count; first += CHUNK) {
    const i64 size = min_of(CHUNK, count - first);
    find_bins((const Element *)values + first, size, bins);
    look_up(bins, table, size);
    for (i64 x = 0; x < size; x += LANES) store_levels(values + first + x, bins + x);
  }
}

// Logarithms to base 2 of 1 + f, divided by f, for 1 + f from sqrt(1 / 2) to sqrt(2); 2 ** x for x from -1 / 2 to 1 / 2.
// Errors are below 1e-7.
constexpr f32 LOG2_TERMS[] = {1.4426949f,   -0.721352756f, 0.48092404f, -0.360241979f,
                              0.287075609f, -0.24882181f,  0.23420985f, -0.146203533f};
constexpr f32 EXP2_TERMS[] = {1.00000012f, 0.693147182f, 0.240221068f, 0.0555032715f, 0.00967603736f, 0.00134004327f};
// The bits of sqrt(1 / 2).
constexpr i32 ROOT_HALF = 0x3f3504f3;

// values ** exponent, for a positive exponent and results up to 2**127. Values below 2**-126 count as 0, and so does NaN.
VG_INLINE Floats powers_of(Floats values, f32 exponent) {
  const Ints is_known = values >= 0x1p-126f;
  const Ints bits = (Ints)(is_known ? values : all_floats(1)) - ROOT_HALF;
  const Floats over_one = (Floats)((bits & 0x7fffff) + ROOT_HALF) - 1.0f;
  const Floats log2 = to_floats(bits >> 23) + over_one * polynomial(LOG2_TERMS, over_one);
  const Floats least = all_floats(-126), most = all_floats(127), product = log2 * exponent;
  const Floats limited = product > least ? product : least, power = limited < most ? limited : most;
  const Floats whole = (power + ROUNDER) - ROUNDER;
  const Floats result = polynomial(EXP2_TERMS, power - whole) * (Floats)((truncate(whole) + 127) << 23);
  return is_known ? result : Floats{};
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
      case StatisticOp::EQUALIZE: measure_histogram(channels, outside, to, s, for_each); break;
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
    for (i64 x = 0; x < count; x += LANES) store_clipped(values + x, new_value(load_floats(values + x)));
  };
  switch (row.opcode[slot]) {
    case Op::LUT: return apply_curve(row.curves(slot) + 256 * c, count, values);
    case Op::WINDOW: {
      const f32 scale = white / second, middle = white / 2 + HALF_UP<Element>;
      return change([=](Floats value) { return (value - first) * scale + middle; });
    }
    case Op::BRIGHTNESS: return change([=](Floats value) { return first * value; });
    case Op::GAMMA: {
      const f32 gain = second * GREATEST<Element>;
      if (first == 0) return change([=](Floats) { return all_floats(gain); });
      return change([=](Floats value) { return gain * powers_of(value * (1 / white), first); });
    }
    case Op::POSTERIZE: return keep_bits(values, count, (i64)clamp(a[0], 0.0, 8.0));
    case Op::SOLARIZE: {
      const f32 threshold = threshold_of<Element>(first);
      return change([=](Floats value) { return value < threshold ? value : white - value; });
    }
    case Op::SOLARIZE_ADD: {
      const Floats addition = all_floats(first * UNIT<Element>), zero = {};
      const f32 threshold = threshold_of<Element>(second);
      return change([=](Floats value) { return value + (value < threshold ? addition : zero); });
    }
    case Op::INVERT: return change([=](Floats value) { return white - value; });
    case Op::RGB_SHIFT: {
      const f32 shift = (f32)(i64)a[c] * UNIT<Element>;
      return change([=](Floats value) { return value + shift; });
    }
    case Op::CONTRAST:
    case Op::AUTOCONTRAST:
    case Op::PERCENTILE_STRETCH: {
      const Line line = ((const Line *)known)[c];
      return change([=](Floats value) { return line.shift + line.scale * (value - line.center); });
    }
    default: return equalize(known + BINS * c, count, values);  // Op::EQUALIZE
  }
}

template <class Element> void change_saturation(PlanesOf<Element> planes, Range columns, f32 factor) {
  for (i64 x = columns.first; x < columns.end; x += LANES) {
    const Floats gray = load_gray(planes, 3, x);
    for (int c = 0; c < 3; c++) store_clipped(planes[c] + x, gray + factor * (load_floats(planes[c] + x) - gray));
  }
}

// As in torchvision: to HSV and back in floats.
template <class Element> void turn_hue(PlanesOf<Element> planes, Range columns, f32 turn) {
  constexpr f32 scale = GREATEST<Element> / WHITE<Element>;
  const f32 forward = turn - floor_of(turn) + 1;  // for positive sums, because sextants are from -1 to 5
  const Floats zero = {}, one = all_floats(1);
  auto least_of = [](Floats a, Floats b) { return a < b ? a : b; };
  auto greatest_of = [](Floats a, Floats b) { return a > b ? a : b; };
  for (i64 x = columns.first; x < columns.end; x += LANES) {
    const Floats r = load_floats(planes[0] + x), g = load_floats(planes[1] + x), b = load_floats(planes[2] + x);
    const Floats high = greatest_of(greatest_of(r, g), b), low = least_of(least_of(r, g), b), span = high - low;
    const Ints is_color = span > zero;
    const Floats per_span = one / (is_color ? span : one), saturation = span / (is_color ? high : one);
    const Floats from_r = (high - r) * per_span, from_g = (high - g) * per_span, from_b = (high - b) * per_span;
    const Floats of_green = high == g ? 2.0f + from_r - from_b : 4.0f + from_g - from_r;
    const Floats turned = (high == r ? from_b - from_g : of_green) * (1.0f / 6) + forward;
    const Floats hue = 6.0f * (turned - to_floats(truncate(turned)));
    // A channel is `high` around its center sextant, and falls to `low` with the distance from it.
    constexpr f32 CENTER[] = {0, 2, 4};
    for (int c = 0; c < 3; c++) {
      const Floats away = hue - CENTER[c], apart = greatest_of(away, -away);
      const Floats faded = clip_floats(least_of(apart, 6.0f - apart) - 1.0f, 1);
      store_clipped(planes[c] + x, high * (1.0f - saturation * faded) * scale);
    }
  }
}

#define VG_COMPILE_ALL(Element)           \
  VG_COMPILE(change_channel, Element)     \
  VG_COMPILE(change_saturation, Element)  \
  VG_COMPILE(measure_statistics, Element) \
  VG_COMPILE(turn_hue, Element)
VG_COMPILE_ALL(u16)
VG_COMPILE_ALL(f32)

}  // namespace vg::VG_LEVEL
