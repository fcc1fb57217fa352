// Antialiased resize of a box, bit for bit as Pillow's ImagingResample: a horizontal pass, which rounds to elements, and a
// vertical one; or the vertical one first, where that is less work.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

constexpr int RESIZE_BITS = 22;

// The weights of a resize along one axis, in fixed point of RESIZE_BITS fraction bits.
struct ResizeAxis {
  i64 size = 0;  // outputs
  i64 taps = 0;  // room for an output's weights, a multiple of 4
  i64 most = 0;  // the most weights that an output has
  Buffer<i32> first, count;  // by output: its first source index, its number of weights
  Buffer<i32> weights;  // [size, taps], 0 after `count`
  Buffer<f64> exact;  // of one output

  i32 *weights_of(i64 output) const { return weights.at + output * taps; }
  i64 end_of(i64 output) const { return first[output] + count[output]; }
  // Computes the weights of a box that begins at `start`. If that is -1 - s, the box is of whole pixels from s on, and
  // the filter does not read beyond it. False if out of memory.
  bool fill(i64 in_size, f64 start, f64 extent, i64 out_size, int filter);
};

struct ResizeScratch {
  ResizeAxis x, y;
  i64 first_line;  // of the source, in `band`
  Buffer<u8> band;  // elements: lines after the horizontal pass
  bool has_windows;  // how `packed` and `offsets` are laid out
  Buffer<u8> packed;  // weights along x, as vectors read them
  Buffer<i32> offsets;  // by output, of colors: where it reads
  Buffer<u8> line_weights;  // of one output line, as vectors read them
  Buffer<u8> mixed, row;  // elements: a source row after the vertical pass, an output row
};

// Computes the weights of both axes, and, if the horizontal pass comes first, that pass of all lines that output lines
// `y` read. False if out of memory.
template <class Element> bool prepare_resize(const Row &row, i64 slot, const ImageOf<Element> &image, i64 height,
                                             i64 width, Range y, Scratch &s);
// Output row `y`, stored to the planes.
template <class Element>
void read_resized_row(const Row &row, i64 slot, const ImageOf<Element> &image, i64 y, i64 width, Scratch &s);

}  // namespace vg::VG_LEVEL
