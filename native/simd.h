// Intrinsics of the processor that this file is compiled for.
#pragma once
#include "core.h"
// GCC takes half a second for immintrin.h, whose AVX-512 the older levels do not need.
#if VG_AVX2
#include <immintrin.h>
#elif VG_SSSE3
#include <nmmintrin.h>
#elif defined(__x86_64__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
