// Antialiased resize of a box, bit for bit as Pillow's ImagingResample: a horizontal pass, rows of 8 bits, and a
// vertical pass; or the vertical one first, where that is less work.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

// How weights along x are laid out for vectors: by pairs, or as bytes that pick bytes of a window of the source.
enum class ResizePacking { NONE, PAIRS, PICKS };

// The weights of a resize along one axis.
struct ResizeAxis {
  i64 size = 0;  // outputs
  i64 taps = 0;  // room for weights of an output, in whole groups of four
  i64 most = 0;  // the most weights that an output has
  Buffer<i32> first, count;  // by output: its first source index, its number of weights
  Buffer<i32> weights;  // [size, taps], of 22 fraction bits
  Buffer<f64> exact;  // of one output

  const i32 *weights_of(i64 output) const { return weights.at + output * taps; }
  i64 end_of(i64 output) const { return first[output] + count[output]; }
  // Computes the weights of a box that begins at `start` (-1 - s: of whole pixels from s on, which are cropped first).
  bool fill(i64 in_size, f64 start, f64 extent, i64 out_size, int filter);
};

struct ResizeScratch {
  ResizeAxis x, y;
  i64 first_line;  // of the source, the first that `band` holds
  Buffer<u8> band;  // rows after the horizontal pass, RGBX or gray
  Buffer<u8> packed;  // weights along x as `packing` says
  Buffer<i32> picks;  // where the first weight of each output reads, likewise
  ResizePacking packing;  // of `packed`
  Buffer<i32> row_weights;  // weights of an output row, as the vectors of `mix_lines` take them
  Buffer<i32> sums;
  Buffer<u8> mixed, row;  // a row of source pixels, a row of outputs
};

// Weights of both axes; and the horizontal pass of the lines that output lines `y` read, where it comes first. False
// where there is no memory.
bool prepare_resize(const Row &row, i64 slot, const Image &image, i64 height, i64 width, Range y, Scratch &s);
// Output row `y` into the planes.
void read_resized_row(const Row &row, i64 slot, const Image &image, i64 y, i64 width, Scratch &s);

}  // namespace vg::VG_LEVEL
