// Stores finished rows to the result, as elements or float32, interleaved or planar.
#include "store.h"
#include "interleave.h"
#include "lanes.h"

namespace vg::VG_LEVEL {
namespace {

constexpr i64 LINE = 64;  // bytes of a cache line

// Stores a part of a full cache line, bypassing the caches: partial lines would first be read from memory (movntps).
VG_INLINE void stream(void *to, Floats values) {
#if defined(VG_WIDE)
  VG_WIDE(stream_ps)((f32 *)to, (WideFloats)values);
#else
  store(to, values);
#endif
}

// Streaming is slower for rows that share a cache line with the next row.
bool fills_lines(const void *to, i64 bytes) { return bytes % LINE == 0 && (uintptr_t)to % LINE == 0; }

// Copies a row; bypasses the caches if `streams`.
template <class Element> void copy_row(const Element *from, i64 count, bool streams, Element *to) {
  constexpr i64 STEP = sizeof(Floats) / sizeof(Element);
  if (!streams || !fills_lines(to, count * (i64)sizeof(Element))) return copy_values(to, from, count);
  for (i64 x = 0; x < count; x += STEP) stream(to + x, load<Floats>(from + x));
}

template <class Element> void store_as_elements(PlanesOf<Element> planes, i64 y, const Target &target) {
  const i64 width = target.width, channels = target.channels;
  Element *to = (Element *)target.at;
  if (target.storage == Storage::BYTES_CHW || channels == 1) {
    for (i64 c = 0; c < channels; c++)
      copy_row((const Element *)planes[c], width, target.streams, to + (c * target.height + y) * width);
  } else {
    interleave(planes[0], planes[1], planes[2], width, to + 3 * y * width);
  }
}

template <class Element>
void store_interleaved(PlanesOf<Element> planes, i64 width, const f32 *scale, const f32 *bias, f32 *to) {
  constexpr i64 PIXELS = 64;
  Element values[3 * PIXELS];
  for (i64 first = 0; first < width; first += PIXELS) {
    const i64 count = min_of(PIXELS, width - first);
    interleave(planes[0] + first, planes[1] + first, planes[2] + first, count, values);
    store_scaled_pixels(values, count, scale, bias, to + 3 * first);
  }
}

template <class Element> void store_as_floats(PlanesOf<Element> planes, i64 y, const Target &target) {
  const i64 width = target.width, channels = target.channels;
  f32 *to = (f32 *)target.at;
  if (target.storage == Storage::FLOATS_HWC && channels == 3)
    return store_interleaved(planes, width, target.scale, target.bias, to + 3 * y * width);
  for (i64 c = 0; c < channels; c++) {
    f32 *row = to + (c * target.height + y) * width;
    store_scaled((const Element *)planes[c], width, target.scale[c], target.bias[c], target.streams, row);
  }
}

}  // namespace

template <class Element>
void store_scaled(const Element *values, i64 count, f32 scale, f32 bias, bool streams, f32 *to) {
  const Floats scales = all_floats(scale), biases = all_floats(bias);
  auto scaled = [=](i64 x) { return load_floats(values + x) * scales + biases; };
  if (streams && fills_lines(to, count * (i64)sizeof(f32))) {
    for (i64 x = 0; x < count; x += LANES) stream(to + x, scaled(x));
    return;
  }
  if (count < LANES) {
    for (i64 x = 0; x < count; x++) to[x] = (f32)values[x] * scale + bias;
    return;
  }
  i64 x = 0;
  for (; x + 4 * LANES <= count; x += 4 * LANES)
    for (i64 i = 0; i < 4; i++) store(to + x + i * LANES, scaled(x + i * LANES));
  for (; x < count; x += LANES) {
    const i64 at = min_of(x, count - LANES);  // the last vector overlaps the one before it
    store(to + at, scaled(at));
  }
}

template <class Element>
void store_scaled_pixels(const Element *values, i64 count, const f32 *scale, const f32 *bias, f32 *to) {
  // With period three, three vectors contain scales of all lanes.
  Floats scales[3], biases[3];
  for (int k = 0; k < 3; k++) {
    for (i64 i = 0; i < LANES; i++) {
      scales[k][i] = scale[(k * LANES + i) % 3];
      biases[k][i] = bias[(k * LANES + i) % 3];
    }
  }
  i64 i = 0;
  for (; i + 3 * LANES <= 3 * count; i += 3 * LANES)
    for (int k = 0; k < 3; k++) {
      const i64 at = i + k * LANES;
      store(to + at, load_floats(values + at) * scales[k] + biases[k]);
    }
  for (; i < 3 * count; i++) to[i] = (f32)values[i] * scale[i % 3] + bias[i % 3];
}

template <class Element> void store_row(PlanesOf<Element> planes, i64 y, const Target &target) {
  if (target.is_float()) store_as_floats(planes, y, target);
  else store_as_elements(planes, y, target);
}

#define VG_COMPILE_ALL(Element)     \
  VG_COMPILE(store_row, Element)    \
  VG_COMPILE(store_scaled, Element) \
  VG_COMPILE(store_scaled_pixels, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
