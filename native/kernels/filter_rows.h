// Functions of each family of filters, which `filters.cpp` calls.
#pragma once
#include "scratch.h"

namespace vg::VG_LEVEL {

// The input image of a filter, in planes.
template <class Element> struct FilterImageOf {
  Element *first;
  i64 stride, height, width, channels;

  Element *line(i64 y, i64 channel) const { return first + (3 * y + channel) * stride; }
  // Elements from a line of a plane to the next line.
  i64 step() const { return 3 * stride; }
};
using FilterImage = FilterImageOf<u8>;

// Pillow's blend with SMOOTH. `factor`: SHARPNESS's first argument.
void prepare_sharpen(f32 factor, SharpenScratch &sharpen);
template <class Element>
void sharpen_row(const FilterImageOf<Element> &image, i64 y, const SharpenScratch &sharpen, PlanesOf<Element> out);
void sharpen_row(const FilterImage &image, i64 y, const SharpenScratch &sharpen, Planes out);

// CONVOLVE of a separable kernel, or its unsharp mask. `a`: arguments, see native/lowering/kernel_weights.cpp.
template <class Element>
bool prepare_blur(const FilterImageOf<Element> &image, const Row &row, const f64 *a, BlurScratch &blur);
bool prepare_blur(const FilterImage &image, const Row &row, const f64 *a, BlurScratch &blur);
// The part of the preparation that all images need. `step`: elements between lines.
bool prepare_lines(i64 height, i64 step, const f64 *a, BlurScratch &blur);
template <class Element>
void blur_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, BlurScratch &blur, PlanesOf<Element> out);
void blur_row(const FilterImage &image, i64 y, const f64 *a, BlurScratch &blur, Planes out);
// Continues a row between the passes of a blur by `radius` values on both sides, mirrored.
template <class Value> VG_NOINLINE void mirror_edges(Value *row, i64 width, i64 radius) {
  Value *last = row + width - 1;
  const bool is_wide = radius + 1 < width;
  for (i64 i = 1; i <= radius; i++) {
    row[-i] = row[is_wide ? i : reflect(-i, width)];
    last[i] = row[is_wide ? width - 1 - i : reflect(width - 1 + i, width)];
    // Prevents vectorization: for a few pixels, the setup of vectors takes longer than the pixels.
    __asm__ volatile("" ::: "memory");
  }
}

// CONVOLVE of full kernels. `spare`: a row for the results of the second kernel and later ones.
template <class Element> bool prepare_convolution(const FilterImageOf<Element> &image, const f64 *a, BlurScratch &blur);
bool prepare_convolution(const FilterImage &image, const f64 *a, BlurScratch &blur);
template <class Element> void convolve_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, const Row &row,
                                           BlurScratch &blur, Element *spare, PlanesOf<Element> out);
void convolve_row(const FilterImage &image, i64 y, const f64 *a, const Row &row, BlurScratch &blur, u8 *spare,
                  Planes out);

// MEDIAN of a window of 3 x 3, 5 x 5 or 7 x 7. `columns`: room for `size` rows of `stride` elements.
template <class Element> void median_row(const FilterImageOf<Element> &image, i64 y, i64 size, Element *columns,
                                         i64 stride, PlanesOf<Element> out);
// MORPHOLOGY. `cells`: room for the cells of the structuring element.
template <class Element>
void morphology_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, i64 *cells, PlanesOf<Element> out);

// CLAHE. `a`: arguments.
bool prepare_tiles(const FilterImage &image, const f64 *a, TileScratch &tiles);
// Computes the tables of all tiles, after prepare_tiles. False if there is no memory.
bool measure_tiles(const FilterImage &image, const f64 *a, TileScratch &tiles);
void equalize_row(const FilterImage &image, i64 y, TileScratch &tiles, Planes out);

}  // namespace vg::VG_LEVEL
