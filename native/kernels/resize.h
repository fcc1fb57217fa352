// Antialiased resize of a box, bit for bit as Pillow's ImagingResample: horizontal pass, 8-bit rows, vertical pass.
#pragma once
#include "executor.h"

namespace vg {
namespace VG_LEVEL {

struct Scratch;

struct ResizeScratch {
  bool reserve(const f64 *a, int filter, i64 height, i64 width);
};

// Weights of both axes, and the horizontal pass of all rows where it comes first. False where there is no memory.
bool prepare_resize(const Row &row, i64 slot, const Image &image, i64 height, i64 width, Scratch &s);
// Output row `y` into the planes.
void read_resized_row(const Row &row, i64 slot, const Image &image, i64 y, i64 height, i64 width, Scratch &s);

}  // namespace VG_LEVEL
}  // namespace vg
