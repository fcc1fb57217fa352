// Convex polygons: boxes during transformation by the stages of a program.
#pragma once
#include "stages.h"

namespace vg {

// Maximal number of corners; a cut adds at most one.
constexpr i64 MAX_CORNERS = 96;

struct Polygon {
  i64 count;
  Point at[MAX_CORNERS];

  Point after(i64 n) const { return at[n + 1 < count ? n + 1 : 0]; }
};

// a x + b y + c, which is at least 0 on the inner side of a line.
struct Line {
  f64 a, b, c;

  f64 at(Point p) const { return a * p.x + b * p.y + c; }
};

// Clips the polygon to a line's inner side.
void cut(Polygon *polygon, const Line &line);
void cut_to(Polygon *polygon, const Box &box);

// Twice the signed area: negative for the opposite orientation.
f64 twice_area(const Polygon &polygon);
VG_INLINE f64 area(const Polygon &polygon) { return fabs(twice_area(polygon)) * 0.5; }

// The bounding box; inverted without corners.
Box bounds(const Polygon &polygon);
void set_box(Polygon *polygon, const Box &box);

// Transforms a polygon by a grid, whose greatest displacement is `far`. `size`: height and width of the grid's output.
void bend(Polygon *polygon, const Grid &grid, const i64 *size, f64 far);

}  // namespace vg
