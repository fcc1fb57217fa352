#include "polygon.h"

namespace vg {

void cut(Polygon *polygon, const Line &line) {
  Polygon kept;
  kept.count = 0;
  auto add = [&](Point p) {
    if (kept.count < MAX_CORNERS) kept.at[kept.count++] = p;
  };
  for (i64 n = 0; n < polygon->count; n++) {
    const Point p = polygon->at[n], next = polygon->after(n);
    const f64 here = line.at(p), there = line.at(next);
    if (here >= 0.0) add(p);
    if ((here > 0.0 && there < 0.0) || (here < 0.0 && there > 0.0)) {
      const f64 fraction = here / (here - there);
      add({p.x + fraction * (next.x - p.x), p.y + fraction * (next.y - p.y)});
    }
  }
  memcpy(polygon->at, kept.at, (size_t)kept.count * sizeof(Point));
  polygon->count = kept.count;
}

void cut_to(Polygon *polygon, const Box &box) {
  cut(polygon, {1.0, 0.0, -box.low[0]});
  cut(polygon, {0.0, 1.0, -box.low[1]});
  cut(polygon, {-1.0, 0.0, box.high[0]});
  cut(polygon, {0.0, -1.0, box.high[1]});
}

f64 twice_area(const Polygon &polygon) {
  f64 total = 0.0;
  for (i64 n = 0; n < polygon.count; n++) {
    const Point p = polygon.at[n], next = polygon.after(n);
    total += p.x * next.y - next.x * p.y;
  }
  return total;
}

Box bounds(const Polygon &polygon) {
  Box box = {{INFINITY, INFINITY}, {-INFINITY, -INFINITY}};
  for (i64 n = 0; n < polygon.count; n++) {
    const Point p = polygon.at[n];
    box = {{smaller(box.low[0], p.x), smaller(box.low[1], p.y)}, {larger(box.high[0], p.x), larger(box.high[1], p.y)}};
  }
  return box;
}

void set_box(Polygon *polygon, const Box &box) {
  polygon->count = 4;
  polygon->at[0] = {box.low[0], box.low[1]};
  polygon->at[1] = {box.high[0], box.low[1]};
  polygon->at[2] = {box.high[0], box.high[1]};
  polygon->at[3] = {box.low[0], box.high[1]};
}

}  // namespace vg
