// Composes maps whose composition is exact.
//
// Two maps with value operations between them are joined in three cases:
// (a) the later map never reads outside its image;
// (b) the earlier map never reads outside its image;
// (c) the earlier map is an integer map, no operation is between them and both have equal fills.
//
// The other map of (a) and (b) may fold, because a mirrored or shifted window folds equally. A crop must not be
// moved across statistics; a flip may. A grid absorbs the integer map before it, and a resize the crop before it.
#include "lowering.h"

namespace vg::VG_LEVEL {

void make_real(f64 *a) {
  for (int i = 0; i < 6; i++) a[i] /= FIXED_ONE;
  if (a[0] + a[1] < 0) a[2] += 1;
  if (a[3] + a[4] < 0) a[5] += 1;
  a[6] = a[7] = 0;
}

namespace {

// True for a horizontal flip.
bool is_mirror(const Rewritten &program, i64 k) {
  const f64 *a = program.args(k);
  const bool keeps_lines = a[3] == 0 && a[4] == FIXED_ONE && a[5] == 0;
  const bool mirrors = a[0] == -FIXED_ONE && a[1] == 0 && a[2] == (program.out_size(k)[1] - 1) * FIXED_ONE;
  return program.opcode(k) == Op::MAP_FIXED && keeps_lines && mirrors;
}

// True if a map with real coefficients can absorb the integer map before it. Mirrors change which border belongs to the
// window, quarter turns the order of rounding.
bool takes_earlier(int op, int interpolation, const f64 *earlier, const f64 *a, const i32 *size) {
  const bool is_nearest = interpolation == Interpolation::NEAREST;
  if (op == Op::MAP_GRID) return is_nearest || earlier[1] == 0;
  if (op != Op::MAP_FLOAT && op != Op::MAP_PERSPECTIVE) return false;
  const bool mirrors = earlier[0] < 0 || earlier[1] < 0 || earlier[3] < 0 || earlier[4] < 0;
  if (is_nearest) return !mirrors;
  if (interpolation == Interpolation::CONTAINING_PIXEL && mirrors) return false;
  const bool is_perspective = op == Op::MAP_PERSPECTIVE;
  const bool keeps_axes = earlier[1] == 0 && !(is_perspective && mirrors);
  return keeps_axes && is_exact_f64(a, size[0], size[1], is_perspective);
}

// True if an affine map of coefficients `a` can absorb the integer map after it.
bool takes_later(int interpolation, const f64 *a, const i32 *size) {
  return interpolation == Interpolation::NEAREST || is_exact_f64(a, size[0], size[1], false);
}

// Converts a window in the output of the integer map `first` to a window in its source.
void move_window(const f64 *first, i32 *window) {
  Rectangle moved = {0, 0, 0, 0};
  if (window[3] > window[1] && window[2] > window[0])
    moved = source_rectangle(first, {window[0], window[1], window[2], window[3]});
  window[0] = (i32)moved.top;
  window[1] = (i32)moved.left;
  window[2] = (i32)moved.bottom;
  window[3] = (i32)moved.right;
}

// then := first(then(x, y)), where `then` is an integer map. `center`: 0.5 if `first` takes continuous coordinates.
void substitute(const f64 *first, f64 *then, f64 center) {
  const f64 xx = then[0] / FIXED_ONE, xy = then[1] / FIXED_ONE, yx = then[3] / FIXED_ONE, yy = then[4] / FIXED_ONE;
  const f64 x0 = then[2] / FIXED_ONE + center - center * (xx + xy);
  const f64 y0 = then[5] / FIXED_ONE + center - center * (yx + yy);
  const f64 a = first[0], b = first[1], c = first[2], d = first[3], e = first[4], f = first[5];
  then[0] = a * xx + b * yx;
  then[1] = a * xy + b * yy;
  then[2] = a * x0 + b * y0 + c;
  then[3] = d * xx + e * yx;
  then[4] = d * xy + e * yy;
  then[5] = d * x0 + e * y0 + f;
}

// then := source of `first` at the coordinates that `then` reads. Either is an integer map.
void compose_fixed(const f64 *first, f64 *then, bool is_then_integer) {
  substitute(first, then, 0);
  if (is_then_integer) return;
  // A mirror negates the floor of a coordinate: -floor(v / ONE) = floor((ONE - 1 - v) / ONE).
  if (first[0] + first[1] < 0) then[2] += FIXED_ONE - 1;
  if (first[3] + first[4] < 0) then[5] += FIXED_ONE - 1;
}

// The quarter turns of a grid that reads through the integer map `first`.
f64 orient_grid(const f64 *first, int turn) {
  bool far_x = turn & FAR_X, far_y = turn & FAR_Y;
  const bool is_transposed = first[0] == 0;
  if (is_transposed) {
    const bool swapped = far_x;
    far_x = far_y;
    far_y = swapped;
  }
  if (first[0] + first[1] < 0) far_x = !far_x;
  if (first[3] + first[4] < 0) far_y = !far_y;
  const bool swaps = is_transposed != ((turn & SWAPPED) != 0);
  return (far_x ? FAR_X : 0) + (far_y ? FAR_Y : 0) + (swaps ? SWAPPED : 0) + (turn & WEIGHS_TWICE);
}

// then := first(then(x, y)), where `then` interpolates, in continuous coordinates, and `first` is an integer map.
void put_integer_before(const f64 *first, f64 *then, bool is_perspective) {
  f64 a[NUM_ARGS];
  memcpy(a, then, sizeof a);
  const f64 g = is_perspective ? a[6] : 0, h = is_perspective ? a[7] : 0;
  const f64 xx = first[0] / FIXED_ONE, xy = first[1] / FIXED_ONE, yx = first[3] / FIXED_ONE, yy = first[4] / FIXED_ONE;
  const bool mirrors_x = xx + xy < 0, mirrors_y = yx + yy < 0;
  const f64 x0 = first[2] / FIXED_ONE + (mirrors_x ? 1 : 0), y0 = first[5] / FIXED_ONE + (mirrors_y ? 1 : 0);
  // One of the two factors in each row is zero, so that no sum is rounded.
  then[0] = xx * a[0] + xy * a[3] + x0 * g;
  then[1] = xx * a[1] + xy * a[4] + x0 * h;
  then[2] = xx * a[2] + xy * a[5] + x0;
  then[3] = yx * a[0] + yy * a[3] + y0 * g;
  then[4] = yx * a[1] + yy * a[4] + y0 * h;
  then[5] = yx * a[2] + yy * a[5] + y0;
  if (is_perspective) return;
  // The window is [left, right); mirrored, it is (left, right].
  const f64 far_x = xx != 0 ? a[6] : a[7], far_y = xx != 0 ? a[7] : a[6];
  then[6] = mirrors_x ? 1 - far_x : far_x;
  then[7] = mirrors_y ? 1 - far_y : far_y;
}

bool keeps_area(const i32 *a, const i32 *b) { return (i64)a[0] * a[1] == (i64)b[0] * b[1]; }

void set_sizes(const Rewritten &program, i64 first, i64 end, const i32 *size) {
  const i32 height = size[0], width = size[1];
  for (i64 k = first; k < end; k++) {
    program.out_size(k)[0] = height;
    program.out_size(k)[1] = width;
  }
}

// True if every pixel of an integer map reads inside its window.
bool never_leaves(const Rewritten &program, i64 k) {
  const i32 *size = program.out_size(k);
  return stays_inside(program.args(k), program.window(k), size[0], size[1]);
}

// (a): the map at j never reads outside, and is absorbed by the map at i.
bool join_later(const Rewritten &program, i64 i, i64 j, bool has_statistic) {
  if (!program.is_integer_map(j) || !never_leaves(program, j)) return false;
  const bool is_fixed = program.opcode(i) == Op::MAP_FIXED;
  const bool joins = is_fixed || (program.opcode(i) == Op::MAP_FLOAT &&
                                  takes_later(program.interpolation(i), program.args(i), program.out_size(i)));
  if (!joins || (has_statistic && !keeps_area(program.out_size(j), program.out_size(i)))) return false;
  substitute(program.args(i), program.args(j), is_fixed ? 0 : 0.5);
  memcpy(program.args(i), program.args(j), 6 * sizeof(f64));
  set_sizes(program, i, j, program.out_size(j));
  return true;
}

// (b): the map at i never reads outside, and is absorbed by the map at j.
bool join_earlier(const Rewritten &program, i64 i, i64 j, bool has_statistic) {
  const f64 *earlier = program.args(i);
  if (!program.is_integer_map(i) || !never_leaves(program, i)) return false;
  if (has_statistic && !keeps_area(program.out_size(i), program.in_size(i))) return false;
  const int op = program.opcode(j);
  f64 *a = program.args(j);
  const bool joins =
      op == Op::MAP_FIXED || takes_earlier(op, program.interpolation(j), earlier, a, program.out_size(j));
  if (!joins) return false;
  const bool is_integer = program.is_integer_map(j);
  move_window(earlier, program.window(j));
  if (op == Op::MAP_FIXED) compose_fixed(earlier, a, is_integer);
  else if (op == Op::MAP_GRID) a[3] = orient_grid(earlier, (int)a[3]);
  else put_integer_before(earlier, a, op == Op::MAP_PERSPECTIVE);
  set_sizes(program, i, j, program.in_size(i));
  return true;
}

// (c): the map at i is an integer map, no operation is between, and both have equal fills.
bool join_windows(const Rewritten &program, i64 i, i64 j) {
  if (!program.is_integer_map(i) || program.opcode(j) != Op::MAP_FIXED) return false;
  if (program.folds(i) || program.folds(j) || memcmp(program.fill(i), program.fill(j), 3) != 0) return false;
  const bool is_integer = program.is_integer_map(j);
  i32 *window = program.window(j);
  const i32 *earlier = program.window(i);
  move_window(program.args(i), window);
  compose_fixed(program.args(i), program.args(j), is_integer);
  for (int side = 0; side < 2; side++) {
    window[side] = max_of(window[side], earlier[side]);
    window[2 + side] = min_of(window[2 + side], earlier[2 + side]);
  }
  return true;
}

constexpr i64 NONE = -1;

// Joins the maps at slots i < j in place; returns the slot to remove. `has_others`: there are operations between them.
i64 join(const Rewritten &program, i64 i, i64 j, bool has_others, bool has_statistic) {
  if (join_later(program, i, j, has_statistic)) return j;
  const int interpolation = program.interpolation(i);
  const bool is_grid = program.opcode(i) == Op::MAP_GRID && interpolation != Interpolation::NEAREST;
  if (is_grid && program.is_integer_map(j) && !has_statistic) {
    make_real(program.args(j));
    program.opcode(j) = Op::MAP_FLOAT;
    program.flags(j) = (i16)((program.flags(j) & ~INTERPOLATION_MASK) | interpolation);
    return NONE;
  }
  if (join_earlier(program, i, j, has_statistic)) return i;
  if (!has_others && join_windows(program, i, j)) return i;
  return NONE;
}

// Joins the map at slot j with a map before it; returns the slot to remove.
i64 join_backwards(const Rewritten &program, i64 j) {
  bool has_others = false, has_statistic = false;
  for (i64 i = j - 1; i >= 0; i--) {
    const int kind = program.kind(i);
    if (kind == Kind::GEOMETRY) return join(program, i, j, has_others, has_statistic);
    const bool is_resample = program.opcode(i) == Op::RESIZED_CROP && program.flags(i) != Interpolation::NEAREST;
    if (is_resample && is_mirror(program, j)) {
      program.args(i)[6] = 1 - program.args(i)[6];
      return j;
    }
    if (kind != Kind::VALUE && kind != Kind::STATISTIC) return NONE;
    has_others = true;
    has_statistic |= kind == Kind::STATISTIC;
  }
  return NONE;
}

// Merges the crop before the resize at slot j into the resize's box, as -1 - top, -1 - left; returns the crop's slot.
i64 join_crop(const Rewritten &program, i64 j) {
  const i64 i = j - 1;
  const f64 *a = program.args(i);
  f64 *box = program.args(j);
  const i32 *size = program.out_size(i);
  const bool is_crop = program.is_integer_map(i) && a[0] == FIXED_ONE && a[4] == FIXED_ONE;
  const bool is_all = box[0] == 0 && box[1] == 0 && box[2] == size[0] && box[3] == size[1];
  if (!is_crop || !is_all || !never_leaves(program, i)) return NONE;
  box[0] = -1.0 - a[5] / FIXED_ONE;
  box[1] = -1.0 - a[2] / FIXED_ONE;
  return i;
}

}  // namespace

void merge_maps(const Rewritten &program) {
  i64 j = 1;
  while (j < program.length()) {
    i64 removed = NONE;
    if (program.kind(j) == Kind::GEOMETRY) removed = join_backwards(program, j);
    else if (program.opcode(j) == Op::RESIZED_CROP) removed = join_crop(program, j);
    if (removed == NONE) {
      j++;
      continue;
    }
    program.opcode(removed) = Op::NOP;
    close_gaps(program);
    j = max_of<i64>(1, removed - 1);
  }
}

}  // namespace vg::VG_LEVEL
