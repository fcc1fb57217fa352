// Statistics of the image at a stage, and the tables that they lead to.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

// Tables (`s.tables.lut`) of the statistics of a pass. Only tables and at most one map of whole pixels come before
// them.
void measure_statistics(const Row &row, const i32 *pass, const Image &image, Scratch &s);
// The table of ImageOps.equalize from the counts of 256 levels.
void equalize_table(const i64 *counts, u8 *table);

// What statistics measure of interleaved bytes, as many as are a multiple of 3 if they are pixels of three channels.

// The sum of Pillow's L of pixels of three channels, or of the bytes of one channel.
i64 sum_luma(const u8 *bytes, i64 count, i64 channels);
// The same of pixels in three planes.
i64 sum_luma(Planes planes, i64 pixels);

// Least and greatest bytes, by position: channel c of three has the positions c, c + 3 and so on.
struct Extremes {
  static constexpr i64 SIZE = 96;
  alignas(64) u8 low[SIZE], high[SIZE];
};
void widen_extremes(const u8 *bytes, i64 count, Extremes &extremes);

// How often each byte is there; bytes take turns between the channels.
struct Histogram {
  // Neighbors are often equal, and a counter cannot be raised twice at once: pixels take turns between the tables.
  static constexpr int COPIES = 2;
  u32 counts[3][COPIES][256];
};
void count_bytes(const u8 *bytes, i64 count, Histogram &histogram);

}  // namespace vg::VG_LEVEL
