// Statistics of the image at a stage, and the tables that they lead to.
#pragma once
#include "executor.h"

namespace vg {
namespace VG_LEVEL {

struct Scratch;

struct StatisticsScratch {
  Buffer<i32> counts;  // histograms
};

// Tables (`s.tables.lut`) of the statistics of a pass. Only tables and at most one map of whole pixels come before them.
bool build_tables(const Row &row, const i32 *pass, const Image &image, Scratch &s);
// The fill color of the map at `slot` after the value operations between it and `stop`.
void color_after(const Row &row, i64 slot, i64 stop, i64 channels, Scratch &s, u8 *out);

}  // namespace VG_LEVEL
}  // namespace vg
