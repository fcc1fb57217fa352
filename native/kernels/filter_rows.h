// The families of filters: what `filters.cpp` calls.
#pragma once
#include "scratch.h"

namespace vg::VG_LEVEL {

// The image that a filter sees, in planes.
struct FilterImage {
  u8 *first;
  i64 stride, height, width, channels;

  u8 *line(i64 y, i64 channel) const { return first + (3 * y + channel) * stride; }
  // Bytes from a plane's line to its next one.
  i64 step() const { return 3 * stride; }
};

// Repeats the outermost pixels of all lines on both sides. Rows have a margin of at least `radius`.
void repeat_edges(const FilterImage &image, i64 radius);

// Pillow's blend with SMOOTH. `factor`: SHARPNESS's first argument.
void prepare_sharpen(f32 factor, SharpenScratch &sharpen);
void sharpen_row(const FilterImage &image, i64 y, const SharpenScratch &sharpen, Planes out);

// CONVOLVE of a separable kernel, and an unsharp mask of it. `a`: its arguments, see program/lowering/blurs.py.
bool prepare_blur(const FilterImage &image, const f64 *a, const i16 *kernels, BlurScratch &blur);
void blur_row(const FilterImage &image, i64 y, BlurScratch &blur, Planes out);
// CONVOLVE of full kernels. `spare`: a row for all but the first one.
bool prepare_convolution(const f64 *a, BlurScratch &blur);
void convolve_row(const FilterImage &image, i64 y, const f64 *a, const i16 *kernels, BlurScratch &blur, u8 *spare,
                  Planes out);

// MEDIAN of a window of 3, 5 or 7 to the square. `columns`: room for as many rows of `stride` bytes.
void median_row(const FilterImage &image, i64 y, i64 size, u8 *columns, i64 stride, Planes out);
// MORPHOLOGY. `cells`: room for the element's.
void morphology_row(const FilterImage &image, i64 y, const f64 *a, i64 *cells, Planes out);

// CLAHE. `a`: its arguments.
bool prepare_tiles(const FilterImage &image, const f64 *a, TileScratch &tiles);
// Tables of all tiles, once they are prepared. False if there is no memory.
bool measure_tiles(const FilterImage &image, const f64 *a, TileScratch &tiles);
void equalize_row(const FilterImage &image, i64 y, TileScratch &tiles, Planes out);

}  // namespace vg::VG_LEVEL
