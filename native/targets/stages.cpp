// Converts the geometry of sampled programs to stages: see variegate/program/stages.py.
#include "stages.h"

namespace vg {
namespace {

// Executors add this to every interpolated position (docs/operations.md).
constexpr f64 NUDGE = 0x1p-24;

// An instruction that becomes a stage. A map whose border is padded becomes two: the pad and the map.
struct Instruction {
  int op, flags;
  const f64 *args;
  Size before, after;
  bool is_endless;  // the map of an image without borders, after its pad
};

bool may_be_scale(int op) {
  return op == Op::RESIZED_CROP || op == Op::ROTATE || op == Op::AFFINE || op == Op::SHEAR_X || op == Op::SHEAR_Y ||
         op == Op::TRANSLATE_X || op == Op::TRANSLATE_Y;
}

bool is_real(int op) { return op == Op::PERSPECTIVE || (may_be_scale(op) && op != Op::RESIZED_CROP); }

// Calls use(row, instruction) for every stage, in order.
template <class Use> void for_each_step(const StagesCall *call, Use use) {
  static const f64 NO_ARGS[NUM_ARGS] = {};
  for (i64 row = 0; row < call->rows; row++)
    for (i64 slot = 0; slot < call->length[row]; slot++) {
      const i64 at = row * call->slots + slot;
      const int op = call->opcode[at], flags = call->flags[at];
      if (!IS_FOLLOWED[op]) continue;
      // Only geometric instructions change the size.
      const i32 *after = call->out_size + 2 * at, *before = slot ? after - 2 : call->in_shape + 3 * row;
      const bool goes_on = flags > INTERPOLATION_MASK;
      const Size in = {before[0], before[1]}, out = {after[0], after[1]};
      if (goes_on) use(row, Instruction{Op::PAD, flags >> INTERPOLATION_BITS, NO_ARGS, in, in, false});
      use(row, Instruction{op, flags & INTERPOLATION_MASK, call->args + at * NUM_ARGS, in, out, goes_on});
    }
}

// -- maps ------------------------------------------------------------------------------------------------------------

void set_affine(f64 *m, f64 a, f64 b, f64 c, f64 d, f64 e, f64 f) {
  const f64 values[6] = {a, b, c, d, e, f};
  memcpy(m, values, sizeof values);
}

// Sets a rotation by counter-clockwise quarter turns.
void set_quarter_turns(f64 *m, i64 turns, f64 height, f64 width) {
  switch (turns) {
    case 0: return set_affine(m, 1, 0, 0, 0, 1, 0);
    case 1: return set_affine(m, 0, -1, width, 1, 0, 0);
    case 2: return set_affine(m, -1, 0, width, 0, -1, height);
    default: return set_affine(m, 0, 1, 0, -1, 0, height);
  }
}

// Rounds a map of real positions to the positions of its 16.16 fixed-point map at pixel centers.
void snap_to_fixed(f64 *m) {
  auto snap = [](f64 value) { return floor(value * FIXED_ONE + 0.5) / FIXED_ONE; };
  for (int axis = 0; axis < 2; axis++) {
    f64 *line = m + 3 * axis;
    const f64 center = line[2] + 0.5 * (line[0] + line[1]);
    line[0] = snap(line[0]);
    line[1] = snap(line[1]);
    line[2] = snap(center) - 0.5 * (line[0] + line[1]);
  }
}

// The inverse of a 3x3 matrix; NaN for a singular matrix.
void invert(const f64 *m, f64 *out) {
  // Each element of the adjugate is the product of the first two elements minus the product of the last two.
  static const u8 MINORS[9][4] = {{4, 8, 5, 7}, {2, 7, 1, 8}, {1, 5, 2, 4}, {5, 6, 3, 8}, {0, 8, 2, 6},
                                  {2, 3, 0, 5}, {3, 7, 4, 6}, {1, 6, 0, 7}, {0, 4, 1, 3}};
  f64 adjugate[9];
  for (int i = 0; i < 9; i++) {
    const u8 *of = MINORS[i];
    adjugate[i] = m[of[0]] * m[of[1]] - m[of[2]] * m[of[3]];
  }
  const f64 determinant = m[0] * adjugate[0] + m[1] * adjugate[3] + m[2] * adjugate[6];
  for (int i = 0; i < 9; i++) out[i] = fabs(determinant) < 1e-12 ? (f64)NAN : adjugate[i] / determinant;
}

// -- steps -----------------------------------------------------------------------------------------------------------

struct StepWriter {
  const Stages *all;
  i64 at;
  f64 *m;
  i64 *numbers;

  StepWriter(const Stages *all, i64 at) : all(all), at(at), m(all->back + 9 * at), numbers(all->numbers + 6 * at) {}

  void set(int kind, bool is_aligned, bool rounds) {
    all->kind[at] = kind;
    all->is_aligned[at] = is_aligned;
    all->rounds[at] = rounds;
  }

  void write(const Instruction &of) {
    static const f64 IDENTITY[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    memcpy(m, IDENTITY, sizeof IDENTITY);
    memset(numbers, 0, 6 * sizeof(i64));
    memcpy(all->before + 2 * at, &of.before, sizeof of.before);
    memcpy(all->after + 2 * at, &of.after, sizeof of.after);
    set(StageKind::MAP, true, false);
    fill(of);
    invert(m, all->ahead + 9 * at);
    if (of.is_endless) all->before[2 * at] = all->before[2 * at + 1] = ENDLESS;
    if (!is_real(of.op) || all->rounds[at]) return;
    for (int i = 0; i < 6; i++) m[i] += NUDGE * m[6 + i % 3];
  }

  void fill(const Instruction &of) {
    const f64 *a = of.args, height = (f64)of.before.height, width = (f64)of.before.width;
    const bool is_nearest = of.flags == Interpolation::NEAREST;
    switch (of.op) {
      case Op::HFLIP: return set_affine(m, -1, 0, width, 0, 1, 0);
      case Op::VFLIP: return set_affine(m, 1, 0, 0, 0, -1, height);
      case Op::ROT90: return set_quarter_turns(m, (i64)a[0] & 3, height, width);
      case Op::CROP: return set_affine(m, 1, 0, trunc(a[1]), 0, 1, trunc(a[0]));
      case Op::PAD: return pad(trunc(a[0]), trunc(a[1]), of.flags);
      case Op::RESIZED_CROP: return resize(a, is_nearest);
      case Op::DISPLACE: {
        const f64 fields[6] = {a[0], a[1], a[2], a[4], a[5], a[6]};
        for (int i = 0; i < 6; i++) numbers[i] = to_i64(fields[i]);
        return set(StageKind::GRID, false, is_nearest);
      }
      case Op::ERASE:
        for (int i = 0; i < 2; i++) numbers[i] = to_i64(a[i]);
        return set(StageKind::ERASE, true, false);
      case Op::PERSPECTIVE:
        memcpy(m, a, 8 * sizeof(f64));
        return set(StageKind::MAP, a[1] == 0.0 && a[3] == 0.0 && a[6] == 0.0 && a[7] == 0.0, is_nearest);
      case Op::ROTATE: {
        const i64 turns = exact_turns(a, of.before);
        if (turns >= 0) return set_quarter_turns(m, turns, height, width);
        set_rotation(a, of.before, of.after, m);
        break;
      }
      case Op::SHEAR_X: m[1] = a[0]; break;
      case Op::SHEAR_Y: m[3] = a[0]; break;
      case Op::TRANSLATE_X: m[2] = -a[0]; break;
      case Op::TRANSLATE_Y: m[5] = -a[0]; break;
      default: memcpy(m, a, 6 * sizeof(f64));  // AFFINE
    }
    affine(of.after, is_nearest);
  }

  void pad(f64 left, f64 top, int mode) {
    set_affine(m, 1, 0, -left, 0, 1, -top);
    numbers[StageNumber::LEFT] = to_i64(left);
    numbers[StageNumber::TOP] = to_i64(top);
    numbers[StageNumber::MODE] = mode;
    set(mode == PadMode::CONSTANT ? StageKind::MAP : StageKind::REPEAT, true, false);
  }

  void resize(const f64 *a, bool rounds) {
    const f64 top = (f32)a[0], left = (f32)a[1], bottom = (f32)(a[0] + a[2]), right = (f32)(a[1] + a[3]);
    const f64 scale_x = (right - left) / a[5], scale_y = (bottom - top) / a[4];
    const bool is_mirrored = a[6] == 1.0;
    set_affine(m, is_mirrored ? -scale_x : scale_x, 0, is_mirrored ? right : left, 0, scale_y, top);
    set(rounds ? StageKind::SCALE : StageKind::MAP, true, rounds);
  }

  // Affine maps as executors run them: nearest maps by integer translation, as a scale, or in 16.16 fixed point.
  void affine(Size size, bool is_nearest) {
    const bool is_scale = m[1] == 0.0 && m[3] == 0.0;
    set(StageKind::MAP, is_scale || (m[0] == 0.0 && m[4] == 0.0), is_nearest);
    if (!is_nearest) return;
    if (is_scale && m[0] == 1.0 && m[4] == 1.0) {
      for (int i = 0; i < 6; i++) m[i] = floor(m[i] + 0.5);
    } else if (is_scale) {
      // A mirrored scale is accumulated from the other end; such a map uses the product instead.
      if (m[0] > 0.0 && m[4] > 0.0) all->kind[at] = StageKind::SCALE;
    } else if (fits_fixed(m, size)) {
      snap_to_fixed(m);
    }
  }
};

// Writes the positions that an axis of a scale reads, accumulated per pixel as in Pillow, because a product would break
// ties differently.
void fill_axis(f64 scale, f64 start, i64 count, f64 *table) {
  // A mirror reads the same positions from the other end.
  const f64 step = fabs(scale), first = scale >= 0.0 ? start : start - step * (f64)count;
  f64 at = first + step * 0.5;
  for (i64 i = 0; i < count; i++, at += step) table[scale >= 0.0 ? i : count - 1 - i] = at;
}

}  // namespace

// Counts the stages of a batch, and the maximal number of positions of their scales: i64[2].
VG_EXPORT void vg_count_stages(const StagesCall *call, i64 *counts) {
  counts[0] = counts[1] = 0;
  for_each_step(call, [=](i64, const Instruction &of) {
    counts[0]++;
    if (may_be_scale(of.op) && of.flags == Interpolation::NEAREST) counts[1] += of.after.height + of.after.width;
  });
}

// Writes the stages to arrays of sufficient size. Returns the number of positions of scales.
VG_EXPORT i64 vg_write_stages(const StagesCall *call, const Stages *stages) {
  i64 step = 0, positions = 0;
  memset(stages->begin, 0, (size_t)(call->rows + 1) * sizeof(i64));
  for_each_step(call, [&](i64 row, const Instruction &of) {
    StepWriter writer(stages, step);
    writer.write(of);
    if (stages->kind[step] == StageKind::SCALE) {
      const f64 *m = writer.m;
      writer.numbers[StageNumber::FIRST] = positions;
      fill_axis(m[0], m[2], of.after.width, stages->tables + positions);
      fill_axis(m[4], m[5], of.after.height, stages->tables + positions + of.after.width);
      positions += of.after.height + of.after.width;
    }
    stages->begin[row + 1] = ++step;
  });
  // Rows without stages have the same end as the row before.
  for (i64 row = 0; row < call->rows; row++)
    stages->begin[row + 1] = max_of(stages->begin[row], stages->begin[row + 1]);
  return positions;
}

}  // namespace vg
