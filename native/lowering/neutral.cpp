// Removes instructions that change no pixel.
#include "lowering.h"

namespace vg::VG_LEVEL {
namespace {

// `in`: height and width before it.
bool is_neutral(const Rewritten &program, i64 k, const i32 *in) {
  const int op = program.opcode(k);
  const f64 *a = program.args(k), *neutral = program.all->neutral + 2 * op;
  // POSTERIZE to eight bits or more changes nothing in uint8 images only.
  const bool is_kept = op == Op::POSTERIZE && program.all->is_deep;
  if (neutral[0] <= a[0] && a[0] <= neutral[1] && !is_kept) return true;
  // Conditions that are not a range of one argument.
  const i32 *out = program.out_size(k);
  const bool keeps_size = out[0] == in[0] && out[1] == in[1];
  const bool is_at_origin = a[0] == 0 && a[1] == 0;
  switch (op) {
    case Op::ROTATE: return fmod(a[0], 360.0) == 0 && isnan(a[1]);
    case Op::PAD: return keeps_size;
    case Op::CROP: return keeps_size && is_at_origin;
    case Op::RESIZED_CROP: return keeps_size && is_at_origin && a[2] == in[0] && a[3] == in[1] && a[6] == 0;
    default: return false;
  }
}

}  // namespace

void close_gaps(const Rewritten &program) {
  i64 n = 0;
  const i64 length = program.length();
  for (i64 k = 0; k < length; k++) {
    if (program.opcode(k) == Op::NOP) continue;
    if (n < k) {
      program.opcode(n) = program.opcode(k);
      program.flags(n) = program.flags(k);
      program.label(n) = program.label(k);
      memcpy(program.args(n), program.args(k), NUM_ARGS * sizeof(f64));
      memcpy(program.fill(n), program.fill(k), 3);
      memcpy(program.out_size(n), program.out_size(k), 2 * sizeof(i32));
      memcpy(program.window(n), program.window(k), 4 * sizeof(i32));
    }
    n++;
  }
  for (i64 k = n; k < length; k++) program.opcode(k) = Op::NOP;
  program.length() = (i32)n;
}

void remove_neutral(const Rewritten &program) {
  const bool is_gray = program.in_shape()[2] == 1;
  const i32 *in = program.in_shape();
  bool has_gaps = false;
  for (i64 k = 0; k < program.length(); k++) {
    const bool is_idle = is_gray && IS_COLOR_ONLY[program.opcode(k)];
    if (is_idle || is_neutral(program, k, in)) {
      program.opcode(k) = Op::NOP;
      has_gaps = true;
    } else {
      in = program.out_size(k);
    }
  }
  if (has_gaps) close_gaps(program);
}

}  // namespace vg::VG_LEVEL
