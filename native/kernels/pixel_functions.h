// Users' functions of a pixel.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

// Applies a function to columns of three planes in place. Also writes to the padding after the columns.
void apply_pixel_function(const PixelFunction &function, Planes planes, Range columns, f32 magnitude);

}  // namespace vg::VG_LEVEL
