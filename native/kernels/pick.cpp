// Three channels of images of more (or of two).
#include "../constants.h"
#include "../simd.h"

namespace vg {
namespace VG_LEVEL {
namespace {

struct Picked {
  i64 channels;  // of the source
  i64 last;  // the number of the third channel
};

void pick_each(const u8 *source, i64 first, i64 end, const Picked &picked, u8 *to) {
  for (i64 x = first; x < end; x++) {
    const u8 *pixel = source + x * picked.channels;
    to[3 * x] = pixel[0];
    to[3 * x + 1] = pixel[1];
    to[3 * x + 2] = pixel[picked.last];
  }
}

// Picks from `pixels` pixels as long as vectors stay within `readable` bytes of the source and `writable` ones of the
// target, from their first pixel on; returns how many that were, which may be a few more.
#if VG_SSSE3
#if VG_VBMI
constexpr i64 SIZE = 64;
#else
constexpr i64 SIZE = 16;
#endif

i64 pick_vectors(const u8 *source, i64 pixels, i64 readable, i64 writable, const Picked &picked, u8 *to) {
  const i64 at_once = min_of(SIZE / 3, SIZE / picked.channels);
  if (at_once < 1) return 0;
  u8 index[SIZE] = {};
  for (i64 i = 0; i < at_once; i++) {
    index[3 * i] = (u8)(i * picked.channels);
    index[3 * i + 1] = (u8)(i * picked.channels + 1);
    index[3 * i + 2] = (u8)(i * picked.channels + picked.last);
  }
  const i64 end = min_of(pixels - 1, min_of((readable - SIZE) / picked.channels, (writable - SIZE) / 3));
  if (readable < SIZE || writable < SIZE) return 0;
#if VG_VBMI
  const __m512i order = _mm512_loadu_si512(index);
#else
  const __m128i order = _mm_loadu_si128((const __m128i *)index);
#endif
  i64 x = 0;
  for (; x <= end; x += at_once) {
    const u8 *from = source + x * picked.channels;
#if VG_VBMI
    _mm512_storeu_si512(to + 3 * x, _mm512_permutexvar_epi8(order, _mm512_loadu_si512(from)));
#else
    _mm_storeu_si128((__m128i *)(to + 3 * x), _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)from), order));
#endif
  }
  return x;
}
#else
i64 pick_vectors(const u8 *, i64, i64, i64, const Picked &, u8 *) { return 0; }
#endif

}  // namespace
}  // namespace VG_LEVEL
}  // namespace vg

VG_EXPORT i64 VG_ENTRY(vg_pick_planes)(const PickCall *call) {
  using namespace vg::VG_LEVEL;
  const i64 channels = call->channels;
  const Picked picked = {channels, min_of<i64>(2, channels - 1)};
  u8 *target = call->target;
  for (i64 n = call->begin; n < call->end; n++) {
    const i64 *image = call->images + 4 * n;
    const u8 *source = (const u8 *)image[0];
    const i64 line = image[1];
    i64 height = image[2], width = image[3];
    call->sources[n] = (i64)target;
    if (line == width * channels) {
      width *= height;
      height = 1;
    }
    for (i64 y = 0; y < height; y++) {
      const i64 lines = height - 1 - y;  // after this one
      const i64 readable = lines * line + (width - 1) * channels + picked.last + 1;
      const i64 done = pick_vectors(source, width, readable, 3 * width * (lines + 1), picked, target);
      pick_each(source, done, width, picked, target);
      source += line;
      target += 3 * width;
    }
  }
  return OK;
}
