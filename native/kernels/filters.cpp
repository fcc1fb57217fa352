// Filters: which family an instruction belongs to, the image that it sees, and what is prepared for it.
#include "filter_rows.h"
#include "warp.h"

namespace vg::VG_LEVEL {
namespace {

FilterImage image_of(const FilterScratch &filter, i64 height, i64 width, i64 channels) {
  return {filter.first, filter.stride, height, width, channels};
}

bool is_separable(const f64 *a) { return a[3] != 0.0; }

// Bytes of a row of a plane, which may be written and read a block past its end.
i64 stride_of(const Row &row, i64 slot, i64 width) {
  return round_up(width + 2 * filter_margin(row, slot), BLOCK) + BLOCK;
}

}  // namespace

void repeat_edges(const FilterImage &image, i64 radius) {
  if (radius == 0) return;
  for (i64 y = 0; y < image.height; y++)
    for (i64 c = 0; c < image.channels; c++) {
      u8 *row = image.line(y, c), *end = row + image.width;
      const u8 first = row[0], last = end[-1];
      for (i64 i = 0; i < radius; i++) {
        row[-1 - i] = first;
        end[i] = last;
        // For a few pixels, a call of memset, which compilers make of loops, takes longer than the pixels.
        __asm__ volatile("" ::: "memory");
      }
    }
}

i64 filter_margin(const Row &row, i64 slot) {
  const f64 *a = row.args[slot];
  switch (row.opcode[slot]) {
    case Op::CONVOLVE: return is_separable(a) ? 0 : (i64)a[1] / 2;
    case Op::MEDIAN:
    case Op::MORPHOLOGY: return (i64)a[0] / 2;
    default: return 0;
  }
}

i64 filter_radius(const Row &row, i64 slot) {
  const f64 *a = row.args[slot];
  switch (row.opcode[slot]) {
    case Op::SHARPNESS: return 1;
    case Op::CONVOLVE: return (i64)a[2] / 2;
    case Op::MEDIAN: return (i64)a[0] / 2;
    case Op::MORPHOLOGY: return (i64)a[1] / 2;
    default: return -1;
  }
}

i64 filter_bytes(const Row &row, i64 slot, i64 height, i64 width) { return 3 * height * stride_of(row, slot, width); }

bool reserve_filter(const Row &row, i64 slot, i64 height, i64 width, Scratch &s) {
  if (!s.filter.image.reserve(filter_bytes(row, slot, height, width))) return false;
  s.filter.first = s.filter.image.at + filter_margin(row, slot);
  s.filter.stride = stride_of(row, slot, width);
  s.filter.is_shared = false;
  return true;
}

void use_shared_filter(const Row &row, i64 slot, i64 width, u8 *memory, const u8 *tiles, Scratch &s) {
  s.filter.first = memory + filter_margin(row, slot);
  s.filter.stride = stride_of(row, slot, width);
  s.filter.is_shared = true;
  s.filter.tiles.tables = tiles;
}

void repeat_edges_of(const Row &row, i64 slot, i64 width, i64 channels, Range y, Scratch &s) {
  u8 *first = s.filter.first + 3 * y.first * s.filter.stride;
  repeat_edges({first, s.filter.stride, y.size(), width, channels}, filter_margin(row, slot));
}

bool measure_filter(const Row &row, i64 slot, i64 height, i64 width, i64 channels, Scratch &s) {
  const FilterImage image = image_of(s.filter, height, width, channels);
  return prepare_tiles(image, row.args[slot], s.filter.tiles) && measure_tiles(image, row.args[slot], s.filter.tiles);
}

bool prepare_filter(const Row &row, i64 slot, i64 height, i64 width, i64 channels, Scratch &s) {
  const f64 *a = row.args[slot];
  const FilterImage image = image_of(s.filter, height, width, channels);
  if (!s.filter.is_shared) repeat_edges(image, filter_margin(row, slot));
  switch (row.opcode[slot]) {
    case Op::SHARPNESS: prepare_sharpen((f32)a[0], s.filter.sharpen); return true;
    case Op::CONVOLVE:
      if (is_separable(a)) return prepare_blur(image, a, row.batch->kernels, s.filter.blur);
      return prepare_convolution(a, s.filter.blur);
    case Op::MORPHOLOGY: return s.filter.blur.lines.reserve((i64)a[0] * (i64)a[1]);
    case Op::CLAHE:
      if (!prepare_tiles(image, a, s.filter.tiles)) return false;
      return s.filter.is_shared || measure_tiles(image, a, s.filter.tiles);
    case Op::ZOOM_BLUR: return prepare_zoom(image, a, s.filter.zoom);
    default: return true;
  }
}

void read_filtered_row(const Row &row, i64 slot, i64 height, i64 width, i64 channels, i64 y, Scratch &s) {
  const f64 *a = row.args[slot];
  const FilterImage image = image_of(s.filter, height, width, channels);
  const Planes out = s.row.planes();
  switch (row.opcode[slot]) {
    case Op::SHARPNESS: return sharpen_row(image, y, s.filter.sharpen, out);
    case Op::CONVOLVE:
      if (is_separable(a)) return blur_row(image, y, s.filter.blur, out);
      return convolve_row(image, y, a, row.batch->kernels, s.filter.blur, s.row.spare.at, out);
    case Op::MEDIAN: return median_row(image, y, (i64)a[0], (u8 *)s.row.words.at, s.row.stride, out);
    case Op::MORPHOLOGY: return morphology_row(image, y, a, s.filter.blur.lines.at, out);
    case Op::CLAHE: return equalize_row(image, y, s.filter.tiles, out);
    case Op::ZOOM_BLUR: return zoom_row(image, y, a, s.filter.zoom, out);
    case Op::ABERRATION: return bend_row(image, y, a, s.row, out);
    case Op::SCATTER: return scatter_row(row, image, y, a, s.row, out);
    default: return;
  }
}

}  // namespace vg::VG_LEVEL
