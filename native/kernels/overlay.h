// Layers drawn over an image: fog, rain, light; and tables of lightness.
#pragma once
#include "executor.h"

namespace vg {
namespace VG_LEVEL {

struct Scratch;

struct OverlayScratch {
  i64 lines[3];  // the slot, and the even and the odd line of nodes that `layers` holds
  Buffer<i16> layers;
};

// OVERLAY on row `y`, in place.
void overlay_row(const Row &row, i64 slot, i64 y, i64 width, i64 channels, Scratch &s);

}  // namespace VG_LEVEL
}  // namespace vg
