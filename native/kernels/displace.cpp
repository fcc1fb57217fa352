// Positions through grids of displacements. Displacements along a line of nodes are computed once for all columns; rows
// between two lines interpolate them. If other maps come after the grid, each position interpolates its four nodes.
// Maps before the grid transform the displaced positions one by one.
#include "../coords.h"
#include "interpolate.h"
#include "scratch.h"

namespace vg::VG_LEVEL {
namespace {

// Shift from steps along nodes to weights.
constexpr int PART_BITS = STEP_BITS - WEIGHT_BITS;
constexpr i32 WEIGHT = (1 << WEIGHT_BITS) - 1;

// Interpolates displacements along a line of nodes for each column, with the fraction bits of a weight.
void follow_nodes(const i16 *nodes, i64 step, i64 width, i32 *__restrict along_x, i32 *__restrict along_y) {
  i64 begin = 0;
  for (i64 j = 0; begin < width; j++) {
    const i64 end = step > 0 ? min_of(width, (((j + 1) << STEP_BITS) + step - 1) / step) : width;
    const i32 x = nodes[2 * j], y = nodes[2 * j + 1];
    const i32 slope_x = nodes[2 * j + 2] - x, slope_y = nodes[2 * j + 3] - y;
    u64 at = (u64)(begin * step);
    for (i64 i = begin; i < end; i++) {
      const i32 t = (i32)(at >> PART_BITS) & WEIGHT;
      along_x[i] = x * (1 << WEIGHT_BITS) + slope_x * t;
      along_y[i] = y * (1 << WEIGHT_BITS) + slope_y * t;
      at += (u64)step;
    }
    begin = end;
  }
}

// The same for nodes four columns apart, the usual spacing of smooth noise.
void follow_every_fourth(const i16 *__restrict nodes, i64 width, i32 *__restrict along_x, i32 *__restrict along_y) {
  for (i64 j = 0; 4 * j < width; j++) {
    const i32 x = nodes[2 * j], y = nodes[2 * j + 1];
    const i32 slope_x = nodes[2 * j + 2] - x, slope_y = nodes[2 * j + 3] - y;
    for (i32 i = 0; i < 4; i++) {
      const i32 t = i << (WEIGHT_BITS - 2);
      along_x[4 * j + i] = x * (1 << WEIGHT_BITS) + slope_x * t;
      along_y[4 * j + i] = y * (1 << WEIGHT_BITS) + slope_y * t;
    }
  }
}

// Interpolates two displacements to a distance between positions. Only the lower half of the 64 bits is used, so the
// shift may be unsigned: there is no signed vector shift of 64 bits.
VG_INLINE i32 distance_between(i32 a, i32 b, i64 weight, int shift) {
  const i64 half = (i64)1 << (shift - 1);
  const i64 total = (i64)a * (1 << WEIGHT_BITS) + (i64)(i32)((u32)b - (u32)a) * weight + half;
  return (i32)((u64)total >> shift);
}

void weigh_lines(const i32 *__restrict upper, const i32 *__restrict lower, i64 weight, int shift, i32 start, i32 step,
                 i64 width, i32 *__restrict positions) {
  u32 at = (u32)start;
  for (i64 x = 0; x < width; x++) {
    positions[x] = (i32)(at + (u32)distance_between(upper[x], lower[x], weight, shift));
    at += (u32)step;
  }
}

// Displaces the pixels of a row, if no map comes after the grid.
void displace_row(const i64 *record, const i16 *grids, i64 y, i64 width, int bits, Scratch &s) {
  InterpolateScratch &maps = s.interpolate;
  const i64 at = y * record[Record::STEP_Y], upper = at >> STEP_BITS, step = record[Record::STEP_X];
  auto along = [&](i64 line, int axis) { return maps.along.at + (2 * (line & 1) + axis) * maps.stride; };
  for (i64 line = upper; line <= upper + 1; line++) {
    i64 &cached_line = line & 1 ? maps.odd_line : maps.even_line;
    if (cached_line == line) continue;
    cached_line = line;
    const i16 *nodes = grids + record[Record::GRID] - 1 + 2 * record[Record::COLUMNS] * line;
    if (step == 1 << (STEP_BITS - 2)) follow_every_fourth(nodes, width, along(line, 0), along(line, 1));
    else follow_nodes(nodes, step, width, along(line, 0), along(line, 1));
  }
  const i64 weight = at >> PART_BITS & WEIGHT;
  const int shift = (int)record[Record::SHIFT];
  weigh_lines(along(upper, 0), along(upper + 1, 0), weight, shift, 0, 1 << bits, width, s.row.column.at);
  weigh_lines(along(upper, 1), along(upper + 1, 1), weight, shift, (i32)(y << bits), 0, width, s.row.line.at);
}

// Finds the nodes around each position, and their weights. Positions outside the grid are clamped to its border.
void find_nodes(const i64 *record, int bits, i64 width, const i32 *__restrict column, const i32 *__restrict line,
                i32 *__restrict offset, i32 *__restrict across, i32 *__restrict down) {
  const i32 far_x = (i32)((u64)(record[Record::SPAN_U] - 1) << bits);
  const i32 far_y = (i32)((u64)(record[Record::SPAN_V] - 1) << bits);
  const i64 step_x = (i32)record[Record::STEP_X], step_y = (i32)record[Record::STEP_Y];
  const u32 columns = (u32)record[Record::COLUMNS];
  const int integer_bits = STEP_BITS + bits, weight_shift = PART_BITS + bits;
  for (i64 x = 0; x < width; x++) {
    const u64 at_x = (u64)(min_of(max_of(column[x], 0), far_x) * step_x);
    const u64 at_y = (u64)(min_of(max_of(line[x], 0), far_y) * step_y);
    across[x] = (i32)(at_x >> weight_shift) & WEIGHT;
    down[x] = (i32)(at_y >> weight_shift) & WEIGHT;
    offset[x] = (i32)((u32)(at_y >> integer_bits) * columns + (u32)(at_x >> integer_bits));
  }
}

// Interpolates the lower 16 bits (displacement along x) of two nodes.
VG_INLINE i32 between_lower(i32 a, i32 b, i32 t) {
  const i32 from = (i16)a, to = (i16)b;
  return (i32)((u32)from * (1 << WEIGHT_BITS) + (u32)(to - from) * (u32)t);
}
VG_INLINE i32 between_upper(i32 a, i32 b, i32 t) {
  const i32 from = a >> 16, to = b >> 16;
  return (i32)((u32)from * (1 << WEIGHT_BITS) + (u32)(to - from) * (u32)t);
}

// Moves positions by their four nodes, [4, width] at `nodes`.
void move_positions(const i32 *__restrict nodes, const i32 *__restrict across, const i32 *__restrict down, int shift,
                    i64 width, i32 *__restrict column, i32 *__restrict line) {
  const i32 *__restrict right = nodes + width, *__restrict below = nodes + 2 * width;
  const i32 *__restrict opposite = nodes + 3 * width;
  for (i64 x = 0; x < width; x++) {
    const i32 a = nodes[x], b = right[x], c = below[x], d = opposite[x], t = across[x];
    const i32 du = distance_between(between_lower(a, b, t), between_lower(c, d, t), down[x], shift);
    const i32 dv = distance_between(between_upper(a, b, t), between_upper(c, d, t), down[x], shift);
    column[x] = (i32)((u32)column[x] + (u32)du);
    line[x] = (i32)((u32)line[x] + (u32)dv);
  }
}

// Displaces arbitrary positions. Three loops, so that compilers vectorize all but the loop that loads nodes.
void displace_positions(const i64 *record, const i16 *grids, i64 width, int bits, Scratch &s) {
  i32 *column = s.row.column.at, *line = s.row.line.at, *nodes = s.row.words.at, *offset = s.row.offset.at;
  i32 *across = s.interpolate.weights.at, *down = across + s.interpolate.stride;
  find_nodes(record, bits, width, column, line, offset, across, down);
  const i64 line_bytes = 4 * record[Record::COLUMNS];
  for (i64 x = 0; x < width; x++) {
    const u8 *at = (const u8 *)(grids + record[Record::GRID] - 1) + 4 * (i64)offset[x];
    const u64 upper = load<u64>(at), lower = load<u64>(at + line_bytes);
    nodes[x] = (i32)upper;
    nodes[width + x] = (i32)(upper >> 32);
    nodes[2 * width + x] = (i32)lower;
    nodes[3 * width + x] = (i32)(lower >> 32);
  }
  move_positions(nodes, across, down, (int)record[Record::SHIFT], width, column, line);
}

// Rounds positions to the centers of the pixels that contain them.
void drop_fractions(i64 width, int bits, i32 *__restrict column, i32 *__restrict line) {
  const u32 half = 1u << (bits - 1), kept = ~0u << bits;
  for (i64 x = 0; x < width; x++) {
    column[x] = (i32)(((u32)column[x] + half) & kept);
    line[x] = (i32)(((u32)line[x] + half) & kept);
  }
}

void add_to(i32 *__restrict positions, i64 width, i32 summand) {
  for (i64 x = 0; x < width; x++) positions[x] = (i32)((u32)positions[x] + (u32)summand);
}

// Folds positions that a grid has moved out of its image.
void fold_displaced(const i64 *record, int bits, i64 slack, i64 width, Scratch &s) {
  const i32 half = 1 << (bits - 1);
  const int mode = (int)record[Record::FOLD];
  i32 *positions[2] = {s.row.column.at, s.row.line.at};
  for (int axis = 0; axis < 2; axis++) {
    add_to(positions[axis], width, half);
    fold_positions(positions[axis], width, record[Record::SPAN_U + axis], mode, bits, slack);
    add_to(positions[axis], width, -half);
  }
}

// The position that pixels outside read; later the fill color replaces them.
struct Safe {
  i32 u, v;
};

// The transform from a grid's output to its source, which may be rotated.
struct Orientation {
  u32 from_u, from_v;
  u32 sign_u, sign_v;  // 1, or -1
  bool swaps;

  Orientation(const i64 *record, int bits)
      : from_u((u32)(record[Record::ORIGIN_U] - (1 << (bits - 1)))),
        from_v((u32)(record[Record::ORIGIN_V] - (1 << (bits - 1)))),
        sign_u(record[Record::SIGN_U] < 0 ? ~0u : 1),
        sign_v(record[Record::SIGN_V] < 0 ? ~0u : 1),
        swaps(record[Record::SWAPS] != 0) {}
};

template <bool swaps> void enter_image(const Orientation &turn, bool folds, u32 half, u32 first, u32 end_u, u32 end_v,
                                       i32 slot, Safe safe, i64 width, i32 *__restrict column, i32 *__restrict line,
                                       i32 *__restrict stage) {
  const i32 always = folds ? -1 : 0;
  const u32 from_u = turn.from_u, from_v = turn.from_v, sign_u = turn.sign_u, sign_v = turn.sign_v;
  for (i64 x = 0; x < width; x++) {
    const u32 u = (u32)column[x] + half, v = (u32)line[x] + half;
    // As unsigned, negative numbers are large.
    const i32 inside = always | -(i32)((u + first < end_u) & (v + first < end_v));
    const i32 leaves = ~inside & (stage[x] >> 31);
    const i32 now = stage[x] ^ (leaves & ~slot);
    const i32 a = (i32)(from_u + sign_u * (swaps ? v : u)), b = (i32)(from_v + sign_v * (swaps ? u : v));
    const i32 stays = now >> 31;
    column[x] = (a & stays) | (safe.u & ~stays);
    line[x] = (b & stays) | (safe.v & ~stays);
    stage[x] = now;
  }
}

// Marks positions that a grid has moved out of its image by `beyond` or more; then converts positions to the source.
// Folded positions may be on the border, or for bicubic weights outside it.
void enter_grid(const i64 *record, i32 slot, i64 beyond, i64 width, int bits, Safe safe, Scratch &s) {
  const Orientation turn(record, bits);
  // A position at a distance of exactly `beyond` reads the fill only. It is outside on both sides, as a flip may follow.
  const i64 first = beyond > 0 ? beyond - 1 : 0;
  const u32 end_u = (u32)(((u64)record[Record::SPAN_U] << bits) + (u64)(first + beyond));
  const u32 end_v = (u32)(((u64)record[Record::SPAN_V] << bits) + (u64)(first + beyond));
  const bool folds = record[Record::FOLD] != 0;
  auto enter = turn.swaps ? enter_image<true> : enter_image<false>;
  enter(turn, folds, 1u << (bits - 1), (u32)first, end_u, end_v, slot, safe, width, s.row.column.at, s.row.line.at,
        s.row.stage.at);
}

VG_INLINE i32 quotient(i32 numerator, f32 divisor, f32 factor, f32 end) {
  f32 value = (f32)numerator / divisor * factor;
  value = value > 0 ? value : 0;
  return (i32)(value < end ? value : end);
}

// All bits if any of the numbers is negative, else none.
VG_INLINE i32 sign_mask(i64 numbers) { return (i32)((u64)numbers >> 32) >> 31; }

// Marks the positions outside the window of a map with real coefficients; if `moves`, also transforms all positions.
// Has no branches, so that it vectorizes.
template <bool is_affine, bool moves> void apply_map_row(const i64 *record, i32 slot, i64 width, int bits, Safe safe,
                                                         i32 *__restrict column, i32 *__restrict line,
                                                         i32 *__restrict stage) {
  const i64 u_x = record[Record::U] >> bits, u_y = record[Record::U + 1] >> bits, u_0 = record[Record::U + 2];
  const i64 v_x = record[Record::V] >> bits, v_y = record[Record::V + 1] >> bits, v_0 = record[Record::V + 2];
  const i64 w_x = record[Record::DEPTH] >> bits, w_y = record[Record::DEPTH + 1] >> bits;
  const i64 w_0 = record[Record::DEPTH + 2];
  const i64 span_u = record[Record::SPAN_U], span_v = record[Record::SPAN_V];
  const int shift = (int)record[Record::SHIFT];
  const u32 half = 1u << (bits - 1);
  const u32 origin_u = (u32)record[Record::ORIGIN_U] - half, origin_v = (u32)record[Record::ORIGIN_V] - half;
  const u32 sign_u = (u32)record[Record::SIGN_U], sign_v = (u32)record[Record::SIGN_V];
  const f32 factor = (f32)ldexp(1.0, (int)record[Record::EXPONENT]);
  const f32 end_u = (f32)((u64)span_u << bits), end_v = (f32)((u64)span_v << bits);
  const i64 affine_far_u = times(span_u, w_0), affine_far_v = times(span_v, w_0);
  for (i64 x = 0; x < width; x++) {
    const i64 at_x = column[x], at_y = line[x];
    const i64 u = linear(u_x, at_x, u_y, at_y, u_0), v = linear(v_x, at_x, v_y, at_y, v_0);
    i64 depth = w_0, far_u = minus(affine_far_u, u), far_v = minus(affine_far_v, v);
    if (!is_affine) {
      depth = linear(w_x, at_x, w_y, at_y, w_0);
      far_u = minus(times(span_u, depth), u);
      far_v = minus(times(span_v, depth), v);
    }
    i32 outside = sign_mask(u | minus(far_u, 1) | v | minus(far_v, 1));
    // Behind the viewer, which affine maps never reach, all signs are inverted.
    if (!is_affine) outside &= sign_mask(minus(0, u) | ~far_u | minus(0, v) | ~far_v);
    const i32 now = stage[x] ^ (outside & (stage[x] >> 31) & ~slot), stays = now >> 31;
    stage[x] = now;
    if (!moves) continue;
    i32 to_u, to_v;
    if (is_affine) {
      to_u = (i32)(u >> shift);
      to_v = (i32)(v >> shift);
    } else {
      const i32 divisor = (i32)(depth >> shift);
      const f32 below = (f32)(divisor != 0 ? divisor : 1);
      to_u = quotient((i32)(u >> NUMERATOR_SHIFT), below, factor, end_u);
      to_v = quotient((i32)(v >> NUMERATOR_SHIFT), below, factor, end_v);
    }
    column[x] = ((i32)(origin_u + sign_u * (u32)to_u) & stays) | (safe.u & ~stays);
    line[x] = ((i32)(origin_v + sign_v * (u32)to_v) & stays) | (safe.v & ~stays);
  }
}

void apply_map(const i64 *record, bool moves, i32 slot, i64 width, int bits, Safe safe, Scratch &s) {
  const bool is_affine = record[Record::EXPONENT] == 0;
  auto through = is_affine ? moves ? apply_map_row<true, true> : apply_map_row<true, false>
                 : moves   ? apply_map_row<false, true>
                           : apply_map_row<false, false>;
  through(record, slot, width, bits, safe, s.row.column.at, s.row.line.at, s.row.stage.at);
}

}  // namespace

void compute_displaced_positions(const Row &row, i64 count, i64 y, i64 width, Scratch &s) {
  const i64 slot = s.tables.map_slots[0];
  const i16 *grids = row.batch->grids;
  const int interpolation = row.flags[slot] & INTERPOLATION_MASK;
  const int bits = interpolation == Interpolation::BICUBIC ? BICUBIC_BITS : BILINEAR_BITS;
  i32 *column = s.row.column.at, *line = s.row.line.at, *stage = s.row.stage.at;
  auto record_of = [&](i64 i) { return s.interpolate.record(i); };
  auto is_grid = [&](i64 i) { return record_of(i)[Record::GRID] != 0; };
  auto folds = [&](i64 i) { return record_of(i)[Record::FOLD] != 0; };
  memset(stage, 0xff, (size_t)width * sizeof *stage);
  i64 last = count - 1;
  for (; !is_grid(last) && !folds(last); last--)
    mark_outside(record_of(last), y, s.tables.map_slots[last], width, stage);
  if (is_grid(last)) {
    if (last == count - 1) displace_row(record_of(last), grids, y, width, bits, s);
    else compute_positions(record_of(last + 1), y, {0, width}, bits, s);
  }
  const Safe safe = {(i32)((u32)row.window[slot][1] << bits), (i32)((u32)row.window[slot][0] << bits)};
  for (i64 i = last; i >= 0; i--) {
    const i64 *record = record_of(i);
    const i64 slack = i == 0 && interpolation == Interpolation::BICUBIC ? 1 << bits : 0;
    if (!is_grid(i) && folds(i)) {
      fold_through(record, y, i < last, bits, slack, width, s);
      continue;
    }
    if (!is_grid(i)) {
      apply_map(record, i == 0 || is_grid(i - 1), s.tables.map_slots[i], width, bits, safe, s);
      continue;
    }
    if (i < count - 1) displace_positions(record, grids, width, bits, s);
    if (interpolation == Interpolation::NEAREST) drop_fractions(width, bits, column, line);
    if (folds(i)) fold_displaced(record, bits, slack, width, s);
    // Up to half a pixel outside, bilinear samples are blended with the fill: see `read_seam`.
    const i64 beyond = i == 0 && interpolation == Interpolation::BILINEAR ? 1 << (bits - 1) : 0;
    enter_grid(record, s.tables.map_slots[i], beyond, width, bits, safe, s);
  }
  if (interpolation != Interpolation::NEAREST) return;
  for (i64 x = 0; x < width; x++) {
    column[x] >>= bits;
    line[x] >>= bits;
  }
}

}  // namespace vg::VG_LEVEL
