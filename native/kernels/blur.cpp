// Convolutions of uint8 images in integers: weights of 16 bits, sums of 32. Separable kernels run along columns first,
// then along the row. Others: deep_filters.cpp. GPU counterparts: `_blur_separably` and `_convolve` in executors/cuda/kernels/neighborhood.py; definition:
// `gaussian_blur` and `motion_blur` in tests/oracle/neighborhood.py.
#include "filter_rows.h"
#include "registers.h"

namespace vg::VG_LEVEL {
namespace {

// Shifts of the sums between the passes, and after them.
constexpr int COLUMN_SHIFT = KERNEL_WEIGHT_BITS + 1 - KERNEL_LEVEL_BITS;
constexpr int ROW_SHIFT = KERNEL_WEIGHT_BITS + 1 + KERNEL_LEVEL_BITS;
constexpr i32 WEIGHT_SUM = 1 << (KERNEL_WEIGHT_BITS + 1);  // the sum of a kernel's weights
// Added to values between the passes: multiplied by the sum of all weights along the row, which is WEIGHT_SUM, it
// rounds the second pass.
constexpr i32 BIAS = 1 << (KERNEL_LEVEL_BITS - 1);
// Added to sums of the first pass: rounding, and BIAS. As a product, for the unused lane of an odd number of terms.
constexpr i32 ROUNDING = (1 << (COLUMN_SHIFT - 1)) + (BIAS << COLUMN_SHIFT), ROUNDING_FACTOR = 128;
static_assert(ROUNDING % ROUNDING_FACTOR == 0, "an integer product");

// Sums, in 16 bits, of the values of two lines with equal weights; `low8` and `high8` halves.
struct Words {
  Register low, high;
};

VG_INLINE Words add_lines(const u8 *above, const u8 *below) {
  const Register a = load_register(above), b = load_register(below), one = all8(1);
  return {dot8(low8(a, b), one), dot8(high8(a, b), one)};
}

VG_INLINE Words widen_line(const u8 *line) {
  const Register a = load_register(line), zero = all8(0);
  return {low8(a, zero), high8(a, zero)};
}

// Sums in 32 bits of REGISTER columns.
struct Sums {
  Register at[4];

  explicit Sums(i32 value) : at{all32(value), all32(value), all32(value), all32(value)} {}
  __attribute__((always_inline)) void add(Words first, Words second, Register weights) {
    at[0] = add_dot16(at[0], low16(first.low, second.low), weights);
    at[1] = add_dot16(at[1], high16(first.low, second.low), weights);
    at[2] = add_dot16(at[2], low16(first.high, second.high), weights);
    at[3] = add_dot16(at[3], high16(first.high, second.high), weights);
  }
};

// The first pass, over `radius` lines above and below `lines[0]`; RADIUS is `radius` if it is not negative. `lines[i]`
// and `lines[-i]` are offsets from `plane`. `pairs`: weights, beginning with the center line's.
template <i64 RADIUS>
void blur_columns(const u8 *plane, const i64 *lines, i64 radius, const i32 *pairs, i64 width, i16 *out) {
  if (RADIUS >= 0) radius = RADIUS;
  const Register factor = all16(ROUNDING / ROUNDING_FACTOR);
  for (i64 x = 0; x < width; x += REGISTER) {
    const u8 *at = plane + x;
    // An odd radius has an even number of terms.
    Sums sums(radius % 2 != 0 ? ROUNDING : 0);
    const Words center = widen_line(at + lines[0]);
    if (radius == 0) {
      sums.add(center, {factor, factor}, all32(pairs[0]));
    } else {
      sums.add(center, add_lines(at + lines[-1], at + lines[1]), all32(pairs[0]));
      i64 i = 2;
      for (; i < radius; i += 2)
        sums.add(add_lines(at + lines[-i], at + lines[i]), add_lines(at + lines[-i - 1], at + lines[i + 1]),
                 all32(pairs[i / 2]));
      if (i == radius) sums.add(add_lines(at + lines[-i], at + lines[i]), {factor, factor}, all32(pairs[i / 2]));
    }
    for (Register &sum : sums.at) sum = right32<COLUMN_SHIFT>(sum);
    store_natural16(out + x, pack32(sums.at[0], sums.at[1]), pack32(sums.at[2], sums.at[3]));
  }
}

// The first pass of a kernel with one line of weight 1.
void scale_line(const u8 *__restrict line, i64 width, i16 *__restrict out) {
  for (i64 x = 0; x < width; x++) out[x] = (i16)((line[x] << KERNEL_LEVEL_BITS) + BIAS);
}

// The second pass. Even and odd columns are separate sums of the same pairs of columns with different weights. This
// avoids shuffles.
template <i64 RADIUS>
void blur_along(const i16 *row, i64 radius, const i32 *even_pairs, const i32 *odd_pairs, i64 width, u8 *out) {
  constexpr i64 HALF = REGISTER / 2;
  // 16 registers have room for all weights of a radius of 2, in addition to the sums.
  constexpr bool ARE_HELD = RADIUS >= 0 && (RADIUS <= 2 || VG_REGISTER_BITS == 512);
  if (RADIUS >= 0) radius = RADIUS;
  Register even_weights[ARE_HELD ? RADIUS + 1 : 1], odd_weights[ARE_HELD ? RADIUS + 1 : 1];
  if (ARE_HELD)
    for (i64 k = 0; k <= RADIUS; k++) {
      even_weights[k] = all32(even_pairs[k]);
      odd_weights[k] = all32(odd_pairs[k]);
    }
  for (i64 x = 0; x < width; x += REGISTER) {
    const i16 *at = row + x - radius;
    Register even[2] = {all32(0), all32(0)}, odd[2] = {all32(0), all32(0)};
    for (i64 k = 0; k <= radius; k++) {
      const Register first = load_register(at + 2 * k), second = load_register(at + 2 * k + HALF);
      const Register of_even = ARE_HELD ? even_weights[k] : all32(even_pairs[k]);
      const Register of_odd = ARE_HELD ? odd_weights[k] : all32(odd_pairs[k]);
      even[0] = add_dot16(even[0], first, of_even);
      odd[0] = add_dot16(odd[0], first, of_odd);
      even[1] = add_dot16(even[1], second, of_even);
      odd[1] = add_dot16(odd[1], second, of_odd);
    }
    const Register low = right_u16<ROW_SHIFT - 16>(upper_halves(even[0], odd[0]));
    const Register high = right_u16<ROW_SHIFT - 16>(upper_halves(even[1], odd[1]));
    store(out + x, natural8(low, high));
  }
}

// The second pass of a kernel of one column.
void round_row(const i16 *__restrict row, i64 width, u8 *__restrict out) {
  for (i64 x = 0; x < width; x++) out[x] = (u8)((u16)row[x] >> KERNEL_LEVEL_BITS);
}

// The begin of a row between the passes, after its margin.
VG_INLINE i64 row_start(i64 radius) { return round_up(radius + 2, REGISTER); }
VG_INLINE i64 row_stride(i64 width, i64 radius) {
  return row_start(radius) + round_up(width + radius + 2 * REGISTER, REGISTER);
}

VG_NOINLINE void first_pass(const u8 *plane, const i64 *lines, const BlurScratch &blur, i64 width, i16 *out) {
  const i64 radius = blur.radius_y;
  const i32 *pairs = blur.column_pairs.at;
  switch (radius) {
    case 0:
      // A weight of 1 does not fit into 16 bits.
      if ((pairs[0] & 0xffff) == WEIGHT_SUM) return scale_line(plane + lines[0], width, out);
      return blur_columns<0>(plane, lines, radius, pairs, width, out);
    case 1: return blur_columns<1>(plane, lines, radius, pairs, width, out);
    case 2: return blur_columns<2>(plane, lines, radius, pairs, width, out);
    case 3: return blur_columns<3>(plane, lines, radius, pairs, width, out);
    case 4: return blur_columns<4>(plane, lines, radius, pairs, width, out);
    default: return blur_columns<-1>(plane, lines, radius, pairs, width, out);
  }
}

VG_NOINLINE void second_pass(const i16 *row, const BlurScratch &blur, i64 width, u8 *out) {
  const i64 radius = blur.radius_x;
  const i32 *even = blur.even_pairs.at, *odd = blur.odd_pairs.at;
  switch (radius) {
    case 0: return round_row(row, width, out);
    case 1: return blur_along<1>(row, radius, even, odd, width, out);
    case 2: return blur_along<2>(row, radius, even, odd, width, out);
    case 3: return blur_along<3>(row, radius, even, odd, width, out);
    default:
      // 32 registers hold the weights of more.
      if (radius == 4 && VG_REGISTER_BITS == 512) return blur_along<4>(row, radius, even, odd, width, out);
      return blur_along<-1>(row, radius, even, odd, width, out);
  }
}

// Unsharp mask: adds to the row `amount` times its difference to the blurred row, where the difference exceeds a
// threshold. GPU counterpart: `_unsharpened` in executors/cuda/kernels/neighborhood.py.
void unsharpen_by_values(const u8 *__restrict row, i64 width, i64 amount, i64 threshold, u8 *__restrict blurred) {
  for (i64 x = 0; x < width; x++) {
    const i64 away = row[x] - blurred[x], magnitude = away < 0 ? -away : away;
    const i64 added = drop_bits<AMOUNT_BITS>(away * amount + HALF_UNIT<i64, AMOUNT_BITS>);
    blurred[x] = (u8)clamp<i64>(row[x] + (magnitude > threshold ? added : 0), 0, 255);
  }
}

constexpr f64 MOST_AMOUNT = (f64)((i64)1 << 40);

// The same for amounts of 16 bits and thresholds of 8.
void unsharpen_by_pairs(const u8 *row, i64 width, i64 amount, i64 threshold, u8 *blurred) {
  const Register zero = all8(0), one = all8(1), least = all8((int)threshold), unit = all16(1);
  const Register weights = all32(pair_of((i32)amount, 1 << (AMOUNT_BITS - 1)));
  auto sharpen = [&](Register level, Register soft, Register counts) {
    const Register away = sub16(level, soft) & sub16(zero, counts);
    const Register first = right32<AMOUNT_BITS>(dot16(low16(away, unit), weights));
    const Register second = right32<AMOUNT_BITS>(dot16(high16(away, unit), weights));
    return add_saturated16(level, pack32(first, second));
  };
  for (i64 x = 0; x < width; x += REGISTER) {
    const Register levels = load_register(row + x), soft = load_register(blurred + x);
    const Register magnitude = sub_saturated_u8(max_u8(levels, soft), min_u8(levels, soft));
    const Register counts = min_u8(sub_saturated_u8(magnitude, least), one);
    const Register low = sharpen(low8(levels, zero), low8(soft, zero), low8(counts, zero));
    store(blurred + x, pack16(low, sharpen(high8(levels, zero), high8(soft, zero), high8(counts, zero))));
  }
}

void unsharpen_row(const u8 *row, i64 width, i64 amount, i64 threshold, u8 *blurred) {
  if (0 <= amount && amount < 1 << 15 && 0 <= threshold && threshold < 256)
    unsharpen_by_pairs(row, width, amount, threshold, blurred);
  else unsharpen_by_values(row, width, amount, threshold, blurred);
}

// One full kernel, of an even number of cells. `cells`: offsets from each pixel.
void weigh_cells(const u8 *plane, const i64 *cells, const i16 *weights, i64 count, i64 width, u8 *out) {
  const Register zero = all8(0);
  for (i64 x = 0; x < width; x += REGISTER) {
    Sums sums(1 << (KERNEL_WEIGHT_BITS - 1));
    for (i64 i = 0; i < count; i += 2) {
      const Register a = load_register(plane + cells[i] + x), b = load_register(plane + cells[i + 1] + x);
      const Register low = low8(a, b), high = high8(a, b), pair = all32(load<i32>(weights + i));
      sums.at[0] = add_dot16(sums.at[0], low8(low, zero), pair);
      sums.at[1] = add_dot16(sums.at[1], high8(low, zero), pair);
      sums.at[2] = add_dot16(sums.at[2], low8(high, zero), pair);
      sums.at[3] = add_dot16(sums.at[3], high8(high, zero), pair);
    }
    for (Register &sum : sums.at) sum = right32<KERNEL_WEIGHT_BITS>(sum);
    store(out + x, pack16(pack32(sums.at[0], sums.at[1]), pack32(sums.at[2], sums.at[3])));
  }
}

// Adds results of a further kernel. Each is clipped before the sum, which adds the positive part of a kernel and the
// positive part of its negative to an absolute value.
void add_row(u8 *row, const u8 *more, i64 width) {
  for (i64 x = 0; x < width; x += REGISTER)
    store(row + x, add_saturated_u8(load_register(row + x), load_register(more + x)));
}

// Runs each pass for all channels before the next pass: loads that overlap recent stores differently would stall.
void blur_planes(const FilterImage &image, i64 y, BlurScratch &blur, Planes out) {
  const i64 width = image.width, stride = blur.stride;
  i16 *rows = blur.rows.at + row_start(blur.radius_x);
  const i64 *lines = blur.lines.at + y + blur.radius_y;
  for (i64 c = 0; c < image.channels; c++) first_pass(image.line(0, c), lines, blur, width, rows + c * stride);
  for (i64 c = 0; c < image.channels; c++) mirror_edges(rows + c * stride, width, blur.radius_x);
  for (i64 c = 0; c < image.channels; c++) second_pass(rows + c * stride, blur, width, out[c]);
}

}  // namespace

bool prepare_lines(i64 height, i64 step, const f64 *a, BlurScratch &blur) {
  const i64 radius = blur.radius_y = (i64)a[2] / 2;
  blur.radius_x = (i64)a[1] / 2;
  blur.is_unsharp = a[6] != 0.0;
  if (!blur.lines.reserve(height + 2 * radius)) return false;
  for (i64 i = 0; i < height + 2 * radius; i++) blur.lines[i] = step * reflect(i - radius, height);
  return true;
}

bool prepare_blur(const FilterImage &image, const Row &row, const f64 *a, BlurScratch &blur) {
  if (!prepare_lines(image.height, image.step(), a, blur)) return false;
  const i64 radius_x = blur.radius_x, radius_y = blur.radius_y;
  // Larger amounts or thresholds change nothing.
  blur.amount = (i64)clamp(a[6], -MOST_AMOUNT, MOST_AMOUNT) - 1;
  blur.threshold = (i64)clamp(a[7], -1.0, 256.0);
  blur.stride = row_stride(image.width, radius_x);
  const i16 *along_x = row.batch->kernels + (i64)a[0], *along_y = along_x + (i64)a[4];
  if (!blur.column_pairs.reserve(radius_y / 2 + 1) || !blur.even_pairs.reserve(radius_x + 1) ||
      !blur.odd_pairs.reserve(radius_x + 1) || !blur.rows.reserve(4 * blur.stride))
    return false;
  // Tables have half of the center's weight.
  auto weight_y = [&](i64 i) { return i > radius_y ? ROUNDING_FACTOR : i == 0 ? 2 * along_y[0] : along_y[i]; };
  for (i64 i = 0; i <= radius_y; i += 2) blur.column_pairs[i / 2] = pair_of(weight_y(i), weight_y(i + 1));
  auto weight_x = [&](i64 i) {
    i = i < 0 ? -i : i;
    return i > radius_x ? 0 : i == 0 ? 2 * along_x[0] : along_x[i];
  };
  for (i64 k = 0; k <= radius_x; k++) {
    const i64 i = 2 * k - radius_x;
    blur.even_pairs[k] = pair_of(weight_x(i), weight_x(i + 1));
    blur.odd_pairs[k] = pair_of(weight_x(i - 1), weight_x(i));
  }
  return true;
}

void blur_row(const FilterImage &image, i64 y, const f64 *, BlurScratch &blur, Planes out) {
  blur_planes(image, y, blur, out);
  if (!blur.is_unsharp) return;
  for (i64 c = 0; c < image.channels; c++)
    unsharpen_row(image.line(y, c), image.width, blur.amount, blur.threshold, out[c]);
}

bool prepare_convolution(const FilterImage &, const f64 *a, BlurScratch &blur) { return blur.lines.reserve((i64)a[5]); }

void convolve_row(const FilterImage &image, i64 y, const f64 *a, const Row &row, BlurScratch &blur, u8 *spare,
                  Planes out) {
  const i64 apart = (i64)a[4], count = (i64)a[5], width = image.width;
  for (i64 number = 0; number <= (i64)a[6]; number++) {
    const i16 *weights = row.batch->kernels + (i64)a[0] + 3 * number * apart;
    const i16 *columns = weights + apart, *lines = columns + apart;
    for (i64 i = 0; i < count; i++)
      blur.lines[i] = image.step() * clamp<i64>(y + lines[i], 0, image.height - 1) + columns[i];
    for (i64 c = 0; c < image.channels; c++) {
      weigh_cells(image.line(0, c), blur.lines.at, weights, count, width, number == 0 ? out[c] : spare);
      if (number > 0) add_row(out[c], spare, width);
    }
  }
}

}  // namespace vg::VG_LEVEL
