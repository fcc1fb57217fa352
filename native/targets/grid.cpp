// Inverse of grids of displacements: finds the output position that shows a source position.
#include "stages.h"

namespace vg {
namespace {

// Solutions with a smaller error are not improved.
constexpr f64 CLOSE = 0.01;

f64 distance(f64 x, f64 y) { return sqrt(x * x + y * y); }

bool is_within(Point p, const i64 *size) {
  return 0.0 <= p.x && p.x <= (f64)size[1] && 0.0 <= p.y && p.y <= (f64)size[0];
}

// The difference between the source of `p` and the requested source.
Point difference(const Grid &grid, Point p, Point source) {
  const Point moved = grid.displacement(p);
  return {p.x + moved.x - source.x, p.y + moved.y - source.y};
}

// Solves by fixed-point iteration.
Solution iterate(const Grid &grid, Point source) {
  constexpr int ROUNDS = 40;
  const Point moved = grid.displacement(source);
  Point p = {source.x - moved.x, source.y - moved.y};
  Solution best = {p, INFINITY};
  for (int round = 0; round < ROUNDS; round++) {
    const Point away = difference(grid, p, source);
    const f64 error = distance(away.x, away.y);
    if (error < best.error) best = {p, error};
    if (error < CLOSE) break;
    p = {p.x - away.x, p.y - away.y};
  }
  return best;
}

// Searches the best position on a lattice of half pixels.
Solution search_lattice(const Grid &grid, const i64 *size, Point source, Point start) {
  const f64 radius = grid.farthest() + 1.0;
  const f64 end_x = smaller(source.x + radius, (f64)size[1]), end_y = smaller(source.y + radius, (f64)size[0]);
  Solution best = {start, INFINITY};
  for (f64 y = larger(0.5, floor(source.y - radius) + 0.5); y < end_y; y += 0.5)
    for (f64 x = larger(0.5, floor(source.x - radius) + 0.5); x < end_x; x += 0.5) {
      const Point away = difference(grid, {x, y}, source);
      const f64 error = distance(away.x, away.y);
      if (error < best.error) best = {{x, y}, error};
    }
  return best;
}

// Newton's step from a position, to subtract from it. False if the grid folds there.
bool newton_step(const Grid &grid, Point p, Point source, Point *step) {
  constexpr f64 H = 0.25;
  const Point away = difference(grid, p, source);
  const Point right = grid.displacement({p.x + H, p.y}), left = grid.displacement({p.x - H, p.y});
  const Point below = grid.displacement({p.x, p.y + H}), above = grid.displacement({p.x, p.y - H});
  const f64 a = 1.0 + (right.x - left.x) / (2 * H), b = (below.x - above.x) / (2 * H);
  const f64 c = (right.y - left.y) / (2 * H), d = 1.0 + (below.y - above.y) / (2 * H);
  const f64 determinant = a * d - b * c;
  if (fabs(determinant) < 1e-9) return false;
  *step = {(d * away.x - b * away.y) / determinant, (a * away.y - c * away.x) / determinant};
  return true;
}

// Newton's method, with steps halved until they reduce the error.
Solution descend(const Grid &grid, Point source, Solution from) {
  constexpr int STEPS = 12, HALVINGS = 6;
  for (int n = 0; n < STEPS && !(from.error < CLOSE); n++) {
    Point step;
    if (!newton_step(grid, from.at, source, &step)) break;
    bool is_better = false;
    f64 fraction = 1.0;
    for (int half = 0; half < HALVINGS && !is_better; half++, fraction *= 0.5) {
      const Point p = {from.at.x - fraction * step.x, from.at.y - fraction * step.y};
      const Point away = difference(grid, p, source);
      const f64 error = distance(away.x, away.y);
      is_better = error < from.error;
      if (is_better) from = {p, error};
    }
    if (!is_better) break;
  }
  return from;
}

}  // namespace

Solution solve_grid(const Grid &grid, const i64 *size, Point source) {
  const Solution quick = iterate(grid, source);
  if (quick.error < CLOSE && is_within(quick.at, size)) return quick;
  Solution best = search_lattice(grid, size, source, quick.at);
  if (best.error < INFINITY) {
    best = descend(grid, source, best);
    if (best.error < CLOSE_ENOUGH && is_within(best.at, size)) return best;
  }
  return quick.error <= best.error ? quick : best;
}

}  // namespace vg
