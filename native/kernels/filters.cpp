// Filters: dispatches an instruction to its family, allocates its input image and prepares it.
#include "filter_rows.h"
#include "warp.h"

namespace vg::VG_LEVEL {
namespace {

template <class Element>
FilterImageOf<Element> image_of(const FilterScratch &filter, i64 height, i64 width, i64 channels) {
  return {(Element *)filter.first, filter.stride, height, width, channels};
}

bool is_separable(const f64 *a) { return a[3] != 0.0; }

// Elements of a row of a plane, including a block of padding for reads and writes past its end.
i64 stride_of(const Row &row, i64 slot, i64 width) {
  return round_up(width + 2 * filter_margin(row, slot), BLOCK) + BLOCK;
}

// Repeats the outermost pixels of all lines on both sides. Rows have a margin of at least `radius` pixels.
template <class Element> void repeat_edges(const FilterImageOf<Element> &image, i64 radius) {
  if (radius == 0) return;
  for (i64 y = 0; y < image.height; y++)
    for (i64 c = 0; c < image.channels; c++) {
      Element *row = image.line(y, c), *end = row + image.width;
      const Element first = row[0], last = end[-1];
      for (i64 i = 0; i < radius; i++) {
        row[-1 - i] = first;
        end[i] = last;
        // Prevents that the compiler replaces the loop by memset: for a few pixels, the call takes longer.
        __asm__ volatile("" ::: "memory");
      }
    }
}

}  // namespace

i64 filter_margin(const Row &row, i64 slot) {
  const f64 *a = row.args[slot];
  switch (row.opcode[slot]) {
    case Op::CONVOLVE_FIXED: return is_separable(a) ? 0 : (i64)a[1] / 2;
    case Op::MEDIAN:
    case Op::MORPHOLOGY: return (i64)a[0] / 2;
    default: return 0;
  }
}

i64 filter_radius(const Row &row, i64 slot) {
  const f64 *a = row.args[slot];
  switch (row.opcode[slot]) {
    case Op::SHARPNESS: return 1;
    case Op::CONVOLVE_FIXED: return (i64)a[2] / 2;
    case Op::MEDIAN: return (i64)a[0] / 2;
    case Op::MORPHOLOGY: return (i64)a[1] / 2;
    default: return -1;
  }
}

template <class Element> i64 filter_bytes(const Row &row, i64 slot, i64 height, i64 width) {
  return 3 * height * stride_of(row, slot, width) * (i64)sizeof(Element);
}

template <class Element> bool reserve_filter(const Row &row, i64 slot, i64 height, i64 width, Scratch &s) {
  if (!s.filter.image.reserve(filter_bytes<Element>(row, slot, height, width))) return false;
  use_shared_filter<Element>(row, slot, width, s.filter.image.at, nullptr, s);
  s.filter.is_shared = false;
  return true;
}

template <class Element>
void use_shared_filter(const Row &row, i64 slot, i64 width, u8 *memory, const u8 *tiles, Scratch &s) {
  s.filter.first = memory + filter_margin(row, slot) * (i64)sizeof(Element);
  s.filter.stride = stride_of(row, slot, width);
  s.filter.is_shared = true;
  s.filter.tiles.tables = tiles;
}

template <class Element> void repeat_edges_of(const Row &row, i64 slot, i64 width, i64 channels, Range y, Scratch &s) {
  Element *first = (Element *)s.filter.first + 3 * y.first * s.filter.stride;
  repeat_edges<Element>({first, s.filter.stride, y.size(), width, channels}, filter_margin(row, slot));
}

bool measure_filter(const Row &row, i64 slot, i64 height, i64 width, i64 channels, Scratch &s) {
  const FilterImage image = image_of<u8>(s.filter, height, width, channels);
  return prepare_tiles(image, row.args[slot], s.filter.tiles) && measure_tiles(image, row.args[slot], s.filter.tiles);
}

template <class Element>
bool prepare_filter(const Row &row, i64 slot, i64 height, i64 width, i64 channels, Scratch &s) {
  const f64 *a = row.args[slot];
  const auto image = image_of<Element>(s.filter, height, width, channels);
  if (!s.filter.is_shared) repeat_edges(image, filter_margin(row, slot));
  switch (row.opcode[slot]) {
    case Op::SHARPNESS: prepare_sharpen((f32)a[0], s.filter.sharpen); return true;
    case Op::CONVOLVE_FIXED:
      if (is_separable(a)) return prepare_blur(image, row, a, s.filter.blur);
      return prepare_convolution(image, a, s.filter.blur);
    case Op::MORPHOLOGY: return s.filter.blur.lines.reserve((i64)a[0] * (i64)a[1]);
    case Op::ZOOM_BLUR: return prepare_zoom(width, a, s.filter.zoom);
  }
  if constexpr (HAS_LEVELS<Element>)
    if (row.opcode[slot] == Op::CLAHE) {
      if (!prepare_tiles(image, a, s.filter.tiles)) return false;
      return s.filter.is_shared || measure_tiles(image, a, s.filter.tiles);
    }
  return true;
}

template <class Element>
void read_filtered_row(const Row &row, i64 slot, i64 height, i64 width, i64 channels, i64 y, Scratch &s) {
  const f64 *a = row.args[slot];
  const auto image = image_of<Element>(s.filter, height, width, channels);
  const PlanesOf<Element> out = s.row.planes<Element>();
  switch ((NeighborhoodOp)row.opcode[slot]) {
    case NeighborhoodOp::SHARPNESS: return sharpen_row(image, y, s.filter.sharpen, out);
    case NeighborhoodOp::CONVOLVE_FIXED:
      if (is_separable(a)) return blur_row(image, y, a, s.filter.blur, out);
      return convolve_row(image, y, a, row, s.filter.blur, s.row.spare_planes<Element>()[0], out);
    case NeighborhoodOp::MEDIAN: return median_row(image, y, (i64)a[0], (Element *)s.row.words.at, s.row.stride, out);
    case NeighborhoodOp::MORPHOLOGY: return morphology_row(image, y, a, s.filter.blur.lines.at, out);
    case NeighborhoodOp::ZOOM_BLUR: return zoom_row(image, y, a, s.filter.zoom, out);
    case NeighborhoodOp::ABERRATION: return bend_row(image, y, a, s.row, out);
    case NeighborhoodOp::SCATTER: return scatter_row(row, image, y, a, s.row, out);
    case NeighborhoodOp::CLAHE:
      if constexpr (HAS_LEVELS<Element>) equalize_row(image, y, s.filter.tiles, out);
  }
}

#define VG_COMPILE_ALL(Element)          \
  VG_COMPILE(filter_bytes, Element)      \
  VG_COMPILE(reserve_filter, Element)    \
  VG_COMPILE(use_shared_filter, Element) \
  VG_COMPILE(repeat_edges_of, Element)   \
  VG_COMPILE(prepare_filter, Element)    \
  VG_COMPILE(read_filtered_row, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
