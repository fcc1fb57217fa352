// A thread's scratch memory: buffers of all kernels, and of each family.
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
  Buffer<u8> tabled;  // an image after tables, for maps that interpolate
  NearestScratch nearest;
  InterpolateScratch interpolate;
  ResizeScratch resize;
  FilterScratch filter;
  OverlayScratch overlay;
  JpegScratch jpeg;
  BlendScratch blend;
};

}  // namespace vg::VG_LEVEL
