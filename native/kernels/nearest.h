// Rows that are copied, or gathered through nearest maps in fixed point and tables.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

struct NearestScratch {
  Buffer<i32> maps;  // [slots, 16]: the maps of a chain, packed
};

// The part of output row `y` that a map of whole pixels (no quarter turn) copies, and where it begins in the source.
struct RowCopy {
  Range columns;
  i64 first_pixel;
  bool is_mirrored;
};
RowCopy row_copy(const Image &image, const f64 *a, const i32 *window, i64 y, i64 width);

// `count` pixels from number `first` of the image into planes, from column `at` on.
void copy_pixels(const Image &image, i64 first, i64 count, bool is_mirrored, Planes planes, i64 at);

// Row `y` of one map in fixed point; returns the part that is inside.
Range read_fixed_row(const Image &image, const f64 *a, const i32 *window, i64 y, i64 width, Planes planes, Scratch &s);

// Packs the maps of a chain (`s.tables.map_slots`, `count`). False if there is no memory.
bool prepare_chain(const Row &row, i64 count, Scratch &s);
// Row `y` of several maps, each rounding as it would alone; all columns, see `RowScratch::stage`.
void read_chain_row(const Image &image, i64 count, i64 y, i64 width, Scratch &s);

// The pixels at `column` and `line`, all inside the image, into the planes. `y`: 0 at the first row of a pass.
void read_coordinates(const Image &image, i64 y, i64 width, Scratch &s);

// Columns and lines of a map that reads through tables (MAP_SCALE, MAP_PAD).
void prepare_tables(const Row &row, i64 slot, const Image &image, i64 height, i64 width, Scratch &s);
void read_table_row(const Image &image, i64 slot, i64 y, i64 width, Planes planes, Scratch &s);

// Brings a small image into the cache at once where its rows are read slanted: no processor foresees these.
// `slant`: source lines per output column.
void prefetch_slanted(const Image &image, f64 slant, i64 width);

// Colors the columns outside of a range, or (after a chain) those that left at each of `count` maps.
void fill_outside(Planes planes, i64 channels, const u8 *color, Range inside, i64 width);
void fill_by_stage(i64 count, i64 width, Scratch &s);

}  // namespace vg::VG_LEVEL
