// Rows through real maps: bilinear, bicubic, and nearest ones that fixed point does not hold; grids of displacements;
// maps that fold what lies beyond their image.
#pragma once
#include "executor.h"

namespace vg {
namespace VG_LEVEL {

struct Scratch;

struct InterpolateScratch {
  Buffer<i64> records;  // [slots, RECORD_FIELDS], see program/places.py
  Buffer<i32> tap_weights;
  Buffer<i32> masks;
  Buffer<i32> along;  // [4, stride]: displacements along two lines of a grid's nodes, x and y of each
  i64 even_line, odd_line;  // the lines of nodes that `along` holds, -1 for none
  bool has_grid;  // a grid, or a map that folds, is among the maps
  bool has_seam;  // neighbours across a border are others than those along it

  i64 *record(i64 i) { return records.at + RECORD_FIELDS * i; }
  bool reserve(i64 slots, i64 stride);
};

// Records of the maps in slots first..end; returns how many they are.
i64 prepare_maps(const Row &row, i64 first, i64 end, Scratch &s);

// Row `y` through `count` maps that interpolate. `is_range`: one map, with nothing behind the viewer, whose inside is a
// range of columns, which is returned; else all columns, see `RowScratch::stage`.
Range read_interpolated_row(const Row &row, const Image &image, i64 slot, i64 count, bool is_range, i64 y, i64 width,
                            Scratch &s);

// Row `y` of a nearest map that 16.16 fixed point does not hold. All columns.
void read_real_nearest_row(const Row &row, const Image &image, i64 slot, i64 y, i64 width, Scratch &s);

// Row `y` through `count` nearest maps, some of which fold (PassSource FOLDED). All columns.
void read_folded_row(const Row &row, const Image &image, i64 count, i64 y, i64 width, Scratch &s);

}  // namespace VG_LEVEL
}  // namespace vg
