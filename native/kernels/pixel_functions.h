// Functions of a pixel that users write.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

// Changes columns of three planes. Runs over into the padding after the columns.
void apply_pixel_function(const PixelFunction &function, Planes planes, Range columns, f32 magnitude);

}  // namespace vg::VG_LEVEL
