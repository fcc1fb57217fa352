#include "warp.h"
namespace vg { namespace VG_LEVEL {
void warp_row(const Row &, i64, const FilterImage &, i64, Scratch &) {}
} }
