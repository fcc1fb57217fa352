// Fills polygons in masks, and traces outlines of masks. See variegate/data/annotated/outlines.py.
#include "stages.h"

namespace vg {
namespace {

// -- polygons to pixels ----------------------------------------------------------------------------------------------

// Clamps a position to 0..limit; 0 for NaN.
i64 clamp_position(f64 position, i64 limit) {
  if (!(position > 0.0)) return 0;
  return position >= (f64)limit ? limit : (i64)position;
}

// The edges of a ring, from each corner to the next.
struct Ring {
  const Point *at;
  i64 count;

  Point after(i64 n) const { return at[n + 1 < count ? n + 1 : 0]; }
};

// The rows that an edge crosses: their centers are from its upper end (inclusive) to its lower end (exclusive).
Range rows_of_edge(Point p, Point q, i64 height) {
  const f64 upper = q.y < p.y ? q.y : p.y, lower = q.y > p.y ? q.y : p.y;
  return {clamp_position(ceil(upper - 0.5), height), clamp_position(ceil(lower - 0.5), height)};
}

Range rows_of_ring(const Ring &ring, i64 height) {
  Range all = {height, 0};
  for (i64 n = 0; n < ring.count; n++) {
    const Range rows = rows_of_edge(ring.at[n], ring.after(n), height);
    if (rows.first < rows.end) all = {min_of(all.first, rows.first), max_of(all.end, rows.end)};
  }
  return all;
}

struct Filler {
  u8 *mask;  // [height, width]
  i64 height, width;
  // [rows of a ring, width + 1]: columns at which pixels change between outside and inside. All zero between rings.
  Buffer<u8> flips;

  // Flips the columns at which the edges of a ring cross rows; returns the first and the last one.
  Range cross(const Ring &ring, Range rows) {
    Range columns = {width, 0};
    for (i64 n = 0; n < ring.count; n++) {
      const Point p = ring.at[n], q = ring.after(n);
      const Range crossed = rows_of_edge(p, q, height);
      const f64 slope = (q.x - p.x) / (q.y - p.y);
      for (i64 row = crossed.first; row < crossed.end; row++) {
        const i64 column = clamp_position(ceil(p.x + ((f64)row + 0.5 - p.y) * slope - 0.5), width);
        flips[(row - rows.first) * (width + 1) + column] ^= 1;
        columns = {min_of(columns.first, column), max_of(columns.end, column)};
      }
    }
    return columns;
  }

  // Sets the pixels between an odd crossing of a row and the next one.
  void set_pixels(Range rows, Range columns) {
    const i64 end = min_of(columns.end + 1, width);
    for (i64 row = rows.first; row < rows.end; row++) {
      u8 *__restrict crossings = flips.at + (row - rows.first) * (width + 1), *__restrict pixels = mask + row * width;
      u8 inside = 0;
      for (i64 column = columns.first; column < end; column++) {
        inside ^= crossings[column];
        crossings[column] = 0;
        pixels[column] |= inside;
      }
      crossings[width] = 0;
    }
  }

  // Fills one ring by the even-odd rule, and extends `area` by the pixels that may have changed, including its last
  // column. False if there is no memory.
  bool fill(const Ring &ring, Rectangle *area) {
    const Range rows = rows_of_ring(ring, height);
    if (rows.first >= rows.end) return true;
    if (!flips.reserve((rows.end - rows.first) * (width + 1))) return false;
    const Range columns = cross(ring, rows);
    set_pixels(rows, columns);
    *area = {min_of(area->top, rows.first), min_of(area->left, columns.first), max_of(area->bottom, rows.end),
             max_of(area->right, columns.end)};
    return true;
  }
};

// -- pixels to polygons ----------------------------------------------------------------------------------------------

enum Side { TOP, RIGHT, BOTTOM, LEFT };

// Traces a mask with a border of zeros along the sides of its pixels.
struct Tracer {
  const u8 *mask;
  i64 pixels, width;

  bool is_top(i64 pixel) const { return mask[pixel] && !mask[pixel - width]; }

  // Traces the ring that begins at the top of pixel `first`: points in the middle of sides. Returns their number.
  // `is_traced`: flags of pixels whose tops have been traced.
  i64 trace(i64 first, u8 *is_traced, Point *points) const {
    const struct {
      i64 ahead, outside;
      f64 x, y;
    } moves[] = {{1, -width, 0.5, 0.0}, {width, 1, 1.0, 0.5}, {-1, width, 0.5, 1.0}, {-width, -1, 0.0, 0.5}};
    i64 pixel = first, length = 0;
    int side = TOP;
    do {
      if (side == TOP) is_traced[pixel] = 1;
      const auto &move = moves[side];
      points[length++] = {(f64)(pixel % width) + move.x, (f64)(pixel / width) + move.y};
      // Two pixels that touch at a corner only belong to separate edges.
      if (!mask[pixel + move.ahead]) {
        side = (side + 1) % 4;
      } else if (!mask[pixel + move.ahead + move.outside]) {
        pixel += move.ahead;
      } else {
        pixel += move.ahead + move.outside;
        side = (side + 3) % 4;
      }
    } while (pixel != first || side != TOP);
    return length;
  }
};

// A piece of a ring, from one kept point to the next.
struct Piece {
  i64 begin, end;
};

// The point of a piece that is farthest from the line between its ends; -1 if all are within the tolerance.
i64 farthest_point(const Point *points, i64 length, Piece piece, f64 tolerance) {
  const Point from = points[piece.begin], to = points[piece.end % length];
  const f64 way_x = to.x - from.x, way_y = to.y - from.y, square = way_x * way_x + way_y * way_y;
  const f64 divisor = square < 1e-12 ? 1e-12 : square;
  f64 most = tolerance;
  i64 farthest = -1;
  for (i64 k = piece.begin + 1; k < piece.end; k++) {
    const f64 apart_x = points[k].x - from.x, apart_y = points[k].y - from.y;
    const f64 fraction = clamp((apart_x * way_x + apart_y * way_y) / divisor, 0.0, 1.0);
    const f64 away = hypot(apart_x - fraction * way_x, apart_y - fraction * way_y);
    if (away > most) {
      most = away;
      farthest = k;
    }
  }
  return farthest;
}

// The Douglas-Peucker algorithm. Keeps the outermost points, so that the ring's bounds do not change. `pieces`: room
// for length + 8.
void simplify(const Point *points, i64 length, f64 tolerance, u8 *is_kept, Piece *pieces) {
  i64 left = 0, top = 0, right = 0, bottom = 0;
  for (i64 k = 0; k < length; k++) {
    left = points[k].x < points[left].x ? k : left;
    right = points[k].x > points[right].x ? k : right;
    top = points[k].y < points[top].y ? k : top;
    bottom = points[k].y > points[bottom].y ? k : bottom;
  }
  memset(is_kept, 0, (size_t)length);
  is_kept[0] = is_kept[left] = is_kept[top] = is_kept[right] = is_kept[bottom] = 1;
  i64 waiting = 0, begin = 0;
  for (i64 k = 1; k <= length; k++)
    if (k == length || is_kept[k]) {
      pieces[waiting++] = {begin, k};
      begin = k;
    }
  while (waiting > 0) {
    const Piece piece = pieces[--waiting];
    const i64 farthest = farthest_point(points, length, piece, tolerance);
    if (farthest < 0) continue;
    is_kept[farthest] = 1;
    pieces[waiting++] = {piece.begin, farthest};
    pieces[waiting++] = {farthest, piece.end};
  }
}

}  // namespace

// Sets the pixels of a mask, u8[height, width], whose centers are inside a ring, by the even-odd rule. `points`: x and
// y, f64[count, 2]; `ends`: end of each ring's points. `area`: top, left, bottom and right of the pixels that may have
// changed. Points may be any numbers; UNSUPPORTED if `ends` are outside the points.
VG_EXPORT i64 vg_fill_rings(const f64 *points, i64 count, const i64 *ends, i64 rings, u8 *mask, i64 height, i64 width,
                            i64 *area) {
  Filler filler = {mask, height, width, {}};
  Rectangle all = {height, width, 0, 0};
  i64 begin = 0;
  for (i64 r = 0; r < rings; begin = ends[r++]) {
    if (ends[r] < begin || ends[r] > count) return UNSUPPORTED;
    if (!filler.fill({(const Point *)points + begin, ends[r] - begin}, &all)) return OUT_OF_MEMORY;
  }
  memcpy(area, &all, sizeof all);
  return OK;
}

// Counts the outer sides of a mask's pixels, and the tops among them: counts i64[2]. `mask`: u8[pixels] in lines of
// `width`, with a border of zeros.
VG_EXPORT void vg_count_sides(const u8 *mask, i64 pixels, i64 width, i64 *counts) {
  counts[0] = counts[1] = 0;
  for (i64 pixel = width; pixel < pixels - width; pixel++) {
    if (!mask[pixel]) continue;
    counts[0] += !mask[pixel - width] + !mask[pixel + width] + !mask[pixel - 1] + !mask[pixel + 1];
    counts[1] += !mask[pixel - width];
  }
}

// Traces and simplifies the outlines of such a mask: outer rings clockwise, holes counter-clockwise. Writes x and y of
// points, f64[sides, 2], and ends of rings, i64[tops]. Returns the number of rings, or -1 if there is no memory.
VG_EXPORT i64 vg_trace(const u8 *mask, i64 pixels, i64 width, i64 sides, f64 tolerance, f64 *kept, i64 *ends) {
  Buffer<Point> points;
  Buffer<Piece> pieces;
  Buffer<u8> is_traced, is_kept;
  if (!points.reserve(sides) || !pieces.reserve(sides + 8) || !is_traced.reserve(pixels) || !is_kept.reserve(sides))
    return -1;
  const Tracer tracer = {mask, pixels, width};
  i64 rings = 0, count = 0;
  for (i64 first = width; first < pixels - width; first++) {
    // Every ring has a top side; a hole's is at the pixel below the hole.
    if (!tracer.is_top(first) || is_traced[first]) continue;
    const i64 length = tracer.trace(first, is_traced.at, points.at);
    simplify(points.at, length, tolerance, is_kept.at, pieces.at);
    for (i64 k = 0; k < length; k++)
      if (is_kept[k]) {
        memcpy(kept + 2 * count, &points[k], sizeof(Point));
        count++;
      }
    ends[rings++] = count;
  }
  return rings;
}

}  // namespace vg
