// Copies three channels of images with more channels, or with two.
#include "../constants.h"
#include "../simd.h"

namespace vg::VG_LEVEL {
namespace {

// Bytes of a vector.
constexpr i64 SIZE = VG_VBMI ? 64 : 16, HALF = 32;

struct Picks {
  i64 channels;  // of the source
  i64 last;  // index of the third channel
  i64 at_once;  // pixels per vector; 0 if vectors are not used
  u8 index[SIZE];  // positions of the result's bytes in a vector of the source
};

Picks picks_of(i64 channels) {
  i64 at_once = min_of(SIZE / 3, SIZE / channels);
  // Stores of half a vector cross fewer cache lines.
  if (SIZE == 64 && channels > 4) at_once = min_of(HALF / 3, at_once);
  Picks picks = {channels, min_of<i64>(2, channels - 1), at_once, {}};
  for (i64 i = 0; i < picks.at_once; i++) {
    picks.index[3 * i] = (u8)(i * channels);
    picks.index[3 * i + 1] = (u8)(i * channels + 1);
    picks.index[3 * i + 2] = (u8)(i * channels + picks.last);
  }
  return picks;
}

#if VG_VBMI
using Index = __m512i;
VG_INLINE Index load_index(const u8 *at) { return _mm512_loadu_si512(at); }
template <i64 stored> VG_INLINE void pick_vector(const u8 *source, Index index, u8 *to) {
  const __m512i picked = _mm512_permutexvar_epi8(index, _mm512_loadu_si512(source));
  if (stored == HALF) _mm256_storeu_si256((__m256i *)to, _mm512_castsi512_si256(picked));
  else _mm512_storeu_si512(to, picked);
}
#elif VG_SSSE3
using Index = __m128i;
VG_INLINE Index load_index(const u8 *at) { return _mm_loadu_si128((const __m128i *)at); }
template <i64 stored> VG_INLINE void pick_vector(const u8 *source, Index index, u8 *to) {
  _mm_storeu_si128((__m128i *)to, _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)source), index));
}
#else
using Index = const u8 *;
VG_INLINE Index load_index(const u8 *at) { return at; }
template <i64 stored> VG_INLINE void pick_vector(const u8 *source, Index index, u8 *to) {
  for (i64 i = 0; i < SIZE; i++) to[i] = source[index[i]];
}
#endif

// Picks `pixels` pixels, a vector at a time; returns the number of picked pixels, which may be a few more.
template <i64 stored> i64 pick_vectors(const u8 *source, i64 pixels, const Picks &picks, u8 *to) {
  const i64 channels = picks.channels, step = picks.at_once;
  const Index index = load_index(picks.index);
  i64 x = 0;
#pragma GCC unroll 4
  for (; x < pixels; x += step) pick_vector<stored>(source + x * channels, index, to + 3 * x);
  return x;
}

// The same if less than two pixels fit into a vector, by loads of four bytes.
i64 pick_words(const u8 *source, i64 pixels, i64 channels, u8 *to) {
#pragma GCC unroll 4
  for (i64 x = 0; x < pixels; x++) store(to + 3 * x, load<u32>(source + x * channels));
  return pixels;
}

// Picks `pixels` pixels; reads at most `readable` bytes of the source and writes at most `writable` bytes of the
// target.
void pick_line(const u8 *source, i64 pixels, i64 readable, i64 writable, const Picks &picks, u8 *to) {
  const i64 channels = picks.channels;
  i64 x = 0;
  if (readable >= SIZE && writable >= SIZE) {
    const i64 end = min_of(pixels, min_of((readable - SIZE) / channels, (writable - SIZE) / 3) + 1);
    if (picks.at_once <= 1) x = pick_words(source, end, channels, to);
    else if (3 * picks.at_once <= HALF) x = pick_vectors<HALF>(source, end, picks, to);
    else x = pick_vectors<SIZE>(source, end, picks, to);
  }
  for (; x < pixels; x++) {
    const u8 *pixel = source + x * channels;
    to[3 * x] = pixel[0];
    to[3 * x + 1] = pixel[1];
    to[3 * x + 2] = pixel[picks.last];
  }
}

// The same for elements of more than a byte; `line`: bytes per line of the source.
template <class Element> void pick_elements(const PickCall &call) {
  const i64 channels = call.channels, last = min_of<i64>(2, channels - 1);
  auto *to = (Element *)call.target;
  for (i64 n = call.begin; n < call.end; n++) {
    const i64 *image = call.images + 4 * n, line = image[1], height = image[2], width = image[3];
    call.sources[n] = (i64)to;
    for (i64 y = 0; y < height; y++) {
      const auto *source = (const Element *)(image[0] + y * line);
      for (i64 x = 0; x < width; x++, to += 3, source += channels) {
        to[0] = source[0];
        to[1] = source[min_of<i64>(1, last)];
        to[2] = source[last];
      }
    }
  }
}

}  // namespace

VG_EXPORT i64 VG_ENTRY(vg_pick_planes)(const PickCall *call) {
  if (call->depth == Depth::UINT16) pick_elements<u16>(*call);
  else if (call->depth == Depth::FLOAT32) pick_elements<u32>(*call);
  if (call->depth != Depth::UINT8) return OK;
  const i64 channels = call->channels;
  const Picks picks = picks_of(channels);
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
      const i64 readable = lines * line + (width - 1) * channels + picks.last + 1;
      pick_line(source, width, readable, 3 * width * (lines + 1), picks, target);
      source += line;
      target += 3 * width;
    }
  }
  return OK;
}

}  // namespace vg::VG_LEVEL
