// Measures of an image, computed in one pass: see variegate/apps/check/pixels.py.
#include "lanes.h"
#include "split.h"

namespace vg::VG_LEVEL {
namespace {

// Number of pixels whose squares are summed in 32 bits: each lane sums at most a quarter of them.
constexpr i64 PIECE = 1 << 16;
// Adjacent pixels are often equal, and an increment waits for the previous increment of the same counter. Therefore
// pixels alternate between copies of the table.
constexpr int COPIES = 4;

// State shared by all rows of an image.
struct Measured {
  i64 width, factor;
  i64 plane_height, plane_width;  // of the reduced image
  Buffer<u8> channels;  // [3, stride] of a row, zeros after it
  Buffer<u8> luma;  // of a row
  Buffer<u32> added;  // [width]: luma of up to `factor` rows
  Buffer<u8> plane;  // luma, reduced
  Buffer<i32> columns;  // [4, plane_width]: squares of differences of a row of blocks
  u64 sums[6] = {};
  u64 counts[COPIES][256] = {};

  i64 stride() const { return round_up(width, BLOCK) + BLOCK; }

  bool reserve() {
    return channels.reserve(3 * stride()) && luma.reserve(stride()) && added.reserve(width) &&
           plane.reserve(plane_height * plane_width) && columns.reserve(4 * plane_width);
  }
};

VG_INLINE u64 sum_of(Ints lanes) {
  u64 sum = 0;
  for (int i = 0; i < LANES; i++) sum += (u32)lanes[i];
  return sum;
}

// Adds sums of channels and of their squares of the row's pixels first..end; computes their luma.
void add_piece(Measured &all, i64 first, i64 end) {
  Ints sums[3] = {}, squares[3] = {};
  const u8 *at = all.channels.at;
  const i64 stride = all.stride();
  auto luma_at = [&](i64 x) {
    Ints channel[3];
    for (int c = 0; c < 3; c++) {
      channel[c] = load_bytes(at + c * stride + x);
      sums[c] += channel[c];
      squares[c] += multiply_pairs(channel[c], channel[c]);
    }
    return luma_of(channel[0], channel[1], channel[2]);
  };
  u8 *const luma[1] = {all.luma.at};
  store_columns(luma, {first, end}, [&](i64 x, Halves *out) {
    const Ints low = luma_at(x);
    out[0] = pack(low, luma_at(x + LANES));
  });
  for (int c = 0; c < 3; c++) {
    all.sums[c] += sum_of(sums[c]);
    all.sums[3 + c] += sum_of(squares[c]);
  }
}

void count_luma(Measured &all) {
  const u8 *luma = all.luma.at;
  i64 x = 0;
  for (; x + 8 <= all.width; x += 8) {
    const u64 bytes = load<u64>(luma + x);
    for (int i = 0; i < 8; i++) all.counts[i % COPIES][bytes >> 8 * i & 255]++;
  }
  for (; x < all.width; x++) all.counts[0][luma[x]]++;
}

// Means of `factor` x `factor` pixels, rounded.
void reduce_row(Measured &all, i64 y) {
  const i64 factor = all.factor, width = all.plane_width;
  u8 *__restrict out = all.plane.at + y / factor * width;
  if (factor == 1) {
    memcpy(out, all.luma.at, (size_t)width);
    return;
  }
  u32 *__restrict added = all.added.at;
  const u8 *__restrict luma = all.luma.at;
  if (y % factor == 0) memset(added, 0, (size_t)all.width * sizeof(u32));
  for (i64 x = 0; x < all.width; x++) added[x] += luma[x];
  if (y % factor != factor - 1) return;
  const u32 pixels = (u32)(factor * factor);
  for (i64 x = 0; x < width; x++) {
    u32 total = pixels / 2;
    for (i64 i = 0; i < factor; i++) total += added[x * factor + i];
    out[x] = (u8)(total / pixels);
  }
}

// Squares of first and second differences between columns.
VG_INLINE void add_across(const u8 *__restrict row, i64 width, i32 *__restrict first, i32 *__restrict second) {
  for (i64 x = 1; x < width - 1; x++) {
    const i32 a = row[x - 1], b = row[x], c = row[x + 1];
    first[x] += (c - b) * (c - b);
    second[x] += (a - 2 * b + c) * (a - 2 * b + c);
  }
}

// The same between lines.
VG_INLINE void add_down(const u8 *__restrict row, i64 width, i32 *__restrict first, i32 *__restrict second) {
  const u8 *above = row - width, *below = row + width;
  for (i64 x = 0; x < width; x++) {
    const i32 a = above[x], b = row[x], c = below[x];
    first[x] += (c - b) * (c - b);
    second[x] += (a - 2 * b + c) * (a - 2 * b + c);
  }
}

// Mean squares, blocks[across, down; first, second differences; rows, columns of blocks]. Border pixels, which have no
// second differences, are excluded from both.
void measure_blocks(Measured &all, f32 *blocks) {
  const i64 height = all.plane_height, width = all.plane_width;
  const i64 block_rows = ceil_div(height, SHARPNESS_BLOCK);
  const i64 block_columns = ceil_div(width, SHARPNESS_BLOCK);
  i32 *squares = all.columns.at;
  for (i64 v = 0; v < block_rows; v++) {
    const i64 top = v * SHARPNESS_BLOCK, bottom = min_of(height, top + SHARPNESS_BLOCK);
    memset(squares, 0, (size_t)(4 * width) * sizeof(i32));
    for (i64 y = top; y < bottom; y++) {
      const u8 *row = all.plane.at + y * width;
      add_across(row, width, squares, squares + width);
      if (y > 0 && y < height - 1) add_down(row, width, squares + 2 * width, squares + 3 * width);
    }
    const i64 rows = min_of(bottom, height - 1) - max_of<i64>(top, 1);
    for (i64 u = 0; u < block_columns; u++) {
      const i64 left = u * SHARPNESS_BLOCK, right = min_of(width, left + SHARPNESS_BLOCK);
      const i64 across = (min_of(right, width - 1) - max_of<i64>(left, 1)) * (bottom - top);
      const i64 down = rows * (right - left);
      for (int i = 0; i < 4; i++) {
        i64 total = 0;
        for (i64 x = left; x < right; x++) total += squares[i * width + x];
        blocks[(i * block_rows + v) * block_columns + u] = (f32)total / (f32)max_of<i64>(1, i < 2 ? across : down);
      }
    }
  }
}

}  // namespace

// Measures an image u8[height, width, 3]: sums of channels and of their squares, u64[6]; the histogram of luma,
// i64[256]; and differences of luma, reduced by `factor`, by blocks: see measure_blocks.
VG_EXPORT i64 VG_ENTRY(vg_measure_pixels)(const u8 *image, i64 height, i64 width, i64 factor, u64 *sums, i64 *counts,
                                          f32 *blocks) {
  Measured all = {width, factor, height / factor, width / factor, {}, {}, {}, {}, {}, {}, {}};
  if (!all.reserve()) return OUT_OF_MEMORY;
  const i64 stride = all.stride();
  u8 *at = all.channels.at;
  for (i64 y = 0; y < height; y++) {
    split_rgb<false>(image + 3 * y * width, width, at, at + stride, at + 2 * stride);
    for (i64 x = 0; x < width; x += PIECE) add_piece(all, x, min_of(width, x + PIECE));
    count_luma(all);
    if (y / factor < all.plane_height) reduce_row(all, y);
  }
  measure_blocks(all, blocks);
  memcpy(sums, all.sums, sizeof all.sums);
  for (int i = 0; i < 256; i++) {
    counts[i] = 0;
    for (auto &turn : all.counts) counts[i] += (i64)turn[i];
  }
  return OK;
}

}  // namespace vg::VG_LEVEL
