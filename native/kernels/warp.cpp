// ZOOM_BLUR, ABERRATION and SCATTER: a row of values from other parts of an image in planes. GPU counterpart:
// executors/cuda/kernels/warp.py; definition: tests/oracle/neighborhood.py.
#include "warp.h"
#include "lanes.h"
#include "noise.h"

namespace vg::VG_LEVEL {
namespace {

// -- zooms ------------------------------------------------------------------------------------------------------------

// Shifts of channels in one word, which has room for the sums of all zooms.
constexpr int GREEN = 21, BLUE = 42;
constexpr u64 MASK = (1 << GREEN) - 1;

// Positions have 4 fraction bits. Scale of the reciprocal of an enlargement:
constexpr f64 ZOOM_ONE = 32768.0;

i64 zoom_step(i64 number, f64 step) { return (i64)floor(ZOOM_ONE / (1.0 + (f64)number * step) + 0.5); }

// The source position of row or column `i` of `size`.
VG_INLINE i64 zoom_position(i64 i, i64 size, i64 nearer) {
  return ((2 * i - (size - 1)) * nearer + (size - 1) * 32768 + 2048) >> 12;
}

// Interpolates two rows, times 16, and packs the channels. `mixed`: room for three rows.
void mix_rows(const FilterImage &image, i64 above, i64 below, i64 down, u16 *__restrict mixed, u64 *__restrict line) {
  const i64 width = image.width;
  const u16 up = (u16)(16 - down), low = (u16)down;
  for (i64 c = 0; c < image.channels; c++) {
    const u8 *__restrict a = image.line(above, c), *__restrict b = image.line(below, c);
    u16 *__restrict to = mixed + c * width;
    for (i64 x = 0; x < width; x++) to[x] = (u16)(a[x] * up + b[x] * low);
  }
  const u16 *__restrict r = mixed, *__restrict g = mixed + width, *__restrict b = mixed + 2 * width;
  if (image.channels == 1) {
    for (i64 x = 0; x < width; x++) line[x] = r[x];
  } else {
    for (i64 x = 0; x < width; x++) line[x] = (u64)r[x] | (u64)g[x] << GREEN | (u64)b[x] << BLUE;
  }
  line[width] = line[width - 1];
}

// The mean of the image, counted twice, and its zooms, each bilinear.
template <class Element>
void add_zooms(const FilterImageOf<Element> &image, i64 y, const f64 *a, ZoomScratch &zoom, PlanesOf<Element> out) {
  const i64 zooms = (i64)a[0], width = image.width;
  f32 *line = (f32 *)zoom.line.at, *totals = (f32 *)zoom.totals.at;
  for (i64 c = 0; c < image.channels; c++) {
    for (i64 x = 0; x < width; x += LANES) store(totals + x, 2.0f * load_floats(image.line(y, c) + x));
    for (i64 number = 1; number <= zooms; number++) {
      const i64 at = zoom_position(y, image.height, zoom_step(number, a[1])), last = image.height - 1;
      const Element *above = image.line(clamp<i64>(at >> 4, 0, last), c);
      const Element *below = image.line(clamp<i64>((at >> 4) + 1, 0, last), c);
      const f32 down = (f32)(at & 15) / 16;
      for (i64 x = 0; x < width; x += LANES) {
        const Floats upper = load_floats(above + x);
        store(line + x, upper + down * (load_floats(below + x) - upper));
      }
      line[width] = line[width - 1];
      const i32 *positions = zoom.positions.at + (number - 1) * width;
      for (i64 x = 0; x < width; x += LANES) {
        // Adjacent columns read the same column or adjacent ones.
        const Ints position = load<Ints>(positions + x), index = (position >> 4) - (positions[x] >> 4);
        const f32 *from = line + (positions[x] >> 4);
        const Floats left = pick_lanes(load<Floats>(from), index), right = pick_lanes(load<Floats>(from + 1), index);
        const Floats share = to_floats(position & 15) * (1.0f / 16);
        store(totals + x, load<Floats>(totals + x) + (left + share * (right - left)));
      }
    }
    const f32 fraction = 1.0f / (f32)(zooms + 2);
    for (i64 x = 0; x < width; x += LANES)
      store_values(out[c] + x, load<Floats>(totals + x) * fraction + HALF_UP<Element>);
  }
}
void add_zooms(const FilterImage &image, i64 y, const f64 *a, ZoomScratch &zoom, Planes out) {
  const i64 zooms = (i64)a[0], width = image.width;
  const u64 *__restrict line = zoom.line.at;
  u64 *__restrict totals = zoom.totals.at;
  mix_rows(image, y, y, 0, zoom.mixed.at, zoom.line.at);
  for (i64 x = 0; x < width; x++) totals[x] = line[x] << 5;
  for (i64 number = 1; number <= zooms; number++) {
    const i64 at = zoom_position(y, image.height, zoom_step(number, a[1])), above = at >> 4;
    mix_rows(image, clamp<i64>(above, 0, image.height - 1), clamp<i64>(above + 1, 0, image.height - 1), at & 15,
             zoom.mixed.at, zoom.line.at);
    const i32 *positions = zoom.positions.at + (number - 1) * width;
    for (i64 x = 0; x < width; x++) {
      const u64 *from = line + (positions[x] >> 4);
      // (16 - right) * from[0] + right * from[1]. Borrows between the packed channels cancel out.
      totals[x] += (from[0] << 4) + (u64)(positions[x] & 15) * (from[1] - from[0]);
    }
  }
  const i32 count = (i32)zooms + 2;
  const f32 fraction = 1.0f / (f32)count;
  for (i64 c = 0; c < image.channels; c++) {
    u8 *__restrict to = out[c];
    const int shift = GREEN * (int)c;
    for (i64 x = 0; x < width; x++) {
      // The exact quotient of integers below 2**13.
      const i32 rounded = ((i32)(totals[x] >> shift & MASK) + 128 * count) >> 8;
      to[x] = (u8)(i32)(((f32)rounded + 0.5f) * fraction);
    }
  }
}

// -- fringes of color -------------------------------------------------------------------------------------------------

struct Bend {
  f32 first, second;  // coefficients of the squared distance from the center
};

// Computes positions with 8 fraction bits: integers below 2**24, which are exact in float32.
void find_positions(i64 height, i64 width, i64 y, Bend by, i32 *__restrict columns, i32 *__restrict lines) {
  const f32 half = 0.5f, scale = 256.0f, limit = 1 << 23, zero = 0.0f;
  const f32 in_x = 1.0f / (f32)width, in_y = 1.0f / (f32)height;
  const f32 away_y = half * (f32)(2 * y - (height - 1));
  const f32 squared_y = (away_y * in_y) * (away_y * in_y);
  const f32 here = (f32)(256 * y), last_x = (f32)(256 * (width - 1)), last_y = (f32)(256 * (height - 1));
  const f32 origin = (f32) - (width - 1);
  for (i64 x = 0; x < width; x++) {
    const f32 at = (f32)(i32)x;
    const f32 away = half * (at + at + origin);
    const f32 squared = (away * in_x) * (away * in_x) + squared_y;
    const f32 bend = (by.first + by.second * squared) * squared;
    const f32 along = floorf(clamp(away * bend * scale + half, -limit, limit)) + scale * at;
    const f32 down = floorf(clamp(away_y * bend * scale + half, -limit, limit)) + here;
    columns[x] = (i32)clamp(along, zero, last_x);
    lines[x] = (i32)clamp(down, zero, last_y);
  }
}

// Reads bilinear values of one plane; taps after its last column and line have weight 0. `taps`: room for a row.
template <class Element> void read_positions(const FilterImageOf<Element> &image, i64 channel, const i32 *columns,
                                             const i32 *lines, u32 *, Element *__restrict out) {
  constexpr i64 CHUNK = 64;
  const i64 last_line = image.height - 1, last_column = image.width - 1;
  Element taps[4][CHUNK];
  for (i64 first = 0; first < image.width; first += CHUNK) {
    const i64 count = min_of(CHUNK, image.width - first);
    for (i64 x = 0; x < count; x++) {
      const i64 line = lines[first + x] >> 8, column = columns[first + x] >> 8, next = min_of(column + 1, last_column);
      const Element *upper = image.line(line, channel), *lower = image.line(min_of(line + 1, last_line), channel);
      taps[0][x] = upper[column];
      taps[1][x] = upper[next];
      taps[2][x] = lower[column];
      taps[3][x] = lower[next];
    }
    for (i64 x = 0; x < count; x += LANES) {
      auto share = [=](const i32 *positions) { return to_floats(load<Ints>(positions + first + x) & 255) * 0x1p-8f; };
      auto tap = [&](int i) { return load_floats(taps[i] + x); };
      const Floats dx = share(columns), over = tap(0) + dx * (tap(1) - tap(0)), under = tap(2) + dx * (tap(3) - tap(2));
      store_values(out + first + x, over + share(lines) * (under - over) + HALF_UP<Element>);
    }
  }
}
void read_positions(const FilterImage &image, i64 channel, const i32 *__restrict columns, const i32 *__restrict lines,
                    u32 *__restrict taps, u8 *__restrict out) {
  const u8 *plane = image.line(0, channel);
  const i64 step = image.step(), last = (image.height - 1) * step;
  for (i64 x = 0; x < image.width; x++) {
    const i64 above = (lines[x] >> 8) * step, column = columns[x] >> 8;
    const u8 *upper = plane + above + column, *lower = plane + min_of(above + step, last) + column;
    taps[x] = load<u16>(upper) | (u32)load<u16>(lower) << 16;
  }
  for (i64 x = 0; x < image.width; x++) {
    const i32 dx = columns[x] & 255, dy = lines[x] & 255;
    const i32 a = (i32)(taps[x] & 255), b = (i32)(taps[x] >> 8 & 255);
    const i32 c = (i32)(taps[x] >> 16 & 255), d = (i32)(taps[x] >> 24);
    // (256 - d) * a + d * b
    const i32 over = (a << 8) + dx * (b - a), under = (c << 8) + dx * (d - c);
    out[x] = (u8)(((over << 8) + dy * (under - over) + 32768) >> 16);
  }
}

}  // namespace

bool prepare_zoom(i64 width, const f64 *a, ZoomScratch &zoom) {
  const i64 zooms = (i64)a[0];
  if (!zoom.positions.reserve(max_of<i64>(1, zooms) * width) || !zoom.line.reserve(width + 1) ||
      !zoom.totals.reserve(width) || !zoom.mixed.reserve(3 * width))
    return false;
  for (i64 number = 1; number <= zooms; number++) {
    i32 *positions = zoom.positions.at + (number - 1) * width;
    const i64 nearer = zoom_step(number, a[1]);
    for (i64 x = 0; x < width; x++)
      positions[x] = (i32)clamp<i64>(zoom_position(x, width, nearer), 0, 16 * (width - 1));
  }
  return true;
}

template <class Element>
void zoom_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, ZoomScratch &zoom, PlanesOf<Element> out) {
  add_zooms(image, y, a, zoom, out);
}

template <class Element>
void bend_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, RowScratch &scratch, PlanesOf<Element> out) {
  const i64 width = image.width;
  for (i64 c = 0; c < image.channels; c++) {
    if (c == 1 || image.channels != 3) {
      copy_values(out[c], (const Element *)image.line(y, c), width);
      continue;
    }
    find_positions(image.height, width, y, {(f32)a[c], (f32)a[c + 1]}, scratch.column.at, scratch.line.at);
    read_positions(image, c, scratch.column.at, scratch.line.at, (u32 *)scratch.words.at, out[c]);
  }
}

template <class Element> void scatter_row(const Row &row, const FilterImageOf<Element> &image, i64 y, const f64 *a,
                                          RowScratch &scratch, PlanesOf<Element> out) {
  const i64 distance = (i64)a[0], times = (i64)a[1], slot = (i64)a[2], width = image.width;
  const u32 span = (u32)(2 * distance + 1);
  const i32 last_x = (i32)width - 1, last_y = (i32)image.height - 1;
  i32 *__restrict columns = scratch.column.at, *__restrict lines = scratch.line.at;
  NoiseChunk chunk;
  for (i64 start = 0; start < width; start += CHUNK) {
    const i64 count = min_of(CHUNK, width - start);
    draw_words(row, slot, y * width + start, count, chunk);
    for (i64 x = 0; x < count; x++) {
      columns[x] = (i32)(start + x - times * distance);
      lines[x] = (i32)(y - times * distance);
    }
    for (i64 t = 0; t < times; t++)
      for (i64 x = 0; x < count; x++) {
        const u32 word = chunk.words[t][x];
        columns[x] += (i32)((word & 0xffff) * span >> 16);
        lines[x] += (i32)((word >> 16) * span >> 16);
      }
    for (i64 x = 0; x < count; x++) {
      columns[x] = clamp(columns[x], 0, last_x);
      lines[x] = clamp(lines[x], 0, last_y);
    }
    for (i64 x = 0; x < count; x++) {
      const Element *from = image.first + lines[x] * image.step() + columns[x];
      for (i64 c = 0; c < image.channels; c++) out[c][start + x] = from[c * image.stride];
    }
  }
}

#define VG_COMPILE_ALL(Element) \
  VG_COMPILE(zoom_row, Element) \
  VG_COMPILE(bend_row, Element) \
  VG_COMPILE(scatter_row, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
