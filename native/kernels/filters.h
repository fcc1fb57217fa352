// Filters over neighbourhoods: sharpness, blurs, medians, morphology, CLAHE, and those that read far away (warp.h).
#pragma once
#include "executor.h"

namespace vg {
namespace VG_LEVEL {

struct Scratch;

struct FilterScratch {
  // The image that a filter sees: rows of three planes each, which lie 3 * stride apart, from `first` on; with room for
  // a kernel's radius on both sides of a plane's row.
  u8 *first;
  i64 stride;
  Buffer<u8> image;  // where that is a thread's own
};

// Room beyond the image's width that rows of the filter at `slot` need on either side, in pixels.
i64 filter_margin(const Row &row, i64 slot);
// Makes room for the image that the filter at `slot` sees. False where there is no memory.
bool reserve_filter(const Row &row, i64 slot, i64 height, i64 width, Scratch &s);
// Prepares a filter once its image in planes is complete: edges continued, tables of tiles. False where there is no
// memory.
bool prepare_filter(const Row &row, i64 slot, i64 height, i64 width, i64 channels, Scratch &s);
// Row `y` of the filtered image into the planes.
void read_filtered_row(const Row &row, i64 slot, i64 height, i64 width, i64 channels, i64 y, Scratch &s);

}  // namespace VG_LEVEL
}  // namespace vg
