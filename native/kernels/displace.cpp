#include "interpolate.h"
namespace vg { namespace VG_LEVEL {
void place_displaced_row(const Row &, i64, i64, i64, Scratch &) {}
} }
