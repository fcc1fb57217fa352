// Tables of nearest maps, and integer records of interpolating maps: see variegate/program/coords.py and
// tests/oracle/places.py.
#include "coords.h"

namespace vg {
namespace {

// A linear form of points: step per column, step per line, and the value at 0.
struct Form {
  f64 x, y, at_0;
};

// The composition of the maps so far: numerators of the two coordinates, and their denominator.
struct Joined {
  Form u, v, depth;
};
constexpr Joined IDENTITY = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

Form combine(f64 a, const Form &u, f64 b, const Form &v, f64 c, const Form &w) {
  return {a * u.x + b * v.x + c * w.x, a * u.y + b * v.y + c * w.y, a * u.at_0 + b * v.at_0 + c * w.at_0};
}

// The distance from a side of the window, times the depth.
Form from_side(i64 side, f64 sign, const Form &form, const Form &depth) {
  const f64 at = (f64)side;
  return {sign * (form.x - at * depth.x), sign * (form.y - at * depth.y), sign * (form.at_0 - at * depth.at_0)};
}

// Converts a linear form of points to a form of integer columns and lines.
Form at_centers(const Form &form) { return {form.x, form.y, form.at_0 + (form.x + form.y) * 0.5}; }

// Shifts points slightly, so that points on a border remain inside in spite of rounding.
Form nudge(const Form &form, const Form &depth) {
  constexpr f64 NUDGE = 0x1p-24;
  return {form.x + NUDGE * depth.x, form.y + NUDGE * depth.y, form.at_0 + NUDGE * depth.at_0};
}

// The greatest magnitude of a linear form over integer columns and lines, which is at a corner.
f64 greatest(const Form &form, i64 columns, i64 lines) {
  const f64 a = form.x * (f64)columns, b = form.y * (f64)lines, c = form.at_0;
  const f64 corner_max = larger(larger(fabs(c), fabs(a + c)), larger(fabs(b + c), fabs(a + b + c)));
  return fabs(a) + fabs(b) + fabs(c) < INFINITY ? corner_max : INFINITY;
}

i64 in_fixed_point(f64 value, int scale) { return to_i64(floor(ldexp(value, scale) + 0.5)); }

void write_form(const Form &form, int scale, i64 columns, i64 lines, i64 *to) {
  // With a single column or line, the step is not used, and may be too large for the record.
  to[0] = columns ? in_fixed_point(form.x, scale) : 0;
  to[1] = lines ? in_fixed_point(form.y, scale) : 0;
  to[2] = in_fixed_point(form.at_0, scale);
}

int exponent_of(f64 value) {
  int exponent;
  frexp(value, &exponent);
  return exponent;
}

// Writes the division by a varying depth, and whether the depth is negative anywhere.
void write_division(i64 *record, i64 columns, i64 lines, int bits) {
  constexpr int DIVISOR_BITS = 30;
  const i64 a = times(record[Record::DEPTH], columns), b = times(record[Record::DEPTH + 1], lines);
  const i64 c = record[Record::DEPTH + 2];
  const i64 corners[4] = {c, plus(a, c), plus(b, c), plus(plus(a, b), c)};
  i64 most = 0, least = c;
  for (i64 corner : corners) {
    most = max_of(most, corner < 0 ? minus(0, corner) : corner);
    least = min_of(least, corner);
  }
  record[Record::SHIFT] = max_of(0, exponent_of((f64)most) - DIVISOR_BITS);
  record[Record::EXPONENT] = bits + NUMERATOR_SHIFT - record[Record::SHIFT];
  if (least < 0) record[Record::BEHIND] = 1;
}

bool has_record(int op) { return IS_SUBPIXEL_MAP[op] || op == Op::MAP_FIXED; }

void clear_record(i64 *record) { memset(record, 0, RECORD_FIELDS * sizeof(i64)); }

void write_fixed(const f64 *a, const i32 *window, int mode, i64 *record) {
  clear_record(record);
  for (int axis = 0; axis < 2; axis++) {
    for (int j = 0; j < 3; j++) record[Record::U + 3 * axis + j] = to_i64(a[3 * axis + j]);
    i64 &start = record[Record::U + 3 * axis + 2];
    start = minus(start, (i64)window[1 - axis] * (1 << FIXED_BITS));
    record[Record::SPAN_U + axis] = (i64)window[3 - axis] - window[1 - axis];
  }
  record[Record::SHIFT] = FIXED_BITS;
  record[Record::FOLD] = mode;
  record[Record::ORIGIN_U] = window[1];
  record[Record::SIGN_U] = 1;
  record[Record::ORIGIN_V] = window[0];
  record[Record::SIGN_V] = 1;
}

int position_bits(int interpolation) { return interpolation == Interpolation::BICUBIC ? BICUBIC_BITS : BILINEAR_BITS; }

void write_grid(const f64 *a, int interpolation, int mode, const i32 *window, const i32 *out_size, i64 *record) {
  const int bits = position_bits(interpolation);
  const i64 orientation = to_i64(a[3]);
  const bool is_far_x = (orientation & FAR_X) != 0, is_far_y = (orientation & FAR_Y) != 0;
  clear_record(record);
  record[Record::GRID] = to_i64(a[0]) + 1;
  record[Record::COLUMNS] = to_i64(a[2]);
  record[Record::STEP_Y] = to_i64(a[4]);
  record[Record::STEP_X] = to_i64(a[5]);
  record[Record::SPAN_U] = out_size[1];
  record[Record::SPAN_V] = out_size[0];
  record[Record::SWAPS] = orientation & SWAPPED;
  record[Record::TWICE] = orientation & WEIGHS_TWICE;
  record[Record::SHIFT] = NODE_BITS + 2 * WEIGHT_BITS - to_i64(a[6]) - bits;
  record[Record::ORIGIN_U] = (i64)window[is_far_x ? 3 : 1] * (1 << bits);
  record[Record::SIGN_U] = is_far_x ? -1 : 1;
  record[Record::ORIGIN_V] = (i64)window[is_far_y ? 2 : 0] * (1 << bits);
  record[Record::SIGN_V] = is_far_y ? -1 : 1;
  record[Record::BEHIND] = 1;
  record[Record::FOLD] = mode;
}

// The domain of a chain of maps. `is_moved`: a grid or a fold has moved the points, so they are not pixel centers.
struct Domain {
  i64 columns, lines;  // numbers of the last ones
  bool is_moved;
};

// Writes the record of a map with real coefficients. `joined`: the composition of this map and all later ones. Returns
// true if it folds, which ends the chain.
bool write_real(const Joined &joined, const f64 *a, bool is_affine, bool is_perspective, int flags, const i32 *window,
                const Domain &domain, i64 *record) {
  constexpr int AFFINE_BITS = 37, INTEGER_BITS = 61;
  const int bits = position_bits(flags & INTERPOLATION_MASK), mode = flags >> INTERPOLATION_BITS;
  // Coordinates are distances from the side that belongs to the window: the far side if the map contains a flip.
  const bool is_far_x = !is_perspective && a[6] != 0, is_far_y = !is_perspective && a[7] != 0;
  const i64 side_u = window[is_far_x ? 3 : 1], side_v = window[is_far_y ? 2 : 0];
  const i64 span_u = (i64)window[3] - window[1], span_v = (i64)window[2] - window[0];
  const i64 sign_u = is_far_x ? -1 : 1, sign_v = is_far_y ? -1 : 1;
  const Form depth = at_centers(joined.depth);
  const Form u = nudge(at_centers(from_side(side_u, (f64)sign_u, joined.u, joined.depth)), depth);
  const Form v = nudge(at_centers(from_side(side_v, (f64)sign_v, joined.v, joined.depth)), depth);
  clear_record(record);
  record[Record::ORIGIN_U] = side_u * (1 << bits);
  record[Record::SIGN_U] = sign_u;
  record[Record::ORIGIN_V] = side_v * (1 << bits);
  record[Record::SIGN_V] = sign_v;
  if (mode != 0) {
    record[Record::FOLD] = mode;
    record[Record::BEHIND] = 1;
    record[Record::SPAN_U] = span_u;
    record[Record::SPAN_V] = span_v;
  }
  f64 magnitude = larger(greatest(u, domain.columns, domain.lines), greatest(v, domain.columns, domain.lines));
  magnitude = larger(magnitude, greatest(depth, domain.columns, domain.lines) * (f64)max_of(span_u, span_v));
  // NaN or an empty window: a record of zeros has nothing inside.
  if (!(magnitude < MAX_COORD) || min_of(span_u, span_v) < 1) return mode != 0;
  int scale = INTEGER_BITS - exponent_of(magnitude);
  if (is_affine && !domain.is_moved) scale = min_of(scale, AFFINE_BITS);
  record[Record::SPAN_U] = span_u;
  record[Record::SPAN_V] = span_v;
  write_form(u, scale, domain.columns, domain.lines, record + Record::U);
  write_form(v, scale, domain.columns, domain.lines, record + Record::V);
  write_form(depth, scale, domain.columns, domain.lines, record + Record::DEPTH);
  if (is_affine) record[Record::SHIFT] = scale - bits;
  else write_division(record, domain.columns, domain.lines, bits);
  return mode != 0;
}

// The remainder that has the sign of the divisor, as Python's.
f64 positive_angle(f64 degrees) {
  const f64 rest = fmod(degrees, 360.0);
  return rest < 0 ? rest + 360.0 : rest;
}

f64 round_to_15_decimals(f64 value) { return rint(value * 1e15) / 1e15; }

}  // namespace

bool fits_fixed(const f64 *m, Size out) {
  const f64 width = (f64)out.width, height = (f64)out.height;
  const f64 corners[4][2] = {{0, 0}, {width, 0}, {0, height}, {width, height}};
  for (const f64 *corner : corners)
    for (const f64 *line = m; line < m + 6; line += 3)
      if (!(fabs(corner[0] * line[0] + corner[1] * line[1] + line[2]) < FIXED_LIMIT)) return false;
  return true;
}

i64 exact_turns(const f64 *a, Size in) {
  if (!isnan(a[1])) return -1;
  const f64 angle = positive_angle(a[0]);
  const bool may_transpose = in.height == in.width || a[3] != 0;
  if (angle == 0 || angle == 180 || ((angle == 90 || angle == 270) && may_transpose)) return (i64)(angle / 90);
  return -1;
}

void set_rotation(const f64 *a, Size in, Size out, f64 *m) {
  const f64 radians = -(positive_angle(a[0]) * (PI / 180.0));
  const f64 center_x = isnan(a[1]) ? (f64)in.width / 2.0 : a[1], center_y = isnan(a[2]) ? (f64)in.height / 2.0 : a[2];
  const f64 cosine = round_to_15_decimals(cos(radians)), sine = round_to_15_decimals(sin(radians));
  f64 x0 = cosine * -center_x + sine * -center_y + center_x;
  f64 y0 = -sine * -center_x + cosine * -center_y + center_y;
  if (a[3] != 0) {
    const f64 dx = -(f64)(out.width - in.width) / 2.0, dy = -(f64)(out.height - in.height) / 2.0;
    x0 = cosine * dx + sine * dy + x0;
    y0 = -sine * dx + cosine * dy + y0;
  }
  const f64 values[6] = {cosine, sine, x0, -sine, cosine, y0};
  memcpy(m, values, sizeof values);
}

void scale_table(f64 start, f64 step, i64 in_size, i32 *table, i64 n, bool is_mirrored, bool by_corners, int mode) {
  f64 sum = start + step * 0.5;
  for (i64 i = 0; i < n; i++, sum += step) {
    const f64 at = by_corners ? start + (f64)floorf((f32)i * (f32)step) + 0.5 : sum;
    // Checked before the cast: positions far outside the image do not fit into an integer.
    const bool is_inside = at >= 0 && at < (f64)in_size;
    const i64 index = mode != 0 ? fold_real(at, 0, in_size, mode) : is_inside ? (i64)at : -1;
    table[is_mirrored ? n - 1 - i : i] = (i32)index;
  }
}

void pad_table(i64 before, int mode, i64 in_size, i32 *table, i64 n) {
  for (i64 i = 0; i < n; i++) table[i] = (i32)fold_index(i - before, in_size, mode);
}

bool may_hit(const f64 *a, const i32 *window, i64 height, i64 width) {
  const f64 dx = a[0] * (f64)(width - 1), dy = a[1] * (f64)(height - 1);
  const f64 ex = a[3] * (f64)(width - 1), ey = a[4] * (f64)(height - 1);
  const f64 left = a[2] + smaller(dx, 0) + smaller(dy, 0), right = a[2] + larger(dx, 0) + larger(dy, 0);
  const f64 top = a[5] + smaller(ex, 0) + smaller(ey, 0), bottom = a[5] + larger(ex, 0) + larger(ey, 0);
  return right >= window[1] * FIXED_ONE && left < window[3] * FIXED_ONE && bottom >= window[0] * FIXED_ONE &&
         top < window[2] * FIXED_ONE;
}

void quantize(f64 *a, i64 count) {
  constexpr f64 GRID = 0x1p36, DEPTH_GRID = 0x1p48, LARGE = 0x1p17;
  for (i64 i = 0; i < count; i++) {
    const f64 grid = i < 6 ? GRID : DEPTH_GRID;
    if (fabs(a[i]) < LARGE) a[i] = floor_of(a[i] * grid + 0.5) / grid;
  }
}

// Below these limits, sums have at most 53 bits: multiples of 2**-37 for positions, and of 2**-48 for denominators.
constexpr f64 EXACT = 0x1p15, EXACT_STEPS = 0x1p4;

bool is_exact_f64(const f64 *a, i64 height, i64 width, bool is_perspective) {
  if (is_perspective) {
    const f64 linear_part = larger(larger(fabs(a[0]), fabs(a[1])), larger(fabs(a[3]), fabs(a[4])));
    const f64 steps = linear_part + 0x1p15 * larger(fabs(a[6]), fabs(a[7]));
    return steps < EXACT_STEPS && larger(fabs(a[2]), fabs(a[5])) < EXACT;
  }
  const f64 u = fabs(a[0]) * (f64)width + fabs(a[1]) * (f64)height + fabs(a[2]);
  const f64 v = fabs(a[3]) * (f64)width + fabs(a[4]) * (f64)height + fabs(a[5]);
  return larger(u, v) < EXACT;
}

i64 write_records(const MapSlots &slots, i64 first, i64 end, i64 *records) {
  i64 count = 0, last = first;
  for (i64 k = first; k < end; k++)
    if (has_record(slots.opcode[k])) {
      count++;
      last = k;
    }
  Domain domain = {(i64)slots.out_size[last][1] - 1, (i64)slots.out_size[last][0] - 1, false};
  Joined joined = IDENTITY;
  bool is_affine = true;
  i64 *record = records + count * RECORD_FIELDS, cut = -1;
  for (i64 k = last; k >= first; k--) {
    const int op = slots.opcode[k], flags = slots.flags[k];
    if (!has_record(op)) continue;
    const i32 *window = slots.window[k];
    const f64 *a = slots.args[k];
    record -= RECORD_FIELDS;
    if (op == Op::MAP_FIXED) {
      write_fixed(a, window, flags >> INTERPOLATION_BITS, record);
      continue;
    }
    if (cut >= 0) {
      joined = IDENTITY;
      is_affine = true;
      // The range of all positions, half a pixel more than the range of centers.
      domain = {slots.window[cut][3], slots.window[cut][2], true};
      cut = -1;
    }
    if (op == Op::MAP_GRID) {
      write_grid(a, flags & INTERPOLATION_MASK, flags >> INTERPOLATION_BITS, window, slots.out_size[k], record);
      cut = k;
      continue;
    }
    const bool is_perspective = op == Op::MAP_PERSPECTIVE;
    const Joined before = joined;
    joined.u = combine(a[0], before.u, a[1], before.v, a[2], before.depth);
    joined.v = combine(a[3], before.u, a[4], before.v, a[5], before.depth);
    if (is_perspective) {
      joined.depth = combine(a[6], before.u, a[7], before.v, 1, before.depth);
      is_affine = false;
    }
    if (write_real(joined, a, is_affine, is_perspective, flags, window, domain, record)) cut = k;
  }
  return count;
}

}  // namespace vg
