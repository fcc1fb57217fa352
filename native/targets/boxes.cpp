// Transforms boxes by rows of programs.
//
// A box is a convex polygon and a frame that clips it. Axis-aligned maps transform both. Rotations and bends clip the
// polygon, transform its corners and start a new frame. If a nearest scale repeats pixels, a box becomes the box of the
// pixels that show it.
#include "polygon.h"

namespace vg {
namespace {

// A polygon with more corners becomes its box, because cuts add up to five corners per stage.
constexpr i64 FULL = 80;
// Pixel centers this close to an edge count as on the edge; the difference is rounding.
constexpr f64 ON_EDGE = 1e-6;

void map_corners(const f64 *m, Polygon *polygon) {
  for (i64 n = 0; n < polygon->count; n++) polygon->at[n] = map_point(m, polygon->at[n]);
}

// Transforms a frame, by two opposite corners, with an axis-aligned map.
Box map_frame(const f64 *m, const Box &frame) {
  const f64 *a = frame.low, *b = frame.high;
  const f64 x0 = m[0] * a[0] + m[1] * a[1] + m[2], y0 = m[3] * a[0] + m[4] * a[1] + m[5];
  const f64 x1 = m[0] * b[0] + m[1] * b[1] + m[2], y1 = m[3] * b[0] + m[4] * b[1] + m[5];
  return {{smaller(x0, x1), smaller(y0, y1)}, {larger(x0, x1), larger(y0, y1)}};
}

Box intersection(const Box &a, const Box &b) {
  return {{larger(a.low[0], b.low[0]), larger(a.low[1], b.low[1])},
          {smaller(a.high[0], b.high[0]), smaller(a.high[1], b.high[1])}};
}

// Transforms a polygon by a projective map. A polygon partly behind the viewer becomes the box around its visible part.
void project(const f64 *m, const i64 *size, Polygon *polygon) {
  constexpr f64 AHEAD = 1e-9;
  if (!isfinite(m[8])) {
    polygon->count = 0;
    return;
  }
  f64 low = INFINITY, high = -INFINITY;
  for (i64 n = 0; n < polygon->count; n++) {
    const f64 depth = m[6] * polygon->at[n].x + m[7] * polygon->at[n].y + m[8];
    low = smaller(low, depth);
    high = larger(high, depth);
  }
  const f64 least = AHEAD * larger(fabs(low), fabs(high));
  if (low > least || high < -least) return map_corners(m, polygon);
  Box all = {{INFINITY, INFINITY}, {-INFINITY, -INFINITY}};
  const f64 signs[] = {1.0, -1.0};
  for (f64 sign : signs) {
    Polygon part = *polygon;
    cut(&part, {sign * m[6], sign * m[7], sign * m[8] - least});
    map_corners(m, &part);
    cut_to(&part, box_of_size(size));
    const Box box = bounds(part);
    all = {{smaller(all.low[0], box.low[0]), smaller(all.low[1], box.low[1])},
           {larger(all.high[0], box.high[0]), larger(all.high[1], box.high[1])}};
  }
  polygon->count = 0;
  if (all.low[0] <= all.high[0] && all.low[1] <= all.high[1]) set_box(polygon, all);
}

// The range of pixels along an axis of a scale's output that read from `least` to `most`. False if empty.
bool read_between(const Stage &stage, int axis, f64 least, f64 most, f64 *begin, f64 *end) {
  const f64 *table = stage.table(axis);
  i64 low = -1, high = -1;
  for (i64 i = 0; i < stage.after()[1 - axis]; i++) {
    const f64 center = floor(table[i]) + 0.5;
    if (least <= center && center <= most) {
      low = low < 0 ? i : low;
      high = i;
    }
  }
  if (low < 0) return false;
  *begin = (f64)low;
  *end = (f64)(high + 1);
  return true;
}

// A box during its transformation.
struct Traveler {
  Polygon polygon;
  Box frame;
  bool is_upright;  // all maps so far were axis-aligned

  // True if the nearest scale `s` or later stages enlarge pixels to blocks, and box edges can be aligned to the blocks.
  bool grows_in_blocks(const Stages *all, i64 first, i64 s, i64 end) const {
    while (first < s && all->kind[first] == StageKind::ERASE) first++;
    f64 growth = 1.0;
    for (i64 later = end - 1; later >= s; later--) {
      const Stage stage = {all, later};
      if (stage.kind() == StageKind::ERASE) continue;
      if (!is_upright && !stage.is_aligned()) return false;
      const f64 *m = stage.forward();
      if (stage.is_aligned()) growth *= larger(fabs(m[0]) + fabs(m[1]), fabs(m[3]) + fabs(m[4])) / fabs(m[8]);
      else if (stage.kind() != StageKind::GRID && m[6] == 0.0 && m[7] == 0.0)
        growth *= sqrt(fabs(m[0] * m[4] - m[1] * m[3])) / fabs(m[8]);
      if (growth > 1.0 + ON_EDGE && (later > s || s > first)) return true;
    }
    return false;
  }

  // Moves the edges of a box along an axis to the edges of the pixels whose centers are between. False, without a
  // change, if there is no such pixel. As for masks, the first edge is inclusive and the last edge exclusive.
  bool scale_edges(const Stage &stage, int axis, Box *box) {
    const Point first = polygon.at[0], opposite = polygon.at[2];
    const bool falls = is_upright && (axis == 0 ? first.x > opposite.x : first.y > opposite.y);
    const f64 least = box->low[axis] + (falls ? ON_EDGE : -ON_EDGE);
    const f64 most = box->high[axis] + (falls || !is_upright ? ON_EDGE : -ON_EDGE);
    return read_between(stage, axis, least, most, &box->low[axis], &box->high[axis]);
  }

  // Replaces the box and its frame by the pixels that a nearest scale reads in them; without such pixels, scales them.
  void scale(const Stage &stage) {
    const f64 *m = stage.forward();
    Box box = bounds(polygon);
    const f64 left = box.low[0], top = box.low[1];
    bool is_shown = true, is_framed = true;
    for (int axis = 0; axis < 2; axis++) {
      is_shown &= scale_edges(stage, axis, &box);
      is_framed &= scale_edges(stage, axis, &frame);
    }
    if (!is_framed) {
      polygon.count = 0;
    } else if (!is_shown) {
      map_corners(m, &polygon);
    } else if (!is_upright) {
      set_box(&polygon, box);
    } else {
      for (i64 n = 0; n < 4; n++) {
        Point &p = polygon.at[n];
        p = {(p.x == left) == (m[0] > 0.0) ? box.low[0] : box.high[0],
             (p.y == top) == (m[4] > 0.0) ? box.low[1] : box.high[1]};
      }
    }
  }

  // Clips the polygon to its frame; returns the remaining fraction of its area.
  f64 cut_to_frame() {
    const f64 full_area = area(polygon);
    cut_to(&polygon, frame);
    const f64 fraction = full_area > 0.0 ? area(polygon) / full_area : 1.0;
    if (polygon.count > FULL) set_box(&polygon, bounds(polygon));
    return fraction;
  }

  // Applies stages begin..end; returns the fraction of the box that remains after all frames but the last. `far`:
  // greatest displacements of grids by stage, NaN for unknown.
  f64 travel(const Stages *all, i64 begin, i64 end, f64 *far) {
    f64 fraction = 1.0;
    for (i64 s = begin; s < end; s++) {
      const Stage stage = {all, s};
      if (stage.kind() == StageKind::ERASE) continue;
      is_upright = is_upright && stage.is_aligned();
      if (!stage.is_aligned()) fraction *= cut_to_frame();
      if (polygon.count == 0) break;
      if (stage.kind() == StageKind::SCALE && grows_in_blocks(all, begin, s, end)) {
        scale(stage);
        continue;
      }
      if (stage.kind() == StageKind::GRID) {
        const Grid grid(stage);
        if (isnan(far[s])) far[s] = grid.farthest();
        bend(&polygon, grid, stage.after(), far[s]);
      } else {
        project(stage.forward(), stage.after(), &polygon);
      }
      frame = stage.is_aligned() ? intersection(map_frame(stage.forward(), frame), box_of_size(stage.after()))
                                 : box_of_size(stage.after());
    }
    return fraction;
  }
};

bool is_upright(const Point *corners) { return corners[0].x == corners[1].x || corners[0].y == corners[1].y; }

void store_box(const Box &box, f64 *to) {
  memcpy(to, box.low, sizeof box.low);
  memcpy(to + 2, box.high, sizeof box.high);
}

}  // namespace

// Transforms boxes f64[count, 4 corners, 2] of rows i64[count], in images of sizes i64[count, 2]. Writes f64[count, 2,
// 4]: visible edges, and edges before the last frame clipped them (inverted or empty if nothing remains); and
// f64[count]: the fraction that remains after earlier frames.
VG_EXPORT i64 vg_move_boxes(const Stages *stages, const i64 *rows, i64 count, const f64 *corners, const i64 *sizes,
                            f64 *edges, f64 *fractions) {
  Buffer<f64> far;
  const i64 steps = stages->begin[stages->rows];
  if (!far.reserve(steps)) return OUT_OF_MEMORY;
  for (i64 s = 0; s < steps; s++) far[s] = NAN;
  for (i64 n = 0; n < count; n++) {
    Traveler box;
    box.polygon.count = 4;
    memcpy(box.polygon.at, corners + 8 * n, 8 * sizeof(f64));
    box.frame = box_of_size(sizes + 2 * n);
    box.is_upright = is_upright(box.polygon.at);
    fractions[n] = box.travel(stages, stages->begin[rows[n]], stages->begin[rows[n] + 1], far.at);
    const Box all = bounds(box.polygon);
    store_box(intersection(all, box.frame), edges + 8 * n);
    store_box(all, edges + 8 * n + 4);
  }
  return OK;
}

}  // namespace vg
