// Zooms, fringes of color and scattered pixels: filters that read far away from a pixel.
#pragma once
#include "filter_rows.h"

namespace vg::VG_LEVEL {

// ZOOM_BLUR. `a`: its arguments.
bool prepare_zoom(const FilterImage &image, const f64 *a, ZoomScratch &zoom);
void zoom_row(const FilterImage &image, i64 y, const f64 *a, ZoomScratch &zoom, Planes out);
// ABERRATION.
void bend_row(const FilterImage &image, i64 y, const f64 *a, RowScratch &scratch, Planes out);
// SCATTER.
void scatter_row(const Row &row, const FilterImage &image, i64 y, const f64 *a, RowScratch &scratch, Planes out);

}  // namespace vg::VG_LEVEL
