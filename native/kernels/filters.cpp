#include "scratch.h"
namespace vg { namespace VG_LEVEL {
i64 filter_margin(const Row &, i64) { return 0; }
bool reserve_filter(const Row &, i64, i64, i64, Scratch &) { return true; }
bool prepare_filter(const Row &, i64, i64, i64, i64, Scratch &) { return true; }
void read_filtered_row(const Row &, i64, i64, i64, i64, i64, Scratch &) {}
} }
