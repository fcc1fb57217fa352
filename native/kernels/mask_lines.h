// Lines of masks: positions of pixels followed back through steps, by tables, affine maps and grids of displacements.
#pragma once
#include "../targets/stages.h"

namespace vg::VG_LEVEL {

// Memory for the lines of a region, each array as long as its longer side.
struct LineScratch {
  f64 *table[2];     // what its columns, and its lines, read, where one does not depend on the other
  u8 *is_inside[2];  // of the tables
  f64 *x, *y;        // positions of a line; x is NaN if a step has left its image
  i32 *cells;        // of a grid: the node left of each column, and the fraction towards the next
  f64 *fractions;
  f64 *displaced[2][2];  // of a grid's even and odd line: displacements along x and y, by column
  i64 cached_lines[2];           // which lines these are; -1 for none
  i64 borders[4];        // of the line before, by axis and side: the first column beyond it
};

// The steps from a region's pixels to the pixels that they read.
struct Path {
  const Stages *all;
  i64 first, last;  // steps that tables do not cover; there are none if last < first
  bool is_transposed;   // tables of columns are positions along y

  bool is_covered() const { return last < first; }
  Stage last_step() const { return {all, last}; }
};

// Fills the tables of a region.
Path fill_tables(const Stages *all, const MaskRegion &region, LineScratch &scratch);

// What the columns of a region read: those inside, and how their positions run.
struct Extent {
  Range columns;  // from the first inside to the last
  bool is_contiguous;    // all between are inside
  int direction;    // positions rise (1) or fall (-1), of a contiguous extent; else 0
};
Extent extent_of(const f64 *table, const u8 *is_inside, i64 count);

// Pixels of a line that its columns read, in a row: these are copied at once.
enum Run { ANY_ORDER, ASCENDING, DESCENDING };
// Fills in the pixels that columns read, `step` apart, -1 for none.
Run fill_positions(const f64 *table, const u8 *is_inside, i64 step, Range columns, i32 *positions);

// The columns that are inside of what an affine step reads in a line. `borders`: of the line before, updated.
Range columns_inside(const Stage &stage, const f64 *table, f64 v, Range columns, bool rises, i64 *borders);
// Pixels by an affine step of columns that are all inside; or their positions, for the steps before.
void affine_positions(const f64 *m, const f64 *table, f64 v, i64 image_width, Range columns, i32 *positions);
void affine_line(const Stage &stage, f64 v, Range columns, LineScratch &scratch);

void prepare_grid(const Grid &grid, i64 end, LineScratch &scratch);
// Positions of a line by a grid.
void grid_line(const Stage &stage, f64 v, Range columns, LineScratch &scratch);

// Positions of a line through steps, from `last` back to `first`.
void follow_line(const Stages *all, i64 last, i64 first, Range columns, LineScratch &scratch);
// Pixels at these positions, -1 for none.
void write_positions(const LineScratch &scratch, i64 image_width, Range columns, i32 *positions);

}  // namespace vg::VG_LEVEL
