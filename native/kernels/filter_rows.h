// The families of filters: what `filters.cpp` calls.
#pragma once
#include "scratch.h"

namespace vg::VG_LEVEL {

// The image that a filter sees, in planes.
template <class Element> struct FilterImageOf {
  Element *first;
  i64 stride, height, width, channels;

  Element *line(i64 y, i64 channel) const { return first + (3 * y + channel) * stride; }
  // Elements from a plane's line to its next one.
  i64 step() const { return 3 * stride; }
};
using FilterImage = FilterImageOf<u8>;

// Pillow's blend with SMOOTH. `factor`: SHARPNESS's first argument.
void prepare_sharpen(f32 factor, SharpenScratch &sharpen);
template <class Element>
void sharpen_row(const FilterImageOf<Element> &image, i64 y, const SharpenScratch &sharpen, PlanesOf<Element> out);

// CONVOLVE of a separable kernel, and an unsharp mask of it. `a`: its arguments, see program/lowering/blurs.py.
bool prepare_blur(i64 height, i64 width, i64 step, const f64 *a, const i16 *kernels, BlurScratch &blur);
template <class Element>
void blur_row(const FilterImageOf<Element> &image, i64 y, BlurScratch &blur, PlanesOf<Element> out);
// CONVOLVE of full kernels. `spare`: a row for all but the first one.
bool prepare_convolution(const f64 *a, BlurScratch &blur);
template <class Element> void convolve_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, const i16 *kernels,
                                           BlurScratch &blur, Element *spare, PlanesOf<Element> out);

// MEDIAN of a window of 3, 5 or 7 to the square. `columns`: room for as many rows of `stride` elements.
template <class Element> void median_row(const FilterImageOf<Element> &image, i64 y, i64 size, Element *columns,
                                         i64 stride, PlanesOf<Element> out);
// MORPHOLOGY. `cells`: room for the element's.
template <class Element>
void morphology_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, i64 *cells, PlanesOf<Element> out);

// CLAHE. `a`: its arguments.
bool prepare_tiles(const FilterImage &image, const f64 *a, TileScratch &tiles);
// Tables of all tiles, once they are prepared. False if there is no memory.
bool measure_tiles(const FilterImage &image, const f64 *a, TileScratch &tiles);
void equalize_row(const FilterImage &image, i64 y, TileScratch &tiles, Planes out);

}  // namespace vg::VG_LEVEL
