// ERASE: fills rectangles with a color or noise, before Normalize or after it. GPU counterparts: `is_erased` and
// `erase_normalized` in executors/cuda/kernels/values.py; definition: tests/oracle/position.py.
#include "lanes.h"
#include "noise.h"

namespace vg::VG_LEVEL {
namespace {

struct Rectangles {
  const i32 (*at)[4];  // top, left, height, width
  i64 count;
};

Rectangles rectangles_of(const Row &row, i64 slot) {
  const f64 *a = row.args[slot];
  return {(const i32(*)[4])row.batch->rectangles + (i64)a[0], (i64)a[1]};
}

// Clips `extent` pixels from `first` on to a line of `size` pixels.
Range within(i64 first, i64 extent, i64 size) {
  const i64 begin = max_of<i64>(0, first);
  return {begin, max_of(begin, min_of(size, first + extent))};
}

bool meets(const i32 *rectangle, i64 y) { return y >= rectangle[0] && y < (i64)rectangle[0] + rectangle[2]; }

// The columns of row `y` that a rectangle covers.
Range columns_of(const i32 *rectangle, i64 y, i64 width) {
  if (!meets(rectangle, y)) return {0, 0};
  return within(rectangle[1], rectangle[3], width);
}

template <class Element>
void fill_with_noise(const Row &row, i64 number, i64 pixel, Range columns, i64 channels, PlanesOf<Element> planes) {
  NoiseChunk chunk;
  for (i64 first = columns.first; first < columns.end; first += CHUNK) {
    const i64 count = min_of(CHUNK, columns.end - first);
    draw_words(row, number, pixel + first, count, chunk);
    for (i64 c = 0; c < channels; c++) {
      Element *__restrict to = planes[c] + first;
      const u32 *__restrict words = chunk.words[c];
      for (i64 x = 0; x < count; x++) to[x] = from_word<Element>(words[x]);
    }
  }
}

// Layout of a float result: distances between pixels and between channels.
struct Floats3 {
  f32 *at;
  i64 pixel_step, channel_step;
};

void fill_floats(const Floats3 &out, i64 pixel, i64 count, i64 channels, const f64 *values) {
  for (i64 c = 0; c < channels; c++) {
    f32 *to = out.at + c * out.channel_step + pixel * out.pixel_step;
    const f32 value = (f32)values[c];
    for (i64 x = 0; x < count; x++) to[x * out.pixel_step] = value;
  }
}

void fill_normals(const Row &row, i64 number, const Floats3 &out, i64 pixel, i64 count, i64 channels) {
  NoiseChunk chunk;
  for (i64 first = 0; first < count; first += CHUNK) {
    const i64 n = min_of(CHUNK, count - first);
    draw_words(row, number, pixel + first, n, chunk);
    for (i64 c = 0; c < channels; c++) {
      draw_normals(row.batch->segments, c, n, chunk);
      f32 *to = out.at + c * out.channel_step + (pixel + first) * out.pixel_step;
      for (i64 x = 0; x < n; x++) to[x * out.pixel_step] = chunk.normals[x];
    }
  }
}

}  // namespace

template <class Element>
void erase_row(const Row &row, i64 slot, i64 y, i64 width, i64 channels, PlanesOf<Element> planes) {
  const f64 *a = row.args[slot];
  if (a[7] != 0.0) return;
  const Rectangles rectangles = rectangles_of(row, slot);
  for (i64 q = 0; q < rectangles.count; q++) {
    // With many rectangles, few intersect a row.
    if (!meets(rectangles.at[q], y)) continue;
    const Range columns = columns_of(rectangles.at[q], y, width);
    if (columns.is_empty()) continue;
    if (a[2] != 0.0) fill_with_noise(row, (i64)a[3], y * width, columns, channels, planes);
    else
      for (i64 c = 0; c < channels; c++)
        set_values(planes[c] + columns.first, from_byte<Element>(row.fill[slot][c]), columns.size());
  }
}

void erase_normalized(const Row &row, i64 first, i64 end, const Target &target, Range y) {
  const i64 width = target.width, channels = target.channels;
  const bool is_planar = target.storage == Storage::FLOATS_CHW;
  const Floats3 out = {(f32 *)target.at, is_planar ? 1 : channels, is_planar ? target.height * width : 1};
  for (i64 k = first; k < end; k++) {
    const f64 *a = row.args[k];
    if (row.opcode[k] != Op::ERASE || a[7] == 0.0) continue;
    const Rectangles rectangles = rectangles_of(row, k);
    for (i64 q = 0; q < rectangles.count; q++) {
      const i32 *rectangle = rectangles.at[q];
      const Range lines = within(rectangle[0], rectangle[2], target.height);
      const Range columns = within(rectangle[1], rectangle[3], width);
      for (i64 line = max_of(lines.first, y.first); line < min_of(lines.end, y.end); line++) {
        const i64 pixel = line * width + columns.first;
        if (a[2] == 0.0) fill_floats(out, pixel, columns.size(), channels, a + 4);
        else fill_normals(row, (i64)a[3], out, pixel, columns.size(), channels);
      }
    }
  }
}

#define VG_COMPILE_ALL(Element) VG_COMPILE(erase_row, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
