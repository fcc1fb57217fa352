// Blends of rows: weighted sums, rectangles and alpha masks.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct BlendTerm {
  const void *at;  // elements
  f32 weight;
};

struct BlendScratch {
  Buffer<BlendTerm> terms;  // terms of a sum
  Buffer<u8> elements;  // an output or a plane of it, before conversion to float
};

}  // namespace vg::VG_LEVEL
