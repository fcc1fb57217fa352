// OVERLAY on a row of planes. Each line of nodes is expanded to the image's columns once; rows interpolate two lines.
// Numbers have 16 bits; products keep the highest bits, rounded half up. GPU counterpart:
// executors/cuda/kernels/overlay.py.
#include "overlay.h"
#include "lanes.h"
#include "scratch.h"

namespace vg::VG_LEVEL {
namespace {

constexpr i64 ROWS = 14;
constexpr int FRACTION_BITS = 15;  // of fractions between nodes

// value * fraction / 2**15, rounded half up, in the form that compilers recognize as pmulhrsw.
VG_INLINE i16 scaled(i16 value, i16 fraction) { return (i16)((((i32)value * fraction >> 14) + 1) >> 1); }

struct Layer {
  i64 planes, mode;
  const u8 *nodes;  // [planes, lines, columns]
  i64 bytes;  // readable bytes from `nodes` on
  i64 lines, columns;
  i64 step_y, step_x;  // nodes per pixel, in 2**-STEP_BITS
  i64 top, left;
  i16 strength;
};

Layer layer_of(const Row &row, i64 slot) {
  const f64 *a = row.args[slot];
  const i64 first = (i64)a[0];
  const auto strength = (i16)(i32)floor(a[7] * 32767 + 0.5);
  return {row.flags[slot] / LAYER_PLANES,
          row.flags[slot] % LAYER_PLANES,
          (const u8 *)(row.batch->grids + first),
          2 * (row.batch->grid_values - first),
          (i64)a[1],
          (i64)a[2],
          (i64)a[3],
          (i64)a[4],
          (i64)a[5],
          (i64)a[6],
          strength};
}

#if VG_SSSE3
constexpr i64 EXPANDED = 16;  // numbers of an expanded line per step

// Interpolates `count` numbers between bytes, from `begin` on with distance `step`, both with STEP_BITS fraction bits
// and at most 1.
void expand_vectors(const u8 *nodes, i64 begin, i64 step, i64 count, i16 *to) {
  const __m128i zero = _mm_setzero_si128(), lower = _mm_set1_epi32(32767);
  __m128i positions[4];
  for (int k = 0; k < 4; k++) {
    const i32 s = (i32)step;
    positions[k] = _mm_setr_epi32(4 * k * s, (4 * k + 1) * s, (4 * k + 2) * s, (4 * k + 3) * s);
  }
  for (i64 x = 0; x < count; x += EXPANDED) {
    const i64 at = begin + x * step;
    const u8 *from = nodes + (at >> STEP_BITS);
    const __m128i start = _mm_set1_epi32((i32)(at & ((1 << STEP_BITS) - 1)));
    __m128i byte[4], fraction[4];
    for (int k = 0; k < 4; k++) {
      const __m128i position = _mm_add_epi32(start, positions[k]);
      byte[k] = _mm_srli_epi32(position, STEP_BITS);
      fraction[k] = _mm_and_si128(_mm_srli_epi32(position, STEP_BITS - FRACTION_BITS), lower);
    }
    const __m128i index = _mm_packus_epi16(_mm_packs_epi32(byte[0], byte[1]), _mm_packs_epi32(byte[2], byte[3]));
    const __m128i a = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)from), index);
    const __m128i b = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(from + 1)), index);
    auto between = [](__m128i p, __m128i q, __m128i part) {
      p = _mm_slli_epi16(p, 7);
      return _mm_add_epi16(p, _mm_mulhrs_epi16(_mm_sub_epi16(_mm_slli_epi16(q, 7), p), part));
    };
    __m128i *out = (__m128i *)(to + x);
    _mm_storeu_si128(out, between(_mm_unpacklo_epi8(a, zero), _mm_unpacklo_epi8(b, zero),
                                  _mm_packs_epi32(fraction[0], fraction[1])));
    _mm_storeu_si128(out + 1, between(_mm_unpackhi_epi8(a, zero), _mm_unpackhi_epi8(b, zero),
                                      _mm_packs_epi32(fraction[2], fraction[3])));
  }
}
#endif

void expand_each(const u8 *nodes, i64 begin, i64 step, i64 count, i16 *to) {
  for (i64 x = 0; x < count; x++) {
    const i64 at = begin + x * step;
    const u8 *from = nodes + (at >> STEP_BITS);
    const i16 value = (i16)(from[0] << 7), slope = (i16)((from[1] - from[0]) * 128);
    to[x] = (i16)(value + scaled(slope, (i16)(at >> (STEP_BITS - FRACTION_BITS) & 32767)));
  }
}

// Expands line `line` of a plane of nodes to the columns of the image.
void expand_line(const Layer &layer, i64 plane, i64 line, Range columns, Scratch &s) {
  const i64 begin =
      ((plane * layer.lines + line) * layer.columns << STEP_BITS) + (columns.first - layer.left) * layer.step_x;
  const i64 count = columns.size();
  i16 *to = s.overlay.nodes(plane, line & 1) + columns.first;
#if VG_SSSE3
  if (layer.step_x <= 1 << STEP_BITS) {
    const i64 first = begin >> STEP_BITS, last = (begin + (count - 1) * layer.step_x) >> STEP_BITS;
    const u8 *nodes = layer.nodes;
    // Vectors read this many bytes from the last node on.
    if (last + EXPANDED + 1 > layer.bytes) {
      u8 *copy = s.row.interleaved.at;
      memcpy(copy, nodes + first, (size_t)(last + 2 - first));
      nodes = copy - first;
    }
    return expand_vectors(nodes, begin, layer.step_x, count, to);
  }
#endif
  expand_each(layer.nodes, begin, layer.step_x, count, to);
}

VG_INLINE i16 between(i16 upper, i16 lower, i16 down) { return (i16)(upper + scaled((i16)(lower - upper), down)); }

void weigh(const i16 *__restrict upper, const i16 *__restrict lower, i16 down, i16 strength, i64 count,
           i16 *__restrict weights) {
  for (i64 x = 0; x < count; x++) {
    const i16 weight = scaled(between(upper[x], lower[x], down), strength);
    weights[x] = (i16)(weight + (weight >> 8));
  }
}

void interpolate_colors(const i16 *__restrict upper, const i16 *__restrict lower, i16 down, i64 count,
                        i16 *__restrict colors) {
  for (i64 x = 0; x < count; x++) {
    const u16 rounded = (u16)(between(upper[x], lower[x], down) + 64);
    colors[x] = (i16)(rounded >> 7);
  }
}

// Adds weight * (color + factor * value) to each value.
template <int factor>
void blend(u8 *__restrict bytes, const i16 *__restrict weights, const i16 *__restrict colors, i64 count) {
  for (i64 x = 0; x < count; x++) {
    const i16 value = bytes[x], towards = (i16)(colors[x] + factor * value);
    const i16 moved = (i16)(value + scaled(towards, weights[x]));
    bytes[x] = (u8)min_of<i16>(max_of<i16>(moved, 0), 255);
  }
}

void blend_row(const Layer &layer, i64 channel, Range columns, Scratch &s) {
  const i64 first = columns.first, count = columns.size();
  u8 *bytes = s.row.planes()[channel] + first;
  const i16 *weights = s.overlay.weights(layer.planes == 3 ? channel : 0) + first;
  const bool is_scale = layer.mode == LayerMode::SCALE;
  const i16 *colors = s.overlay.colors(layer.planes == 2 && !is_scale ? 0 : channel) + first;
  if (is_scale) blend<1>(bytes, weights, colors, count);
  else if (layer.mode == LayerMode::OVER) blend<-1>(bytes, weights, colors, count);
  else blend<0>(bytes, weights, colors, count);
}

void begin_layer(const Row &row, i64 slot, const Layer &layer, i64 channels, Scratch &s) {
  OverlayScratch &overlay = s.overlay;
  overlay.slot = slot;
  overlay.line[0] = overlay.line[1] = -1;
  for (i64 c = 0; c < channels; c++) {
    const i16 color = layer.mode == LayerMode::SCALE ? 0 : row.fill[slot][c];
    i16 *colors = overlay.colors(c);
    for (i64 x = 0; x < overlay.stride; x++) colors[x] = color;
  }
}

// Twice the lightness of pixels: the sum of the least and the greatest channel.
void find_lightness(Planes planes, i64 width, i64 channels, i32 *lightness) {
  for (i64 x = 0; x < width; x += LANES) {
    const Ints r = load_bytes(planes[0] + x);
    if (channels == 1) {
      store(lightness + x, r * 2);
      continue;
    }
    const Ints g = load_bytes(planes[1] + x), b = load_bytes(planes[2] + x);
    const Ints low = r < g ? r : g, high = r < g ? g : r;
    store(lightness + x, (low < b ? low : b) + (high < b ? b : high));
  }
}

// Applies a curve of lightness. It has two i16 per lightness: the new lightness in 64ths, and the factor of differences
// from the lightness. GPU counterpart: `_bend` in overlay.py.
void bend_row(const i16 *curve, i64 width, i64 channels, Scratch &s) {
  const Planes planes = s.row.planes();
  i32 *lightness = s.row.words.at, *curve_values = lightness + s.row.stride;
  find_lightness(planes, width, channels, lightness);
  for (i64 x = 0; x < width; x++) curve_values[x] = load<i32>(curve + 2 * lightness[x]);
  for (i64 c = 0; c < channels; c++) {
    u8 *const plane[] = {planes[c]};
    auto bent = [&](i64 x) {
      const Ints value = load_bytes(plane[0] + x), away = value * 2 - load<Ints>(lightness + x);
      return (multiply_pairs(load<Ints>(curve_values + x), away << 16 | 64) + (1 << 11)) >> 12;
    };
    store_columns(plane, {0, width}, [&](i64 x, Halves *out) { out[0] = pack(bent(x), bent(x + LANES)); });
  }
}

}  // namespace

bool reserve_overlays(const Row &row, i64 length, Scratch &s) {
  OverlayScratch &overlay = s.overlay;
  overlay.slot = -1;
  overlay.stride = s.row.stride;
  for (i64 k = 0; k < length; k++)
    if (row.opcode[k] == Op::OVERLAY) return overlay.rows.reserve(ROWS * overlay.stride);
  return true;
}

void overlay_row(const Row &row, i64 slot, i64 y, i64 width, i64 channels, Scratch &s) {
  const Layer layer = layer_of(row, slot);
  OverlayScratch &overlay = s.overlay;
  if (layer.mode == LayerMode::CURVE) return bend_row((const i16 *)layer.nodes, width, channels, s);
  if (overlay.slot != slot) begin_layer(row, slot, layer, channels, s);
  const i64 end = layer.left + (((layer.columns - 1) << STEP_BITS) + layer.step_x - 1) / layer.step_x;
  const Range columns = {max_of<i64>(0, layer.left), min_of(width, end)};
  const i64 at = (y - layer.top) * layer.step_y;
  if (at < 0 || at >= (layer.lines - 1) << STEP_BITS || columns.is_empty()) return;
  const i64 upper = at >> STEP_BITS, first = columns.first, count = columns.size();
  for (i64 line = upper; line < upper + 2; line++) {
    if (overlay.line[line & 1] == line) continue;
    overlay.line[line & 1] = line;
    for (i64 p = 0; p < layer.planes; p++) expand_line(layer, p, line, columns, s);
  }
  const auto down = (i16)(at >> (STEP_BITS - FRACTION_BITS) & 32767);
  const i64 alphas = layer.planes == 3 ? 3 : 1;
  for (i64 p = 0; p < (layer.mode == LayerMode::SCALE ? alphas : layer.planes); p++) {
    const i16 *above = overlay.nodes(p, upper & 1) + first, *below = overlay.nodes(p, ~upper & 1) + first;
    if (p < alphas) weigh(above, below, down, layer.strength, count, overlay.weights(p) + first);
    else interpolate_colors(above, below, down, count, overlay.colors(p - 1) + first);
  }
  for (i64 c = 0; c < channels; c++) blend_row(layer, c, columns, s);
}

}  // namespace vg::VG_LEVEL
