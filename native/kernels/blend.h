// Blends: weighted sums of rows, or rectangles of them.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct BlendTerm {
  const void *at;  // elements
  f32 weight;
};

struct BlendScratch {
  Buffer<BlendTerm> terms;  // of a sum
  Buffer<u8> elements;  // an output, or a plane of it, that becomes floats
};

}  // namespace vg::VG_LEVEL
