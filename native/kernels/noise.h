// Noise of pixels: Philox words and normal numbers of a chunk of a row, the same in every executor (program/rng.py).
#pragma once
#include "values.h"

namespace vg::VG_LEVEL {

// Pixels whose words are made before any is used: all stay in the nearest cache.
constexpr i64 CHUNK = 256;

struct alignas(64) NoiseChunk {
  u32 words[4][CHUNK];  // by channel; the fourth is drawn for fields alone
  f32 normals[CHUNK];  // of one channel
  u64 lines[CHUNK];  // of the table: base and slope
};

// What all counters of a slot's noise share.
struct NoiseKey {
  u64 id;
  u32 low, high;
  u32 slot;
};

// Words of `count` counters (and of a few more), at most CHUNK, from `first` on: of a pixel, its number in the image.
void draw_words(const NoiseKey &key, i64 first, i64 count, NoiseChunk &chunk);
void draw_four_words(const NoiseKey &key, i64 first, i64 count, NoiseChunk &chunk);
VG_INLINE void draw_words(const Row &row, i64 slot, i64 pixel, i64 count, NoiseChunk &chunk) {
  draw_words({row.id, row.key_low, row.key_high, (u32)slot}, pixel, count, chunk);
}
// Standard normal numbers of a channel's words.
void draw_normals(const f32 *segments, i64 channel, i64 count, NoiseChunk &chunk);

// GAUSSIAN_NOISE, SHOT_NOISE or SALT_AND_PEPPER on a row whose first pixel is number `pixel`, in place.
template <class Element>
void add_noise(const Row &row, i64 slot, i64 pixel, i64 width, i64 channels, PlanesOf<Element> planes);

// ERASE on row `y`, in place, unless it comes after Normalize.
template <class Element>
void erase_row(const Row &row, i64 slot, i64 y, i64 width, i64 channels, PlanesOf<Element> planes);

}  // namespace vg::VG_LEVEL
