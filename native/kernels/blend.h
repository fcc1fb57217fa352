// Blends: weighted sums of rows, or rectangles of them.
#pragma once
#include "executor.h"

namespace vg {
namespace VG_LEVEL {

struct BlendScratch {
  Buffer<f32> sums;  // of a part of an output
  Buffer<u8> bytes;  // an output, or a plane of it, that becomes floats
};

}  // namespace VG_LEVEL
}  // namespace vg
