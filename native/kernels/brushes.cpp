// Brushes that draw over layers, u8[count, planes, lines, columns]. Positions and sizes are f32, in nodes.
//
// They only add, multiply, divide and take square roots, which all processors round equally. The compiler vectorizes
// the long loops over a line's nodes.
#include "lanes.h"

namespace vg::VG_LEVEL {
namespace {

VG_INLINE f32 distance(i64 node, f32 position) { return (f32)(i32)node - position; }
// Truncates a value of 0..255.
VG_INLINE u8 truncated(f32 value) { return (u8)(i32)value; }

// Composites an alpha of 0..1 over a node's alpha.
VG_INLINE void cover(u8 &node, f32 alpha) {
  const f32 before = (f32)node;
  node = truncated(before + (255.0f - before) * alpha + 0.5f);
}

// Composites transparencies over the alphas of nodes.
void cover_all(const f32 *__restrict clear, u8 *__restrict nodes, i64 count) {
  for (i64 i = 0; i < count; i++) nodes[i] = truncated(255.5f - 255.0f * clear[i]);
}

// The nodes of 0..size within `radius` of a position.
VG_INLINE Range nodes_near(f32 middle, f32 radius, i64 size) {
  return {max_of<i64>(0, (i64)ceilf(middle - radius)), min_of<i64>(size, (i64)(middle + radius) + 1)};
}

VG_INLINE u8 *plane_of(const Layers &layers, i64 n, i64 plane) {
  return layers.nodes + (n * layers.planes + plane) * layers.lines * layers.columns;
}

// The part of a disc on a line, `down` from its middle.
struct Disc {
  f32 x, down, part, alpha;

  // Multiplies transparencies. Runs over the end by less than LANES, where the disc has an alpha of 0.
  void draw(f32 *clear, Range nodes) const {
    const Floats one = all_floats(1.0f), none = {}, position = all_floats(x), square = all_floats(down * down);
    Floats numbers;
    for (int i = 0; i < LANES; i++) numbers[i] = (f32)i;
    for (i64 j = nodes.first; j < nodes.end; j += LANES) {
      const Floats across = numbers + (f32)(i32)j - position, near = one - (across * across + square) * part;
      const Floats inside = near > none ? near : none;
      store(clear + j, load<Floats>(clear + j) * (one - alpha * inside * inside));
    }
  }
};

// The part of a streak on a line. Its alpha falls from `at` to both sides and is 0 at a distance of `wide` nodes:
// `fraction` times the distance to there, at most `limit`.
struct Streak {
  f32 fraction, at, wide, limit;

  VG_MEMBER void draw_node(u8 &node, i64 j) const {
    cover(node, fraction * min_of(wide - fabsf(distance(j, at)), limit));
  }

  VG_MEMBER void draw(u8 *line, Range nodes) const {
    for (i64 j = nodes.first; j < nodes.end; j++) draw_node(line[j], j);
  }

  // Draws four nodes, including all that the streak covers: a loop over 2 or 3 nodes would be mispredicted half the
  // time.
  VG_MEMBER void draw_four(u8 *line, i64 first) const {
#if defined(__SSE2__)
    const __m128i zero = _mm_setzero_si128(), bytes = _mm_cvtsi32_si128(load<i32>(line + first));
    const __m128 before = _mm_cvtepi32_ps(_mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero));
    const __m128i number = _mm_add_epi32(_mm_set1_epi32((i32)first), _mm_setr_epi32(0, 1, 2, 3));
    const __m128 across = _mm_sub_ps(_mm_cvtepi32_ps(number), _mm_set1_ps(at));
    const __m128 away = _mm_andnot_ps(_mm_set1_ps(-0.0f), across);
    const __m128 inside = _mm_min_ps(_mm_sub_ps(_mm_set1_ps(wide), away), _mm_set1_ps(limit));
    // Nodes outside of the streak get an alpha of 0, which changes nothing.
    const __m128 alpha = _mm_mul_ps(_mm_set1_ps(fraction), _mm_max_ps(inside, _mm_setzero_ps()));
    const __m128 added = _mm_mul_ps(_mm_sub_ps(_mm_set1_ps(255.0f), before), alpha);
    const __m128i levels = _mm_cvttps_epi32(_mm_add_ps(_mm_add_ps(before, added), _mm_set1_ps(0.5f)));
    const __m128i words = _mm_packs_epi32(levels, levels);
    store(line + first, _mm_cvtsi128_si32(_mm_packus_epi16(words, words)));
#else
    for (i64 j = first; j < first + 4; j++)
      if (fabsf(distance(j, at)) < wide) draw_node(line[j], j);
#endif
  }
};

}  // namespace

// Draws haze, of alpha `haze[n]` at the top and a fifth of it at the bottom, and soft discs [n, discs, 4]: x, y,
// radius, alpha in the center.
VG_EXPORT i64 VG_ENTRY(vg_draw_puffs)(const Layers *given, const f32 *puffs, i64 discs, const f32 *haze) {
  const Layers layers = *given;
  const i64 lines = layers.lines, columns = layers.columns, stride = columns + LANES;
  Buffer<f32> clear;
  if (!clear.reserve(lines * stride)) return OUT_OF_MEMORY;
  for (i64 n = 0; n < layers.count; n++) {
    for (i64 i = 0; i < lines; i++) {
      const f32 value = 1.0f - haze[n] * (1.0f - 0.8f * (f32)i / (f32)lines);
      for (i64 j = 0; j < stride; j++) clear[i * stride + j] = value;
    }
    for (i64 p = 0; p < discs; p++) {
      const f32 *puff = puffs + 4 * (n * discs + p);
      const f32 x = puff[0], y = puff[1], radius = puff[2], alpha = puff[3], part = 1.0f / (radius * radius);
      const Range across = nodes_near(x, radius, columns), down = nodes_near(y, radius, lines);
      for (i64 i = down.first; i < down.end; i++)
        Disc{x, distance(i, y), part, alpha}.draw(clear.at + i * stride, across);
    }
    u8 *nodes = plane_of(layers, n, 0);
    for (i64 i = 0; i < lines; i++) cover_all(clear.at + i * stride, nodes + i * columns, columns);
  }
  return OK;
}

// Draws lines [n, number, 4] (x, y, half the height, alpha), blurred by a box of `blur` nodes. `slopes[n]`: nodes along
// x per node along y.
VG_EXPORT i64 VG_ENTRY(vg_draw_streaks)(const Layers *given, const f32 *streaks, i64 number, const f32 *slopes,
                                        f32 width, f32 blur) {
  const Layers layers = *given;
  const f32 wide = 0.5f * (width + blur), limit = min_of(width, blur), part = 1.0f / (blur * blur);
  const bool has_four = layers.columns >= 4;
  for (i64 n = 0; n < layers.count; n++) {
    const f32 slope = slopes[n];
    u8 *plane = plane_of(layers, n, 0);
    for (i64 p = 0; p < number; p++) {
      const f32 *streak = streaks + 4 * (n * number + p);
      const f32 x = streak[0], y = streak[1], tall = streak[2], alpha = streak[3];
      const Range rows = nodes_near(y, tall, layers.lines);
      for (i64 i = rows.first; i < rows.end; i++) {
        const f32 down = distance(i, y), fraction = alpha * min_of(tall - fabsf(down), blur) * part;
        const f32 at = x + slope * down;
        const Range across = nodes_near(at, wide, layers.columns);
        const Streak streak_line = {fraction, at, wide, limit};
        u8 *line = plane + i * layers.columns;
        // A streak that ends less than a node above or left of the layer still draws on its first node, with a negative
        // alpha.
        const bool is_positive = fraction >= 0 && at + wide >= 0;
        if (has_four && is_positive && across.size() <= 4)
          streak_line.draw_four(line, min_of(across.first, layers.columns - 4));
        else streak_line.draw(line, across);
      }
    }
  }
  return OK;
}

namespace {

// Draws a stone, flattened vertically by `flat`, lighter at the upper left.
void draw_stone(u8 *alpha, u8 *gray, i64 lines, i64 columns, f32 y, f32 x, f32 radius, f32 flat, f32 level) {
  const f32 along = 1.0f / (radius * radius), shade = 0.3f * level / (radius + 0.5f), upright = along / (flat * flat);
  const Range nodes = nodes_near(x, radius + 0.5f, columns), rows = nodes_near(y, radius * flat + 0.5f, lines);
  for (i64 i = rows.first; i < rows.end; i++) {
    const f32 down = distance(i, y);
    for (i64 j = nodes.first; j < nodes.end; j++) {
      const f32 across = distance(j, x);
      const f32 away = sqrtf(across * across * along + down * down * upright);
      const f32 covered = clamp((1.0f - away) * radius + 0.5f, 0.0f, 1.0f);
      if (covered <= 0) continue;
      const i64 at = i * columns + j;
      const f32 lit = clamp(level - shade * (across + down), 0.0f, 255.0f), before = (f32)gray[at];
      gray[at] = truncated(alpha[at] == 0 ? lit : before + (lit - before) * covered);
      cover(alpha[at], covered);
    }
  }
}

}  // namespace

// Draws counts[n, p] stones in the rectangle patches[n, p] (top, left, height, width), each by the next four numbers of
// units[n, stones, 4], into planes of alpha and gray.
VG_EXPORT i64 VG_ENTRY(vg_draw_stones)(const Layers *given, const f32 *units, i64 stones, const f32 *patches,
                                       const i64 *counts, i64 number, f32 scale) {
  const Layers layers = *given;
  for (i64 n = 0; n < layers.count; n++) {
    const f32 *unit = units + 4 * n * stones, *end = unit + 4 * stones;
    for (i64 p = 0; p < number; p++) {
      const f32 *patch = patches + 4 * (n * number + p);
      for (i64 k = counts[n * number + p]; k > 0 && unit < end; k--, unit += 4) {
        const f32 turn = 256.0f * unit[2];
        const f32 radius = scale * (1.0f + 2.0f * unit[2] * unit[2]), flat = 1.0f - 0.4f * (turn - (f32)(i32)turn);
        draw_stone(plane_of(layers, n, 0), plane_of(layers, n, 1), layers.lines, layers.columns,
                   patch[0] + unit[0] * patch[2], patch[1] + unit[1] * patch[3], radius, flat,
                   60.0f + 110.0f * unit[3]);
      }
    }
  }
  return OK;
}

namespace {

// Differences between the covered area of a node and of its left neighbor, f32[lines, columns + 2]; all zero between
// polygons.
struct Edges {
  f32 *more;
  i64 lines, columns;

  f32 *line(i64 i) const { return more + i * (columns + 2); }

  // Adds a side. Returns its range of quarter lines.
  Range add_side(const f32 *a, const f32 *b) const {
    f32 sign = 0.25f;
    if (a[1] > b[1]) {
      const f32 *lower = a;
      a = b;
      b = lower;
      sign = -sign;
    }
    // In f64, where four times a position and its half are exact.
    const i64 first = max_of<i64>((i64)ceil(4 * (f64)a[1] + 1.5), 0);
    const i64 end = min_of<i64>((i64)ceil(4 * (f64)b[1] + 1.5), 4 * lines);
    for (i64 k = first; k < end; k++) {
      const f32 down = (distance(k, 1.5f) * 0.25f - a[1]) / (b[1] - a[1]);
      const f32 x = clamp(a[0] + (b[0] - a[0]) * down + 0.5f, 0.0f, (f32)columns);
      const i64 column = (i64)x;
      const f32 part = distance(column, x) * sign;
      f32 *at = line(k / 4) + column;
      at[0] += sign + part;
      at[1] -= part;
    }
    return {first, end};
  }

  void fill_line(i64 i, f32 alpha, u8 *__restrict nodes) const {
    f32 *__restrict inside = line(i);
    f32 sum = 0;
    for (i64 j = 0; j < columns; j++) inside[j] = sum += inside[j];
    for (i64 j = 0; j < columns; j++) cover(nodes[j], alpha * min_of(fabsf(inside[j]), 1.0f));
    memset(inside, 0, (size_t)(columns + 2) * sizeof(f32));
  }
};

}  // namespace

// Draws the first counts[n] polygons of corners[n, number, sides, 2] (x, y) with alpha alphas[n, p]. Their sides must
// not cross. Coverage is exact along x, and sampled at four times the nodes along y.
VG_EXPORT i64 VG_ENTRY(vg_draw_polygons)(const Layers *given, const f32 *corners, i64 number, i64 sides,
                                         const i64 *counts, const f32 *alphas) {
  const Layers layers = *given;
  const i64 lines = layers.lines, columns = layers.columns;
  Buffer<f32> more;
  if (!more.reserve(lines * (columns + 2))) return OUT_OF_MEMORY;
  const Edges edges = {more.at, lines, columns};
  for (i64 n = 0; n < layers.count; n++) {
    for (i64 p = 0; p < min_of(counts[n], number); p++) {
      const f32 *polygon = corners + 2 * sides * (n * number + p);
      i64 top = 4 * lines, bottom = 0;
      for (i64 s = 0; s < sides; s++) {
        const Range quarters = edges.add_side(polygon + 2 * s, polygon + 2 * ((s + 1) % sides));
        top = min_of(top, quarters.first);
        bottom = max_of(bottom, quarters.end);
      }
      for (i64 i = top / 4; i < (bottom + 3) / 4; i++)
        edges.fill_line(i, alphas[n * number + p], plane_of(layers, n, 0) + i * columns);
    }
  }
  return OK;
}

// Draws drops where field[n, lines, columns] exceeds limits[n]: alpha, which rises by `slope` per unit, and the color
// (red, green, blue), lit from the upper left by `relief` per unit.
VG_EXPORT i64 VG_ENTRY(vg_draw_drops)(const Layers *given, const i16 *field, const f32 *limits, f32 slope,
                                      const f32 *color, f32 relief) {
  const Layers layers = *given;
  const i64 lines = layers.lines, columns = layers.columns;
  Buffer<f32> lights;
  if (!lights.reserve(columns)) return OUT_OF_MEMORY;
  for (i64 n = 0; n < layers.count; n++) {
    const i16 *__restrict nodes = field + n * lines * columns;
    for (i64 i = 0; i < lines; i++) {
      const i16 *row = nodes + i * columns;
      const i16 *above = nodes + max_of<i64>(i - 1, 0) * columns, *below = nodes + min_of(i + 1, lines - 1) * columns;
      u8 *__restrict alphas = plane_of(layers, n, 0) + i * columns;
      const f32 limit = limits[n];
      for (i64 j = 0; j < columns; j++)
        alphas[j] = truncated(255.0f * clamp(slope * ((f32)row[j] - limit), 0.0f, 1.0f) + 0.5f);
      f32 *__restrict light = lights.at;
      // Bright where the surface of a drop rises towards the lower right.
      auto light_of = [=](i64 left, i64 right) { return 1.0f + relief * (f32)((i32)below[right] - (i32)above[left]); };
      light[0] = light_of(0, min_of<i64>(1, columns - 1));
      for (i64 j = 1; j < columns - 1; j++) light[j] = light_of(j - 1, j + 1);
      if (columns > 1) light[columns - 1] = light_of(columns - 2, columns - 1);
      for (int c = 0; c < 3; c++) {
        u8 *__restrict plane = plane_of(layers, n, 1 + c) + i * columns;
        const f32 level = color[c];
        for (i64 j = 0; j < columns; j++) plane[j] = truncated(clamp(level * light[j] + 0.5f, 0.0f, 255.0f));
      }
    }
  }
  return OK;
}

namespace {

// Transparency of a line under the glow of a sun (x, y, radius, normals of rays), `i` lines from the top.
struct Glow {
  const f32 *sun;
  i64 rays;
  const f32 *color, *spread;

  void draw_line(i64 i, i64 columns, f32 *__restrict glare, f32 *__restrict away, f32 *const (&clear)[3]) const {
    const f32 x = sun[0], down = distance(i, sun[1]), glow = sun[2], thin = 0.012f * glow;
    for (i32 j = 0; j < (i32)columns; j++) {
      const f32 across = (f32)j - x;
      away[j] = sqrtf(across * across + down * down);
      glare[j] = 0;
    }
    for (i64 k = 0; k < rays; k++) {
      const f32 normal_x = sun[3 + 2 * k], normal_y = sun[4 + 2 * k];
      for (i32 j = 0; j < (i32)columns; j++)
        glare[j] += thin / (thin + fabsf(((f32)j - x) * normal_x + down * normal_y));
    }
    for (int c = 0; c < 3; c++) {
      f32 *__restrict line = clear[c];
      const f32 radius = glow * spread[c], level = color[c];
      for (i64 j = 0; j < columns; j++) {
        const f32 near = max_of(1.0f - away[j] / radius, 0.0f);
        const f32 light = near * near * (rays ? near + 0.3f * glare[j] : 1.0f);
        line[j] = 1.0f - min_of(light, 1.0f) * level;
      }
    }
  }
};

// A disc that is brighter towards its rim.
VG_INLINE void draw_ring_line(f32 *__restrict clear, Range nodes, f32 x, f32 down, f32 radius, f32 alpha, f32 level) {
  for (i32 j = (i32)nodes.first; j < (i32)nodes.end; j++) {
    const f32 across = (f32)j - x;
    const f32 away = sqrtf(across * across + down * down) / radius;
    const f32 inside = clamp((1.05f - away) * radius, 0.0f, 1.0f);
    const f32 light = alpha * inside * (0.55f + 0.45f * away * away);
    clear[j] *= 1.0f - min_of(light, 1.0f) * level;
  }
}

}  // namespace

// Draws the light of suns, and the first counts[n] rings, scaled by spread[c] for channel c.
//
// `suns[n, 3 + 2 * most_rays]`: x, y, radius of the glow, normals of `rays` rays. `rings[n, number, 7]`: x, y, radius,
// alpha, red, green, blue.
VG_EXPORT i64 VG_ENTRY(vg_draw_flare)(const Layers *given, const f32 *suns, i64 sun_values, i64 rays, const f32 *rings,
                                      i64 number, const i64 *counts, const f32 *color, const f32 *spread) {
  const Layers layers = *given;
  const i64 lines = layers.lines, columns = layers.columns, size = lines * columns;
  Buffer<f32> clear, glare, away;
  if (!clear.reserve(3 * size) || !glare.reserve(columns) || !away.reserve(columns)) return OUT_OF_MEMORY;
  for (i64 n = 0; n < layers.count; n++) {
    const Glow glow = {suns + n * sun_values, rays, color, spread};
    for (i64 i = 0; i < lines; i++) {
      f32 *const line[3] = {clear.at + i * columns, clear.at + size + i * columns, clear.at + 2 * size + i * columns};
      glow.draw_line(i, columns, glare.at, away.at, line);
    }
    for (i64 p = 0; p < min_of(counts[n], number); p++) {
      const f32 *ring = rings + 7 * (n * number + p);
      for (int c = 0; c < 3; c++) {
        const f32 radius = ring[2] * spread[c], extent = 1.1f * radius + 1.0f;
        const Range across = nodes_near(ring[0], extent, columns), down = nodes_near(ring[1], extent, lines);
        for (i64 i = down.first; i < down.end; i++)
          draw_ring_line(clear.at + c * size + i * columns, across, ring[0], distance(i, ring[1]), radius, ring[3],
                         ring[4 + c]);
      }
    }
    for (int c = 0; c < 3; c++) cover_all(clear.at + c * size, plane_of(layers, n, c), size);
  }
  return OK;
}

}  // namespace vg::VG_LEVEL
