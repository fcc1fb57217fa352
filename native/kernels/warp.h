// Filters with distant reads: ZOOM_BLUR, ABERRATION, SCATTER. GPU counterpart: executors/cuda/kernels/warp.py.
#pragma once
#include "filter_rows.h"

namespace vg::VG_LEVEL {

// ZOOM_BLUR. `a`: arguments.
bool prepare_zoom(i64 width, const f64 *a, ZoomScratch &zoom);
template <class Element>
void zoom_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, ZoomScratch &zoom, PlanesOf<Element> out);
// ABERRATION.
template <class Element>
void bend_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, RowScratch &scratch, PlanesOf<Element> out);
// SCATTER.
template <class Element> void scatter_row(const Row &row, const FilterImageOf<Element> &image, i64 y, const f64 *a,
                                          RowScratch &scratch, PlanesOf<Element> out);

}  // namespace vg::VG_LEVEL
