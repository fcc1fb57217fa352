// Noise of pixels: Philox words and normal numbers of a chunk of a row, equal in every executor (program/rng.py). GPU
// counterparts: `words` and `normals` in executors/cuda/kernels/values.py; definition: tests/oracle/position.py.
#pragma once
#include "values.h"

namespace vg::VG_LEVEL {

// Number of pixels whose words are computed before they are used: all fit into the first-level cache.
constexpr i64 CHUNK = 256;

struct alignas(64) NoiseChunk {
  u32 words[4][CHUNK];  // by channel; the fourth is used by fields only
  f32 normals[CHUNK];  // normal numbers of one channel
  u64 lines[CHUNK];  // entries of the table: base and slope
};

// The part of the Philox input that is equal for all pixels of a slot's noise.
struct NoiseKey {
  u64 id;
  u32 low, high;
  u32 slot;
};

// Draws the words of `count` counters, at most CHUNK, from `first` on, and of a few more. A pixel's counter is its
// index in the image.
void draw_words(const NoiseKey &key, i64 first, i64 count, NoiseChunk &chunk);
void draw_four_words(const NoiseKey &key, i64 first, i64 count, NoiseChunk &chunk);
VG_INLINE void draw_words(const Row &row, i64 slot, i64 pixel, i64 count, NoiseChunk &chunk) {
  draw_words({row.id, row.key_low, row.key_high, (u32)slot}, pixel, count, chunk);
}
// Standard normal numbers of a channel's words.
void draw_normals(const f32 *segments, i64 channel, i64 count, NoiseChunk &chunk);

// GAUSSIAN_NOISE, SHOT_NOISE or SALT_AND_PEPPER in place, on a row whose first pixel has index `pixel`.
template <class Element>
void add_noise(const Row &row, i64 slot, i64 pixel, i64 width, i64 channels, PlanesOf<Element> planes);

// ERASE in place on row `y`; not for an ERASE after Normalize.
template <class Element>
void erase_row(const Row &row, i64 slot, i64 y, i64 width, i64 channels, PlanesOf<Element> planes);

}  // namespace vg::VG_LEVEL
