// Rows through maps with real coefficients: bilinear, bicubic, and nearest maps that 16.16 fixed point cannot
// represent; grids of displacements; maps that fold positions outside their image. GPU counterparts:
// executors/cuda/kernels/fetch.py and fused.py; definition: tests/oracle/places.py.
#pragma once
#include "executor.h"
#include "nearest.h"

namespace vg::VG_LEVEL {

struct Scratch;

struct InterpolateScratch {
  Buffer<i64> records;  // [slots, RECORD_FIELDS], see program/coords.py
  Buffer<i16> fractions;  // [2, stride]: bilinear weights of the second taps, along x and along y
  Buffer<i32> weights;  // [4, stride]: pairs of bicubic weights: the first two along x, the last two; along y
  Buffer<u8> is_at_border;  // by pixel: vector loads of its taps would leave the image
  Buffer<i32> along;  // [4, stride]: displacements along two lines of a grid's nodes, x and y of each
  i64 stride;
  i64 middle_offset;  // of the first tap in the middle of the row before, in elements
  i64 even_line, odd_line;  // the lines of nodes that `along` holds, -1 for none
  bool has_grid;  // a grid, or a map that folds, is among the maps
  bool has_seam;  // taps outside the image are folded, or blended with the fill

  i64 *record(i64 i) { return records.at + RECORD_FIELDS * i; }
  bool reserve(i64 slots, i64 row_stride);
};

// Writes the records of the maps in slots first..end; returns their number.
i64 prepare_maps(const Row &row, i64 first, i64 end, Scratch &s);

// Reads row `y` through `count` interpolating maps. With `is_range` (a single map, no point behind the viewer), the
// columns inside are one range, which is returned. Otherwise returns all columns, see `RowScratch::stage`.
template <class Element> Range read_interpolated_row(const Row &row, const ImageOf<Element> &image, i64 slot, i64 count,
                                                     bool is_range, i64 y, i64 width, Scratch &s);

// Finds the pixels that row `y` reads through a nearest map that 16.16 fixed point cannot represent. All columns, see
// `RowScratch::stage`.
void find_real_nearest_row(const Row &row, i64 slot, i64 y, i64 width, Scratch &s);

// Finds the pixels under the positions of row `y` through `count` composed maps (Interpolation CONTAINING_PIXEL). All
// columns.
void find_composed_row(const Row &row, i64 slot, i64 count, i64 y, i64 width, Scratch &s);

// Finds the pixels that row `y` reads through `count` nearest maps, if any of the maps folds (PassSource FOLDED). All
// columns.
void find_folded_row(i64 count, i64 y, i64 width, Scratch &s);

// -- internal to the files of this family ----------------------------------------------------------------------------

// Rounds down to blocks of 16. Counts of positions are such multiples already; this form lets compilers omit the loop's
// remainder.
VG_INLINE i64 floor_to_block(i64 count) { return count & -16; }

// Columns of row `y` at which a map reads inside its window. `sign` -1: columns of points behind the viewer.
Range inside_columns(const i64 *record, i64 y, i64 width, i64 sign);
// Sets the stage of pixels outside a map's window, unless a later map has set it. Returns a range with all other
// pixels.
Range mark_outside(const i64 *record, i64 y, i32 slot, i64 width, i32 *stage);

// Writes positions of columns first..end, rounded up to a block of 16, to `s.row.column` and `s.row.line`. Positions
// have `bits` fraction bits and are less half a pixel, so that their integer part is the first of two taps.
void compute_positions(const i64 *record, i64 y, Range columns, int bits, Scratch &s);

// Values of a linear form along row `y` from column `first` on, shifted right, rounded up to a block of 16. A
// perspective divides them later.
void follow_form(const i64 *form, i64 y, i64 first, i64 count, int shift, i32 *numbers);

// Taps of bilinear samples. Taps of uint8 have 7 fraction bits. Integer results are truncated.
template <class Element> VG_INLINE SumOf<Element> to_tap(Element value) {
  if constexpr (HAS_LEVELS<Element>) return (SumOf<Element>)value << 7;
  else return value;
}
template <class Element> VG_INLINE Element from_tap(SumOf<Element> tap) {
  if constexpr (HAS_LEVELS<Element>) return (Element)(tap >> 7);
  else return (Element)tap;
}

// Rows between a row and the taps that are prefetched with it.
constexpr i64 TAP_ROWS_AHEAD = 8;

// Distance to the taps that a later row reads, in elements: extrapolates the distance from the row before to a row
// whose first tap is at `middle` in its middle. 0 for images that `prefetch_slanted` handles, and if it is far.
template <class Element> VG_INLINE i64 taps_ahead(const ImageOf<Element> &image, i64 middle, InterpolateScratch &maps) {
  const i64 distance = (middle - maps.middle_offset) * TAP_ROWS_AHEAD, line = image.channels * image.width;
  maps.middle_offset = middle;
  const bool is_near = -2 * TAP_ROWS_AHEAD * line < distance && distance < 2 * TAP_ROWS_AHEAD * line;
  return image.bytes() > SLANTED<Element> && is_near ? distance : 0;
}

// Reads the pixels at these positions into the planes.
template <class Element>
void read_bilinear(const ImageOf<Element> &image, const i32 *window, Range columns, Scratch &s);
template <class Element> void read_bicubic(const ImageOf<Element> &image, const i32 *window, Range columns, Scratch &s);
// Reads one pixel, whose taps are clamped to the window.
template <class Element> void read_bilinear_pixel(const ImageOf<Element> &image, const i32 *window, i32 u, i32 v,
                                                  PlanesOf<Element> planes, i64 x);
template <class Element> void read_bicubic_pixel(const ImageOf<Element> &image, const i32 *window, i32 u, i32 v,
                                                 PlanesOf<Element> planes, i64 x);

// Positions of row `y` through `count` maps, including a grid or a map that folds; integer pixels if the
// first map is nearest. Pixels that `stage` marks as outside have an arbitrary position inside.
void compute_displaced_positions(const Row &row, i64 count, i64 y, i64 width, Scratch &s);

// Folds positions of one axis into an image of `n` pixels.
void fold_positions(i32 *positions, i64 width, i64 n, int mode, int bits, i64 slack);
// Applies a map that folds to a row. `is_moved`: to the positions so far, else to the row's pixels.
void fold_through(const i64 *record, i64 y, bool is_moved, int bits, i64 slack, i64 width, Scratch &s);
// Integer source pixels of a row through a nearest map with real coefficients that folds.
void fold_real_row(const f64 *a, const i32 *window, int mode, bool is_perspective, i64 y, i64 width, Scratch &s);
// Reads again the pixels with taps outside the image: folded, or blended with the fill.
template <class Element> void read_seam(const Row &row, const ImageOf<Element> &image, i64 slot, i64 width, Scratch &s);

}  // namespace vg::VG_LEVEL
