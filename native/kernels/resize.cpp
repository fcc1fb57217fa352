#include "scratch.h"
namespace vg { namespace VG_LEVEL {
bool prepare_resize(const Row &, i64, const Image &, i64, i64, Scratch &) { return true; }
void read_resized_row(const Row &, i64, const Image &, i64, i64, i64, Scratch &) {}
} }
