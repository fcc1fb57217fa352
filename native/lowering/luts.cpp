// Converts value operations: operations on single channels to a 3x256 LUT, adjacent LUTs to one, saturation and
// grayscale to a MIX.
#include "../kernels/lanes.h"
#include "lowering.h"

namespace vg::VG_LEVEL {
namespace {

// Limit of a blend's factor. Larger factors have the same effect, because values differ by at least 1; products fit
// into 32 bits.
constexpr f64 LARGEST_FACTOR = 1e6;

// Clips a value to 0..255 and truncates it; 0 for NaN.
template <class T> VG_INLINE u8 to_level(T value) { return value > 0 ? (u8)min_of<T>(value, 255) : 0; }

template <class Level> void fill(u8 *lut, Level level) {
  for (int x = 0; x < 256; x++) lut[x] = to_level(level(x));
}

void fill_brightness(u8 *lut, f32 factor) {
  Floats levels;
  for (int i = 0; i < LANES; i++) levels[i] = (f32)i;
  store_columns<1>({lut}, {0, 256}, [&](i64 x, Halves(&packed)[1]) {
    const Floats low = levels + (f32)x, high = levels + (f32)(x + LANES);
    packed[0] = pack(truncate_to_byte(low * factor), truncate_to_byte(high * factor));
  });
}

void round_curves(const f64 *curves, i64 size, u8 *lut) {
  for (i64 i = 0; i < size; i++) lut[i] = to_level(curves[i] + 0.5);
}

// Fills a table of 256 values: the equivalents of the operations' `level` in variegate/ops.
void fill_channel(int op, const f64 *a, u8 *lut) {
  switch (op) {
    case Op::WINDOW: return fill(lut, [=](int x) { return 255.0 * ((x - a[0]) / a[1] + 0.5) + 0.5; });
    case Op::BRIGHTNESS: return fill_brightness(lut, (f32)a[0]);
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

void compose(const u8 *first, const u8 *then, i64 channels, u8 *to) {
  for (i64 c = 0; c < channels; c++, first += 256, then += 256, to += 256) {
    // All channels usually have equal tables.
    const bool is_known = c > 0 && memcmp(first, first - 256, 256) == 0 && memcmp(then, then - 256, 256) == 0;
    if (is_known) memcpy(to, to - 256, 256);
    else
      for (int x = 0; x < 256; x++) to[x] = then[first[x]];
  }
}

// Replaces the opcode in the key of a pair of tables.
constexpr f64 COMPOSED = -1;

u64 hash_of(const f64 (&key)[4]) {
  u64 hash = 0;
  for (const f64 &value : key) hash = (hash ^ load<u64>(&value)) * 0x9E3779B97F4A7C15u;
  return hash >> (64 - LUT_CACHE_BITS);
}

}  // namespace

LutTables::LutTables(u8 *luts, i64 channels) : luts(luts), size(256 * channels), count(0) {
  for (Entry &entry : entries) entry.lut = -1;
}

u8 *LutTables::find(const f64 (&key)[4], i64 &lut) {
  Entry &entry = entries[hash_of(key)];
  const bool is_known = entry.lut >= 0 && memcmp(entry.key, key, sizeof key) == 0;
  if (!is_known) {
    memcpy(entry.key, key, sizeof key);
    entry.lut = count++;
  }
  lut = entry.lut;
  return is_known ? nullptr : at(lut);
}

void build_luts(const Rewritten &program, LutTables &tables) {
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
    } else if (IS_TABLE.at[op] && !program.all->is_deep) {
      const f64 key[] = {(f64)op, a[0], a[1], a[2]};
      i64 lut;
      if (u8 *to = tables.find(key, lut)) {
        if (op == Op::LUT) round_curves(program.all->curves + tables.size * (i64)a[0], tables.size, to);
        else fill_lut(op, a, program.all->lut_channels, to);
      }
      program.opcode(k) = Op::LUT;
      a[0] = (f64)lut;
    }
  }
}

void compose_luts(const Rewritten &program, LutTables &tables) {
  if (program.all->is_deep) return;
  i64 before = -1;  // the slot of the table that the next one is composed with
  bool has_gaps = false;
  for (i64 k = 0; k < program.length(); k++) {
    if (program.opcode(k) != Op::LUT) {
      before = -1;
      continue;
    }
    if (before < 0) {
      before = k;
      continue;
    }
    const f64 key[] = {COMPOSED, program.args(before)[0], program.args(k)[0], 0};
    const u8 *first = tables.at((i64)key[1]), *then = tables.at((i64)key[2]);
    i64 lut;
    if (u8 *to = tables.find(key, lut)) compose(first, then, program.all->lut_channels, to);
    program.args(before)[0] = (f64)lut;
    program.opcode(k) = Op::NOP;
    has_gaps = true;
  }
  if (has_gaps) close_gaps(program);
}

}  // namespace vg::VG_LEVEL
