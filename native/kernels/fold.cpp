#include "interpolate.h"
namespace vg { namespace VG_LEVEL {
void fold_real_row(const f64 *, const i32 *, int, bool, i64, i64, Scratch &) {}
void read_seam(const Row &, const Image &, i64, i64, Scratch &) {}
void read_folded_row(const Row &, const Image &, i64, i64, i64, Scratch &) {}
} }
