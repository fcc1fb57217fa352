// Converts geometric operations to maps from output pixels to input coordinates.
//
// MAP_FIXED: six 16.16 integers, source = `(a x + b y + c) >> 16, (d x + e y + f) >> 16`, as in Pillow.
// MAP_FLOAT, MAP_PERSPECTIVE: real coefficients. MAP_GRID: displacements. MAP_SCALE, MAP_PAD: tables by axis.
#include "lowering.h"

namespace vg::VG_LEVEL {
namespace {

// True if Pillow 13 runs the vertical pass first (python-pillow/Pillow#9549); the order affects rounding.
bool is_vertical_first(Size in, Size out) {
  const i64 fewer_lines = in.height - out.height, fewer_columns = in.width - out.width;
  return fewer_lines > 0 && fewer_lines > 2 * fewer_columns;
}

void set(f64 *a, f64 a0, f64 a1, f64 a2, f64 a3, f64 a4, f64 a5) {
  const f64 values[NUM_ARGS] = {a0, a1, a2, a3, a4, a5, 0, 0};
  memcpy(a, values, sizeof values);
}

// Sets an integer map: source x = xx x + xy y + x0, source y = yx x + yy y + y0.
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

// Chooses the kind of map for an affine matrix with real coefficients; returns its opcode.
int affine_to_map(f64 *a, int interpolation, Size out) {
  a[6] = a[7] = 0;  // clears the magnitude of a custom operation
  const bool is_shift = a[0] == 1 && a[1] == 0 && a[3] == 0 && a[4] == 1;
  if (is_shift && interpolation == Interpolation::NEAREST) {
    constexpr f64 limit = MAX_COORD / 2;
    const f64 x = clamp(a[2], -limit, limit), y = clamp(a[5], -limit, limit);
    return set_integer(a, 1, 0, floor(x + 0.5), 0, 1, floor(y + 0.5));
  }
  // Limit of offsets such that no pixel is shifted to MAX_COORD, where nothing is read.
  constexpr f64 near_limit = MAX_COORD - 2 * FIXED_LIMIT;
  const bool is_near = fabs(a[2]) < near_limit && fabs(a[5]) < near_limit;
  // Interpolation at integer positions reads one pixel with weight 1, so the map may be an integer map. Not for masks,
  // whose maps are composed later.
  const bool may_read_whole = interpolation != Interpolation::CONTAINING_PIXEL;
  if (may_read_whole && is_shift && is_near && is_whole(a[2]) && is_whole(a[5]))
    return set_integer(a, 1, 0, a[2], 0, 1, a[5]);
  if (interpolation != Interpolation::NEAREST) {
    quantize(a, 6);
    return Op::MAP_FLOAT;
  }
  if (a[1] == 0 && a[3] == 0) {
    set(a, a[0], a[2], a[4], a[5], 0, 0);
    return Op::MAP_SCALE;
  }
  if (!fits_fixed(a, out)) return Op::MAP_FLOAT;
  auto to_fixed = [](f64 value) { return floor_of(value * FIXED_ONE + 0.5); };
  const f64 x0 = a[2] + a[0] * 0.5 + a[1] * 0.5, y0 = a[5] + a[3] * 0.5 + a[4] * 0.5;
  set(a, to_fixed(a[0]), to_fixed(a[1]), to_fixed(x0), to_fixed(a[3]), to_fixed(a[4]), to_fixed(y0));
  return Op::MAP_FIXED;
}

// Rewrites the arguments of a geometric instruction; returns the opcode of the map.
int to_map(int op, f64 *a, int interpolation, Size in, Size out) {
  switch (op) {
    case Op::HFLIP: return set_integer(a, -1, 0, (f64)(in.width - 1), 0, 1, 0);
    case Op::VFLIP: return set_integer(a, 1, 0, 0, 0, -1, (f64)(in.height - 1));
    case Op::ROT90: return set_quarter_turns(a, (i64)a[0] & 3, in);
    case Op::CROP: return set_integer(a, 1, 0, trunc(a[1]), 0, 1, trunc(a[0]));
    case Op::PAD:
      // The flags of a pad are its PadMode.
      if (interpolation != PadMode::CONSTANT) return Op::MAP_PAD;
      return set_integer(a, 1, 0, 0.0 - trunc(a[0]), 0, 1, 0.0 - trunc(a[1]));
    case Op::RESIZED_CROP: {
      const f64 top = a[0], left = a[1], scale_y = a[2] / a[4], scale_x = a[3] / a[5], flip = a[6], by_corners = a[7];
      set(a, scale_x, left, scale_y, top, flip, by_corners);
      return Op::MAP_SCALE;
    }
    case Op::DISPLACE: return Op::MAP_GRID;
    case Op::PERSPECTIVE:
      if (interpolation != Interpolation::NEAREST) quantize(a, 8);
      return Op::MAP_PERSPECTIVE;
    case Op::ROTATE: {
      const i64 turns = exact_turns(a, in);
      if (turns >= 0) return set_quarter_turns(a, turns, in);
      set_rotation(a, in, out, a);
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
    const Size out = {program.out_size(k)[0], program.out_size(k)[1]};
    f64 *a = program.args(k);
    i32 *window = program.window(k);
    window[2] = (i32)in.height;
    window[3] = (i32)in.width;
    if (op == Op::RESIZED_CROP && program.flags(k) != Interpolation::NEAREST) {
      a[7] = is_vertical_first(in, out) ? 1 : 0;
    } else if (KIND_OF[op] == Kind::GEOMETRY || op == Op::RESIZED_CROP) {
      program.opcode(k) = (i16)to_map(op, a, program.interpolation(k), in, out);
      if (program.is_integer_map(k) && program.interpolation(k) == Interpolation::CONTAINING_PIXEL) {
        make_real(a);  // a mask's map, which is composed with others
        program.opcode(k) = Op::MAP_FLOAT;
      }
      // A map that stays inside the image has nothing to fold.
      if (program.is_integer_map(k) && stays_inside(a, window, out.height, out.width))
        program.flags(k) &= INTERPOLATION_MASK;
    }
    in = out;
  }
}

}  // namespace vg::VG_LEVEL
