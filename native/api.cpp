// Queries about the library and the processor, for Python.
#include "core.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

// The best level of this processor, as a position in native/build.py's X86_LEVELS: base, v2, v3, v4, vbmi.
VG_EXPORT i64 vg_host_level() {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  __cpuid(1, a, b, c, d);
  auto has = [](unsigned word, int bit) { return (word >> bit & 1) != 0; };
  bool v2 = has(c, 9) && has(c, 20) && has(c, 23);  // SSSE3, SSE4.2, POPCNT
  if (!v2) return 0;
  bool fma = has(c, 12), movbe = has(c, 22), osxsave = has(c, 27), avx = has(c, 28), f16c = has(c, 29);
  if (!osxsave || __get_cpuid_max(0, nullptr) < 7) return 1;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  unsigned b7, c7, lzcnt;
  __cpuid_count(7, 0, a, b7, c7, d);
  __cpuid(0x80000001, a, b, lzcnt, d);
  bool saves_avx = (low & 0x06) == 0x06, saves_avx512 = (low & 0xe6) == 0xe6;
  bool bmi = has(b7, 3) && has(b7, 8), avx2 = has(b7, 5);
  if (!(saves_avx && fma && movbe && avx && f16c && bmi && avx2 && has(lzcnt, 5))) return 1;
  bool v4 = has(b7, 16) && has(b7, 17) && has(b7, 28) && has(b7, 30) && has(b7, 31);  // AVX-512 F, DQ, CD, BW, VL
  if (!saves_avx512 || !v4) return 2;
  return has(c7, 1) && has(c7, 11) && has(c7, 14) ? 4 : 3;  // VBMI, VNNI, VPOPCNTDQ
#else
  return 0;
#endif
}
