// Zooms, fringes of color and scattered pixels: filters that read far away from a pixel.
#pragma once
#include "filter_rows.h"

namespace vg {
namespace VG_LEVEL {

// Row `y` of ZOOM_BLUR, ABERRATION or SCATTER into the planes.
void warp_row(const Row &row, i64 slot, const FilterImage &image, i64 y, Scratch &s);

}  // namespace VG_LEVEL
}  // namespace vg
