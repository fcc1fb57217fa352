// Weights of an antialiased resize, as Pillow computes them: in double precision, then in fixed point. GPU counterpart:
// `write_weights` in executors/cuda/kernels/resample.py; definition: `weights` in tests/oracle/resample.py.
#include "resize.h"

namespace vg::VG_LEVEL {
namespace {

// Pillow has these constants in single precision.
constexpr f64 HAMMING_MEAN = 0.54f, HAMMING_SWING = 0.46f;

f64 filter_radius(int filter) {
  switch (filter) {
    case Interpolation::BICUBIC: return 2.0;
    case Interpolation::LANCZOS: return 3.0;
    case Interpolation::BOX: return 0.5;
    default: return 1.0;
  }
}

f64 sinc(f64 x) { return x == 0 ? 1.0 : sin(x * PI) / (x * PI); }

// Keys' cubic convolution with a = -0.5.
f64 cubic(f64 x) {
  constexpr f64 a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

template <int filter> f64 filter_at(f64 x) {
  if (filter == Interpolation::BOX) return -0.5 < x && x <= 0.5 ? 1 : 0;
  x = fabs(x);
  if (filter == Interpolation::BILINEAR) return x < 1 ? 1 - x : 0;
  if (filter == Interpolation::HAMMING) return x < 1 ? sinc(x) * (HAMMING_MEAN + HAMMING_SWING * cos(x * PI)) : 0;
  if (filter == Interpolation::LANCZOS) return x < 3 ? sinc(x) * sinc(x / 3) : 0;
  return cubic(x);
}

// Computes the weights of an output from its center in the source; returns the range of source indices with weights.
template <int filter> Range weigh_output(f64 center, f64 support, f64 inverse, i64 in_size, f64 *exact) {
  const i64 first = (i64)(center - support + 0.5), end = (i64)(center + support + 0.5);
  const Range range = {max_of<i64>(first, 0), min_of(end, in_size)};
  f64 total = 0;
  for (i64 j = 0; j < range.size(); j++) {
    exact[j] = filter_at<filter>(((f64)(j + range.first) - center + 0.5) * inverse);
    total += exact[j];
  }
  if (total != 0)
    for (i64 j = 0; j < range.size(); j++) exact[j] = exact[j] / total;
  return range;
}

template <class Weight> VG_INLINE Weight to_weight(f64 weight) {
  if constexpr (IS_FLOAT<Weight>) return (Weight)weight;
  else return (i32)(weight * (1 << RESIZE_BITS) + (weight >= 0 ? 0.5 : -0.5));
}

// A box along one axis.
struct Box {
  f64 start, scale;
  f64 support, inverse;  // of the filter: its radius in source pixels, 1 / its scale
  i64 in_size, skipped;  // source pixels from `skipped` on
};

template <class Weight, int filter> void fill_axis(ResizeAxis &axis, const Box &box) {
  axis.most = 0;
  for (i64 i = 0; i < axis.size; i++) {
    const f64 center = box.start + ((f64)i + 0.5) * box.scale;
    Range range = weigh_output<filter>(center, box.support, box.inverse, box.in_size, axis.exact.at);
    const f64 *exact = axis.exact.at;
    // A weight of 0 would spread NaN and infinity.
    if constexpr (IS_FLOAT<Weight>) {
      for (; range.size() > 1 && exact[0] == 0; exact++) range.first++;
      while (range.size() > 1 && exact[range.size() - 1] == 0) range.end--;
    }
    Weight *weights = axis.weights_of<Weight>(i);
    for (i64 j = 0; j < range.size(); j++) weights[j] = to_weight<Weight>(exact[j]);
    axis.first[i] = (i32)(box.skipped + range.first);
    axis.count[i] = (i32)range.size();
    axis.most = max_of(axis.most, range.size());
  }
}

}  // namespace

template <class Weight> bool ResizeAxis::fill(i64 in_size, f64 start, f64 extent, i64 out_size, int filter) {
  i64 skipped = 0;
  if (start < 0) {
    skipped = (i64)(-1.0 - start);
    in_size = (i64)extent;
    start = 0;
  }
  const f32 box_start = (f32)start;  // Pillow's boxes are float32
  const f64 scale = (f64)((f32)(start + extent) - box_start) / (f64)out_size;
  const f64 filter_scale = max_of(scale, 1.0);
  const f64 support = filter_radius(filter) * filter_scale;
  size = out_size;
  taps = round_up((i64)ceil(support) * 2 + 1, 4);
  // Vectors read whole blocks of outputs.
  const i64 outputs = round_up(out_size, BLOCK);
  if (!first.reserve(outputs) || !count.reserve(outputs)) return false;
  if (!weights.reserve(outputs * taps) || !exact.reserve(taps)) return false;
  memset(weights.at, 0, (size_t)(outputs * taps) * sizeof(i32));
  const Box box = {box_start, scale, support, 1.0 / filter_scale, in_size, skipped};
  switch (filter) {
    case Interpolation::BICUBIC: fill_axis<Weight, Interpolation::BICUBIC>(*this, box); break;
    case Interpolation::BOX: fill_axis<Weight, Interpolation::BOX>(*this, box); break;
    case Interpolation::HAMMING: fill_axis<Weight, Interpolation::HAMMING>(*this, box); break;
    case Interpolation::LANCZOS: fill_axis<Weight, Interpolation::LANCZOS>(*this, box); break;
    default: fill_axis<Weight, Interpolation::BILINEAR>(*this, box);
  }
  for (i64 i = out_size; i < outputs; i++) {
    first[i] = first[out_size - 1];
    count[i] = 0;
  }
  return true;
}

template bool ResizeAxis::fill<i32>(i64, f64, f64, i64, int);
template bool ResizeAxis::fill<f32>(i64, f64, f64, i64, int);

}  // namespace vg::VG_LEVEL
