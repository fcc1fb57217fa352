// Stores finished rows to the result, as elements or float32, interleaved or planar.
#include "store.h"
#include "interleave.h"
#include "lanes.h"

namespace vg::VG_LEVEL {
namespace {

constexpr i64 LINE = 16;  // floats of a cache line

template <class Element> void store_as_elements(PlanesOf<Element> planes, i64 y, const Target &target) {
  const i64 width = target.width, channels = target.channels;
  Element *to = (Element *)target.at;
  if (target.storage == Storage::BYTES_CHW || channels == 1) {
    for (i64 c = 0; c < channels; c++) copy_values(to + (c * target.height + y) * width, planes[c], width);
  } else {
    interleave(planes[0], planes[1], planes[2], width, to + 3 * y * width);
  }
}

// Stores a full cache line, bypassing the caches: partial lines would first be read from memory.
VG_INLINE void stream_line(const u8 *bytes, Floats scales, Floats biases, f32 *to) {
  for (i64 i = 0; i < LINE; i += LANES) {
    const Floats values = to_floats(load_bytes(bytes + i)) * scales + biases;
#if defined(VG_WIDE)  // movntps
    VG_WIDE(stream_ps)(to + i, (WideFloats)values);
#else
    store(to + i, values);
#endif
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

void store_scaled(const u8 *bytes, i64 count, f32 scale, f32 bias, bool streams, f32 *to) {
  const Floats scales = all_floats(scale), biases = all_floats(bias);
  // Streaming is slower for rows that share a cache line with the next row.
  if (streams && count % LINE == 0 && (uintptr_t)to % 64 == 0) {
    for (i64 x = 0; x < count; x += LINE) stream_line(bytes + x, scales, biases, to + x);
    return;
  }
  if (count < LANES) return store_scaled<u8>(bytes, count, scale, bias, false, to);
  auto store_lanes = [=](i64 x) { store(to + x, to_floats(load_bytes(bytes + x)) * scales + biases); };
  i64 x = 0;
  for (; x + 4 * LANES <= count; x += 4 * LANES)
    for (i64 i = 0; i < 4; i++) store_lanes(x + i * LANES);
  for (; x < count; x += LANES) store_lanes(min_of(x, count - LANES));  // the last vector overlaps the one before it
}

void store_scaled_pixels(const u8 *bytes, i64 count, const f32 *scale, const f32 *bias, f32 *to) {
  // With period three, three vectors contain scales of all lanes.
  Floats scales[3], biases[3];
  for (int k = 0; k < 3; k++) {
    for (i64 i = 0; i < LANES; i++) {
      scales[k][i] = scale[(k * LANES + i) % 3];
      biases[k][i] = bias[(k * LANES + i) % 3];
    }
  }
  const i64 values = 3 * count;
  i64 i = 0;
  for (; i + 3 * LANES <= values; i += 3 * LANES) {
    for (int k = 0; k < 3; k++) {
      const i64 at = i + k * LANES;
      store(to + at, to_floats(load_bytes(bytes + at)) * scales[k] + biases[k]);
    }
  }
  for (; i < values; i++) store(to + i, (f32)bytes[i] * scale[i % 3] + bias[i % 3]);
}

template <class Element> void store_row(PlanesOf<Element> planes, i64 y, const Target &target) {
  if (target.is_float()) store_as_floats(planes, y, target);
  else store_as_elements(planes, y, target);
}

#define VG_COMPILE_ALL(Element) VG_COMPILE(store_row, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
