// Element types of images: uint8, uint16 or float32. Kernels are templates over them, except operations that are
// defined for 256 values only.
//
// A template is the definition in plain C++. A vectorized version for uint8 is an overload of the same name, which
// calls the template (f<u8>) for remaining pixels.
#pragma once
#include "../core.h"

namespace vg::VG_LEVEL {

// `Sum`: the type for sums of elements times weights, in fixed point for uint8. `MAX`: white.
template <class Element> struct ElementTraits;
template <> struct ElementTraits<u8> {
  using Sum = i32;
  static constexpr i32 MAX = 255;
};
template <> struct ElementTraits<u16> {
  using Sum = f32;
  static constexpr i32 MAX = 65535;
};
template <> struct ElementTraits<f32> {
  using Sum = f32;
  static constexpr f32 MAX = 1;
};

template <class Element> using SumOf = typename ElementTraits<Element>::Sum;
template <class Element> constexpr bool HAS_LEVELS = sizeof(Element) == 1;  // tables may have one entry per value
template <class Number> constexpr bool IS_FLOAT = (Number)0.5 != 0;
// White, and a unit of uint8, as float32.
template <class Element> constexpr f32 WHITE = (f32)ElementTraits<Element>::MAX;
template <class Element> constexpr f32 UNIT = WHITE<Element> / 255;

// False for masks of the remaining types, which are copied and never computed with.
template <class Element> constexpr bool IS_OF_IMAGES = sizeof(Element) <= 2 || IS_FLOAT<Element>;

#define VG_EACH_ELEMENT(F) F(u8) F(u16) F(f32)
// The same, and the remaining elements of masks.
#define VG_EACH_MOVED_ELEMENT(F) F(u8) F(u16) F(u32) F(u64) F(f32)
// Compiles a template for an element.
#define VG_COMPILE(name, Element) template decltype(name<Element>) name<Element>;

// The initial value of a sum in fixed point with `bits` fraction bits, so that it rounds half up.
template <class Sum, int bits> constexpr Sum HALF_UNIT = IS_FLOAT<Sum> ? (Sum)0 : (Sum)((i64)1 << (bits - 1));

// Removes the fraction bits of a sum. Fixed point is rounded down; floats keep their fractions.
template <int bits, class Sum> VG_INLINE Sum drop_bits(Sum sum) {
  if constexpr (IS_FLOAT<Sum>) return sum * (1 / (Sum)((i64)1 << bits));
  else return sum >> bits;
}

template <class Element> VG_INLINE Element clip(SumOf<Element> sum) {
  return (Element)clamp<SumOf<Element>>(sum, 0, ElementTraits<Element>::MAX);
}

// Clips a color value; integers are truncated (truncate_value) or rounded half up (round_value). NaN becomes black.
//
// GPU counterparts have the same names in executors/cuda/kernels/element.py.
template <class Element> VG_INLINE Element truncate_value(f32 value) {
  value = min_of(WHITE<Element>, value > 0 ? value : 0);
  if constexpr (IS_FLOAT<Element>) return value;
  else return (Element)(i32)value;
}
template <class Element> VG_INLINE Element round_value(f32 value) {
  return truncate_value<Element>(IS_FLOAT<Element> ? value : value + 0.5f);
}

// Converts a sum to an element: uint8 is clipped, uint16 also rounded half up; float32 may be outside black and white.
template <class Element> VG_INLINE Element to_element(SumOf<Element> sum) {
  if constexpr (IS_FLOAT<Element>) return sum;
  else if constexpr (IS_FLOAT<SumOf<Element>>) return round_value<Element>(sum);
  else return clip<Element>(sum);
}

// Scales a color of 8 bits to the element's range.
template <class Element> VG_INLINE Element from_byte(u8 value) {
  if constexpr (IS_FLOAT<Element>) return (f32)value / 255;
  else return (Element)(value * (ElementTraits<Element>::MAX / 255));
}

// A uniformly distributed value: the upper bits of a random word.
template <class Element> VG_INLINE Element from_word(u32 word) {
  if constexpr (IS_FLOAT<Element>) return (f32)(i32)(word >> 8) * 0x1p-24f;
  else return (Element)(word >> (32 - 8 * sizeof(Element)));
}

// Linear interpolation by a weight with `bits` fraction bits, rounded half up.
template <int bits, class Sum> VG_INLINE Sum mix(Sum a, Sum b, Sum weight) {
  return a + drop_bits<bits>((b - a) * weight + HALF_UNIT<Sum, bits>);
}

template <class Element> VG_INLINE void set_values(Element *to, Element value, i64 count) {
  for (i64 i = 0; i < count; i++) to[i] = value;
}
VG_INLINE void set_values(u8 *to, u8 value, i64 count) { memset(to, value, (size_t)count); }
template <class Element> VG_INLINE void copy_values(Element *to, const Element *from, i64 count) {
  memcpy(to, from, (size_t)count * sizeof(Element));
}

}  // namespace vg::VG_LEVEL
