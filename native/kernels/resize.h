// Antialiased resize of a box. uint8 images are resized bit for bit as in Pillow's ImagingResample: a horizontal pass,
// which rounds to bytes, then a vertical pass; or the vertical pass first if that is less work. For uint16 and float32,
// see deep_resize.cpp. GPU counterpart: executors/cuda/kernels/resample.py; definition: tests/oracle/resample.py.
#pragma once
#include "executor.h"

// Unrolls a loop over four sums early, so that GCC keeps them in registers.
#define VG_EACH_SUM(i) _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)

namespace vg::VG_LEVEL {

struct Scratch;

constexpr int RESIZE_BITS = 22;

// Of the arguments of a resize.
VG_INLINE bool is_mirrored(const f64 *args) { return args[6] != 0; }

// The weights of a resize along one axis: for uint8 in fixed point of RESIZE_BITS fraction bits, else float32.
struct ResizeAxis {
  i64 size = 0;  // outputs
  i64 taps = 0;  // allocated weights per output, a multiple of 4
  i64 most = 0;  // largest number of weights of an output
  Buffer<i32> first, count;  // by output: its first source index, its number of weights
  Buffer<i32> weights;  // [size, taps], 0 after `count`; or float32 in its place
  Buffer<f64> exact;  // weights of one output in float64

  template <class Weight = i32> Weight *weights_of(i64 output) const { return (Weight *)weights.at + output * taps; }
  i64 end_of(i64 output) const { return first[output] + count[output]; }
  // Computes the weights of a box that begins at `start`. A `start` of -1 - s means a box of integer pixels from s on;
  // the filter then does not read outside the box. False if there is no memory.
  template <class Weight> bool fill(i64 in_size, f64 start, f64 extent, i64 out_size, int filter);
};

struct ResizeScratch {
  ResizeAxis x, y;
  i64 first_line;  // of the source, in `band`
  Buffer<u8> band;  // lines after the horizontal pass
  bool has_windows;  // selects the layout of `packed` and `offsets`
  Buffer<u8> packed;  // weights along x, in the order of vector loads
  Buffer<i32> offsets;  // by output, for three channels: offset of its first source pixel; of floats, in `mixed`
  Buffer<u8> line_weights;  // weights of one output line, in the order of vector loads
  Buffer<u8> mixed, row;  // a source row after the vertical pass, bytes or floats; an output row
  Range columns;  // of the source, in `mixed` of floats
};

// Computes the weights of both axes; for uint8, if the horizontal pass comes first, also runs it for all source lines
// that output lines `y` read. False if there is no memory.
bool prepare_resize(const Row &row, i64 slot, const Image &image, i64 height, i64 width, Range y, Scratch &s);
template <class Element> bool prepare_resize(const Row &row, i64 slot, const ImageOf<Element> &image, i64 height,
                                             i64 width, Range y, Scratch &s);
// Computes output row `y` and stores it to the planes.
void read_resized_row(const Row &row, i64 slot, const Image &image, i64 y, i64 width, Scratch &s);
template <class Element>
void read_resized_row(const Row &row, i64 slot, const ImageOf<Element> &image, i64 y, i64 width, Scratch &s);

}  // namespace vg::VG_LEVEL
