// Fuzzes outlines: fills polygons of arbitrary numbers, which must stay within the mask; traces masks of random pixels,
// and checks that filling the outlines restores them.
#include "fuzz.h"

VG_EXPORT i64 vg_fill_rings(const f64 *points, i64 count, const i64 *ends, i64 rings, u8 *mask, i64 height, i64 width,
                            i64 *area);
VG_EXPORT void vg_count_sides(const u8 *mask, i64 pixels, i64 width, i64 *counts);
VG_EXPORT i64 vg_trace(const u8 *mask, i64 pixels, i64 width, i64 sides, f64 tolerance, f64 *kept, i64 *ends);

namespace {

using fuzz::expect;
using fuzz::Input;
using fuzz::Random;

constexpr i64 MAX_SIDE = 24, MAX_POINTS = 40, MAX_RINGS = 4;

f64 draw_number(Random *random) {
  static const f64 ODD[] = {0,   -0.0,   0.5,     1e-300, 1e300,   -1e300, INFINITY, -INFINITY,
                            NAN, 0x1p31, -0x1p31, 0x1p63, -0x1p63, 0x1p62, 1e19,     0.49999999999999994};
  switch (random->below(8)) {
    case 0: return ODD[random->below(sizeof ODD / sizeof *ODD)];
    case 1: return load<f64>(&random->state);
    case 2: return (f64)random->below(2 * MAX_SIDE) - MAX_SIDE / 2;
    default: return (f64)(i64)random->below(3000) / 100.0 - 3.0;
  }
}

// Fills rings with random ends; ends outside the points must be refused.
void fill_anything(Random *random) {
  const i64 height = random->below(MAX_SIDE), width = random->below(MAX_SIDE);
  const i64 count = random->below(MAX_POINTS), rings = random->below(MAX_RINGS + 1);
  const Input points(count * 2 * (i64)sizeof(f64)), mask(height * width);
  f64 *numbers = (f64 *)points.at;
  bool is_finite = true;
  for (i64 i = 0; i < 2 * count; i++) is_finite &= isfinite(numbers[i] = draw_number(random)) != 0;
  memset(mask.at, 0, (size_t)mask.size);
  i64 ends[MAX_RINGS], area[4], last = 0;
  for (i64 r = 0; r < rings; r++) ends[r] = last += random->below(count / rings + 1);
  if (rings && random->once_in(16)) ends[random->below(rings)] = (i64)random->next();
  const i64 status = vg_fill_rings(numbers, count, ends, rings, mask.at, height, width, area);
  expect(status == OK || status == UNSUPPORTED, "a result");
  // A NaN corner leaves its ring open.
  if (status != OK || !is_finite) return;
  for (i64 y = 0; y < height; y++)
    for (i64 x = 0; x < width; x++)
      if (mask.at[y * width + x])
        expect(y >= area[0] && y < area[2] && x >= area[1] && x < area[3], "pixels within the area");
}

// Draws a mask of shapes and noise, without the border of zeros that tracing needs.
void draw_mask(Random *random, u8 *mask, i64 height, i64 width) {
  const i64 share = 1 + random->below(8);
  for (i64 i = 0; i < height * width; i++) mask[i] = random->below(8) < share;
}

void trace_anything(Random *random) {
  const i64 height = 1 + random->below(MAX_SIDE), width = 1 + random->below(MAX_SIDE), line = width + 2;
  const Input mask(height * width), bordered((height + 2) * line), filled(height * width);
  draw_mask(random, mask.at, height, width);
  memset(bordered.at, 0, (size_t)bordered.size);
  for (i64 y = 0; y < height; y++) memcpy(bordered.at + (y + 1) * line + 1, mask.at + y * width, (size_t)width);
  i64 counts[2], area[4];
  vg_count_sides(bordered.at, bordered.size, line, counts);
  const Input points(counts[0] * 2 * (i64)sizeof(f64)), ends(counts[1] * (i64)sizeof(i64));
  f64 *numbers = (f64 *)points.at;
  const i64 rings = vg_trace(bordered.at, bordered.size, line, counts[0], 0.3, numbers, (i64 *)ends.at);
  expect(rings >= 0 && rings <= counts[1], "no more rings than tops");
  memset(filled.at, 0, (size_t)filled.size);
  // Joins all rings to one polygon, so that holes are excluded: connecting edges are traversed in both directions.
  i64 begin = 0;
  for (i64 r = 0; r < rings; r++) {
    const i64 end = ((const i64 *)ends.at)[r], count = end - begin;
    f64 *ring = numbers + 2 * begin;
    for (i64 i = 0; i < 2 * count; i++) ring[i] -= 1.0;
    const Input part(height * width);
    memset(part.at, 0, (size_t)part.size);
    expect(vg_fill_rings(ring, count, &count, 1, part.at, height, width, area) == OK, "a ring");
    for (i64 i = 0; i < part.size; i++) filled.at[i] ^= part.at[i];
    begin = end;
  }
  expect(memcmp(filled.at, mask.at, (size_t)mask.size) == 0, "the mask again");
}

}  // namespace

int main(int count, char **arguments) {
  return fuzz::run(count, arguments, [](Random *random) {
    fill_anything(random);
    trace_anything(random);
  });
}
