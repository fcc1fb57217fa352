// Fields of displacements: blurred noise at the nodes of grids, and nodes rounded to 16 bits.
#include "noise.h"

namespace vg::VG_LEVEL {
namespace {

// Draws two numbers per random word, odd multiples of 2**-16 between -1 and 1: f32[8, blocks].
void draw_white(const FieldNoise &all, i64 n, i64 blocks, f32 *white) {
  NoiseChunk chunk;
  for (i64 first = 0; first < blocks; first += CHUNK) {
    const i64 count = min_of(CHUNK, blocks - first);
    draw_four_words({all.ids[n], all.keys[2 * n], all.keys[2 * n + 1], (u32)all.slot}, first, count, chunk);
    for (i64 k = 0; k < 4; k++) {
      const u32 *__restrict words = chunk.words[k];
      f32 *__restrict low = white + k * blocks + first, *__restrict high = white + (4 + k) * blocks + first;
      for (i64 i = 0; i < count; i++) {
        low[i] = (f32)(2 * (i32)(words[i] & 0xffff) - 65535) * 0x1p-16f;
        high[i] = (f32)(2 * (i32)(words[i] >> 16) - 65535) * 0x1p-16f;
      }
    }
  }
}

// Mirrors index `i` into 0..n. torchvision mirrors about the outermost pixels. Here a node represents many pixels, so
// border nodes are repeated, which gives the border the same deviation.
VG_INLINE i64 mirror(i64 i, i64 n) {
  if (i >= 0 && i < n) return i;
  i %= 2 * n;
  if (i < 0) i += 2 * n;
  return i >= n ? 2 * n - 1 - i : i;
}

// target = the sum of weights times sources, added in order.
template <class Source, class Weight>
VG_INLINE void add_weighted(f32 *__restrict target, i64 count, i64 taps, Source source, Weight weight) {
  for (i64 j = 0; j < count; j++) target[j] = 0;
  i64 t = 0;
  for (; t + 4 <= taps; t += 4) {
    const f32 *a = source(t), *b = source(t + 1), *c = source(t + 2), *d = source(t + 3);
    const f32 at = weight(t), bt = weight(t + 1), ct = weight(t + 2), dt = weight(t + 3);
    for (i64 j = 0; j < count; j++) target[j] = target[j] + at * a[j] + bt * b[j] + ct * c[j] + dt * d[j];
  }
  for (; t < taps; t++) {
    const f32 *a = source(t), at = weight(t);
    for (i64 j = 0; j < count; j++) target[j] += at * a[j];
  }
}

struct FieldScratch {
  Buffer<f32> white, blurred, line;

  bool reserve(const FieldNoise &all, i64 blocks) {
    const i64 around = 2 * max_of(all.num_taps_x / 2, (i64)1);
    return white.reserve(8 * blocks) && blurred.reserve(all.lines * all.columns) && line.reserve(all.columns + around);
  }
};

void blur_lines(const FieldNoise &all, const f32 *white, FieldScratch &scratch) {
  const i64 columns = all.columns, radius = all.num_taps_x / 2;
  f32 *line = scratch.line.at;
  for (i64 i = 0; i < all.lines; i++) {
    const f32 *source = white + i * columns;
    memcpy(line + radius, source, (size_t)columns * sizeof(f32));
    for (i64 j = 0; j < radius; j++) {
      line[j] = source[mirror(j - radius, columns)];
      line[radius + columns + j] = source[mirror(columns + j, columns)];
    }
    add_weighted(
        scratch.blurred.at + i * columns, columns, all.num_taps_x, [=](i64 t) { return line + t; },
        [&](i64 t) { return all.taps_x[t]; });
  }
}

void round_line(const f32 *__restrict values, i64 columns, i64 fields, i16 *__restrict nodes) {
  for (i64 j = 0; j < columns; j++)
    nodes[fields * j] = (i16)(i32)clamp(floorf(values[j] + 0.5f), -(f32)LARGEST_NODE, (f32)LARGEST_NODE);
}

void blur_columns(const FieldNoise &all, f32 gain, i64 field, i16 *grid, FieldScratch &scratch) {
  const i64 columns = all.columns, radius = all.num_taps_y / 2;
  for (i64 i = 0; i < all.lines; i++) {
    add_weighted(
        scratch.line.at, columns, all.num_taps_y,
        [&](i64 t) { return scratch.blurred.at + mirror(i + t - radius, all.lines) * columns; },
        [&](i64 t) { return all.taps_y[t] * gain; });
    i16 *nodes = grid + i * columns * all.num_fields + field;
    // Calls with a constant stride, for the compiler.
    if (all.num_fields == 2) round_line(scratch.line.at, columns, 2, nodes);
    else round_line(scratch.line.at, columns, all.num_fields, nodes);
  }
}

}  // namespace

VG_EXPORT i64 VG_ENTRY(vg_draw_field_noise)(const FieldNoise *all) {
  const i64 size = all->lines * all->columns, values = size * all->num_fields, blocks = (values + 7) / 8;
  FieldScratch scratch;
  if (!scratch.reserve(*all, blocks)) return OUT_OF_MEMORY;
  for (i64 n = 0; n < all->rows; n++) {
    i16 *grid = all->grids + n * values;
    draw_white(*all, n, blocks, scratch.white.at);
    for (i64 field = 0; field < all->num_fields; field++) {
      blur_lines(*all, scratch.white.at + field * size, scratch);
      blur_columns(*all, all->gains[n * all->num_fields + field], field, grid, scratch);
    }
    i32 most = 0;
    for (i64 i = 0; i < values; i++) most = max_of(most, grid[i] < 0 ? -(i32)grid[i] : (i32)grid[i]);
    all->farthest[n] = most;
  }
  return OK;
}

// nodes[rows, count, 2] = the sum over p of weights[rows, p, 2] * parts[p, count].
VG_EXPORT void VG_ENTRY(vg_add_fields)(const f64 *parts, i64 num_parts, i64 count, const f64 *weights, i64 rows,
                                       f64 *nodes) {
  for (i64 n = 0; n < rows; n++) {
    f64 *__restrict target = nodes + 2 * n * count;
    memset(target, 0, (size_t)(2 * count) * sizeof(f64));
    for (i64 p = 0; p < num_parts; p++) {
      const f64 *__restrict part = parts + p * count;
      const f64 along = weights[2 * (n * num_parts + p)], down = weights[2 * (n * num_parts + p) + 1];
      for (i64 i = 0; i < count; i++) {
        target[2 * i] += along * part[i];
        target[2 * i + 1] += down * part[i];
      }
    }
  }
}

// The greatest magnitude in each row of nodes[rows, count].
VG_EXPORT void VG_ENTRY(vg_find_farthest)(const f64 *nodes, i64 rows, i64 count, f64 *farthest) {
  for (i64 n = 0; n < rows; n++) {
    const f64 *values = nodes + n * count;
    f64 most[8] = {};  // eight maxima, so that comparisons do not wait for each other
    i64 i = 0;
    for (; i + 8 <= count; i += 8)
      for (int k = 0; k < 8; k++) most[k] = max_of(most[k], fabs(values[i + k]));
    for (; i < count; i++) most[0] = max_of(most[0], fabs(values[i]));
    f64 greatest = 0;
    for (f64 value : most) greatest = max_of(greatest, value);
    farthest[n] = greatest;
  }
}

// Converts nodes[rows, count] times factors[rows] to i16, rounded half up and clipped.
VG_EXPORT void VG_ENTRY(vg_round_nodes)(const f64 *nodes, i64 rows, i64 count, const f64 *factors, i16 *grids) {
  for (i64 n = 0; n < rows; n++) {
    const f64 *__restrict values = nodes + n * count;
    i16 *__restrict grid = grids + n * count;
    const f64 factor = factors[n];
    for (i64 i = 0; i < count; i++)
      grid[i] = (i16)(i32)clamp(floor(values[i] * factor + 0.5), -(f64)LARGEST_NODE, (f64)LARGEST_NODE);
  }
}

}  // namespace vg::VG_LEVEL
