// Lookup tables from statistics of an operation's input image.
#include "statistics.h"
#include "../coords.h"
#include "interleave.h"
#include "scratch.h"
#include "values.h"

namespace vg::VG_LEVEL {
namespace {

// The composed tables before a statistic.
struct JoinedTables {
  u8 at[3][256];
  bool are_identity;
};

// The input of a statistic: a part of the image and a number of pixels of the fill color, after tables.
struct View {
  const Image &image;
  Seen seen;
  u8 color[3];
  JoinedTables tables;
};

void join_tables(const Row &row, i64 begin, i64 stop, i64 channels, const u8 *luts, JoinedTables &tables) {
  for (auto &table : tables.at)
    for (int i = 0; i < 256; i++) table[i] = (u8)i;
  for (i64 k = begin; k < stop; k++) apply_value<u8>(row, k, channels, luts, {tables.at[0], 256}, {0, 256});
}

// Applies the tables to `pixels` pixels from index `first` on.
Planes look_up_planes(const View &view, i64 first, i64 pixels, Scratch &s) {
  const Planes planes = s.row.planes();
  copy_pixels(view.image, first, pixels, false, planes, 0);
  for (i64 c = 0; c < view.image.channels; c++) look_up(planes[c], view.tables.at[c], pixels);
  return planes;
}

// The same, interleaved.
const u8 *look_up_pixels(const View &view, i64 first, i64 pixels, Scratch &s) {
  const Planes planes = look_up_planes(view, first, pixels, s);
  if (view.image.channels == 1) return planes[0];
  interleave(planes[0], planes[1], planes[2], pixels, s.row.interleaved.at);
  return s.row.interleaved.at;
}

// Calls measure(bytes, count) for the visible part of the image, row by row or at once.
template <class Measure> void for_each_row(const View &view, bool through_tables, Scratch &s, Measure measure) {
  const Image &image = view.image;
  const Rectangle &part = view.seen.part;
  const i64 pixels = part.right - part.left;
  if (pixels <= 0 || part.bottom <= part.top) return;
  if (pixels == image.width && !through_tables) {
    measure(image.pixels + part.top * image.width * image.channels, (part.bottom - part.top) * pixels * image.channels);
    return;
  }
  for (i64 line = part.top; line < part.bottom; line++) {
    const i64 first = line * image.width + part.left;
    if (through_tables) measure(look_up_pixels(view, first, pixels, s), pixels * image.channels);
    else measure(image.pixels + first * image.channels, pixels * image.channels);
  }
}

i64 sum_seen_luma(const View &view, Scratch &s) {
  const i64 channels = view.image.channels;
  i64 sum = 0;
  if (view.tables.are_identity || channels == 1) {
    for_each_row(view, !view.tables.are_identity, s,
                 [&](const u8 *bytes, i64 count) { sum += sum_luma(bytes, count, channels); });
    return sum;
  }
  const Rectangle &part = view.seen.part;
  const i64 pixels = part.right - part.left;
  for (i64 line = part.top; line < part.bottom && pixels > 0; line++)
    sum += sum_luma(look_up_planes(view, line * view.image.width + part.left, pixels, s), pixels);
  return sum;
}

void contrast(const View &view, f32 factor, u8 *table, Scratch &s) {
  const i64 channels = view.image.channels;
  i64 sum = sum_seen_luma(view, s);
  const Rectangle &part = view.seen.part;
  const u8 *color = view.color;
  const i64 inside = max_of<i64>(0, part.bottom - part.top) * max_of<i64>(0, part.right - part.left);
  if (view.seen.outside != 0)
    sum += view.seen.outside * (channels == 3 ? luma<i64>(color[0], color[1], color[2]) : color[0]);
  const f32 mean = (f32)(i64)((f64)sum / (f64)(inside + view.seen.outside) + 0.5);
  for (int i = 0; i < 256; i++) {
    const f32 value = mean + factor * ((f32)i - mean);
    table[i] = (u8)min_of(max_of(value, 0.0f), 255.0f);
  }
  for (i64 c = 1; c < channels; c++) memcpy(table + 256 * c, table, 256);
}

// The table of ImageOps.autocontrast without cutoff, in double, truncated, clipped. GPU counterpart: `_stretch`.
void autocontrast_table(i32 low, i32 high, u8 *table) {
  const bool is_identity = high <= low;
  const f64 scale = is_identity ? 1.0 : 255.0 / (high - low), offset = is_identity ? 0.0 : -low * scale;
  for (int i = 0; i < 256; i++) table[i] = (u8)clamp((i32)(i * scale + offset), 0, 255);
}

bool is_monotone(const u8 *table) {
  bool rises = true, falls = true;
  for (int i = 1; i < 256; i++) {
    rises &= table[i] >= table[i - 1];
    falls &= table[i] <= table[i - 1];
  }
  return rises || falls;
}

void autocontrast(const View &view, u8 *table, Scratch &s) {
  const i64 channels = view.image.channels;
  // If all tables are monotone, the extremes after tables follow from the extremes before.
  bool keeps_extremes = true;
  for (i64 c = 0; c < channels; c++) keeps_extremes &= view.tables.are_identity || is_monotone(view.tables.at[c]);
  Extremes extremes;
  memset(extremes.low, 255, sizeof extremes.low);
  memset(extremes.high, 0, sizeof extremes.high);
  for_each_row(view, !keeps_extremes, s, [&](const u8 *bytes, i64 count) { widen_extremes(bytes, count, extremes); });
  for (i64 c = 0; c < channels; c++) {
    u8 low = 255, high = 0;
    for (i64 i = c; i < Extremes::SIZE; i += channels) {
      low = min_of(low, extremes.low[i]);
      high = max_of(high, extremes.high[i]);
    }
    if (keeps_extremes && !view.tables.are_identity && low <= high) {
      const u8 first = view.tables.at[c][low], last = view.tables.at[c][high];
      low = min_of(first, last);
      high = max_of(first, last);
    }
    if (view.seen.outside != 0) {
      low = min_of(low, view.color[c]);
      high = max_of(high, view.color[c]);
    }
    autocontrast_table(low, high, table + 256 * c);
  }
}

// Calls `make_table(counts, table)` for each channel, with the counts of 256 values.
template <class MakeTable> void make_tables(const View &view, u8 *tables, Scratch &s, MakeTable make_table) {
  const i64 channels = view.image.channels;
  Histogram histogram;
  memset(&histogram, 0, sizeof histogram);
  for_each_row(view, false, s, [&](const u8 *bytes, i64 count) { count_bytes(bytes, count, histogram); });
  for (i64 c = 0; c < channels; c++) {
    // Applies the tables to the counts instead of the pixels.
    i64 counts[256] = {};
    for (i64 d = c; d < 3; d += channels)
      for (const auto &part : histogram.counts[d])
        for (int i = 0; i < 256; i++) counts[view.tables.at[c][i]] += part[i];
    if (view.seen.outside != 0) counts[view.color[c]] += view.seen.outside;
    make_table(counts, tables + 256 * c);
  }
}

// The table of ImageOps.autocontrast with cutoff=(low, 100 - high). GPU counterpart: `_stretch_percentiles`.
void percentile_table(const i64 *counts, f64 low, f64 high, u8 *table) {
  i64 total = 0;
  for (int i = 0; i < 256; i++) total += counts[i];
  i32 first = 0, last = 255;
  for (i64 left = counts[0], cut = cut_off(total, low); left <= cut && first < 255;) left += counts[++first];
  for (i64 left = counts[255], cut = cut_off(total, 100 - high); left <= cut && last > 0;) left += counts[--last];
  autocontrast_table(first, last, table);
}

void build_table(const Row &row, i64 slot, const View &view, Scratch &s) {
  u8 *table = s.tables.lut(slot);
  switch ((StatisticOp)row.opcode[slot]) {
    case StatisticOp::CONTRAST: return contrast(view, (f32)row.args[slot][0], table, s);
    case StatisticOp::AUTOCONTRAST: return autocontrast(view, table, s);
    case StatisticOp::EQUALIZE: return make_tables(view, table, s, equalize_table);
    case StatisticOp::PERCENTILE_STRETCH: {
      const f64 *a = row.args[slot];
      return make_tables(view, table, s, [=](const i64 *counts, u8 *to) { percentile_table(counts, a[0], a[1], to); });
    }
  }
}

}  // namespace

i64 cut_off(i64 total, f64 percent) {
  const f64 share = (f64)total * percent;
  const i64 cut = (i64)(share / 100);
  return (f64)cut * 100 > share ? cut - 1 : cut;  // if the division rounded up to an integer
}

void equalize_table(const i64 *counts, u8 *table) {
  i64 total = 0, bins = 0, last = 0;
  for (int i = 0; i < 256; i++) {
    total += counts[i];
    if (counts[i] == 0) continue;
    bins++;
    last = counts[i];
  }
  const i64 step = (total - last) / 255;
  if (bins <= 1 || step == 0) {
    for (int i = 0; i < 256; i++) table[i] = (u8)i;
    return;
  }
  // In float64, which is exact here, and divides several times faster than 64-bit integers.
  f64 running[256];
  i64 sum = step / 2;
  for (int i = 0; i < 256; i++) {
    running[i] = (f64)sum;
    sum += counts[i];
  }
  const f64 divisor = (f64)step;
  for (int i = 0; i < 256; i++) table[i] = (u8)min_of(running[i] / divisor, 255.0);
}

void measure_statistics(const Row &row, const i32 *pass, const Image &image, Scratch &s) {
  const i64 begin = pass[PassField::BEGIN];
  i64 map_slot = -1;
  bool has_tables = false;
  for (i64 k = begin; k < pass[PassField::STATISTICS_END]; k++) {
    if (row.kind(k) == Kind::GEOMETRY) {
      map_slot = k;
      continue;
    }
    if (row.kind(k) == Kind::STATISTIC) {
      const Seen seen = seen_by_statistics(row.map_slots(), map_slot, image.height, image.width);
      View view = {image, seen, {}, {}};
      if (map_slot >= 0) color_after(row, map_slot, k, image.channels, s, view.color);
      join_tables(row, begin, has_tables ? k : begin, image.channels, s.tables.luts.at, view.tables);
      view.tables.are_identity = !has_tables;
      build_table(row, k, view, s);
    }
    has_tables = true;
  }
}

}  // namespace vg::VG_LEVEL
