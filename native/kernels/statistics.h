// Statistics of an image, and the lookup tables of operations that need them. GPU counterpart:
// executors/cuda/kernels/statistics.py; definition: tests/oracle/statistics.py.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

// Computes the tables (`s.tables.lut`) of a pass's statistics. Only tables and at most one integer map come before
// them.
void measure_statistics(const Row &row, const i32 *pass, const Image &image, Scratch &s);
// The number of `total` values that a share of `percent` cuts off, exact up to 2^46 of them, as in Python.
i64 cut_off(i64 total, f64 percent);
// The table of ImageOps.equalize from the counts of 256 values.
void equalize_table(const i64 *counts, u8 *table);

// Measures of interleaved bytes. With three channels, the number of bytes is a multiple of 3.

// The sum of Pillow's L of pixels of three channels, or of the bytes of one channel.
i64 sum_luma(const u8 *bytes, i64 count, i64 channels);
// The same of pixels in three planes.
i64 sum_luma(Planes planes, i64 pixels);

// Least and greatest bytes, by position: channel c of three has positions c, c + 3, ...
struct Extremes {
  static constexpr i64 SIZE = 96;
  alignas(64) u8 low[SIZE], high[SIZE];
};
void widen_extremes(const u8 *bytes, i64 count, Extremes &extremes);

// Counts of each byte value per channel, of interleaved bytes.
struct Histogram {
  // Adjacent pixels are often equal, and an increment waits for the previous increment of the same counter. Therefore
  // pixels alternate between copies of the table.
  static constexpr int COPIES = 2;
  u32 counts[3][COPIES][256];
};
void count_bytes(const u8 *bytes, i64 count, Histogram &histogram);

}  // namespace vg::VG_LEVEL
