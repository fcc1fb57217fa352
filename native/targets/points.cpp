// Transforms key points by rows of programs.
#include "stages.h"

namespace vg {
namespace {

bool is_erased(const Stage &stage, Point p) {
  const i64 first = stage.numbers()[StageNumber::FIRST], count = stage.numbers()[StageNumber::COUNT];
  for (const i32 *r = stage.all->rectangles + 4 * first; r < stage.all->rectangles + 4 * (first + count); r += 4) {
    const i64 top = r[0], left = r[1], bottom = top + r[2], right = left + r[3];
    if ((f64)top <= p.y && p.y < (f64)bottom && (f64)left <= p.x && p.x < (f64)right) return true;
  }
  return false;
}

bool is_inside(const i64 *size, Point p) {
  // Positions on the image's edge are inside; differences up to this are rounding.
  constexpr f64 EDGE = 1e-6;
  return -EDGE <= p.x && p.x <= (f64)size[1] + EDGE && -EDGE <= p.y && p.y <= (f64)size[0] + EDGE;
}

// Moves a point; returns its PointState.
int move_point(const Stages *all, i64 row, Point *point) {
  int state = PointState::SEEN;
  Point p = *point;
  for (i64 s = all->begin[row]; s < all->begin[row + 1]; s++) {
    const Stage stage = {all, s};
    if (stage.kind() == StageKind::ERASE) {
      if (state == PointState::SEEN && is_erased(stage, p)) state = PointState::ERASED;
      continue;
    }
    if (stage.kind() == StageKind::GRID) {
      const Solution solution = solve_grid(Grid(stage), stage.after(), p);
      p = solution.at;
      if (!(solution.error <= CLOSE_ENOUGH)) state = PointState::LEFT_IMAGE;
    } else {
      p = map_point(stage.forward(), p);
    }
    if (!is_inside(stage.after(), p)) state = PointState::LEFT_IMAGE;
  }
  *point = p;
  return state;
}

}  // namespace

// Transforms points f64[count, 2] of rows i64[count] in place; writes their PointState, u8[count].
VG_EXPORT void vg_move_points(const Stages *stages, const i64 *rows, i64 count, f64 *points, u8 *states) {
  for (i64 n = 0; n < count; n++) {
    Point p = {points[2 * n], points[2 * n + 1]};
    states[n] = (u8)move_point(stages, rows[n], &p);
    points[2 * n] = p.x;
    points[2 * n + 1] = p.y;
  }
}

}  // namespace vg
