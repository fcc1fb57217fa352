// Perceptual hashes of an image, and a small picture of it: see variegate/apps/check/fingerprint.py. All in integers.
#include "../coords.h"

namespace vg::VG_LEVEL {
namespace {

constexpr int AREAS = FINGERPRINT_AREAS, SIDE = SIGNATURE_SIDE, CHROMA = SIGNATURE_CHROMA_SIDE;
constexpr int LUMA_BYTES = SIDE * SIDE;
constexpr int WAVES = 9;  // frequencies along a side

// Sums of channels over equal areas. A pixel on the border of two areas is divided between them.
struct Areas {
  i64 at[AREAS][AREAS][3];
};

// Adds the rows in line `v` of the areas, weighted in units of 1 / AREAS.
void add_rows(const u8 *image, i64 height, i64 values, i64 v, u32 *__restrict line) {
  const i64 begin = v * height, end = begin + height;
  memset(line, 0, (size_t)values * sizeof(u32));
  for (i64 y = begin / AREAS; y <= (end - 1) / AREAS; y++) {
    const u32 part = (u32)(min_of(AREAS * (y + 1), end) - max_of(AREAS * y, begin));
    const u8 *__restrict row = image + y * values;
    for (i64 i = 0; i < values; i++) line[i] += part * row[i];
  }
}

// The sum of a line of the image over the columns of area `u`, by channel.
void add_columns(const u32 *line, i64 width, i64 u, i64 *area) {
  const i64 left = u * width, right = left + width, first = left / AREAS, last = (right - 1) / AREAS;
  auto part_of = [=](i64 x) { return min_of(AREAS * (x + 1), right) - max_of(AREAS * x, left); };
  u64 red = 0, green = 0, blue = 0;
  for (i64 x = first + 1; x < last; x++) {
    red += line[3 * x];
    green += line[3 * x + 1];
    blue += line[3 * x + 2];
  }
  const u64 inside[3] = {red, green, blue};
  for (int c = 0; c < 3; c++) {
    area[c] = AREAS * (i64)inside[c] + part_of(first) * (i64)line[3 * first + c];
    if (last > first) area[c] += part_of(last) * (i64)line[3 * last + c];
  }
}

VG_INLINE i64 gray_of(const i64 *sums) { return 299 * sums[0] + 587 * sums[1] + 114 * sums[2]; }

struct Luma {
  i64 at[AREAS][AREAS];  // FINGERPRINT_FINENESS units per value of a byte
};

// Hashes of the image and its mirror image: signs of the cosine coefficients (v, u) in `waves`.
void hash_luma(const Luma &luma, const i64 *waves, const i64 *cosines, u64 *hashes) {
  i64 half[AREAS][WAVES];
  for (int v = 0; v < AREAS; v++) {
    for (int u = 0; u < WAVES; u++) {
      i64 total = 0;
      for (int x = 0; x < AREAS; x++) total += luma.at[v][x] * cosines[u * AREAS + x];
      half[v][u] = total;
    }
  }
  hashes[0] = hashes[1] = 0;
  for (int bit = 0; bit < 64; bit++) {
    const i64 v = waves[2 * bit], u = waves[2 * bit + 1];
    i64 total = 0;
    for (int y = 0; y < AREAS; y++) total += half[y][u] * cosines[v * AREAS + y];
    hashes[0] |= (u64)(total > FINGERPRINT_LEAST) << bit;
    hashes[1] |= (u64)((u % 2 ? -total : total) > FINGERPRINT_LEAST) << bit;
  }
}

void write_signature(const Areas &areas, const Luma &luma, i64 pixels, u8 *signature) {
  constexpr int LUMA_STEP = AREAS / SIDE, CHROMA_STEP = AREAS / CHROMA;
  constexpr i64 LUMA_AREAS = LUMA_STEP * LUMA_STEP, CHROMA_AREAS = CHROMA_STEP * CHROMA_STEP;
  for (int v = 0; v < SIDE; v++) {
    for (int u = 0; u < SIDE; u++) {
      i64 total = LUMA_AREAS * FINGERPRINT_FINENESS / 2;
      for (int y = 0; y < LUMA_STEP; y++)
        for (int x = 0; x < LUMA_STEP; x++) total += luma.at[LUMA_STEP * v + y][LUMA_STEP * u + x];
      signature[SIDE * v + u] = (u8)(total / (LUMA_AREAS * FINGERPRINT_FINENESS));
    }
  }
  for (int v = 0; v < CHROMA; v++) {
    for (int u = 0; u < CHROMA; u++) {
      i64 sums[3] = {};
      for (int y = 0; y < CHROMA_STEP; y++)
        for (int x = 0; x < CHROMA_STEP; x++)
          for (int c = 0; c < 3; c++) sums[c] += areas.at[CHROMA_STEP * v + y][CHROMA_STEP * u + x][c];
      // JFIF's Cb and Cr.
      const i64 blue = floor_div(1000 * sums[2] - gray_of(sums), 1772);
      const i64 red = floor_div(1000 * sums[0] - gray_of(sums), 1402);
      u8 *out = signature + LUMA_BYTES + CHROMA * v + u;
      out[0] = (u8)clamp<i64>(128 + floor_div(blue, CHROMA_AREAS * pixels), 0, 255);
      out[CHROMA * CHROMA] = (u8)clamp<i64>(128 + floor_div(red, CHROMA_AREAS * pixels), 0, 255);
    }
  }
}

}  // namespace

// Writes the hashes, u64[2], and the signature of an image u8[height, width, 3]. `waves`: i64[64, 2]; `cosines`: i64[9,
// AREAS].
VG_EXPORT i64 VG_ENTRY(vg_describe_look)(const u8 *image, i64 height, i64 width, const i64 *waves, const i64 *cosines,
                                         u64 *hashes, u8 *signature) {
  const i64 pixels = height * width;
  Buffer<u32> line;
  if (!line.reserve(3 * width)) return OUT_OF_MEMORY;
  Areas areas;
  Luma luma;
  for (i64 v = 0; v < AREAS; v++) {
    add_rows(image, height, 3 * width, v, line.at);
    for (i64 u = 0; u < AREAS; u++) {
      add_columns(line.at, width, u, areas.at[v][u]);
      luma.at[v][u] = gray_of(areas.at[v][u]) * FINGERPRINT_FINENESS / (1000 * pixels);
    }
  }
  hash_luma(luma, waves, cosines, hashes);
  write_signature(areas, luma, pixels, signature);
  return OK;
}

}  // namespace vg::VG_LEVEL
