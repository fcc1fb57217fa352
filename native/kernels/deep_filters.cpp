// Blurs, convolutions and SHARPNESS of uint16 and float32 images, in float32. The order of a sum is the same at every
// level of x86-64, so that all levels compute equal bits. Definition: tests/oracle/neighborhood.py.
#include "filter_rows.h"
#include "lanes.h"

namespace vg::VG_LEVEL {
namespace {

// The sum of two vectors, which is exact for integers.
VG_INLINE Floats add_values(const f32 *a, const f32 *b) { return load_floats(a) + load_floats(b); }
VG_INLINE Floats add_values(const u16 *a, const u16 *b) { return to_floats(load_ints(a) + load_ints(b)); }

// The weights in the table from `start` on, see native/lowering/kernel_weights.cpp.
VG_INLINE const f32 *weights_at(const Row &row, f64 start) { return (const f32 *)(row.batch->kernels + (i64)start); }
// Units of the weights of full kernels and of symmetric kernels, in which all weights have sum 1.
constexpr f32 WEIGHT_UNIT = 1.0f / (1 << KERNEL_WEIGHT_BITS), PAIR_UNIT = WEIGHT_UNIT / 2;

// One pass of a symmetric kernel. add_pair(i, x): sums of the values `i` before and `i` after columns from x on.
template <class Element, class F>
VG_INLINE void weigh_pairs(const f32 *weights, i64 radius, i64 width, F add_pair, Element *out) {
  for (i64 x = 0; x < width; x += 2 * LANES) {
    const Floats center = all_floats(weights[0]);  // half of its weight
    Floats first = center * add_pair(0, x), second = center * add_pair(0, x + LANES);
    for (i64 i = 1; i <= radius; i++) {
      const Floats weight = all_floats(weights[i]);
      first += weight * add_pair(i, x);
      second += weight * add_pair(i, x + LANES);
    }
    store_values(out + x, first * PAIR_UNIT + HALF_UP<Element>);
    store_values(out + x + LANES, second * PAIR_UNIT + HALF_UP<Element>);
  }
}

// `out`: elements or floats.
template <class Element, class Out>
void blur_plane(const Element *plane, const i64 *lines, BlurScratch &blur, i64 width, Out *out) {
  f32 *row = blur.floats.at + blur.radius_x;
  weigh_pairs(
      blur.weights_y, blur.radius_y, width,
      [=](i64 i, i64 x) { return add_values(plane + lines[-i] + x, plane + lines[i] + x); }, row);
  mirror_edges(row, width, blur.radius_x);
  weigh_pairs(
      blur.weights_x, blur.radius_x, width, [=](i64 i, i64 x) { return add_values(row + x - i, row + x + i); }, out);
}

// See unsharpen_row of uint8 images. `a`: arguments of CONVOLVE.
template <class Element>
void unsharpen_row(const Element *row, const f32 *blurred, i64 width, const f64 *a, Element *out) {
  const f32 amount = (f32)((a[6] - 1) / (1 << AMOUNT_BITS)), limit = (f32)a[7] * UNIT<Element>;
  for (i64 x = 0; x < width; x += LANES) {
    const Floats value = load_floats(row + x), away = value - load_floats(blurred + x), zero = {};
    const Ints counts = (away < -limit) | (away > limit);
    store_clipped(out + x, value + (counts ? away * amount : zero) + HALF_UP<Element>);
  }
}

// One full kernel. `cells`: offsets from each pixel.
template <class Element>
void weigh_cells(const f32 *plane, const i64 *cells, const f32 *weights, i64 count, i64 width, Element *out) {
  constexpr i64 VECTORS = 4;
  for (i64 x = 0; x < width; x += VECTORS * LANES) {
    Floats sums[VECTORS] = {};
    for (i64 i = 0; i < count; i++) {
      const Floats weight = all_floats(weights[i]);
#pragma GCC unroll 4
      for (i64 k = 0; k < VECTORS; k++) sums[k] += weight * load_floats(plane + cells[i] + x + k * LANES);
    }
#pragma GCC unroll 4
    for (i64 k = 0; k < VECTORS; k++) store_values(out + x + k * LANES, sums[k] * WEIGHT_UNIT + HALF_UP<Element>);
  }
}

// Adds results of a further kernel. Each is clipped before the sum.
template <class Element> void add_row(Element *__restrict row, const Element *__restrict more, i64 width) {
  for (i64 x = 0; x < width; x++) {
    const f32 first = truncate_value<Element>(row[x]), second = truncate_value<Element>(more[x]);
    row[x] = truncate_value<Element>(first + second);
  }
}

// Floats of a line with a margin on both sides, padded.
i64 float_stride(i64 width, i64 margin) { return round_up(width + 2 * margin, BLOCK) + BLOCK; }

// The mean with SMOOTH's weights. `total`: the weighted sum. Integers are rounded to the nearest: with an odd dividend,
// no quotient is so near an integer that the reciprocal's error matters.
template <class Element> VG_INLINE Floats smooth_of(Floats total) {
  if constexpr (IS_FLOAT<Element>) return total / 13.0f;
  else return to_floats(truncate((total + total + 13.0f) * (1.0f / 26)));
}

}  // namespace

template <class Element>
bool prepare_blur(const FilterImageOf<Element> &image, const Row &row, const f64 *a, BlurScratch &blur) {
  blur.weights_x = weights_at(row, a[0]);
  blur.weights_y = blur.weights_x + (i64)a[4];
  return prepare_lines(image.height, image.step(), a, blur) &&
         blur.floats.reserve(2 * float_stride(image.width, blur.radius_x));
}

template <class Element>
void blur_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, BlurScratch &blur, PlanesOf<Element> out) {
  const i64 *lines = blur.lines.at + y + blur.radius_y, width = image.width;
  for (i64 c = 0; c < image.channels; c++) {
    const Element *plane = image.line(0, c);
    if (!blur.is_unsharp) {
      blur_plane(plane, lines, blur, width, out[c]);
      continue;
    }
    f32 *blurred = blur.floats.at + float_stride(width, blur.radius_x);
    blur_plane(plane, lines, blur, width, blurred);
    unsharpen_row<Element>(image.line(y, c), blurred, width, a, out[c]);
  }
}

template <class Element>
bool prepare_convolution(const FilterImageOf<Element> &image, const f64 *a, BlurScratch &blur) {
  const i64 size_x = (i64)a[1], size_y = (i64)a[2];
  return blur.lines.reserve((i64)a[5]) &&
         (IS_FLOAT<Element> || blur.floats.reserve(size_y * float_stride(image.width, size_x / 2)));
}

template <class Element> void convolve_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, const Row &row,
                                           BlurScratch &blur, Element *spare, PlanesOf<Element> out) {
  const i64 apart = (i64)a[4], count = (i64)a[5], width = image.width, margin = (i64)a[1] / 2, half = (i64)a[2] / 2;
  const i64 stride = float_stride(width, margin);
  for (i64 c = 0; c < image.channels; c++) {
    const f32 *plane;
    if constexpr (IS_FLOAT<Element>) {
      plane = image.line(0, c);
    } else {
      // Converts each line once, because many cells read it.
      for (i64 i = 0; i <= 2 * half; i++) {
        const Element *line = image.line(clamp<i64>(y + i - half, 0, image.height - 1), c) - margin;
        for (i64 x = 0; x < width + 2 * margin; x += LANES)
          store(blur.floats.at + i * stride + x, load_floats(line + x));
      }
      plane = blur.floats.at + margin;
    }
    for (i64 number = 0; number <= (i64)a[6]; number++) {
      const f32 *weights = weights_at(row, a[0]) + 3 * number * apart;
      const f32 *columns = weights + apart, *lines = columns + apart;
      for (i64 i = 0; i < count; i++) {
        const i64 line = (i64)lines[i];
        blur.lines[i] = (i64)columns[i] + (IS_FLOAT<Element> ? image.step() * clamp<i64>(y + line, 0, image.height - 1)
                                                             : stride * (line + half));
      }
      weigh_cells(plane, blur.lines.at, weights, count, width, number == 0 ? out[c] : spare);
      if (number > 0) add_row(out[c], spare, width);
    }
  }
}

template <class Element>
void sharpen_row(const FilterImageOf<Element> &image, i64 y, const SharpenScratch &sharpen, PlanesOf<Element> out) {
  const i64 width = image.width, step = image.step();
  const bool is_border = y == 0 || y == image.height - 1 || image.height < 3 || width < 3;
  const Floats factor = all_floats(sharpen.factor);
  for (i64 c = 0; c < image.channels; c++) {
    const Element *row = image.line(y, c);
    Element *to = out[c];
    auto three = [](const Element *line) { return load_floats(line - 1) + load_floats(line) + load_floats(line + 1); };
    auto sharpened = [=](i64 x) {
      const Element *at = row + x;
      const Floats value = load_floats(at);
      const Floats smooth = smooth_of<Element>(three(at - step) + three(at) + 4.0f * value + three(at + step));
      return smooth + factor * (value - smooth);
    };
    if (is_border) {
      for (i64 x = 0; x < width; x++) to[x] = truncate_value<Element>(row[x]);
      continue;
    }
    for (i64 x = 1; x < width - 1; x += LANES) store_clipped(to + x, sharpened(x));
    to[0] = truncate_value<Element>(row[0]);
    to[width - 1] = truncate_value<Element>(row[width - 1]);
  }
}

#define VG_COMPILE_ALL(Element)            \
  VG_COMPILE(prepare_blur, Element)        \
  VG_COMPILE(blur_row, Element)            \
  VG_COMPILE(prepare_convolution, Element) \
  VG_COMPILE(convolve_row, Element)        \
  VG_COMPILE(sharpen_row, Element)
VG_COMPILE_ALL(u16)
VG_COMPILE_ALL(f32)

}  // namespace vg::VG_LEVEL
