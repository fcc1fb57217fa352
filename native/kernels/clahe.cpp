// CLAHE as in OpenCV: luma is equalized by tables of tiles, interpolated bilinearly between the tiles' centers. All
// channels change by the same amount as the luma. GPU counterpart: `equalize_tiles` in
// executors/cuda/kernels/neighborhood.py; definition: `clahe` in tests/oracle/neighborhood.py.
#include "filter_rows.h"
#include "lanes.h"

namespace vg::VG_LEVEL {
namespace {

constexpr i64 LEVELS = 256;
// Number of histograms per tile, used alternately, because an increment waits for the last one of the same counter.
constexpr i64 COPIES = 2;

struct TileSides {
  i64 height, width;
};

// Sides of a tile. The image is continued below and to the right if either side is not a multiple of the tiles.
TileSides tile_sides(const FilterImage &image, i64 tiles_y, i64 tiles_x) {
  const i64 more = image.height % tiles_y == 0 && image.width % tiles_x == 0 ? 0 : 1;
  return {image.height / tiles_y + more, image.width / tiles_x + more};
}

// Position of a row or column among the centers of tiles: the index of the tile before it (-1 before all), and the
// fraction of the distance to the next.
struct Position {
  i64 tile;
  f32 fraction;
};

VG_INLINE Position position_of(i64 i, f32 scale) {
  const f32 at = (f32)i * scale - 0.5f;
  const f32 lower = floorf(at);
  return {(i64)lower, at - lower};
}

void luma_row(const FilterImage &image, i64 y, u8 *out) {
  const u8 *r = image.line(y, 0), *g = image.line(y, 1), *b = image.line(y, 2);
  if (image.channels == 1) {
    memcpy(out, r, (size_t)image.width);
    return;
  }
  auto luma_at = [=](i64 x) { return luma_of(load_bytes(r + x), load_bytes(g + x), load_bytes(b + x)); };
  // Also writes to the padding.
  for (i64 x = 0; x < image.width; x += 2 * LANES) store_packed(out + x, pack(luma_at(x), luma_at(x + LANES)));
}

void count_row(const u8 *levels, i64 width, i64 tile_width, i64 tiles, i32 *counts) {
  for (i64 tile = 0; tile < tiles; tile++) {
    i32 *of_tile = counts + COPIES * LEVELS * tile;
    const i64 begin = tile * tile_width, end = begin + tile_width, inside = min_of(end, width);
    i64 x = begin;
    for (; x + COPIES <= inside; x += COPIES) {
      of_tile[levels[x]]++;
      of_tile[LEVELS + levels[x + 1]]++;
    }
    for (; x < end; x++) of_tile[levels[reflect(x, width)]]++;
  }
}

// OpenCV's table: counts above the limit are clipped, distributed over all values, and accumulated.
void fill_table(i32 *__restrict counts, i32 limit, i64 total, u8 *__restrict table) {
  i32 clipped = 0;
  for (i64 i = 0; i < LEVELS; i++) {
    const i32 count = counts[i] + counts[LEVELS + i];
    clipped += max_of(count - limit, 0);
    counts[i] = min_of(count, limit);
  }
  const i32 batch = clipped / (i32)LEVELS, rest = clipped % (i32)LEVELS;
  const i32 step = max_of((i32)LEVELS / max_of(rest, 1), 1);
  for (i32 i = 0; i < rest; i++) counts[i * step]++;
  i32 running = 0;
  for (i64 i = 0; i < LEVELS; i++) counts[i] = running += counts[i] + batch;
  const f32 scale = 255.0f / (f32)total;
  // Adding it to a number below 2**22 rounds half to even.
  constexpr f32 ROUNDING = 12582912.0f;
  for (i64 i = 0; i < LEVELS; i++) table[i] = (u8)min_of((i32)((f32)counts[i] * scale + ROUNDING) - (i32)ROUNDING, 255);
}

// Joins the tables of four tiles: one word per value, with a byte from each table.
void join_tables(const u8 *above, const u8 *below, i64 left, i64 right, u32 *__restrict joined) {
  const u8 *a = above + left, *b = above + right, *c = below + left, *d = below + right;
  for (i64 i = 0; i < LEVELS; i++) joined[i] = a[i] | (u32)b[i] << 8 | (u32)c[i] << 16 | (u32)d[i] << 24;
}

void blend_row(const u32 *__restrict joined_values, const f32 *__restrict fractions, f32 down, i64 width,
               u8 *__restrict out) {
  constexpr f32 ROUNDING = 12582912.0f;
  const f32 up = 1.0f - down;
  for (i64 x = 0; x < width; x++) {
    const u32 levels = joined_values[x];
    const f32 right = fractions[x], left = 1.0f - right;
    const f32 upper = (f32)(i32)(levels & 255) * left + (f32)(i32)(levels >> 8 & 255) * right;
    const f32 lower = (f32)(i32)(levels >> 16 & 255) * left + (f32)(i32)(levels >> 24) * right;
    out[x] = (u8)min_of((i32)((upper * up + lower * down) + ROUNDING) - (i32)ROUNDING, 255);
  }
}

void move_row(const u8 *__restrict row, const u8 *__restrict before, const u8 *__restrict after, i64 width,
              u8 *__restrict out) {
  for (i64 x = 0; x < width; x++) out[x] = (u8)clamp<i16>((i16)(row[x] + after[x] - before[x]), 0, 255);
}

}  // namespace

bool prepare_tiles(const FilterImage &image, const f64 *a, TileScratch &tiles) {
  const i64 tiles_x = tiles.tiles_x = (i64)a[1], tiles_y = tiles.tiles_y = (i64)a[2];
  const TileSides sides = tile_sides(image, tiles_y, tiles_x);
  const i64 padded = round_up(image.width, BLOCK) + BLOCK;
  if (!tiles.joined.reserve(LEVELS * (tiles_x + 1)) || !tiles.fractions.reserve(padded) ||
      !tiles.joined_values.reserve(padded) || !tiles.luma.reserve(2 * padded) || !tiles.ends.reserve(tiles_x + 1))
    return false;
  tiles.scale = 1.0f / (f32)sides.height;
  tiles.band = -2;
  const f32 scale = 1.0f / (f32)sides.width;
  for (i64 i = 0; i <= tiles_x; i++) tiles.ends[i] = 0;
  for (i64 x = 0; x < image.width; x++) {
    const Position at = position_of(x, scale);
    tiles.fractions[x] = at.fraction;
    tiles.ends[clamp<i64>(at.tile + 1, 0, tiles_x)] = x + 1;
  }
  for (i64 i = 1; i <= tiles_x; i++) tiles.ends[i] = max_of(tiles.ends[i], tiles.ends[i - 1]);
  return true;
}

bool measure_tiles(const FilterImage &image, const f64 *a, TileScratch &tiles) {
  const i64 tiles_x = tiles.tiles_x, tiles_y = tiles.tiles_y;
  const TileSides sides = tile_sides(image, tiles_y, tiles_x);
  const i64 area = sides.height * sides.width;
  if (!tiles.counts.reserve(COPIES * LEVELS * tiles_x) || !tiles.luts.reserve(TILE_TABLES)) return false;
  tiles.tables = tiles.luts.at;
  const i32 limit = (i32)clamp<f64>(a[0] * (f64)area / 256.0, 1.0, 2147483647.0);
  for (i64 tile_y = 0; tile_y < tiles_y; tile_y++) {
    memset(tiles.counts.at, 0, (size_t)(COPIES * LEVELS * tiles_x) * sizeof(i32));
    for (i64 y = tile_y * sides.height; y < (tile_y + 1) * sides.height; y++) {
      luma_row(image, reflect(y, image.height), tiles.luma.at);
      count_row(tiles.luma.at, image.width, sides.width, tiles_x, tiles.counts.at);
    }
    for (i64 tile_x = 0; tile_x < tiles_x; tile_x++)
      fill_table(tiles.counts.at + COPIES * LEVELS * tile_x, limit, area,
                 tiles.luts.at + LEVELS * (tile_y * tiles_x + tile_x));
  }
  return true;
}

void equalize_row(const FilterImage &image, i64 y, TileScratch &tiles, Planes out) {
  const i64 width = image.width, tiles_x = tiles.tiles_x;
  const Position at = position_of(y, tiles.scale);
  if (at.tile != tiles.band) {
    tiles.band = at.tile;
    const u8 *above = tiles.tables + LEVELS * tiles_x * max_of<i64>(at.tile, 0);
    const u8 *below = tiles.tables + LEVELS * tiles_x * min_of(at.tile + 1, tiles.tiles_y - 1);
    for (i64 i = 0; i <= tiles_x; i++)
      join_tables(above, below, LEVELS * max_of<i64>(i - 1, 0), LEVELS * min_of(i, tiles_x - 1),
                  tiles.joined.at + LEVELS * i);
  }
  u8 *luma = tiles.luma.at, *moved = luma + round_up(width, BLOCK) + BLOCK;
  luma_row(image, y, luma);
  i64 x = 0;
  for (i64 i = 0; i <= tiles_x; i++) {
    const u32 *joined = tiles.joined.at + LEVELS * i;
    for (const i64 end = tiles.ends[i]; x < end; x++) tiles.joined_values[x] = joined[luma[x]];
  }
  blend_row(tiles.joined_values.at, tiles.fractions.at, at.fraction, width, moved);
  for (i64 c = 0; c < image.channels; c++) move_row(image.line(y, c), luma, moved, width, out[c]);
}

}  // namespace vg::VG_LEVEL
