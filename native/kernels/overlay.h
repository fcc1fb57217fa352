// OVERLAY: layers blended over an image (fog, rain, light), and curves of lightness. GPU counterpart:
// executors/cuda/kernels/overlay.py; definition: `overlay` in tests/oracle/position.py.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

struct OverlayScratch {
  i64 slot;  // slot of the lines in `rows`, -1 for none
  i64 line[2];  // the even and the odd line of nodes in `rows`, -1 for none
  i64 stride;
  Buffer<i16> rows;  // [14, stride]: two lines of each of four planes; weights of a row; its colors

  // A line of a plane of nodes, expanded to the image's columns, in 1/128 of a byte.
  i16 *nodes(i64 plane, i64 parity) { return rows.at + stride * (2 * plane + parity); }
  i16 *weights(i64 i) { return rows.at + stride * (8 + i); }  // with 15 fraction bits
  i16 *colors(i64 channel) { return rows.at + stride * (11 + channel); }
};

// Allocates memory for the layers of a row's slots, for the image width of RowScratch. False if there is no memory.
bool reserve_overlays(const Row &row, i64 length, Scratch &s);
// OVERLAY on row `y`, in place.
void overlay_row(const Row &row, i64 slot, i64 y, i64 width, i64 channels, Scratch &s);

}  // namespace vg::VG_LEVEL
