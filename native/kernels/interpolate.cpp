#include "scratch.h"
namespace vg { namespace VG_LEVEL {
bool InterpolateScratch::reserve(i64, i64) { return true; }
i64 prepare_maps(const Row &, i64, i64, Scratch &) { return 0; }
Range read_interpolated_row(const Row &, const Image &, i64, i64, bool, i64, i64, Scratch &) { return {0, 0}; }
void read_real_nearest_row(const Row &, const Image &, i64, i64, i64, Scratch &) {}
void read_folded_row(const Row &, const Image &, i64, i64, i64, Scratch &) {}
} }
