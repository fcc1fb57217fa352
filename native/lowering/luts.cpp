// Value operations become tables: operations on each level a 3x256 LUT, LUTs side by side one; saturation and grayscale
// a MIX.
#include "lowering.h"

namespace vg {
namespace {

// Of a blend: any that is larger does the same, since levels differ by 1 or more. Products stay within 32 bits.
constexpr f64 LARGEST_FACTOR = 1e6;

// A level is cut off to 0..255 and truncated; of what is not a number, it is 0.
template <class T> u8 to_level(T value) { return value > 0 ? (u8)min_of<T>(value, 255) : 0; }

template <class Level> void fill(u8 *lut, Level level) {
  for (int x = 0; x < 256; x++) lut[x] = to_level(level(x));
}

// What becomes of a level: the twins of the operations' `level` in variegate/ops/tone.py.
void fill_channel(int op, const f64 *a, u8 *lut) {
  switch (op) {
    case Op::BRIGHTNESS: {
      const f32 factor = (f32)a[0];
      return fill(lut, [=](int x) { return factor * (f32)x; });
    }
    case Op::GAMMA: return fill(lut, [=](int x) { return (255.0 + 1.0 - 1e-3) * a[1] * pow(x / 255.0, a[0]); });
    case Op::POSTERIZE: {
      const int mask = ~((1 << (8 - (int)clamp(a[0], 0.0, 8.0))) - 1);
      return fill(lut, [=](int x) { return x & mask; });
    }
    case Op::SOLARIZE: return fill(lut, [=](int x) { return x < a[0] ? x : 255 - x; });
    case Op::SOLARIZE_ADD: return fill(lut, [=](int x) { return x < a[1] ? x + a[0] : (f64)x; });
    case Op::INVERT: return fill(lut, [](int x) { return 255 - x; });
    case Op::RGB_SHIFT: {
      const int shift = (int)a[0];
      return fill(lut, [=](int x) { return x + shift; });
    }
  }
}

void fill_lut(int op, const f64 *a, i64 channels, u8 *lut) {
  fill_channel(op, a, lut);
  for (i64 c = 1; c < channels; c++) {
    if (op == Op::RGB_SHIFT && c < 3) fill_channel(op, a + c, lut + 256 * c);
    else memcpy(lut + 256 * c, lut, 256);
  }
}

// Operations on each level, beside LUT itself.
bool is_table(int op) {
  switch (op) {
    case Op::BRIGHTNESS:
    case Op::GAMMA:
    case Op::POSTERIZE:
    case Op::SOLARIZE:
    case Op::SOLARIZE_ADD:
    case Op::INVERT:
    case Op::RGB_SHIFT: return true;
    default: return false;
  }
}

}  // namespace

i64 build_luts(const Rewritten &program, i64 lut) {
  const i64 channels = program.all->lut_channels, size = 256 * channels;
  for (i64 k = 0; k < program.length(); k++) {
    const int op = program.opcode(k);
    f64 *a = program.args(k);
    if (op == Op::SATURATION || op == Op::CONTRAST || op == Op::SHARPNESS)
      a[0] = clamp(a[0], -LARGEST_FACTOR, LARGEST_FACTOR);
    if (op == Op::SATURATION) {
      program.opcode(k) = Op::MIX;
    } else if (op == Op::GRAYSCALE) {
      program.opcode(k) = Op::MIX;
      a[0] = 0;
    } else if (op == Op::LUT || is_table(op)) {
      u8 *to = program.all->luts + size * lut;
      if (op == Op::LUT) memcpy(to, program.all->emitted + size * (i64)a[0], (size_t)size);
      else fill_lut(op, a, channels, to);
      program.opcode(k) = Op::LUT;
      a[0] = (f64)lut++;
    }
  }
  return lut;
}

void compose_luts(const Rewritten &program) {
  const i64 channels = program.all->lut_channels;
  u8 *first = nullptr;  // the table that the next one is composed with
  for (i64 k = 0; k < program.length(); k++) {
    if (program.opcode(k) != Op::LUT) {
      first = nullptr;
      continue;
    }
    u8 *lut = program.all->luts + 256 * channels * (i64)program.args(k)[0];
    if (!first) {
      first = lut;
      continue;
    }
    for (i64 c = 0; c < channels; c++)
      for (int x = 0; x < 256; x++) first[256 * c + x] = lut[256 * c + first[256 * c + x]];
    program.opcode(k) = Op::NOP;
  }
  close_gaps(program);
}

}  // namespace vg
