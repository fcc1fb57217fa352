#include "mask_lines.h"

namespace vg::VG_LEVEL {
namespace {

// The first position of an image of this side: endless ones reach as far to the other side of their first pixel.
VG_INLINE f64 first_position(f64 side) { return side >= (f64)ENDLESS ? -side : 0.0; }

// Sides of what a step reads.
struct Window {
  f64 left, top, right, bottom;

  explicit Window(const Stage &stage) : right((f64)stage.before()[1]), bottom((f64)stage.before()[0]) {
    left = first_position(right);
    top = first_position(bottom);
  }
};

bool is_affine_map(const f64 *m) { return m[6] == 0.0 && m[7] == 0.0; }

// True if columns depend on columns alone, and lines on lines, or the other way round.
bool is_separable(const Stage &stage) {
  const f64 *m = stage.inverse();
  const bool is_apart = (m[1] == 0.0 && m[3] == 0.0) || (m[0] == 0.0 && m[4] == 0.0);
  return stage.kind() != StageKind::GRID && is_apart && is_affine_map(m);
}

bool is_crossed(const Stage &stage) {
  const f64 *m = stage.inverse();
  return stage.kind() == StageKind::MAP && !(m[1] == 0.0 && m[3] == 0.0);
}

// The remainder of a positive whole divisor, from 0 on: that of fmod and a sum, where the quotient is below 2**52. The
// quotient may be rounded up to the next whole number.
VG_INLINE f64 floor_mod(f64 value, f64 divisor) {
  const f64 rest = value - floor(value / divisor) * divisor;
  return rest < 0.0 ? rest + divisor : rest;
}

// A position beyond an image that a PadMode continues: by its edge or the other side, or mirrored about its last pixels
// or its border.
template <int MODE> VG_INLINE f64 repeat_position(f64 position, f64 side) {
  f64 repeated;
  if (MODE == PadMode::EDGE) {
    repeated = smaller(larger(position, 0.5), side - 0.5);
  } else if (MODE == PadMode::WRAP) {
    // Of a small negative position, the sum may be rounded up to the side.
    const f64 rest = floor_mod(position, side);
    repeated = rest < side ? rest : 0.0;
  } else {
    const f64 first = MODE == PadMode::REFLECT ? 0.5 : 0.0, length = side - 2.0 * first;
    const f64 rest = floor_mod(position - first, 2.0 * length);
    const f64 mirrored = first + (rest > length ? 2.0 * length - rest : rest);
    repeated = mirrored < side ? mirrored : side - 0.5;
  }
  // Of a single pixel, its center.
  repeated = side == 1.0 ? 0.5 : repeated;
  return ((0.0 <= position) & (position < side)) ? position : repeated;
}

f64 repeat_position(f64 position, f64 side, i64 mode) {
  switch (mode) {
    case PadMode::EDGE: return repeat_position<PadMode::EDGE>(position, side);
    case PadMode::REFLECT: return repeat_position<PadMode::REFLECT>(position, side);
    case PadMode::WRAP: return repeat_position<PadMode::WRAP>(position, side);
    default: return repeat_position<PadMode::SYMMETRIC>(position, side);
  }
}

// A table through a separable step: positions along an axis of what the step reads.
void step_table(const Stage &stage, int axis, f64 *table, u8 *is_inside, i64 count) {
  const f64 *m = stage.inverse() + 3 * axis;
  const f64 side = (f64)stage.before()[1 - axis], first = first_position(side);
  const f64 factor = is_crossed(stage) ? m[1 - axis] : m[axis], shift = m[2];
  const int kind = stage.kind();
  const i64 *numbers = stage.numbers();
  const bool rounds = stage.rounds();
  for (i64 i = 0; i < count; i++) {
    f64 position = table[i];
    if (kind == StageKind::REPEAT)
      position = repeat_position(position - (f64)numbers[StageNumber::LEFT + axis], side, numbers[StageNumber::MODE]);
    else if (kind == StageKind::SCALE) position = is_inside[i] ? stage.table(axis)[(i64)position] : position;
    else position = factor * position + shift;
    is_inside[i] &= first <= position && position < side;
    table[i] = rounds ? floor(position) + 0.5 : position;
  }
}

// Writes the positions source(i) that a step reads, which have to be inside of its window.
template <bool ROUNDS, class Source>
VG_INLINE void write_line(const Window &window, Range columns, f64 *__restrict x, f64 *__restrict y, Source source) {
  const f64 left = window.left, top = window.top, right = window.right, bottom = window.bottom;
  for (i64 i = columns.first; i < columns.end; i++) {
    const Point p = source(i);
    const bool is_inside = (p.x >= left) & (p.x < right) & (p.y >= top) & (p.y < bottom);
    x[i] = is_inside ? ROUNDS ? floor(p.x) + 0.5 : p.x : (f64)NAN;
    y[i] = ROUNDS ? floor(p.y) + 0.5 : p.y;
  }
}

template <class Source>
VG_INLINE void move_line(const Stage &stage, Range columns, f64 *__restrict x, f64 *__restrict y, Source source) {
  if (stage.rounds()) write_line<true>(Window(stage), columns, x, y, source);
  else write_line<false>(Window(stage), columns, x, y, source);
}

void map_line(const Stage &stage, Range columns, f64 *__restrict x, f64 *__restrict y) {
  const f64 *m = stage.inverse();
  const f64 a = m[0], b = m[1], c = m[2], d = m[3], e = m[4], f = m[5], g = m[6], h = m[7], k = m[8];
  if (is_affine_map(m)) {
    move_line(stage, columns, x, y, [=](i64 i) {
      const f64 u = x[i], v = y[i];
      return Point{a * u + b * v + c, d * u + e * v + f};
    });
    return;
  }
  move_line(stage, columns, x, y, [=](i64 i) {
    const f64 u = x[i], v = y[i], depth = g * u + h * v + k;
    return Point{(a * u + b * v + c) / depth, (d * u + e * v + f) / depth};
  });
}

// Positions along one axis. NaN stays.
template <int MODE> void repeat_axis(f64 start, f64 side, Range columns, f64 *__restrict positions) {
  for (i64 i = columns.first; i < columns.end; i++) {
    const f64 position = positions[i] - start, repeated = repeat_position<MODE>(position, side);
    positions[i] = isnan(position) ? position : repeated;
  }
}

template <int MODE> void repeat_line(const Stage &stage, Range columns, f64 *__restrict x, f64 *__restrict y) {
  repeat_axis<MODE>((f64)stage.numbers()[StageNumber::LEFT], (f64)stage.before()[1], columns, x);
  repeat_axis<MODE>((f64)stage.numbers()[StageNumber::TOP], (f64)stage.before()[0], columns, y);
  move_line(stage, columns, x, y, [=](i64 i) { return Point{x[i], y[i]}; });
}

// One step of a line that tables do not cover.
void step_line(const Stage &stage, Range columns, f64 *__restrict x, f64 *__restrict y) {
  switch (stage.kind()) {
    case StageKind::GRID: {
      const Grid grid(stage);
      return move_line(stage, columns, x, y, [&](i64 i) {
        const Point p = {x[i], y[i]};
        return isnan(p.x) ? p : grid.source(p);
      });
    }
    case StageKind::REPEAT:
      switch (stage.numbers()[StageNumber::MODE]) {
        case PadMode::EDGE: return repeat_line<PadMode::EDGE>(stage, columns, x, y);
        case PadMode::REFLECT: return repeat_line<PadMode::REFLECT>(stage, columns, x, y);
        case PadMode::WRAP: return repeat_line<PadMode::WRAP>(stage, columns, x, y);
        default: return repeat_line<PadMode::SYMMETRIC>(stage, columns, x, y);
      }
    case StageKind::SCALE: {
      const f64 *across = stage.table(0), *down = stage.table(1);
      return move_line(stage, columns, x, y, [&](i64 i) {
        const Point p = {x[i], y[i]};
        return isnan(p.x) ? p : Point{across[(i64)p.x], down[(i64)p.y]};
      });
    }
    default: map_line(stage, columns, x, y);
  }
}

// The displacements of one of the grid's lines at all columns.
void lengthen(const Grid &grid, i64 line, Range columns, const i32 *__restrict cells, const f64 *__restrict fractions,
              f64 *__restrict along_x, f64 *__restrict along_y) {
  const i16 *nodes = grid.nodes + line * grid.stride(1);
  for (i64 i = columns.first; i < columns.end; i++) {
    const f64 s = fractions[i];
    const i16 *node = nodes + 2 * (i64)cells[i];
    // Right of the last node is none.
    const i16 *next = node + (s > 0.0 ? 2 : 0);
    along_x[i] = node[0] * (1.0 - s) + next[0] * s;
    along_y[i] = node[1] * (1.0 - s) + next[1] * s;
  }
}

}  // namespace

Path fill_tables(const Stages *all, const MaskRegion &region, LineScratch &scratch) {
  const i64 counts[2] = {region.right - region.left, region.bottom - region.top};
  const i64 starts[2] = {region.left, region.top};
  for (int axis = 0; axis < 2; axis++) {
    for (i64 i = 0; i < counts[axis]; i++) scratch.table[axis][i] = (f64)(starts[axis] + i) + 0.5;
    memset(scratch.is_inside[axis], 1, (size_t)counts[axis]);
  }
  Path path = {all, all->begin[region.row], all->begin[region.row + 1] - 1, false};
  for (; !path.is_covered(); path.last--) {
    const Stage stage = path.last_step();
    if (stage.kind() == StageKind::ERASE) continue;
    if (!is_separable(stage)) break;
    path.is_transposed ^= is_crossed(stage);
    for (int axis = 0; axis < 2; axis++)
      step_table(stage, axis ^ path.is_transposed, scratch.table[axis], scratch.is_inside[axis], counts[axis]);
  }
  while (path.last > path.first && all->kind[path.first] == StageKind::ERASE) path.first++;
  return path;
}

Extent extent_of(const f64 *table, const u8 *is_inside, i64 count) {
  i64 begin = 0, end = count;
  while (begin < end && !is_inside[begin]) begin++;
  while (end > begin && !is_inside[end - 1]) end--;
  const int direction = end <= begin || table[end - 1] >= table[begin] ? 1 : -1;
  bool is_contiguous = true, is_sorted = true;
  for (i64 i = begin + 1; i < end; i++) {
    is_contiguous &= is_inside[i] != 0;
    is_sorted &= (table[i] - table[i - 1]) * direction >= 0.0;
  }
  return {{begin, end}, is_contiguous, is_contiguous && is_sorted ? direction : 0};
}

Run fill_positions(const f64 *table, const u8 *is_inside, i64 step, Range columns, i32 *positions) {
  bool ascends = true, descends = true;
  for (i64 i = columns.first; i < columns.end; i++) {
    positions[i] = is_inside[i] ? (i32)((u32)(i32)table[i] * (u32)step) : -1;
    if (i == columns.first) continue;
    ascends &= is_inside[i] && positions[i] - positions[i - 1] == 1;
    descends &= is_inside[i] && positions[i] - positions[i - 1] == -1;
  }
  return ascends ? ASCENDING : descends ? DESCENDING : ANY_ORDER;
}

Range columns_inside(const Stage &stage, const f64 *table, f64 v, Range columns, bool rises, i64 *borders) {
  const f64 *m = stage.inverse();
  Range inside = columns;
  for (int axis = 0; axis < 2; axis++) {
    const f64 a = m[3 * axis], b = m[3 * axis + 1] * v, c = m[3 * axis + 2];
    const bool is_rising = (a >= 0.0) == rises;
    const f64 side = (f64)stage.before()[1 - axis], limits[2] = {first_position(side), side};
    for (int end = 0; end < 2; end++) {
      auto is_beyond = [&](i64 k) { return (a * table[k] + b + c >= limits[end]) == is_rising; };
      i64 k = borders[2 * axis + end];
      while (k < columns.end && !is_beyond(k)) k++;
      while (k > columns.first && is_beyond(k - 1)) k--;
      borders[2 * axis + end] = k;
    }
    inside.first = max_of(inside.first, min_of(borders[2 * axis], borders[2 * axis + 1]));
    inside.end = min_of(inside.end, max_of(borders[2 * axis], borders[2 * axis + 1]));
  }
  return {inside.first, max_of(inside.first, inside.end)};
}

void affine_positions(const f64 *m, const f64 *__restrict table, f64 v, i64 image_width, Range columns,
                      i32 *__restrict positions) {
  const f64 a = m[0], b = m[1] * v, c = m[2], d = m[3], e = m[4] * v, f = m[5];
  const i32 width = (i32)image_width;
  for (i64 i = columns.first; i < columns.end; i++) {
    const f64 u = table[i];
    positions[i] = (i32)((u32)(i32)(d * u + e + f) * (u32)width + (u32)(i32)(a * u + b + c));
  }
}

void affine_line(const Stage &stage, f64 v, Range columns, LineScratch &scratch) {
  const f64 *m = stage.inverse(), *__restrict table = scratch.table[0];
  const f64 a = m[0], b = m[1] * v, c = m[2], d = m[3], e = m[4] * v, f = m[5];
  f64 *__restrict x = scratch.x, *__restrict y = scratch.y;
  const bool rounds = stage.rounds();
  for (i64 i = columns.first; i < columns.end; i++) {
    const f64 u = a * table[i] + b + c, w = d * table[i] + e + f;
    x[i] = rounds ? floor(u) + 0.5 : u;
    y[i] = rounds ? floor(w) + 0.5 : w;
  }
}

void prepare_grid(const Grid &grid, i64 end, LineScratch &scratch) {
  scratch.cached_lines[0] = scratch.cached_lines[1] = -1;
  for (i64 i = 0; i < end; i++) {
    const f64 node = grid.node(scratch.table[0][i], 0);
    scratch.cells[i] = (i32)grid.cell(node, 0);
    // Displacements of columns that are outside have no number.
    scratch.fractions[i] = scratch.is_inside[0][i] ? node - scratch.cells[i] : (f64)NAN;
  }
}

void grid_line(const Stage &stage, f64 v, Range columns, LineScratch &scratch) {
  const Grid grid(stage);
  const f64 node = grid.node(v, 1);
  const i64 above = grid.cell(node, 1), below = min_of(above + 1, grid.count[1] - 1);
  const i64 lines[] = {above, below};
  for (i64 line : lines) {
    if (scratch.cached_lines[line & 1] == line) continue;
    f64 *const *displaced = scratch.displaced[line & 1];
    lengthen(grid, line, columns, scratch.cells, scratch.fractions, displaced[0], displaced[1]);
    scratch.cached_lines[line & 1] = line;
  }
  const f64 t = node - (f64)above, unit = grid.unit;
  f64 *const *upper = scratch.displaced[above & 1], *const *lower = scratch.displaced[below & 1];
  const f64 *upper_x = upper[0], *upper_y = upper[1], *lower_x = lower[0], *lower_y = lower[1];
  const f64 *table = scratch.table[0];
  move_line(stage, columns, scratch.x, scratch.y, [=](i64 i) {
    const f64 x = table[i] + (upper_x[i] * (1.0 - t) + lower_x[i] * t) * unit;
    const f64 y = v + (upper_y[i] * (1.0 - t) + lower_y[i] * t) * unit;
    return Point{x, y};
  });
}

void follow_line(const Stages *all, i64 last, i64 first, Range columns, LineScratch &scratch) {
  for (i64 s = last; s >= first; s--)
    if (all->kind[s] != StageKind::ERASE) step_line({all, s}, columns, scratch.x, scratch.y);
}

void write_positions(const LineScratch &scratch, i64 image_width, Range columns, i32 *__restrict positions) {
  const f64 *__restrict x = scratch.x, *__restrict y = scratch.y;
  const i32 width = (i32)image_width;
  for (i64 i = columns.first; i < columns.end; i++)
    positions[i] = isnan(x[i]) ? -1 : (i32)((u32)(i32)y[i] * (u32)width + (u32)(i32)x[i]);
}

}  // namespace vg::VG_LEVEL
