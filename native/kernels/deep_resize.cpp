// Antialiased resize of uint16 and float32 images, in float32: a vertical pass, which reads whole lines, then a
// horizontal pass. Sums between the passes are neither rounded nor clipped. Their order is the same at every level.
// Definition: tests/oracle/resample.py.
#include "resize.h"
#include "scratch.h"
#include "taps.h"

namespace vg::VG_LEVEL {
namespace {

// Rows between a row and the lines that are prefetched with it, because computing them takes as long as reading them.
constexpr i64 ROWS_AHEAD = 4;

// Computes `count` sums of values that are `stride` values apart, times weights.
template <class Element>
void mix_lines(const Element *source, i64 stride, i64 count, const f32 *weights, i64 lines, f32 *out) {
  constexpr i64 VECTORS = 4, STEP = VECTORS * LANES;
  if (count < STEP) {
    for (i64 i = 0; i < count; i++) {
      f32 sum = 0;
      for (i64 line = 0; line < lines; line++) sum += (f32)source[line * stride + i] * weights[line];
      out[i] = sum;
    }
    return;
  }
  for (i64 i = 0; i < count; i += STEP) {
    const i64 first = min_of(i, count - STEP);  // the last step overlaps the one before it
    Floats sums[VECTORS] = {};
    for (i64 line = 0; line < lines; line++) {
      const Element *at = source + line * stride + first;
      const Floats weight = all_floats(weights[line]);
#pragma GCC unroll 4
      for (i64 k = 0; k < VECTORS; k++) sums[k] += load_floats(at + k * LANES) * weight;
    }
#pragma GCC unroll 4
    for (i64 k = 0; k < VECTORS; k++) store(out + first + k * LANES, sums[k]);
  }
}

// Loads four values at every fourth offset; offsets in bytes keep the addresses in registers.
VG_INLINE Floats load_values(const f32 *line, const i32 *offset) {
  return (Floats)join_16([=](i64 i) { return load<Part>((const u8 *)line + offset[i]); });
}

// Adds four adjacent pixels, times weights, at every fourth offset. Of three channels: only the first `taps` of them.
template <i64 channels, i64 taps>
VG_INLINE Floats add_taps(Floats sum, const f32 *line, const i32 *offset, Floats weights) {
  if constexpr (channels == 1) return sum + load_values(line, offset) * weights;
  sum += load_values(line, offset) * repeat<0>(weights);
  if constexpr (taps > 1) sum += load_values(line + 3, offset) * repeat<1>(weights);
  if constexpr (taps > 2) sum += load_values(line + 6, offset) * repeat<2>(weights);
  if constexpr (taps > 3) sum += load_values(line + 9, offset) * repeat<3>(weights);
  return sum;
}

// Packs the weights along x: for each LANES outputs and four taps, four registers, as `resize_columns` loads them. Also
// computes the offsets of the outputs in the line `r.mixed`, in bytes.
bool pack_weights(ResizeScratch &r, i64 channels, bool is_mirrored) {
  const i64 outputs = round_up(r.x.size, LANES), groups = ceil_div(r.x.most, 4);
  if (!r.packed.reserve(outputs * groups * 4 * (i64)sizeof(f32)) || !r.offsets.reserve(outputs)) return false;
  f32 *packed = (f32 *)r.packed.at;
  for (i64 output = 0; output < outputs; output++) {
    // Outputs beyond the row repeat its last one.
    const i64 counted = min_of(output, r.x.size - 1), from = is_mirrored ? r.x.size - 1 - counted : counted;
    r.offsets[output] = (i32)(channels * (r.x.first[from] - r.columns.first) * (i64)sizeof(f32));
    const i64 lane = output % LANES, first_group = output / LANES * groups;
    for (i64 group = 0; group < groups; group++) {
      f32 *to = packed + 4 * ((first_group + group) * LANES + lane % 4 * (LANES / 4) + lane / 4);
      copy_values(to, r.x.weights_of<f32>(from) + 4 * group, 4);
    }
  }
  return true;
}

// Computes a row from the line `r.mixed`. `last_taps`: the number of taps in the last group of four.
template <i64 channels, i64 last_taps, class Element>
VG_INLINE void resize_columns(const ResizeScratch &r, PlanesOf<Element> out) {
  const i64 groups = ceil_div(r.x.most, 4);
  const f32 *weights = (const f32 *)r.packed.at;
  for (i64 output = 0; output < r.x.size; output += LANES) {
    const i32 *offset = r.offsets.at + output;
    const f32 *line = (const f32 *)r.mixed.at;
    Floats sums[4] = {};
    for (i64 group = 1; group < groups; group++, line += 4 * channels, weights += 4 * LANES)
      VG_EACH_SUM(k) sums[k] = add_taps<channels, 4>(sums[k], line, offset + k, load<Floats>(weights + k * LANES));
    VG_EACH_SUM(k)
    sums[k] = add_taps<channels, last_taps>(sums[k], line, offset + k, load<Floats>(weights + k * LANES));
    weights += 4 * LANES;
    Register pixels[4], split[4];
    VG_EACH_SUM(k) pixels[k] = (Register)sums[k];
    split_pixels(pixels, split);
    auto store_channel = [=](i64 c, Floats values) { store_values(out[c] + output, values + HALF_UP<Element>); };
    if constexpr (channels == 1) {
      store_channel(0, (Floats)split[0] + (Floats)split[1] + (Floats)split[2] + (Floats)split[3]);
    } else {
      for (i64 c = 0; c < 3; c++) store_channel(c, (Floats)split[c]);
    }
  }
}

// The same for a line with NaN or infinity, which weights of 0 would spread to further outputs. Sums of finite values are
// in the same order.
template <class Element>
void resize_columns_exactly(const ResizeScratch &r, i64 channels, bool is_mirrored, PlanesOf<Element> out) {
  const f32 *line = (const f32 *)r.mixed.at;
  const i64 partial_sums = channels == 1 ? 4 : 1;
  for (i64 output = 0; output < r.x.size; output++) {
    const i64 from = is_mirrored ? r.x.size - 1 - output : output;
    const f32 *at = line + channels * (r.x.first[from] - r.columns.first), *weights = r.x.weights_of<f32>(from);
    for (i64 c = 0; c < channels; c++) {
      f32 sums[4] = {};
      for (i64 tap = 0; tap < r.x.count[from]; tap++) sums[tap % partial_sums] += at[channels * tap + c] * weights[tap];
      out[c][output] = to_element<Element>(sums[0] + sums[1] + sums[2] + sums[3]);
    }
  }
}

template <class Element> void resize_row(const ResizeScratch &r, i64 channels, PlanesOf<Element> out) {
  if (channels == 1) return resize_columns<1, 4>(r, out);
  switch (r.x.most % 4) {
    case 1: return resize_columns<3, 1>(r, out);
    case 2: return resize_columns<3, 2>(r, out);
    case 3: return resize_columns<3, 3>(r, out);
    default: return resize_columns<3, 4>(r, out);
  }
}

// True if no value of a line is NaN or infinite.
bool is_finite(const f32 *line, i64 count) {
  Floats zeros = {};
  f32 zero = 0;
  i64 i = 0;
  for (; i + LANES <= count; i += LANES) zeros += load<Floats>(line + i) * 0.0f;
  for (; i < count; i++) zero += line[i] * 0.0f;
  for (i64 lane = 0; lane < LANES; lane++) zero += zeros[lane];
  return zero == 0;
}

}  // namespace

template <class Element>
bool prepare_resize(const Row &row, i64 slot, const ImageOf<Element> &image, i64 height, i64 width, Range, Scratch &s) {
  const f64 *args = row.args[slot];
  const int filter = row.flags[slot];
  ResizeScratch &r = s.resize;
  if (!r.x.fill<f32>(image.width, args[1], args[3], width, filter)) return false;
  if (!r.y.fill<f32>(image.height, args[0], args[2], height, filter)) return false;
  const i64 channels = image.channels;
  r.columns = {r.x.first[0], r.x.end_of(width - 1)};
  if (!pack_weights(r, channels, is_mirrored(args))) return false;
  // Vectors read zeros after the line.
  const i64 values = channels * r.columns.size(), padding = channels * r.x.taps + BLOCK;
  if (!r.mixed.reserve((values + padding) * (i64)sizeof(f32))) return false;
  memset(r.mixed.at + values * (i64)sizeof(f32), 0, (size_t)padding * sizeof(f32));
  return true;
}

template <class Element>
void read_resized_row(const Row &row, i64 slot, const ImageOf<Element> &image, i64 y, i64, Scratch &s) {
  ResizeScratch &r = s.resize;
  const i64 channels = image.channels, stride = channels * image.width;
  const Element *source = image.pixels + channels * r.columns.first;
  const i64 values = channels * r.columns.size(), later = min_of(y + ROWS_AHEAD, r.y.size - 1);
  for (i64 line = r.y.end_of(max_of<i64>(later - 1, 0)); line < r.y.end_of(later); line++)
    prefetch(source + line * stride, values * (i64)sizeof(Element));
  mix_lines(source + r.y.first[y] * stride, stride, values, r.y.weights_of<f32>(y), r.y.count[y], (f32 *)r.mixed.at);
  const PlanesOf<Element> planes = s.row.planes<Element>();
  if (IS_FLOAT<Element> && !is_finite((const f32 *)r.mixed.at, values))
    resize_columns_exactly(r, channels, is_mirrored(row.args[slot]), planes);
  else resize_row(r, channels, planes);
}

#define VG_COMPILE_ALL(Element)       \
  VG_COMPILE(prepare_resize, Element) \
  VG_COMPILE(read_resized_row, Element)
VG_COMPILE_ALL(u16)
VG_COMPILE_ALL(f32)

}  // namespace vg::VG_LEVEL
