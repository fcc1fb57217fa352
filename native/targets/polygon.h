// Convex polygons: boxes on their way through the steps of a program.
#pragma once
#include "stages.h"

namespace vg {

// A cut adds one corner at most; more than these are never needed.
constexpr i64 MAX_CORNERS = 96;

struct Polygon {
  i64 count;
  Point at[MAX_CORNERS];

  Point after(i64 n) const { return at[n + 1 < count ? n + 1 : 0]; }
};

// a x + b y + c, which is 0 or more on the inner side of a line.
struct Line {
  f64 a, b, c;

  f64 at(Point p) const { return a * p.x + b * p.y + c; }
};

// Cuts off what lies on a line's outer side.
void cut(Polygon *polygon, const Line &line);
void cut_to(Polygon *polygon, const Box &box);

// Negative where corners go around the other way.
f64 twice_area(const Polygon &polygon);
VG_INLINE f64 area(const Polygon &polygon) { return fabs(twice_area(polygon)) * 0.5; }

// Inverted for no corners.
Box bounds(const Polygon &polygon);
void set_box(Polygon *polygon, const Box &box);

// A polygon by a grid, whose greatest displacement is `far`. `size`: height and width of the grid's output.
void bend(Polygon *polygon, const Grid &grid, const i64 *size, f64 far);

}  // namespace vg
