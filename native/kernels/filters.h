// Filters over neighborhoods: sharpness, blurs, medians, morphology, CLAHE, and filters with distant reads (warp.h).
// GPU counterparts: executors/cuda/kernels/neighborhood.py and warp.py; definition: tests/oracle/neighborhood.py.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

// Maximal size of CLAHE's tables in bytes.
constexpr i64 TILE_TABLES = 256 * MAX_TILES * MAX_TILES;

// Weights of a separable blur, and buffers for rows between its passes. For uint8 images, weights are pairs of 16 bits
// for `dot16`.
struct BlurScratch {
  i64 radius_x, radius_y;
  i64 stride;  // of rows, in words
  i64 amount, threshold;  // arguments of an unsharp mask
  bool is_unsharp;
  const f32 *weights_x, *weights_y;  // for other images: from the center on, with half of the center's weight
  Buffer<i64> lines;  // offsets of a continued image's lines, or of the cells of a full kernel
  Buffer<i16> rows;  // [4, stride]: of each channel, between the passes, continued to both sides
  Buffer<f32> floats;  // the same of one channel of other images; or lines that a full kernel reads
  Buffer<i32> even_pairs, odd_pairs;  // weights along x, for even and for odd columns
  Buffer<i32> column_pairs;  // weights along y
};

// Tables of CLAHE's tiles.
struct TileScratch {
  i64 tiles_x, tiles_y;
  f32 scale;  // 1 / a tile's height
  i64 band;  // number of tiles above the rows for which `joined` is valid
  Buffer<i32> counts;  // histograms of one line of tiles
  const u8 *tables;  // [tiles_y, tiles_x, 256]
  Buffer<u8> luts;  // private tables, if workers do not share them
  Buffer<u32> joined;  // [tiles_x + 1, 256]: the entries of four tiles for a value
  Buffer<i64> ends;  // [tiles_x + 1]: end of the columns between the same tiles
  Buffer<f32> fractions;  // by column: weight of the tiles to the right
  Buffer<u32> joined_values;  // a row's words of `joined`
  Buffer<u8> luma;  // luma of a row, before and after
};

// The factor of a SHARPNESS in fixed point.
struct SharpenScratch {
  f32 factor;
  i32 weights;  // two of 16 bits: the lower 7 bits with a sign, and the rest
  i32 rounding;
  int shift;
  bool is_exact;  // whether its products round down to the same integers as float32 products
};

struct ZoomScratch {
  Buffer<i32> positions;  // [zooms, width]: columns to read
  Buffer<u64> line, totals;  // levels of three channels in a word, and their sums
  Buffer<u16> mixed;  // [3, width]: levels between two lines
};

struct FilterScratch {
  // The filter's input image: rows of three planes, 3 * stride elements apart, with a margin of the kernel's radius on
  // both sides of each plane's row. `first`: the first pixel.
  u8 *first;
  i64 stride;
  Buffer<u8> image;  // private memory, if workers do not share it
  // Several workers share the image. Then separate steps repeat its edges and compute the tables of CLAHE's tiles.
  bool is_shared;
  BlurScratch blur;
  TileScratch tiles;
  SharpenScratch sharpen;
  ZoomScratch zoom;
};

// Pixels to the left and to the right of the image that the filter at `slot` reads.
i64 filter_margin(const Row &row, i64 slot);
// Lines above and below a pixel that the filter at `slot` reads; -1 if it may read any.
i64 filter_radius(const Row &row, i64 slot);
// Allocates the input of the filter at `slot`. False if there is no memory.
template <class Element> bool reserve_filter(const Row &row, i64 slot, i64 height, i64 width, Scratch &s);
// Size of the input of the filter at `slot` in bytes.
template <class Element> i64 filter_bytes(const Row &row, i64 slot, i64 height, i64 width);
// Uses an input that several workers share. `tiles`: tables of CLAHE's tiles, or null.
template <class Element>
void use_shared_filter(const Row &row, i64 slot, i64 width, u8 *memory, const u8 *tiles, Scratch &s);
// Repeats the outermost pixels of lines `y`, as far as the filter reads outside the image.
template <class Element> void repeat_edges_of(const Row &row, i64 slot, i64 width, i64 channels, Range y, Scratch &s);
// Builds the tables of CLAHE's tiles. False if there is no memory.
bool measure_filter(const Row &row, i64 slot, i64 height, i64 width, i64 channels, Scratch &s);
// Prepares a filter after its input is complete: repeats edges, computes tables of tiles. False if there is no memory.
template <class Element> bool prepare_filter(const Row &row, i64 slot, i64 height, i64 width, i64 channels, Scratch &s);
// Row `y` of the filtered image into the planes.
template <class Element>
void read_filtered_row(const Row &row, i64 slot, i64 height, i64 width, i64 channels, i64 y, Scratch &s);

}  // namespace vg::VG_LEVEL
