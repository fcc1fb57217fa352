// Maps of masks read the nearest pixel, and round only once: if an image is interpolated several times in succession,
// the maps of its masks are composed (Interpolation CONTAINING_PIXEL). Rounding between them would shift a mask by
// fractions of a pixel, and by more after an enlargement.
#include "lowering.h"

namespace vg::VG_LEVEL {
namespace {

bool is_mirror(int op) { return op == Op::HFLIP || op == Op::VFLIP || op == Op::ROT90; }

// True for an operation whose flags contain an Interpolation.
bool has_interpolation(int op) {
  if (is_mirror(op) || op == Op::CROP || op == Op::PAD) return false;
  return KIND_OF[op] == Kind::GEOMETRY || op == Op::RESIZED_CROP;
}

// Marks, in `breaks`, runs of maps to compose: interpolating maps, and mirrors before them, which break ties the other
// way. A nearest map ends a run.
void mark_runs(const Rewritten &program) {
  i64 first = 0;
  bool has_partner = false;
  for (i64 k = 0; k < program.length(); k++) {
    const int op = program.opcode(k);
    const bool is_map = has_interpolation(op);
    const bool interpolates = is_map && program.interpolation(k) != Interpolation::NEAREST;
    program.breaks(k)[0] = 0;
    if (interpolates && has_partner)
      for (i64 i = first; i <= k; i++) program.breaks(i)[0] = 1;
    has_partner |= interpolates || is_mirror(op);
    if (is_map && !interpolates) {
      first = k + 1;
      has_partner = false;
    }
  }
}

void set_affine(const Rewritten &program, i64 k, f64 xx, f64 xy, f64 x0, f64 yx, f64 yy, f64 y0) {
  const f64 values[NUM_ARGS] = {xx, xy, x0, yx, yy, y0, 0, 0};
  memcpy(program.args(k), values, sizeof values);
  program.opcode(k) = Op::AFFINE;
}

// Converts a pad or a resize to an affine map in continuous coordinates.
void make_affine(const Rewritten &program, i64 k) {
  const f64 *a = program.args(k);
  if (program.opcode(k) == Op::PAD) {
    program.flags(k) = (i16)(program.flags(k) << INTERPOLATION_BITS);  // a pad's flags are the PadMode of the border
    set_affine(program, k, 1, 0, -trunc(a[0]), 0, 1, -trunc(a[1]));
  } else if (program.opcode(k) == Op::RESIZED_CROP) {
    const f64 top = (f32)a[0], left = (f32)a[1], bottom = (f32)(a[0] + a[2]), right = (f32)(a[1] + a[3]);
    set_affine(program, k, (right - left) / a[5], 0, left, 0, (bottom - top) / a[4], top);
  }
}

}  // namespace

void take_nearest(const Rewritten &program) {
  mark_runs(program);
  for (i64 k = 0; k < program.length(); k++) {
    const bool is_composed = program.breaks(k)[0];
    if (has_interpolation(program.opcode(k))) program.flags(k) &= (i16)~INTERPOLATION_MASK;
    if (!is_composed) continue;
    make_affine(program, k);
    program.flags(k) |= Interpolation::CONTAINING_PIXEL;
  }
}

}  // namespace vg::VG_LEVEL
