// Taps of interpolated pixels in registers. Each 16 bytes of a register hold four consecutive pixels: first i to i + 3,
// then i + 4 to i + 7, ... Therefore results need no move across groups of 16 bytes.
#pragma once
#include "lanes.h"
#include "registers.h"
#include "split.h"

namespace vg::VG_LEVEL {

#if VG_SSSE3

// Shuffles bytes within each 16 by a table of positions; 0 for positions of 128 or more (pshufb).
VG_INLINE Register pick(Register a, const ByteTable &table) { return VG_MM(shuffle_epi8)(a, load_register(table.at)); }

// Repeats number k of each four numbers four times (shufps).
template <int k> VG_INLINE Register repeat32(Register a) {
  const auto numbers = (decltype(VG_MM(setzero_ps)()))a;
  return (Register)VG_MM(shuffle_ps)(numbers, numbers, k * 0x55);
}

// Loads REGISTER / 4 numbers of 16 bits. Each four are then bytes 0, 1, 4, 5, 8, 9, 12 and 13 of 16, for `pick`.
VG_INLINE Register load_spread16(const i16 *at) {
#if VG_REGISTER_BITS == 512
  return _mm512_cvtepu16_epi32(load<__m256i>(at));
#elif VG_REGISTER_BITS == 256
  return _mm256_cvtepu16_epi32(load<__m128i>(at));
#else
  const __m128i four = _mm_loadl_epi64((const __m128i *)at);
  return _mm_unpacklo_epi16(four, four);
#endif
}

#endif

// ---- Pixels of three channels of uint16 or float32, as four 32-bit numbers each; the last number is arbitrary. Of one
// channel, four adjacent pixels.

VG_INLINE Part load_four(const f32 *at) { return load<Part>(at); }
VG_INLINE Part load_four(const u16 *at) {
#if defined(__SSE4_1__)  // pmovzxwd
  return (Part)_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)at));
#else
  typedef u16 Words4 __attribute__((vector_size(8)));
  typedef i32 Numbers4 __attribute__((vector_size(16)));
  return (Part) __builtin_convertvector(load<Words4>(at), Numbers4);
#endif
}

// Returns `at` when `value` is known: GCC would load the taps of many pixels at once, and spill them.
template <class Element> VG_INLINE const Element *after(Floats &value, const Element *at) {
#if defined(__x86_64__)
  asm("" : "+r"(at), "+v"(value));
#else
  (void)value;
#endif
  return at;
}

// Loads the pixels at every fourth offset.
template <class Element> VG_INLINE Register load_pixels(const Element *at, const i32 *offset) {
  return join_16([=](int i) { return load_four(at + offset[i]); });
}

template <class Element> VG_INLINE Floats to_values(Register numbers) {
  if constexpr (IS_FLOAT<Element>) return (Floats)numbers;
  else return to_floats((Ints)numbers);
}

// Words less 32,768, as signed words.
VG_INLINE Register less_middle(Register words) { return (Register)((Ints)words ^ (i32)0x80008000); }

// Words of 64 bits at two addresses.
VG_INLINE Part load_two_words(const void *first, const void *second) {
  typedef u64 Words2 __attribute__((vector_size(16)));
  return (Part)Words2{load<u64>(first), load<u64>(second)};
}

// Loads the taps i and i + 1 of a line's pixels at every fourth offset, less the middle, as pairs.
VG_INLINE Register load_tap_pairs(const u16 *at, const i32 *offset) {
#if VG_SSSE3  // pshufb
  const Register taps = join_16([=](int i) { return load<Part>(at + offset[i]); });
  return less_middle(move_bytes(taps, _mm_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1)));
#else
  auto load_taps = [=](const u16 *from) {
    return join_16([=](int i) { return load_two_words(from + offset[i], from); });
  };
  return less_middle(low16(load_taps(at), load_taps(at + 3)));
#endif
}

// Prefetches the pixels of LANES offsets, which are adjacent or in a line.
template <class Element> VG_INLINE void prefetch_pixels(const Element *at, const i32 *offset) {
  for (i64 k = 0; k < LANES; k += 4) __builtin_prefetch(at + offset[k], 0, 3);
}

// Repeats number k of each four numbers four times (shufps).
template <int k> VG_INLINE Floats repeat(Floats a) {
#if defined(VG_WIDE)
  return (Floats)VG_WIDE(shuffle_ps)((WideFloats)a, (WideFloats)a, k * 0x55);
#else
  return __builtin_shufflevector(a, a, k, k, k, k);
#endif
}

// Transposes LANES pixels to channels. Register k has the pixels k, k + 4, ...
VG_INLINE void split_pixels(const Register (&pixels)[4], Register (&channels)[4]) {
  const Register low = low32(pixels[0], pixels[1]), high = low32(pixels[2], pixels[3]);
  channels[0] = low64(low, high);
  channels[1] = high64(low, high);
  const Register low_last = high32(pixels[0], pixels[1]), high_last = high32(pixels[2], pixels[3]);
  channels[2] = low64(low_last, high_last);
  channels[3] = high64(low_last, high_last);
}

// Loads four adjacent pixels of one channel at LANES offsets; `taps`: by their distance.
template <class Element> VG_INLINE void load_taps(const Element *line, const i32 *offset, Floats (&taps)[4]) {
  Register pixels[4], split[4];
  for (int k = 0; k < 4; k++) pixels[k] = (Register)to_values<Element>(load_pixels(line, offset + k));
  split_pixels(pixels, split);
  for (int i = 0; i < 4; i++) taps[i] = (Floats)split[i];
}

VG_INLINE void store_numbers(f32 *at, Register numbers) { store(at, numbers); }
VG_INLINE void store_numbers(u16 *at, Register numbers) { store_ints(at, (Ints)numbers); }

}  // namespace vg::VG_LEVEL
