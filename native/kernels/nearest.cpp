#include "scratch.h"
namespace vg { namespace VG_LEVEL {
RowCopy row_copy(const Image &image, const f64 *a, const i32 *window, i64 y, i64 width) {
  const bool is_mirrored = a[0] <= 0;
  const i64 shift = (i64)a[2] >> 16;
  const i64 v = (a[4] > 0 ? y : -y) + ((i64)a[5] >> 16);
  Range columns;
  i64 u;
  if (is_mirrored) {
    columns = {max_of<i64>(0, shift - window[3] + 1), min_of<i64>(width, shift - window[1] + 1)};
    u = shift - columns.end + 1;
  } else {
    columns = {max_of<i64>(0, window[1] - shift), min_of<i64>(width, window[3] - shift)};
    u = columns.first + shift;
  }
  if (v < window[0] || v >= window[2] || columns.is_empty()) columns = {0, 0};
  return {columns, v * image.width + u, is_mirrored};
}
void copy_pixels(const Image &image, i64 first, i64 count, bool is_mirrored, Planes planes, i64 at) {
  for (i64 c = 0; c < image.channels; c++)
    for (i64 i = 0; i < count; i++) planes[c][at + i] = image.pixels[image.channels * (first + (is_mirrored ? count - 1 - i : i)) + c];
}
Range read_fixed_row(const Image &, const f64 *, const i32 *, i64, i64, Planes, Scratch &) { return {0, 0}; }
bool prepare_chain(const Row &, i64, Scratch &) { return true; }
void read_chain_row(const Image &, i64, i64, i64, Scratch &) {}
void read_coordinates(const Image &, i64, i64, Scratch &) {}
void prepare_tables(const Row &, i64, const Image &, i64, i64, Scratch &) {}
void read_table_row(const Image &, i64, i64, i64, Planes, Scratch &) {}
void prefetch_slanted(const Image &, f64, i64) {}
void fill_outside(Planes planes, i64 channels, const u8 *color, Range inside, i64 width) {
  for (i64 c = 0; c < channels; c++) {
    for (i64 x = 0; x < inside.first; x++) planes[c][x] = color[c];
    for (i64 x = inside.end; x < width; x++) planes[c][x] = color[c];
  }
}
void fill_by_stage(i64, i64, Scratch &) {}
} }
