// Registers of 8-bit and 16-bit lanes of the level's width: 64, 32 or 16 bytes.
//
// Instructions that interleave or pack registers work within each 16 bytes. Packing reverses interleaving, so most code
// does not depend on the order in between; `natural8` and `store_natural16` restore memory order.
#pragma once
#include "../simd.h"

#if defined(__GNUC__) && !defined(__clang__)
// GCC's intrinsics of 512 bits use uninitialized registers.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace vg::VG_LEVEL {

// Files whose code needs many registers, or is not faster with the widest registers, define VG_NARROW_REGISTERS.
#if VG_AVX512 && !defined(VG_NARROW_REGISTERS)
#define VG_REGISTER_BITS 512
using Register = __m512i;
#define VG_MM(name) _mm512_##name
#elif VG_AVX2
#define VG_REGISTER_BITS 256
using Register = __m256i;
#define VG_MM(name) _mm256_##name
#elif defined(__SSE2__) && !defined(VG_PLAIN_REGISTERS)
#define VG_REGISTER_BITS 128
using Register = __m128i;
#define VG_MM(name) _mm_##name
#else
#define VG_REGISTER_BITS 128
typedef u8 Register __attribute__((vector_size(16)));
#endif

// Size of a register in bytes. Rows are padded by at least as many.
constexpr i64 REGISTER = sizeof(Register);
static_assert(REGISTER <= BLOCK, "rows are padded by a block");

VG_INLINE Register load_register(const void *at) { return load<Register>(at); }

// Forces the compiler to compute `a` here, in one register. Otherwise GCC uses two registers for a sum in a loop, and
// spills.
VG_INLINE void pin_register(Register &a) {
#if defined(__x86_64__)
  asm("" : "+v"(a));
#else
  (void)a;
#endif
}

#if VG_AVX2
VG_INLINE __m256i join_halves(__m128i low, __m128i high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
#endif

// The 16 bytes in which instructions of wider registers work.
#if VG_REGISTER_BITS == 128
using Part = Register;
#else
using Part = __m128i;
#endif

// read(0), read(4), ..., a Part each.
template <class F> VG_INLINE Register join_16(F read) {
#if VG_REGISTER_BITS == 512
  return _mm512_inserti64x4(_mm512_castsi256_si512(join_halves(read(0), read(4))), join_halves(read(8), read(12)), 1);
#elif VG_REGISTER_BITS == 256
  return join_halves(read(0), read(4));
#else
  return read(0);
#endif
}

#if defined(VG_MM)

VG_INLINE Register all8(int value) { return VG_MM(set1_epi8)((char)value); }
VG_INLINE Register all16(int value) { return VG_MM(set1_epi16)((i16)value); }
VG_INLINE Register all32(i32 value) { return VG_MM(set1_epi32)(value); }

#define VG_BINARY(name, instruction) \
  VG_INLINE Register name(Register a, Register b) { return VG_MM(instruction)(a, b); }
// The low and the high halves of each 16 bytes of two registers, lane by lane.
VG_BINARY(low8, unpacklo_epi8)
VG_BINARY(high8, unpackhi_epi8)
VG_BINARY(low16, unpacklo_epi16)
VG_BINARY(high16, unpackhi_epi16)
VG_BINARY(low32, unpacklo_epi32)
VG_BINARY(high32, unpackhi_epi32)
VG_BINARY(low64, unpacklo_epi64)
VG_BINARY(high64, unpackhi_epi64)
VG_BINARY(add16, add_epi16)
VG_BINARY(sub16, sub_epi16)
VG_BINARY(multiply16, mullo_epi16)
VG_BINARY(add32, add_epi32)
VG_BINARY(sub32, sub_epi32)
VG_BINARY(add_saturated_u8, adds_epu8)
VG_BINARY(sub_saturated_u8, subs_epu8)
VG_BINARY(add_saturated16, adds_epi16)
VG_BINARY(min_u8, min_epu8)
VG_BINARY(max_u8, max_epu8)
VG_BINARY(multiply_high_u16, mulhi_epu16)
// Products of 16-bit lanes, neighbors added: i32.
VG_BINARY(dot16, madd_epi16)
// i32 or i16 to half the bits, saturated: signed, and to 0..255.
VG_BINARY(pack32, packs_epi32)
VG_BINARY(pack16, packus_epi16)
#undef VG_BINARY

template <int n> VG_INLINE Register left16(Register a) { return VG_MM(slli_epi16)(a, n); }
template <int n> VG_INLINE Register right_u16(Register a) { return VG_MM(srli_epi16)(a, n); }
template <int n> VG_INLINE Register right16(Register a) { return VG_MM(srai_epi16)(a, n); }
template <int n> VG_INLINE Register left32(Register a) { return VG_MM(slli_epi32)(a, n); }
template <int n> VG_INLINE Register right32(Register a) { return VG_MM(srai_epi32)(a, n); }
VG_INLINE Register right32(Register a, int n) { return VG_MM(sra_epi32)(a, _mm_cvtsi32_si128(n)); }

// Unsigned bytes times signed bytes, neighbors added: i16. `b`'s lanes are small enough not to saturate.
VG_INLINE Register dot8(Register a, Register b) {
#if VG_SSSE3
  return VG_MM(maddubs_epi16)(a, b);
#else
  const Register even_a = _mm_and_si128(a, _mm_set1_epi16(255)), even_b = _mm_srai_epi16(_mm_slli_epi16(b, 8), 8);
  const Register odd_a = _mm_srli_epi16(a, 8), odd_b = _mm_srai_epi16(b, 8);
  return _mm_add_epi16(_mm_mullo_epi16(even_a, even_b), _mm_mullo_epi16(odd_a, odd_b));
#endif
}

// (a * b + 2**14) >> 15, of signed lanes.
VG_INLINE Register multiply_rounded16(Register a, Register b) {
#if VG_SSSE3
  return VG_MM(mulhrs_epi16)(a, b);
#else
  const Register low = _mm_mullo_epi16(a, b), high = _mm_mulhi_epi16(a, b);
  const Register whole = _mm_or_si128(_mm_slli_epi16(high, 1), _mm_srli_epi16(low, 15));
  return _mm_add_epi16(whole, _mm_and_si128(_mm_srli_epi16(low, 14), _mm_set1_epi16(1)));
#endif
}

// REGISTER / 2 bytes as 16-bit lanes.
VG_INLINE Register load_wide8(const u8 *at) {
#if VG_REGISTER_BITS == 512
  return _mm512_cvtepu8_epi16(load<__m256i>(at));
#elif VG_REGISTER_BITS == 256
  return _mm256_cvtepu8_epi16(load<__m128i>(at));
#else
  return _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)at), _mm_setzero_si128());
#endif
}

// The first and the second half of a register.
VG_INLINE void store_halves(u8 *first, u8 *second, Register a) {
#if VG_REGISTER_BITS == 512
  store(first, _mm512_castsi512_si256(a));
  store(second, _mm512_extracti64x4_epi64(a, 1));
#elif VG_REGISTER_BITS == 256
  store(first, _mm256_castsi256_si128(a));
  store(second, _mm256_extracti128_si256(a, 1));
#else
  _mm_storel_epi64((__m128i *)first, a);
  _mm_storel_epi64((__m128i *)second, _mm_srli_si128(a, 8));
#endif
}

// The upper halves of 32-bit lanes: of `even` in even 16-bit lanes, of `odd` in odd ones.
VG_INLINE Register upper_halves(Register even, Register odd) {
  even = VG_MM(srli_epi32)(even, 16);
#if VG_REGISTER_BITS == 512
  return _mm512_mask_blend_epi16(0xaaaaaaaa, even, odd);
#elif VG_REGISTER_BITS == 256
  return _mm256_blend_epi16(even, odd, 0xaa);
#elif defined(__SSE4_1__)
  return _mm_blend_epi16(even, odd, 0xaa);
#else
  return _mm_or_si128(even, _mm_and_si128(odd, _mm_set1_epi32(-65536)));
#endif
}

VG_INLINE Register even_bytes(Register a) { return a & all16(255); }
VG_INLINE Register odd_bytes(Register a) { return right_u16<8>(a); }

#else  // the same by GCC's vectors

typedef i16 Lanes16 __attribute__((vector_size(16)));
typedef u16 LanesU16 __attribute__((vector_size(16)));
typedef i32 Lanes32 __attribute__((vector_size(16)));
typedef u32 LanesU32 __attribute__((vector_size(16)));
typedef i8 LanesI8 __attribute__((vector_size(16)));
typedef i16 Wide16 __attribute__((vector_size(32)));
typedef u16 WideU16 __attribute__((vector_size(32)));
typedef i32 Wide32 __attribute__((vector_size(32)));
typedef u32 WideU32 __attribute__((vector_size(32)));

VG_INLINE Register all8(int value) { return Register{} + (u8)value; }
VG_INLINE Register all16(int value) { return (Register)(Lanes16{} + (i16)value); }
VG_INLINE Register all32(i32 value) { return (Register)(Lanes32{} + value); }
VG_INLINE Register low8(Register a, Register b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
VG_INLINE Register high8(Register a, Register b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
VG_INLINE Register low16(Register a, Register b) {
  return (Register)__builtin_shufflevector((Lanes16)a, (Lanes16)b, 0, 8, 1, 9, 2, 10, 3, 11);
}
VG_INLINE Register high16(Register a, Register b) {
  return (Register)__builtin_shufflevector((Lanes16)a, (Lanes16)b, 4, 12, 5, 13, 6, 14, 7, 15);
}
VG_INLINE Register low32(Register a, Register b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
}
VG_INLINE Register high32(Register a, Register b) {
  return __builtin_shufflevector(a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
}
VG_INLINE Register low64(Register a, Register b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
}
VG_INLINE Register high64(Register a, Register b) {
  return __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
}
VG_INLINE Register multiply16(Register a, Register b) { return (Register)((LanesU16)a * (LanesU16)b); }
VG_INLINE Register add16(Register a, Register b) { return (Register)((LanesU16)a + (LanesU16)b); }
VG_INLINE Register sub16(Register a, Register b) { return (Register)((LanesU16)a - (LanesU16)b); }
VG_INLINE Register add32(Register a, Register b) { return (Register)((LanesU32)a + (LanesU32)b); }
VG_INLINE Register sub32(Register a, Register b) { return (Register)((LanesU32)a - (LanesU32)b); }
VG_INLINE Register min_u8(Register a, Register b) { return a < b ? a : b; }
VG_INLINE Register max_u8(Register a, Register b) { return a > b ? a : b; }
VG_INLINE Register add_saturated_u8(Register a, Register b) { return a + min_u8(b, ~a); }
VG_INLINE Register sub_saturated_u8(Register a, Register b) { return a - min_u8(a, b); }
VG_INLINE Register add_saturated16(Register a, Register b) {
  Wide32 sum = __builtin_convertvector((Lanes16)a, Wide32) + __builtin_convertvector((Lanes16)b, Wide32);
  sum = sum < -32768 ? Wide32{} - 32768 : sum > 32767 ? Wide32{} + 32767 : sum;
  return (Register) __builtin_convertvector(sum, Lanes16);
}
VG_INLINE Register multiply_high_u16(Register a, Register b) {
  const WideU32 product = __builtin_convertvector((LanesU16)a, WideU32) * __builtin_convertvector((LanesU16)b, WideU32);
  return (Register) __builtin_convertvector(product >> 16, LanesU16);
}
VG_INLINE Register dot16(Register a, Register b) {
  const Wide32 product = __builtin_convertvector((Lanes16)a, Wide32) * __builtin_convertvector((Lanes16)b, Wide32);
  const Lanes32 even = __builtin_shufflevector(product, product, 0, 2, 4, 6);
  return add32((Register)even, (Register)__builtin_shufflevector(product, product, 1, 3, 5, 7));
}
VG_INLINE Register pack32(Register a, Register b) {
  Wide32 both = __builtin_shufflevector((Lanes32)a, (Lanes32)b, 0, 1, 2, 3, 4, 5, 6, 7);
  both = both < -32768 ? Wide32{} - 32768 : both > 32767 ? Wide32{} + 32767 : both;
  return (Register) __builtin_convertvector(both, Lanes16);
}
VG_INLINE Register pack16(Register a, Register b) {
  Wide16 both = __builtin_shufflevector((Lanes16)a, (Lanes16)b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  both = both < 0 ? Wide16{} : both > 255 ? Wide16{} + (i16)255 : both;
  return __builtin_convertvector(both, Register);
}
template <int n> VG_INLINE Register left16(Register a) { return (Register)((LanesU16)a << n); }
template <int n> VG_INLINE Register right_u16(Register a) { return (Register)((LanesU16)a >> n); }
template <int n> VG_INLINE Register right16(Register a) { return (Register)((Lanes16)a >> n); }
template <int n> VG_INLINE Register left32(Register a) { return (Register)((LanesU32)a << n); }
VG_INLINE Register right32(Register a, int n) { return (Register)((Lanes32)a >> n); }
template <int n> VG_INLINE Register right32(Register a) { return right32(a, n); }
VG_INLINE Register dot8(Register a, Register b) {
  const WideU16 product = __builtin_convertvector(a, WideU16) *
                          (WideU16) __builtin_convertvector(__builtin_convertvector((LanesI8)b, Wide16), Wide16);
  const LanesU16 even = __builtin_shufflevector(product, product, 0, 2, 4, 6, 8, 10, 12, 14);
  return (Register)(even + __builtin_shufflevector(product, product, 1, 3, 5, 7, 9, 11, 13, 15));
}
VG_INLINE Register multiply_rounded16(Register a, Register b) {
  const Wide32 product = __builtin_convertvector((Lanes16)a, Wide32) * __builtin_convertvector((Lanes16)b, Wide32);
  return (Register) __builtin_convertvector((product + (1 << 14)) >> 15, Lanes16);
}
VG_INLINE Register load_wide8(const u8 *at) {
  typedef u8 Half __attribute__((vector_size(8)));
  return (Register) __builtin_convertvector(load<Half>(at), LanesU16);
}
VG_INLINE void store_halves(u8 *first, u8 *second, Register a) {
  typedef u64 Two __attribute__((vector_size(16)));
  store(first, ((Two)a)[0]);
  store(second, ((Two)a)[1]);
}
VG_INLINE Register upper_halves(Register even, Register odd) {
  return (Register)__builtin_shufflevector((Lanes16)even, (Lanes16)odd, 1, 9, 3, 11, 5, 13, 7, 15);
}
VG_INLINE Register even_bytes(Register a) { return a & all16(255); }
VG_INLINE Register odd_bytes(Register a) { return right_u16<8>(a); }

#endif

typedef i32 IntLanes __attribute__((vector_size(REGISTER)));

// Saturates two registers of i16 to bytes, both in memory order.
VG_INLINE Register natural8(Register a, Register b) {
#if VG_REGISTER_BITS == 512
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), pack16(a, b));
#elif VG_REGISTER_BITS == 256
  return _mm256_permute4x64_epi64(pack16(a, b), 0xd8);
#else
  return pack16(a, b);
#endif
}

// Stores two registers of i16 from `low8` and `high8` in memory order.
VG_INLINE void store_natural16(i16 *at, Register low, Register high) {
#if VG_REGISTER_BITS == 512
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  store(at, _mm512_permutex2var_epi64(low, first, high));
  store(at + 32, _mm512_permutex2var_epi64(low, _mm512_add_epi64(first, _mm512_set1_epi64(4)), high));
#elif VG_REGISTER_BITS == 256
  store(at, _mm256_permute2x128_si256(low, high, 0x20));
  store(at + 16, _mm256_permute2x128_si256(low, high, 0x31));
#else
  store(at, low);
  store(at + REGISTER / 2, high);
#endif
}

// Two weights for `dot16`, of even and of odd lanes.
VG_INLINE Register all_pairs(i32 even, i32 odd) { return all32(pair_of(even, odd)); }

// sum + dot16(a, b).
VG_INLINE Register add_dot16(Register sum, Register a, Register b) {
#if VG_VNNI && VG_REGISTER_BITS == 512
  return _mm512_dpwssd_epi32(sum, a, b);
#else
  return add32(sum, dot16(a, b));
#endif
}

#if VG_SSSE3
// Within each 16 bytes, the bytes at these positions (pshufb).
VG_INLINE Register move_bytes(Register a, __m128i positions) {
#if VG_REGISTER_BITS == 512
  return _mm512_shuffle_epi8(a, _mm512_broadcast_i32x4(positions));
#elif VG_REGISTER_BITS == 256
  return _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(positions));
#else
  return _mm_shuffle_epi8(a, positions);
#endif
}
#endif

// Saturates 16-bit lanes to bytes, alternately from `even` and `odd`.
VG_INLINE Register interleaved8(Register even, Register odd) {
  const Register packed = pack16(even, odd);
#if VG_SSSE3
  return move_bytes(packed, _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
#elif defined(VG_MM)
  return low8(packed, _mm_srli_si128(packed, 8));
#else
  return __builtin_shufflevector(packed, packed, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
#endif
}

}  // namespace vg::VG_LEVEL
