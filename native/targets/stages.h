// Stages of a batch's geometry (see variegate/program/stages.py), and grids of displacements.
#pragma once
#include "../coords.h"

// Members of types that files of several levels share: a copy that is not inlined would be that of any level.

namespace vg {

// One stage of `all`.
struct Stage {
  const Stages *all;
  i64 at;

  VG_MEMBER int kind() const { return (int)all->kind[at]; }
  VG_MEMBER const f64 *inverse() const { return all->back + 9 * at; }
  VG_MEMBER const f64 *forward() const { return all->ahead + 9 * at; }
  VG_MEMBER const i64 *before() const { return all->before + 2 * at; }  // height and width of the stage's source
  VG_MEMBER const i64 *after() const { return all->after + 2 * at; }
  VG_MEMBER const i64 *numbers() const { return all->numbers + 6 * at; }
  VG_MEMBER bool is_aligned() const { return all->is_aligned[at]; }
  VG_MEMBER bool rounds() const { return all->rounds[at]; }
  // Positions that the columns (axis 0) or lines (1) of a scale's output read.
  VG_MEMBER const f64 *table(int axis) const {
    return all->tables + numbers()[StageNumber::FIRST] + (axis == 1 ? after()[1] : 0);
  }
};

struct Point {
  f64 x, y;
};

// An axis-aligned box: bounds along x (axis 0) and y (axis 1).
struct Box {
  f64 low[2], high[2];
};

VG_INLINE Box box_of_size(const i64 *size) { return {{0, 0}, {(f64)size[1], (f64)size[0]}}; }

VG_INLINE Point map_point(const f64 *m, Point p) {
  const f64 depth = m[6] * p.x + m[7] * p.y + m[8];
  return {(m[0] * p.x + m[1] * p.y + m[2]) / depth, (m[3] * p.x + m[4] * p.y + m[5]) / depth};
}

// Displacements dx, dy at nodes, interpolated between them. Node 0 is at the center of the first pixel.
struct Grid {
  const i16 *nodes;
  i64 count[2];  // columns and lines
  f64 step[2];   // nodes in a pixel
  f64 last[2];   // node coordinate of the last pixel's center
  f64 unit;      // pixels in a unit of the nodes

  explicit VG_MEMBER Grid(const Stage &stage) {
    constexpr f64 NODES_PER_STEP = 0x1p-26;
    const i64 *numbers = stage.numbers();
    nodes = stage.all->grids + numbers[StageNumber::FIRST];
    count[0] = numbers[StageNumber::COLUMNS];
    count[1] = numbers[StageNumber::LINES];
    step[0] = (f64)numbers[StageNumber::STEP_X] * NODES_PER_STEP;
    step[1] = (f64)numbers[StageNumber::STEP_Y] * NODES_PER_STEP;
    for (int axis = 0; axis < 2; axis++)
      last[axis] = smaller((f64)(stage.after()[1 - axis] - 1) * step[axis], (f64)count[axis] - 1.0);
    unit = ldexp(1.0, (int)numbers[StageNumber::UNIT] - 6);
  }

  // The node coordinate of a position of an axis, clamped to the pixel centers. NaN for NaN.
  VG_MEMBER f64 node(f64 position, int axis) const {
    return smaller(larger((position - 0.5) * step[axis], 0.0), last[axis]);
  }
  // The node before a node coordinate; at most the last but one, if there are two.
  VG_MEMBER i64 cell(f64 node, int axis) const {
    return max_of<i64>(min_of<i64>(node > 0.0 ? (i64)node : 0, count[axis] - 2), 0);
  }
  // Distance between adjacent nodes of an axis in `nodes`.
  VG_MEMBER i64 stride(int axis) const { return axis == 0 ? 2 : 2 * count[0]; }

  // The displacement at a position; outside the nodes, the displacement of the nearest node.
  VG_MEMBER Point displacement(Point p) const {
    const f64 u = node(p.x, 0), v = node(p.y, 1);
    const i64 j = cell(u, 0), i = cell(v, 1);
    const f64 s = u - (f64)j, t = v - (f64)i;
    const i16 *above = nodes + 2 * (i * count[0] + j), *below = above + (count[1] > 1 ? 2 * count[0] : 0);
    const i64 right = count[0] > 1 ? 2 : 0;
    f64 moved[2];
    for (int axis = 0; axis < 2; axis++) {
      moved[axis] = (above[axis] * (1.0 - s) + above[right + axis] * s) * (1.0 - t);
      moved[axis] += (below[axis] * (1.0 - s) + below[right + axis] * s) * t;
    }
    return {moved[0] * unit, moved[1] * unit};
  }
  // The source position that a position of the output shows.
  VG_MEMBER Point source(Point p) const {
    const Point moved = displacement(p);
    return {p.x + moved.x, p.y + moved.y};
  }
  // The greatest displacement along either axis, in pixels.
  VG_MEMBER f64 farthest() const {
    int most = 0;
    for (i64 n = 0; n < 2 * count[0] * count[1]; n++) most = max_of(most, abs((int)nodes[n]));
    return most * unit;
  }
};

// Greatest accepted error of a solution, in pixels; with a larger error, the point is not visible.
constexpr f64 CLOSE_ENOUGH = 0.1;

// A position whose source is `error` pixels away from the requested one.
struct Solution {
  Point at;
  f64 error;
};

// Finds the output position at which a grid shows a source position. `size`: height and width of the grid's output.
Solution solve_grid(const Grid &grid, const i64 *size, Point source);

}  // namespace vg
