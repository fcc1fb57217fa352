// Regions that grow cell by cell, converted to rectangles. See `grow` in variegate/ops/erase.py for the algorithm.
#include "../philox.h"

namespace vg {
namespace {

enum Cell : i8 { FREE, WAITING, COVERED };

// An image of squares of `side` pixels.
struct Growth {
  i64 height, width, side, lines, columns;
  u32 key_0, key_1;
  i8 *cells;
  i32 *waiting;  // free neighbors of the region
  i64 num_waiting;

  i64 pixels_of(i64 y, i64 x) const {
    return (min_of(height, (y + 1) * side) - y * side) * (min_of(width, (x + 1) * side) - x * side);
  }

  void add_neighbor(i64 y, i64 x) {
    if (y < 0 || y >= lines || x < 0 || x >= columns || cells[y * columns + x] != FREE) return;
    cells[y * columns + x] = WAITING;
    waiting[num_waiting++] = (i32)(y * columns + x);
  }

  // Grows from `seeds` cells until `pixels` are covered.
  void grow(i64 seeds, i64 pixels) {
    memset(cells, FREE, (size_t)(lines * columns));
    num_waiting = 0;
    PhiloxWords words = {};
    i64 covered = 0;
    for (i64 step = 0; covered < pixels && (step < seeds || num_waiting > 0); step++) {
      if (step % 4 == 0) words = philox4x32({{(u32)(step / 4), 0, 0, 0}}, key_0, key_1);
      const u64 word = words.at[step % 4];
      i64 cell;
      if (step < seeds) {
        cell = (i64)(word * (u64)(lines * columns) >> 32);
      } else {
        const i64 position = (i64)(word * (u64)num_waiting >> 32);
        cell = waiting[position];
        waiting[position] = waiting[--num_waiting];
      }
      if (cells[cell] == COVERED) continue;
      cells[cell] = COVERED;
      const i64 y = cell / columns, x = cell % columns;
      covered += pixels_of(y, x);
      add_neighbor(y - 1, x);
      add_neighbor(y + 1, x);
      add_neighbor(y, x - 1);
      add_neighbor(y, x + 1);
    }
  }

  // Writes the covered runs of lines as rectangles [.., 4]: top, left, height, width. Merges a run with an equal run
  // above. Returns the number of rectangles.
  i64 write_rectangles(i64 *rectangles) {
    // By column: the rectangle that begins there and extends to this line.
    i32 *open = waiting;
    i64 count = 0;
    for (i64 x = 0; x < columns; x++) open[x] = -1;
    for (i64 y = 0; y < lines; y++) {
      for (i64 x = 0; x < columns;) {
        const i64 first = x;
        while (x < columns && cells[y * columns + x] == COVERED) x++;
        if (x == first) {
          open[x++] = -1;
          continue;
        }
        i64 *above = open[first] < 0 ? nullptr : rectangles + 4 * open[first];
        if (above && above[3] == (x - first) * side && above[0] + above[2] == y * side) {
          above[2] += side;
          continue;
        }
        open[first] = (i32)count;
        i64 *added = rectangles + 4 * count++;
        added[0] = y * side;
        added[1] = first * side;
        added[2] = side;
        added[3] = (x - first) * side;
      }
    }
    return count;
  }
};

}  // namespace

// Grows regions of `rows` images: `keys` u32[rows, 2], `sizes` i64[rows, 2], `sides`, `seeds`, `pixels` i64[rows];
// `most_cells`: maximal cells of an image. `rectangles` has room for all images; `counts`: number of rectangles per
// image.
VG_EXPORT i64 vg_grow_regions(i64 rows, const u32 *keys, const i64 *sizes, const i64 *sides, const i64 *seeds,
                              const i64 *pixels, i64 most_cells, i64 *rectangles, i64 *counts) {
  Buffer<i8> cells;
  Buffer<i32> waiting;
  if (!cells.reserve(most_cells) || !waiting.reserve(most_cells)) return OUT_OF_MEMORY;
  for (i64 n = 0; n < rows; n++) {
    const i64 height = sizes[2 * n], width = sizes[2 * n + 1], side = sides[n];
    Growth growth = {
        height,   width,      side, ceil_div(height, side), ceil_div(width, side), keys[2 * n], keys[2 * n + 1],
        cells.at, waiting.at, 0};
    growth.grow(seeds[n], pixels[n]);
    counts[n] = growth.write_rectangles(rectangles);
    rectangles += 4 * counts[n];
  }
  return OK;
}

}  // namespace vg
