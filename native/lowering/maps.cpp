// Geometry becomes maps from output pixels to coordinates of the input.
//
// MAP_FIXED: six 16.16 integers, source = (a x + b y + c) >> 16, (d x + e y + f) >> 16, as Pillow steps them. MAP_FLOAT,
// MAP_PERSPECTIVE: real coefficients. MAP_GRID: displacements. MAP_SCALE, MAP_PAD: tables by axis.
#include "lowering.h"

namespace vg {
namespace {

// Pillow's affine_fixed is taken only where every coordinate stays below this.
constexpr f64 FIXED_LIMIT = 32768.0;
constexpr f64 PI = 3.14159265358979323846;

struct Size {
  i64 height, width;
};

// Pillow 13 takes the vertical pass first here (python-pillow/Pillow#9549): the rounding between the passes shows.
bool is_vertical_first(Size in, const i32 *out) {
  const i64 fewer_lines = in.height - out[0], fewer_columns = in.width - out[1];
  return fewer_lines > 0 && fewer_lines > 2 * fewer_columns;
}

void set(f64 *a, f64 a0, f64 a1, f64 a2, f64 a3, f64 a4, f64 a5) {
  const f64 values[NUM_ARGS] = {a0, a1, a2, a3, a4, a5, 0, 0};
  memcpy(a, values, sizeof values);
}

// source x = xx x + xy y + x0, source y = yx x + yy y + y0, in whole pixels.
int set_integer(f64 *a, f64 xx, f64 xy, f64 x0, f64 yx, f64 yy, f64 y0) {
  constexpr f64 one = FIXED_ONE;
  set(a, xx * one, xy * one, x0 * one, yx * one, yy * one, y0 * one);
  return Op::MAP_FIXED;
}

int set_quarter_turns(f64 *a, i64 turns, Size in) {
  const f64 last_line = (f64)(in.height - 1), last_column = (f64)(in.width - 1);
  switch (turns) {
    case 1: return set_integer(a, 0, -1, last_column, 1, 0, 0);
    case 2: return set_integer(a, -1, 0, last_column, 0, -1, last_line);
    case 3: return set_integer(a, 0, 1, 0, -1, 0, last_line);
    default: return set_integer(a, 1, 0, 0, 0, 1, 0);
  }
}

// The remainder that has the sign of the divisor, as Python's.
f64 floor_mod(f64 value, f64 divisor) {
  const f64 rest = fmod(value, divisor);
  return rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest;
}

// Quarter turns if Pillow's rotate would transpose, else -1.
i64 exact_turns(const f64 *a, Size in) {
  if (!isnan(a[1])) return -1;
  const f64 angle = floor_mod(a[0], 360.0);
  const bool may_transpose = in.height == in.width || a[3] != 0;
  if (angle == 0) return 0;
  if (angle == 180) return 2;
  if (angle == 90 && may_transpose) return 1;
  if (angle == 270 && may_transpose) return 3;
  return -1;
}

f64 round_to_15_decimals(f64 value) { return rint(value * 1e15) / 1e15; }

// Image.rotate's matrix from output to input, whose sines are rounded to 15 decimals, as there.
void set_rotation(f64 *a, Size in, const i32 *out) {
  const f64 radians = -(floor_mod(a[0], 360.0) * (PI / 180.0));
  const f64 center_x = isnan(a[1]) ? (f64)in.width / 2.0 : a[1], center_y = isnan(a[2]) ? (f64)in.height / 2.0 : a[2];
  const f64 cosine = round_to_15_decimals(cos(radians)), sine = round_to_15_decimals(sin(radians));
  f64 x0 = cosine * -center_x + sine * -center_y + center_x;
  f64 y0 = -sine * -center_x + cosine * -center_y + center_y;
  if (a[3] != 0) {
    const f64 dx = -(f64)(out[1] - in.width) / 2.0, dy = -(f64)(out[0] - in.height) / 2.0;
    x0 = cosine * dx + sine * dy + x0;
    y0 = -sine * dx + cosine * dy + y0;
  }
  set(a, cosine, sine, x0, -sine, cosine, y0);
}

bool fits_fixed(const f64 *a, f64 x, f64 y) {
  const f64 u = x * a[0] + y * a[1] + a[2];
  const f64 v = x * a[3] + y * a[4] + a[5];
  return fabs(u) < FIXED_LIMIT && fabs(v) < FIXED_LIMIT;
}

// Chooses how an affine matrix of real coefficients runs.
int affine_to_map(f64 *a, int interpolation, const i32 *out) {
  a[6] = a[7] = 0;  // of a custom operation, the magnitude stood here
  const bool is_shift = a[0] == 1 && a[1] == 0 && a[3] == 0 && a[4] == 1;
  if (is_shift && interpolation == Interpolation::NEAREST) {
    constexpr f64 limit = MAX_COORD / 2;
    const f64 x = clamp(a[2], -limit, limit), y = clamp(a[5], -limit, limit);
    return set_integer(a, 1, 0, floor(x + 0.5), 0, 1, floor(y + 0.5));
  }
  // No pixel of an image's sides is shifted to MAX_COORD, where nothing is read.
  constexpr f64 near_limit = MAX_COORD - 2 * FIXED_LIMIT;
  const bool is_near = fabs(a[2]) < near_limit && fabs(a[5]) < near_limit;
  // Interpolating at whole pixels reads one pixel with weight one.
  if (is_shift && is_near && a[2] == floor(a[2]) && a[5] == floor(a[5])) return set_integer(a, 1, 0, a[2], 0, 1, a[5]);
  if (interpolation != Interpolation::NEAREST) {
    quantize(a, 6);
    return Op::MAP_FLOAT;
  }
  if (a[1] == 0 && a[3] == 0) {
    set(a, a[0], a[2], a[4], a[5], 0, 0);
    return Op::MAP_SCALE;
  }
  const f64 height = out[0], width = out[1];
  if (!(fits_fixed(a, 0, 0) && fits_fixed(a, width, height) && fits_fixed(a, 0, height) && fits_fixed(a, width, 0)))
    return Op::MAP_FLOAT;
  auto to_fixed = [](f64 value) { return floor(value * FIXED_ONE + 0.5); };
  const f64 x0 = a[2] + a[0] * 0.5 + a[1] * 0.5, y0 = a[5] + a[3] * 0.5 + a[4] * 0.5;
  set(a, to_fixed(a[0]), to_fixed(a[1]), to_fixed(x0), to_fixed(a[3]), to_fixed(a[4]), to_fixed(y0));
  return Op::MAP_FIXED;
}

// Rewrites the arguments of a geometric instruction; returns the opcode of the map.
int to_map(int op, f64 *a, int interpolation, Size in, const i32 *out) {
  switch (op) {
    case Op::HFLIP: return set_integer(a, -1, 0, (f64)(in.width - 1), 0, 1, 0);
    case Op::VFLIP: return set_integer(a, 1, 0, 0, 0, -1, (f64)(in.height - 1));
    case Op::ROT90: return set_quarter_turns(a, (i64)a[0] & 3, in);
    case Op::CROP: return set_integer(a, 1, 0, trunc(a[1]), 0, 1, trunc(a[0]));
    case Op::PAD:
      // Of a pad, the flags are its mode.
      if (interpolation != PadMode::CONSTANT) return Op::MAP_PAD;
      return set_integer(a, 1, 0, 0.0 - trunc(a[0]), 0, 1, 0.0 - trunc(a[1]));
    case Op::RESIZED_CROP: {
      const f64 top = a[0], left = a[1], scale_y = a[2] / a[4], scale_x = a[3] / a[5], flip = a[6];
      set(a, scale_x, left, scale_y, top, flip, 0);
      return Op::MAP_SCALE;
    }
    case Op::DISPLACE: return Op::MAP_GRID;
    case Op::PERSPECTIVE:
      if (interpolation != Interpolation::NEAREST) quantize(a, 8);
      return Op::MAP_PERSPECTIVE;
    case Op::ROTATE: {
      const i64 turns = exact_turns(a, in);
      if (turns >= 0) return set_quarter_turns(a, turns, in);
      set_rotation(a, in, out);
      break;
    }
    case Op::SHEAR_X: set(a, 1, a[0], 0, 0, 1, 0); break;
    case Op::SHEAR_Y: set(a, 1, 0, 0, a[0], 1, 0); break;
    case Op::TRANSLATE_X: set(a, 1, 0, -a[0], 0, 1, 0); break;
    case Op::TRANSLATE_Y: set(a, 1, 0, 0, 0, 1, -a[0]); break;
    default: break;  // AFFINE
  }
  return affine_to_map(a, interpolation, out);
}

}  // namespace

void rewrite_maps(const Rewritten &program) {
  Size in = {program.in_shape()[0], program.in_shape()[1]};
  for (i64 k = 0; k < program.length(); k++) {
    const int op = program.opcode(k);
    const i32 *out = program.out_size(k);
    f64 *a = program.args(k);
    i32 *window = program.window(k);
    window[2] = (i32)in.height;
    window[3] = (i32)in.width;
    if (op == Op::RESIZED_CROP && program.flags(k) != Interpolation::NEAREST) {
      a[7] = is_vertical_first(in, out) ? 1 : 0;
    } else if (KIND_OF[op] == Kind::GEOMETRY || op == Op::RESIZED_CROP) {
      program.opcode(k) = (i16)to_map(op, a, program.interpolation(k), in, out);
      // What never leaves the image has nothing to fold.
      if (program.is_whole_pixel_map(k) && stays_inside(a, window, out[0], out[1])) program.flags(k) &= INTERPOLATION_MASK;
    }
    in = {out[0], out[1]};
  }
}

}  // namespace vg
