// Transforms polygons by grids of displacements: scans from all four sides for pixels that read inside the polygon.
#include "polygon.h"

namespace vg {
namespace {

// The first line with pixels that read inside the polygon, and the first such position along it; NaN for none.
struct Border {
  f64 line, along;

  bool is_missing() const { return isnan(line); }
};

struct Scan {
  const Grid &grid;
  const Box &box;  // of the polygon
  i64 count;
  Line sides[MAX_CORNERS];

  Scan(const Grid &grid, const Polygon &polygon, const Box &box) : grid(grid), box(box), count(polygon.count) {
    const f64 sign = twice_area(polygon) >= 0.0 ? 1.0 : -1.0;
    for (i64 n = 0; n < count; n++) {
      const Point p = polygon.at[n], next = polygon.after(n);
      const f64 a = sign * (p.y - next.y), b = sign * (next.x - p.x);
      sides[n] = {a, b, -a * p.x - b * p.y};
    }
  }

  // True if the segment between two positions intersects the polygon.
  bool meets(Point p, Point next) const {
    f64 begin = 0.0, end = 1.0;
    for (i64 n = 0; n < count; n++) {
      const f64 here = sides[n].at(p), there = sides[n].at(next);
      if (here < 0.0 && there < 0.0) return false;
      if (here < 0.0) begin = larger(begin, here / (here - there));
      else if (there < 0.0) end = smaller(end, here / (here - there));
    }
    return begin <= end && count > 2;
  }

  // True if both positions are outside the same side of the box.
  bool miss_box(Point p, Point q) const {
    return (p.x < box.low[0] && q.x < box.low[0]) || (p.x > box.high[0] && q.x > box.high[0]) ||
           (p.y < box.low[1] && q.y < box.low[1]) || (p.y > box.high[1] && q.y > box.high[1]);
  }

  // The first position along a line (axis 1) or column (axis 0) that reads inside the polygon, accurate to a pixel; NaN
  // for none.
  f64 hit(int axis, f64 line, Range along) const {
    const f64 low = (f64)along.first, high = (f64)along.end;
    Point last = {NAN, NAN};
    for (i64 n = along.first; n < along.end + 2; n++) {
      const f64 across = smaller(larger((f64)n - 0.5, low), high);
      const Point p = grid.source(axis == 1 ? Point{across, line} : Point{line, across});
      if (n > along.first && !miss_box(p, last) && meets(last, p)) return across;
      last = p;
    }
    return NAN;
  }

  bool misses(int axis, f64 line, Range along) const;
  Border border(int axis, i64 begin, i64 end, Range along) const;
};

// The nodes of an axis that affect positions from `low` to `high`; node 0 for NaN.
Range nodes_between(const Grid &grid, int axis, f64 low, f64 high) {
  const i64 first = to_i64(grid.node(low, axis)), last = to_i64(grid.node(high, axis)) + 1;
  const i64 most = grid.count[axis] - 1;
  return {min_of(max_of<i64>(first, 0), most), min_of(max_of<i64>(last, 0), most) + 1};
}

// True if all displacements along a line are too small to read inside the polygon's box.
bool Scan::misses(int axis, f64 line, Range along) const {
  constexpr f64 ROUNDING = 1e-6;
  const int other = 1 - axis;
  const Range range = nodes_between(grid, other, (f64)along.first, (f64)along.end);
  const f64 node = grid.node(line, axis);
  const i64 cell = grid.cell(node, axis), step = grid.stride(other);
  const f64 fraction = node - (f64)cell;
  const i16 *values = grid.nodes + cell * grid.stride(axis) + axis;
  const i64 next = grid.count[axis] > 1 ? grid.stride(axis) : 0;
  f64 least = INFINITY, most = -INFINITY;
  for (i64 n = range.first; n < range.end; n++) {
    const f64 value = values[n * step] * (1.0 - fraction) + values[n * step + next] * fraction;
    least = smaller(least, value);
    most = larger(most, value);
  }
  return line + most * grid.unit < box.low[axis] - ROUNDING || line + least * grid.unit > box.high[axis] + ROUNDING;
}

// The border of the pixels that read inside the polygon, from line (axis 1) or column (axis 0) `begin` towards `end`.
Border Scan::border(int axis, i64 begin, i64 end, Range along) const {
  constexpr int HALVINGS = 3;
  const f64 step = end > begin ? 1 : -1;
  f64 outside = (f64)begin, line = (f64)begin + 0.5 * step;
  f64 found = hit(axis, outside, along);
  if (!isnan(found)) return {outside, found};
  for (; ((f64)end - line) * step > 0.0; outside = line, line += step) {
    if (misses(axis, line, along)) continue;
    found = hit(axis, line, along);
    if (isnan(found)) continue;
    f64 inside = line;
    for (int n = 0; n < HALVINGS; n++) {
      const f64 middle = 0.5 * (inside + outside), here = hit(axis, middle, along);
      if (isnan(here)) {
        outside = middle;
      } else {
        inside = middle;
        found = here;
      }
    }
    return {outside, found};
  }
  return {NAN, NAN};
}

// The range of columns (axis 0) or lines (axis 1) that can read inside the box, plus one pixel on each side.
Range between_lines(const Grid &grid, const Box &box, f64 far, int axis, i64 size) {
  const Range lines = nodes_between(grid, 1, box.low[1] - far, box.high[1] + far);
  const Range columns = nodes_between(grid, 0, box.low[0] - far, box.high[0] + far);
  i16 least = INT16_MAX, most = INT16_MIN;
  for (i64 i = lines.first; i < lines.end; i++)
    for (i64 j = columns.first; j < columns.end; j++) {
      const i16 value = grid.nodes[2 * (i * grid.count[0] + j) + axis];
      least = min_of(least, value);
      most = max_of(most, value);
    }
  const bool is_empty = lines.first >= lines.end || columns.first >= columns.end;
  const f64 low = is_empty ? INFINITY : least, high = is_empty ? -INFINITY : most;
  const i64 begin = minus(to_i64(floor(box.low[axis] - high * grid.unit)), 1);
  const i64 end = plus(to_i64(ceil(box.high[axis] - low * grid.unit)), 1);
  return {clamp<i64>(begin, 0, size), clamp<i64>(end, 0, size)};
}

}  // namespace

void bend(Polygon *polygon, const Grid &grid, const i64 *size, f64 far) {
  const Box box = bounds(*polygon);
  const Range columns = between_lines(grid, box, far, 0, size[1]), lines = between_lines(grid, box, far, 1, size[0]);
  const Scan scan(grid, *polygon, box);
  Border top = scan.border(1, lines.first, lines.end, columns);
  Border bottom = scan.border(1, lines.end, lines.first, columns);
  if (top.is_missing() && bottom.is_missing()) {
    // The polygon is smaller than a pixel: transforms its corners as points.
    for (i64 n = 0; n < polygon->count; n++) polygon->at[n] = solve_grid(grid, size, polygon->at[n]).at;
    return;
  }
  // The polygon may be between the image's border and the first line of pixel centers.
  if (bottom.is_missing()) bottom = {top.line + 0.5, top.along};
  else if (top.is_missing()) top = {bottom.line - 0.5, bottom.along};
  const Range found = {max_of<i64>(to_i64(floor(top.line)), 0), min_of(to_i64(ceil(bottom.line)), size[0])};
  const Border left = scan.border(0, columns.first, columns.end, found);
  const Border right = scan.border(0, columns.end, columns.first, found);
  Box out;
  // If the polygon is between two columns, uses the positions found along lines.
  out.low[0] = left.is_missing() ? smaller(top.along, bottom.along) - 0.5 : left.line;
  out.high[0] = right.is_missing() ? larger(top.along, bottom.along) + 0.5 : right.line;
  out.low[1] = top.line;
  out.high[1] = bottom.line;
  // Corners may extend between the scanned pixels.
  for (i64 n = 0; n < polygon->count; n++) {
    const Solution corner = solve_grid(grid, size, polygon->at[n]);
    const Point p = corner.at;
    if (corner.error <= CLOSE_ENOUGH && 0.0 <= p.x && p.x <= (f64)size[1] && 0.0 <= p.y && p.y <= (f64)size[0])
      out = {{smaller(out.low[0], p.x), smaller(out.low[1], p.y)},
             {larger(out.high[0], p.x), larger(out.high[1], p.y)}};
  }
  set_box(polygon, out);
}

}  // namespace vg
