// Rows that are copied, or gathered through nearest maps in fixed point or tables. GPU counterparts: `trace_maps` and
// `trace_tables` in executors/cuda/kernels/fetch.py.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

struct NearestScratch {
  Buffer<i32> maps;  // [slots, 16]: the maps of a chain, packed
  Buffer<u8> turned;  // [16 / size of an element, 3, stride] elements: adjacent columns of the source
  i64 turned_column;  // the first of them, -1 for none
};

// The part of output row `y` that an integer map (without a quarter turn) copies, and its begin in the source.
struct RowCopy {
  Range columns;
  i64 first_pixel;
  bool is_mirrored;
};
RowCopy row_copy(i64 image_width, const f64 *a, const i32 *window, i64 y, i64 width);

// Copies `count` pixels from index `first` of the image to planes, from column `at` on.
template <class Element> void copy_pixels(const ImageOf<Element> &image, i64 first, i64 count, bool is_mirrored,
                                          PlanesOf<Element> planes, i64 at);

// Allocates the columns of a map that exchanges columns and lines. False if there is no memory.
template <class Element> bool prepare_turn(const f64 *a, i64 channels, Scratch &s);
// Reads row `y` through one map in fixed point; returns the columns inside.
template <class Element> Range read_fixed_row(const ImageOf<Element> &image, const f64 *a, const i32 *window, i64 y,
                                              i64 width, PlanesOf<Element> planes, Scratch &s);

// Packs the first `count` maps of `s.tables.map_slots`. False if there is no memory.
bool prepare_chain(const Row &row, i64 count, Scratch &s);
// Finds the pixels that row `y` reads through several maps. Each rounds as a single map does. All columns, see
// `RowScratch::stage`.
void find_chain_row(i64 count, i64 y, i64 width, Scratch &s);

// Copies the pixels at `column` and `line`, all inside the image, to the planes. `y`: 0 at the first row of a pass.
template <class Element> void read_coordinates(const ImageOf<Element> &image, i64 y, i64 width, Scratch &s);

// Columns and lines of a map that reads through tables (MAP_SCALE, MAP_PAD).
void prepare_tables(const Row &row, i64 slot, i64 image_height, i64 image_width, i64 height, i64 width, Scratch &s);
template <class Element>
void read_table_row(const ImageOf<Element> &image, i64 slot, i64 y, i64 width, PlanesOf<Element> planes, Scratch &s);

// Size of an image, in bytes, whose slanted rows are prefetched with the first: it fits into the second-level cache. Of
// larger images of uint16 and float32, each row prefetches what later rows read.
template <class Element> constexpr i64 SLANTED = HAS_LEVELS<Element> ? 1 << 19 : 1 << 18;

// Prefetches a small image if its rows are read slanted, because hardware prefetchers do not predict such reads.
// `slant`: source lines per output column.
template <class Element> void prefetch_slanted(const ImageOf<Element> &image, f64 slant, i64 width) {
  // Number of source lines that hardware prefetchers track.
  constexpr f64 FOLLOWED = 8;
  if (fabs(slant) * (f64)width > FOLLOWED && image.bytes() <= SLANTED<Element>) prefetch(image.pixels, image.bytes());
}

// Fills the columns outside of a range or, after a chain, the columns that left the image at each of `count` maps.
template <class Element>
void fill_outside(PlanesOf<Element> planes, i64 channels, const Element *color, Range inside, i64 width);
template <class Element> void fill_by_stage(i64 count, i64 width, Scratch &s);

}  // namespace vg::VG_LEVEL
