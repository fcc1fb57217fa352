// Converts blurs to convolutions, whose weights all executors share: integers for uint8 images, floats for others.
//
// CONVOLVE has the arguments (start, kernel_x, kernel_y, separable, apart, cells, more, threshold). `start`: position
// of its table of weights.
//
// A table has numbers of 16 bits: weights in units of 1 / ONE, and positions. For images of more than 256 levels, each is
// a float32 in the memory of two numbers, and weights are not rounded.
//
// Table of a separable kernel: half weights along x, then along y, without zeros at the ends but with at least one 0
// after each. Table of a full kernel: the weights of `cells` cells, an even number, then their columns, then their
// lines from the center. Each of these parts begins `apart` after the part before, and has at least four numbers.
//
// `more` of a separable kernel: 0, or for an unsharp mask its amount plus 1, with its `threshold`. `more` of a full
// kernel: the number of further kernels with equally many cells, whose results are added.
#include "../kernels/mathematics.h"
#include "lowering.h"

namespace vg::VG_LEVEL {
namespace {

constexpr f64 ONE = 1 << KERNEL_WEIGHT_BITS;
constexpr f64 LARGEST = (1 << 15) - 1;
constexpr i64 LEAST_APART = 4;
// Outermost weights of a blur in floats are dropped while their sum is less.
constexpr f64 LEAST_TAIL = 0x1p-22 * ONE;

f64 round_half_up(f64 value) { return floor_of(value + 0.5); }

// The output table: its length in numbers of 16 bits, and its values while there is room.
struct Table {
  i16 *values;
  i64 capacity, length;
  bool is_float;

  // Appends `count` zeros. False if there is no room.
  bool add(i64 count) {
    const i64 numbers = is_float ? 2 * count : count;
    const bool has_room = length + numbers <= capacity;
    if (has_room) memset(values + length, 0, (size_t)numbers * sizeof(i16));
    length += numbers;
    return has_room;
  }
  // Sets value `i` of a table that begins at `start`.
  void set(i64 start, i64 i, f64 value) {
    if (is_float) ((f32 *)(values + start))[i] = (f32)value;
    else values[start + i] = (i16)value;
  }
  f64 round(f64 weight) const { return is_float ? weight : round_half_up(weight); }
};

// Writes Gaussian weights in units of 2**-15: half of the center's and the weights of one side, of sum 2**14 * (1 -
// shade). Running sums from outside are rounded, so that constant images are unchanged and small weights contribute.
void write_half_weights(const Table &table, i64 size, f64 sigma, f64 shade, f64 *sums, f64 *weights) {
  const i64 half = size / 2;
  const f64 total = table.round(ONE * (1 - shade));
  for (i64 i = 0; i < half; i++) {
    const f64 away = (f64)(half - i) / sigma;
    sums[i + 1] = exp_of(-0.5 * away * away);
  }
  sums[0] = 0;
  for (i64 i = 0; i < half; i++) sums[i + 1] += sums[i];
  const f64 scale = 2 * total / (2.0 * sums[half] + 1.0);
  f64 before = 0;
  for (i64 i = 1; i <= half; i++) {
    const f64 tail = table.round(sums[i] * scale), rounded = table.is_float && tail < LEAST_TAIL ? 0 : tail;
    weights[half + 1 - i] = rounded - before;
    before = rounded;
  }
  weights[0] = total - before;
}

// The size of a kernel without zero weights at its ends.
i64 trim(i64 size, const f64 *weights) {
  i64 half = size / 2;
  while (half > 0 && weights[half] == 0) half--;
  return 2 * half + 1;
}

struct KernelScratch {
  Buffer<f64> sums, cells, added, along_x, along_y;
};

bool convert_separable(const Rewritten &program, i64 k, Table &table, KernelScratch &s, f64 *result) {
  const f64 *a = program.args(k);
  const i64 size_x = (i64)a[0], size_y = (i64)a[1];
  const f64 shade = program.opcode(k) == Op::GAUSSIAN_BLUR ? a[4] : 0;
  const i64 longest = max_of(size_x, size_y);
  if (!s.sums.reserve(longest) || !s.along_x.reserve(longest) || !s.along_y.reserve(longest)) return false;
  // The shade applies to the pass along columns.
  write_half_weights(table, size_x, a[2], 0, s.sums.at, s.along_x.at);
  if (size_x == size_y && a[2] == a[3] && shade == 0)
    memcpy(s.along_y.at, s.along_x.at, (size_t)(size_x / 2 + 1) * sizeof(f64));
  else write_half_weights(table, size_y, a[3], shade, s.sums.at, s.along_y.at);
  const i64 trimmed_x = trim(size_x, s.along_x.at), trimmed_y = trim(size_y, s.along_y.at);
  const i64 apart = max_of(max_of(trimmed_x, trimmed_y) / 2 + 2, LEAST_APART);
  const i64 start = table.length;
  if (!table.add(2 * apart)) return true;
  for (i64 i = 0; i <= trimmed_x / 2; i++) table.set(start, i, s.along_x[i]);
  for (i64 i = 0; i <= trimmed_y / 2; i++) table.set(start, apart + i, s.along_y[i]);
  f64 packed[NUM_ARGS] = {(f64)start, (f64)trimmed_x, (f64)trimmed_y, 1, (f64)apart, 0, 0, 0};
  if (program.opcode(k) == Op::UNSHARP_MASK) {
    packed[6] = table.round(a[4] * (1 << AMOUNT_BITS)) + 1;
    packed[7] = a[5];
  }
  memcpy(result, packed, sizeof packed);
  return true;
}

// Adds the weights of a line through the center to the cells of a kernel, which has one extra line and column. Weights
// change linearly along the line, and are distributed bilinearly to cells.
void draw_line(i64 size, f64 angle, f64 direction, KernelScratch &s) {
  const i64 half = size / 2, wide = size + 1;
  const f64 radians = angle * (PI / 180.0);
  memset(s.cells.at, 0, (size_t)(wide * wide) * sizeof(f64));
  auto round_to_9_decimals = [](f64 value) { return rint(value * 1e9) / 1e9; };
  for (i64 dy = 0; dy < 2; dy++)
    for (i64 dx = 0; dx < 2; dx++) {
      memset(s.added.at, 0, (size_t)(wide * wide) * sizeof(f64));
      for (i64 i = 0; i < size; i++) {
        const f64 along = size > 1 ? (f64)i / (f64)(size - 1) : 0.5;
        const f64 weight = (1.0 + direction) / 2.0 - direction * along;
        // The cosine of 90 degrees is 6e-17, not 0: without rounding, an adjacent cell would get a tiny weight.
        const f64 x = round_to_9_decimals((f64)half + (f64)(i - half) * cos(radians));
        const f64 y = round_to_9_decimals((f64)half - (f64)(i - half) * sin(radians));
        const f64 x0 = floor(x), y0 = floor(y);
        const f64 fraction = (1.0 - fabs(x - x0 - (f64)dx)) * (1.0 - fabs(y - y0 - (f64)dy));
        s.added[((i64)y0 + dy) * wide + (i64)x0 + dx] += weight * fraction;
      }
      for (i64 i = 0; i < wide * wide; i++) s.cells[i] += s.added[i];
    }
}

bool convert_motion(const Rewritten &program, i64 k, Table &table, KernelScratch &s, f64 *result) {
  const f64 *a = program.args(k);
  const i64 size = (i64)a[0], half = size / 2, wide = size + 1;
  if (!s.cells.reserve(wide * wide) || !s.added.reserve(wide * wide) || !s.along_x.reserve(size * size)) return false;
  draw_line(size, a[1], a[2], s);
  f64 total = 0;
  for (i64 y = 0; y < size; y++)
    for (i64 x = 0; x < size; x++) total += s.cells[y * wide + x];
  // Running sums are rounded, so that the sum of all weights remains 1.
  const f64 scale = ONE / total;
  f64 sum = 0, before = 0;
  i64 count = 0;
  for (i64 y = 0; y < size; y++)
    for (i64 x = 0; x < size; x++) {
      sum += s.cells[y * wide + x];
      const f64 rounded = table.round(sum * scale);
      s.along_x[y * size + x] = rounded - before;
      count += rounded != before;
      before = rounded;
    }
  const i64 cells = round_up(count, 2), apart = max_of(cells, LEAST_APART), start = table.length;
  if (!table.add(3 * apart)) return true;
  i64 n = 0;
  for (i64 i = 0; i < size * size; i++) {
    if (s.along_x[i] == 0) continue;
    table.set(start, n, s.along_x[i]);
    table.set(start, apart + n, (f64)(i % size - half));
    table.set(start, 2 * apart + n, (f64)(i / size - half));
    n++;
  }
  const f64 packed[NUM_ARGS] = {(f64)start, (f64)size, (f64)size, 0, (f64)apart, (f64)cells, 0, 0};
  memcpy(result, packed, sizeof packed);
  return true;
}

// Returns the number of cells of a full kernel. If `to` is not negative, writes them from there on to the table that
// begins at `start`. A weight above 16 bits is split into several cells at one position.
i64 write_cells(const f32 *weights, i64 size_x, i64 size_y, i64 apart, Table &table, i64 start, i64 to) {
  f64 sum = 0, before = 0;
  i64 n = 0;
  for (i64 i = 0; i < size_x * size_y; i++) {
    sum += (f64)weights[i];
    const f64 rounded = table.round(sum * ONE);
    f64 rest = rounded - before;
    before = rounded;
    while (rest != 0) {
      const f64 value = clamp(rest, -LARGEST, LARGEST);
      if (to >= 0) {
        table.set(start, to + n, value);
        table.set(start, to + apart + n, (f64)(i % size_x - size_x / 2));
        table.set(start, to + 2 * apart + n, (f64)(i / size_x - size_y / 2));
      }
      rest -= value;
      n++;
    }
  }
  return n;
}

void convert_filter(const Rewritten &program, i64 k, Table &table, f64 *result) {
  const f64 *a = program.args(k);
  const f32 *weights = program.all->filters + (i64)a[0];
  const i64 size_x = (i64)a[1], size_y = (i64)a[2], kernels = (i64)a[3];
  i64 most = 0;
  for (i64 i = 0; i < kernels; i++)
    most = max_of(most, write_cells(weights + i * size_x * size_y, size_x, size_y, 0, table, 0, -1));
  const i64 cells = max_of<i64>(round_up(most, 2), 2), apart = max_of(cells, LEAST_APART), start = table.length;
  if (!table.add(3 * kernels * apart)) return;
  for (i64 i = 0; i < kernels; i++)
    write_cells(weights + i * size_x * size_y, size_x, size_y, apart, table, start, 3 * i * apart);
  const f64 packed[NUM_ARGS] = {(f64)start, (f64)size_x, (f64)size_y, 0, (f64)apart, (f64)cells, (f64)(kernels - 1), 0};
  memcpy(result, packed, sizeof packed);
}

bool convert(const Rewritten &program, i64 k, Table &table, KernelScratch &s, f64 *result) {
  switch (program.opcode(k)) {
    case Op::GAUSSIAN_BLUR:
    case Op::UNSHARP_MASK: return convert_separable(program, k, table, s, result);
    case Op::MOTION_BLUR: return convert_motion(program, k, table, s, result);
    default: convert_filter(program, k, table, result); return true;
  }
}

// Calls use(program, slot) for every blur of a batch.
template <class Use> void for_each_blur(const Lowering *all, Use use) {
  for (i64 r = 0; r < all->rows; r++) {
    const Rewritten program = {all, r};
    for (i64 k = 0; k < program.length(); k++)
      if (IS_BLUR[program.opcode(k)]) use(program, k);
  }
}

}  // namespace

i64 build_kernels(const Lowering *all, i64 blurs) {
  Table table = {all->kernels, all->kernel_values, 0, all->is_deep != 0};
  KernelScratch scratch;
  Buffer<f64> results;
  bool has_memory = results.reserve(blurs * NUM_ARGS);
  // The last FILTER and its result, because the rows of a batch usually share one table.
  const f64 *last = nullptr, *last_result = nullptr;
  f64 *result = results.at;
  for_each_blur(all, [&](const Rewritten &program, i64 k) {
    if (!has_memory) return;
    const f64 *a = program.args(k);
    const bool is_filter = program.opcode(k) == Op::CONVOLVE_FLOAT;
    if (is_filter && last && memcmp(a, last, 4 * sizeof(f64)) == 0) {
      memcpy(result, last_result, NUM_ARGS * sizeof(f64));
    } else {
      // Computes tables even if there is no room for them, because their lengths depend on the weights.
      has_memory = convert(program, k, table, scratch, result);
      if (is_filter) {
        last = a;
        last_result = result;
      }
    }
    result += NUM_ARGS;
  });
  if (!has_memory) return -1;
  if (table.length > table.capacity) return table.length;
  result = results.at;
  for_each_blur(all, [&](const Rewritten &program, i64 k) {
    memcpy(program.args(k), result, NUM_ARGS * sizeof(f64));
    program.opcode(k) = Op::CONVOLVE_FIXED;
    result += NUM_ARGS;
  });
  return table.length;
}

}  // namespace vg::VG_LEVEL
