// Integer types, levels of x86-64, memory, and replacements for the few needed functions of C++'s library. Files with
// intrinsics also include simd.h, which takes half a second to compile.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
using u8 = uint8_t;
using i8 = int8_t;
using u16 = uint16_t;
using i16 = int16_t;
using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;
using f32 = float;
using f64 = double;

// The level that this file is compiled for: intrinsics of a level are used if its macro is 1. Each such block has an
// equivalent without intrinsics.
#if defined(__SSSE3__)
#define VG_SSSE3 1
#else
#define VG_SSSE3 0
#endif
#if defined(__AVX2__)
#define VG_AVX2 1
#else
#define VG_AVX2 0
#endif
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define VG_AVX512 1
#else
#define VG_AVX512 0
#endif
#if VG_AVX512 && defined(__AVX512VBMI__)
#define VG_VBMI 1
#else
#define VG_VBMI 0
#endif
#if VG_VBMI && defined(__AVX512VNNI__)
#define VG_VNNI 1
#else
#define VG_VNNI 0
#endif

#define VG_INLINE static inline __attribute__((always_inline))
// For members of structs that several levels share: the linker could use the copy of any level if it is not inlined.
#define VG_MEMBER inline __attribute__((always_inline))
#define VG_NOINLINE __attribute__((noinline))

// Links the oldest versions of these functions, which every glibc since 2.14 has. They compute the same numbers.
#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver exp,exp@GLIBC_2.2.5");
__asm__(".symver pow,pow@GLIBC_2.2.5");
__asm__(".symver hypot,hypot@GLIBC_2.2.5");
#endif

// A function that Python calls. Kernels have one per level, with the level at the end of its name: vg_run_v3.
#define VG_JOIN_2(a, b) a##_##b
#define VG_JOIN(a, b) VG_JOIN_2(a, b)
#define VG_EXPORT extern "C" __attribute__((visibility("default")))
#define VG_ENTRY(name) VG_JOIN(name, VG_LEVEL)

// Size in bytes by which rows are padded, so that vector loads and stores may run past their end.
constexpr i64 BLOCK = 64;

constexpr f64 PI = 3.14159265358979323846;

template <class T> VG_INLINE T min_of(T a, T b) { return a < b ? a : b; }
template <class T> VG_INLINE T max_of(T a, T b) { return a > b ? a : b; }
template <class T> VG_INLINE T clamp(T value, T low, T high) { return min_of(max_of(value, low), high); }
// Like Python's min and max: the first number if neither is smaller, or if either is NaN.
VG_INLINE f64 smaller(f64 a, f64 b) { return b < a ? b : a; }
VG_INLINE f64 larger(f64 a, f64 b) { return b > a ? b : a; }
VG_INLINE i64 ceil_div(i64 value, i64 divisor) { return (value + divisor - 1) / divisor; }
VG_INLINE i64 round_up(i64 value, i64 multiple) { return ceil_div(value, multiple) * multiple; }

// Columns, lines, nodes or slots first..end.
struct Range {
  i64 first, end;

  VG_MEMBER i64 size() const { return end - first; }
  VG_MEMBER bool is_empty() const { return end <= first; }
};

struct Rectangle {
  i64 top, left, bottom, right;
};

// Packs two numbers of 16 bits into a word.
VG_INLINE i32 pair_of(i32 low, i32 high) { return (i32)(((u32)low & 0xffff) | (u32)high << 16); }

// Unaligned loads and stores of any type.
template <class T> VG_INLINE T load(const void *at) {
  T value;
  memcpy(&value, at, sizeof value);
  return value;
}
template <class T> VG_INLINE void store(void *at, T value) { memcpy(at, &value, sizeof value); }

// Prefetches `size` bytes into the second-level cache.
VG_INLINE void prefetch(const void *at, i64 size) {
  for (i64 i = 0; i < size; i += 64) __builtin_prefetch((const u8 *)at + i, 0, 2);
}

// Return values of entries; Python raises MemoryError for OUT_OF_MEMORY.
enum Status : i64 { OK = 0, OUT_OF_MEMORY = 1, UNSUPPORTED = 2 };

// Memory that only grows, aligned to a cache line. Growing discards its contents and zeroes it.
template <class T> struct Buffer {
  T *at = nullptr;
  i64 capacity = 0;

  VG_MEMBER Buffer() {}
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  VG_MEMBER ~Buffer() { free(at); }

  // Allocates `count` values, and a block of bytes after them. False if there is no memory.
  VG_MEMBER bool reserve(i64 count) {
    if (count <= capacity) return true;
    free(at);
    at = nullptr;
    capacity = 0;
    size_t bytes = (size_t)round_up(count * (i64)sizeof(T), 64) + BLOCK;
    void *memory = nullptr;
    if (posix_memalign(&memory, 64, bytes)) return false;
    memset(memory, 0, bytes);
    at = (T *)memory;
    capacity = count;
    return true;
  }
  VG_MEMBER T &operator[](i64 i) { return at[i]; }
  VG_MEMBER const T &operator[](i64 i) const { return at[i]; }
};
