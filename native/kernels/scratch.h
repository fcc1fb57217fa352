// A thread's memory: what all kernels use, and what each family adds.
#pragma once
#include "blend.h"
#include "filters.h"
#include "interpolate.h"
#include "jpeg.h"
#include "nearest.h"
#include "overlay.h"
#include "resize.h"
#include "statistics.h"

namespace vg::VG_LEVEL {

struct Scratch {
  RowScratch row;
  TableScratch tables;
  Buffer<u8> canvas[2];  // images between passes
  Buffer<u8> tabled;  // an image read through tables, for maps that interpolate
  NearestScratch nearest;
  InterpolateScratch interpolate;
  ResizeScratch resize;
  FilterScratch filter;
  OverlayScratch overlay;
  JpegScratch jpeg;
  BlendScratch blend;
};

}  // namespace vg::VG_LEVEL
